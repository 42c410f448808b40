"""Listwise (tail-average) recall as M -> infinity: certified thresholds of `replica`'s formula."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import sympy as sp

from numerics.balls import Certified
from numerics.certify import certify
from numerics.compiled import root_of
from numerics.cone.volumes import check_digits
from replica import symbols as s
from replica.catalogue import model
from replica.criteria.tail_average import TailAverage
from replica.errors import InvalidInput
from replica.gaussian import Phi, phi


def exact_number(value: Any, name: str, allowed: str) -> Fraction:
    """An int, Fraction or decimal text as a Fraction; floats are refused (0.1 is not 1/10).

    >>> exact_number("0.1", "r", "a number")
    Fraction(1, 10)
    """
    if isinstance(value, bool | float) or not isinstance(value, int | Fraction | str):
        raise InvalidInput(
            f"{name} is {value!r}; it must be {allowed}, exact: give an int, a Fraction or a "
            "decimal text such as '0.1'"
        )
    try:
        return Fraction(value)
    except (ValueError, ZeroDivisionError):
        raise InvalidInput(
            f"{name} is {value!r}; it must be {allowed}; write it like '0.1'"
        ) from None


def check_fraction(r: Any) -> Fraction:
    """`r` as an exact fraction in (0, 1], else `InvalidInput`."""
    exact = exact_number(r, "r", "the averaged fraction, in (0, 1]")
    if not 0 < exact <= 1:
        raise InvalidInput(
            f"r is {r}; the averaged fraction lies in (0, 1]; give for example '0.1'"
        )
    return exact


def rational(number: Fraction) -> Any:
    """The same number in SymPy."""
    return sp.Rational(number.numerator, number.denominator)


def tail_margin(r: Any, digits: int = 15) -> Certified:
    """kappa_r = phi(Phi^{-1}(1-r))/r: the mean of a standard Gaussian above its upper r-quantile.

    Arguments: `r` in (0, 1], exact; `digits`, relative accuracy 10^-digits. Raises `InvalidInput`.
    Source: listwise retrieval, tail average of the competitors as M -> infinity.

    >>> print(tail_margin("0.5").to_string(12))
    0.797884560803
    """
    exact = check_fraction(r)
    return certify(TailAverage(r=rational(exact)).tail_mean, check_digits(digits), real=True)


def tail_average_capacity(r: Any, digits: int = 15, *, margin: Any = 0) -> Certified:
    """p/d^2 = 1/[(1 + k^2) Phi(k) + k phi(k)], k = kappa_r + margin: facts per parameter, M -> oo.

    Arguments: `r` in (0, 1] and `margin` >= 0 (in standard deviations of a score), both exact;
    `digits`. Raises `InvalidInput`. Source: Gardner's halfspace at the margin kappa_r.

    >>> print(tail_average_capacity(1))
    2
    >>> print(tail_average_capacity("0.5").to_string(16))
    0.6577127279442718
    """
    exact = check_fraction(r)
    lead = exact_number(margin, "margin", "a number >= 0")
    if lead < 0:
        raise InvalidInput(f"margin is {margin}; it must be >= 0; give for example 0")
    capacity = model("spherical", "tail_average", r=rational(exact), margin=rational(lead)).capacity
    return certify(capacity, check_digits(digits), real=True)


def least_averaged_fraction(facts_per_parameter: Any, digits: int = 15) -> Certified:
    """The smallest r at which p/d^2 facts per parameter can be recalled: capacity(r) = p/d^2.

    The capacity grows with r, from 0 at r -> 0 to 2 at r = 1. Argument: `facts_per_parameter`,
    exact, in (0, 2). Solved in the cut t with r = Phi(-t), where nothing but Phi enters; the
    enclosure is absolute in t and relative in r. Raises `InvalidInput`.

    >>> print(least_averaged_fraction("0.3").to_string(10))
    0.1558882434
    """
    gamma = exact_number(facts_per_parameter, "facts_per_parameter", "a number in (0, 2)")
    if not 0 < gamma < 2:
        raise InvalidInput(
            f"facts_per_parameter is {facts_per_parameter}; tail-average recall holds for "
            "0 < p/d^2 < 2; give a number in that range"
        )
    digits = check_digits(digits)
    cut = s.t
    kappa = phi(cut) / Phi(-cut)
    equation = model("spherical", "halfspace", margin=s.margin).capacity_equation
    condition = (equation.lhs - equation.rhs).subs(s.margin, kappa).subs(s.gamma, rational(gamma))
    # kappa > t, so gamma delta >= gamma kappa^2 > 1 at t = gamma^(-1/2).
    high = Fraction(int(4 / gamma**0.5) + 1)
    low = Fraction(-40 - 4 * digits)
    root = root_of(condition, cut, low, high, digits + 3)
    return certify(Phi(-cut), digits, {cut: root}, real=True)
