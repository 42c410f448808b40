"""Hebbian memory W = sum_mu u_mu e_mu^T: the load it carries, for one fact and for all of them.

A fact has score 1 + sigma z against competitors sigma z_rho, sigma^2 = p/d^2, so it is recalled
when D = max_rho z_rho - z < 1/sigma. With alpha = p log p/d^2 = L sigma^2 = L/u^2, u = 1/sigma:

* one fact: P(D < u) = 1/2;
* all p facts, whose D are independent (decoupled competitors): P(D < u)^p = 1/2, that is
  p P(D > u) = log 2 up to terms beyond every power of 1/log p.

The maximum is b + x/b with M phi(b) = b and x near the Gumbel law; its moments come from
`replica.log_gamma` with a = 1.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import comb, factorial
from typing import Any

import sympy as sp
from sympy.polys.domains import QQ
from sympy.polys.rings import ring

from replica.expansion.level import LOG_2PI
from replica.log_gamma import PolygammaRing, tail_corrections
from replica.logseries import LogSeries, LogSeriesRing
from replica.wick import odd_factorials

LOG_2, LOG_PI = sp.log(2), sp.log(sp.pi)
ROOT = sp.Symbol("inverse_root_pi", positive=True)  # 1/sqrt(pi)
OFFSET = sp.Symbol("offset")  # log(sqrt(pi) / (2 log 2))


def gumbel_constant(index: int) -> sp.Expr:
    """polygamma(index, 1): -EulerGamma, pi^2/6, -2 zeta(3), ...

    >>> gumbel_constant(0), gumbel_constant(2)
    (-EulerGamma, -2*zeta(3))
    """
    value = sp.polygamma(index, 1)
    return value if index != 0 else -sp.EulerGamma


@lru_cache(maxsize=8)
def maximum_moments(count: int, terms: int) -> tuple[tuple[sp.Expr, ...], ...]:
    """E x^n for n < count, x = b (max of M Gaussians - b): coefficients of b^{-2i}, i < terms.

    The density of x is e^{-x - x^2/(2 b^2)} e^{-M Q(b + x/b)}, an average over Gamma(1) with the
    corrections of M Q in the exponent. Symbols psi_i stand for polygamma(i, 1).

    >>> maximum_moments(2, 2)[0], maximum_moments(2, 2)[1][0]
    ((1, 0), -psi_0)
    """
    work = PolygammaRing(count + 3 * terms, [])
    one = work.ring.one
    orders: list[dict[tuple[int, int], Any]] = [{}]
    for n, correction in enumerate(tail_corrections(terms)):
        if n == 0:
            continue
        row = {(1, power): -value * one for (power, _), value in correction.terms()}
        if n == 1:
            row[0, 2] = -one / 2
        orders.append(row)
    exponential: list[dict[tuple[int, int], Any]] = [{(0, 0): one}]
    for n in range(1, terms):
        total: dict[tuple[int, int], Any] = {}
        for i in range(1, n + 1):
            for (j, m), c in orders[i].items():
                for (jj, mm), d in exponential[n - i].items():
                    key = (j + jj, m + mm)
                    total[key] = total.get(key, work.ring.zero) + c * d * QQ(i, n)
        exponential.append(total)
    table = []
    for power in range(count):
        row_values = []
        for row in exponential:
            value = sum((c * work.moment(j, m + power) for (j, m), c in row.items()), 0 * one)
            row_values.append(sp.expand(value.as_expr().subs(sp.Symbol("a"), 1)))
        table.append(tuple(row_values))
    return tuple(table)


def _moment_symbols(count: int, terms: int) -> list[sp.Symbol]:
    """The psi_i that occur in the moments."""
    table = maximum_moments(count, terms)
    used = {s for row in table for value in row for s in value.free_symbols}
    return sorted(used, key=lambda s: int(s.name[4:]))


def _moments(ring_: LogSeriesRing, count: int, terms: int) -> list[LogSeries]:
    """E x^n as series in a ring whose large variable is b."""
    return [
        sum((ring_.monomial(-2 * i, 0, c) for i, c in enumerate(row)), ring_.zero)
        + ring_.big_o(-2 * terms)
        for row in maximum_moments(count, terms)
    ]


@lru_cache(maxsize=8)
def typical_threshold(order: int) -> LogSeries:
    """u = 1/sigma at which one fact is recalled with probability 1/2, in powers of 1/b.

    E Phi(u - b - x/b) = 1/2; Phi - 1/2 is odd, so with c = u - b the equation is
    sum_m (-1)^m (2m-1)!!/(2m+1)! E (c - x/b)^(2m+1) = 0.

    >>> print(typical_threshold(2))
    b - psi_0/b + O(b**(-3))
    """
    degree = order + 1
    psi = _moment_symbols(degree + 1, order // 2 + 1)
    ring_ = LogSeriesRing(order, psi, name="b", log_name="log_b")
    moments = _moments(ring_, degree + 1, order // 2 + 1)
    inverse = ring_.monomial(-1)

    def central(powers: list[LogSeries], n: int) -> LogSeries:
        """E (c - x/b)^n."""
        total = ring_.zero
        for i in range(n + 1):
            factor = ring_.monomial(-i, 0, comb(n, i) * (-1) ** i)
            total = total + factor * moments[i] * powers[n - i]
        return total

    def step(c: LogSeries) -> LogSeries:
        total = inverse * moments[1]
        powers = [ring_.constant(1)]
        for _ in range(degree):
            powers.append(powers[-1] * c)
        for m in range(1, degree // 2 + 1):
            weight = sp.Rational(abs(odd_factorials(m + 1)[m]), factorial(2 * m + 1))
            if 2 * m + 1 <= degree:
                total = total - (-1) ** m * weight * central(powers, 2 * m + 1)
        return total + ring_.big_o(-degree - 1)

    return ring_.L + ring_.fixed_point(step, ring_.big_o(-1))


def _upper_integrand(order: int) -> dict[int, Any]:
    """e^{eps s} b m(b + eps - s) as {power of s: polynomial in eps and beta = 1/b}."""
    work, s, eps, beta = ring("s, eps, beta", QQ)
    mills = work.zero
    for i, factor in enumerate(odd_factorials(order // 2 + 1)):
        for n in range(order - 2 * i + 1):
            binomial = QQ(int(factor * sp.binomial(-2 * i - 1, n)))
            mills = mills + binomial * beta ** (2 * i + n) * (eps - s) ** n
    exponential = sum(((eps * s) ** n * QQ(1, factorial(n)) for n in range(order + 1)), work.zero)
    kept: dict[int, Any] = {}
    for (i, j, k), value in (mills * exponential).terms():
        if j + k <= order:
            kept[i] = kept.get(i, work.zero) + value * eps**j * beta**k
    return kept


@lru_cache(maxsize=8)
def all_facts_threshold(order: int) -> LogSeries:
    """u = 1/sigma at which all p facts are recalled with probability 1/2, in b and log b.

    P(D > u) = phi(w) H with w = u - b and, theta being the law of the maximum,

        H = b int ds e^{eps s - s^2} m(w - s) theta(b s),   eps = w - b,
        int f(s) theta(b s) ds = int_0^oo f - sum_n [s^n] f  E x^{n+1} / ((n+1) b^{n+1}),

    and p phi(w) = b e^{-b eps - eps^2/2} turns p P(D > u) = log 2 into
    b eps = log b + log H - log log 2 - eps^2/2.

    >>> print(all_facts_threshold(0))
    2*b + O(log_b/b)
    """
    terms = order + 1
    kept = _upper_integrand(terms)
    psi = _moment_symbols(terms + 2, terms // 2 + 2)
    ring_ = LogSeriesRing(order, [ROOT, OFFSET, *psi], name="b", log_name="log_b")
    moments = _moments(ring_, terms + 2, terms // 2 + 2)
    inverse = ring_.monomial(-1)
    # [s^n] of the polynomial times e^{-s^2}
    taylor: dict[int, Any] = {}
    for n, value in kept.items():
        for m in range((terms - n) // 2 + 1):
            scale = QQ((-1) ** m, factorial(m))
            taylor[n + 2 * m] = taylor.get(n + 2 * m, 0) + scale * value

    def ratio(small: LogSeries) -> LogSeries:
        """H / (sqrt(pi)/2)."""
        powers = [ring_.constant(1)]

        def insert(polynomial: Any) -> LogSeries:
            by_power: dict[int, LogSeries] = {}
            for (_, j, k), value in polynomial.terms():
                term = ring_.monomial(-k, 0, sp.Rational(str(value)))
                by_power[j] = by_power.get(j, ring_.zero) + term
            while len(powers) <= max(by_power, default=0):
                powers.append(powers[-1] * small)
            return sum((f * powers[j] for j, f in by_power.items()), ring_.zero)

        total = ring_.zero
        for n, value in kept.items():
            # int_0^oo s^n e^{-s^2} ds = Gamma((n+1)/2)/2, in units of sqrt(pi)/2
            gamma = sp.gamma(sp.Rational(n + 1, 2))
            unit = gamma / sp.sqrt(sp.pi) if n % 2 == 0 else gamma * ROOT
            total = total + unit * insert(value)
        for n, value in taylor.items():
            if n + 1 <= terms:
                boundary = 2 * ROOT * sp.Rational(1, n + 1) * moments[n + 1]
                total = total - ring_.monomial(-n - 1) * boundary * insert(value)
        return total + ring_.big_o(-terms - 1, terms + 1)

    def step(small: LogSeries) -> LogSeries:
        bracket = ring_.ell + OFFSET + ratio(small).log() - small * small * sp.Rational(1, 2)
        return bracket * inverse

    small = ring_.fixed_point(step, ring_.big_o(-1, 1))
    return 2 * ring_.L + small


def in_constants(expression: sp.Expr) -> sp.Expr:
    """Put EulerGamma, pi, zeta values and logarithms for the symbols of a threshold.

    >>> in_constants(sp.Symbol("psi_0") + ROOT)
    -EulerGamma + 1/sqrt(pi)
    """
    values: dict[sp.Symbol, sp.Expr] = {
        ROOT: 1 / sp.sqrt(sp.pi),
        OFFSET: LOG_PI / 2 - LOG_2 - sp.log(LOG_2),
    }
    for symbol in expression.free_symbols:
        if symbol.name.startswith("psi_"):
            values[symbol] = gumbel_constant(int(symbol.name[4:]))
    return expression.subs(values)


@lru_cache(maxsize=8)
def load_series(threshold: Callable[[int], LogSeries], order: int) -> LogSeries:
    """alpha = L/u^2 in L = log p and ell = log L; `in_constants` names the symbols in it.

    1/u^2 is a series in 1/b and log b; b^2 = W(M^2/(2 pi)) is inserted term by term, first in
    Lambda = 2 L with one symbol for log(2 pi), then Lambda is written out.
    """
    steps = 2 * order + 1
    root = threshold(steps)
    inverse = (root * root).with_order(steps + 1)._power(Fraction(-1), Fraction(-steps - 2))
    light = LogSeriesRing(order + 1, [LOG_2PI], name="Lambda", log_name="log_Lambda")
    square = light.lambert_w(light.L - LOG_2PI)
    log_b = square.log() * sp.Rational(1, 2)
    symbols = sorted({s for _, _, c in root.items() for s in c.free_symbols}, key=str)
    constants = [LOG_2, LOG_PI, *symbols]
    full = LogSeriesRing(order, constants, [sp.sqrt(2)])
    total = full.zero
    for power, log_power, c in inverse.items():
        part = square._power(power / 2, -light.order) * log_b.power(log_power)
        total = total + c * _written_out(light.L * part, full)
    if inverse.remainder is not None:
        e, k = inverse.remainder
        total = total + full.big_o(e / 2 + 1, k)
    return total * sp.Rational(1, 2)


def _written_out(series: LogSeries, full: LogSeriesRing) -> LogSeries:
    """A series in Lambda = 2 L rewritten in L, ell, log 2 and log pi."""
    logarithm = full.ell + LOG_2
    total = full.zero
    for power, log_power, c in series.items():
        scale = sp.Integer(2) ** sp.Rational(power.numerator, power.denominator)
        factor = full.monomial(power, 0, sp.expand(c.subs(LOG_2PI, LOG_2 + LOG_PI) * scale))
        total = total + factor * logarithm.power(log_power)
    if series.remainder is not None:
        total = total + full.big_o(*series.remainder)
    return total


def typical_load(order: int) -> LogSeries:
    """alpha at which one fact is recalled with probability 1/2, to L^(-order).

    >>> print(typical_load(0))
    1/2 + O(ell/L)
    """
    return load_series(typical_threshold, order)


def all_facts_load(order: int) -> LogSeries:
    """alpha at which all facts are recalled with probability 1/2, to L^(-order).

    >>> print(all_facts_load(0))
    1/8 + O(ell/L)
    """
    return load_series(all_facts_threshold, order)
