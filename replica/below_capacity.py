"""Below capacity (alpha < 1/2 fixed): overlap and free entropy as series in 1/log p.

The competitors near the threshold are few and fresh in every replica: for two replicas at overlap
q the probability that one competitor exceeds b in both is M^{-2/(1+q)}, so M times it,
M^{-(1-q)/(1+q)}, is beyond every power of 1/log M and Z depends on the target's field alone:

    Z = int dy N(y; omega_0, V) e^{-M Q(y)},   omega_0 ~ N(0, q),  V = 1 - q.

With M phi(b) = b, that is b^2 = W(M^2/(2 pi)), and k = 1/V,

    E log Z = -(k/2)(b^2 + q) - log b - (1/2) log(2 pi/k) + log Gamma(k) + sum_n F_n b^{-2n}

(`replica.log_gamma` derives the F_n). The regime ends where M^{-(1-q)/(1+q)} is no longer small,
V log M = O(1); the expansion named log_partition states the form that joins it to the expansions at
capacity, and `numerics.crossover` evaluates it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import sympy as sp
from sympy.polys.rings import PolyElement

from replica.errors import InvalidInput
from replica.log_gamma import PolygammaRing, log_integral
from replica.logseries import LogSeries, LogSeriesRing

ALPHA = sp.Symbol("alpha", positive=True)
LOG_2PI = sp.Symbol("log_2pi")
K, V = sp.symbols("k v", positive=True)  # k = 1/(1 - 2 alpha), v = 1/k
LOG_K, LOG_GAMMA_K = sp.Symbol("log_k"), sp.Symbol("loggamma_k")
LARGEST_ORDER = 4


def on_shell(terms: int, spare: int = 4) -> tuple[PolygammaRing, list[PolyElement]]:
    """F_1 ... F_terms with a = k and q = 1 - 1/k, as polynomials in a = k and psi_i.

    Each omega comes with a factor k, so k^i q^m has i >= 2 m and stays polynomial.

    >>> ring_, (first,) = on_shell(1)
    >>> first
    1/2*a**2*psi_1 - a*psi_0 - 1/2*a*psi_1 + a + psi_0 - 1
    """
    source, corrections = log_integral(terms, spare)
    k_index = source.ring.gens.index(source.others["k"])
    q_index = source.ring.gens.index(source.others["q"])
    result = []
    for correction in corrections:
        total = source.ring.zero
        for monomial, value in correction.terms():
            power, times = monomial[k_index], monomial[q_index]
            rest = list(monomial)
            rest[k_index] = rest[q_index] = 0
            if power < times:
                raise ArithmeticError("a correction is not polynomial in k on the line q = 1-1/k")
            term = source.ring.from_dict({tuple(rest): value})
            total = total + term * source.a ** (power - times) * (source.a - 1) ** times
        result.append(total)
    return source, result


def gaussian_maximum_square(order: int) -> LogSeries:
    """b^2 = W(M^2/(2 pi)), M phi(b) = b, in Lambda = 2 log M with LOG_2PI for log(2 pi).

    >>> print(gaussian_maximum_square(1))
    Lambda - log_Lambda - log_2pi + log_Lambda/Lambda + log_2pi/Lambda
    + O(log_Lambda**2/Lambda**2)
    """
    ring = LogSeriesRing(order, [LOG_2PI], name="Lambda", log_name="log_Lambda")
    return ring.lambert_w(ring.L - LOG_2PI)


class _Expansion:
    """Series about q = 2 alpha in the large variable k Lambda, k = 1/(1 - 2 alpha).

    Lambda = 2 log p. In the unknown Delta, 1 - q = (1 - Delta)/k, and in 1/(k Lambda) all
    coefficients are polynomials in k and psi_i = polygamma(i, k): no fractions to reduce. The
    ring's logarithm is that of Lambda, known only through `maximum`, b^2/Lambda.
    """

    def __init__(self, order: int) -> None:
        self.order = order
        self.source, self.corrections = on_shell(max(order, 1), 2 * order + 6)
        self.psi = [sp.Symbol(f"psi_{i}") for i in range(self.source.count)]
        constants = [K, LOG_2PI, LOG_K, LOG_GAMMA_K, *self.psi]
        self.ring = LogSeriesRing(order, constants, name="k_Lambda", log_name="log_Lambda")
        self.small = self.ring.monomial(-1)
        self.maximum = self.ring.zero
        square = gaussian_maximum_square(order + 1)
        for power, log_power, c in square.items():
            term = self.ring.monomial(power - 1, log_power, c * K ** int(1 - power))
            self.maximum = self.maximum + term
        if square.remainder is not None:
            self.maximum += self.ring.big_o(square.remainder[0] - 1, square.remainder[1])
        self.inverse = K * self.small / self.maximum  # 1/b^2

    def taylor(self, derivatives: list[Any], drift: LogSeries) -> LogSeries:
        """sum_m f^(m)(k) drift^m / m!."""
        total, power = self.ring.zero, self.ring.constant(1)
        for m, value in enumerate(derivatives):
            total = total + power * value
            power = power * drift * sp.Rational(1, m + 1)
        return total

    def corrected(self, polynomials: list[PolyElement], drift: LogSeries) -> LogSeries:
        """sum_n f_n b^{-2n}, n = 1 ..., with f_n taken at a = k + drift."""
        total, power = self.ring.zero, self.ring.constant(1)
        for f in polynomials:
            power = power * self.inverse
            derivatives = []
            for _ in range(self.order + 1):
                derivatives.append(f.as_expr().subs(sp.Symbol("a"), K))
                f = self.source.derivative(f)
            total = total + power * self.taylor(derivatives, drift)
        return total


@lru_cache(maxsize=8)
def _saddle(order: int) -> tuple[_Expansion, LogSeries]:
    """Delta at the saddle point, 1 - q = (1 - Delta)/k.

    q = (alpha/L)[b^2 + q - 2 H], H = psi(1/(1-q)) + sum_n F_n' b^{-2n}, multiplied by k.
    """
    work = _Expansion(order)
    ring = work.ring
    slopes = [work.source.derivative(f) for f in work.corrections[: max(order - 1, 0)]]

    def step(delta: LogSeries) -> LogSeries:
        drift = K * ((1 - delta).inverse() - 1)
        digamma = work.taylor(list(work.psi[: order + 1]), drift)
        force = delta + (K - 1) - 2 * K * (digamma + work.corrected(slopes, drift))
        return (K - 1) * (work.maximum - 1 + work.small * force)

    return work, ring.fixed_point(step, ring.big_o(-1, 1))


def _in_log_p(work: _Expansion, series: LogSeries, power_of_k: int = 0) -> LogSeries:
    """k^power_of_k times a series, in L = log p: k Lambda = 2 k L, v = 1/k = 1 - 2 alpha."""
    log_2, log_pi = sp.log(2), sp.log(sp.pi)
    constants = [log_2, log_pi, K, V, LOG_K, LOG_GAMMA_K, *work.psi]
    ring = LogSeriesRing(work.order, constants)
    logarithms = [ring.constant(1)]
    result = ring.zero
    for power, log_power, c in series.items():
        while len(logarithms) <= log_power:
            logarithms.append(logarithms[-1] * (ring.ell + log_2))
        value = (c * (2 * K) ** int(power) * K**power_of_k).subs(LOG_2PI, log_2 + log_pi)
        value = sp.expand(value).replace(
            lambda e: e.is_Pow and e.base == K and e.exp.is_negative,
            lambda e: V ** (-e.exp),
        )
        result = result + ring.monomial(power, 0, value) * logarithms[log_power]
    if series.remainder is not None:
        result = result + ring.big_o(*series.remainder)
    return result


def in_alpha(expression: sp.Expr) -> sp.Expr:
    """Put k = 1/(1 - 2 alpha), v = 1/k and psi_i = polygamma(i, k) into an expression.

    >>> in_alpha(sp.Symbol("psi_1") + V)
    -2*alpha + polygamma(1, 1/(1 - 2*alpha)) + 1
    """
    shape = 1 / (1 - 2 * ALPHA)
    values: dict[sp.Expr, sp.Expr] = {
        K: shape,
        V: 1 - 2 * ALPHA,
        LOG_K: -sp.log(1 - 2 * ALPHA),
        LOG_GAMMA_K: sp.loggamma(shape),
    }
    for symbol in expression.free_symbols:
        if symbol.name.startswith("psi_"):
            values[symbol] = sp.polygamma(int(symbol.name[4:]), shape)
    return expression.subs(values)


def overlap(order: int) -> LogSeries:
    """q(alpha, p) to L^(-order), in k = 1/(1 - 2 alpha), v = 1/k, psi_i = polygamma(i, k).

    The saddle point of the free entropy, q = (alpha/L)[b^2 + q - 2 psi(1/(1-q)) - ...]. Orders 0
    to LARGEST_ORDER; InvalidInput otherwise.

    >>> in_alpha(overlap(1).coefficient(-1, 1))
    -alpha
    """
    check(order)
    work, delta = _saddle(order)
    return 1 - V + _in_log_p(work, delta, -1)  # q = 1 - (1 - Delta)/k


def free_entropy(order: int) -> LogSeries:
    """phi(alpha, p) per d^2 to L^(-order), at the saddle point; symbols as in `overlap`.

    phi = -(1/2) log k' + (k'-1)/2 + (alpha/L) E log Z at k' = 1/(1-q), the saddle point.

    >>> in_alpha(free_entropy(0).coefficient(0))
    log(1 - 2*alpha)/2
    """
    check(order)
    work, delta = _saddle(order)
    half = sp.Rational(1, 2)
    ratio = (1 - delta).inverse()  # k'/k
    drift = K * (ratio - 1)
    log_shape = LOG_K + ratio.log()
    log_maximum = work.ring.ell + work.maximum.log()
    rest = (
        work.taylor([LOG_GAMMA_K, *work.psi[:order]], drift)
        - half * (K * ratio - 1 + log_maximum + LOG_2PI - log_shape)
        + work.corrected(work.corrections[: max(order - 1, 0)], drift)
    )
    # (2 alpha / Lambda) = (k-1)/(k Lambda); the b^2 part keeps its factor Lambda
    energy = (K - 1) * (work.small * rest - half * ratio * work.maximum)
    return _in_log_p(work, half * (K * ratio - 1 - log_shape) + energy)


def check(order: int) -> None:
    """Refuse an order that is not offered."""
    if not 0 <= order <= LARGEST_ORDER:
        raise InvalidInput(
            f"the order is {order}; below capacity the series is available for orders 0 to "
            f"{LARGEST_ORDER}; give such an order"
        )
