"""The factor of the active competitors: contour integrals I_k that do not depend on M.

    I_k = int over real y of e^{-m w} R(w)^k e^{w^2/2} dy,    w = c + i y,  R(w) = Phi(w) e^{w^2/2},

for any real c (the integrand is entire). With A_k = sqrt((k+1)/(2 pi)) e^{m^2/(2(k+1))} I_k the
probability that k of k+1 Gaussians, the left-out one lowered by the margin m, exceed their mean.
The second moment of the deviations on the same event inserts the factor k + m^2 - m w.

Since |R(c+iy)| <= R(c), the trapezoidal rule has closed-form error bounds: shifting the contour by
+-a bounds the discretisation, e^{-y^2/2} bounds what is cut off. Near the saddle c ~ -sqrt(k) the
integrand is a Gaussian of width 1 whatever k, so one contour serves a block of k with similar
sqrt(k), and the I_k of a block are power sums over common nodes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from flint import acb, arb, ctx, fmpz, fmpz_mat, fmpz_poly

from numerics.balls import working_precision
from numerics.cone.gauss import float_log_laplace, laplace


@dataclass(frozen=True)
class ActiveIntegrals:
    """`plain[k]` = I_k and `moment[k]` = I_k with the factor k + m^2 - m w, as positive balls."""

    plain: tuple[Any, ...]
    moment: tuple[Any, ...]


def active_integrals(count: int, nats: float, margin: Fraction = Fraction(0)) -> ActiveIntegrals:
    """I_0 .. I_{count-1} with relative error about e^{-nats}; blocks are cached."""
    plain: list[Any] = []
    moment: list[Any] = []
    nats = 16.0 * math.ceil(nats / 16.0)  # few distinct accuracies, so that the cache is hit
    width = max(4, math.ceil(0.45 * math.sqrt(nats)))
    index = 0
    while len(plain) < count:
        block = _block((index * width) ** 2, ((index + 1) * width) ** 2 - 1, nats, margin)
        plain += block.plain
        moment += block.moment
        index += 1
    return ActiveIntegrals(tuple(plain[:count]), tuple(moment[:count]))


def _saddle(k: int, margin: float) -> float:
    return 0.5 * (margin - math.sqrt(margin * margin + 4.0 * k))


def _float_log_integrand(k: int, c: float, margin: float) -> float:
    return k * float_log_laplace(c) + 0.5 * c * c - margin * c


def _dyadic(number: float, bits: int) -> float:
    """The number rounded to so many bits: an exact binary node."""
    mantissa, exponent = math.frexp(number)
    return math.ldexp(round(math.ldexp(mantissa, bits)), exponent - bits)


def _choose(first: int, last: int, nats: float, margin: float) -> tuple[float, float, float, float]:
    """Contour c, strip a, step h and the largest loss (nats) of sharing the contour."""
    c = _dyadic(0.5 * (_saddle(first, margin) + _saddle(last, margin)), 10)
    ends = [
        (k, min(_float_log_integrand(k, x, margin) for x in (_saddle(k, margin), c)))
        for k in (first, last)
    ]
    loss = max(_float_log_integrand(k, c, margin) - best for k, best in ends)
    best_a, best_h = 0.0, 0.0
    for i in range(1, 60):
        a = i * 0.03 * math.sqrt(nats + 10.0)
        growth = max(
            max(_float_log_integrand(k, c + a, margin), _float_log_integrand(k, c - a, margin))
            - best
            for k, best in ends
        )
        h = 2.0 * math.pi * a / (nats + 3.0 + max(growth, 0.0))
        if h > best_h:
            best_a, best_h = a, h
    return c, _dyadic(best_a, 8), _dyadic(best_h, 10), loss


@lru_cache(maxsize=512)
def _block(first: int, last: int, nats: float, margin: Fraction) -> ActiveIntegrals:
    c, a, h, loss = _choose(first, last, nats, float(margin))
    half = math.ceil(math.sqrt(2.0 * (nats + loss + 3.0)) / h)
    bits = math.ceil((nats + loss) / math.log(2)) + 2 * math.ceil(math.log2(last + 2)) + 50
    with working_precision(bits):
        m = arb(fmpz(margin.numerator)) / arb(fmpz(margin.denominator))
        power_sums, weighted = _power_sums(first, last, c, h, half, m, bool(margin))
    return _enclose(first, last, c, a, h, half, m, power_sums, weighted, bits)


def laplace_on_line(c: float, h: float, count: int) -> tuple[list[Any], list[Any]]:
    """R(w_j) and e^{w_j^2/2} at w_j = c + i j h, j = 0 .. count-1, c < 0, at the current precision.

    sqrt(2 pi) R(w) = int phi(s) ds / (-w - i s). The trapezoidal rule in s with the same step h is a
    discrete convolution over j: two polynomial products give all values. Its error: the lines
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
    bell = bell[:0:-1] + bell
    real, imaginary = [], []
    for l in range(-reach, count + reach):
        y = l * step
        inverse = 1 / (distance * distance + y * y)
        real.append(distance * inverse)
        imaginary.append(y * inverse)
    products = [_convolve(bell, part) for part in (real, imaginary)]
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
        x = acb(products[0][2 * reach + j], products[1][2 * reach + j]) * factor
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
        self.integers = [(x.mid() * unit).floor().unique_fmpz() for x in balls]
        with working_precision(64):
            self.error = (max(x.rad() for x in balls) + 1 / unit).upper()
            self.top = max(abs(x).upper() for x in balls) + self.error

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


