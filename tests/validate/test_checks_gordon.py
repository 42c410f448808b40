"""Gordon's bound: above the exact probability where that is known, and violations are noticed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from numerics.cone import mean_active, success_probability
from replica.errors import InvalidInput
from validate.checks.base import settle
from validate.checks.gordon import (
    SHIFTS,
    active_law,
    at_least,
    check_gordon,
    gordon_bound,
    top_squares,
)
from validate.checks.low_rank import LowRankCell, predicted_half
from validate.checks.theory_curve import TheoryCurve


def test_law_of_active_constraints_gives_the_certified_success_probability() -> None:
    """2 sum over odd j of P(K_tot = d^2 - j), from the convolution here against numerics."""
    for dim, facts in ((4, 6), (6, 15), (8, 22)):
        law = active_law(facts)
        assert law.sum() == pytest.approx(1.0, abs=1e-12)
        mean = float((law * np.arange(law.size)).sum())
        assert mean == pytest.approx(
            facts * float(mean_active(facts - 1, 12).to_float_lossy()), rel=1e-10
        )
        below = 2 * sum(law[dim * dim - j] for j in range(1, dim * dim + 1, 2))
        exact = float(success_probability(dim, facts, digits=12).to_float_lossy())
        assert below == pytest.approx(exact, abs=1e-10)


def test_bound_lies_above_the_exact_probability_at_full_rank() -> None:
    """At m = d the exact probability is known: the bound holds everywhere and is below 1 where the
    success is rare."""
    squares = top_squares(8, 8, seed=1)
    for facts in (16, 20, 22, 24, 26, 28, 31):
        bound = gordon_bound(active_law(facts), squares)
        assert bound >= float(success_probability(8, facts, digits=12).to_float_lossy())
    assert bound < 0.2
    less = gordon_bound(active_law(31), top_squares(8, 4, seed=1))
    assert less < bound


def test_bound_against_direct_simulation() -> None:
    """Every shift evaluated by drawing D and S (40 000 each, other streams), five standard errors
    (false alarm below 3e-5)."""
    rng = np.random.default_rng(3)
    law = active_law(22)
    k = rng.choice(law.size, size=40_000, p=law / law.sum())
    distance = np.sqrt(rng.chisquare(np.maximum(k, 1)))
    singular = np.linalg.svd(rng.standard_normal((40_000, 8, 8)), compute_uv=False)
    length = np.sqrt((singular[:, :4] ** 2).sum(axis=1))
    below, above = [], []
    for c in SHIFTS:
        share = float(np.mean(distance - length <= c))
        error = 5 * np.sqrt(max(share, 1e-3) / 40_000)
        below.append((share - error) / stats.norm.cdf(c))
        above.append((share + error) / stats.norm.cdf(c))
    bound = gordon_bound(law, top_squares(8, 4, seed=1, samples=40_000))
    assert min(below) < bound < min(above) * 1.03 < 0.95


def test_sum_of_binomials_against_enumeration() -> None:
    law = np.convolve(stats.binom.pmf(range(4), 3, 0.2), stats.binom.pmf(range(6), 5, 0.7))
    for total in range(9):
        assert at_least(total, [3, 5], [0.2, 0.7]) == pytest.approx(law[total:].sum(), abs=1e-12)
    assert at_least(1, [4], [0.0]) == 0.0
    assert at_least(4, [4], [1.0]) == 1.0


@pytest.fixture(scope="module")
def theories() -> dict[int, TheoryCurve]:
    return {8: TheoryCurve.at(8)}


def series(
    theories: dict[int, TheoryCurve], beyond: float, n: int, seed: int
) -> list[tuple[str, list[LowRankCell], list[int]]]:
    """Memories found as if they existed up to `beyond` times the theory's number of facts."""
    from numerics.cone import rank_factor

    half = predicted_half(theories[8], float(rank_factor("0.5", 12).to_float_lossy()))
    loads = [round(half * x) for x in (0.9, 1.1, 1.2)]
    rate = theories[8].interpolated(np.asarray(loads) * theories[8].half / (beyond * half))
    found = np.random.default_rng(seed).binomial(n, rate).tolist()
    return [("0.5", [LowRankCell(8, 4, p, n, 1) for p in loads], found)]


def test_check_agrees_and_memories_beyond_the_bound_are_noticed(
    theories: dict[int, TheoryCurve],
) -> None:
    """The test is one-sided and conservative: true counts give p near 1; counts 20 % beyond, 500 a
    load, are refused. Power against 10 % is what the exact binomial law says."""
    honest = check_gordon(series(theories, 1.0, 500, 1), theories, seed=2)
    beyond = check_gordon(series(theories, 1.2, 500, 1), theories, seed=2)
    settle([honest, beyond], 0.01)
    assert honest.verdict == "agrees"
    assert beyond.verdict == "disagrees"
    assert honest.p_value is not None
    assert honest.p_value > 0.9
    assert honest.power is not None
    assert 0.0 <= honest.power <= 1.0
    low = [cell for cell in honest.table if cell.get("bound") == 1.0]
    assert low, "loads that say nothing are shown, not tested"
    ratio, cells, found = series(theories, 1.0, 5, 1)[0]
    with pytest.raises(InvalidInput, match="more facts"):
        check_gordon([(ratio, cells[:1], found[:1])], theories, seed=2)
    with pytest.raises(InvalidInput, match="between 1 and d"):
        top_squares(4, 5, seed=0)
