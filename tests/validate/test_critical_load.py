"""Critical loads of single instances, and their distribution against the success probability."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from numerics.cone import success_probability
from replica.errors import InvalidInput
from validate.critical_load import critical_load
from validate.decide import decide
from validate.problems import KINDS, make_problem


@pytest.mark.parametrize("kind", KINDS)
def test_the_critical_load_separates_the_two_verdicts(kind: str) -> None:
    found = critical_load(kind, dim=6, seed=5)
    assert found.exact
    for extra, verdict in ((-3, "separable"), (0, "separable"), (1, "not_separable")):
        problem = make_problem(kind, dim=6, facts=found.facts + extra, seed=5)
        assert decide(problem).verdict == verdict
    problem = make_problem(kind, dim=6, facts=found.facts, seed=5)
    assert problem.accuracy(found.weights) == 1.0
    again = critical_load(kind, dim=6, seed=5, start=4)
    assert again.facts == found.facts


def test_starts_that_are_too_high_go_back() -> None:
    found = critical_load("original", dim=5, seed=1)
    assert critical_load("original", dim=5, seed=1, start=found.facts + 6).facts == found.facts


def test_the_distribution_is_the_success_curve() -> None:
    """Randomised probability transforms of 60 instances, Kolmogorov-Smirnov at level 1e-4.

    For nested Gaussian instances P(critical p >= p) is exactly the success probability at p.
    """
    dim, draws = 5, np.random.default_rng(0)
    found = [critical_load("gaussian", dim=dim, seed=(17, s)).facts for s in range(60)]

    def p_value(theory_dim: int) -> float:
        curve = {p: success_probability(theory_dim, p).to_float_lossy() for p in range(2, 40)}
        steps = np.array([[curve[p], curve[p + 1]] for p in found])
        values = steps[:, 1] + draws.random(60) * (steps[:, 0] - steps[:, 1])
        return float(stats.kstest(values, "uniform").pvalue)

    assert p_value(dim) > 1e-4
    # Power: the curve of one more dimension is rejected by the same test.
    assert p_value(dim + 1) < 1e-4


def test_progress_and_fixed_competitors() -> None:
    seen: list[tuple[int, str]] = []
    found = critical_load(
        "original",
        dim=4,
        competitors=5,
        seed=2,
        progress=lambda p, verdict: seen.append((p, verdict)),
    )
    assert seen[-1] == (found.facts + 1, "not_separable")
    assert (found.facts, "separable") in seen


def test_bad_input() -> None:
    with pytest.raises(InvalidInput):
        critical_load("original", dim=0, seed=0)
    with pytest.raises(InvalidInput):
        critical_load("original", dim=4, seed=0, start=1)
