"""Listwise recall: verdicts against a linear program, thresholds against planted ones."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize, special

from replica.errors import InvalidInput
from validate.checks.base import settle
from validate.checks.listwise import (
    ListCell,
    check_cover,
    check_list_threshold,
    list_counts,
    list_loads,
    list_threshold,
    list_units,
    measure_listwise,
    plot_list_thresholds,
)
from validate.checks.listwise_instances import (
    gaussian_rows,
    halfspace_verdict,
    tail_average_verdict,
    tail_margin_below,
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


def synthetic(
    factor: float, n: int, seed: int, *, undecided: int = 0
) -> tuple[list[ListCell], list[tuple[int, int]]]:
    """Counts with 50 % points `factor` (1 - 0.3/N) gamma N."""
    gamma = list_threshold("tail", "0.5")
    cells, counts = [], []
    for size in (20, 40, 90):
        for p in list_loads(gamma, size):
            half = factor * (1 - 0.3 / size) * gamma * size
            rate = special.ndtr(-math.log(p / half) * size**0.5 / 1.2)
            s = int(np.random.default_rng((seed, size, p)).binomial(n, rate))
            cells.append(ListCell("tail", "0.5", size, p, n))
            counts.append((max(0, s - undecided), min(s, undecided)))
    return cells, counts


def test_threshold_check_agrees_and_a_wrong_margin_is_noticed() -> None:
    """kappa_r 4 % too large means a threshold 3.9 % too low; 20 000 instances a load."""
    right = check_list_threshold(*synthetic(1.0, 500, 1), seed=2, samples=4000)
    settle([right], 0.01)
    assert right.verdict == "agrees"
    k = 1.04 * special.ndtri(0.5) + 1.04 * math.sqrt(2 / math.pi)
    density = math.exp(-k * k / 2) / math.sqrt(2 * math.pi)
    wrong = 1 / ((1 + k * k) * special.ndtr(k) + k * density)
    assert wrong == pytest.approx(0.961 * list_threshold("tail", "0.5"), rel=2e-3)
    planted = check_list_threshold(
        *synthetic(1.0, 20_000, 1), seed=2, samples=4000, threshold=wrong
    )
    settle([planted], 0.01)
    assert planted.verdict == "disagrees"
    assert planted.power is not None
    assert planted.power > 0.9
    assert plot_list_thresholds([right]).axes


def test_planted_threshold_is_noticed_at_the_stated_power() -> None:
    """40 data sets with a threshold 4 % too high, 300 a load; noticed at 0.05 as often as stated,
    within four binomial standard errors (false alarm below 1e-4)."""
    stated = check_list_threshold(*synthetic(1.0, 300, 5), seed=2, samples=2000).power_at
    assert stated is not None
    expected = stated(0.05)
    runs = [
        check_list_threshold(*synthetic(1.04, 300, 100 + s), seed=2, samples=500) for s in range(40)
    ]
    noticed = np.mean([r.p_value is not None and r.p_value <= 0.05 for r in runs])
    assert 0.3 < expected < 0.999
    assert abs(noticed - expected) < 4 * math.sqrt(0.25 / 40)


def test_undecided_instances_never_help_to_reject() -> None:
    cells, counts = synthetic(1.0, 300, 5, undecided=9)
    kept = check_list_threshold(*synthetic(1.0, 300, 5), seed=2, samples=2000)
    check = check_list_threshold(cells, counts, seed=2, samples=2000)
    assert check.undecided == sum(u for _, u in counts) > 0
    assert check.p_value is not None
    assert kept.p_value is not None
    assert check.p_value >= kept.p_value
    mixed = [ListCell("margin", "0.5", 20, c.facts, 300) for c in cells[:3]]
    with pytest.raises(InvalidInput, match="one kind"):
        check_list_threshold([*mixed, *cells[3:]], counts, seed=0)


@pytest.mark.parametrize("sizes", [(16, 36, 100)])
def test_perfect_counts_with_many_undecided_pass_and_wrong_ones_fail(
    sizes: tuple[int, ...],
) -> None:
    """A fifth undecided splits the middle; 15 % too few facts with 1 % undecided is refused."""
    cells = [
        ListCell("margin", "0.5", n, p, 200)
        for n in sizes
        for p in list_loads(list_threshold("margin", "0.5"), n)
    ]
    check = check_list_threshold(
        cells, [(s, 40) for _ in sizes for s in (145, 80, 22)], seed=0, samples=1000
    )
    assert check.p_value is not None
    assert check.p_value > 0.1
    cover = [ListCell("cover", "", 64, p, 400) for p in list_loads(2.0, 64)]
    rates = (0.945, 0.5, 0.09)
    for few, ratio, passes in ((80, 1.0, True), (4, 0.6, False)):
        counts = [(round((400 - few) * r * ratio), few) for r in rates]
        p_value = check_cover(cover, counts, seed=1, samples=4000).p_value
        assert p_value is not None
        assert (p_value > 0.1) == passes
        assert passes or p_value < 1e-3
