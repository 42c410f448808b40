"""The SymPy -> Arb evaluator against closed forms, mpmath and the known traps of other tools."""

from __future__ import annotations

import copy
import json
import pickle
from fractions import Fraction

import mpmath
import pytest
import sympy as sp
from flint import acb, arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from numerics.balls import Certified, working_precision
from numerics.certify import CertifiedComplex, NotCertified, certify
from numerics.evaluator import compile_program
from numerics.majorant import bound_above
from replica.errors import InvalidInput
from replica.gaussian import GaussianAverage, Phi, phi

x, y = sp.symbols("x y", real=True)
z = sp.Symbol("z")


def encloses(certified: Certified, exact: sp.Expr) -> bool:
    """Does the enclosure contain the number, to 60 digits by mpmath?"""
    low, high = certified.bounds
    value = sp.Rational(str(sp.N(exact, 60)))
    slack = sp.Rational(1, 10**50)
    return sp.Rational(low) - slack <= value <= sp.Rational(high) + slack


@pytest.mark.parametrize(
    ("integral", "exact"),
    [
        (sp.Integral(phi(x), (x, -1000, 1000)), sp.Integer(1)),
        (
            sp.Integral(10**4 * phi(10**4 * (x - sp.Rational(3, 10))), (x, -1, 1)),
            sp.Integer(1),
        ),
        (sp.Integral(sp.exp(-(x**2)), (x, -sp.oo, 38)), sp.sqrt(sp.pi)),
        (sp.Integral(sp.sqrt(z), (z, 0, 1)), sp.Rational(2, 3)),
        (sp.Integral(sp.sqrt(z**2), (z, -1, 1)), sp.Integer(1)),
        (sp.Integral(x**3 * sp.exp(-x), (x, 0, sp.oo)), sp.Integer(6)),
        (GaussianAverage(sp.log(Phi(x)), x), sp.Integer(-1)),
        (GaussianAverage(Phi(x) ** 100, x), sp.Rational(1, 101)),
        (GaussianAverage(Phi(x) ** 10**30, x), 1 / sp.Integer(10**30 + 1)),
        (GaussianAverage(Phi(x - 3), x), sp.erfc(sp.Rational(3, 2)) / 2),
        (GaussianAverage(x**4, x), sp.Integer(3)),
        (GaussianAverage(sp.exp(x / 3), x), sp.exp(sp.Rational(1, 18))),
        (GaussianAverage(1 / (1 + x**2), x), sp.sqrt(sp.pi * sp.E / 2) * sp.erfc(1 / sp.sqrt(2))),
    ],
)
def test_integrals_enclose_their_closed_form(integral: sp.Expr, exact: sp.Expr) -> None:
    result = certify(integral, 20, real=True)
    assert encloses(result, exact)
    low, high = result.bounds
    assert high - low <= abs(high) * 2 * sp.Rational(1, 10**20)


def test_branch_point_at_both_ends() -> None:
    value = certify(
        sp.Integral((1 - z) ** sp.Rational(1, 2) * (1 + z) ** sp.Rational(3, 10), (z, 0, 1)),
        18,
        real=True,
    )
    assert value.to_string(18).startswith("0.73479368159574486")


def test_ignoring_the_analytic_flag_would_be_seen() -> None:
    """The trap itself: without the flag Arb returns a tight wrong ball; ours contains 2/3."""
    body = compile_program(sp.sqrt(z))
    with working_precision(80):
        wrong = acb.integral(lambda t, _: body({z: t}, False), 0, 1)
        right = acb.integral(lambda t, analytic: body({z: t}, analytic), 0, 1)
        assert not wrong.real.contains(arb(2) / 3)
        assert right.real.contains(arb(2) / 3)


@pytest.mark.parametrize(
    "expression",
    [sp.log(z), sp.sqrt(z), z ** sp.Rational(1, 3), sp.loggamma(z), sp.LambertW(z), abs(z)],
)
def test_a_cut_gives_no_finite_ball_when_analyticity_is_asked(expression: sp.Expr) -> None:
    straddling = acb(arb(-1, 2), arb(0, 0.5))
    assert not compile_program(expression)({z: straddling}, True).is_finite()
    away = acb(arb(3, 0.5), arb(1, 0.5))
    assert compile_program(expression)({z: away}, True).is_finite()


def test_deep_tails_and_complex_arguments() -> None:
    q = sp.Rational("6.3342483999973e-21")
    assert certify(sp.erfcinv(q), 16).to_string(16).startswith("6.63569423001315")
    assert certify(sp.erfinv(1 - q), 16).to_string(16).startswith("6.63569423001315")
    value = certify(Phi(1 + sp.I / 2), 20)
    assert isinstance(value, CertifiedComplex)
    with mpmath.workdps(30):
        expected = mpmath.erfc(-mpmath.mpc(1, 0.5) / mpmath.sqrt(2)) / 2  # its ncdf crashes
        assert abs(expected.real - mpmath.mpf(value.real.to_string(25))) < mpmath.mpf(10) ** -19
        assert abs(expected.imag - mpmath.mpf(value.imag.to_string(25))) < mpmath.mpf(10) ** -19
    with pytest.raises(NotCertified, match="5 digits could not be proved"):
        certify(Phi(-(sp.Integer(10) ** 155)), 5)
    with pytest.raises(InvalidInput, match="binary exponent of 310 digits"):
        certify(Phi(-1e155), 5)  # SymPy evaluates this one; its float has a gigantic exponent
    assert certify(Phi(-10), 15).to_string(15).startswith("7.619853024160")


def test_floats_stand_for_their_exact_binary_value() -> None:
    assert certify(sp.Float(0.1), 30).contains(Fraction(0.1))
    assert certify(sp.Float(-2.5), 30) == Fraction(-5, 2)
    assert certify(sp.Float(2.0**-1000) * z, 20, {z: 2**1000}) == 1


