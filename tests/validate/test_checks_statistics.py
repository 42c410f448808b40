"""The statistics of the checks: coverage, error rates and power, each by an independent route."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from replica.errors import InvalidInput
from validate.checks.curves import (
    curve_power,
    curve_test,
    half_point,
    ratio_interval,
    score_statistic,
)
from validate.checks.statistics import (
    clopper_pearson,
    holm,
    mean_interval,
    monte_carlo_p_value,
)

TARGETS = np.array([0.97, 0.85, 0.65, 0.4, 0.2, 0.05])


def binomial_tail(n: int, k: int, p: float) -> float:
    """P(X >= k), summed term by term."""
    return math.fsum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1))


@given(st.integers(1, 40), st.data())
def test_clopper_pearson_limits_solve_the_tail_equations(n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, n))
    low, high = clopper_pearson(k, n)
    if k > 0:
        assert binomial_tail(n, k, low) == pytest.approx(0.025, rel=1e-8)
    if k < n:
        assert 1 - binomial_tail(n, k + 1, high) == pytest.approx(0.025, rel=1e-6)
    assert low <= k / n <= high


@pytest.mark.parametrize("p", [0.01, 0.2, 0.5, 0.93])
def test_clopper_pearson_covers_exactly_often_enough(p: float) -> None:
    """Coverage summed exactly over the binomial law: no simulation, no false alarms."""
    n = 30
    coverage = sum(
        math.comb(n, k) * p**k * (1 - p) ** (n - k)
        for k in range(n + 1)
        if clopper_pearson(k, n)[0] <= p <= clopper_pearson(k, n)[1]
    )
    assert 0.95 <= coverage <= 1.0


def test_clopper_pearson_refuses_impossible_counts() -> None:
    for successes, trials in [(1, 0), (-1, 3), (4, 3)]:
        with pytest.raises(InvalidInput):
            clopper_pearson(successes, trials)
    with pytest.raises(InvalidInput):
        clopper_pearson(1, 2, confidence=1.0)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0.001, 0.5))
def test_holm_rejects_what_the_step_down_rule_rejects(ps: list[float], level: float) -> None:
    """Against the original formulation: walk up the sorted list until one p exceeds level/(m-i)."""
    rejected: set[int] = set()
    for step, index in enumerate(sorted(range(len(ps)), key=lambda i: ps[i])):
        if ps[index] * (len(ps) - step) > level:
            break
        rejected.add(index)
    assert {i for i, p in enumerate(holm(ps)) if p <= level} == rejected


def test_holm_controls_the_family_wise_error_under_dependence() -> None:
    """20000 families of 8 true hypotheses, correlated: error rate below 5 %.

    The Monte Carlo error is 0.0016 at most, so a rate of exactly 5 % would fail with chance 1e-9.
    """
    rng = np.random.default_rng(5)
    common = rng.standard_normal((20_000, 1))
    z = (common + rng.standard_normal((20_000, 8))) / math.sqrt(2)
    p = 2 * special.ndtr(-np.abs(z))
    rate = np.mean([min(holm(list(row))) < 0.05 for row in p])
    assert 0.02 < rate < 0.05 + 6 * 0.0016


def test_holm_refuses_what_is_no_probability() -> None:
    with pytest.raises(InvalidInput):
        holm([0.2, 1.2])
    assert holm([]) == []


def test_monte_carlo_p_value_counts_ties_against_rejection() -> None:
    assert monte_carlo_p_value(1.0, [1.0 + 1e-15, 0.0, 0.5]) == 0.5
    with pytest.raises(InvalidInput):
        monte_carlo_p_value(1.0, [])


def test_mean_interval_covers() -> None:
    """2000 samples of size 8: coverage 0.95 within 4 standard errors (false alarm 6e-5)."""
    rng = np.random.default_rng(11)
    hits = [
        low <= 3.0 <= high
        for _, low, high in (mean_interval(rng.normal(3.0, 2.0, 8)) for _ in range(2000))
    ]
    assert abs(np.mean(hits) - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 2000)
    with pytest.raises(InvalidInput):
        mean_interval([1.0])


def test_score_statistic_is_a_squared_z_score_at_one_load() -> None:
    z = (60 - 100 * 0.5) / math.sqrt(100 * 0.25)
    assert score_statistic([60], [100], [0.5]) == pytest.approx(z * z)


def test_score_statistic_is_two_degrees_of_freedom_at_many_instances() -> None:
    """Mean 2 and the 95 % point of chi^2_2, with 20000 draws; bands of five standard errors."""
    n = np.full(6, 2000)
    draws = np.random.default_rng(3).binomial(n, TARGETS, (20_000, 6))
    s = score_statistic(draws, n, TARGETS)
    assert abs(s.mean() - 2.0) < 5 * 2.0 / math.sqrt(20_000)
    assert abs(np.mean(s > -2 * math.log(0.05)) - 0.05) < 5 * math.sqrt(0.05 * 0.95 / 20_000)


def test_curve_test_holds_its_level_and_has_the_stated_power() -> None:
    """400 repetitions each; bands of four binomial standard errors (false alarm below 1e-4)."""
    n, shifted = np.full(6, 50), special.ndtr(special.ndtri(TARGETS) - 0.3)
    rng = np.random.default_rng(17)
    reference = curve_test(np.round(n * TARGETS).astype(int), n, TARGETS, seed=1)
    stated = curve_power(reference, n, TARGETS, shifted, level=0.05, seed=2)
    for truth, expected in [(TARGETS, 0.05), (shifted, stated)]:
        rate = np.mean(
            [
                curve_test(rng.binomial(n, truth), n, TARGETS, seed=4, samples=2000).p_value <= 0.05
                for _ in range(400)
            ]
        )
        assert abs(rate - expected) < 4 * math.sqrt(expected * (1 - expected) / 400) + 0.01
    assert 0.7 < stated < 0.99


def test_curve_test_notices_a_wrong_width_at_the_right_threshold() -> None:
    n = np.full(6, 200)
    steep = special.ndtr(1.6 * special.ndtri(TARGETS))
    counts = np.random.default_rng(8).binomial(n, steep)
    assert curve_test(counts, n, TARGETS, seed=0).p_value < 1e-3


def test_curve_test_refuses_impossible_input() -> None:
    good = ([1, 0], [2, 2], [0.5, 0.4])
    for position, bad in [(0, [3, 0]), (1, [0, 2]), (2, [1.0, 0.4]), (2, [0.5])]:
        arguments = list(good)
        arguments[position] = bad
        with pytest.raises(InvalidInput):
            curve_test(*arguments, seed=0)


def test_half_point_interval_covers_and_is_unbiased() -> None:
    """150 data sets with c = 87, w = 4: coverage and bias within four standard errors."""
    x = np.array([78, 82, 85, 88, 91, 95])
    truth, n = special.ndtr((87.0 - x) / 4.0), np.full(6, 40)
    rng = np.random.default_rng(23)
    fits = [half_point(x, rng.binomial(n, truth), n) for _ in range(150)]
    coverage = np.mean([f.low <= 87.0 <= f.high for f in fits])
    assert abs(coverage - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 150)
    values = np.array([f.value for f in fits])
    assert abs(values.mean() - 87.0) < 4 * values.std() / math.sqrt(150)


def test_half_point_interval_is_a_likelihood_interval() -> None:
    """At both ends the likelihood, maximised over the width on a grid, has dropped by 1.92."""
    x, s, n = np.array([80, 85, 90, 95]), np.array([47, 30, 14, 2]), np.full(4, 50)
    fit = half_point(x, s, n)

    def best(c: float) -> float:
        w = np.exp(np.linspace(-1, 4, 4001))[:, None]
        u = (c - x) / w
        return float((s * special.log_ndtr(u) + (n - s) * special.log_ndtr(-u)).sum(-1).max())

    for end in (fit.low, fit.high):
        assert best(fit.value) - best(end) == pytest.approx(1.920729, abs=2e-3)


def test_half_point_refuses_what_does_not_determine_it() -> None:
    with pytest.raises(InvalidInput, match="50 % point"):
        half_point([1, 2, 3], [10, 9, 8], [10, 10, 10])


def test_ratio_interval_covers_the_true_ratio() -> None:
    """100 pairs of curves with ratio 1.03; coverage within four standard errors."""
    rng = np.random.default_rng(31)
    x, n = np.array([78, 82, 85, 88, 91, 95]), np.full(6, 40)
    hits = []
    for _ in range(100):
        a, b = (
            half_point(x, rng.binomial(n, special.ndtr((c - x) / 4.0)), n) for c in (88.58, 86.0)
        )
        low, high = ratio_interval(a, b)[1:]
        hits.append(low <= 1.03 <= high)
    assert abs(np.mean(hits) - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 100)
