"""Averages over the log-Gamma law, and the log of a perturbed log-Gamma integral.

Below capacity the target score is y = b + x/b with b fixed by M phi(b) = b, and

    M Q(b + x/b) = G (1 + R_1(x)/b^2 + R_2(x)/b^4 + ...),  G = e^{-x},

so that int dx e^{-a x - G} [...] is an average over G ~ Gamma(a): <G^j x^n> =
(-d/da)^n [(a)_j Gamma(a)] / Gamma(a), a polynomial in a and the polygamma functions psi_i(a).
The same averages with a = 1 are those of the Gumbel law of the maximum of M Gaussians.
"""

from __future__ import annotations

from functools import lru_cache
from math import factorial
from typing import Any

import sympy as sp
from sympy.polys.domains import QQ
from sympy.polys.rings import PolyElement, PolyRing, ring

from replica.wick import odd_factorials

_X_RING, _X, _G = ring("x, G", QQ)


@lru_cache(maxsize=8)
def tail_corrections(terms: int) -> tuple[PolyElement, ...]:
    """R_0 = 1, R_1, ..., R_{terms-1} in M Q(b + x/b) = e^{-x} sum_n R_n(x) b^{-2n}.

    From M phi(b) = b, phi(b + x/b) = phi(b) e^{-x - x^2/(2 b^2)} and the Mills series.

    >>> tail_corrections(2)[1]
    -1/2*x**2 - x - 1
    """
    x = _X
    gaussian = [QQ((-1) ** n, 2**n * factorial(n)) * x ** (2 * n) for n in range(terms)]
    mills = [_X_RING.zero] * terms
    for i, factor in enumerate(odd_factorials(terms)):
        for n in range(terms - i):  # factor b^{-2i} (1 + x/b^2)^{-2i-1}
            binomial = sp.binomial(-2 * i - 1, n)
            mills[i + n] = mills[i + n] + QQ(int(factor * binomial)) * x**n
    return tuple(
        sum((gaussian[i] * mills[n - i] for i in range(n + 1)), _X_RING.zero) for n in range(terms)
    )


class PolygammaRing:
    """Polynomials in a and psi_i = polygamma(i, a) together with further symbols.

    >>> r = PolygammaRing(3, ["q"])
    >>> r.moment(0, 1), r.moment(1, 0)
    (-psi_0, a)
    >>> r.derivative(r.moment(0, 1))
    -psi_1
    """

    def __init__(self, count: int, others: list[str]) -> None:
        self.count = count
        names = ["a", *others, *(f"psi_{i}" for i in range(count))]
        made: Any = ring(names, QQ)
        self.ring: PolyRing = made[0]
        gens = made[1:]
        self.a = gens[0]
        self.others = dict(zip(others, gens[1 : 1 + len(others)], strict=True))
        self.psi = list(gens[1 + len(others) :])
        self._moments: dict[tuple[int, int], PolyElement] = {}

    def derivative(self, f: PolyElement) -> PolyElement:
        """d/da, with d psi_i / da = psi_{i+1}."""
        result = f.diff(self.a)
        for i, symbol in enumerate(self.psi):
            part = f.diff(symbol)
            if part != 0:
                if i + 1 >= self.count:
                    raise ArithmeticError("more polygamma functions are needed than the ring has")
                result = result + part * self.psi[i + 1]
        return result

    def moment(self, j: int, n: int) -> PolyElement:
        """<G^j x^n> for G ~ Gamma(a), x = -log G."""
        if (j, n) not in self._moments:
            if n == 0:
                value = self.ring.one
                for i in range(j):
                    value = value * (self.a + i)
            else:
                before = self.moment(j, n - 1)
                value = -(self.derivative(before) + self.psi[0] * before)
            self._moments[j, n] = value
        return self._moments[j, n]

    def to_sympy(self, f: PolyElement, shape: sp.Expr) -> sp.Expr:
        """The polynomial with a -> shape and psi_i -> polygamma(i, shape)."""
        values = {sp.Symbol("a"): shape}
        values |= {sp.Symbol(f"psi_{i}"): sp.polygamma(i, shape) for i in range(self.count)}
        return f.as_expr().subs(values)


@lru_cache(maxsize=8)
def log_integral(terms: int, spare: int = 4) -> tuple[PolygammaRing, tuple[PolyElement, ...]]:
    """F_1 ... F_terms: corrections to log Gamma(a) of the averaged log-integral.

    E_omega log int dx exp(-a x + k omega x/b - k x^2/(2 b^2) - M Q(b + x/b))
        = log Gamma(a) + sum_n F_n(a; k, q) b^{-2n},   omega ~ N(0, q),

    where a = k = 1/V is wanted; a is kept apart because -d/da inserts x. Returns the ring (symbols
    a, k, q, psi_i, enough of them to differentiate `spare` times) and the polynomials.

    >>> ring_, (first,) = log_integral(1)
    >>> first.as_expr().coeff(sp.Symbol("q"))
    k**2*psi_1/2
    """
    work = PolygammaRing(2 * terms + spare, ["k", "q", "omega"])
    k, q, omega = (work.others[name] for name in ("k", "q", "omega"))
    size = 2 * terms + 1  # powers of epsilon = 1/b
    # the exponent's perturbation, order by order: {(power of G, power of x): coefficient}
    orders: list[dict[tuple[int, int], PolyElement]] = [{} for _ in range(size)]
    orders[1][0, 1] = k * omega
    if size > 2:
        orders[2][0, 2] = -k / 2
    for n, correction in enumerate(tail_corrections(terms + 1)):
        if n == 0 or 2 * n >= size:
            continue
        for (power, _), value in correction.terms():
            key = (1, power)
            orders[2 * n][key] = orders[2 * n].get(key, work.ring.zero) - value
    # exp by n e_n = sum_i i u_i e_{n-i}, still as polynomials in G and x
    exponential: list[dict[tuple[int, int], PolyElement]] = [{(0, 0): work.ring.one}]
    for n in range(1, size):
        total: dict[tuple[int, int], PolyElement] = {}
        for i in range(1, n + 1):
            for (j, m), c in orders[i].items():
                for (jj, mm), d in exponential[n - i].items():
                    key = (j + jj, m + mm)
                    total[key] = total.get(key, work.ring.zero) + c * d * QQ(i, n)
        exponential.append(total)
    averaged = [
        sum((c * work.moment(j, m) for (j, m), c in row.items()), work.ring.zero)
        for row in exponential
    ]
    # log by n l_n = n u_n - sum_i i l_i u_{n-i}
    logarithm = [work.ring.zero]
    for n in range(1, size):
        value = averaged[n]
        for i in range(1, n):
            value = value - logarithm[i] * averaged[n - i] * QQ(i, n)
        logarithm.append(value)
    return work, tuple(_gaussian_average(logarithm[2 * n], omega, q) for n in range(1, terms + 1))


def _gaussian_average(f: PolyElement, omega: PolyElement, q: PolyElement) -> PolyElement:
    """E over omega ~ N(0, q): omega^{2m} -> (2m-1)!! q^m, odd powers vanish."""
    index = f.ring.gens.index(omega)
    result = f.ring.zero
    for monomial, value in f.terms():
        power = monomial[index]
        if power % 2:
            continue
        rest = list(monomial)
        rest[index] = 0
        double_factorial = factorial(power) // (2 ** (power // 2) * factorial(power // 2))
        term = f.ring.from_dict({tuple(rest): value * double_factorial})
        result = result + term * q ** (power // 2)
    return result
