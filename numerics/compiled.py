"""From a SymPy expression in one unknown to a ball function, for the certified root finder."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import sympy as sp
from flint import acb, arb, fmpq

from numerics.balls import Certified, bits_for, working_precision
from numerics.certify import certify
from numerics.evaluator import compile_program
from numerics.roots import BallFunction, certified_root


def ball_function(
    expression: Any, unknown: Any, values: Mapping[Any, Any] | None = None
) -> BallFunction:
    """f(x, digits) -> arb enclosing the real expression at unknown = x, at that working precision.

    `values` are exact numbers or `Certified` for the other symbols.

    >>> x = sp.Symbol("x")
    >>> f = ball_function(sp.cos(x) - x, x)
    >>> bool(f(Fraction(0), 15) > 0)
    True
    """
    expression = sp.sympify(expression)
    fixed = {
        key: sp.Rational(value.numerator, value.denominator)
        for key, value in (values or {}).items()
        if isinstance(value, int | Fraction)
    }
    program = compile_program(expression.subs(fixed))
    rest = {k: v for k, v in (values or {}).items() if k not in fixed}

    def function(x: Fraction, digits: int) -> Any:
        with working_precision(bits_for(digits)):
            scope = {key: _ball(value) for key, value in rest.items()}
            scope[unknown] = acb(arb(fmpq(x.numerator, x.denominator)))
            return program(scope).real

    return function


def _ball(value: Any) -> Any:
    return acb(value.ball) if isinstance(value, Certified) else acb(certify(value, 60).ball)


def root_of(
    expression: Any,
    unknown: Any,
    low: Fraction | int,
    high: Fraction | int,
    digits: int = 15,
    values: Mapping[Any, Any] | None = None,
) -> Certified:
    """Certified root of a real SymPy expression between two exact ends (see `certified_root`).

    >>> x = sp.Symbol("x")
    >>> root_of(sp.cos(x) - x, x, 0, 1, 50).to_string(48)
    '0.739085133215160641655312087673873404013411758901'
    """
    return certified_root(ball_function(expression, unknown, values), low, high, digits)
