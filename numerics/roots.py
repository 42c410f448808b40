"""Roots in ball arithmetic: a bracket is proved by the signs of two enclosures."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from flint import arb, fmpq

from numerics.balls import Certified, bits_for, working_precision
from replica.errors import InvalidInput

# f(x, digits) -> arb: an enclosure of f at the exact point x, good to about so many digits
BallFunction = Callable[[Fraction, int], Any]

MAX_STEPS = 400


class NoBracket(ArithmeticError):
    """No sign change was proved: the message says where and what the enclosures were."""


def _midpoint(ball: Any) -> Fraction:
    mantissa, exponent = ball.mid().man_exp()
    mantissa, exponent = int(mantissa), int(exponent)
    return Fraction(mantissa << exponent) if exponent >= 0 else Fraction(mantissa, 1 << -exponent)


def _rounded(number: Fraction, bits: int) -> Fraction:
    """A nearby dyadic number, so that denominators do not grow from step to step."""
    return Fraction(round(number * (1 << bits)), 1 << bits)


def _decided(function: BallFunction, point: Fraction, digits: int) -> Any:
    """An enclosure of the function at an exact point that has a sign, or is exactly 0."""
    for extra in (0, 8, 30, 120):
        ball = function(point, digits + extra)
        if ball > 0 or ball < 0 or ball.is_zero():
            return ball
    raise NoBracket(f"the sign at {float(point)!r} was not decided; the enclosure was {ball}")


def sign_at(function: BallFunction, point: Fraction, digits: int) -> int:
    """Proved sign of the function at an exact point; 0 only where the enclosure is exactly 0."""
    ball = _decided(function, point, digits)
    return 0 if ball.is_zero() else 1 if ball > 0 else -1


def certified_root(
    function: BallFunction,
    low: Fraction | int,
    high: Fraction | int,
    digits: int = 15,
    *,
    guess: float | None = None,
) -> Certified:
    """An enclosure of a root of a continuous function, |error| <= 10^-digits max(1, |x|) / 2.

    Proved: the function has opposite signs at the two ends of the enclosure, so at least one root
    lies inside; where the function is monotone it is *the* root. Inside the bracket the search
    is the secant method on midpoints (not proved, only fast) kept by bisection.
    Arguments: `function(x, digits)`, an `arb` enclosing f(x) with about so many digits; exact ends;
    `guess`, a float near the root: where signs prove a bracket around it, the ends are not visited.
    Raises `NoBracket` where the ends have the same sign or a sign stays undecided.

    >>> root = certified_root(lambda x, digits: _square(x, digits) - 2, 1, 2, 40)
    >>> root.to_string(35)
    '1.4142135623730950488016887242096981'
    """
    if digits < 1:
        raise InvalidInput(f"digits is {digits}; at least 1 digit can be asked for; give 1 or more")
    low, high = Fraction(low), Fraction(high)
    ends = None if guess is None else _around(function, Fraction(guess), low, high)
    left, right = ends or ((low, _decided(function, low, 4)), (high, _decided(function, high, 4)))
    for end, ball in (left, right):
        if ball.is_zero():
            return Certified(end)
    if (left[1] > 0) == (right[1] > 0):
        raise NoBracket(
            f"the function has the same sign at {float(low)!r} and {float(high)!r}: "
            "no root is proved in between"
        )
    return _search(function, left, right, digits)


def _search(
    function: BallFunction, left: tuple[Fraction, Any], right: tuple[Fraction, Any], digits: int
) -> Certified:
    """Secant steps from the two ends, until both sides of a tiny interval have proved signs."""
    low, high = left[0], right[0]
    bits = bits_for(digits) + max(0, int(max(abs(low), abs(high))).bit_length())
    tolerance = Fraction(1, 10**digits) / 4
    rising = bool(right[1] > 0)
    (previous, before), (current, now) = ((x, _midpoint(ball)) for x, ball in (left, right))
    for _ in range(MAX_STEPS):
        scale = max(Fraction(1), abs(current))
        step = now * (current - previous) / (now - before) if now != before else Fraction(0)
        guess = _rounded(current - step, bits) if step else low
        if not low < guess < high:
            guess = _rounded((low + high) / 2, bits)
        if high - low < tolerance * scale:
            return _between(low, high, bits)
        # the next secant step is about as small as the product of the last two
        size = abs(guess - current) / scale
        wanted = min(digits + 8, 10 + 2 * max(0, -_log10(size) if size else digits))
        if size < tolerance:
            near, far = max(low, guess - tolerance * scale), min(high, guess + tolerance * scale)
            signs = [bool(_decided(function, x, digits + 2) > 0) for x in (near, far)]
            if signs == [not rising, rising]:
                return _between(near, far, bits)
        ball = function(guess, wanted + 8)
        if not (ball > 0 or ball < 0 or ball.is_zero()):
            # the guess is the root as far as can be seen: look on both sides of it
            near, far = max(low, guess - tolerance * scale), min(high, guess + tolerance * scale)
            signs = [bool(_decided(function, x, digits + 2) > 0) for x in (near, far)]
            if signs == [not rising, rising]:
                return _between(near, far, bits)
            ball = _decided(function, guess, wanted + 16)
        if ball.is_zero():
            return Certified(guess)
        previous, before, current, now = current, now, guess, _midpoint(ball)
        low, high = (guess, high) if bool(ball < 0) == rising else (low, guess)
    raise NoBracket(f"no enclosure of width 1e-{digits} was found in {MAX_STEPS} steps")


def _around(
    function: BallFunction, guess: Fraction, low: Fraction, high: Fraction
) -> tuple[tuple[Fraction, Any], tuple[Fraction, Any]] | None:
    """A narrow bracket around the guess with its function values, if one is proved."""
    for relative in (10**9, 10**5):
        width = max(abs(guess), Fraction(1, 1000)) / relative
        near, far = max(low, guess - width), min(high, guess + width)
        if not near < far:
            return None
        left, right = (_decided(function, x, 14) for x in (near, far))
        if bool(left > 0) != bool(right > 0):
            return (near, left), (far, right)
    return None


def _log10(size: Fraction) -> int:
    """Rough floor of log10 of a positive number."""
    return (size.numerator.bit_length() - size.denominator.bit_length()) * 30103 // 100000


def _between(left: Fraction, right: Fraction, bits: int) -> Certified:
    """The interval [left, right] as a certified number."""
    middle, radius = (left + right) / 2, (right - left) / 2
    with working_precision(bits + 64):
        ball = arb(fmpq(middle.numerator, middle.denominator))
        spread = arb(fmpq(radius.numerator, radius.denominator))
        return Certified(ball + arb(0, spread.upper()))


def _square(x: Fraction, digits: int) -> Any:
    with working_precision(bits_for(digits)):
        return arb(fmpq(x.numerator, x.denominator)) ** 2
