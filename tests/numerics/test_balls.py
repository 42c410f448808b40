"""Certified numbers: printing, arithmetic, comparisons, storage (cases 10 of CASES.md)."""

from __future__ import annotations

import copy
import json
import multiprocessing
import pickle
from fractions import Fraction

import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from numerics.balls import Certified, Undecided, working_precision
from replica.errors import InvalidInput

fractions = st.fractions(min_value=-1000, max_value=1000, max_denominator=10**6)
small = st.integers(1, 40)


def ball_around(centre: Fraction, digits: int) -> Certified:
    """An enclosure of `centre` of radius about 10^-digits whose midpoint is off centre."""
    with working_precision(300):
        middle = arb(centre.numerator) / arb(centre.denominator)
        radius = arb(10) ** -digits
        return Certified(middle + radius / 3 + arb(0, radius.upper()))


@given(fractions, fractions, small, small)
@settings(max_examples=150, deadline=None)
def test_arithmetic_encloses_the_exact_result(x: Fraction, y: Fraction, p: int, q: int) -> None:
    a, b = ball_around(x, p), ball_around(y, q)
    assert (a + b).contains(x + y)
    assert (a - b).contains(x - y)
    assert (a * b).contains(x * y)
    assert (a + y).contains(x + y)
    assert (3 - a).contains(3 - x)
    assert (-a).contains(-x)
    assert abs(a).contains(abs(x))
    if abs(y) > Fraction(1, 10) ** (q - 1):
        assert (a / b).contains(x / y)


@given(fractions, small)
@settings(max_examples=150, deadline=None)
def test_storage_keeps_the_enclosure(x: Fraction, p: int) -> None:
    a = ball_around(x, p)
    back = Certified.from_json(json.loads(json.dumps(a.to_json())))
    for other in (back, pickle.loads(pickle.dumps(a)), copy.deepcopy(a), copy.copy(a)):
        assert other.same_enclosure(a)
        assert hash(other) == hash(a)
        assert other.bounds == a.bounds
        assert other.ball.overlaps(a.ball)
    low, high = a.bounds
    assert low <= x <= high
    # the decimals lose next to nothing: the radius is at most 2 % above that of the ball
    assert high - low <= Fraction(102, 100) * 2 * Fraction(1, 10**p)


@given(fractions, small)
@settings(max_examples=200, deadline=None)
def test_printed_digits_are_correctly_rounded(x: Fraction, p: int) -> None:
    a = ball_around(x, p)
    text = a.to_string()
    if text.startswith("["):
        assert a.digits == 0
        return
    last = Fraction(10) ** _last_place(text)
    assert abs(Fraction(text) - x) <= last / 2
    shorter = a.to_string(2)
    if not shorter.startswith("["):
        assert abs(Fraction(shorter) - x) <= Fraction(10) ** _last_place(shorter) / 2


def _last_place(text: str) -> int:
    mantissa, _, power = text.partition("e")
    return int(power or 0) - len(mantissa.partition(".")[2])


def test_no_digit_beyond_what_is_proved() -> None:
    a = Certified.from_decimal("0.123456789", "1e-5")
    assert str(a) == "0.123"  # 0.12345 and 0.12347 already round differently at four
    assert a.digits == 3
    assert str(Certified.from_decimal("0.5", "0.7")) == "[0.5 +/- 0.7]"
    assert str(Certified.from_decimal("2.0005", "1e-9")) == "2.00050000"
    assert str(Certified(86)) == "86"
    assert str(Certified(Fraction(1, 8))) == "0.125"
    assert str(Certified(10**12)) == "1000000000000"


def test_float_is_refused_and_the_lossy_exit_named() -> None:
    a = Certified(Fraction(1, 3))
    with pytest.raises(TypeError, match="to_float_lossy"):
        float(a)
    assert a.to_float_lossy() == pytest.approx(1 / 3, abs=1e-16)
    with pytest.raises(TypeError):
        a + 0.5  # type: ignore[operator]
    with pytest.raises(InvalidInput, match="floats are"):
        Certified(0.5)


def test_comparisons_decide_or_refuse() -> None:
    a = Certified.from_decimal("1", "0.1")
    b = Certified.from_decimal("1.15", "0.1")
    c = Certified.from_decimal("1.5", "0.1")
    assert a < c
    assert c > a
    assert a <= c
    assert a != c
    assert a < 2
    assert a > Fraction(1, 2)
    for compare in (
        lambda: a < b,
        lambda: a == b,
        lambda: a >= b,
        lambda: a == 1,
        lambda: a != Certified.from_decimal("1", "0.1"),
        lambda: bool(Certified.from_decimal("0", "0.1")),
    ):
        with pytest.raises(Undecided, match="more digits"):
            compare()
    assert Certified(2) == 2
    assert Certified(2) == Certified(Fraction(2))
    assert {Certified(2): "two"}[Certified(2)] == "two"
    assert hash(Certified(2)) == hash(2)


def test_immutable() -> None:
    a = Certified(1)
    with pytest.raises(AttributeError, match="immutable"):
        a._value = "2"
    with pytest.raises(AttributeError):
        a.other = 1  # type: ignore[attr-defined]


def test_working_precision_is_restored_after_an_error() -> None:
    before = ctx.prec
    with pytest.raises(ZeroDivisionError), working_precision(777):
        Fraction(ctx.prec, 777 - ctx.prec)
    assert ctx.prec == before


def test_not_finite_and_malformed_are_refused() -> None:
    with pytest.raises(InvalidInput, match="not finite"):
        Certified(arb("inf"))
    with pytest.raises(InvalidInput, match="not a decimal"):
        Certified.from_decimal("one", "0")
    with pytest.raises(InvalidInput, match="negative"):
        Certified.from_decimal("1", "-1")
    with pytest.raises(InvalidInput, match="'value'"):
        Certified.from_json({"value": "1"})


def test_tiny_and_huge_numbers() -> None:
    with working_precision(120):
        tiny = Certified(arb(-100000).exp())
        huge = Certified(arb(100000).exp())
    assert str(tiny).endswith("e-43430")
    assert Certified.from_json(huge.to_json()).same_enclosure(huge)
    assert tiny > 0
    assert (tiny * huge).contains(1)


def _double(number: Certified) -> Certified:
    return number + number


def test_travels_to_a_worker_process() -> None:
    a = Certified.from_decimal("0.333333333333333333333", "1e-20")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        result = pool.apply(_double, (a,))
    assert result.same_enclosure(a + a)


def test_latex() -> None:
    assert Certified.from_decimal("1.5e-30", "1e-40")._repr_latex_() == (
        r"$1.500000000 \cdot 10^{-30}$"
    )
