"""The spectral weight I(rank_ratio) against quadrature of the laws and against random matrices."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import sympy as sp
from scipy.integrate import quad
from scipy.optimize import brentq

from replica.errors import InvalidInput
from replica.gaussian import plain
from replica.priors.low_rank import LowRank
from replica.priors.spectrum import (
    SpectralWeight,
    expansion_at_one,
    expansion_at_zero,
    marchenko_pastur,
    mass_above,
    theta,
    weight_above,
)
from replica.symbols import aspect_ratio, q, rank_ratio

k = rank_ratio


def weight_by_quadrature(rank: float, aspect: float) -> float:
    """Cut and weight of the Marchenko-Pastur law by numeric integration in x alone."""
    top, bottom = (1 + aspect**0.5) ** 2, (1 - aspect**0.5) ** 2

    def density(x: float) -> float:
        return np.sqrt(max((top - x) * (x - bottom), 0)) / (2 * np.pi * aspect * x)

    cut = brentq(lambda a: quad(density, a, top, limit=200)[0] - rank, bottom + 1e-12, top)
    return quad(lambda x: x * density(x), cut, top, limit=200)[0]


@pytest.mark.parametrize("rank", [0.05, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("aspect", [1, sp.Rational(1, 3)])
def test_weight_equals_quadrature(rank: float, aspect: object) -> None:
    value = float(SpectralWeight(sp.Rational(str(rank)), aspect).evalf(15))
    assert value == pytest.approx(weight_by_quadrature(rank, float(aspect)), rel=2e-7)


def test_known_values_of_the_square_case() -> None:
    value = SpectralWeight(sp.Rational(1, 2), 1).evalf(20)
    # t - sin t = pi/2 solved apart by mpmath
    t = mpmath.findroot(lambda v: v - mpmath.sin(v) - mpmath.pi / 2, 2.3)
    assert abs(value - (t - mpmath.sin(t) * mpmath.cos(t)) / mpmath.pi) < 1e-14
    assert round(float(SpectralWeight(sp.Rational(1, 4), 1)), 4) == 0.6229
    assert SpectralWeight(1, aspect_ratio) == 1
    # THEORY: a = 2 sin(t), rank = 1 - (2/pi)(t + sin(2t)/2), I = 1 - (2/pi)(t - sin(4t)/4)
    t = 0.3
    angle = sp.pi - 2 * t
    assert float(mass_above(angle, 1)) == pytest.approx(1 - 2 / np.pi * (t + np.sin(2 * t) / 2))
    expected = 1 - 2 / np.pi * (t - np.sin(4 * t) / 4)
    assert float(weight_above(angle)) == pytest.approx(expected)


def test_largest_singular_values_of_a_random_matrix() -> None:
    # finite-size fluctuations of linear statistics are O(1/d) with d = 100: 0.015 is several
    d_out, d_in = 100, 250
    g = np.random.default_rng(3).standard_normal((d_out, d_in)) / np.sqrt(d_in)
    squares = np.sort(np.linalg.svd(g, compute_uv=False) ** 2)[::-1]
    for rank in (0.1, 0.5, 0.8):
        share = squares[: int(rank * d_out)].sum() / squares.sum()
        value = float(SpectralWeight(sp.Rational(str(rank)), sp.Rational(2, 5)).evalf(12))
        assert share == pytest.approx(value, abs=0.015)


def test_expansions() -> None:
    small, near = sp.Rational(1, 10**6), 1 - sp.Rational(1, 10**4)
    value = SpectralWeight(small, 1).evalf(40)
    for order, exponent in [(1, 5), (2, 7)]:
        error = abs(value - expansion_at_zero(order).subs(k, small).evalf(40))
        assert error < 10 * float(small) ** (exponent / 3)
        assert error > 0.05 * float(small) ** (exponent / 3)  # the order is not better than claimed
    value = SpectralWeight(near, 1).evalf(40)
    for order, exponent in [(1, 5), (2, 7)]:
        error = abs(value - expansion_at_one(order).subs(k, near).evalf(40))
        assert error < 1e-4**exponent
    assert expansion_at_zero(1) == 4 * k
    slope = expansion_at_zero(1, aspect_ratio) / k
    assert sp.expand(slope - (1 + sp.sqrt(aspect_ratio)) ** 2) == 0


def test_derivative_in_the_rank_is_the_squared_singular_value_at_the_cut() -> None:
    slope = SpectralWeight(k, 1).diff(k).subs(k, sp.Rational(1, 2)).evalf(15)
    step = 1e-5
    ends = [float(SpectralWeight(sp.Rational(str(0.5 + s)), 1).evalf(20)) for s in (step, -step)]
    assert float(slope) == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-6)


def test_layer_cake_integral_is_the_same_number() -> None:
    integral = plain(SpectralWeight(k, 1))
    function = sp.lambdify(theta, integral.function.subs(k, 0.5), "numpy")
    value, _ = quad(function, 0, np.pi, points=[2.3098814600100573])
    assert value == pytest.approx(0.893730793877982, abs=1e-10)


def test_marchenko_pastur_has_mass_and_mean_one() -> None:
    density = sp.lambdify("x", marchenko_pastur(sp.Symbol("x"), sp.Rational(1, 3)), "numpy")
    ends = ((1 - 3**-0.5) ** 2, (1 + 3**-0.5) ** 2)
    assert quad(density, *ends)[0] == pytest.approx(1, abs=1e-7)
    assert quad(lambda x: x * density(x), *ends)[0] == pytest.approx(1, abs=1e-7)


def test_full_rank_is_the_sphere() -> None:
    from replica.priors.spherical import Spherical

    assert sp.cancel((LowRank(rank_ratio=1).entropy() - Spherical().entropy()).diff(q)) == 0
    assert LowRank(rank_ratio=1).tangent_fraction == 1


@pytest.mark.parametrize("bad", [{"rank_ratio": 0}, {"rank_ratio": 2}, {"aspect_ratio": 3}])
def test_bad_ratios_are_refused(bad: dict[str, int]) -> None:
    with pytest.raises(InvalidInput, match="must lie in"):
        LowRank(**bad)
    with pytest.raises(InvalidInput, match="must lie in"):
        SpectralWeight(sp.Rational(3, 2), 1)
