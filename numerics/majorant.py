"""Upper bounds |f(x)| <= C x^n exp(b x - a x^2) for all x >= X >= 1, by recursion over f.

This is what makes integrals over infinite ranges rigorous: with a > 0 (or a = 0 and b < 0) the
tail beyond X has a closed-form bound. The rules cover what Gaussian averages are made of:
polynomials, exponentials of polynomials, the error-function family at linear (also complex)
arguments and its inverse powers and logarithms. Anything else is refused, never guessed.

Facts used: |erfc(z)| <= exp(-Re z^2) for Re z >= 0 and erfc(z) = 2 - erfc(-z);
erfc(y) >= exp(-y^2) / (sqrt(pi) (y + 1)) for y >= 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sympy as sp
from flint import arb

from numerics.evaluator import CannotEvaluate
from numerics.tails import single_tail

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
        """Term by term the larger exponent (x >= 1 makes that an upper bound), twice the constant."""
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
        n = self.n.max(arb(0))
        if self.a > 0:
            turning = (self.b.max(arb(0)) + (self.b**2 + 4 * self.a * n).sqrt()) / (2 * self.a)
            if not start >= turning:
                return None
            exponent = n * start.log() + self.b * start - self.a * start**2
            return self.log_c + exponent - (self.a * start).log()
        if self.a >= 0 and self.b < 0:
            if not start >= 2 * n / -self.b:
                return None
            return self.log_c + n * start.log() + self.b * start - (-self.b / 2).log()
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
    tail = single_tail(e)
    if tail is not None:
        scale = evaluate(tail[0])
        slope, offset = _linear(tail[1], x, evaluate)
        if slope.imag.is_zero() and offset.imag.is_zero() and not slope.real > 0:
            # Exactly 1 for Phi: it may be raised to the power of a googol.
            return constant_majorant(_log_of_size(2 * scale))
        return constant_majorant(_log_of_size(scale)).times(_erfc_above(tail[1], x, evaluate))
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
    if isinstance(e, sp.erfc):
        return _erfc_above(e.args[0], x, evaluate)
    if isinstance(e, sp.erf):
        return constant_majorant(arb(0)).plus(_erfc_above(e.args[0], x, evaluate))
    if isinstance(e, sp.erfi):
        return bound_above(sp.erf(sp.I * e.args[0]), x, start, evaluate)
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
    unfolded = _unfold(e)
    if unfolded is not None:
        return bound_above(unfolded, x, start, evaluate)
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
    elif isinstance(e, sp.erfc):
        bound = _erfc_inverse(e.args[0], x, start, evaluate)
        if bound is not None:
            return bound
    elif isinstance(e, sp.Add):
        tail = single_tail(e)
        if tail is not None:
            bound = _erfc_inverse(tail[1], x, start, evaluate)
            if bound is not None:
                return bound_inverse(tail[0], x, start, evaluate).times(bound)
        if e.is_polynomial(x):
            return _inverse_polynomial(e, x, start, evaluate)
    unfolded = _unfold(e)
    if unfolded is not None:
        return bound_inverse(unfolded, x, start, evaluate)
    raise CannotEvaluate(
        f"the tail of the integral over {x} cannot be bounded because 1/({e}) has no known bound; "
        "give finite limits or rewrite the integrand"
    )


def _unfold(e: Any) -> Any | None:
    for target in (sp.erfc, sp.exp):
        try:
            unfolded = e.rewrite(target)
        except (TypeError, ValueError):
            continue
        if unfolded != e and not unfolded.has(sp.Integral):
            return unfolded
    return None


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


def _erfc_above(argument: Any, x: sp.Symbol, evaluate: Evaluate) -> Majorant:
    slope, offset = _linear(argument, x, evaluate)
    square, cross, rest = slope * slope, slope * offset, offset * offset
    gaussian = Majorant(-rest.real, arb(0), -2 * cross.real, square.real)
    if slope.real >= 0 and offset.real >= 0:
        return gaussian
    return constant_majorant(arb(2).log()).plus(gaussian)


def _erfc_inverse(argument: Any, x: sp.Symbol, start: Any, evaluate: Evaluate) -> Majorant | None:
    slope, offset = _linear(argument, x, evaluate)
    if not (slope.imag.is_zero() and offset.imag.is_zero()):
        return None
    p, q = slope.real, offset.real
    if p < 0:  # erfc(p x + q) increases in x
        return constant_majorant(-(p * start + q).erfc().lower().log())
    if p > 0 and p * start + q >= 0:
        # 1/erfc(y) <= sqrt(pi) (y + 1) e^{y^2}
        linear = ((abs(p) + abs(q) + 1) * arb.pi().sqrt()).log()
        return Majorant(linear + q**2, arb(1), 2 * p * q, -(p**2))
    return None


def _integral_above(e: Any, x: sp.Symbol, start: Any, evaluate: Evaluate) -> Majorant:
    """|int u(y) w(x, y) dy| <= (bound of w, uniform in y) * int u, for u >= 0 and real y.

    Factors that depend on x alone keep their own majorant; factors that couple x and y must be
    error functions of real arguments (bounded by 2) raised to powers >= 0.
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
    tail = single_tail(base)
    scale, function = (
        tail if tail is not None else base.as_independent(sp.erf, sp.erfc, as_Add=False)
    )
    argument = (
        function
        if tail is not None
        else (function.args[0] if function.func in (sp.erf, sp.erfc) else None)
    )
    power = None if exponent.free_symbols else evaluate(exponent)
    if argument is None or not argument.is_real or power is None or not power.real >= 0:
        raise CannotEvaluate(f"the factor {factor} of a nested integral has no uniform bound")
    return constant_majorant(_log_of_size(2 * evaluate(scale))).power(power.real)


def _exponential(exponent: Any, x: sp.Symbol, start: Any, evaluate: Evaluate) -> Majorant:
    """exp(polynomial + bounded rest); a negative even power above 2 helps at least as its square."""
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
