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

from flint import acb, arb, fmpz

from numerics.balls import working_precision
from numerics.cone.gauss import LOG_SQRT_2PI, float_log_laplace, laplace
from numerics.cone.line import laplace_on_line, multiply


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
    while len(plain) < count:
        block = _block(len(plain), nats, margin)
        plain += block.plain
        moment += block.moment
    return ActiveIntegrals(tuple(plain[:count]), tuple(moment[:count]))


def _saddle(k: int, margin: float) -> float:
    """Root of d/dc [k log R(c) + c^2/2 - m c] = k/(m(-c)) + (k+1) c - m, by bisection."""
    low, high = -math.sqrt(k + 1.0) - 1.0, margin + 1.0
    for _ in range(40):
        c = 0.5 * (low + high)
        hazard = math.exp(-LOG_SQRT_2PI - float_log_laplace(c))
        low, high = (low, c) if k * hazard + (k + 1) * c - margin > 0 else (c, high)
    return 0.5 * (low + high)


def _float_log_integrand(k: int, c: float, margin: float) -> float:
    return k * float_log_laplace(c) + 0.5 * c * c - margin * c


def _dyadic(number: float, bits: int) -> float:
    """The number rounded to so many bits: an exact binary node."""
    mantissa, exponent = math.frexp(number)
    return math.ldexp(round(math.ldexp(mantissa, bits)), exponent - bits)


def _contour(first: int, last: int, margin: float) -> tuple[float, float]:
    """The common contour of a block and the largest loss (nats) of sharing it."""
    ends = [_saddle(first, margin), _saddle(last, margin)]
    c = _dyadic(0.5 * (ends[0] + ends[1]), 10)
    if abs(c) < 0.25:  # the values on the line are computed from the pole of 1/w
        c = -0.25
    loss = max(
        _float_log_integrand(k, c, margin) - _float_log_integrand(k, x, margin)
        for k, x in ((first, ends[0]), (last, ends[1]))
    )
    return c, loss


def _block_end(first: int, nats: float, margin: float) -> int:
    """Last k of the block that starts at `first`: as far as one contour serves well."""
    width = max(4, math.ceil(0.45 * math.sqrt(nats)))
    last = (math.isqrt(first) + width) ** 2 - 1
    while last > first and _contour(first, last, margin)[1] > 10.0 + 0.2 * nats:
        last = first + (last - first) // 2
    return last


def _choose(first: int, last: int, nats: float, margin: float) -> tuple[float, float, float, float]:
    """Contour c, strip a, step h and the largest loss (nats) of sharing the contour."""
    c, loss = _contour(first, last, margin)
    ends = [(k, _float_log_integrand(k, _saddle(k, margin), margin)) for k in (first, last)]
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
def _block(first: int, nats: float, margin: Fraction) -> ActiveIntegrals:
    last = _block_end(first, nats, float(margin))
    c, a, h, loss = _choose(first, last, nats, float(margin))
    half = math.ceil(math.sqrt(2.0 * (nats + loss + 3.0)) / h)
    bits = math.ceil((nats + loss) / math.log(2)) + 2 * math.ceil(math.log2(last + 2)) + 50
    with working_precision(bits):
        m = arb(fmpz(margin.numerator)) / arb(fmpz(margin.denominator))
        power_sums, weighted = _power_sums(first, last, c, h, half, m, bool(margin))
    return _enclose(first, last, c, a, h, half, m, power_sums, weighted, bits)


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
    right = [p.real for powers in columns for p in powers[:inner]]
    right += [-p.imag for powers in columns for p in powers[:inner]]
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
        entries = multiply(left, right, outer, size, inner)
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
