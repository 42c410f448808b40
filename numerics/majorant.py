"""Upper bounds |f(x)| <= C x^n exp(b x - a x^2) for all x >= X >= 1, by recursion over f.

This is what makes integrals over infinite ranges rigorous: with a > 0 (or a = 0 and b < 0) the
tail beyond X has a closed-form bound. The rules cover what Gaussian averages are made of:
polynomials, exponentials of polynomials, Phi at linear (also complex) arguments and its inverse
powers and logarithms. Anything else is refused, never guessed.

Facts used: |Phi(w)| <= exp(-Re w^2 / 2) / 2 for Re w <= 0 and Phi(w) = 1 - Phi(-w);
Phi(-y) >= exp(-y^2/2) / (sqrt(2 pi) (y + 1)) for y >= 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sympy as sp
from flint import arb

from numerics.evaluator import CannotEvaluate
from replica.gaussian import Phi, phi

Evaluate = Callable[[Any], Any]


@dataclass(frozen=True)
class Majorant:
    """The bound exp(log_c) x^n exp(b x - a x^2), all four real balls, valid for x >= X."""

    log_c: Any
    n: Any
    b: Any
    a: Any

    def times(self, other: Majorant) -> Majorant:
        return Majorant(
            self.log_c + other.log_c, self.n + other.n, self.b + other.b, self.a + other.a
        )

    def plus(self, other: Majorant) -> Majorant:
        """Twice the larger constant with the larger of each exponent: an upper bound as x >= 1."""
        return Majorant(
            self.log_c.max(other.log_c) + arb(2).log(),
            self.n.max(other.n),
            self.b.max(other.b),
            self.a.min(other.a),
        )

    def power(self, exponent: Any) -> Majorant:
        """For a real exponent >= 0."""
        return Majorant(
            self.log_c * exponent, self.n * exponent, self.b * exponent, self.a * exponent
        )

    def log_tail(self, start: Any) -> Any | None:
        """log of a bound of the integral over [start, oo), or None where this shows no decay.

        With a > 0 half of the Gaussian holds the rest down once `start` is past its maximum;
        with a = 0 half of the exponential does.
        """
        n, b, a = self.n.max(arb(0)).upper(), self.b.upper(), self.a.lower()
        if a > 0:
            growth = b.max(arb(0))
            if not start >= (growth + (growth**2 + 4 * a * n).sqrt()) / (2 * a):
                return None
            exponent = n * start.log() + b * start - a * start**2
            return (self.log_c + exponent - (a * start).log()).upper()
        if a >= 0 and b < 0:
            if not start >= 2 * n / -b:
                return None
            return (self.log_c + n * start.log() + b * start - (-b / 2).log()).upper()
        return None


def constant_majorant(log_c: Any) -> Majorant:
    return Majorant(log_c, arb(0), arb(0), arb(0))


def bound_above(expression: Any, x: sp.Symbol, start: Any, evaluate: Evaluate) -> Majorant:
    """A majorant of |expression| on [start, oo); `evaluate` gives balls for what is free of x."""
    e = expression
    if not e.has(x):
        return constant_majorant(_log_of_size(evaluate(e)))
    if e == x:
        return Majorant(arb(0), arb(1), arb(0), arb(0))
    if isinstance(e, sp.Integral):
        return _integral_above(e, x, start, evaluate)
    if isinstance(e, sp.Add):
        terms = [bound_above(term, x, start, evaluate) for term in e.args]
        total = terms[0]
        for term in terms[1:]:
            total = total.plus(term)
        return total
    if isinstance(e, sp.Mul):
        factors = [bound_above(factor, x, start, evaluate) for factor in e.args]
        product = factors[0]
        for factor in factors[1:]:
            product = product.times(factor)
        return product
    if isinstance(e, sp.exp) or (isinstance(e, sp.Pow) and e.base is sp.E):
        return _exponential(e.args[-1] if isinstance(e, sp.Pow) else e.args[0], x, start, evaluate)
    if isinstance(e, sp.Pow) and not e.exp.has(x):
        exponent = evaluate(e.exp)
        if exponent.imag.is_zero() and exponent.real >= 0:
            return bound_above(e.base, x, start, evaluate).power(exponent.real)
        if exponent.imag.is_zero() and exponent.real < 0:
            return bound_inverse(e.base, x, start, evaluate).power(-exponent.real)
    if isinstance(e, Phi):
        return _phi_above(e.args[0], x, evaluate)
    if isinstance(e, phi):
        return bound_above(e.plain(), x, start, evaluate)
    if isinstance(e, sp.sin | sp.cos):
        slope, offset = _linear(e.args[0], x, evaluate)
        return Majorant(abs(offset.imag), arb(0), abs(slope.imag), arb(0))
    if isinstance(e, sp.log):
        # |log g| <= |log|g|| + pi, and log|g| lies between the logarithms of the two majorants.
        above = bound_above(e.args[0], x, start, evaluate)
        below = bound_inverse(e.args[0], x, start, evaluate)
        size = arb.pi()
        for m in (above, below):
            size = size + abs(m.log_c) + abs(m.n) + abs(m.b) + abs(m.a)
        return Majorant(size.log(), arb(2), arb(0), arb(0))
    raise CannotEvaluate(
        f"the tail of the integral over {x} cannot be bounded because of {e}; "
        "give finite limits or rewrite the integrand"
    )


def bound_inverse(expression: Any, x: sp.Symbol, start: Any, evaluate: Evaluate) -> Majorant:
    """A majorant of 1/|expression| on [start, oo)."""
    e = expression
    if not e.has(x):
        value = evaluate(e)
        size = value.abs_lower()
        if size > 0:
            return constant_majorant(-size.log())
    elif e == x:
        return Majorant(arb(0), arb(-1), arb(0), arb(0))
    elif isinstance(e, sp.Mul):
        product = constant_majorant(arb(0))
        for factor in e.args:
            product = product.times(bound_inverse(factor, x, start, evaluate))
        return product
    elif isinstance(e, sp.exp):
        return bound_above(sp.exp(-e.args[0]), x, start, evaluate)
    elif isinstance(e, sp.Pow) and not e.exp.has(x):
        exponent = evaluate(e.exp)
        if exponent.imag.is_zero() and exponent.real >= 0:
            return bound_inverse(e.base, x, start, evaluate).power(exponent.real)
        if exponent.imag.is_zero() and exponent.real < 0:
            return bound_above(e.base, x, start, evaluate).power(-exponent.real)
    elif isinstance(e, Phi):
        bound = _phi_inverse(e.args[0], x, start, evaluate)
        if bound is not None:
            return bound
    elif isinstance(e, phi):
        return bound_inverse(e.plain(), x, start, evaluate)
    elif isinstance(e, sp.Add) and e.is_polynomial(x):
        return _inverse_polynomial(e, x, start, evaluate)
    raise CannotEvaluate(
        f"the tail of the integral over {x} cannot be bounded because 1/({e}) has no known bound; "
        "give finite limits or rewrite the integrand"
    )


def _log_of_size(value: Any) -> Any:
    size = value.abs_upper()
    # A constant that is exactly zero still needs a logarithm: any tiny number bounds it.
    return size.max(arb(2) ** -100_000).log()


def _linear(argument: Any, x: sp.Symbol, evaluate: Evaluate) -> tuple[Any, Any]:
    expanded = sp.expand(argument)
    slope = expanded.coeff(x, 1)
    offset = sp.expand(expanded - slope * x)
    if slope.has(x) or offset.has(x):
        raise CannotEvaluate(
            f"the tail of the integral over {x} cannot be bounded: {argument} is not linear in {x}"
        )
    return evaluate(slope), evaluate(offset)


def _phi_above(argument: Any, x: sp.Symbol, evaluate: Evaluate) -> Majorant:
    p, q = _linear(argument, x, evaluate)
    if p.imag.is_zero() and q.imag.is_zero() and not p.real < 0:
        # Exactly 1: Phi may be raised to the power of a googol.
        return constant_majorant(arb(0))
    gaussian = Majorant(-(q * q).real / 2, arb(0), -(p * q).real, (p * p).real / 2)
    if p.real <= 0 and q.real <= 0:
        return gaussian
    return constant_majorant(arb(0)).plus(gaussian)


def _phi_inverse(argument: Any, x: sp.Symbol, start: Any, evaluate: Evaluate) -> Majorant | None:
    slope, offset = _linear(argument, x, evaluate)
    if not (slope.imag.is_zero() and offset.imag.is_zero()):
        return None
    p, q = slope.real, offset.real
    if p > 0:  # Phi(p x + q) increases in x
        smallest = ((-(p * start + q) / arb(2).sqrt()).erfc() / 2).lower()
        return constant_majorant(-smallest.log())
    if p < 0 and p * start + q <= 0:
        # 1/Phi(-y) <= sqrt(2 pi) (y + 1) e^{y^2/2}
        linear = ((abs(p) + abs(q) + 1) * (2 * arb.pi()).sqrt()).log()
        return Majorant(linear + q**2 / 2, arb(1), p * q, -(p**2) / 2)
    return None


def _integral_above(e: Any, x: sp.Symbol, start: Any, evaluate: Evaluate) -> Majorant:
    """|int u(y) w(x, y) dy| <= (bound of w, uniform in y) * int u, for u >= 0 and real y.

    Factors that depend on x alone keep their own majorant; factors that couple x and y must be
    Phi of real arguments (bounded by 1) raised to powers >= 0.
    """
    total = constant_majorant(arb(0))
    positive = sp.Integer(1)
    inner = {limit[0] for limit in e.limits}
    for factor in sp.Mul.make_args(sp.expand_power_exp(e.function)):
        symbols = factor.free_symbols
        if not symbols & inner:
            total = total.times(bound_above(factor, x, start, evaluate))
        elif x not in symbols:
            if not factor.is_nonnegative:
                raise CannotEvaluate(f"the inner factor {factor} is not known to be >= 0")
            positive *= factor
        else:
            total = total.times(_uniform_above(factor, evaluate))
    weight = evaluate(sp.Integral(positive, *e.limits))
    return total.times(constant_majorant(_log_of_size(weight)))


def _uniform_above(factor: Any, evaluate: Evaluate) -> Majorant:
    base, exponent = factor.as_base_exp()
    power = None if exponent.free_symbols else evaluate(exponent)
    bounded = isinstance(base, Phi) and base.args[0].is_real
    if not bounded or power is None or not power.real >= 0:
        raise CannotEvaluate(f"the factor {factor} of a nested integral has no uniform bound")
    return constant_majorant(arb(0))


def _exponential(exponent: Any, x: sp.Symbol, start: Any, evaluate: Evaluate) -> Majorant:
    """exp(polynomial + bounded rest); a negative power above 2 helps at least as its square."""
    total = Majorant(arb(0), arb(0), arb(0), arb(0))
    by_degree: dict[int, Any] = {}
    rest: list[Any] = []
    for term in sp.Add.make_args(sp.expand(exponent)):
        coefficient, power = term.as_independent(x, as_Add=False)
        degree = 0 if power == 1 else (1 if power == x else _degree(power, x))
        if degree is None:
            rest.append(term)
        else:
            by_degree[degree] = by_degree.get(degree, sp.Integer(0)) + coefficient
    for degree, coefficient in by_degree.items():
        value = evaluate(coefficient).real
        if degree == 0:
            total = total.times(constant_majorant(value))
        elif degree == 1:
            total = total.times(Majorant(arb(0), arb(0), value, arb(0)))
        elif degree == 2:
            total = total.times(Majorant(arb(0), arb(0), arb(0), -value))
        elif value <= 0:
            lowered = -value * start ** (degree - 2)
            total = total.times(Majorant(arb(0), arb(0), arb(0), lowered))
        else:
            raise CannotEvaluate(f"exp({exponent}) grows too fast in {x} for a tail bound")
    for term in rest:
        bound = bound_above(term, x, start, evaluate)
        if not (bound.n <= 0 and bound.b <= 0 and bound.a >= 0):
            raise CannotEvaluate(f"the tail of exp({term}) in {x} cannot be bounded")
        size = bound.log_c + bound.n * start.log() + bound.b * start - bound.a * start**2
        total = total.times(constant_majorant(size.exp()))
    return total


def _degree(power: Any, x: sp.Symbol) -> int | None:
    if isinstance(power, sp.Pow) and power.base == x and isinstance(power.exp, sp.Integer):
        return int(power.exp) if power.exp > 0 else None
    return None


def _inverse_polynomial(e: Any, x: sp.Symbol, start: Any, evaluate: Evaluate) -> Majorant:
    coefficients = sp.Poly(e, x).all_coeffs()
    degree = len(coefficients) - 1
    lower = evaluate(coefficients[0]).abs_lower()
    for step, coefficient in enumerate(coefficients[1:], 1):
        lower = lower - evaluate(coefficient).abs_upper() / start**step
    if not lower > 0:
        raise CannotEvaluate(f"1/({e}) has no bound from {x} = {start} on")
    return Majorant(-lower.log(), arb(-degree), arb(0), arb(0))
