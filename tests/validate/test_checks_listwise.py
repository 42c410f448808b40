"""Listwise recall: verdicts against a linear program, thresholds against planted ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize, special

from replica.errors import InvalidInput
from validate.checks.base import Check, settle
from validate.checks.extrapolation import (
    Curve,
    DimensionCounts,
    LimitTest,
    ShiftModel,
    limit_test,
)
from validate.checks.listwise import (
    ListCell,
    check_cover,
    list_counts,
    list_loads,
    list_threshold,
    list_units,
    measure_listwise,
)
from validate.checks.listwise_instances import (
    gaussian_rows,
    halfspace_verdict,
    tail_average_verdict,
    tail_margin_below,
)
from validate.checks.listwise_law import (
    law_curve,
    margin_volumes,
    measure_tail_projection,
    pooled_volumes,
    separable_probability,
)
from validate.checks.listwise_limit import (
    BOX,
    NOTICED,
    check_list_threshold,
    plot_list_thresholds,
)


def linear_program(scores: np.ndarray, count: int) -> bool:
    """Tail-average recall as a linear program with auxiliary variables, solved by HiGHS.

    count * mean of the best `count` = min_t count t + sum (s_rho - t)_+, so: find w, t_mu, e >= 0
    with count g_0 w - count t_mu - sum e_rho >= 1 and e_rho >= g_rho w - t_mu.
    """
    facts, columns, size = scores.shape
    rivals = columns - 1
    width = size + facts + facts * rivals
    rows, right = [], []
    for mu in range(facts):
        row = np.zeros(width)
        row[:size] = -count * scores[mu, 0]
        row[size + mu] = count
        row[size + facts + mu * rivals : size + facts + (mu + 1) * rivals] = 1.0
        rows.append(row)
        right.append(-1.0)
        for rho in range(rivals):
            row = np.zeros(width)
            row[:size] = scores[mu, 1 + rho]
            row[size + mu] = -1.0
            row[size + facts + mu * rivals + rho] = -1.0
            rows.append(row)
            right.append(0.0)
    bounds = [(None, None)] * (size + facts) + [(0, None)] * (facts * rivals)
    found = optimize.linprog(np.zeros(width), np.array(rows), right, bounds=bounds)
    assert found.status in (0, 2)
    return bool(found.status == 0)


@pytest.mark.parametrize(("competitors", "count"), [(6, 3), (8, 2), (5, 5)])
def test_tail_average_verdicts_equal_those_of_a_linear_program(
    competitors: int, count: int
) -> None:
    seen = set()
    for seed in range(10):
        scores = gaussian_rows((seed, 77), (7 if count < 5 else 14, competitors + 1, 8))
        verdict = tail_average_verdict(scores, count)
        assert (verdict == "separable") == linear_program(scores, count)
        assert verdict != "undecided"
        seen.add(verdict)
    assert seen == {"separable", "not_separable"}, "the loads straddle the threshold"


def test_one_averaged_competitor_is_top_one_recall() -> None:
    import torch

    from validate.decide import decide
    from validate.problems import GaussianProblem

    for seed in range(8):
        scores = gaussian_rows((seed, 5), (9, 9, 16))
        problem = GaussianProblem(torch.from_numpy(scores.reshape(9, 9, 4, 4)), seed=(seed,))
        assert tail_average_verdict(scores, 1) == decide(problem).verdict


def test_tail_margin_bound_is_a_bound_and_tight() -> None:
    """Against rational arithmetic."""
    scores = gaussian_rows((3,), (4, 7, 5))
    w = np.random.default_rng(0).standard_normal(5)
    exact = []
    for fact in scores.tolist():
        values = [
            sum(Fraction(g) * Fraction(x) for g, x in zip(row, w.tolist(), strict=True))
            for row in fact
        ]
        best = sorted(values[1:], reverse=True)[:3]
        exact.append(values[0] - sum(best, Fraction(0)) / 3)
    bound = tail_margin_below(scores, w, 3)
    assert Fraction(bound) <= min(exact)
    assert float(min(exact)) - bound < 1e-13


def test_halfspace_with_a_margin_in_the_plane() -> None:
    """Two unit rows at an angle a: the largest margin is cos(a/2); with three around 0 none."""
    for angle in (0.5, 1.5, 2.5):
        rows = np.array([[1.0, 0.0], [math.cos(angle), math.sin(angle)]])
        best = math.cos(angle / 2)
        assert halfspace_verdict(rows, best - 1e-4) == "separable"
        assert halfspace_verdict(rows, best + 1e-4) == "not_separable"
    around = np.array([[math.cos(a), math.sin(a)] for a in (0.0, 2.1, 4.2)])
    assert halfspace_verdict(around, 0.1) == "not_separable"


def test_thresholds_equal_the_reference_values() -> None:
    """Section 7 of the theory notes, and Gardner's formula written out."""
    assert list_threshold("tail", "0.5") == pytest.approx(0.6577127279442718, rel=1e-14)
    assert list_threshold("tail", "0.1") == pytest.approx(0.2457985867916568, rel=1e-14)
    k = 0.5
    density = math.exp(-k * k / 2) / math.sqrt(2 * math.pi)
    assert list_threshold("margin", "0.5") == pytest.approx(
        1 / ((1 + k * k) * special.ndtr(k) + k * density), rel=1e-13
    )
    assert list_threshold("cover", "") == 2.0