def test_case_10_a_complex_number_is_stored_and_sent() -> None:
    value = certify(sp.exp(sp.I), 20)
    back = CertifiedComplex.from_json(json.loads(json.dumps(value.to_json())))
    for other in (back, pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):
        assert other.real.same_enclosure(value.real)
        assert other.imag.same_enclosure(value.imag)
        assert hash(other) == hash(value)
    with pytest.raises(InvalidInput, match="'real' and 'imag'"):
        CertifiedComplex.from_json({"real": {"value": "1", "radius": "0"}})


def test_case_5_convolution_by_quadrature_at_the_value_of_a() -> None:
    """CASES 5: int Phi(x - a) phi(x) dx = Phi(-a/sqrt 2); the integral knows no such rule."""
    a = sp.Symbol("a", real=True)
    integral = GaussianAverage(Phi(x - a), x)
    for point in (-40, sp.Rational(-1, 3), 0, 7, 60):
        left = certify(integral.as_integral(), 15, {a: point})
        assert left.overlaps(certify(Phi(-point / sp.sqrt(2)), 20))


def test_root_of_lambert_w() -> None:
    assert (
        certify(sp.sqrt(sp.LambertW(sp.Integer(10) ** 12)), 15)
        .to_string(15)
        .startswith("4.94317756154226")
    )


@pytest.mark.long
def test_double_integral_against_scipy() -> None:
    from scipy.integrate import dblquad
    from scipy.stats import norm

    with working_precision(24):
        ball = compile_program(GaussianAverage(Phi(x + y) ** 2, x, y).as_integral())({})
    value, error = dblquad(
        lambda a, b: norm.pdf(a) * norm.pdf(b) * norm.cdf(a + b) ** 2, -9, 9, -9, 9, epsabs=1e-9
    )
    assert abs(float(ball.real.mid()) - value) < 1e-8 + error + float(ball.real.rad())


@given(
    a=st.fractions(-3, 3, max_denominator=50),
    b=st.fractions(-3, 3, max_denominator=50),
    digits=st.integers(5, 40),
)
@settings(max_examples=25, deadline=None)
def test_convolution_rule_and_quadrature_agree(a: object, b: object, digits: int) -> None:
    """E Phi(a x + b) = Phi(b / sqrt(1 + a^2)): closed form and integral share no code."""
    a, b = sp.Rational(a), sp.Rational(b)
    integral = certify(GaussianAverage(Phi(a * x + b), x).as_integral(), digits)
    closed = certify(Phi(b / sp.sqrt(1 + a**2)), digits)
    assert integral.overlaps(closed)


@given(
    slope=st.fractions(-2, 2, max_denominator=20),
    offset=st.fractions(-2, 2, max_denominator=20),
    power=st.integers(0, 3),
    point=st.fractions(50, 60, max_denominator=100),
)
@settings(max_examples=60, deadline=None)
def test_majorants_are_upper_bounds(
    slope: object, offset: object, power: int, point: object
) -> None:
    slope, offset, point = (sp.Rational(v) for v in (slope, offset, point))
    w = slope * x + offset
    start = arb(50)

    def evaluate(e: sp.Expr) -> acb:
        return compile_program(e)({})

    for f in (
        x**power * Phi(w) * sp.exp(-(w**2) / 3),
        sp.exp(sp.I * w) + Phi(w) ** 2,
        phi(w) / Phi(-x),
        sp.log(Phi(w)),
        Phi(sp.I * x + offset),
        sp.cos(w) / (x**2 + 1),
    ):
        bound = bound_above(f, x, start, evaluate)
        t = arb(sp.Rational(point).p) / arb(sp.Rational(point).q)
        size = bound.log_c + bound.n * t.log() + bound.b * t - bound.a * t**2
        value = compile_program(f)({x: acb(t)})
        exact = (value.real**2 + value.imag**2).sqrt()
        assert not exact > size.exp(), f


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: certify(sp.zeta(3)), "zeta has no rigorous evaluation"),
        (lambda: certify(z), "the symbol z has no value"),
        (lambda: certify(z, values={z: 0.5}), "is a float"),
        (lambda: certify(z, 0, {z: 1}), "digits is 0"),
        (lambda: certify(z, 20_000, {z: 1}), "from 1 to 10000"),
        (lambda: certify(sp.Integral(1 / (1 + x**2), (x, 0, sp.oo))), "provably converge"),
        (lambda: certify(sp.Integral(sp.gamma(x), (x, 1, sp.oo))), "tail of the integral"),
        (lambda: certify(sp.Sum(z, (z, 1, 10**7))), "at most 1000000"),
        (lambda: certify(sp.I, real=True), "is not real"),
        (lambda: certify(sp.Integral(sp.exp(x), x)), "has no limits"),
    ],
)
def test_refusals_are_one_sentence(call: object, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence) as caught:
        call()  # type: ignore[operator]
    assert "\n" not in str(caught.value)


def test_a_divergent_integral_is_not_certified() -> None:
    with pytest.raises(NotCertified, match="could not be proved"):
        certify(sp.Integral(1 / z, (z, -1, 1)))


def test_precision_does_not_leak() -> None:
    before = ctx.prec
    certify(GaussianAverage(Phi(x) ** 3, x), 80)
    assert ctx.prec == before


def test_certified_values_pass_through() -> None:
    third = certify(sp.Rational(1, 3), 30)
    assert encloses(certify(3 * z, 25, {z: third}), sp.Integer(1))
    blurred = Certified.from_decimal("0.5", "1e-6")
    with pytest.raises(NotCertified):
        certify(z, 10, {z: blurred})
