"""Laws of the scores: contour integrals, k-sums, closed forms, and simulated projections.

Frequencies of simulations are held to 5 standard deviations: a false alarm in 2 million each.
"""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy as sp
from flint import arb
from scipy import stats

from numerics.balls import Certified, bits_for, working_precision
from numerics.below_capacity_scores import below_capacity_scores
from numerics.certify import certify
from numerics.cone import intrinsic_volumes, mean_active, statistical_dimension
from numerics.cone.level import LevelSum
from numerics.cone.volumes import coefficients
from numerics.level_law import Level
from numerics.scores import CapacityScores, largest_margin
from replica.errors import InvalidInput
from replica.expansion import derive_expansion
from replica.gaussian import Phi, phi

REFERENCE_MARGIN = "0.5771051"  # d = 16, p = 45


def projected(competitors: int, margin: float, samples: int, seed: int) -> dict[str, np.ndarray]:
    """Nearest points of C by sorting: level, target, best competitor, gap, number of active."""
    rng = np.random.default_rng(seed)
    target = rng.standard_normal(samples)
    scores = -np.sort(-rng.standard_normal((samples, competitors)), axis=1)
    counts = np.arange(1, competitors + 1)
    levels = (target[:, None] - margin + np.cumsum(scores, axis=1)) / (counts + 1)
    active = np.count_nonzero(levels < scores, axis=1)
    rows = np.arange(samples)
    level = np.where(active > 0, levels[rows, np.maximum(active - 1, 0)], target - margin)
    best = np.where(active > 0, level, scores[:, 0])
    distance = (level + margin - target) ** 2
    distance += np.sum(np.maximum(scores - level[:, None], 0) ** 2, axis=1)
    return {
        "target": level + margin,
        "best": best,
        "gap": level + margin - best,
        "active": active,
        "distance": distance,
    }


@pytest.fixture(scope="module")
def simulation() -> dict[str, np.ndarray]:
    return projected(44, float(REFERENCE_MARGIN), 100_000, seed=17)


@pytest.fixture(scope="module")
def scores() -> CapacityScores:
    return CapacityScores(44, REFERENCE_MARGIN)


def close(frequency: float, probability: float, samples: int) -> bool:
    error = math.sqrt(max(probability * (1 - probability), 1e-9) / samples)
    return abs(frequency - probability) < 5 * error + 1e-7


# -- at capacity ---------------------------------------------------------------------------------


def test_laws_against_simulated_projections(
    simulation: dict[str, np.ndarray], scores: CapacityScores
) -> None:
    count = len(simulation["target"])
    for y in ("1.3", "1.6", "1.9", "2.3", "3"):
        exact = float(Fraction(y))
        cdf = scores.target_cdf(y, 10).to_float_lossy()
        assert close(np.mean(simulation["target"] <= exact), cdf, count)
        b = str(Fraction(y) - Fraction("0.6"))
        cdf = scores.best_cdf(b, 10).to_float_lossy()
        assert close(np.mean(simulation["best"] <= exact - 0.6), cdf, count)
    for g in ("0.6", "0.8", "1.2"):
        survival = scores.gap_survival(g, 10).to_float_lossy()
        assert close(np.mean(simulation["gap"] > float(g)), survival, count)
    for k, volume in enumerate(scores.active_law(10)[:12]):
        assert close(np.mean(simulation["active"] == k), volume.to_float_lossy(), count)
    # a margin wrong by 2.5 % is noticed by the same test
    other = CapacityScores(44, "0.592").target_cdf("1.6", 10).to_float_lossy()
    assert not close(np.mean(simulation["target"] <= 1.6), other, count)


def test_moments_against_simulated_projections(
    simulation: dict[str, np.ndarray], scores: CapacityScores
) -> None:
    root = math.sqrt(len(simulation["target"]))
    for name, exact in (
        ("target", scores.target_mean(10)),
        ("best", scores.best_mean(10)),
        ("gap", scores.gap_mean(10)),
        ("active", scores.active_mean(10)),
        ("distance", statistical_dimension(44, 10, margin=REFERENCE_MARGIN)),
    ):
        values = simulation[name]
        assert abs(values.mean() - exact.to_float_lossy()) < 5 * values.std() / root, name
    spread = (simulation["target"] - simulation["target"].mean()) ** 2
    variance = scores.target_variance(10).to_float_lossy()
    assert abs(spread.mean() - variance) < 5 * spread.std() / root


