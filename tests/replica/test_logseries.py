"""The ring of series in 1/L and log L: axioms, special functions, remainders, refusals."""

from __future__ import annotations

from fractions import Fraction

import mpmath as mp
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from replica.errors import InvalidInput
from replica.logseries import LogSeries, LogSeriesRing

RING = LogSeriesRing(3, [sp.log(2)])
KEYS = st.tuples(st.sampled_from([Fraction(n, 2) for n in range(-6, 3)]), st.integers(-1, 2))
COEFFICIENTS = st.one_of(
    st.integers(-4, 4),
    st.fractions(min_value=-2, max_value=2, max_denominator=4),
    st.just(sp.log(2)),
)


@st.composite
def series(draw: st.DrawFn, *, vanishing: bool = False) -> LogSeries:
    """A random element, with or without an O-term."""
    result = RING.zero
    for (power, log_power), c in draw(st.dictionaries(KEYS, COEFFICIENTS, max_size=4)).items():
        shift = Fraction(7, 2) if vanishing and power > -Fraction(1, 2) else Fraction(0)
        result = result + RING.monomial(power - shift, log_power, c)
    if draw(st.booleans()):
        key = draw(KEYS)
        result = result + RING.big_o(min(key[0], Fraction(-1, 2)), key[1])
    return result


def agree(first: LogSeries, second: LogSeries) -> bool:
    """Equality up to the coarser of the two O-terms."""
    return (first - second).terms == {}


@given(series(), series(), series())
@settings(max_examples=50, deadline=None)
def test_ring_axioms(f: LogSeries, g: LogSeries, h: LogSeries) -> None:
    assert f + g == g + f
    assert (f + g) + h == f + (g + h)
    assert f * g == g * f
    assert agree((f * g) * h, f * (g * h))
    assert agree(f * (g + h), f * g + f * h)
    assert f * RING.constant(1) == f
    assert f + RING.zero == f
    assert agree(f - f, RING.zero)


@given(series(vanishing=True), st.fractions(-2, 2, max_denominator=3))
@settings(max_examples=40, deadline=None)
def test_functions_invert_each_other(u: LogSeries, r: Fraction) -> None:
    f = 1 + u
    assert agree(f.inverse() * f, RING.constant(1))
    assert agree(f.log().exp(), f)
    assert agree(u.exp().log(), u)
    assert agree(f.power(r) * f.power(-r), RING.constant(1))
    assert agree(f.power(r).log(), r * f.log())


@given(series(vanishing=True), series(vanishing=True))
@settings(max_examples=40, deadline=None)
def test_logarithm_of_a_product(u: LogSeries, v: LogSeries) -> None:
    f, g = RING.L * (1 + u), 2 * RING.L**2 * (1 + v)
    assert agree((f * g).log(), f.log() + g.log())


@given(
    st.dictionaries(st.tuples(st.integers(-2, -1), st.integers(0, 2)), COEFFICIENTS, max_size=3),
    st.sampled_from([1, 2, Fraction(1, 2)]),
)
@settings(max_examples=8, deadline=None)
def test_reversion_composes_to_the_identity(
    terms: dict[tuple[int, int], object], power: Fraction
) -> None:
    ring = LogSeriesRing(2, [sp.log(2)])
    u = sum((ring.monomial(e, k, c) for (e, k), c in terms.items()), ring.zero)
    f = ring.monomial(power) * (1 + u)
    assert agree(f(f.reversion()), ring.L)


@pytest.mark.parametrize("big", [1e40, 1e90])
def test_remainder_is_respected_numerically(big: float) -> None:
    """f = (L + ell)^(-3/2) log(L + 2 ell): |exact - known| / scale stays of order one."""
    ring = LogSeriesRing(4)
    f = (ring.L + ring.ell).power(Fraction(-3, 2)) * (ring.L + 2 * ring.ell).log()
    assert f.remainder is not None
    size = mp.mpf(big)
    with mp.workdps(400):
        ell = mp.log(size)
        exact = (size + ell) ** mp.mpf("-1.5") * mp.log(size + 2 * ell)
        known = sum(
            mp.mpf(int(c.p)) / int(c.q) * size ** (mp.mpf(p.numerator) / p.denominator) * ell**k
            for p, k, c in f.items()
        )
        power, log_power = f.remainder
        scale = size ** (mp.mpf(power.numerator) / power.denominator) * ell**log_power
        ratio = abs(exact - known) / scale
    assert 1e-4 < ratio < 50


