"""Statistical dimension, intrinsic volumes and Var K by routes that share no code with numerics."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erfc, log_ndtr, ndtr

from numerics.balls import Certified, working_precision
from numerics.cone import (
    intrinsic_volumes,
    mean_active,
    statistical_dimension,
    variance_of_active,
)
from numerics.cone.volumes import coefficients, dimension_ball
from replica.errors import InvalidInput

# THEORY.md section 9, M = 1 and 2 exact (printed digits believed correct to 1 in the last place)
REFERENCE = {
    1: "0.5",
    2: "0.83333333333333333",
    3: "1.08773982804591",
    10: "2.09392892798232790",
    100: "4.80675330279255547",
    10**10: "36.2862294754193286",
}

# Each Monte Carlo test below rejects a true statement with probability 6e-7 (|z| > 5, two-sided);
# the seeds are fixed.
Z_LIMIT = 5.0


@pytest.mark.parametrize(("competitors", "text"), REFERENCE.items())
def test_reference_values(competitors: int, text: str) -> None:
    digits = len(text.partition(".")[2])
    delta = statistical_dimension(competitors, 20)
    low, high = delta.bounds
    slack = Fraction(2, 10**digits)  # the entry for 10^10 is 1.25 units off in its last digit
    assert low - slack <= Fraction(text) <= high + slack
    assert high - low < Fraction(1, 10**18)


def test_exact_cases() -> None:
    assert statistical_dimension(1, 1000).contains(Fraction(1, 2))
    assert statistical_dimension(2, 1000).contains(Fraction(5, 6))
    # the general path, which the exact cases bypass, agrees with them
    for competitors, exact in ((1, Fraction(1, 2)), (2, Fraction(5, 6))):
        assert Certified(dimension_ball(competitors, 60)).contains(exact)
    # v_3(3): three of four Gaussians exceed their mean, a trihedral solid angle with equal dihedral
    # angles beta, (3 beta - pi)/(4 pi); the rows of I - J/4 (three of them) have cosine -1/3, so
    # beta = pi - arccos(-1/3)
    volumes = intrinsic_volumes(3, 30)
    with working_precision(150):
        beta = arb.pi() - (-arb(1) / 3).acos()
        exact = (3 * beta - arb.pi()) / (4 * arb.pi())
        assert volumes[3].ball.overlaps(exact)


def k_sum_by_mpmath(competitors: int, digits: int) -> Any:
    """sum_k k v_k with both integrals by mpmath's adaptive quadrature on the unshifted contour."""
    with mp.workdps(2 * digits):
        total = mp.mpf(0)
        for k in range(1, competitors + 1):
            root = mp.sqrt((k + 1) / (2 * mp.pi))

            def active(y: Any, k: int = k) -> Any:
                phi = mp.erfc(mp.mpc(0, -y) / mp.sqrt(2)) / 2
                return mp.re(phi**k) * mp.exp(-(k + 1) * y * y / 2)

            def level(t: Any, k: int = k) -> Any:
                return mp.ncdf(t) ** (competitors - k) * mp.exp(-(k + 1) * t * t / 2)

            grid = mp.linspace(-16, 16, 17)
            a_k = 2 * root * mp.quad(active, grid[8:])
            b_k = root * mp.quad(level, grid)
            total += k * mp.binomial(competitors, k) * a_k * b_k
        return +total


@pytest.mark.parametrize("competitors", [3, 4])
def test_k_sum_at_doubled_precision(competitors: int) -> None:
    delta = statistical_dimension(competitors, 15)
    value = Fraction(mp.nstr(k_sum_by_mpmath(competitors, 16), 22))
    low, high = delta.bounds
    assert low - Fraction(1, 10**20) <= value <= high + Fraction(1, 10**20)


def contour_integral(competitors: int) -> float:
    """delta by the double integral over t and the contour of w: no sum over k at all.

    (1/2 pi i) int dt int dw e^{(w^2-t^2)/2} [2 M X Y^{M-1} + M (M-1) X^2 Y^{M-2}],
    X = e^{-t^2/2} h(w), h = e^{w^2/2} Q(w), Y = Phi(t) + X, on plain equidistant grids.
    """
    m = float(competitors)
    t = np.linspace(-8.0, 12.0, 4001)[:, None]
    c = 2.0 + 0.5 * math.log10(m)
    y = np.linspace(-14.0, 14.0, 561)[None, :]
    w = c + 1j * y
    h = np.exp(w * w / 2) * erfc(w / math.sqrt(2.0)) / 2
    x = np.exp(-t * t / 2) * h
    log_y = log_ndtr(t) + np.log1p(x / ndtr(t))
    bracket = 2 * m * x * np.exp((m - 1) * log_y)
    bracket += m * (m - 1) * x * x * np.exp((m - 2) * log_y)
    integrand = np.exp((w * w - t * t) / 2) * bracket
    total = integrand.sum() * (t[1, 0] - t[0, 0]) * (y[0, 1] - y[0, 0])
    return float(total.real / (2.0 * math.pi))


