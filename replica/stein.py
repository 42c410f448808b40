"""How E log Z(omega, 1 - q) depends on q: chain rule, Stein's lemma, heat equation, in that order.

Works with an abstract Z(omega_0, omega_1, V): omega_0 is the target score, omega_1 stands for each
of its exchangeable companions, `count` of them. Nothing is assumed of Z but the heat equation.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from replica import symbols as s
from replica.derivation import Derivation
from replica.gaussian import GaussianAverage, heat_kernel


def abstract_probability(scores: tuple[tuple[Any, Any], ...], variance: Any = s.V) -> Any:
    """Z as an unspecified function of the representative scores and the variance."""
    return sp.Function("Z", positive=True)(*[symbol for symbol, _ in scores], variance)


def check_heat_equation() -> tuple[Any, Any]:
    """Both sides of the heat equation for the Gaussian kernel; raises if they differ.

    Z is the integral of a product of such kernels over C, one a score, so it inherits
    d_V Z = (1/2) sum_i d_i^2 Z whatever the set C is.
    """
    kernel = heat_kernel(s.y, s.omega0, s.V)
    left, right = kernel.diff(s.V), kernel.diff(s.omega0, 2) / 2
    if sp.expand((left - right) / kernel) != 0:
        raise ArithmeticError("the Gaussian kernel violates the heat equation")
    return left, right


def add_overlap_derivative(derivation: Derivation, scores: tuple[tuple[Any, Any], ...]) -> Any:
    """Append the steps of d/dq E log Z = -(1/2) E |grad log Z|^2; returns the derivative.

    omega_i ~ N(0, q) and V = 1 - q: d omega_i/dq = omega_i/(2 q), dV/dq = -1.
    """
    kernel = heat_kernel(s.y, s.omega0, s.V)
    check_heat_equation()
    derivation.add(
        "Heat equation of the Gaussian kernel",
        sp.Eq(sp.Derivative(kernel, s.V), sp.Derivative(kernel, (s.omega0, 2)) / 2, evaluate=False),
        "d/dV of the density of omega + sqrt(V) x equals half its second derivative in omega; Z is "
        "an integral of such kernels over C",
    )
    z_function = abstract_probability(scores)
    log_z = sp.log(z_function)
    limits = [(symbol, s.q) for symbol, _ in scores]
    raw = -log_z.diff(s.V)
    for symbol, count in scores:
        raw += count * symbol / (2 * s.q) * log_z.diff(symbol)
    averaged = derivation.add(
        "d/dq of E log Z",
        GaussianAverage(raw, *limits),
        "omega_i = sqrt(q) z_i and V = 1 - q: chain rule; companions of omega_1 are exchangeable",
    )
    for symbol, _ in scores:
        averaged = _stein(averaged, symbol)
    averaged = derivation.add(
        "Stein's lemma", averaged, "E omega g = q E dg/domega, score by score"
    )
    laplacian = sp.Add(*[count * z_function.diff(symbol, 2) for symbol, count in scores])
    # Under the average, so the bound scores keep their names.
    body = averaged.body.subs(z_function.diff(s.V), laplacian / 2)
    averaged = GaussianAverage(sp.expand_mul(body), *limits)
    return derivation.add(
        "Heat equation inserted",
        averaged,
        "dZ/dV = (1/2) Laplacian Z: second derivatives cancel and -(1/2) E |grad log Z|^2 is left",
    )


def _stein(expression: Any, symbol: Any) -> Any:
    """Stein's lemma in every average of a sum; the result is gathered under one average."""
    result = expression.stein(symbol) if isinstance(expression, GaussianAverage) else expression
    return _collect(result)


def _collect(expression: Any) -> Any:
    """A linear combination of averages over the same measure, as one average."""
    body, limits = sp.S.Zero, None
    for term in sp.Add.make_args(sp.expand_mul(expression)):
        averages = [f for f in sp.Mul.make_args(term) if isinstance(f, GaussianAverage)]
        (average,) = averages
        if limits is not None and average.limits != limits:
            raise ArithmeticError("averages over different measures cannot be gathered")
        limits = average.limits
        body += term / average * average.body
    return GaussianAverage(sp.expand_mul(body), *(limits or ()))


def inner_overlap_derivative() -> tuple[Any, Any]:
    """d/dq1 of Y = E_eta Z(omega + eta, 1 - q1)^x, eta ~ N(0, q1 - q0), for one score.

    Returns (the derivative after chain rule, heat equation and Stein's lemma,
    (x (x-1)/2) E_eta Z^x (d log Z)^2); raises if they differ. Other scores add the same term.
    """
    score, variance = s.omega0, s.V
    z_function = sp.Function("Z", positive=True)(score, variance)
    power = z_function**s.block
    # d/dq1: the increment's variance grows (half a second derivative), V = 1 - q1 shrinks.
    change = power.diff(score, 2) / 2 - power.diff(variance)
    change = change.subs(z_function.diff(variance), z_function.diff(score, 2) / 2)
    expected = s.block * (s.block - 1) / 2 * power * sp.log(z_function).diff(score) ** 2
    if sp.expand((change - expected) / power) != 0:
        raise ArithmeticError("the inner overlap derivative is not the tilted squared gradient")
    return sp.expand(change / power) * power, expected
