"""The storage capacity alpha_c(p) = log p / delta as a series, in three forms.

* in T: L / (T^2 + 3 - 9/T^2 + ...), M psi_1(T) = T;
* resummed: L / (X_W + 3 - 15/X_W + ...), X_W = 3 W(exp((2 log M - log 2 pi)/3)/3);
* in L = log p and ell = log L.

M = p - 1 competitors against M = p: log(p - 1) = L - 1/p - ... differs beyond every power of 1/L,
so the two have the same series; so has the error O(T^4/M) of the Poisson limit.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import sympy as sp

from replica.expansion.cone import distance_square_with_margin, statistical_dimension
from replica.expansion.level import (
    LOG_2PI,
    insert,
    level_in_double_log,
    normal_height,
    resummed_level,
)
from replica.logseries import LogSeries, LogSeriesRing

LOG_2, LOG_PI = sp.log(2), sp.log(sp.pi)


@lru_cache(maxsize=32)
def resummed_dimension(terms: int) -> tuple[Fraction, ...]:
    """delta = sum_i d_i X_W^(1-i) with rational d_i, X_W Lambert's form of T^2.

    >>> [str(c) for c in resummed_dimension(4)]
    ['1', '3', '-15', '191/2']
    """
    ring = LogSeriesRing(terms, name="X_W", log_name="log_X_W")
    level = insert(resummed_level(terms), ring.L)
    delta = insert(statistical_dimension(terms), level)
    values = [delta.coefficient(1 - i) for i in range(terms)]
    return tuple(Fraction(int(c.p), int(c.q)) for c in values)


@lru_cache(maxsize=32)
def dimension_in_double_log(order: int) -> LogSeries:
    """delta as a series in Lambda = 2 log M, kept to Lambda^(-order)."""
    level = level_in_double_log(order)
    return insert(statistical_dimension(order + 2), level)


def in_log_p(series: LogSeries, order: int) -> LogSeries:
    """Rewrite a series in Lambda = 2 L, log Lambda and log(2 pi) in L, ell, log 2 and log pi."""
    ring = LogSeriesRing(order, [LOG_2, LOG_PI])
    double_log = [ring.constant(1)]
    result = ring.zero
    for power, log_power, c in series.items():
        while len(double_log) <= log_power:
            double_log.append(double_log[-1] * (ring.ell + LOG_2))
        factor = ring.monomial(power, 0, sp.expand(c.subs(LOG_2PI, LOG_2 + LOG_PI)))
        result = result + factor * sp.Integer(2) ** int(power) * double_log[log_power]
    if series.remainder is not None:
        result = result + ring.big_o(*series.remainder)
    return result


@lru_cache(maxsize=32)
def capacity(order: int) -> LogSeries:
    """alpha_c(p) = L / delta(p - 1) to L^(-order), L = log p, ell = log L.

    >>> print(capacity(1))
    1/2 + 3*ell/(4*L) - 3/(4*L) + log(pi)/(4*L) + log(2)/L + O(ell**2/L**2)
    """
    # one power of L is lost in L / delta and the O-term of delta is relative: keep order - 1
    delta = dimension_in_double_log(max(order - 1, 0))
    delta = delta.with_order(order)
    return in_log_p(delta.ring.L / (2 * delta), order)


def capacity_for_competitors(order: int) -> LogSeries:
    """log p / delta(M) for M = c p^b competitors: alpha_c with symbolic b > 0 and c > 0.

    log M = b L + log c is inserted in the series for delta.

    >>> print(capacity_for_competitors(0))
    1/(2*b) + O(ell/L)
    """
    b, c = sp.symbols("b c", positive=True)
    constants = [LOG_2, LOG_PI, b, sp.log(b), sp.log(c)]
    ring = LogSeriesRing(order, constants, field=True)
    delta = dimension_in_double_log(max(order - 1, 0))
    double_log = 2 * b * ring.L + 2 * sp.log(c)
    total, logarithm = ring.zero, double_log.log()
    for power, log_power, value in delta.items():
        factor = sp.expand(value.subs(LOG_2PI, LOG_2 + LOG_PI))
        total = total + factor * double_log.power(power) * logarithm.power(log_power)
    if delta.remainder is not None:
        total = total + ring.big_o(*delta.remainder)
    return ring.L / total


def _laurent(row: dict[int, Fraction], powers: dict[int, LogSeries], sigma: LogSeries) -> LogSeries:
    total = sigma.ring.zero
    for exponent, value in row.items():
        if exponent not in powers:
            powers[exponent] = sigma.power(exponent)
        total = total + value * powers[exponent]
    return total


def _dimension_at(level: LogSeries, sigma: LogSeries, terms: int) -> LogSeries:
    """delta_m = sum_i c_i(sigma) X^(1-i) for series X and sigma."""
    order = level.ring.order
    level = level.with_order(order + 1)
    sigma = LogSeries(level.ring, sigma.terms, sigma.remainder)
    inverse, power = level.inverse(), level
    powers: dict[int, LogSeries] = {}
    total = level.ring.zero
    for row in distance_square_with_margin(terms):
        total = total + power * _laurent(row, powers, sigma)
        power = power * inverse
    return (total + LogSeries(level.ring, {}, power.bound())).with_order(order)


def capacity_with_large_margin(order: int) -> LogSeries:
    """alpha_c for the margin mu sqrt(2 log p): L / delta_m, with mu symbolic.

    sigma = 1 + mu sqrt(2 L / X) and X = T^2 are solved together. The leading term is
    1 / (2 (1 + mu)^2).

    >>> capacity_with_large_margin(0).coefficient(0)
    1/(2*mu**2 + 4*mu + 2)
    """
    mu = sp.Symbol("mu", positive=True)
    log_margin = sp.log(mu + 1)
    keep = order  # sigma^2 X loses one power of the accuracy of sigma
    ring = LogSeriesRing(keep, [LOG_2, LOG_PI, mu, log_margin], field=True)

    def sigma_of(level: LogSeries) -> LogSeries:
        return 1 + mu * (2 * ring.L / level).power(Fraction(1, 2))

    def step(level: LogSeries) -> LogSeries:
        height = normal_height(1 / level, keep + 1)
        right = 2 * ring.L - LOG_2 - LOG_PI - 3 * level.log()
        return right - 2 * sigma_of(level).log() - 2 * height.log()

    level = ring.fixed_point(step, 2 * ring.L + ring.big_o(0, 1))
    delta = _dimension_at(level, sigma_of(level), keep + 2)
    return ring.L / delta


def capacity_with_margin(order: int) -> LogSeries:
    """alpha_c for a fixed margin m: L / delta_m in powers of L^(-1/2), with m symbolic.

    >>> print(capacity_with_margin(0))
    1/2 + O(1/sqrt(L))
    """
    m = sp.Symbol("margin", real=True)
    keep = order
    ring = LogSeriesRing(keep, [LOG_2, LOG_PI, m], [sp.sqrt(2)])
    depth = keep + 1

    def sigma_of(level: LogSeries) -> LogSeries:
        return 1 + m * level.power(Fraction(-1, 2))

    def step(level: LogSeries) -> LogSeries:
        height = normal_height(1 / level, depth)
        right = 2 * ring.L - LOG_2 - LOG_PI - 3 * level.log()
        return right - 2 * sigma_of(level).log() - 2 * height.log()

    level = ring.fixed_point(step, 2 * ring.L + ring.big_o(0, 1))
    delta = _dimension_at(level, sigma_of(level), depth + 1)
    return ring.L / delta