def test_units_reproduce_the_cells_and_refuse_strangers() -> None:
    cells = [ListCell("tail", "0.5", 12, p, 3) for p in (3, 30)]
    units = list_units(cells, seed=1, batch=2)
    counts = list_counts(cells, units, [unit.run() for unit in units])
    assert counts == [(3, 0), (0, 0)]
    with pytest.raises(InvalidInput, match="its own units"):
        list_counts(cells, units[:1], [units[0].run()])
    with pytest.raises(InvalidInput, match="criterion"):
        measure_listwise("best", "", 9, 4, 1, seed=0, first=0, count=1)
    with pytest.raises(InvalidInput, match="averaged"):
        tail_average_verdict(gaussian_rows((0,), (2, 4, 3)), 4)
    with pytest.raises(InvalidInput, match="margin"):
        halfspace_verdict(np.eye(2), -1.0)


# --- the checks -----------------------------------------------------------------------------------


def test_cover_against_the_count_of_dichotomies_and_certified_instances() -> None:
    """The exact law equals Cover's sum; 40 certified instances a load agree (level 0.01)."""
    cells = [ListCell("cover", "", 16, p, 40) for p in list_loads(2.0, 16)]
    units = list_units(cells, seed=2)
    check = check_cover(cells, list_counts(cells, units, [u.run() for u in units]), seed=1)
    for row in check.select("theory"):
        p = row["facts"]
        count = sum(math.comb(p - 1, i) for i in range(16))
        assert row["probability"] == pytest.approx(count / 2 ** (p - 1), rel=1e-12)
    assert check.p_value is not None
    assert check.p_value > 0.01


def test_cover_notices_a_wrong_threshold() -> None:
    """Counts of N = 67 called N = 64 (4.7 % off), 2000 a load."""
    cells = [ListCell("cover", "", 64, p, 2000) for p in list_loads(2.0, 64)]
    rng = np.random.default_rng(4)

    def rate(size: int, p: int) -> float:
        return float(Fraction(sum(math.comb(p - 1, i) for i in range(size)), 2 ** (p - 1)))

    wrong = [(int(rng.binomial(2000, rate(67, c.facts))), 0) for c in cells]
    right = [(int(rng.binomial(2000, rate(64, c.facts))), 0) for c in cells]
    checks = [check_cover(cells, counts, seed=1) for counts in (wrong, right)]
    settle(checks, 0.01)
    assert [c.verdict for c in checks] == ["disagrees", "agrees"]
    assert checks[0].power is not None
    assert checks[0].power > 0.9


SIZES = (20, 40, 90)


@pytest.fixture(scope="module")
def projected() -> dict[int, np.ndarray]:
    """v_k of the tail average r = 1/2 at M = 2 N."""
    return {n: pooled_volumes([measure_tail_projection(2 * n, n, 1, 0, 20_000)])[0] for n in SIZES}


