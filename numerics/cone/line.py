"""R(w) = Phi(w) e^{w^2/2} at equidistant points of a vertical line, all at once, with proof."""

from __future__ import annotations

import math
from typing import Any

from flint import acb, arb, arb_mat, ctx, fmpz, fmpz_mat, fmpz_poly

from numerics.balls import working_precision

_FIXED_FROM_BITS = 1200  # from here on integer products are faster than ball products


def laplace_on_line(c: float, h: float, count: int) -> tuple[list[Any], list[Any]]:
    """R(w_j) and e^{w_j^2/2} at w_j = c + i j h, j = 0 .. count-1, c != 0, at current precision.

    For c > 0 by reflection, R(w) = e^{w^2/2} - R(-w); see `_left_line` for c < 0.
    """
    if c < 0:
        return _left_line(c, h, count)
    mirrored, _ = _left_line(-c, h, count)  # R(-w_j) is the conjugate of R at -c + i j h
    gauss = [(w * w / 2).exp() for w in (acb(c, j * arb(h)) for j in range(count))]
    return [g - x.conjugate() for g, x in zip(gauss, mirrored, strict=True)], gauss


def _left_line(c: float, h: float, count: int) -> tuple[list[Any], list[Any]]:
    """As `laplace_on_line` for c < 0.

    sqrt(2 pi) R(w) = int phi(s) ds / (-w - i s). The trapezoidal rule in s with the same step h is
    a discrete convolution over j: two polynomial products give all values. Its error: the lines
    Im s = +-b, on which |phi| = e^{b^2/2} phi(Re s), and, where b > |c|, the residue of the pole at
    s = i w, which is e^{w^2/2}/(e^{2 pi |c|/h} - 1), for e^{-2 pi w/h} is the same at every node.
    """
    nats = (ctx.prec + 4) * math.log(2.0)
    depth = h * nats / (2.0 * math.pi)
    depth = h * (nats + 0.5 * (1.2 * depth) ** 2) / (2.0 * math.pi)
    crosses = depth > abs(c) - 0.5
    if crosses:
        depth = max(depth, abs(c) + 0.5)
    reach = math.ceil(math.sqrt(2.0 * nats) / h)
    step, distance = arb(h), arb(-c)
    bell = [(-((n * step) ** 2) / 2).exp() for n in range(reach + 1)]
    heights = [l * step for l in range(count + reach)]
    inverses = [1 / (distance * distance + y * y) for y in heights]
    products = [
        _convolve(bell, [distance * x for x in inverses], reach, 1),
        _convolve(bell, [y * x for y, x in zip(heights, inverses, strict=True)], reach, -1),
    ]
    factor = step / (2 * arb.pi())
    b = arb(depth)
    strip = (b * b / 2).exp() / ((2 * arb.pi() * b / step).exp() - 1)
    error = strip * (1 / (distance + b) + 1 / abs(distance - b))
    end = reach * step
    error += (-end * end / 2).exp() / end / distance
    error = arb(0, (error / (2 * arb.pi()).sqrt()).upper())
    residue = 1 / ((2 * arb.pi() * distance / step).exp() - 1) if crosses else arb(0)
    values, gauss = [], []
    for j in range(count):
        w = acb(-distance, j * step)
        bell_w = (w * w / 2).exp()
        x = acb(products[0][j], products[1][j]) * factor
        values.append(x - residue * bell_w + acb(error, error if j else 0))
        gauss.append(bell_w)
    return values, gauss


class Fixed:
    """Balls of absolute value at most `top` as integers over 2^bits, with a common error bound.

    Products of such arrays are exact integer products in C; small entries cost little.
    """

    def __init__(self, balls: list[Any]) -> None:
        self.bits = ctx.prec + 8
        unit = arb(2) ** self.bits
        self.integers = [(x * unit).mid().floor().unique_fmpz() for x in balls]
        # the radius of a sum is at least the largest radius of its terms
        self.error = (sum(balls, arb(0)).rad() + 1 / unit).upper()
        with working_precision(64):
            largest = max(map(abs, self.integers))
            self.top = arb(largest) / unit + self.error

    def enclose(self, integers: list[Any], other: Fixed, terms: int) -> list[Any]:
        """Balls for sums of `terms` products of entries of self and other."""
        with working_precision(64):
            error = self.error * other.top + other.error * self.top
            ball = arb(0, (terms * error).upper())
        unit = arb(2) ** -(self.bits + other.bits)
        return [arb(x) * unit + ball for x in integers]

    def times(self, other: Fixed, rows: int, inner: int, columns: int) -> list[Any]:
        """Entries of the matrix product (rows x inner)(inner x columns)."""
        product = fmpz_mat(rows, inner, self.integers) * fmpz_mat(inner, columns, other.integers)
        return self.enclose(product.entries(), other, inner)


def _convolve(bell: list[Any], half: list[Any], reach: int, parity: int) -> list[Any]:
    """sum_n bell_|n| kernel_{j-n} for j >= 0; both sequences are given for indices >= 0 only.

    The bell is even, the kernel even (parity 1) or odd (parity -1).
    """
    left, right = Fixed(bell), Fixed(half)
    even = left.integers[:0:-1] + left.integers
    kernel = [parity * x for x in right.integers[reach:0:-1]] + right.integers
    product = (fmpz_poly(even) * fmpz_poly(kernel)).coeffs()
    count = len(half) - reach
    wanted = product[2 * reach : 2 * reach + count]
    wanted += [fmpz(0)] * (count - len(wanted))
    return left.enclose(wanted, right, len(even))


def multiply(left: list[Any], right: list[Any], rows: int, inner: int, columns: int) -> list[Any]:
    """Entries of the product of a rows x inner and an inner x columns matrix of balls."""
    if ctx.prec < _FIXED_FROM_BITS:
        product = arb_mat(rows, inner, left) * arb_mat(inner, columns, right)
        return list(product.entries())
    return Fixed(left).times(Fixed(right), rows, inner, columns)
