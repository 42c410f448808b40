"""Truncated power series in two variables x and h with one common denominator.

A series is a list of rows, rows[b][a] / denominator being the coefficient of x^a h^b. The
numerators are integers, or polynomials in a parameter with integer coefficients: only ring
operations are used, so both work. One denominator for all keeps the inner loops free of the
greatest common divisors that make rational arithmetic slow.

A *shape* is the number of coefficients kept in each row; products are truncated to a shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import gcd, lcm
from operator import mul
from typing import Any

Shape = Sequence[int]


def triangle(weight: int) -> list[int]:
    """The shape a + 2 b <= weight.

    >>> triangle(4)
    [5, 3, 1]
    """
    return [weight - 2 * b + 1 for b in range(weight // 2 + 1)]


class Plane:
    """sum_ab rows[b][a] x^a h^b / denominator; immutable.

    >>> f = Plane.from_terms(triangle(4), {(0, 0): Fraction(1), (1, 0): Fraction(-1, 2)})
    >>> (f.times(f.inverse(triangle(4)), triangle(4))).terms()
    {(0, 0): Fraction(1, 1)}
    """

    __slots__ = ("denominator", "rows")

    def __init__(self, rows: list[list[Any]], denominator: int = 1) -> None:
        self.rows = rows
        self.denominator = denominator

    @classmethod
    def from_terms(
        cls, shape: Shape, terms: Mapping[tuple[int, int], Fraction], one: Any = 1
    ) -> Plane:
        """The series with these coefficients, those outside the shape dropped.

        `one` is the unit of the numerators' ring: 1, or the constant polynomial 1.
        """
        kept = {(a, b): value for (a, b), value in terms.items() if b < len(shape) and a < shape[b]}
        common = lcm(*(value.denominator for value in kept.values()))
        rows: list[list[Any]] = [[0 * one] * width for width in shape]
        for (a, b), value in kept.items():
            rows[b][a] = value.numerator * (common // value.denominator) * one
        return cls(rows, common)

    def terms(self) -> dict[tuple[int, int], Any]:
        """The non-zero coefficients (for integer numerators)."""
        return {
            (a, b): Fraction(int(value), self.denominator)
            for b, row in enumerate(self.rows)
            for a, value in enumerate(row)
            if value != 0
        }

    @property
    def shape(self) -> list[int]:
        """Row lengths."""
        return [len(row) for row in self.rows]

    def is_zero(self) -> bool:
        """Whether no coefficient is left."""
        return all(value == 0 for row in self.rows for value in row)

    def plus(self, other: Plane, factor: int = 1) -> Plane:
        """self + factor * other, on the shape of `self`."""
        common = lcm(self.denominator, other.denominator)
        first, second = common // self.denominator, factor * (common // other.denominator)
        rows = []
        for b, row in enumerate(self.rows):
            mine = [first * u for u in row] if first != 1 else list(row)
            if b < len(other.rows):
                for a, value in enumerate(other.rows[b][: len(row)]):
                    mine[a] = mine[a] + second * value
            rows.append(mine)
        return Plane(rows, common)

    def scaled(self, factor: Any, divisor: int = 1) -> Plane:
        """factor * self / divisor for a ring element and an integer."""
        rows = [[factor * u for u in row] for row in self.rows]
        return Plane(rows, self.denominator * divisor)

    def with_h_scaled(self, factor: Any) -> Plane:
        """The series in which h stands for factor * h."""
        rows, power = [], factor**0
        for row in self.rows:
            rows.append([power * u for u in row])
            power = power * factor
        return Plane(rows, self.denominator)

    def reduced(self) -> Plane:
        """The same series in lowest terms."""
        common = self.denominator
        for row in self.rows:
            for value in row:
                common = gcd(common, value if isinstance(value, int) else int(value.content()))
                if common == 1:
                    return self
        rows = [
            [v // common if isinstance(v, int) else v.quo_ground(common) for v in row]
            for row in self.rows
        ]
        return Plane(rows, self.denominator // common)

    def times(self, other: Plane, shape: Shape, shift: int = 0) -> Plane:
        """h^shift self * other truncated to the shape."""
        rows: list[list[Any]] = []
        for b, width in enumerate(shape):
            row: list[Any] = [0] * width
            for i in range(b - shift + 1):
                if i < len(self.rows) and b - shift - i < len(other.rows):
                    _convolve(self.rows[i], other.rows[b - shift - i], row)
            rows.append(row)
        return Plane(rows, self.denominator * other.denominator)

    def coefficient_of_product(self, other: Plane, a: int, b: int) -> tuple[Any, int]:
        """Numerator and denominator of the coefficient of x^a h^b in self * other."""
        total: Any = 0
        for i in range(min(b + 1, len(self.rows))):
            if b - i >= len(other.rows):
                continue
            f, g = self.rows[i], other.rows[b - i]
            for j in range(max(0, a - len(g) + 1), min(len(f) - 1, a) + 1):
                total = total + f[j] * g[a - j]
        return total, self.denominator * other.denominator

    def divided_by_x(self) -> Plane:
        """self / x, one coefficient less in every row; self must vanish at x = 0 (checked)."""
        if any(row and row[0] != 0 for row in self.rows):
            raise ArithmeticError("the series does not vanish at x = 0")
        return Plane([row[1:] for row in self.rows], self.denominator)

    def at_zero_x(self) -> Plane:
        """The part that does not depend on x."""
        return Plane([row[:1] for row in self.rows], self.denominator)

    def inverse(self, shape: Shape) -> Plane:
        """1 / self on a triangular shape, by Newton's iteration; needs self(0, 0) = 1 (checked)."""
        constant = self.rows[0][0]
        if constant != self.denominator:
            raise ArithmeticError("only series with constant term 1 are inverted")
        one = constant**0
        unit = Plane.from_terms(shape, {(0, 0): Fraction(1)}, one)
        result, correct = unit, 1
        while correct <= shape[0]:  # terms of weight below `correct` are right; it doubles
            error = unit.plus(self.times(result, shape), -1)
            result = result.plus(result.times(error, shape)).reduced()
            correct *= 2
        return result


def _convolve(first: list[Any], second: list[Any], into: list[Any]) -> None:
    """Add the product of two polynomials in x to `into`, truncated to its length."""
    if not first or not second:
        return
    size = len(second)
    backwards = second[::-1]
    for a in range(min(len(into), len(first) + size - 1)):
        low = max(0, a - size + 1)
        # sum over j of first[j] second[a - j], as one pass over two slices
        into[a] = sum(map(mul, first[low : a + 1], backwards[size - 1 - a + low :]), into[a])
