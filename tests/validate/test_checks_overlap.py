"""The overlap check and the extrapolation behind it: honest on true data, awake to wrong laws."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from replica.errors import InvalidInput
from validate.checks.base import settle
from validate.checks.finite_size import (
    Cell,
    cell_of,
    extrapolate,
    squares_test,
    summarise,
    wald_test,
)
from validate.checks.overlap import (
    OverlapCell,
    check_overlap,
    limit_overlap,
    measure_overlaps,
    overlap_cell,
    plot_overlap,
    predicted_overlap,
)
from validate.checks.statistics import generator

LEVEL = 3e-4


# --- extrapolation ----------------------------------------------------------------------------


def synthetic_cells(seed: int, truth: np.ndarray[Any, Any], slope: float) -> list[Cell]:
    """Correlated skewed instances (chi^2 minus mean) with mean truth + slope/N."""
    k = truth.size
    mixing = np.eye(k) + 0.5
    cells = []
    for size, count in ((40, 60), (80, 50), (160, 40)):
        rng = generator(seed, size)
        noise = (rng.chisquare(8, (count, k)) - 8) / 4 @ mixing / math.sqrt(size)
        cells.append(cell_of(size, [summarise(truth + slope / size + noise)]))
    return cells


def test_extrapolation_equals_generalised_least_squares() -> None:
    """Against a direct solution of the weighted normal equations row by row."""
    cells = synthetic_cells(3, np.array([1.0, -2.0]), 5.0)
    limit = extrapolate(cells)
    x = np.concatenate([np.full(c.count, 1.0 / c.size) for c in cells])
    w = np.concatenate([np.full(c.count, c.size) for c in cells])
    y = np.concatenate([np.full(c.count, c.mean[0]) for c in cells])
    fit = np.polyfit(x, y, 1, w=np.sqrt(w))
    assert limit.value[0] == pytest.approx(fit[1], rel=1e-9)
    assert limit.slope[0] == pytest.approx(fit[0], rel=1e-9)
    assert limit.coefficients.sum() == pytest.approx(1.0)


def test_wald_test_is_honest_in_the_tail_and_powerful_as_stated() -> None:
    """1200 skewed data sets: rejections at 1 % and 0.1 % (five standard errors above the nominal
    number at most, false alarm 3e-7), and under a shift as often as stated."""
    truth, runs = np.array([0.3, 0.1, -0.2, 1.0]), 1200
    limits = [extrapolate(synthetic_cells(s, truth, 3.0)) for s in range(runs)]
    for level in (1e-2, 1e-3):
        rejected = sum(_difference(limit, truth) < level for limit in limits)
        assert rejected <= runs * level + 5 * math.sqrt(runs * level)
    shift = np.array([0.06, 0.0, -0.03, 0.0])
    noticed = np.mean([_difference(limit, truth + shift) < 1e-2 for limit in limits])
    covariance = np.mean([limit.covariance for limit in limits], axis=0)
    test = wald_test(limits[0])
    stated = test.power(float(shift @ np.linalg.solve(covariance, shift)), 1e-2)
    assert 0.2 < stated < 0.995
    assert abs(noticed - stated) < 0.05


def _difference(limit: Any, hypothesis: np.ndarray[Any, Any]) -> float:
    d = limit.value - hypothesis
    statistic = float(d @ np.linalg.solve(limit.covariance, d))
    k, nu = d.size, limit.degrees
    return float(stats.f.sf(statistic * (nu - k + 1) / (nu * k), k, nu - k + 1))


def test_squares_test_with_one_statistic_is_students() -> None:
    """Two-sided Student p-value; 200000 draws, five standard errors (false alarm 6e-7)."""
    for t in (0.5, 2.0, 3.5):
        p = squares_test([t], [0.0], [11], seed=[1]).p_value
        exact = 2 * float(stats.t.sf(t, 11))
        assert abs(p - exact) < 5 * math.sqrt(exact / 200_000) + 1e-5
    strong = squares_test([0.0], [3.0], [11], seed=[2])
    critical = stats.t.isf(0.005, 11)
    exact = stats.t.sf(critical - 3.0, 11) + stats.t.cdf(-critical - 3.0, 11)
    assert strong.power(0.01) == pytest.approx(exact, abs=0.01)


def test_extrapolation_refuses_what_has_no_limit() -> None:
    cells = synthetic_cells(0, np.zeros(2), 0.0)
    with pytest.raises(InvalidInput, match="at least 2 sizes"):
        extrapolate([cells[0], cells[0]])
    with pytest.raises(InvalidInput, match="degrees of freedom"):
        wald_test(extrapolate([Cell(n, 4, np.zeros(5), np.eye(5)) for n in (10, 20)]))
    with pytest.raises(InvalidInput, match="at least 2"):
        cell_of(4, [summarise([[1.0]])])


# --- the overlap ------------------------------------------------------------------------------

LOADS = {0.125: (0.31, 3e-4), 0.25: (0.58, 4e-4)}


def synthetic_overlaps(seed: int, truth: dict[float, float]) -> list[OverlapCell]:
    """Overlaps of instances, normal about q + 0.3/N, at two sizes and two loads."""
    cells = []
    for number, (load, q) in enumerate(truth.items()):
        for dim, count in ((8, 30), (12, 20)):
            values = q + 0.3 / dim**2 + 0.3 / dim * generator(seed, number, dim).normal(size=count)
            cell = cell_of(dim**2, [summarise(values[:, None])])
            facts = round(load * dim**2)
            cells.append(OverlapCell(dim, facts, 9, cell, 0, (), 1.01, 300.0, 0.002))
    return cells


def test_saddle_point_passes_and_two_alpha_is_rejected() -> None:
    honest = check_overlap(
        synthetic_overlaps(1, {g: q for g, (q, _) in LOADS.items()}), seed=0, law=LOADS
    )
    settle([honest], 0.01)
    assert honest.verdict == "agrees"
    assert honest.power_at is not None
    assert honest.power_at(LEVEL) == pytest.approx(1.0)
    planted = check_overlap(
        synthetic_overlaps(1, {g: q for g, (q, _) in LOADS.items()}),
        seed=0,
        law={g: (limit_overlap(g, 9), 0.0) for g in LOADS},
    )
    settle([planted], 0.01)
    assert planted.verdict == "disagrees"


def test_p_values_of_the_overlap_check_are_honest() -> None:
    """200 data sets: the share below 5 % within four standard errors (false alarm 6e-5)."""
    truth = {g: q for g, (q, _) in LOADS.items()}
    exact = {g: (q, 0.0) for g, q in truth.items()}
    small = [
        check_overlap(synthetic_overlaps(s, truth), seed=0, law=exact, nulls=8000).p_value
        for s in range(200)
    ]
    low = np.mean([p is not None and p < 0.05 for p in small])
    assert abs(low - 0.05) < 4 * math.sqrt(0.05 * 0.95 / 200)


def test_a_wrong_law_is_noticed_as_often_as_stated() -> None:
    """q off by 0.05 at one load, 200 data sets at level 1 %; normal theory of the stated power."""
    truth = {g: q for g, (q, _) in LOADS.items()}
    wrong = {0.125: (truth[0.125], 0.0), 0.25: (truth[0.25] + 0.05, 0.0)}
    checks = [
        check_overlap(synthetic_overlaps(s, truth), seed=0, law=wrong, nulls=8000)
        for s in range(200)
    ]
    noticed = np.mean([c.p_value is not None and c.p_value < 0.01 for c in checks])
    errors = [
        (row["high"] - row["low"]) / 2 / stats.t.ppf(0.975, 40)
        for c in checks
        for row in c.select("simulation", dim="infinity", load=0.25)
    ]
    shift = 0.05 / float(np.mean(errors))
    stated = squares_test([0.0, 0.0], [0.0, shift], [40, 40], seed=[3]).power(0.01)
    assert 0.05 < stated < 0.95
    assert abs(noticed - stated) < 4 * math.sqrt(stated * (1 - stated) / 200) + 0.03


def test_sampled_overlaps_agree_with_the_saddle_point() -> None:
    """Real instances, M = 9, d = 4 and 8: p-value above 3e-4; 2 alpha is rejected at 1 %."""
    cells = []
    for dim, facts, count in ((4, 4, 8), (8, 16, 6)):
        answer = measure_overlaps(dim, facts, 9, count, [3, dim], chains=3, samples=12, warmup=4)
        assert answer["missed"] == 0
        assert answer["effective"] > 5
        cells.append(overlap_cell(dim, facts, 9, [answer]))
    check = check_overlap(cells, seed=0, accuracy=2e-3)
    assert check.p_value is not None
    assert check.p_value > LEVEL
    q, _ = predicted_overlap(0.25, 9, 2e-3)
    assert q == pytest.approx(0.583, abs=0.01)
    planted = check_overlap(cells, seed=0, law={0.25: (limit_overlap(0.25, 9), 0.0)})
    assert planted.p_value is not None
    assert planted.p_value < 0.01
    figure = plot_overlap(check)
    assert len(figure.axes[0].lines) >= 2


def test_unconverged_chains_are_kept_and_shown() -> None:
    cells = synthetic_overlaps(4, {g: q for g, (q, _) in LOADS.items()})
    first = cells[0]
    cells[0] = OverlapCell(
        first.dim, first.facts, 9, first.cell, 1, ((1.2, 9.0, 0.4),), 1.2, 9.0, 0.01
    )
    check = check_overlap(cells, seed=0, law=LOADS)
    row = check.select("simulation", dim=first.dim, load=first.load)[0]
    assert row["instances"] == first.cell.count
    assert (row["unconverged"], row["unconverged overlaps"], row["missed"]) == (1, [0.4], 1)
    assert "1 of 100 instances" in check.remark
    assert check.undecided == 1


def test_answers_depend_on_the_seed_alone() -> None:
    arguments: dict[str, Any] = {"chains": 3, "samples": 8, "warmup": 2}
    a, b = (measure_overlaps(4, 3, 5, 2, [7], **arguments) for _ in range(2))
    c = measure_overlaps(4, 3, 5, 2, [8], **arguments)
    assert a == b
    assert a["sum"] != c["sum"]


def test_overlap_refuses_hopeless_and_mixed_cells() -> None:
    with pytest.raises(InvalidInput, match="take fewer facts"):
        measure_overlaps(2, 40, 5, 2, [0], chains=3, samples=8, warmup=2)
    cells = synthetic_overlaps(4, {0.125: 0.3})
    other = OverlapCell(8, 8, 5, cells[0].cell, 0, (), 1.0, 100.0, 0.01)
    with pytest.raises(InvalidInput, match="one M"):
        check_overlap([*cells, other], seed=0, law=LOADS)
    with pytest.raises(InvalidInput, match="2 sizes"):
        check_overlap(cells[:1], seed=0, law=LOADS)
