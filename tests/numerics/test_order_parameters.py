"""Order parameters by compiled formulas, mpmath, quadrature, replicates and sampling.

Deviations of Monte Carlo estimates are held to 5 standard errors: a false alarm in 2 million each.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sp
from flint import arb
from scipy import special, stats

from numerics.balls import Certified, bits_for, working_precision
from numerics.certify import certify
from numerics.cone import statistical_dimension
from numerics.estimate import MonteCarloEstimate
from numerics.fields import Fields, cone_distance, draw_fields, largest_moments
from numerics.halfspace import HalfspaceAverages
from numerics.order_parameters import _Sample as Sample
from numerics.order_parameters import (
    averages,
    fixed_controls,
    halfspace_order_parameters,
    mean_log_probability,
    quadrature_averages,
    stein_controls,
    tail_average_order_parameters,
    top_one_order_parameters,
)
from numerics.posterior import Local, local_quantities
from replica import symbols as s
from replica.below_capacity import on_shell
from replica.catalogue import model
from replica.criteria.top_one import TopOne
from replica.errors import InvalidInput

# -- one score: certified ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("q", "margin"),
    [pytest.param("1/2", "1", marks=pytest.mark.long), ("1/20", "0"), ("3/10", "-2/5")],
)
def test_ball_quadrature_equals_the_compiled_formula(q: str, margin: str) -> None:
    gardner = model("spherical", "halfspace", margin=s.margin)
    values = {s.q: Fraction(q), s.margin: Fraction(margin), s.gamma: 1}
    expressions = [
        gardner.free_entropy - gardner.prior.entropy(),
        gardner.saddle_point_equations[0].rhs,
        (1 - gardner.stability.lhs) / (1 - s.q) ** 2,
    ]
    compiled = [certify(e, 15, values, real=True) for e in expressions]
    with working_precision(bits_for(20)):
        exact = [arb(Fraction(v).numerator) / Fraction(v).denominator for v in (q, margin)]
        at = HalfspaceAverages(*exact)
        fast = [at.log_probability(), at.squared_gradient(), at.squared_hessian()]
    for left, right in zip(compiled, fast, strict=True):
        assert left.overlaps(Certified(right))
        assert Certified(right).digits >= 16


@pytest.mark.parametrize(("gamma", "margin"), [("1.9", "0"), ("3", "-0.5")])
def test_halfspace_saddle_point_against_mpmath(gamma: str, margin: str) -> None:
    result = halfspace_order_parameters(gamma, margin=margin, digits=14)
    with mpmath.workdps(25):
        g, m = mpmath.mpf(gamma), mpmath.mpf(margin)

        def average(function: Any, q: mpmath.mpf) -> mpmath.mpf:
            root, width = mpmath.sqrt(q), mpmath.sqrt(1 - q)
            return mpmath.quad(
                lambda z: mpmath.npdf(z) * function((root * z - m) / width),
                [-9, -6, -4, -2, -1, 0, 1, 2, 4, 6, 9],
            )

        def hazard(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.npdf(x) / mpmath.ncdf(x)

        def phi(q: mpmath.mpf) -> mpmath.mpf:
            energy = average(lambda x: mpmath.log(mpmath.ncdf(x)), q)
            return mpmath.log(1 - q) / 2 + q / (2 * (1 - q)) + g * energy

        q = mpmath.mpf(result.overlap.value)
        # the free entropy itself, its stationarity by a difference quotient: no gradient formula
        assert abs(phi(q) - mpmath.mpf(result.free_entropy.value)) < mpmath.mpf(10) ** -13
        step = mpmath.mpf(10) ** -5 * (1 - q)
        curvature = (phi(q + step) - 2 * phi(q) + phi(q - step)) / step**2
        slope = (phi(q + step) - phi(q - step)) / (2 * step)
        assert abs(slope / curvature) < mpmath.mpf(10) ** -8
        bend = average(lambda x: (hazard(x) * (hazard(x) + x)) ** 2, q)
        assert abs(1 - g * bend - mpmath.mpf(result.replicon.value)) < mpmath.mpf(10) ** -12


def test_envelope_theorem_at_the_saddle_point() -> None:
    """d phi/d gamma = E log Z, as phi is stationary in q: ties three separate certified solves."""
    step = Fraction(1, 10**5)
    low, middle, high = (
        halfspace_order_parameters(Fraction(4, 5) + k * step, margin="0.2", digits=16)
        for k in (-1, 0, 1)
    )
    slope = (high.free_entropy - low.free_entropy) / (2 * step)
    with working_precision(bits_for(18)):
        at = HalfspaceAverages(middle.overlap.ball, arb(1) / 5)
        log_z = Certified(at.log_probability())
    assert abs(slope - log_z) < Fraction(1, 10**8)


def test_tail_average_is_the_halfspace_at_its_tail_margin() -> None:
    whole = tail_average_order_parameters("1.2", 1, digits=12)
    gardner = halfspace_order_parameters("1.2", digits=12)
    assert whole.overlap.overlaps(gardner.overlap)
    part = tail_average_order_parameters("0.3", "0.5", digits=12)
    kappa = mpmath.npdf(0) / mpmath.mpf("0.5")
    near = halfspace_order_parameters("0.3", margin=mpmath.nstr(kappa, 14), digits=10)
    assert abs(part.overlap - near.overlap) < Fraction(1, 10**9)
    assert part.replicon > 0


def test_overlap_grows_from_zero_to_one() -> None:
    results = [halfspace_order_parameters(g, digits=8) for g in ("1e-6", "0.5", "1", "1.5", "1.98")]
    overlaps = [r.overlap.to_float_lossy() for r in results]
    assert overlaps == sorted(overlaps)
    # small load: q = gamma E|grad log Z|^2 at q = 0, h(0)^2 = 2/pi
    assert abs(overlaps[0] / (1e-6 * 2 / math.pi) - 1) < 1e-5
    assert overlaps[-1] > 0.98
    assert all(r.replicon > 0 for r in results)


def test_at_and_above_capacity_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"p/d\^2 < 2"):
        halfspace_order_parameters(2)
    with pytest.raises(InvalidInput, match="solutions exist"):
        tail_average_order_parameters("0.66", "0.5")
    with pytest.raises(InvalidInput, match="solutions exist"):
        top_one_order_parameters(0.31, 39)
    with pytest.raises(InvalidInput, match="exact"):
        halfspace_order_parameters(0.5)
    with pytest.raises(InvalidInput, match="samples"):
        top_one_order_parameters(0.1, 39, samples=10)
    with pytest.raises(InvalidInput, match="seed"):
        top_one_order_parameters(0.1, 39, seed=-3)
    with pytest.raises(InvalidInput, match="margin"):
        top_one_order_parameters(0.1, 39, margin=float("nan"))
    with pytest.raises(InvalidInput, match="competitors"):
        top_one_order_parameters(0.1, 0)


# -- the kernel ----------------------------------------------------------------------------------


def test_kernel_equals_the_compiled_probability_and_its_derivatives() -> None:
    """log Z, |grad|^2 and ||Hess||^2 of `replica` at two score vectors, M = 2, margin 1/4."""
    criterion = TopOne(competitors=2, margin=sp.Rational(1, 4))
    symbols = [symbol for symbol, _ in criterion.scores]
    for point in (
        (Fraction(1, 2), Fraction(-1, 3), Fraction(1, 5)),
        (Fraction(-1), Fraction(2), Fraction(1)),
    ):
        values = dict(zip(symbols, point, strict=True))
        z_function = criterion.probability(sp.Rational(3, 5))
        z, first, second = certify(z_function, 12, values, real=True), [], {}
        for a in symbols:
            first.append(certify(z_function.diff(a), 12, values, real=True))
        for i, a in enumerate(symbols):
            for j, b in enumerate(symbols[: i + 1]):
                second[i, j] = certify(z_function.diff(a, b), 12, values, real=True)
        gradient = [f / z for f in first]
        hessian = Certified(0)
        for (i, j), value in second.items():
            entry = value / z - gradient[i] * gradient[j]
            hessian = hessian + entry * entry * (1 if i == j else 2)
        squared = gradient[0] * gradient[0] + gradient[1] * gradient[1] + gradient[2] * gradient[2]
        q = 0.4
        scores = np.array([float(v) for v in point]) / math.sqrt(q)
        rivals = -np.sort(-scores[1:])[None, :]
        local = local_quantities(Fields(scores[:1], rivals, 0.0), q, 0.25)
        assert abs(local.log_z[0] - math.log(z.to_float_lossy())) < 1e-8
        assert abs(local.gradient[0] - squared.to_float_lossy()) < 1e-7
        assert abs(local.hessian[0] - hessian.to_float_lossy()) < 1e-7


def test_kernel_derivatives_are_differences_of_log_z() -> None:
    """target_gradient, target_curvature, rival_work and gradient_change by finite differences."""
    rng = np.random.default_rng(4)
    target, rivals = rng.standard_normal(40), -np.sort(-rng.standard_normal((40, 6)), axis=1)
    q, step = 0.55, 1e-4
    root = math.sqrt(q)

    def at(shift: float, scale: float = 1.0) -> Local:
        return local_quantities(Fields(target + shift / root, scale * rivals, 0.0), q, 0.1)

    here, up, down = at(0.0), at(step), at(-step)
    slope = (up.log_z - down.log_z) / (2 * step)
    assert np.max(np.abs(slope - here.target_gradient)) < 1e-5
    bend = (up.log_z - 2 * here.log_z + down.log_z) / step**2
    assert np.max(np.abs(bend - here.target_curvature)) < 2e-3
    change = (up.gradient - down.gradient) / (2 * step)
    scale = np.max(np.abs(change))
    assert np.max(np.abs(change - here.gradient_change)) < 1e-4 * scale
    # omega . grad over the rivals is the derivative under scaling them
    grown, shrunk = at(0.0, 1 + step), at(0.0, 1 - step)
    work = (grown.log_z - shrunk.log_z) / (2 * step)
    assert np.max(np.abs(work - here.rival_work)) < 1e-4


@pytest.mark.parametrize("nodes", [20, 60])
def test_node_number_is_sufficient(nodes: int) -> None:
    fields = draw_fields(39, 300, 5)
    usual, other = local_quantities(fields, 0.5), local_quantities(fields, 0.5, nodes=nodes)
    error = np.max(np.abs(usual.gradient - other.gradient)) / np.mean(usual.gradient)
    assert (error > 1e-6) if nodes == 20 else (error < 1e-6)


# -- fields and controls -------------------------------------------------------------------------


def test_order_statistics_follow_their_law() -> None:
    """Phi(z_(1))^M and, given z_(1), the next ratio are uniform.

    Kolmogorov-Smirnov, false alarm 1e-6.
    """
    number = 10**7
    top = draw_fields(number, 20_000, 3).top
    upper = special.ndtr(-top[:, :3])
    first = np.exp(number * np.log1p(-upper[:, 0]))
    assert stats.kstest(first, "uniform").pvalue > 1e-6
    survivors = np.exp((number - 1) * (np.log1p(-upper[:, 1]) - np.log1p(-upper[:, 0])))
    assert stats.kstest(survivors, "uniform").pvalue > 1e-6
    # a law with 2 % more competitors is told apart
    assert stats.kstest(first**1.1, "uniform").pvalue < 1e-6
    # all of few competitors are drawn: their sum is Gaussian
    few = draw_fields(5, 20_000, 3)
    assert few.rest == 0.0
    assert stats.kstest(few.top.sum(axis=1) / math.sqrt(5), "norm").pvalue > 1e-6


def test_largest_moments_against_mpmath() -> None:
    for number in (1, 3, 10**6):
        with mpmath.workdps(20):
            expected = [
                mpmath.quad(
                    lambda z, n=n, m=number: z**n * m * mpmath.npdf(z) * mpmath.ncdf(z) ** (m - 1),
                    [-9, -4, -2, 0, 1, 2, 3, 4, 5, 6, 7, 9],
                )
                for n in (1, 2)
            ]
        for value, exact in zip(largest_moments(number), expected, strict=True):
            assert abs(value - float(exact)) < 1e-11


def test_cone_distance_by_minimisation() -> None:
    """min over t of (t - z_0)_+^2 + sum (z - t)_+^2 on a fine grid, then its mean against delta."""
    fields = draw_fields(6, 200_000, 8)
    distance = cone_distance(fields)
    grid = np.linspace(-4, 4, 16_001)
    for i in range(20):
        cost = np.maximum(grid - fields.target[i], 0) ** 2
        cost += np.sum(np.maximum(fields.top[i][:, None] - grid, 0) ** 2, axis=0)
        assert abs(cost.min() - distance[i]) < 1e-6
    delta = statistical_dimension(6).to_float_lossy()
    assert abs(distance.mean() - delta) < 5 * distance.std() / math.sqrt(len(distance))


@pytest.mark.parametrize(("competitors", "margin"), [(1, 0.0), (6, 0.3), (1000, 0.0)])
def test_every_control_has_mean_zero(competitors: int, margin: float) -> None:
    count = 20_000 if competitors < 100 else 2000
    fields = draw_fields(competitors, count, 12)
    local = local_quantities(fields, 0.5, margin)
    controls = np.concatenate(
        [fixed_controls(fields, competitors), stein_controls(fields, local, 0.5)], axis=1
    )
    ratio = controls.mean(axis=0) / (controls.std(axis=0) / math.sqrt(count))
    assert np.max(np.abs(ratio)) < 5
    # the identity with V where q belongs is noticed: half of the wrong ones at q = 0.2
    local = local_quantities(fields, 0.2, margin)
    wrong = stein_controls(fields, local, 0.8)
    ratio = wrong.mean(axis=0) / (wrong.std(axis=0) / math.sqrt(count))
    assert np.max(np.abs(ratio)) > 5


# -- top-one recall: Monte Carlo -----------------------------------------------------------------


@pytest.mark.parametrize("margin", ["0", "0.6"])
def test_one_competitor_is_the_halfspace(margin: str) -> None:
    """{y_0 >= y_1 + m} is a halfspace along (1, -1)/sqrt 2 at the margin m/sqrt 2, certified."""
    lead = certify(sp.Rational(Fraction(margin)) / sp.sqrt(2), 30) if margin != "0" else 0
    exact = halfspace_order_parameters("0.7", margin=lead, digits=10)
    found = top_one_order_parameters(0.7, 1, margin=float(margin), samples=2048, seed=1)
    pairs = [
        (found.overlap, exact.overlap),
        (found.free_entropy, exact.free_entropy),
        (found.replicon, exact.replicon),
    ]
    for estimate, value in pairs:
        assert abs(estimate.deviation(value.to_float_lossy())) < 5
        assert estimate.stderr < 1e-3
    assert found.is_stable


@pytest.mark.parametrize(
    ("competitors", "q", "margin"), [(2, 0.5, 0.0), (2, 0.85, 0.4), (3, 0.3, 0.2)]
)
def test_averages_against_quadrature(competitors: int, q: float, margin: float) -> None:
    sample = Sample.draw(competitors, 4096, 21, margin)
    result = averages(sample, q)
    quadrature = quadrature_averages(competitors, q, margin, resolution=14)
    for controlled, exact in zip(
        (result.log_z, result.gradient, result.hessian), quadrature, strict=True
    ):
        assert exact.error < 1e-3 * abs(exact.value)
        assert abs(controlled.value - exact.value) < 5 * controlled.stderr + 2 * exact.error
        assert controlled.stderr < 0.02 * abs(exact.value)


def test_standard_errors_are_those_of_replicates() -> None:
    """60 seeds at M = 8: chi-squared of the standardised errors, false alarm 1e-6 a side."""
    runs = [averages(Sample.draw(8, 512, seed, 0.0), 0.6) for seed in range(60)]
    for name in ("log_z", "gradient", "hessian"):
        values = np.array([getattr(r, name).value for r in runs])
        errors = np.array([getattr(r, name).stderr for r in runs])
        weighted = np.sum(values / errors**2) / np.sum(1 / errors**2)
        total = float(np.sum(((values - weighted) / errors) ** 2))
        assert stats.chi2(59).ppf(1e-6) < total < stats.chi2(59).isf(1e-6), name


def test_solved_standard_errors_are_those_of_replicates() -> None:
    """The same for q, phi and the replicon of 12 whole solves (chi-squared, 1e-6 a side)."""
    runs = [top_one_order_parameters(0.25, 4, samples=300, seed=seed) for seed in range(12)]
    for name in ("overlap", "free_entropy", "replicon"):
        values = np.array([getattr(r, name).value for r in runs])
        errors = np.array([getattr(r, name).stderr for r in runs])
        total = float(np.sum(((values - values.mean()) / errors) ** 2))
        assert stats.chi2(11).ppf(1e-6) < total < stats.chi2(11).isf(1e-6), name
    # all of them agree with quadrature at their common overlap: the saddle-point equation holds
    q = float(np.mean([r.overlap.value for r in runs]))
    spread = float(np.std([r.overlap.value for r in runs]) / math.sqrt(12))
    big = averages(Sample.draw(4, 4096, 99, 0.0), q)
    gap = q - 0.25 * (1 - q) ** 2 * big.gradient.value
    assert abs(gap) < 5 * (0.25 * (1 - q) ** 2 * big.gradient.stderr + spread)


def test_d_20_and_40_facts() -> None:
    """Measured elsewhere: q = 0.434 +- 0.01 for the Gaussian problem at d = 20, p = 40."""
    result = top_one_order_parameters(Fraction(40, 400), 39, samples=1024, seed=0)
    assert abs(result.overlap.value - 0.434) < 0.01
    assert result.overlap.stderr < 1e-3
    assert result.variance_ratio > 50
    assert result.is_stable
    assert isinstance(result.overlap, MonteCarloEstimate)
    assert not isinstance(result.overlap, Certified)


def test_asking_for_an_accuracy() -> None:
    loose = top_one_order_parameters(0.25, 4, samples=300, seed=2)
    wanted = loose.overlap.stderr / 2
    fine = top_one_order_parameters(0.25, 4, samples=300, accuracy=wanted, seed=2)
    assert fine.overlap.samples > 1000
    assert fine.overlap.stderr < 1.15 * wanted
    with pytest.raises(InvalidInput, match="needs about"):
        top_one_order_parameters(0.25, 4, samples=300, accuracy=1e-9, seed=2)


def test_same_seed_same_numbers_and_seed_zero_is_a_seed() -> None:
    runs = [top_one_order_parameters(0.25, 4, samples=256, seed=seed) for seed in (0, 0, 1)]
    assert runs[0] == runs[1]
    assert runs[0].overlap.value != runs[2].overlap.value


# -- many competitors ----------------------------------------------------------------------------


@pytest.mark.parametrize("q", [pytest.param(0.2, marks=pytest.mark.long), 0.8])
def test_averaging_over_the_lower_competitors(q: float) -> None:
    """All of 2000 competitors against the top 96 of the same draws with the rest averaged.

    What differs is the fluctuation of the rest; its stated variance must account for the spread
    of the difference, and the means agree within the allowance.
    """
    full = draw_fields(2000, 64, 6, top=2000)
    cut = Fields(full.target, full.top[:, :96], 2000.0 - 96)
    exact, averaged = local_quantities(full, q), local_quantities(cut, q)
    difference = averaged.log_z - exact.log_z
    stated = float(np.mean(averaged.rest_variance))
    assert np.var(difference) < 2 * stated
    assert np.var(difference) > stated / 50  # the statement is not empty
    assert abs(difference.mean()) < 5 * difference.std() / math.sqrt(64) + stated
    relative = averaged.gradient / exact.gradient - 1
    assert abs(relative.mean()) < 5 * relative.std() / math.sqrt(64) + stated


def expansion_of_log_probability(competitors: float, q: float, terms: int) -> float:
    """E log Z = -(b^2 + q)/(2V) - log b - log(2 pi V)/2 + log Gamma(1/V) + sum F_n b^-2n."""
    b2 = float(special.lambertw(competitors**2 / (2 * math.pi)).real)
    k = 1.0 / (1.0 - q)
    total = -k * (b2 + q) / 2 - 0.5 * math.log(b2) - 0.5 * math.log(2 * math.pi / k)
    total += float(special.gammaln(k))
    for n, correction in enumerate(on_shell(terms)[1] if terms else [], 1):
        expression = correction.as_expr()
        values = {
            symbol: k if str(symbol) == "a" else special.polygamma(int(str(symbol)[4:]), k)
            for symbol in expression.free_symbols
        }
        total += float(expression.subs(values)) / b2**n
    return total


@pytest.mark.parametrize(("competitors", "q"), [(2000, 0.2), (2000, 0.5), (10**10, 0.5)])
def test_log_probability_against_the_expansion(competitors: int, q: float) -> None:
    """M phi(b) = b. Corrections: of order b^-6 and M^(-(1-q)/(1+q)), allowed once each."""
    estimate = mean_log_probability(competitors, q, samples=400, seed=4)
    b2 = float(special.lambertw(float(competitors) ** 2 / (2 * math.pi)).real)
    allowed = 5 * estimate.stderr + 15 / b2**3 + competitors ** (-(1 - q) / (1 + q))
    assert abs(estimate.value - expansion_of_log_probability(float(competitors), q, 2)) < allowed
    if competitors > 10**6:
        # precise enough to need the first correction of `replica`
        assert allowed < 5e-3
        leading = expansion_of_log_probability(float(competitors), q, 0)
        assert abs(estimate.value - leading) > allowed


def test_asymptotic_formula_leaves_its_range_near_capacity() -> None:
    """At q = 0.8, M = 2000 the expansion parameter M^(-(1-q)/(1+q)) is 0.43: off by about 1."""
    estimate = mean_log_probability(2000, 0.8, samples=400, seed=4)
    formula = expansion_of_log_probability(2000.0, 0.8, 0)
    assert -1.6 < estimate.value - formula < -0.6


def test_overlap_of_ten_billion_facts_against_the_expansion() -> None:
    """q = gamma [b^2 + q - 2 psi(1/(1-q))] below capacity, corrections gamma/b^2 times O(1)."""
    gamma, competitors = 0.01, 10**10
    result = top_one_order_parameters(gamma, competitors, samples=256)
    b2 = float(special.lambertw(1e20 / (2 * math.pi)).real)
    q = 0.4
    for _ in range(100):
        q = gamma * (b2 + q - 2.0 * float(special.digamma(1.0 / (1.0 - q))))
    assert abs(result.overlap.value - q) < 5 * result.overlap.stderr + 5 * gamma / b2
    assert result.overlap.value < 2 * gamma * math.log(
        1e10
    )  # the limit 2 alpha is approached below
