"""Spectra: exact null, planted laws, and memories against independent computations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from replica.errors import InvalidInput
from validate.checks.base import settle
from validate.checks.spectra import (
    Spectra,
    check_quarter_circle,
    check_spectra,
    check_start,
    closed_form_quantiles,
    distances,
    gaussian_spectra,
    law_quantiles,
    low_rank_margin,
    measure_spectra,
    measure_start,
    plot_distances,
    plot_spectrum,
    plot_start,
    rank_score,
    spectra_of,
    trained_from,
)
from validate.problems import make_problem


def gaussian(dim: int, count: int, seed: int, columns: int | None = None) -> Spectra:
    """Gaussian matrices dressed as memories."""
    values = gaussian_spectra(dim, dim, count, (seed, 9, dim), columns)
    return Spectra("gaussian", "maximum_margin", dim, 5, values, 0)


def semicircle_on_zero_to_two(dim: int) -> np.ndarray[Any, Any]:
    """Quantiles of the semicircle centred at 1, unit mean square: a wrong law."""
    u = (np.arange(dim) + 0.5) / dim
    s = 1.0 + 2.0 * stats.semicircular.ppf(u) / 2.0
    return np.asarray(s / math.sqrt(1.25))


def marchenko_pastur(dim: int, aspect: float) -> np.ndarray[Any, Any]:
    """Quantiles of the singular values of dim x (dim/aspect) Gaussian matrices, by quadrature."""
    low, high = 1 - math.sqrt(aspect), 1 + math.sqrt(aspect)
    s = np.linspace(low, high, 20_001)
    density = np.sqrt(np.maximum((s**2 - low**2) * (high**2 - s**2), 0)) / s
    mass = integrate.cumulative_simpson(density, x=s, initial=0)
    mass /= mass[-1]
    q = np.interp((np.arange(dim) + 0.5) / dim, mass, s)
    return np.asarray(
        q / math.sqrt(float(np.trapezoid(s**2 * density, s) / np.trapezoid(density, s)))
    )


# --- laws and distances -----------------------------------------------------------------------


@pytest.mark.parametrize(("dim", "rank"), [(5, 5), (12, 12), (12, 6), (9, 2)])
def test_certified_quantiles_equal_the_closed_form(dim: int, rank: int) -> None:
    assert law_quantiles(dim, rank) == pytest.approx(closed_form_quantiles(dim, rank), abs=2e-7)


def test_distance_tends_to_the_integral_of_the_quantile_difference() -> None:
    """Two-point spectrum against the quarter circle: int |Q_emp - Q| du by quadrature."""
    m = 4000
    values = np.repeat([0.5, 1.5], m // 2)
    values /= math.sqrt(np.mean(values**2))
    law = closed_form_quantiles(m, m)
    assert distances(values, law)[0] == pytest.approx(
        float(np.trapezoid(np.abs(values - law), dx=1 / m)), rel=1e-3
    )


def test_gaussian_matrices_approach_the_quarter_circle() -> None:
    """The mean distance falls like 1/d between d = 10 and d = 160, within a factor 1.6."""
    means = [
        float(distances(gaussian_spectra(d, d, n, (3, d)), closed_form_quantiles(d, d)).mean())
        for d, n in ((10, 200), (40, 40), (160, 4))
    ]
    assert means[0] / means[2] == pytest.approx(16, rel=0.6)
    assert means[0] > means[1] > means[2]


def test_rank_score_is_standard_normal_under_the_hypothesis() -> None:
    """4000 samples of 12 against 300: against SciPy, and tails within five standard errors."""
    rng = np.random.default_rng(1)
    x, y = rng.exponential(size=12), rng.exponential(size=300)
    p = stats.mannwhitneyu(x, y, method="asymptotic", use_continuity=False).pvalue
    assert 2 * stats.norm.sf(abs(rank_score(x, y))) == pytest.approx(p, rel=1e-9)
    z = np.array([rank_score(rng.normal(size=12), rng.normal(size=300)) for _ in range(4000)])
    for level in (0.05, 0.005, 3e-4):
        share = np.mean(np.abs(z) > stats.norm.isf(level / 2))
        assert share <= level + 5 * math.sqrt(level / 4000)


# --- the tested claim -------------------------------------------------------------------------


def test_maximum_margin_memories_pass() -> None:
    found = [
        spectra_of(
            "gaussian",
            "maximum_margin",
            d,
            p,
            [measure_spectra("gaussian", "maximum_margin", d, p, d, 12, [2, d])],
        )
        for d, p in ((6, 10), (8, 16))
    ]
    check = check_quarter_circle(found, seed=0, nulls=1000, aspect=0.5)
    settle([check], 0.01)
    assert check.verdict == "agrees"
    assert len(plot_distances(check_spectra(found, seed=0, nulls=200)).axes[0].lines) >= 1
    assert plot_spectrum(found[:1]).axes[0].get_xlabel()


def test_p_values_of_the_rank_test_are_honest() -> None:
    """120 sets of Gaussian matrices: below 5 % at most five standard errors above (3e-7)."""
    p = [
        check_quarter_circle([gaussian(6, 15, s), gaussian(9, 15, s)], seed=s, nulls=500).p_value
        for s in range(120)
    ]
    assert np.mean([x is not None and x < 0.05 for x in p]) <= 0.05 + 5 * math.sqrt(0.05 / 120)


@pytest.mark.parametrize("law", ["semicircle", "marchenko_pastur"])
def test_a_wrong_law_is_noticed(law: str) -> None:
    """40 Gaussian matrices against the wrong law: rejected at 3e-4."""
    wrong = {
        d: semicircle_on_zero_to_two(d) if law == "semicircle" else marchenko_pastur(d, 0.5)
        for d in (8, 12)
    }
    check = check_quarter_circle(
        [gaussian(8, 20, 1), gaussian(12, 20, 1)], seed=1, nulls=1000, quantiles=wrong
    )
    assert check.p_value is not None
    assert check.p_value < 3e-4


def test_wrong_spectra_are_noticed_as_often_as_stated() -> None:
    """Matrices 10 x 13 in place of 10 x 10, 15 of them, 80 sets at level 1 %: noticed as often as
    stated within four standard errors and 0.05."""
    noticed, stated = 0, []
    for s in range(80):
        check = check_quarter_circle(
            [gaussian(10, 15, s, columns=13)], seed=s, nulls=500, aspect=10 / 13
        )
        assert check.p_value is not None
        assert check.power_at is not None
        noticed += check.p_value < 0.01
        if s < 8:
            stated.append(check.power_at(0.01))
    power = float(np.mean(stated))
    assert 0.2 < power < 0.999
    assert abs(noticed / 80 - power) < 4 * math.sqrt(power * (1 - power) / 80) + 0.05


def test_too_rigid_spectra_are_noticed_too() -> None:
    """Exactly on the law is not random: two-sided."""
    exact = Spectra(
        "gaussian", "maximum_margin", 12, 5, np.tile(closed_form_quantiles(12, 12), (20, 1)), 0
    )
    check = check_quarter_circle([exact], seed=0, nulls=1000)
    assert check.p_value is not None
    assert check.p_value < 1e-6


def test_rank_test_is_refused_where_it_is_not_exact() -> None:
    other = Spectra("original", "adam", 6, 5, gaussian(6, 4, 0).values, 0)
    with pytest.raises(InvalidInput, match="Gaussian problem only"):
        check_quarter_circle([other], seed=0)


# --- memories ---------------------------------------------------------------------------------


def test_low_rank_margin_at_full_rank_is_the_maximum_margin() -> None:
    """Against the exact solver; the smooth margin stays a few per cent below the true one."""
    from validate.solvers.exact import solve

    problem = make_problem("gaussian", dim=5, facts=4, seed=3)
    found = low_rank_margin(problem, 5)
    best = solve(problem, maximum_margin=True)
    margin = float(problem.margins(found).min())
    assert 0.9 * best.margin < margin <= best.margin * (1 + 1e-9)
    assert float(found.norm()) == pytest.approx(1.0)
    low = low_rank_margin(problem, 2)
    assert int(torch.linalg.matrix_rank(low, rtol=1e-9)) == 2
    assert 0 < float(problem.margins(low).min()) < best.margin


def test_low_rank_spectra_lie_near_the_truncated_law() -> None:
    """As close to the truncated law as Gaussian matrices up to a factor 2; the full law, twice as
    far off, does not fit."""
    answer = measure_spectra("gaussian", "low_rank", 8, 8, 4, 3, [5])
    found = spectra_of("gaussian", "low_rank", 8, 8, [answer])
    assert found.missed == 0
    check = check_spectra([found], seed=0, nulls=500)
    row = check.select("simulation")[0]
    assert row["ratio"] < 2.0
    assert check.p_value is None
    wrong = distances(found.values, closed_form_quantiles(4, 4)).mean()
    assert wrong > 2 * row["distance"]


def test_start_is_what_it_says_and_training_forgets_it() -> None:
    flat = measure_start("original", 8, 8, 2, [1], "flat", 0.5)
    wide = measure_start("original", 8, 8, 2, [1], "gaussian", 100.0)
    assert flat[0]["first"] == pytest.approx([8**-0.5] * 8)
    assert all(r["accuracy"] == 1.0 for r in flat)
    assert abs(flat[0]["cosine"]) < 0.5 < wide[0]["cosine"]
    check = check_start([("flat", 0.5, flat), ("gaussian", 100.0, wide)], 8, 8)
    rows = check.select("simulation")
    assert rows[0]["last distance"] < rows[0]["first distance"]
    assert rows[1]["ratio"] > 1
    assert check.p_value is None
    assert plot_start(check).axes[0].get_ylabel()


def test_training_from_a_start_is_adam_written_out() -> None:
    """Ten steps against the update rule in NumPy with a numerical softmax gradient."""
    problem = make_problem("original", dim=3, facts=4, seed=2)
    E, U = problem.inputs.numpy(), problem.outputs.numpy()  # type: ignore[attr-defined]
    start = np.random.default_rng(0).standard_normal((3, 3))
    W, m, v = start * 3.0, np.zeros((3, 3)), np.zeros((3, 3))
    for step in range(10):
        s = E @ W.T @ U.T / 3.0
        soft = np.exp(s - s.max(1, keepdims=True))
        soft /= soft.sum(1, keepdims=True)
        gradient = ((soft - np.eye(4)) @ U).T @ E / 4 / 3.0
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        rate = 0.2 * 0.5 * (1 + math.cos(math.pi * step / 10))
        W = W - rate * (m / (1 - 0.9 ** (step + 1))) / (
            np.sqrt(v / (1 - 0.999 ** (step + 1))) + 1e-8
        )
    np.testing.assert_allclose(trained_from(problem, start, steps=10), W / 3.0, rtol=1e-7)


def test_bad_requests_are_one_sentence() -> None:
    with pytest.raises(InvalidInput, match="one of maximum_margin"):
        measure_spectra("gaussian", "magic", 4, 3, 4, 1, [0])
    with pytest.raises(InvalidInput, match="take fewer facts"):
        spectra_of("gaussian", "adam", 4, 30, [{"values": [], "margins": [], "missed": 3}])
    with pytest.raises(InvalidInput, match="rank is 9"):
        low_rank_margin(make_problem("gaussian", dim=4, facts=3, seed=0), 9)
    with pytest.raises(InvalidInput, match="gaussian or flat"):
        measure_start("original", 4, 3, 1, [0], "round", 1.0)
    with pytest.raises(InvalidInput, match="at least one start"):
        check_start([], 4, 3)
