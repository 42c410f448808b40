"""Strings of expressions that other programs read: `sympy.sympify`, NumPy, Mathematica."""

from __future__ import annotations

import builtins
import keyword
from typing import Any

import sympy as sp
from sympy.printing.str import StrPrinter

from replica.gaussian import plain


class _SympifiablePrinter(StrPrinter):
    """As `sstr`, but a name that means something else to SymPy is printed as Symbol('name').

    `sympify("gamma")` is the Gamma function and `sympify("lambda")` a syntax error; a string
    that is read back needs neither surprise.
    """

    def _print_Symbol(self, expr: Any) -> str:
        name = str(expr.name)
        if not name.isidentifier() or keyword.iskeyword(name) or name in _TAKEN:
            return f"Symbol({name!r})"
        return name

    _print_Dummy = _print_Symbol

    def _print_Limit(self, expr: Any) -> str:
        # The direction, a quoted sign, does not survive `sympify`; limits here are at infinity.
        body, variable, end, _ = expr.args
        return f"Limit({self._print(body)}, {self._print(variable)}, {self._print(end)})"


_TAKEN = frozenset(sp.__all__) | frozenset(dir(builtins))


def sympifiable(expression: Any) -> str:
    """A string that `sympy.sympify` reads, without locals, as the same expression.

    Own functions are written out: Phi as erfc, Gaussian averages as Integral.

    >>> import sympy as sp
    >>> from replica.gaussian import Phi
    >>> from replica.symbols import gamma, margin
    >>> text = sympifiable(2 * gamma * Phi(margin))
    >>> text
    "2*Symbol('gamma')*(1 - erfc(sqrt(2)*margin/2)/2)"
    >>> sp.sympify(text).free_symbols == {sp.Symbol("gamma"), sp.Symbol("margin")}
    True
    """
    return str(_SympifiablePrinter().doprint(plain(expression)))