def test_reference_values_of_the_maximum_margin_memory() -> None:
    """d = 16, p = 45. Known roughly: margin 0.576, target 1.903 +- 0.323, K 4.58, best competitor
    1.326; these laws give 0.57711, 1.90498 +- 0.32103, 4.592, 1.3260.
    """
    margin = largest_margin(16, 45)
    assert abs(margin - Fraction("0.576")) < Fraction("0.0015")
    exact = CapacityScores(44, REFERENCE_MARGIN)
    assert abs(exact.target_mean() - Fraction("1.903")) < Fraction("0.003")
    assert abs(exact.target_std() - Fraction("0.323")) < Fraction("0.0025")
    assert abs(exact.active_mean() - Fraction("4.58")) < Fraction("0.015")
    assert abs(exact.best_mean() - Fraction("1.326")) < Fraction("0.001")


def test_largest_margin_is_a_root_of_the_mean_distance() -> None:
    margin = largest_margin(16, 45, digits=12)
    low, high = margin.bounds
    load = Fraction(256, 45)
    assert statistical_dimension(44, 20, margin=low) < load
    assert statistical_dimension(44, 20, margin=high) > load
    distance = projected(44, margin.to_float_lossy(), 100_000, seed=23)["distance"]
    assert abs(distance.mean() - float(load)) < 5 * distance.std() / math.sqrt(100_000)
    assert largest_margin(16, 45, dim_out=20) > margin
    with pytest.raises(InvalidInput, match="even without a margin"):
        largest_margin(16, 90)


def test_one_competitor_in_closed_form() -> None:
    """M = 1: t = z_0 - m where z_1 < t, else the mean (z_0 - m + z_1)/2, independent of the gap."""
    t, m = sp.Rational(3, 5), sp.Rational(1, 4)
    free = phi(t + m) * Phi(t)
    pressed = Phi(m / sp.sqrt(2)) * sp.sqrt(2) * phi(sp.sqrt(2) * (t + m / 2))
    closed = certify(free + pressed, 25, real=True)
    found = CapacityScores(1, "0.25").target_density(Fraction(3, 5) + Fraction(1, 4), 20)
    assert found.overlaps(closed)
    assert found.digits >= 19
    mean = CapacityScores(1).target_mean(20)
    assert mean.overlaps(certify(1 / (2 * sp.sqrt(sp.pi)), 30))


@pytest.mark.parametrize(
    ("competitors", "margin", "t"),
    [
        (2, "0", "0.25"),
        (44, "0.576", "1.5"),
        (44, "0", "3"),
        (10**6, "0", "4.25"),
        (10**6, "1", "4"),
    ],
)
def test_contour_density_equals_the_sum_over_active_numbers(
    competitors: int, margin: str, t: str
) -> None:
    """Two representations without common code: w-contour at fixed t, and the k-sum with A_k."""
    contour = Certified(Level(competitors, Fraction(margin), Fraction(t)).density(14))
    parts = coefficients(competitors, 45.0, Fraction(margin))
    level = LevelSum(competitors, parts.plain, parts.margin)
    with working_precision(160):
        exact = Fraction(t)
        weight, ratio = level.factors(arb(exact.numerator) / exact.denominator)
        total = arb(0)
        for k, coefficient in enumerate(parts.plain):
            total += coefficient * ratio**k
        by_k = weight * total
    difference = contour - Certified(by_k)
    assert abs(difference) < abs(contour) * Fraction(1, 10**13)


def test_density_is_the_derivative_of_the_distribution() -> None:
    step = Fraction(1, 10**6)
    for competitors, margin, t in ((10, "0.3", "1"), (10**10, "0", "5.8")):
        point = Fraction(t)
        law = [Level(competitors, Fraction(margin), point + k * step) for k in (-1, 0, 1)]
        with working_precision(bits_for(40)):
            slope = Certified((law[2].cdf(30) - law[0].cdf(30)) * 500_000)
            density = Certified(law[1].density(20))
        assert abs(slope - density) < density * Fraction(1, 10**8)