def _convolve(bell: list[Any], kernel: list[Any]) -> list[Any]:
    """Coefficients of the product of the two polynomials."""
    left, right = Fixed(bell), Fixed(kernel)
    product = (fmpz_poly(left.integers) * fmpz_poly(right.integers)).coeffs()
    product += [fmpz(0)] * (len(bell) + len(kernel) - 1 - len(product))
    return left.enclose(product, right, len(bell))


def _power_sums(
    first: int, last: int, c: float, h: float, half: int, m: Any, with_margin: bool
) -> tuple[list[Any], list[Any]]:
    """Sums over nodes of Re g_j X_j^k and Re w_j g_j X_j^k, X_j = R(w_j)/R(c), |X_j| <= 1."""
    nodes = [acb(c, arb(j) * arb(h)) for j in range(half + 1)]
    values, gauss = laplace_on_line(c, h, half + 1)
    scale = values[0].real
    ratios = [x / scale for x in values]
    weights = [g * (1 if j == 0 else 2) for j, g in enumerate(gauss)]
    if with_margin:
        weights = [g * (-m * w).exp() for g, w in zip(weights, nodes, strict=True)]
    count = last - first + 1
    inner = math.isqrt(count) + 1
    outer = -(-count // inner)
    columns = []  # X^0 .. X^{inner-1}, with X^inner as the giant step
    for x in ratios:
        powers = [acb(1)]
        for _ in range(inner):
            powers.append(powers[-1] * x)
        columns.append(powers)
    right = Fixed(
        [p.real for powers in columns for p in powers[:inner]]
        + [-p.imag for powers in columns for p in powers[:inner]]
    )
    top = max(abs(g).upper() for g in weights)
    size = 2 * len(nodes)
    sums = []
    for extra in [None, nodes] if with_margin else [None]:
        left = []
        starts = [g * x**first for g, x in zip(weights, ratios, strict=True)]
        unit = top
        if extra is not None:
            starts = [s * w for s, w in zip(starts, extra, strict=True)]
            unit = top * (abs(nodes[-1]) + 1).upper()
        starts = [s / unit for s in starts]
        for _ in range(outer):
            left += [s.real for s in starts] + [s.imag for s in starts]
            starts = [s * powers[inner] for s, powers in zip(starts, columns, strict=True)]
        entries = Fixed(left).times(right, outer, size, inner)
        sums.append([entry * unit for entry in entries[:count]])
    scaled = []
    for entries in sums:
        factor = scale**first * arb(h)
        values_k = []
        for entry in entries:
            values_k.append(entry * factor)
            factor *= scale
        scaled.append(values_k)
    return scaled[0], (scaled[1] if with_margin else [])


def _enclose(
    first: int,
    last: int,
    c: float,
    a: float,
    h: float,
    half: int,
    m: Any,
    sums: list[Any],
    weighted: list[Any],
    bits: int,
) -> ActiveIntegrals:
    """Add the discretisation and truncation errors of the trapezoidal rule to the radii."""
    with working_precision(64):
        root = (2 * arb.pi()).sqrt()
        damping = 1 / ((2 * arb.pi() * arb(a) / arb(h)).exp() - 1)
        cut = arb(half) * arb(h)
        beyond = 2 * (-cut * cut / 2).exp() / cut  # both sides of int_cut^inf e^{-y^2/2} dy
        beyond_first = 2 * (-cut * cut / 2).exp()  # both sides of int_cut^inf y e^{-y^2/2} dy
        parts = []
        for x in (arb(c), arb(c) + arb(a), arb(c) - arb(a)):
            base = laplace(x)
            parts.append([base, base**first * (x * x / 2 - m * x).exp(), abs(x)])
        errors, moment_errors = [], []
        for k in range(first, last + 1):
            flat, moment = arb(0), arb(0)
            for i, (base, value, size) in enumerate(parts):
                constant = k + m * m + m * size
                if i == 0:
                    flat += value * beyond
                    moment += value * (constant * beyond + m * beyond_first)
                else:
                    flat += value * root * damping
                    moment += value * (constant * root + 2 * m) * damping
                parts[i][1] = value * base
            errors.append(flat)
            moment_errors.append(moment)
    with working_precision(bits):
        plain = [s + _spread(e) for s, e in zip(sums, errors, strict=True)]
        if not weighted:
            moment_values = [k * p for k, p in enumerate(plain, first)]
        else:
            moment_values = [
                (k + m * m) * s - m * w + _spread(e)
                for k, (s, w, e) in enumerate(
                    zip(sums, weighted, moment_errors, strict=True), first
                )
            ]
    return ActiveIntegrals(tuple(plain), tuple(moment_values))


def _spread(error: Any) -> Any:
    return arb(0, error.upper())
