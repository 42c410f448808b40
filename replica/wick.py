"""Two-variable Wick expansion about the saddle point of the many-competitor integral.

With M competitors the generating function of the number K of active competitors is

    E s^K = int dt dlambda/(2 pi) e^{-lambda^2/2 + i lambda (t+m)} (1 + s d/ds) (a + s b)^M,
    a = Phi(t),  b = phi(t) m(t + i lambda),  m = Mills ratio,

(`replica.expansion.cone` derives it). In the Poisson limit (a + s b)^M -> exp(s B - M Q(t)) with
B = M b; the error is of relative order M Q(t)^2 = O(T^4/M), beyond every power of 1/log M.
Define T by M psi_1(T) = T + m, psi_1(t) = phi(t) - t Q(t), write v = i lambda, and scale

    h = 1/T^2,   t = T (1 + x h),   v = T y,   T + m = sigma T   (sigma = 1: no margin).

Then every integrand is P exp(S) with S = (1/h) [y g(x) + sum_{j>=2} c_j(x, h) y^j], g(0) = 0,
and since int du dv/(2 pi i) e^{u v} u^a v^b vanishes unless a = b, when it is (-1)^a a!,
Lagrange's inversion gives

    <P> = h sum_k (-1)^k k! h^k [x^k y^k]  P exp(sum_{j>=2} c_j y^j / h) (x / g)^{k+1},

an exact formal identity: no inversion of g and no floating-point number. A term x^a y^j h^b has
weight a + j + 2 b >= 0, and the weight 2 n collects exactly the coefficient of h^n.

With sigma kept as a symbol the engine uses Y = y/sigma and H = h/sigma, in which all coefficients
are polynomials in sigma.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb, factorial
from typing import Any

import sympy as sp
from sympy.polys.domains import ZZ
from sympy.polys.rings import ring

from replica.plane import Plane, Shape, triangle

# Observables are polynomials in B = M b, its derivatives in w = t + i lambda, and t / T.
ACTIVE, ACTIVE_1, ACTIVE_2, LEVEL = sp.symbols("B B_1 B_2 t_over_T")

_SIGMA_RING, _SIGMA = ring("sigma", ZZ)


def odd_factorials(count: int) -> list[int]:
    """(-1)^i (2i-1)!! for i < count, the asymptotic coefficients of the Mills ratio.

    m(t) = int_0^oo e^{-t x - x^2/2} dx ~ sum_i (-1)^i (2i-1)!! t^{-2i-1}.

    >>> odd_factorials(5)
    [1, -1, 3, -15, 105]
    """
    values = [1]
    for i in range(1, count):
        values.append(-values[-1] * (2 * i - 1))
    return values


def _binomial(n: int, k: int) -> int:
    """binom(n, k) for a negative upper index."""
    return (-1) ** k * comb(k - n - 1, k)


def mills_taylor(shape: Shape, power: int, one: Any = 1) -> Plane:
    """Coefficient of y^power in T m(T (1 + x h + y)) as a series in x and h.

    T m(T z) = sum_i (-1)^i (2i-1)!! h^i z^(-2i-1), and z^-n is expanded binomially about z = 1.
    """
    terms: dict[tuple[int, int], Fraction] = {}
    for i, factor in enumerate(odd_factorials(len(shape))):
        outer = factor * _binomial(-2 * i - 1, power)
        for a in range(len(shape) - i):
            terms[(a, a + i)] = Fraction(outer * _binomial(-2 * i - 1 - power, a))
    return Plane.from_terms(shape, terms, one)


def density_ratio(shape: Shape, one: Any = 1) -> Plane:
    """phi(T (1 + x h)) / phi(T) = exp(-x) exp(-x^2 h / 2) as a series in x and h."""
    linear = {(a, 0): Fraction((-1) ** a, factorial(a)) for a in range(shape[0])}
    square = {(2 * b, b): Fraction((-1) ** b, 2**b * factorial(b)) for b in range(len(shape))}
    first = Plane.from_terms(shape, linear, one)
    return first.times(Plane.from_terms(shape, square, one), shape)


@dataclass(frozen=True)
class Saddle:
    """The expanded exponent and what the averages need, exact through h^half (relative).

    `bare[j]` is D_j, with H B = sum_j sigma^j D_j Y^j; `weights[n]` the coefficient of
    Y^n H^(-(n//2)) in the exponential of the terms beyond the linear one; `slope` is x/g.
    """

    half: int
    sigma: Any
    bare: tuple[Plane, ...]
    weights: tuple[Plane, ...]
    slope: Plane

    @classmethod
    def build(cls, half: int, sigma: Any = 1) -> Saddle:
        """Expand the exponent about the saddle point and exponentiate it."""
        one = sigma**0
        weight = 2 * half
        wide = triangle(weight + 1)  # g is divided by x, which costs one weight
        count = weight + 3
        taylor = [mills_taylor(wide, j, one).with_h_scaled(sigma) for j in range(count)]
        # g(0) = 0 fixes M, that is, M psi_1(T) = T + m: D_1 must be -1 at x = 0.
        height = taylor[1].at_zero_x().scaled(-one).inverse(wide)
        profile = density_ratio(wide, one).with_h_scaled(sigma).times(height, wide).reduced()
        bare = [profile.times(plane, wide).reduced() for plane in taylor]
        constant = {(0, 0): Fraction(1)}
        linear = bare[1].plus(Plane.from_terms(wide, {**constant, (1, 1): Fraction(1)}, one))
        slope = linear.divided_by_x().inverse(triangle(weight))
        # (1/H) sum_{j>=2} c_j Y^j with c_j = sigma^j D_j, and sigma/2 more for j = 2
        gaussian = Plane.from_terms(wide, constant, one).scaled(sigma, 2)
        exponent = [plane.scaled(j * sigma**j) for j, plane in enumerate(bare)]
        exponent[2] = exponent[2].plus(gaussian, 2)
        weights = [Plane.from_terms(cls._weight_shape(half, 0), constant, one)]
        for n in range(1, weight + 1):
            shape = cls._weight_shape(half, n)
            total = Plane.from_terms(shape, {}, one)
            for j in range(2, n + 1):
                shift = n // 2 - 1 - (n - j) // 2
                total = total.plus(exponent[j].times(weights[n - j], shape, shift))
            weights.append(total.scaled(one, n).reduced())
        return cls(half, sigma, tuple(bare), tuple(weights), slope)

    @staticmethod
    def _weight_shape(half: int, n: int) -> list[int]:
        """What of weights[n] can still reach x^k y^k h^b, k >= n, within h^half."""
        return triangle(2 * half)[: half - (n + 1) // 2 + 1]

    def average(self, observable: sp.Expr) -> tuple[int, list[dict[int, Fraction]]]:
        """<P> of the module's formula: (d, [c_0, c_1, ...]) with <P> = H^{-d} sum_n c_n H^n.

        Each c_n is {power of sigma: rational} (only the sum counts where sigma = 1); c_0 ...
        c_half are exact.
        """
        half, one = self.half, self.sigma**0
        depth, factors = self._observable_planes(observable)
        result: list[dict[int, Fraction]] = [{} for _ in range(half + 1)]
        full = triangle(2 * half)
        slope_power = self.slope
        for k in range(2 * half + 1):
            offset = k - k // 2
            shape = [k + 1 for b in range(half - offset + 1)]
            total = Plane.from_terms(shape, {}, one)
            for j in range(k + 1):
                shift = k // 2 - (k - j) // 2
                if shift < len(shape) and not factors[j].is_zero():
                    total = total.plus(factors[j].times(self.weights[k - j], shape, shift))
            total = total.reduced()
            for b in range(len(shape)):
                value, denominator = total.coefficient_of_product(slope_power, k, b)
                weighted = (-1) ** k * factorial(k)
                for power, integer in _sigma_terms(value).items():
                    row = result[b + offset]
                    term = Fraction(weighted * integer, denominator)
                    row[power - k] = row.get(power - k, Fraction(0)) + term
            slope_power = slope_power.times(self.slope, full).reduced()
        clean = [{p: c for p, c in sorted(row.items()) if c != 0} for row in result]
        return depth - 1, clean

    def _observable_planes(self, observable: sp.Expr) -> tuple[int, list[Plane]]:
        """The observable as (d, [P_0, P_1, ...]): P = H^{-d} sum_j P_j Y^j."""
        poly = sp.Poly(sp.expand(observable), ACTIVE, ACTIVE_1, ACTIVE_2, LEVEL)
        if any(m[1] % 2 for m in poly.monoms()):
            raise ArithmeticError("only even powers of the first derivative are series in 1/T^2")
        one, count = self.sigma**0, 2 * self.half + 1
        depth = max(m[0] + m[1] // 2 for m in poly.monoms())
        zero = [Plane.from_terms(self._factor_shape(n), {}, one) for n in range(count)]
        unit = [Plane.from_terms(self._factor_shape(0), {(0, 0): Fraction(1)}, one), *zero[1:]]
        linear = Plane.from_terms(triangle(2 * self.half), {(1, 1): Fraction(1)}, one)
        # B, B_1 T^-1 and B_2 in powers of Y, and t / T = 1 + sigma x H
        bases = [
            [self._derivative(n, 0) for n in range(count)],
            [self._derivative(n, 1) for n in range(count)],
            [self._derivative(n, 2).scaled(self.sigma) for n in range(count)],
            [unit[0].plus(linear.scaled(self.sigma)), *zero[1:]],
        ]
        total = zero
        for monomial, coefficient in poly.terms():
            product = unit
            for base, power in zip(bases, monomial, strict=True):
                for _ in range(power):
                    product = self._times(product, base)
            scale = int(coefficient.p) * self.sigma ** (monomial[1] // 2)
            shift = depth - monomial[0] - monomial[1] // 2
            for n, plane in enumerate(product):
                moved = Plane([[] for _ in range(shift)] + plane.rows, plane.denominator)
                total[n] = total[n].plus(moved.scaled(scale, int(coefficient.q)))
        return depth, total

    def _factor_shape(self, n: int) -> list[int]:
        """What of the observable's Y^n coefficient can still reach the result."""
        return triangle(2 * self.half - n)[: max(self.half - n, 0) + 1]

    def _derivative(self, n: int, order: int) -> Plane:
        """Coefficient of Y^n in the order-th y-derivative of H B, times sigma^n."""
        falling = factorial(n + order) // factorial(n)
        plane = self.bare[n + order].scaled(falling * self.sigma**n)
        rows = [row[:width] for row, width in zip(plane.rows, self._factor_shape(n), strict=False)]
        return Plane(rows, plane.denominator)

    def _times(self, first: list[Plane], second: list[Plane]) -> list[Plane]:
        """Product of two series in Y."""
        result = []
        for n in range(len(first)):
            shape = self._factor_shape(n)
            total = Plane.from_terms(shape, {}, self.sigma**0)
            for j in range(n + 1):
                total = total.plus(first[j].times(second[n - j], shape))
            result.append(total.reduced())
        return result


def _sigma_terms(value: Any) -> dict[int, int]:
    """{power of sigma: integer} of an integer or a polynomial in sigma."""
    if hasattr(value, "terms"):
        return {monomial[0]: int(coefficient) for monomial, coefficient in value.terms()}
    return {0: int(value)}


@lru_cache(maxsize=8)
def saddle(half: int, with_margin: bool = False) -> Saddle:
    """The saddle-point data through h^half, kept for the process (they are immutable)."""
    return Saddle.build(half, _SIGMA) if with_margin else Saddle.build(half)


def average(observable: sp.Expr, terms: int) -> dict[int, Fraction]:
    """<observable> without margin: {power of 1/T^2: rational}, the first `terms` powers.

    The normalisation sum_k v_k = 1 is the average of (1 + s d/ds) e^{s B} / e^B = 1 + B:

    >>> average(1 + ACTIVE, 3)
    {0: Fraction(1, 1), 1: Fraction(0, 1), 2: Fraction(0, 1)}
    """
    depth, rows = saddle(terms - 1).average(observable)
    return {n - depth: sum(row.values(), Fraction(0)) for n, row in enumerate(rows)}


def average_with_margin(observable: sp.Expr, terms: int) -> dict[int, dict[int, Fraction]]:
    """<observable> with a margin m, sigma = 1 + m/T: {power of 1/T^2: {power of sigma: rational}}.

    >>> average_with_margin(1 + ACTIVE, 2)
    {0: {0: Fraction(1, 1)}, 1: {}}
    """
    depth, rows = saddle(terms - 1, True).average(observable)
    # H = h / sigma
    return {n - depth: {p - (n - depth): c for p, c in row.items()} for n, row in enumerate(rows)}