@pytest.mark.parametrize("competitors", [5, 100, 10_000])
def test_against_the_contour_integral(competitors: int) -> None:
    delta = statistical_dimension(competitors, 15).to_float_lossy()
    assert contour_integral(competitors) == pytest.approx(delta, rel=1e-9)


def squared_distances(z: Any, margin: float = 0.0) -> tuple[Any, Any]:
    """dist^2 to the cone and the number of active competitors, by sorting (rows are samples)."""
    z0, rivals = z[:, 0], -np.sort(-z[:, 1:], axis=1)
    steps = np.arange(1, rivals.shape[1] + 1)
    # with k active t = (z0 - m + sum of the k largest)/(k+1); K is the last k with t < z_(k)
    levels = ((z0 - margin)[:, None] + np.cumsum(rivals, axis=1)) / (steps + 1)
    active = (rivals > levels).sum(axis=1)
    start = np.where(active == 0, z0 - margin, levels[np.arange(len(z)), active - 1])
    gaps = np.maximum(rivals - start[:, None], 0.0)
    return (start - (z0 - margin)) ** 2 + (gaps**2).sum(axis=1), active


@pytest.mark.parametrize(
    ("competitors", "margin", "seed"),
    [(1, 0, 1), (4, 0, 2), (30, 0, 3), (300, 0, 4), (4, "0.5", 5), (30, "1.25", 6), (300, 3, 7)],
)
def test_monte_carlo(competitors: int, margin: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    samples = 4_000_000 // (competitors + 4)
    z = rng.standard_normal((samples, competitors + 1))
    squares, active = squared_distances(z, float(Fraction(margin)))
    for sample, exact in (
        (squares, statistical_dimension(competitors, 10, margin=margin)),
        (active.astype(float), mean_active(competitors, 10, margin=margin)),
    ):
        error = sample.std() / math.sqrt(samples)
        assert abs(sample.mean() - exact.to_float_lossy()) < Z_LIMIT * error
    variance = variance_of_active(competitors, 10, margin=margin).to_float_lossy()
    centred = (active - active.mean()) ** 2
    assert abs(centred.mean() - variance) < Z_LIMIT * centred.std() / math.sqrt(samples)


def test_monte_carlo_notices_a_wrong_constant() -> None:
    """The test above rejects delta off by 3 % at M = 30 (the shift is 10 standard errors)."""
    rng = np.random.default_rng(3)
    samples = 4_000_000 // 34
    squares, _ = squared_distances(rng.standard_normal((samples, 31)))
    wrong = 1.03 * statistical_dimension(30).to_float_lossy()
    assert abs(squares.mean() - wrong) > Z_LIMIT * squares.std() / math.sqrt(samples)


@given(
    st.one_of(st.integers(1, 60), st.integers(61, 10**7)),
    st.integers(3, 25),
    st.sampled_from([Fraction(0), Fraction(0), Fraction(1, 3), Fraction(2)]),
)
@settings(max_examples=25, deadline=None)
def test_enclosures_at_two_precisions_overlap(m: int, digits: int, margin: Fraction) -> None:
    rough = statistical_dimension(m, digits, margin=margin)
    fine = statistical_dimension(m, digits + 14, margin=margin)
    assert rough.overlaps(fine)
    for number, places in ((rough, digits), (fine, digits + 14)):
        low, high = number.bounds
        assert high - low <= 2 * low * Fraction(1, 10**places)
    # delta increases with M; the gap shrinks like 2/M, so ask for digits enough to see it
    more = statistical_dimension(m + 1 + m // 7, digits + 14, margin=margin)
    assert more > fine


@given(st.one_of(st.integers(1, 40), st.integers(41, 10**5)), st.integers(3, 25))
@settings(max_examples=15, deadline=None)
def test_volumes_are_a_law_with_the_right_moments(m: int, digits: int) -> None:
    volumes = intrinsic_volumes(m, digits)
    assert volumes.total().contains(1)
    assert volumes.tail_bound.bounds[1] < Fraction(1, 10**digits)
    assert volumes[0].contains(Fraction(1, m + 1))
    bits = 4 * digits + 80
    with working_precision(bits):
        balls = [v.ball for v in volumes]
        tail = volumes.tail_bound.ball
        alternating = sum(((-1) ** k * v for k, v in enumerate(balls)), arb(0))
        mean = sum((k * v for k, v in enumerate(balls)), arb(0))
        # Gauss-Bonnet: the alternating sum of conic intrinsic volumes vanishes
        assert (alternating + arb(0, tail.upper())).contains(0)
        # what the tail adds to the mean is below (k_max + 1) times ten times its mass
        slack = arb(0, (10 * (len(balls) + 1) * tail).upper())
        assert (mean + slack).overlaps(statistical_dimension(m, digits).ball)
    assert all(v.bounds[1] > 0 for v in volumes)
    assert (volumes.k_max == m) == (volumes.tail_bound == 0)


def test_largest_numbers_and_growth_with_digits() -> None:
    delta = statistical_dimension("1e100", 40)
    # a second choice of every parameter (digits 12) encloses the same number
    assert delta.overlaps(statistical_dimension(10**100, 12))
    assert str(delta).startswith("443.38240635834064475")
    long = statistical_dimension(1000, 120)
    assert long.digits >= 119
    assert long.overlaps(statistical_dimension(1000, 11))


@pytest.mark.long
def test_ten_to_the_thousand() -> None:
    delta = statistical_dimension("10^1000", 20)
    assert delta.overlaps(statistical_dimension("10^1000", 12))
    # the expansion in 1/T^2 (T = 67.66...) agrees: T^2 + 3 - 9/T^2 + 113/(2 T^4) - 1015/(2 T^6)
    level = 67.6612438404716
    series = level**2 + 3 - 9 / level**2 + 56.5 / level**4 - 507.5 / level**6
    assert delta.to_float_lossy() == pytest.approx(series, rel=1e-10)


@pytest.mark.long
def test_a_thousand_digits() -> None:
    delta = statistical_dimension(50, 1000)
    assert delta.digits >= 999
    assert delta.overlaps(statistical_dimension(50, 60))


def test_margin_zero_is_continuous_and_increasing() -> None:
    base = statistical_dimension(50, 20)
    near = statistical_dimension(50, 20, margin="1e-12")
    assert near > base
    assert (near - base) < Fraction(1, 10**9)
    assert statistical_dimension(50, 20, margin=2) > statistical_dimension(50, 20, margin=1)


def test_margin_with_one_competitor_is_a_shifted_halfspace() -> None:
    """M = 1: dist = (m - z0 + z1)_+/sqrt 2, so delta = E (a - g)_+^2 with a = m/sqrt 2."""
    for margin in (Fraction(1, 2), Fraction(2), Fraction(7)):
        with mp.workdps(40):
            a = mp.mpf(margin.numerator) / margin.denominator / mp.sqrt(2)
            exact = (1 + a * a) * mp.ncdf(a) + a * mp.npdf(a)
            text = mp.nstr(exact, 30)
        delta = statistical_dimension(1, 25, margin=margin)
        low, high = delta.bounds
        assert low - Fraction(1, 10**22) < Fraction(text) < high + Fraction(1, 10**22)
        assert high - low < Fraction(1, 10**20)


def test_precision_does_not_leak() -> None:
    before = ctx.prec
    statistical_dimension(17, 33)
    intrinsic_volumes(17, 33)
    variance_of_active(17, 33)
    assert ctx.prec == before


def test_variance_by_the_volumes_and_exactly() -> None:
    assert variance_of_active(1, 30).contains(Fraction(1, 4))
    # M = 2: v = (1/3, 1/2, 1/6)
    assert variance_of_active(2, 30).contains(Fraction(17, 36))
    assert coefficients(2, 40.0).cut.generating is None


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"competitors": 0}, "competitors is 0"),
        ({"competitors": -5}, "competitors is -5"),
        ({"competitors": "many"}, "competitors is many"),
        ({"competitors": 10**1001}, "10\\^1000"),
        ({"competitors": 5, "digits": 0}, "digits is 0"),
        ({"competitors": 5, "digits": 10_001}, "10000"),
        ({"competitors": 5, "digits": 2.5}, "digits is 2.5"),
        ({"competitors": 5, "margin": float("nan")}, "margin is nan"),
        ({"competitors": 5, "margin": float("inf")}, "margin is inf"),
        ({"competitors": 5, "margin": -1}, "margin is -1"),
        ({"competitors": 5, "margin": "wide"}, "margin is wide"),
    ],
)
def test_bad_input(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        statistical_dimension(**arguments)
