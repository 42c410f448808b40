"""A derivation of an expansion: the usual steps, plus machine-readable coefficients."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import sympy as sp

from replica.derivation import Derivation
from replica.errors import InvalidInput
from replica.logseries import LogSeries


@dataclass
class ExpansionDerivation(Derivation):
    """A `Derivation` whose JSON has further keys: `extra` holds plain data (strings, lists)."""

    extra: dict[str, Any] = field(default_factory=dict)
    series: LogSeries | None = None

    def to_json(self) -> dict[str, Any]:
        """As `Derivation.to_json`, with the keys of `extra`."""
        return {**super().to_json(), **self.extra}


def rational(value: Fraction) -> sp.Rational:
    """A Python fraction as a SymPy number."""
    return sp.Rational(value.numerator, value.denominator)


def series_terms(series: LogSeries) -> list[dict[str, str | int]]:
    """The terms of a series as {power_of_L, power_of_ell, coefficient}, dominating first.

    An integer power of L is an integer, a fractional one a string such as "-3/2".

    >>> from replica.logseries import LogSeriesRing
    >>> ring = LogSeriesRing(1, [sp.log(2)])
    >>> series_terms(sp.log(2) * ring.ell / ring.L)
    [{'power_of_L': -1, 'power_of_ell': 1, 'coefficient': 'log(2)'}]
    """
    result: list[dict[str, str | int]] = []
    for power, log_power, coefficient in series.items():
        shown: str | int = int(power) if power.denominator == 1 else str(power)
        result.append(
            {
                "power_of_L": shown,
                "power_of_ell": log_power,
                "coefficient": sp.sstr(sp.expand(coefficient)),
            }
        )
    return result


def series_expression(series: LogSeries) -> sp.Expr:
    """The known terms with ell written as log(L), so that `sympify` reads the string alone."""
    symbol = sp.Symbol("L")
    plain = {series.ring.symbol: symbol, series.ring.log_symbol: sp.log(symbol)}
    return series.as_expr().subs(plain)


def check_order(order: int, largest: int, name: str) -> None:
    """Refuse an order outside 0 ... largest with one sentence."""
    if isinstance(order, bool) or not isinstance(order, int) or not 0 <= order <= largest:
        raise InvalidInput(
            f"the order is {order!r}; the expansion {name!r} is available for whole orders from 0 "
            f"to {largest}; give such an order"
        )


def remainder_text(series: LogSeries) -> str:
    """The O-term as plain text, such as O(ell**2/L**2)."""
    if series.remainder is None:
        return "0"
    return str(LogSeries(series.ring, {}, series.remainder))