@pytest.mark.parametrize(
    ("competitors", "margin", "b", "g"),
    [(1, "0", "0", "1.4"), (44, "0.576", "1.5", "0.9"), (10**6, "0", "4", "0.1")],
)
def test_densities_of_best_and_gap_are_derivatives(
    competitors: int, margin: str, b: str, g: str
) -> None:
    laws, step = CapacityScores(competitors, margin), Fraction(1, 10**6)
    best = (laws.best_cdf(Fraction(b) + step, 30) - laws.best_cdf(Fraction(b) - step, 30)) * 500_000
    assert abs(best - laws.best_density(b, 20)) < best * Fraction(1, 10**8)
    low, high = Fraction(g) - step, Fraction(g) + step
    gap = (laws.gap_survival(low, 30) - laws.gap_survival(high, 30)) * 500_000
    assert abs(gap - laws.gap_density(g, 20)) < gap * Fraction(1, 10**8)


def test_laws_far_out_on_both_sides() -> None:
    """Where 1 - Q rounds to 0: Phi(-20)^10 = 2.5e-886 by mpmath, and bounds where no digits are."""
    laws = CapacityScores(10)
    assert laws.best_density(-2, 12).digits >= 11
    with mpmath.workdps(30):
        level = mpmath.erfc(20 / mpmath.sqrt(2)) / 2
        assert abs(mpmath.mpf(laws.best_cdf(-20, 15).value) / level**10 - 1) < 1e-13
        slope = 10 * mpmath.npdf(-20) * level**9
        assert abs(mpmath.mpf(laws.best_density(-20, 15).value) / slope - 1) < 1e-13
    for y in (-20, -60):
        assert laws.target_cdf(y).bounds[1] < Fraction(1, 10**900)
        assert laws.target_survival(y) > Fraction(999, 1000)
        assert laws.target_density(y).bounds[1] < Fraction(1, 10**900)


def test_the_gap_has_no_density_at_the_margin() -> None:
    with pytest.raises(InvalidInput, match="atom"):
        CapacityScores(10, "0.5").gap_density("0.5")


def test_distribution_and_survival_sum_to_one_and_are_monotone() -> None:
    for competitors in (1, 44, 10**10, 10**100):
        centre = math.sqrt(2 * math.log(competitors))
        last = None
        for shift in (-1.0, -0.5, -0.2, 0.0, 0.5, 1.0):
            law = Level(competitors, Fraction(0), Fraction(round(32 * (centre + shift)), 32))
            with working_precision(80):
                low, high = law.cdf(15), law.survival(15)
                assert (low + high).contains(1)
                assert not low < 0
                assert not high < 0
                assert last is None or last < low or (last - low).contains(0)
            last = low


@pytest.mark.parametrize("competitors", [3, 44, 10**6])
def test_identities_that_tie_three_programs_together(competitors: int) -> None:
    """dist^2 = m y_0 + K on average, and E y_0 = half the derivative of E dist^2 in the margin."""
    margin = Fraction(7, 10)
    law = CapacityScores(competitors, margin)
    mean = law.target_mean(14)
    delta = statistical_dimension(competitors, 16, margin=margin)
    assert delta.overlaps(mean * margin + mean_active(competitors, 16, margin=margin))
    step = Fraction(1, 10**6)
    up, down = (statistical_dimension(competitors, 25, margin=margin + k * step) for k in (1, -1))
    assert abs((up - down) / (4 * step) - mean) < Fraction(1, 10**10)