def test_case_1_square_root_of_lambert_w() -> None:
    """CASES 1: sqrt(W(n^2)) at n = 10^6 is 4.94317756154226."""
    ring = LogSeriesRing(8, [sp.log(2)], [sp.sqrt(2)])
    root = ring.lambert_w(2 * ring.L).power(Fraction(1, 2))
    size = mp.log(10**6)
    value = root.as_expr().subs({ring.symbol: size, ring.log_symbol: mp.log(size)}).evalf(30)
    assert abs(float(value) - 4.94317756154226) < 1e-10
    # second route: mpmath's own W, farther out where the series is better still
    with mp.workdps(40):
        size = mp.mpf(400)
        exact = mp.sqrt(mp.lambertw(mp.exp(2 * size)).real)
        value = root.as_expr().subs({ring.symbol: size, ring.log_symbol: mp.log(size)}).evalf(40)
        assert abs(mp.mpf(str(value)) - exact) < mp.mpf(10) ** -15


def test_case_1_limits_of_lambert_w() -> None:
    """CASES 1: W(n)/log n -> 1 and log W(n)/log log n -> 1."""
    ring = LogSeriesRing(2)
    w = ring.lambert_w(ring.L)
    assert (w / ring.L).leading_term() == ring.constant(1)
    assert (w.log() / ring.ell).leading_term() == ring.constant(1)


def test_case_3_absorption() -> None:
    """CASES 3: O(L log L + L) = O(L log L); an O-term absorbs every smaller term."""
    ring = LogSeriesRing(3)
    wanted = ring.big_o(1, 1)
    assert ring.big_o(1, 1) + ring.big_o(1) == wanted
    assert wanted + ring.L == wanted
    assert wanted + 5 * ring.L * ring.ell == wanted
    assert wanted + ring.ell.power(7) == wanted
    kept = wanted + ring.L * ring.ell.power(2)
    assert kept.coefficient(1, 2) == 1


def test_lambert_coefficients_are_stirling_numbers() -> None:
    """Known expansion: W = L - ell + sum_{k, m} (-1)^k [k+m, k+1] ell^m / (m! L^(k+m))."""
    from sympy.functions.combinatorial.numbers import stirling

    ring = LogSeriesRing(6)
    w = ring.lambert_w(ring.L)
    for n in range(1, 7):
        for m in range(1, n + 1):
            k = n - m
            expected = (-1) ** k * stirling(n, k + 1, kind=1) / sp.factorial(m)
            assert w.coefficient(-n, m) == expected


def test_refusals_say_what_to_do() -> None:
    ring = LogSeriesRing(2)
    other = LogSeriesRing(2, [sp.log(2)])
    cases = [
        lambda: ring.L + other.L,
        lambda: ring.ell.log(),
        lambda: (ring.ell + 1).inverse(),
        lambda: ring.L.exp(),
        lambda: ring.big_o(0).inverse(),
        lambda: (1 / ring.L)(1 / ring.L),
        lambda: (2 * ring.L).log(),
        lambda: ring.lambert_w(1 / ring.L),
        lambda: ring.fixed_point(lambda x: 2 * x, ring.big_o(0)),
        lambda: (ring.L + ring.big_o(-1)).coefficient(-1),
        lambda: LogSeriesRing(-1),
    ]
    for case in cases:
        with pytest.raises(InvalidInput) as caught:
            case()
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) > 20


def test_contraction_is_proved_by_the_remainder() -> None:
    """A start that does not contain the solution is noticed, as is a missing contraction."""
    ring = LogSeriesRing(2, [sp.log(2)])
    with pytest.raises(InvalidInput, match="outside"):
        ring.fixed_point(lambda w: ring.L - w.log(), 2 * ring.L + ring.big_o(0, 1))
    with pytest.raises(InvalidInput, match="contract"):
        ring.fixed_point(lambda x: x * sp.Rational(1, 2), ring.big_o(0))


def test_printing_reads_back() -> None:
    ring = LogSeriesRing(2, [sp.log(2)])
    f = ring.lambert_w(2 * ring.L)
    head = str(f).split(" + O(")[0]
    back = sp.sympify(head, {"L": ring.symbol, "ell": ring.log_symbol})
    assert sp.expand(back - f.as_expr()) == 0
    assert r"O\left(" in f.latex()
