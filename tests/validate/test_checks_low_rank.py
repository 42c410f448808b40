"""Low-rank memories: found ones are proved, thresholds by two routes, planted I(k) are noticed."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from numerics.cone import critical_facts, rank_factor
from replica.errors import InvalidInput
from validate.checks.base import settle
from validate.checks.extrapolation import DimensionCounts, ShiftModel, limit_test, theory_probit
from validate.checks.low_rank import (
    BOX,
    LowRankCell,
    check_low_rank,
    low_rank_counts,
    low_rank_loads,
    low_rank_units,
    measure_low_rank,
    plot_low_rank,
    predicted_half,
    threshold_facts,
)
from validate.checks.low_rank_search import certified, search
from validate.checks.theory_curve import TheoryCurve
from validate.problems import make_problem
from validate.solvers.low_rank import low_rank

DIMS = (8, 12, 16)


@pytest.fixture(scope="module")
def curves() -> dict[int, TheoryCurve]:
    return {dim: TheoryCurve.at(dim) for dim in DIMS}


@pytest.mark.parametrize("kind", ["decoupled", "original", "gaussian"])
def test_found_memories_recall_everything_in_exact_arithmetic(kind: str) -> None:
    problem = make_problem(kind, dim=6, facts=6, seed=(3, 1))
    found = search(problem, 2, seed=(0,))
    assert found.factors is not None
    Q, R = found.factors
    exact = [
        [sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(q, r, strict=True)) for r in R]
        for q in Q
    ]
    product = Q @ R.T
    assert all(Fraction(float(product[i, j])) == exact[i][j] for i in range(6) for j in range(6)), (
        "the product is exact"
    )
    assert np.linalg.matrix_rank(product) == 2
    import torch

    assert float(problem.margins(torch.from_numpy(product)).min()) > 0


def test_the_search_finds_what_the_trained_solvers_find() -> None:
    """Four instances below the threshold: every one that Adam or Newton recalls is found."""
    for seed in range(4):
        problem = make_problem("decoupled", dim=8, facts=13, seed=(4, seed))
        trained = [
            low_rank(problem, rank=4, method=m, starts=2, maximum_steps=300).accuracy == 1.0
            for m in (("adam", "newton") if seed < 1 else ("adam",))
        ]
        found = search(problem, 4, seed=(seed,)).factors is not None
        assert found >= any(trained)


def test_full_rank_agrees_with_the_exact_solver() -> None:
    """At rank d the problem is convex: the search must not find what is proved impossible."""
    from validate.decide import decide

    for seed in range(8):
        problem = make_problem("decoupled", dim=5, facts=11, seed=(8, seed))
        found = search(problem, 5, seed=(seed,)).factors is not None
        assert found == (decide(problem).verdict == "separable")


def test_nothing_is_certified_that_does_not_recall() -> None:
    problem = make_problem("decoupled", dim=5, facts=8, seed=0)
    rng = np.random.default_rng(0)
    assert certified(problem, rng.standard_normal((5, 2)), rng.standard_normal((5, 2))) is None
    assert search(make_problem("decoupled", dim=6, facts=60, seed=0), 2, seed=(0,)).factors is None
    with pytest.raises(InvalidInput, match="rank at most 5"):
        search(problem, 6, seed=(0,))


@pytest.mark.parametrize("dim", [8, 20])
@pytest.mark.parametrize("ratio", ["0.25", "1"])
def test_threshold_against_the_certified_integer(dim: int, ratio: str) -> None:
    """floor of the real root = largest p with p delta(p-1) <= d^2 I, decided by `numerics.cone`."""
    factor = float(rank_factor(ratio, 12).to_float_lossy())
    expected = critical_facts(dim, rank_ratio=ratio) if ratio != "1" else critical_facts(dim)
    assert math.floor(threshold_facts(dim, factor)) == int(expected)


def test_units_are_the_instances_of_the_cells() -> None:
    cells = [LowRankCell(8, 4, p, 5, 2) for p in (12, 30)]
    units = low_rank_units(cells, seed=1, batch=3)
    found = low_rank_counts(cells, units, [unit.run() for unit in units])
    assert found[0] >= 3
    assert found[1] == 0
    again = measure_low_rank("decoupled", 8, 4, 12, seed=1, first=0, count=5, starts=2)
    assert again["found"] == found[0]
    with pytest.raises(InvalidInput, match="its own units"):
        low_rank_counts(cells, units[1:], [unit.run() for unit in units[1:]])


def synthetic(
    curves: dict[int, TheoryCurve], ratio: str, n: int, seed: int, factor: float = 1.0
) -> tuple[list[LowRankCell], list[int]]:
    """Counts with the 50 % point at (1 - 0.1/d) times the prediction for `factor` I."""
    I = float(rank_factor(ratio, 12).to_float_lossy())
    cells, found = [], []
    for dim, curve in curves.items():
        rng = np.random.default_rng((seed, dim))
        true_half = predicted_half(curve, factor * I) * (1 - 0.1 / dim)
        for p in low_rank_loads(curve, I):
            rate = float(curve.interpolated(p * curve.half / true_half))
            cells.append(LowRankCell(dim, round(float(ratio) * dim), p, n, 1))
            found.append(int(rng.binomial(n, rate)))
    return cells, found


def test_check_agrees_with_counts_from_the_theory(curves: dict[int, TheoryCurve]) -> None:
    checks = []
    for ratio in ("0.25", "0.5"):
        cells, found = synthetic(curves, ratio, 20_000, seed=1)
        checks.append(check_low_rank(ratio, cells, found, seed=2, samples=3000))
    settle(checks, 0.01)
    assert [check.verdict for check in checks] == ["agrees", "agrees"]
    assert {row["source"] for row in checks[0].table} == {"theory", "simulation"}
    assert "failed" not in checks[0].claim
    assert "lower bound" in checks[0].remark
    assert plot_low_rank(checks).axes


def test_planted_two_per_cent_in_the_rank_factor_is_noticed_at_the_stated_power(
    curves: dict[int, TheoryCurve],
) -> None:
    """Counts from I 2 % off (1000 instances a load), 100 runs: noticed as often as stated, within
    four binomial standard errors (false alarm below 1e-4)."""
    cells, found = synthetic(curves, "0.5", 1000, seed=3)
    I = float(rank_factor("0.5", 12).to_float_lossy())
    model = model_of(curves, cells, found, I)
    test = limit_test(model, seed=5, samples=3000)
    # p delta = d^2 I: 2 % in I are less in p, for delta grows with p.
    shift = predicted_half(curves[16], 1.02 * I) / predicted_half(curves[16], I) - 1.0
    assert 0.01 < shift < 0.02
    stated = test.power(shift, 0.05, seed=6)
    noticed = []
    for seed in range(100):
        wrong = model_of(curves, *synthetic(curves, "0.5", 1000, seed + 50, factor=1.02), I)
        noticed.append(limit_test(wrong, seed=seed, samples=199).p_value <= 0.05)
    assert stated > 0.2
    assert abs(np.mean(noticed) - stated) < 4 * math.sqrt(0.25 / 100)
    cells, found = synthetic(curves, "0.5", 30_000, seed=8)
    check = check_low_rank("0.5", cells, found, seed=2, samples=4000, factor=0.98 * I)
    settle([check], 0.01)
    assert check.verdict == "disagrees"
    assert check.power is not None
    assert check.power > 0.9


def model_of(
    curves: dict[int, TheoryCurve], cells: list[LowRankCell], found: list[int], I: float
) -> ShiftModel:
    """The fit of the check, without its simulated null."""
    data = []
    for dim, curve in curves.items():
        here = [(c, n) for c, n in zip(cells, found, strict=True) if c.dim == dim]
        data.append(
            DimensionCounts(
                theory_probit(curve, predicted_half(curve, I)),
                [c.facts for c, _ in here],
                [n for _, n in here],
                [c.instances for c, _ in here],
                (1 / dim,),
            )
        )
    return ShiftModel(data, BOX)


@pytest.mark.parametrize("factor", [1.05, 0.95, 1.1, 0.9, 1.2, 0.8, 1.5, 0.5])
def test_gross_errors_in_the_rank_factor_are_noticed(
    curves: dict[int, TheoryCurve], factor: float
) -> None:
    """300 instances a load, I wrong by 5 % and more: rejected at 3e-4 (400 a load for 5 %)."""
    n = 400 if abs(factor - 1.0) < 0.06 else 300
    cells, found = synthetic(curves, "0.5", n, seed=1, factor=factor)
    p_value = check_low_rank("0.5", cells, found, seed=2, samples=8000).p_value
    assert p_value is not None
    assert p_value < 3e-4


@pytest.mark.parametrize("share", [0, 1])
def test_finding_none_or_all_everywhere_is_noticed(
    curves: dict[int, TheoryCurve], share: int
) -> None:
    cells, _ = synthetic(curves, "0.5", 300, seed=1)
    check = check_low_rank("0.5", cells, [share * c.instances for c in cells], seed=2, samples=8000)
    assert check.p_value is not None
    assert check.p_value < 3e-4
    settle([check], 0.01)
    assert check.verdict == "disagrees"


def test_the_level_is_kept(curves: dict[int, TheoryCurve]) -> None:
    """200 honest data sets, 300 a load: 1 to 24 rejections at 0.05 (false alarm below 1e-4 at the
    nominal rate)."""
    I = float(rank_factor("0.5", 12).to_float_lossy())
    hits = 0
    for seed in range(200):
        model = model_of(curves, *synthetic(curves, "0.5", 300, seed + 1000), I)
        hits += limit_test(model, seed=seed, samples=199).p_value <= 0.05
    assert 1 <= hits <= 24


def test_rank_factor_against_singular_values_of_random_matrices() -> None:
    """I(k) = share of the squared singular values above rank k d: 24 Gaussian matrices, d = 160;
    five standard errors plus 1/d^2 for the finite size (false alarm below 1e-5); 2 % would show."""
    rng = np.random.default_rng(17)
    d = 160
    s = np.array(
        [np.linalg.svd(rng.standard_normal((d, d)), compute_uv=False) ** 2 for _ in range(24)]
    )
    for ratio in ("0.25", "0.5", "0.75"):
        share = s[:, : round(float(ratio) * d)].sum(1) / s.sum(1)
        I = float(rank_factor(ratio, 12).to_float_lossy())
        error = 5 * share.std(ddof=1) / math.sqrt(24) + 30 / d**2
        assert abs(share.mean() - I) < error < 0.01 * I


def test_refusals() -> None:
    with pytest.raises(InvalidInput, match="2 facts"):
        threshold_facts(1, 0.5)


@pytest.mark.long
@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("slope", [-0.6, 0.2])
def test_named_alternative_is_seen_at_the_sizes_of_the_paper_preset(
    number: int, slope: float
) -> None:
    """Counts of the theory with r_d = 1 + b/d: power at least 0.8 at level 3e-4, by 8000 draws."""
    from validate.report.sections_thresholds_low_rank import NOTICED, SIZES, cells

    sizes = SIZES["paper"]
    ratio = sizes.series[number][0]
    wanted = cells(sizes, number)
    I = float(rank_factor(ratio, 12).to_float_lossy())
    found = []
    for cell in wanted:
        curve = TheoryCurve.at(cell.dim)
        half = predicted_half(curve, I) * (1 + slope / cell.dim)
        found.append(
            round(cell.instances * float(curve.interpolated(cell.facts * curve.half / half)))
        )
    check = check_low_rank(ratio, wanted, found, seed=1, noticed=NOTICED[ratio], samples=8000)
    assert check.power_at is not None
    assert check.power_at(3e-4) >= 0.8
    assert check.settings["power_I_2_percent"] < 0.8