def test_mean_target_score_against_its_expansion() -> None:
    """E t = T + c_1/T + ... of `replica`, at M = 10^10; stops at the smallest term."""
    competitors = 10**10
    derived = derive_expansion("target_score", 8)
    with mpmath.workdps(30):
        t = mpmath.findroot(
            lambda x: mpmath.log(competitors * (mpmath.npdf(x) - x * mpmath.ncdf(-x)) / x), 5.8
        )
        total, last = mpmath.mpf(0), mpmath.inf
        for i, text in enumerate(derived.extra["coefficients"]):
            fraction = Fraction(text)
            term = mpmath.mpf(fraction.numerator) / fraction.denominator * t ** (1 - 2 * i)
            if abs(term) > last:
                break
            total, last = total + term, abs(term) or last
        mean = mpmath.mpf(CapacityScores(competitors).target_mean(12).value)
        assert abs(mean - total) < 2 * last
        assert last < 0.01


@pytest.mark.parametrize("u", ["0.5", "0.01", "0.999", "1e-20"])
def test_quantiles_bracket_the_probability(u: str, scores: CapacityScores) -> None:
    low, high = scores.target_quantile(u, 12).bounds
    assert scores.target_cdf(low, 16) < Fraction(u)
    assert scores.target_cdf(high, 16) > Fraction(u)
    assert high - low < Fraction(1, 10**11)


def test_median_of_huge_problems() -> None:
    """M = 10^100: one contour integral a point, whatever M; cdf(median) = 1/2."""
    law = CapacityScores("1e100")
    median = law.target_quantile("0.5", 10)
    assert abs(law.target_cdf(Fraction(median.value), 12) - Fraction(1, 2)) < Fraction(1, 10**6)
    assert abs(median.to_float_lossy() - math.sqrt(2 * 100 * math.log(10))) < 1.0
    with pytest.raises(InvalidInput, match="target_quantile"):
        law.target_mean()


def test_active_numbers_are_the_intrinsic_volumes() -> None:
    law = CapacityScores(10).active_law()
    assert all(a.overlaps(b) for a, b in zip(law, intrinsic_volumes(10), strict=True))
    assert CapacityScores(2).active_variance().overlaps(Certified(Fraction(17, 36)))


def test_gap_at_the_margin_has_the_mass_of_no_active_competitor() -> None:
    law = CapacityScores(12, "0.4")
    assert law.gap_survival("0.4", 15).overlaps(law.active_law(15)[0])
    assert law.gap_survival("0.39").contains(1)


def test_bad_input() -> None:
    with pytest.raises(InvalidInput, match="exact"):
        CapacityScores(5).target_cdf(0.5)
    with pytest.raises(InvalidInput, match="strictly between"):
        CapacityScores(5).target_quantile(1)
    with pytest.raises(InvalidInput, match="competitors"):
        CapacityScores(0)
    with pytest.raises(InvalidInput, match="margin"):
        CapacityScores(5, -1)
    with pytest.raises(InvalidInput, match="digits"):
        CapacityScores(5).target_cdf("0.5", 0)


# -- below capacity ------------------------------------------------------------------------------


def sampled(competitors: int, q: float, margin: float, samples: int, seed: int) -> np.ndarray:
    """Scores under the solution measure, (samples, competitors + 1): the target by inversion on a
    plain grid, then every competitor as a Gaussian truncated at the target minus the margin.
    """
    rng = np.random.default_rng(seed)
    width = math.sqrt(1 - q)
    omega = math.sqrt(q) * rng.standard_normal((samples, competitors + 1))
    grid = np.linspace(-6.0, 8.0, 1401)
    target = np.empty(samples)
    for start in range(0, samples, 1000):
        part = omega[start : start + 1000]
        weight = stats.norm.pdf(grid, part[:, :1], width)
        for rho in range(competitors):
            weight = weight * stats.norm.cdf((grid - margin - part[:, rho + 1, None]) / width)
        total = np.cumsum(weight, axis=1)
        total /= total[:, -1:]
        for row, level in enumerate(rng.random(len(part))):
            target[start + row] = np.interp(level, total[row], grid + 0.005)
    room = stats.norm.cdf((target[:, None] - margin - omega[:, 1:]) / width)
    rivals = omega[:, 1:] + width * stats.norm.ppf(room * rng.random(room.shape))
    return np.concatenate([target[:, None], rivals], axis=1)


