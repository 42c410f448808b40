"""The Gaussian-average calculus against mpmath quadrature, which knows nothing of its rules."""

from __future__ import annotations

from typing import Any

import mpmath
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from replica.errors import InvalidInput
from replica.gaussian import GaussianAverage, Phi, PhiInverse, heat_kernel, phi, plain

x, y = sp.symbols("x y", real=True)
a, b = sp.symbols("a b", real=True)


def quadrature(body: Any, lower: float = -mpmath.inf, upper: float = mpmath.inf) -> mpmath.mpf:
    function = sp.lambdify(x, plain(body), "mpmath")
    ends = [max(lower, -14), -6, -2, 0, 2, 6, min(upper, 14)]
    points = [p for p in ends if ends[0] <= p <= ends[-1]]
    return mpmath.quad(lambda v: function(v) * mpmath.npdf(v), sorted(set(points)))


def number(expression: Any) -> float:
    return float(sp.lambdify([], plain(expression), "mpmath")())


CLOSED = [
    Phi(a * x + b),
    phi(x - a),
    phi(a * x + b) * x**2,
    x**6 * Phi(a * x + b).diff(x),
    x**3 * Phi(a * x + b),
    sp.exp(a * x + b) * x,
    sp.exp(a * x) * Phi(x + b),
    phi(x - a) ** 2,
    Phi(a * x) * Phi(b * x),
    Phi(a * x) ** 3,
    (a + x) ** 4,
]


@pytest.mark.parametrize("body", CLOSED, ids=str)
@pytest.mark.parametrize("values", [(0.7, -0.4), (-1.3, 0.9)])
def test_closed_forms_equal_quadrature(body: Any, values: tuple[float, float]) -> None:
    at = dict(zip((a, b), values, strict=True))
    closed = GaussianAverage(body, x).doit()
    assert not closed.has(GaussianAverage)
    expected = quadrature(body.subs(at))
    assert float(sp.N(closed.subs(at))) == pytest.approx(float(expected), rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("body", [1, x**3, (a - x) ** 2, sp.exp(a * x), phi(x - a) * x], ids=str)
def test_cut_averages_equal_quadrature(body: Any) -> None:
    body = sp.sympify(body)
    for lower, upper in [(-sp.oo, sp.Rational(1, 3)), (sp.Rational(-1, 2), sp.oo), (-1, 2)]:
        closed = GaussianAverage(body, (x, 1, lower, upper)).doit()
        value = sp.N(closed.subs(a, 0.6))
        expected = quadrature(body.subs(a, 0.6), float(lower), float(upper))
        assert float(value) == pytest.approx(float(expected), rel=1e-9)


def test_case_5_convolution_of_density_and_distribution() -> None:
    # int Phi(x - a) phi(x) dx = Phi(-a/sqrt 2), a symbolic
    assert GaussianAverage(Phi(x - a), x).doit() == Phi(-a / sp.sqrt(2))
    # int Phi(x - a) phi(x)^2 dx through the same rules
    value = GaussianAverage(Phi(x - a) * phi(x), x).doit()
    assert value == Phi(-a * sp.sqrt(sp.Rational(2, 3))) * phi(0) / sp.sqrt(2)


def test_case_4_quantile_deep_in_the_tail() -> None:
    u = sp.Float("6.3342483999973e-21", 30)
    value = (-PhiInverse(u / 2) / sp.sqrt(2)).evalf(15)
    assert abs(value - sp.Float("6.635694230013155", 20)) < 1e-13
    assert abs(Phi(PhiInverse(u)).evalf(25) / u - 1) < 1e-20
    assert PhiInverse(1 - sp.Rational(1, 10**30)).evalf(20) == -PhiInverse(
        sp.Rational(1, 10**30)
    ).evalf(20)
    with pytest.raises(InvalidInput):
        PhiInverse(2)


def test_case_6_narrow_and_far_gaussians_keep_their_mass() -> None:
    # total mass over [-1000, 1000], a width of 1e-4 at 0.3 inside [-1, 1], and (-inf, 38]
    whole = GaussianAverage(1, (x, 1, -1000, 1000)).doit()
    width = sp.Rational(1, 10**4)
    centre = sp.Rational(3, 10)
    narrow = GaussianAverage(1, (x, width**2, -1 - centre, 1 - centre)).doit()
    far = GaussianAverage(1, (x, sp.S.Half, -sp.oo, 38)).doit()
    for mass in (whole, narrow, far):
        assert abs(mass.evalf(20) - 1) < 1e-19
    # the weight is kept when a density of width 1e-4 is averaged: E N(x; 0.3, 1e-8)
    value = GaussianAverage(heat_kernel(x, centre, width**2), x)
    as_density = GaussianAverage(phi((x - centre) / width) / width, x).doit()
    assert abs(as_density.evalf(20) - phi(centre / sp.sqrt(1 + width**2)).evalf(20)) < 1e-8
    assert not value.free_symbols


@given(
    power=st.integers(1, 4),
    slope=st.integers(-3, 3),
    variance=st.fractions(min_value="1/4", max_value=3, max_denominator=6),
)
@settings(max_examples=8, deadline=None)
def test_stein_and_shift_leave_the_average_unchanged(power: int, slope: int, variance: Any) -> None:
    s = sp.Rational(str(variance))
    average = GaussianAverage(x * (1 + x) ** power * sp.exp(slope * x / 4), (x, s))
    stein = average.stein(x)
    shifted = average.shift(x, sp.Rational(1, 3))
    reference = number(average.doit())
    assert number(stein.doit()) == pytest.approx(reference, rel=1e-10)
    assert number(shifted.doit()) == pytest.approx(reference, rel=1e-10)


def test_derivative_in_the_variance_is_half_the_second_derivative() -> None:
    # the heat equation, d/ds E f(sqrt(s) z + a) = (1/2) d^2/da^2, both sides by the calculus
    s = sp.Symbol("s", positive=True)
    average = GaussianAverage(Phi(x + a), (x, s))
    left = average.doit().diff(s)
    right = average.doit().diff(a, 2) / 2
    assert sp.expand(left - right).subs({a: 0.3, s: 0.8}).evalf() == pytest.approx(0, abs=1e-15)
    direct = average.diff(s)
    assert sp.N(direct.subs({a: 0.3, s: 0.8})) == pytest.approx(
        float(left.subs({a: 0.3, s: 0.8})), rel=1e-10
    )


def test_bound_variables_are_protected() -> None:
    average = GaussianAverage(Phi(x + a), x)
    assert average.free_symbols == {a}
    assert average.subs(x, 5) == average
    captured = average.subs(a, x)
    assert captured.free_symbols == {x}
    assert captured.doit() == Phi(x / sp.sqrt(2))


def test_bad_limits_are_refused() -> None:
    with pytest.raises(InvalidInput):
        GaussianAverage(x)
    with pytest.raises(InvalidInput):
        GaussianAverage(x, (x + 1, 1))
    with pytest.raises(InvalidInput):
        GaussianAverage(x * sp.cos(x), (x, 1, 0, sp.oo)).stein(x)
