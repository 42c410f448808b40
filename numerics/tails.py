"""Undo a rewriting of SymPy's that destroys digits in the tail.

SymPy turns erfc(-z) into 2 - erfc(z) by itself, so that Phi(-x) = erfc(x/sqrt 2)/2 evaluated at a
negative x becomes 1 - erfc(|x|/sqrt 2)/2: a difference of nearly equal numbers. Ball arithmetic
would survive that, with a useless radius; in an integrand of log Phi it would not even converge.
"""

from __future__ import annotations

from typing import Any

import sympy as sp


def single_tail(e: Any) -> tuple[Any, Any] | None:
    """(c, z) with e = c erfc(z), for the sums that are one error function in disguise.

    >>> import sympy as sp
    >>> x = sp.Symbol("x")
    >>> single_tail(1 - sp.erfc(x) / 2)
    (1/2, -x)
    >>> single_tail(sp.Rational(1, 2) - sp.erf(x) / 2)
    (1/2, x)
    >>> single_tail(1 + sp.erfc(x)) is None
    True
    """
    if not isinstance(e, sp.Add) or len(e.args) != 2:
        return None
    for constant, term in (e.args, e.args[::-1]):
        factor, function = term.as_independent(sp.erf, sp.erfc, as_Add=False)
        if function.func is sp.erfc and constant == -2 * factor:
            return constant / 2, -function.args[0]
        if function.func is sp.erf and constant == factor:
            return constant, -function.args[0]
        if function.func is sp.erf and constant == -factor:
            return constant, function.args[0]
    return None
