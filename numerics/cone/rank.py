"""The factor I(rank_ratio) by which a low rank reduces the critical number of facts.

The singular values of the best full-rank memory follow the quarter circle sqrt(4-s^2)/pi on [0, 2].
Rank rank_ratio * d keeps the upper part [a, 2]; with a = 2 cos(psi),

    rank_ratio = (2/pi)(psi - sin(2 psi)/2),    I = int_a^2 s^2 rho = (2/pi)(psi - sin(4 psi)/4).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from flint import arb, fmpz

from numerics.balls import Certified, working_precision
from replica.errors import InvalidInput


def check_rank_ratio(rank_ratio: Any) -> Fraction:
    """`rank_ratio` as an exact number in (0, 1] (int, Fraction, decimal string, finite float)."""
    sentence = (
        f"rank_ratio is {rank_ratio}; it must be a number above 0 and at most 1 (rank divided by "
        "dimension); give for example 0.5, or 1 for full rank"
    )
    try:
        if isinstance(rank_ratio, bool):
            raise ValueError
        exact = Fraction(rank_ratio)
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        raise InvalidInput(sentence) from None
    if not 0 < exact <= 1:
        raise InvalidInput(sentence)
    return exact


def rank_factor(rank_ratio: Any, digits: int = 15) -> Certified:
    """I(rank_ratio) = int_a^2 s^2 sqrt(4-s^2)/pi ds, the mass above a being rank_ratio.

    Arguments: `rank_ratio` in (0, 1], rank over dimension; `digits`, relative accuracy. For
    d_in = d_out only. Raises `InvalidInput`. Source: quarter-circle law of the singular values;
    I ~ 4 rank_ratio for small ranks.

    >>> print(rank_factor("0.5", 16).to_string(15))
    0.893730793878054
    >>> rank_factor(1) == 1
    True
    """
    return Certified(rank_factor_ball(check_rank_ratio(rank_ratio), digits))


def rank_factor_ball(rank_ratio: Fraction, digits: int) -> Any:
    """As `rank_factor`, unchecked and as a ball."""
    if rank_ratio == 1:
        return arb(1)
    small = max(0, rank_ratio.denominator.bit_length() - rank_ratio.numerator.bit_length())
    bits = math.ceil(digits * math.log2(10)) + 40 + 2 * small
    with working_precision(bits):
        psi = _angle(rank_ratio, bits)
        return 2 / arb.pi() * (psi - (4 * psi).sin() / 4)


def _angle(rank_ratio: Fraction, bits: int) -> Any:
    """psi in (0, pi/2): Newton's iteration on midpoints, then a proved bracket."""
    target = arb(fmpz(rank_ratio.numerator)) / arb(fmpz(rank_ratio.denominator))

    def excess(psi: Any) -> Any:
        return 2 / arb.pi() * (psi - (2 * psi).sin() / 2) - target

    psi = _start(target)
    for _ in range(8 * bits):
        slope = 4 / arb.pi() * psi.sin() ** 2
        change = (excess(psi) / slope).mid()
        psi = (psi - change).mid()
        if abs(change) < psi * arb(2) ** (-bits // 2 - 8):
            break
    width = psi * arb(2) ** (-bits // 2)
    for _ in range(3):  # interval Newton doubles the accuracy of the proved bracket
        low, high = psi - width, psi + width
        if not (excess(low) < 0 and excess(high) > 0):
            width = 4 * width
            continue
        bracket = low.union(high)
        slope = 4 / arb.pi() * bracket.sin() ** 2
        return psi - excess(psi) / slope
    raise ArithmeticError("the angle of the truncated quarter circle could not be bracketed")


def _start(target: Any) -> Any:
    """A point near the root, from where Newton's iteration converges."""
    guess = (3 * arb.pi() * target / 4).root(3).mid()  # 2/pi (2/3) psi^3 ~ rank_ratio
    return guess if guess < arb.pi() / 2 else (arb.pi() / 2 - arb(1) / 64).mid()