CURVES: dict[int, Curve] = {}


def curve_of(size: int, law: np.ndarray) -> Curve:
    """`law_curve`, once for every N of `projected`."""
    if size not in CURVES:
        CURVES[size] = law_curve(law, size)
    return CURVES[size]


def synthetic(
    laws: Mapping[int, np.ndarray],
    n: int,
    seed: int,
    *,
    factor: float = 1.0,
    at: Mapping[int, float] | None = None,
    undecided: int = 0,
) -> tuple[list[ListCell], list[tuple[int, int]]]:
    """Counts of the law with 50 % points times `factor`, at single N times `at`."""
    gamma = list_threshold("tail", "0.5")
    cells, counts = [], []
    for size, law in laws.items():
        facts, probits = curve_of(size, law)
        curve = facts + math.log(factor * (at or {}).get(size, 1.0)), probits
        for p in list_loads(gamma, size):
            rate = special.ndtr(np.interp(math.log(p), *curve))
            s = int(np.random.default_rng((seed, size, p)).binomial(n, rate))
            cells.append(ListCell("tail", "0.5", size, p, n))
            counts.append((max(0, s - undecided), min(s, undecided)))
    return cells, counts


def p_value_of(check: Check) -> float:
    assert check.p_value is not None
    return check.p_value


def test_threshold_check_agrees_and_a_wrong_margin_is_noticed(
    projected: dict[int, np.ndarray],
) -> None:
    """kappa_r 4 % too large means a threshold 3.9 % too low; 400 instances a load."""
    cells, counts = synthetic(projected, 400, 1)
    right = check_list_threshold(cells, counts, seed=2, volumes=projected, samples=8000)
    settle([right], 0.01)
    assert right.verdict == "agrees"
    assert right.power is not None
    assert right.power > 0.8
    k = 1.04 * math.sqrt(2 / math.pi)
    density = math.exp(-k * k / 2) / math.sqrt(2 * math.pi)
    wrong = 1 / ((1 + k * k) * special.ndtr(k) + k * density)
    assert wrong == pytest.approx(0.961 * list_threshold("tail", "0.5"), rel=2e-3)
    planted = check_list_threshold(
        cells, counts, seed=2, volumes=projected, threshold=wrong, samples=8000
    )
    settle([planted], 0.01)
    assert planted.verdict == "disagrees"
    assert "1 %" in right.hypothesis
    assert plot_list_thresholds([right]).axes


@pytest.mark.parametrize("factor", [1 + NOTICED, 1 - NOTICED])
def test_planted_threshold_is_noticed_at_the_stated_power(
    projected: dict[int, np.ndarray], factor: float
) -> None:
    """60 data sets with a threshold 4 % off, 50 a load; noticed at 0.01 as often as stated, within
    four binomial standard errors (false alarm below 1e-4)."""
    cells, counts = synthetic(projected, 50, 5)
    model = check_list_threshold(cells, counts, seed=2, volumes=projected, samples=4000)
    off = factor - 1.0
    stated = limit_of(cells, counts, projected).power(off, 0.01, seed=3)
    runs = [
        limit_of(*synthetic(projected, 50, 100 + s, factor=factor), projected) for s in range(60)
    ]
    noticed = float(np.mean([run.p_value <= 0.01 for run in runs]))
    assert 0.3 < stated < 0.97
    assert abs(noticed - stated) < 4 * math.sqrt(0.25 / 60)
    assert model.power_at is not None
    assert model.power_at(0.01) <= stated + 0.1, "the check states the lesser of both signs"


def limit_of(
    cells: list[ListCell], counts: list[tuple[int, int]], laws: Mapping[int, np.ndarray]
) -> LimitTest:
    """The test inside the check, with a small null sample."""
    data = []
    for size, law in laws.items():
        here = [(c, s) for c, (s, _) in zip(cells, counts, strict=True) if c.parameters == size]
        data.append(
            DimensionCounts(
                curve_of(size, law),
                [c.facts for c, _ in here],
                [s for _, s in here],
                [c.instances for c, _ in here],
                (1 / size,),
            )
        )
    return limit_test(ShiftModel(data, BOX), seed=4, samples=499)