def test_laws_below_capacity_against_sampled_scores() -> None:
    """M = 3, margin 0.2: every law against 10,000 sampled score vectors at the same overlap."""
    laws = below_capacity_scores(0.3, 3, margin=0.2, samples=1024, seed=3)
    count = 10_000
    sample = sampled(3, laws.parameters.overlap.value, 0.2, count, seed=31)
    target, best = sample[:, 0], sample[:, 1:].max(axis=1)

    def agrees(frequency: float, value: float, stderr: float) -> bool:
        error = math.hypot(stderr, math.sqrt(max(value * (1 - value), 1e-4) / count))
        return abs(frequency - value) < 5 * error

    points = [0.0, 0.8, 1.5]
    cdf = laws.target_cdf(points)
    for i, y in enumerate(points):
        assert agrees(np.mean(target <= y), cdf[i].value, cdf[i].stderr)
    cdf = laws.best_cdf([-0.6, 0.2, 0.9])
    for i, b in enumerate(cdf.points):
        assert agrees(np.mean(best <= b), cdf[i].value, cdf[i].stderr)
    survival = laws.gap_survival([0.2, 0.6, 1.5])
    assert survival[0].value == pytest.approx(1.0, abs=1e-9)
    for i, g in enumerate(survival.points):
        assert agrees(np.mean(target - best > g), survival[i].value, survival[i].stderr)
    mean, variance = laws.target_mean(), laws.target_variance()
    error = math.hypot(mean.stderr, target.std() / math.sqrt(count))
    assert abs(mean.value - target.mean()) < 5 * error
    spread = (target - target.mean()) ** 2
    error = math.hypot(variance.stderr, spread.std() / math.sqrt(count))
    assert abs(variance.value - spread.mean()) < 5 * error


def test_density_below_capacity_integrates_to_its_distribution() -> None:
    laws = below_capacity_scores(0.1, 39, samples=256, seed=0)
    grid = np.linspace(-1.0, 6.0, 141)
    density, cdf = laws.target_density(grid), laws.target_cdf(grid[[0, 60, 70, 140]])
    mass = np.concatenate([[0.0], np.cumsum((density.values[1:] + density.values[:-1]) / 2)]) * 0.05
    assert cdf.values[0] == pytest.approx(0.0, abs=1e-6)
    assert cdf.values[-1] == pytest.approx(1.0, abs=1e-6)
    assert mass[60] == pytest.approx(cdf.values[1], abs=2e-3)
    assert mass[70] == pytest.approx(cdf.values[2], abs=2e-3)
    mean = float(np.sum(grid * density.values) * 0.05)
    assert mean == pytest.approx(laws.target_mean().value, abs=1e-4)


@pytest.mark.parametrize(("competitors", "margin"), [(3, 0.2), (2_000, 0.0)])
def test_densities_of_best_and_gap_below_capacity(competitors: int, margin: float) -> None:
    """Integrals of the densities against differences of the distributions, one sample for both."""
    laws = below_capacity_scores(0.05, competitors, margin=margin, samples=256, seed=4)
    centre = laws.target_mean().value - 1.0
    u, w = np.polynomial.legendre.leggauss(8)
    for density, cdf, sign, start in (
        (laws.best_density, laws.best_cdf, 1, centre),
        (laws.gap_density, laws.gap_survival, -1, margin),
    ):
        nodes = start + 0.5 * (u + 1)
        ends = cdf([start, start + 1.0]).values
        mass = float(0.5 * np.sum(w * density(nodes).values))
        assert mass > 0.1
        assert mass == pytest.approx(sign * (ends[1] - ends[0]), abs=2e-4)


def test_points_of_a_law_are_checked() -> None:
    laws = below_capacity_scores(0.25, 4, samples=256, seed=0)
    with pytest.raises(InvalidInput, match="finite scores"):
        laws.target_cdf([float("nan")])
    with pytest.raises(InvalidInput, match="non-empty"):
        laws.target_density([])
    with pytest.raises(InvalidInput, match="at least the"):
        below_capacity_scores(0.2, 4, margin=0.3, samples=256).gap_survival([0.1])
