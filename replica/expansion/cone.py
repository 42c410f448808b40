"""Expansions in 1/T^2 of the statistical dimension and its relatives.

T is defined by M psi_1(T) = T + m, psi_1(t) = phi(t) - t Q(t).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import sympy as sp

from replica.expansion.representation import observables
from replica.wick import average, average_with_margin


def multiply(first: Sequence[Fraction], second: Sequence[Fraction]) -> list[Fraction]:
    """Product of two power series, truncated to the shorter length."""
    size = min(len(first), len(second))
    return [sum((first[i] * second[n - i] for i in range(n + 1)), Fraction(0)) for n in range(size)]


def divide(first: Sequence[Fraction], second: Sequence[Fraction]) -> list[Fraction]:
    """Quotient of two power series; second[0] must not vanish."""
    result: list[Fraction] = []
    for n in range(min(len(first), len(second))):
        known = sum((result[i] * second[n - i] for i in range(n)), Fraction(0))
        result.append((first[n] - known) / second[0])
    return result


def _series(name: str, terms: int) -> list[Fraction]:
    """Coefficients of an average, its leading power of T first."""
    values = average(observables()[name], terms)
    return [values[power] for power in sorted(values)]


def normalisation(terms: int) -> list[Fraction]:
    """sum_k v_k, coefficient of T^(-2i) for i < terms: must be 1, 0, 0, ...

    >>> [str(c) for c in normalisation(4)]
    ['1', '0', '0', '0']
    """
    return _series("normalisation", terms)


def statistical_dimension(terms: int) -> list[Fraction]:
    """delta = E K = sum_i c_i T^(2-2i) without margin: c_0 ... c_{terms-1}.

    >>> [str(c) for c in statistical_dimension(4)]
    ['1', '3', '-9', '113/2']
    """
    return _series("active", terms)


def distance_square(terms: int) -> list[Fraction]:
    """E dist^2(z, C) = sum_i c_i T^(2-2i), from the distance itself rather than from E K.

    Equal to `statistical_dimension` term by term (conic Steiner formula), by another integrand.

    >>> distance_square(4) == statistical_dimension(4)
    True
    """
    return _series("distance_square", terms)


def variance_of_active(terms: int) -> list[Fraction]:
    """Var K = E K^2 - (E K)^2 = sum_i c_i T^(2-2i).

    The leading T^4 cancels, so the averages are taken to one more term.
    """
    square = _series("active_square", terms + 1)
    mean = statistical_dimension(terms + 1)
    difference = [a - b for a, b in zip(square, multiply(mean, mean), strict=True)]
    if difference[0] != 0:
        raise ArithmeticError("the T^4 terms of E K^2 and (E K)^2 do not cancel")
    return difference[1:]


def level_moments(terms: int) -> tuple[list[Fraction], list[Fraction]]:
    """Mean and variance of the level t to which the top competitors are pressed down.

    E t = sum_i a_i T^(1-2i) and Var t = sum_i b_i T^(-4-2i), i < terms. At capacity the target
    score is t (up to v_0 = 1/(M+1)), so this is the law of a fact's score.

    >>> mean, variance = level_moments(2)
    >>> [str(c) for c in mean], [str(c) for c in variance]
    (['1', '0'], ['3', '-37/2'])
    """
    mean = _series("level", terms + 3)
    square = _series("level_square", terms + 3)
    variance = [a - b for a, b in zip(square, multiply(mean, mean), strict=True)]
    if any(variance[:3]):
        raise ArithmeticError("the leading terms of E t^2 and (E t)^2 do not cancel")
    return mean[:terms], variance[3:]


def distance_square_with_margin(terms: int) -> list[dict[int, Fraction]]:
    """delta_m = E dist^2 with margin m: coefficient of T^(2-2i) as {power of sigma: rational}.

    sigma = 1 + m / T; sigma = 1 gives back `statistical_dimension`.

    >>> {power: str(c) for power, c in distance_square_with_margin(2)[1].items()}
    {0: '1', 1: '2'}
    """
    values = average_with_margin(observables()["distance_square"], terms)
    return [values[power] for power in sorted(values)]


def active_with_margin(terms: int) -> list[dict[int, Fraction]]:
    """E K with margin m: coefficient of T^(2-2i) as {power of sigma: rational}."""
    values = average_with_margin(observables()["active"], terms)
    return [values[power] for power in sorted(values)]


def in_level(coefficients: Sequence[Fraction], leading: int = 2) -> sp.Expr:
    """sum_i c_i T^(leading - 2i) as a SymPy expression."""
    symbol = sp.Symbol("T", positive=True)
    return sp.Add(
        *(
            sp.Rational(c.numerator, c.denominator) * symbol ** (leading - 2 * i)
            for i, c in enumerate(coefficients)
        )
    )
