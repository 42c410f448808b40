"""Write the error-function family through Phi alone, undoing a rewriting of SymPy's.

SymPy turns erfc(-z) into 2 - erfc(z) by itself, so that Phi(-x) = erfc(x/sqrt 2)/2 evaluated at a
negative x becomes 1 - erfc(|x|/sqrt 2)/2: a difference of nearly equal numbers. Ball arithmetic
would survive that, with a useless radius; in an integrand of log Phi it would not even converge.
Phi(x) stays one object, so powers and logarithms of it keep their digits in both tails.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from replica.gaussian import Phi


def to_phi(expression: Any) -> Any:
    """The same expression with erf, erfc and erfi written through Phi (also complex arguments).

    >>> import sympy as sp
    >>> x = sp.Symbol("x")
    >>> to_phi(1 - sp.erfc(x / sp.sqrt(2)) / 2)
    Phi(x)
    >>> to_phi(sp.log(sp.Rational(1, 2) - sp.erf(x) / 2))
    log(Phi(-sqrt(2)*x))
    >>> to_phi((1 - sp.erfc(x / sp.sqrt(2)) / 2) ** 10**9)
    Phi(x)**1000000000
    """
    if not isinstance(expression, sp.Basic) or not expression.args:
        return expression
    tail = _single_tail(expression)
    if tail is not None:
        scale, argument = tail
        return to_phi(2 * scale) * Phi(to_phi(argument))
    arguments = [to_phi(argument) for argument in expression.args]
    if isinstance(expression, sp.erfc):
        return 2 * Phi(-sp.sqrt(2) * arguments[0])
    if isinstance(expression, sp.erf):
        return 2 * Phi(sp.sqrt(2) * arguments[0]) - 1
    if isinstance(expression, sp.erfi):
        return -sp.I * (2 * Phi(sp.I * sp.sqrt(2) * arguments[0]) - 1)
    if all(new == old for new, old in zip(arguments, expression.args, strict=True)):
        return expression
    return expression.func(*arguments)


def _single_tail(e: Any) -> tuple[Any, Any] | None:
    """(c, x) with e = 2 c Phi(x), for the sums of two terms that are one error function."""
    if not isinstance(e, sp.Add) or len(e.args) != 2:
        return None
    for constant, term in (e.args, e.args[::-1]):
        factor, function = term.as_independent(sp.erf, sp.erfc, as_Add=False)
        if function.func is sp.erfc and constant == -2 * factor:
            return constant / 2, sp.sqrt(2) * function.args[0]
        if function.func is sp.erf and constant == factor:
            return constant, sp.sqrt(2) * function.args[0]
        if function.func is sp.erf and constant == -factor:
            return constant, -sp.sqrt(2) * function.args[0]
    return None