def test_the_level_is_kept(projected: dict[int, np.ndarray]) -> None:
    """200 honest data sets of 50 a load: 1 to 24 rejections at 0.05 (false alarm below 1e-4 at the
    nominal rate); none at all would be a box that hides errors."""
    hits = sum(
        limit_of(*synthetic(projected, 50, 1000 + s), projected).p_value <= 0.05 for s in range(200)
    )
    assert 1 <= hits <= 24


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("factor", [1.2, 0.8])
def test_a_gross_error_at_one_size_is_noticed(
    projected: dict[int, np.ndarray], size: int, factor: float
) -> None:
    """20 % at one N alone, 200 a load; a free b/N would absorb it at the smallest N."""
    cells, counts = synthetic(projected, 200, 6, at={size: factor})
    check = check_list_threshold(cells, counts, seed=2, volumes=projected, samples=8000)
    assert p_value_of(check) < 3e-4


@pytest.mark.parametrize("share", [0, 1])
def test_none_or_all_separable_is_noticed(projected: dict[int, np.ndarray], share: int) -> None:
    cells, _ = synthetic(projected, 100, 6)
    counts = [(share * c.instances, 0) for c in cells]
    check = check_list_threshold(cells, counts, seed=2, volumes=projected, samples=8000)
    settle([check], 0.01)
    assert check.verdict == "disagrees"
    one_size = [
        (share * c.instances, 0) if c.parameters == 20 else n
        for c, n in zip(*synthetic(projected, 100, 6), strict=True)
    ]
    check = check_list_threshold(cells, one_size, seed=2, volumes=projected, samples=8000)
    assert p_value_of(check) < 3e-4


def test_undecided_instances_never_help_to_reject(projected: dict[int, np.ndarray]) -> None:
    cells, counts = synthetic(projected, 300, 5, undecided=9)
    kept = check_list_threshold(
        *synthetic(projected, 300, 5), seed=2, volumes=projected, samples=2000
    )
    check = check_list_threshold(cells, counts, seed=2, volumes=projected, samples=2000)
    assert check.undecided == sum(u for _, u in counts) > 0
    assert p_value_of(check) >= p_value_of(kept)
    mixed = [ListCell("margin", "0.5", 20, c.facts, 300) for c in cells[:3]]
    with pytest.raises(InvalidInput, match="one kind"):
        check_list_threshold([*mixed, *cells[3:]], counts, seed=0, volumes=projected)
    with pytest.raises(InvalidInput, match="N = 20 are missing"):
        check_list_threshold(cells, counts, seed=0)


def test_perfect_counts_with_many_undecided_pass_and_wrong_ones_fail() -> None:
    """A fifth undecided splits the middle; 15 % too few facts with 1 % undecided is refused."""
    law = margin_volumes(0.5)
    cells = [
        ListCell("margin", "0.5", n, p, 200)
        for n in (16, 36, 100)
        for p in list_loads(list_threshold("margin", "0.5"), n)
    ]
    rates = [separable_probability(law, c.facts, c.parameters) for c in cells]
    check = check_list_threshold(cells, [(round(160 * r), 40) for r in rates], seed=0, samples=1000)
    assert p_value_of(check) > 0.1
    few = [
        (round(198 * separable_probability(law, round(c.facts / 0.85), c.parameters)), 2)
        for c in cells
    ]
    assert p_value_of(check_list_threshold(cells, few, seed=0, samples=8000)) < 3e-4
    cover = [ListCell("cover", "", 64, p, 400) for p in list_loads(2.0, 64)]
    for spare, ratio, passes in ((80, 1.0, True), (4, 0.6, False)):
        counts = [(round((400 - spare) * r * ratio), spare) for r in (0.945, 0.5, 0.09)]
        p_value = p_value_of(check_cover(cover, counts, seed=1, samples=4000))
        assert (p_value > 0.1) == passes
        assert passes or p_value < 1e-3
