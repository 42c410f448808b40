"""Certified numbers: a decimal value with a decimal radius that provably encloses the truth.

A `Certified` *is* its pair of decimal strings; the ball used in arithmetic is rebuilt from them.
So pickling, copying, hashing and JSON keep exactly the same enclosure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

from flint import arb, ctx, fmpq, fmpz

from replica.errors import InvalidInput

_GUARD_BITS = 20
_EXACT_BITS = 256  # precision for operations whose operands are all exact
_RADIUS_DIGITS = 4
_MAX_EXACT_DIGITS = 400  # longer exact decimals are rounded, with the rounding in the radius
_DECIMAL = re.compile(r"([+-]?)(\d+)(?:\.(\d*))?(?:[eE]([+-]?\d+))?")


class Undecided(ArithmeticError):
    """Two enclosures overlap, so the comparison is not proved either way; ask for more digits."""


@contextmanager
def working_precision(bits: int) -> Iterator[None]:
    """Set the working precision of python-flint in bits and restore it on leaving.

    >>> before = ctx.prec
    >>> with working_precision(200):
    ...     ctx.prec
    200
    >>> ctx.prec == before
    True
    """
    before = ctx.prec
    ctx.prec = max(2, int(bits))
    try:
        yield
    finally:
        ctx.prec = before


def bits_for(digits: int) -> int:
    """Bits that hold so many decimal digits, with guard bits."""
    return math.ceil(digits * math.log2(10)) + _GUARD_BITS


class Certified:
    """An immutable real number known to lie in `[value - radius, value + radius]`.

    Arguments: `ball`, a finite `flint.arb`, an `int` or a `Fraction` (dimensionless).
    Printing shows only proved digits: the last one is correctly rounded. Arithmetic with
    integers, fractions and other certified numbers gives enclosures; floats are refused.
    A comparison that the enclosures do not decide raises `Undecided`. Raises `InvalidInput` for a
    ball that is not finite. Source: ball arithmetic (Arb).

    >>> x = Certified(Fraction(5, 6))
    >>> print((x + 1).to_string(12))
    1.83333333333
    >>> x > Fraction(833, 1000)
    True
    >>> Certified.from_json(x.to_json()).same_enclosure(x)
    True
    >>> float(x)
    Traceback (most recent call last):
        ...
    TypeError: a Certified does not become a float silently: use .to_float_lossy()
    """

    __slots__ = ("_ball", "_radius", "_value")
    _ball: Any
    _value: str
    _radius: str

    def __init__(self, ball: Any) -> None:
        if isinstance(ball, Certified):
            value, radius = ball._value, ball._radius
        else:
            value, radius = _decimal_enclosure(_as_exact_ball(ball))
        self._set(value, radius)

    def _set(self, value: str, radius: str) -> None:
        object.__setattr__(self, "_value", value)
        object.__setattr__(self, "_radius", radius)
        object.__setattr__(self, "_ball", _ball_from_decimals(value, radius))

    @classmethod
    def from_decimal(cls, value: str, radius: str = "0") -> Certified:
        """The enclosure `value +- radius` from decimal strings, kept as written.

        >>> Certified.from_decimal("0.5", "1e-20").radius
        '1e-20'
        """
        number = cls.__new__(cls)
        number._set(value, radius)
        return number

    @classmethod
    def from_json(cls, data: Mapping[str, str]) -> Certified:
        """Read back what `to_json` wrote: the same enclosure."""
        try:
            value, radius = data["value"], data["radius"]
        except (KeyError, TypeError):
            raise InvalidInput(
                f"{data!r} is not a certified number; an object with the decimal strings 'value' "
                "and 'radius' is needed; give what Certified.to_json returned"
            ) from None
        return cls.from_decimal(value, radius)

    def to_json(self) -> dict[str, str]:
        """`{"value": ..., "radius": ...}`, decimal strings that enclose the number."""
        return {"value": self._value, "radius": self._radius}

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a Certified is immutable; compute a new one")

    def __reduce__(self) -> tuple[Any, ...]:
        return (Certified.from_decimal, (self._value, self._radius))

    def __copy__(self) -> Certified:
        return self

    def __deepcopy__(self, memo: Any) -> Certified:
        return self

    # -- looking ---------------------------------------------------------------------------

    @property
    def ball(self) -> Any:
        """The enclosure as a `flint.arb`."""
        return self._ball

    @property
    def value(self) -> str:
        """Midpoint, a decimal string (more digits than are proved: see `str`)."""
        return self._value

    @property
    def radius(self) -> str:
        """Radius, a decimal string; "0" for an exact number."""
        return self._radius

    @property
    def is_exact(self) -> bool:
        """Whether the radius is zero."""
        return _fraction(self._radius) == 0

    @property
    def bounds(self) -> tuple[Fraction, Fraction]:
        """Exact lower and upper ends of the enclosure."""
        middle, radius = _fraction(self._value), _fraction(self._radius)
        return middle - radius, middle + radius

    @property
    def digits(self) -> int:
        """Number of proved significant digits (correctly rounded); 0 if not even one is."""
        return _proved(*self.bounds)[1]

    def rounded_up(self, digits: int = 3) -> Certified:
        """An exact decimal of so many digits that is at least every number of the enclosure.

        >>> Certified.from_decimal("0.12345", "1e-9").rounded_up()
        Certified(0.124)
        """
        top = self.bounds[1]
        if top == 0:
            return Certified.from_decimal("0")
        unit = _power_of_ten(exponent := _floor_log10(abs(top)) - digits + 1)
        return Certified.from_decimal(_decimal(math.ceil(top / unit), exponent))

    def to_string(self, digits: int | None = None) -> str:
        """Proved digits, at most `digits` of them, each correctly rounded.

        >>> Certified.from_decimal("0.123456789", "1e-6").to_string()
        '0.12346'
        >>> Certified.from_decimal("0", "0.1").to_string()
        '[0 +/- 0.1]'
        """
        if digits is not None and digits < 1:
            raise InvalidInput(
                f"digits is {digits}; at least 1 digit can be printed; give 1 or more"
            )
        text, _ = _proved(*self.bounds, limit=digits)
        return text if text else f"[{_short(self._value)} +/- {_short(self._radius)}]"

    def __str__(self) -> str:
        return self.to_string()

    def __repr__(self) -> str:
        return f"Certified({self.to_string()})"

    def _repr_latex_(self) -> str:
        text = self.to_string()
        if "e" in text:
            mantissa, exponent = text.split("e")
            text = rf"{mantissa} \cdot 10^{{{int(exponent)}}}"
        return f"${text.replace('+/-', chr(92) + 'pm')}$"

    def to_float_lossy(self) -> float:
        """Nearest float to the midpoint: the radius is lost, hence the name."""
        return float(_fraction(self._value))

    def __float__(self) -> float:
        raise TypeError("a Certified does not become a float silently: use .to_float_lossy()")

    def same_enclosure(self, other: Certified) -> bool:
        """Whether both are literally the same value and radius."""
        return (self._value, self._radius) == (other._value, other._radius)

    def overlaps(self, other: Certified) -> bool:
        """Whether the two enclosures have a point in common.

        >>> Certified(1).overlaps(Certified.from_decimal("1.05", "0.1"))
        True
        """
        low, high = self.bounds
        other_low, other_high = other.bounds
        return low <= other_high and other_low <= high

    def contains(self, number: int | Fraction | str) -> bool:
        """Whether an exact number (a decimal string is taken as exact) lies in the enclosure."""
        low, high = self.bounds
        exact = _fraction(number) if isinstance(number, str) else Fraction(number)
        return low <= exact <= high

    def __hash__(self) -> int:
        # Exact numbers are equal to the integers and fractions they stand for, so hash alike.
        return hash(_fraction(self._value)) if self.is_exact else hash((self._value, self._radius))

    # -- arithmetic ------------------------------------------------------------------------

    def _operate(self, other: Any, operation: str, swapped: bool = False) -> Any:
        operand = _operand(other)
        if operand is None:
            return NotImplemented
        with working_precision(max(_bits(self._ball), _bits(operand))):
            left, right = (operand, self._ball) if swapped else (self._ball, operand)
            return Certified(_OPERATIONS[operation](left, right))

    def __add__(self, other: Any) -> Certified:
        return self._operate(other, "+")

    def __radd__(self, other: Any) -> Certified:
        return self._operate(other, "+", swapped=True)

    def __sub__(self, other: Any) -> Certified:
        return self._operate(other, "-")

    def __rsub__(self, other: Any) -> Certified:
        return self._operate(other, "-", swapped=True)

    def __mul__(self, other: Any) -> Certified:
        return self._operate(other, "*")

    def __rmul__(self, other: Any) -> Certified:
        return self._operate(other, "*", swapped=True)

    def __truediv__(self, other: Any) -> Certified:
        return self._operate(other, "/")

    def __rtruediv__(self, other: Any) -> Certified:
        return self._operate(other, "/", swapped=True)

    def __pow__(self, other: Any) -> Certified:
        return self._operate(other, "**")

    def __neg__(self) -> Certified:
        value = self._value[1:] if self._value.startswith("-") else f"-{self._value}"
        return Certified.from_decimal(value, self._radius)

    def __abs__(self) -> Certified:
        low, high = self.bounds
        if low >= 0:
            return self
        return -self if high <= 0 else Certified(abs(self._ball))

    # -- comparisons -----------------------------------------------------------------------

    def _order(self, other: Any) -> int | None:
        """-1, 0, 1, or None where the type is foreign; raises `Undecided` on an overlap."""
        if self is other:
            return 0
        if isinstance(other, Certified):
            other_low, other_high = other.bounds
        elif isinstance(other, int | Fraction) and not isinstance(other, bool):
            other_low = other_high = Fraction(other)
        elif isinstance(other, fmpz | fmpq):
            other_low = other_high = Fraction(int(other.p), int(other.q))
        else:
            return None
        low, high = self.bounds
        if high < other_low:
            return -1
        if low > other_high:
            return 1
        if low == high == other_low == other_high:
            return 0
        raise Undecided(
            f"{self} and {other} are not told apart by their enclosures; compute with more digits"
        )

    def __eq__(self, other: object) -> bool:
        order = self._order(other)
        return NotImplemented if order is None else order == 0

    def __lt__(self, other: Any) -> bool:
        order = self._order(other)
        return NotImplemented if order is None else order < 0

    def __le__(self, other: Any) -> bool:
        order = self._order(other)
        return NotImplemented if order is None else order <= 0

    def __gt__(self, other: Any) -> bool:
        order = self._order(other)
        return NotImplemented if order is None else order > 0

    def __ge__(self, other: Any) -> bool:
        order = self._order(other)
        return NotImplemented if order is None else order >= 0

    def __bool__(self) -> bool:
        return self != 0


_OPERATIONS: dict[str, Any] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": lambda left, right: left / right,
    "**": lambda left, right: left**right,
}


def _bits(ball: Any) -> int:
    """Precision at which an operation on this ball loses next to nothing."""
    if ball.rad().is_zero():
        return max(_EXACT_BITS, ball.bits() + _GUARD_BITS)
    return max(64, ball.rel_accuracy_bits() + 2 * _GUARD_BITS)


def _operand(other: Any) -> Any:
    if isinstance(other, Certified):
        return other.ball
    if isinstance(other, bool):
        return None
    if isinstance(other, int):
        return arb(fmpz(other))
    if isinstance(other, Fraction):
        with working_precision(_EXACT_BITS + max(other.numerator.bit_length(), 1)):
            return arb(fmpz(other.numerator)) / arb(fmpz(other.denominator))
    if isinstance(other, fmpz | fmpq | arb):
        return arb(other)
    return None


def _as_exact_ball(ball: Any) -> Any:
    operand = _operand(ball)
    if operand is None:
        raise InvalidInput(
            f"{ball!r} cannot be certified; an int, a Fraction or a flint.arb is needed; floats "
            "are refused because their digits are not proved"
        )
    if not operand.is_finite():
        raise InvalidInput(f"the ball {operand} is not finite, so it encloses no definite number")
    return operand


def _dyadic(number: Any) -> Fraction:
    """Exact value of an arb of zero radius."""
    mantissa, exponent = number.man_exp()
    mantissa, exponent = int(mantissa), int(exponent)
    return Fraction(mantissa << exponent) if exponent >= 0 else Fraction(mantissa, 1 << -exponent)


def _fraction(text: str) -> Fraction:
    """Exact value of a decimal string (the length limit of int() does not apply)."""
    match = _DECIMAL.fullmatch(text.strip())
    if match is None:
        raise InvalidInput(f"{text!r} is not a decimal number; write it like 0.25 or 1e-20")
    sign, whole, part, power = match.groups()
    part = part or ""
    mantissa = int(fmpz(whole + part)) * (-1 if sign == "-" else 1)
    exponent = int(power or 0) - len(part)
    return Fraction(mantissa * 10**exponent) if exponent >= 0 else Fraction(mantissa, 10**-exponent)


def _floor_log10(number: Fraction) -> int:
    """floor(log10(number)) of a positive exact number."""
    bits = number.numerator.bit_length() - number.denominator.bit_length()
    guess = math.floor((bits - 1) * math.log10(2)) - 1
    while _power_of_ten(guess + 1) <= number:
        guess += 1
    return guess


def _power_of_ten(exponent: int) -> Fraction:
    return Fraction(10**exponent) if exponent >= 0 else Fraction(1, 10**-exponent)


def _round_half_up(number: Fraction) -> int:
    return (2 * number.numerator + number.denominator) // (2 * number.denominator)


def _decimal(mantissa: int, exponent: int) -> str:
    """mantissa * 10**exponent as text, positional where short, else scientific."""
    sign, digits = ("-" if mantissa < 0 else ""), str(fmpz(abs(mantissa)))
    if mantissa == 0:
        return "0"
    leading = exponent + len(digits) - 1
    if exponent > 0 or leading < -6:
        part = digits[1:]
        return f"{sign}{digits[0]}{'.' + part if part else ''}e{leading}"
    if exponent == 0:
        return sign + digits
    digits = digits.rjust(1 - exponent, "0")
    return f"{sign}{digits[:exponent]}.{digits[exponent:]}"


def _decimal_enclosure(ball: Any) -> tuple[str, str]:
    """Decimal value and radius whose interval contains the ball, the radius rounded up."""
    middle, radius = _dyadic(ball.mid()), _dyadic(ball.rad())
    if radius == 0:
        denominator_bits = middle.denominator.bit_length() - 1  # a power of two
        mantissa = middle.numerator * 5**denominator_bits
        if len(str(fmpz(abs(mantissa)))) <= _MAX_EXACT_DIGITS:
            return _decimal(mantissa, -denominator_bits), "0"
        exponent = _floor_log10(abs(middle)) - _MAX_EXACT_DIGITS
    else:
        exponent = _floor_log10(radius) - _RADIUS_DIGITS + 1
    unit = _power_of_ten(exponent)
    mantissa = _round_half_up(middle / unit)
    total = radius + abs(middle - mantissa * unit)
    if total == 0:
        return _decimal(mantissa, exponent), "0"
    radius_exponent = _floor_log10(total) - _RADIUS_DIGITS + 1
    steps = math.ceil(total / _power_of_ten(radius_exponent))
    return _decimal(mantissa, exponent), _decimal(steps, radius_exponent)


def _ball_from_decimals(value: str, radius: str) -> Any:
    """A ball that contains the decimal interval, wider by a relative 2^-60 of the radius only."""
    middle, half_width = _fraction(value), _fraction(radius)
    if half_width < 0:
        raise InvalidInput(f"the radius {radius!r} is negative; give a radius of at least 0")
    bits = _EXACT_BITS
    if half_width:
        ratio = abs(middle) / half_width
        bits = 64 + max(0, ratio.numerator.bit_length() - ratio.denominator.bit_length() + 1)
    elif middle.denominator == 1:
        bits = max(bits, middle.numerator.bit_length())
    else:  # exact dyadic decimals need every bit of their mantissa
        bits = max(bits, middle.numerator.bit_length() + 2)
    with working_precision(bits):
        centre = arb(fmpz(middle.numerator)) / arb(fmpz(middle.denominator))
        if not half_width:
            return centre
        spread = arb(fmpz(half_width.numerator)) / arb(fmpz(half_width.denominator))
        return centre + arb(0, spread.upper())


def _proved(low: Fraction, high: Fraction, limit: int | None = None) -> tuple[str, int]:
    """The longest decimal to which every number of [low, high] rounds, and its digit count."""
    if low == high:
        if low == 0:
            return "0", 1
        lead = _floor_log10(abs(low))
        count = limit if limit is not None else _MAX_EXACT_DIGITS
        unit = _power_of_ten(lead - count + 1)
        mantissa, exponent = _round_half_up(low / unit), lead - count + 1
        while mantissa % 10 == 0:
            mantissa, exponent = mantissa // 10, exponent + 1
        if exponent > 0 and exponent <= 20:
            mantissa, exponent = mantissa * 10**exponent, 0
        return _decimal(mantissa, exponent), count
    lead = _floor_log10(max(abs(low), abs(high)))
    most = lead - _floor_log10(high - low) + 1
    for count in range(most if limit is None else min(limit, most), 0, -1):
        unit = _power_of_ten(lead - count + 1)
        mantissa = _round_half_up(low / unit)
        if mantissa and mantissa == _round_half_up(high / unit):
            return _decimal(mantissa, lead - count + 1), count
    return "", 0


def _short(text: str) -> str:
    """A decimal string cut to four digits, for messages."""
    number = _fraction(text)
    if number == 0:
        return "0"
    lead = _floor_log10(abs(number))
    mantissa, exponent = _round_half_up(number / _power_of_ten(lead - 3)), lead - 3
    while mantissa % 10 == 0:
        mantissa, exponent = mantissa // 10, exponent + 1
    return _decimal(mantissa, exponent)
