"""Gaussian tails at infinity: erfc, erf and Q as an exponential times a series in 1/x^2.

The exponential e^{-x^2} is smaller than every power of 1/x, so it is kept as an exact factor and
only the series that multiplies it is truncated.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from replica.errors import InvalidInput
from replica.wick import odd_factorials


@dataclass(frozen=True)
class TailExpansion:
    """constant + prefactor (c_0 + c_1 x^-2 + ... + c_order x^(-2 order) + O(x^(-2 order - 2))).

    `prefactor` contains the exponential. `expression` leaves the O-term out; the error has the
    sign of the first omitted term and is smaller than it (alternating Mills series).
    """

    constant: sp.Expr
    prefactor: sp.Expr
    coefficients: tuple[sp.Rational, ...]
    variable: sp.Symbol

    @property
    def expression(self) -> sp.Expr:
        """The known terms."""
        series = sp.Add(*(c * self.variable ** (-2 * i) for i, c in enumerate(self.coefficients)))
        return self.constant + self.prefactor * series

    def scaled(self, factor: sp.Expr) -> TailExpansion:
        """factor times the function."""
        return TailExpansion(
            factor * self.constant, factor * self.prefactor, self.coefficients, self.variable
        )

    def complement(self) -> TailExpansion:
        """1 minus the function."""
        return TailExpansion(1 - self.constant, -self.prefactor, self.coefficients, self.variable)

    def __str__(self) -> str:
        order = len(self.coefficients)
        series = " + ".join(
            sp.sstr(c * self.variable ** (-2 * i)) for i, c in enumerate(self.coefficients)
        )
        head = f"{sp.sstr(self.constant)} + " if self.constant != 0 else ""
        rest = f"O({self.variable}**(-{2 * order}))"
        return f"{head}{sp.sstr(self.prefactor)}*({series} + {rest})"


def erfc_at_infinity(x: sp.Symbol, order: int) -> TailExpansion:
    """erfc(x) = e^{-x^2}/(x sqrt(pi)) sum_i (-1)^i (2i-1)!! / (2 x^2)^i, through x^(-2 order).

    From erfc(x) = 2 Q(x sqrt 2) and Q = phi m with the Mills series. Raises InvalidInput for a
    negative order.

    >>> x = sp.Symbol("x", positive=True)
    >>> print(erfc_at_infinity(x, 0).complement().scaled(2))
    2 + -2*exp(-x**2)/(sqrt(pi)*x)*(1 + O(x**(-2)))
    """
    if order < 0:
        raise InvalidInput(f"the order is {order}; it must be 0 or more; give such an order")
    coefficients = tuple(sp.Rational(c, 2**i) for i, c in enumerate(odd_factorials(order + 1)))
    return TailExpansion(sp.Integer(0), sp.exp(-(x**2)) / (x * sp.sqrt(sp.pi)), coefficients, x)
