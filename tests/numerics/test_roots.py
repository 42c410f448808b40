"""Certified roots: known digits, proved brackets, refusals."""

from __future__ import annotations

from fractions import Fraction

import pytest
import sympy as sp
from flint import arb, fmpz
from hypothesis import given, settings
from hypothesis import strategies as st

from numerics.balls import bits_for, working_precision
from numerics.compiled import ball_function, root_of
from numerics.roots import NoBracket, certified_root, sign_at
from replica.errors import InvalidInput

x = sp.Symbol("x")
COSINE = (
    "0.73908513321516064165531208767387340401341175890075746496568063577328465488354759459937610693"
)


def test_cosine_fixed_point_to_a_hundred_digits() -> None:
    root = root_of(sp.cos(x) - x, x, 0, 1, 100)
    assert root.to_string(92) == COSINE
    assert root.digits >= 99


def test_transcendental_root_with_guess_equals_root_without() -> None:
    function = ball_function(sp.exp(x) - 3, x)
    plain = certified_root(function, 0, 2, 40)
    guided = certified_root(function, 0, 2, 40, guess=1.0986122886681098)
    misled = certified_root(function, 0, 2, 40, guess=0.3)
    assert plain.overlaps(guided)
    assert plain.overlaps(misled)
    assert guided.contains("1.09861228866810969139524523692252570464749055782274945173469433")


def test_a_bracket_undecided_at_low_precision_is_decided_at_a_higher_one() -> None:
    # near 1 + 10^-40 the sign needs more than 40 digits; the function is told to be lazy
    asked: list[int] = []

    def function(point: Fraction, digits: int) -> arb:
        asked.append(digits)
        with working_precision(bits_for(digits)):
            value = arb(fmpz(point.numerator)) / arb(fmpz(point.denominator))
            return value - 1 - arb(10) ** -40 * arb(3).sqrt()

    assert sign_at(function, Fraction(1), 4) == -1
    assert sign_at(function, Fraction(10**40 + 2, 10**40), 4) == 1
    assert max(asked) > 40
    root = certified_root(function, 1, 2, 60)
    low, high = root.bounds
    assert low - 1 > Fraction(173205, 10**45)
    assert high - 1 < Fraction(173206, 10**45)


def test_no_sign_change_and_no_digits_are_refused() -> None:
    with pytest.raises(NoBracket, match="same sign"):
        root_of(x**2 + 1, x, 0, 1, 15)
    # identically zero, but not recognisably so in ball arithmetic
    zero = (sp.sqrt(5 + 2 * sp.sqrt(6)) - sp.sqrt(2) - sp.sqrt(3)) * x
    with pytest.raises(NoBracket, match="not decided"):
        root_of(zero, x, 1, 2, 15)
    with pytest.raises(InvalidInput, match="at least 1 digit"):
        root_of(x - 1, x, 0, 3, 0)


def test_an_exact_end_is_the_root() -> None:
    root = root_of(x * (x - 3), x, 0, 1, 15)
    assert root.is_exact
    assert root.contains(0)


@settings(max_examples=40, deadline=None)
@given(
    root=st.fractions(-3, 3, max_denominator=50),
    scale=st.fractions(Fraction(1, 10), 10, max_denominator=20),
    digits=st.integers(3, 60),
)
def test_enclosure_contains_the_known_root(root: Fraction, scale: Fraction, digits: int) -> None:
    exact = sp.Rational(root.numerator, root.denominator)
    factor = sp.Rational(scale.numerator, scale.denominator)
    found = root_of(factor * (x - exact) * (x**2 + 1), x, -4, 5, digits)
    assert found.contains(root)
    low, high = found.bounds
    assert high - low <= 4 * Fraction(1, 10**digits)
