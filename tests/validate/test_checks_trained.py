"""Checks of trained memories: honest data pass, a planted error fails at the stated power."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from replica.errors import InvalidInput
from validate.checks.base import Check, settle
from validate.checks.trained_curve import rule_recall
from validate.checks.trained_limit import Limit, limit_test
from validate.checks.trained_measure import (
    QUANTITIES,
    Sample,
    Setting,
    Theory,
    measure_trained,
    predict_trained,
)
from validate.checks.trained_memory import check_trained_memory
from validate.checks.trained_universality import (
    Series,
    check_trained_universality,
    fit_limit,
    fit_power,
)
from validate.problems import make_problem
from validate.report import sections_trained
from validate.report.sections_trained import Sizes, build, units
from validate.solvers.hebbian import hebbian
from validate.solvers.pseudo_inverse import pseudo_inverse

COVARIANCE = np.array([[0.02, -0.02, 0.02], [-0.02, 0.04, -0.03], [0.02, -0.03, 0.09]])
TRUTH = np.array([0.5, 1.5, 3.0])


def synthetic(
    rng: np.random.Generator,
    *,
    limit: np.ndarray = TRUTH,
    slope: tuple[float, float, float] = (0.3, -2.0, 5.0),
    sizes: tuple[tuple[int, int], ...] = ((128, 60), (256, 40)),
    stderr: float = 0.0,
) -> Limit:
    """Instances drawn from Gaussian laws of covariance C 128/N around limit + slope/N."""
    samples = []
    for parameters, count in sizes:
        setting = Setting("gaussian", parameters // 8, 8, parameters // 4, 9, 0.1)
        mean = limit + np.array(slope) / parameters
        values = rng.multivariate_normal(mean, COVARIANCE * 128 / parameters, count)
        samples.append(Sample(setting, values))
    return Limit(samples, Theory(TRUTH, np.full(3, stderr)))


def test_intercept_and_slope_are_those_of_the_data() -> None:
    limit = synthetic(np.random.default_rng(0), sizes=((64, 40_000), (128, 40_000), (512, 40_000)))
    found, slope, spread = limit.fit
    errors = np.sqrt(np.diag(spread))
    # Five standard errors: a false alarm in a million.
    assert (np.abs(found - TRUTH) < 5 * errors).all()
    assert slope == pytest.approx([0.3, -2.0, 5.0], abs=0.5)
    assert errors.max() < 0.005


def test_fit_is_that_of_a_plain_line_where_two_sizes_leave_no_choice() -> None:
    limit = synthetic(np.random.default_rng(5))
    small, large = (s.mean for s in limit.samples)
    found, slope, spread = limit.fit
    assert found == pytest.approx(2 * large - small)
    assert slope == pytest.approx(256 * (small - large))
    by_hand = [
        4 * s.covariance / s.size if n else s.covariance / s.size
        for n, s in enumerate(limit.samples)
    ]
    assert spread == pytest.approx(by_hand[0] + by_hand[1])
    assert limit.misfit[1] == 0
    assert limit.misfit[0] == pytest.approx(0.0, abs=1e-12)


def test_p_values_are_uniform_under_the_hypothesis() -> None:
    rng = np.random.default_rng(11)
    values = [
        limit_test([synthetic(rng, sizes=((128, 12), (256, 9)))], seed=k, draws=600).p_value
        for k in range(150)
    ]
    # Kolmogorov-Smirnov at 1e-4: false alarms of this test 1 in 10 000.
    assert stats.kstest(values, "uniform").pvalue > 1e-4


def test_theory_errors_of_any_correlation_keep_the_level() -> None:
    rng = np.random.default_rng(12)
    small = []
    for k in range(100):
        limit = synthetic(rng, sizes=((128, 60), (256, 60)), stderr=0.05)
        together = 0.05 * rng.standard_normal()  # errors fully correlated
        moved = replace(limit, theory=Theory(TRUTH + together, limit.theory.stderr))
        small.append(limit_test([moved], seed=k, draws=600).p_value < 0.05)
    # P(more than 15 of 100 at rate 0.05) is 4e-5.
    assert sum(small) <= 15


def test_power_is_the_share_of_rejections() -> None:
    rng = np.random.default_rng(13)
    shift = np.array([0.0, 0.0, 0.2])
    reference = limit_test([synthetic(rng)], seed=0, draws=5000)
    stated = reference.power(shift / TRUTH, 0.01)
    runs = 80
    rejected = sum(
        limit_test([synthetic(rng, limit=TRUTH + shift)], seed=k, draws=700).p_value <= 0.01
        for k in range(runs)
    )
    assert 0.2 < stated < 0.95
    # `stated` rests on the covariance of one data set, hence the margin of 0.2.
    assert abs(rejected / runs - stated) < 0.2 + 4 * math.sqrt(0.25 / runs)


def test_limit_refuses_what_it_cannot_use() -> None:
    rng = np.random.default_rng(0)
    good = synthetic(rng)
    with pytest.raises(InvalidInput, match="two sizes"):
        Limit(good.samples[:1], good.theory)
    other = replace(good.samples[1], setting=replace(good.samples[1].setting, ridge=0.2))
    with pytest.raises(InvalidInput, match="only N may vary"):
        Limit([good.samples[0], other], good.theory)
    flat = good.samples[0].values.copy()
    flat[:, 0] = 1.0
    with pytest.raises(InvalidInput, match="neither full nor nil"):
        Limit([replace(good.samples[0], values=flat), good.samples[1]], good.theory)
    with pytest.raises(InvalidInput, match="no samples"):
        check_trained_memory([], seed=0)


REAL = (((16, 8), 32, 60), ((16, 16), 64, 40))


@pytest.fixture(scope="module")
def trained() -> Limit:
    """Trained memories at p/N = 1/4, M = 15, ridge 0.1, and their theory."""
    samples = []
    for (dim, dim_out), facts, count in REAL:
        setting = Setting("gaussian", dim, dim_out, facts, 15, 0.1)
        answer = measure_trained("gaussian", dim, dim_out, facts, 15, 0.1, 3, 0, count)
        samples.append(Sample.from_answers(setting, [answer]))
    return Limit(samples, Theory.from_answer(predict_trained(256, 64, 15, 0.1, 0.002, 0)))


def verdict(check: Check) -> str:
    settle([check], 3e-4)
    assert check.verdict is not None
    return check.verdict


def test_theory_of_trained_memories_passes(trained: Limit) -> None:
    check = check_trained_memory([trained], seed=0)
    assert verdict(check) == "agrees"
    assert check.power is not None
    assert check.power > 0.3  # against a norm 3 % larger, with these few memories
    assert check.undecided == 0
    assert max(s.ambiguous for s in trained.samples) < 0.05


@pytest.mark.parametrize("shift", [0.06, -0.06])
def test_planted_norm_is_found(trained: Limit, shift: float) -> None:
    column = QUANTITIES.index("norm_squared")
    wrong = np.zeros(3)
    wrong[column] = shift
    assert limit_test([trained], seed=0).power(wrong, 3e-4) > 0.97
    value = trained.theory.value * (1.0 + wrong)
    planted = replace(trained, theory=Theory(value, trained.theory.stderr))
    assert verdict(check_trained_memory([planted], seed=0)) == "disagrees"


def test_theory_of_another_ridge_is_found(trained: Limit) -> None:
    # A ridge a tenth too large moves all three quantities.
    wrong = Theory.from_answer(predict_trained(256, 64, 15, 0.11, 0.002, 0))
    assert verdict(check_trained_memory([replace(trained, theory=wrong)], seed=0)) == "disagrees"


def test_line_and_power_fits() -> None:
    dims = np.array([12.0, 16.0, 24.0, 32.0])
    errors = np.full(4, 0.01)
    rng = np.random.default_rng(4)
    inside = [0, 0]
    for _ in range(200):
        noise = errors * rng.standard_normal(4)
        low, high = fit_limit(dims, 0.2 + 1.5 / dims + noise, errors, (1.0,)).interval
        inside[0] += low <= 0.2 <= high
        power = fit_power(dims, 2.0 * dims**-0.7 + noise, errors)
        inside[1] += power.low <= 0.7 <= power.high
    # Coverage 95 %: fewer than 176 of 200 has probability 1e-4.
    assert min(inside) >= 176
    exact = fit_limit(dims, 0.2 + 1.5 / dims, errors, (1.0,))
    assert exact.limit == pytest.approx(0.2)
    assert exact.slopes == pytest.approx((1.5,))
    both = fit_limit(dims, 0.2 + 1.5 / dims - 3.0 / dims**2, errors, (1.0, 2.0))
    assert (both.limit, *both.slopes) == pytest.approx((0.2, 1.5, -3.0))


def make_series(limit: float, errors: float) -> Series:
    """A decoupled problem whose norm differs by limit + 1/d, up to noise."""
    rng = np.random.default_rng(21)
    samples, theories = [], []
    for dim in (12, 16, 24, 32):
        setting = Setting("decoupled", dim, dim, dim, dim - 1, 0.1)
        mean = TRUTH * (1.0 + limit + np.array([0.0, 0.5, 1.0]) / dim)
        samples.append(Sample(setting, mean * (1.0 + errors * rng.standard_normal((50, 3)))))
        theories.append(Theory(TRUTH, 1e-4 * TRUTH))
    return Series("decoupled", "p = 0.7 p_c, λ = 0.1", samples, theories)


@pytest.mark.parametrize(("limit", "holds_zero"), [(0.0, True), (0.1, False)])
def test_universality_reports_the_limit(limit: float, holds_zero: bool) -> None:
    check = check_trained_universality([make_series(limit, 0.01)])
    rows = check.select("simulation", quantity="norm_squared", correction="1/d")
    assert len(rows) == 1
    assert (rows[0]["low"] <= 0.0 <= rows[0]["high"]) is holds_zero
    assert rows[0]["low"] <= limit <= rows[0]["high"]
    settle([check], 0.01)
    assert check.verdict == "measured"
    with pytest.raises(InvalidInput, match="three dimensions"):
        Series("decoupled", "x", make_series(0, 0.01).samples[:2], [])
    with pytest.raises(InvalidInput, match="at least"):
        check_trained_universality([])


@pytest.mark.parametrize(
    ("rule", "solver"), [("hebbian", hebbian), ("pseudo_inverse", pseudo_inverse)]
)
@pytest.mark.parametrize("facts", [40, 90, 160])
def test_laws_of_the_rules(rule: str, solver: Any, facts: int) -> None:
    shares = [
        solver(make_problem("gaussian", dim=16, facts=facts, competitors=9, seed=(2, k))).accuracy
        for k in range(20)
    ]
    error = np.std(shares, ddof=1) / math.sqrt(len(shares))
    # Five standard errors, and 0.01 for the correction of order 1/N.
    assert abs(np.mean(shares) - rule_recall(rule, 256, facts, 9)) < 5 * error + 0.01


def test_unknown_rule_is_one_sentence() -> None:
    with pytest.raises(InvalidInput, match="rule"):
        rule_recall("adam", 256, 10, 9)


def test_instances_do_not_depend_on_ridge_or_batch() -> None:
    whole = measure_trained("original", 6, 6, 10, 9, 0.1, 0, 0, 4, True)
    parts = [measure_trained("original", 6, 6, 10, 9, 0.1, 0, k, 2, True) for k in (0, 2)]
    for name in (*QUANTITIES, "hebbian", "pseudo_inverse"):
        assert whole[name] == parts[0][name] + parts[1][name]
    other = measure_trained("original", 6, 6, 10, 9, 1.0, 0, 0, 4, True)
    assert other["hebbian"] == whole["hebbian"]
    assert other["norm_squared"] != whole["norm_squared"]
    with pytest.raises(InvalidInput, match="measure more"):
        Sample.from_answers(Setting("original", 6, 6, 10, 9, 0.1), parts[:1])


SMALL = Sizes(
    limits=((0.5, 0.1),),
    limit_sizes=((64, 8), (128, 6)),
    curve_dim=6,
    curve_ridges=(0.1,),
    curve_facts=(8, 14),
    curve_lines=(),
    curve_instances=6,
    decoupled=((0.5, 0.1),),
    original=((1.5, 0.1),),
    distance_dims=((4, 5), (6, 5), (8, 5)),
    accuracies=(0.02, 0.02, 0.02),
    competitors=5,
)


def test_section_is_built_from_its_units() -> None:
    wanted = units(SMALL, 1)
    once = {json.dumps(unit.config): unit for unit in wanted}
    known = {key: unit.run() for key, unit in once.items()}
    answers = [known[json.dumps(unit.config)] for unit in wanted]
    assert len(once) < len(wanted)  # decoupled problems ask for the theory of the limit again
    section = build(SMALL, 1, answers)
    assert [check.name for check in section.checks] == [
        "trained_gaussian",
        "trained_curve_d6",
        "trained_universality",
    ]
    assert len(section.figures) == 3
    assert all(f.svg.startswith("<svg") for f in section.figures)
    json.dumps([check.to_json() for check in section.checks], allow_nan=False)
    curve = section.checks[1]
    assert {r["facts"] for r in curve.select("theory", rule="ridge")} == {8, 14}
    assert {r["facts"] for r in curve.select("simulation", rule="ridge")} == {8, 14}
    # The answers go to where they belong: the order of units is the order of jobs.
    first = section.checks[0].select("simulation")[0]
    assert first["norm_squared"] == pytest.approx(np.mean(answers[0]["norm_squared"]))


@pytest.mark.parametrize(("preset", "most"), [("quick", 45.0), ("paper", 2500.0)])
def test_presets_cost_what_they_may(preset: str, most: float) -> None:
    wanted = {json.dumps(u.config): u.work for u in units(sections_trained.SIZES[preset], 0)}
    assert sum(wanted.values()) <= most
    assert max(wanted.values()) <= 60.0
