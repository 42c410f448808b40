"""The factor I(rank_ratio) by which a low rank reduces the critical number of facts.

The squared singular values x of the best full-rank memory follow the Marchenko-Pastur law of
aspect ratio c = d_small/d_large (c = 1: the quarter circle for sqrt(x)). Rank rank_ratio * d_small
keeps the upper part, x >= 1 + c + 2 sqrt(c) cos(theta), with

    rank_ratio = ((1+c) theta - 2 sqrt(c) sin(theta) - 2 (1-c) atan(r tan(theta/2))) / (2 pi c),
    r = (1 - sqrt c)/(1 + sqrt c),        I = (theta - sin(theta) cos(theta)) / pi,

as derived in `replica.priors.spectrum`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from flint import arb, fmpz

from numerics.balls import Certified, working_precision
from replica.errors import InvalidInput


def check_rank_ratio(rank_ratio: Any, name: str = "rank_ratio") -> Fraction:
    """`rank_ratio` as an exact number in (0, 1] (int, Fraction, decimal string, finite float)."""
    meaning = {
        "rank_ratio": "(rank divided by dimension); give for example 0.5, or 1 for full rank",
        "aspect_ratio": "(smaller over larger dimension); give for example 0.5, or 1 for square",
    }
    sentence = f"{name} is {rank_ratio}; it must be a number above 0 and at most 1 {meaning[name]}"
    try:
        if isinstance(rank_ratio, bool):
            raise ValueError
        exact = Fraction(rank_ratio)
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        raise InvalidInput(sentence) from None
    if not 0 < exact <= 1:
        raise InvalidInput(sentence)
    return exact


def rank_factor(rank_ratio: Any, digits: int = 15, *, aspect_ratio: Any = 1) -> Certified:
    """I(rank_ratio): the share of the squared weight that the largest singular values carry.

    Arguments: `rank_ratio` in (0, 1], rank over the smaller dimension; `digits`, relative accuracy;
    `aspect_ratio` in (0, 1], smaller over larger dimension. Raises `InvalidInput`. Source:
    quarter-circle and Marchenko-Pastur laws; I ~ 4 rank_ratio for small ranks of square memories.

    >>> print(rank_factor("0.5", 16).to_string(15))
    0.893730793878054
    >>> rank_factor(1) == 1
    True
    >>> rank_factor("0.5", aspect_ratio="0.5") < rank_factor("0.5")  # a flatter spectrum
    True
    """
    aspect = check_rank_ratio(aspect_ratio, "aspect_ratio")
    return Certified(rank_factor_ball(check_rank_ratio(rank_ratio), digits, aspect))


def rank_factor_ball(rank_ratio: Fraction, digits: int, aspect: Fraction = Fraction(1)) -> Any:
    """As `rank_factor`, unchecked and as a ball."""
    if rank_ratio == 1:
        return arb(1)
    small = sum(
        max(0, x.denominator.bit_length() - x.numerator.bit_length()) for x in (rank_ratio, aspect)
    )
    bits = math.ceil(digits * math.log2(10)) + 60 + 3 * small
    with working_precision(bits):
        theta = _angle(rank_ratio, aspect, bits)
        return (theta - theta.sin() * theta.cos()) / arb.pi()


class _Mass:
    """The fraction of singular values above the angle theta, and its derivative."""

    def __init__(self, aspect: Fraction) -> None:
        self.c = arb(fmpz(aspect.numerator)) / arb(fmpz(aspect.denominator))
        self.root = self.c.sqrt() if aspect != 1 else arb(1)
        self.ratio = (1 - self.root) / (1 + self.root)

    def __call__(self, theta: Any) -> Any:
        # atan(r tan f) = f - atan((1-r) sin f cos f / (cos^2 f + r sin^2 f)), regular at theta = pi
        half, c, r = theta / 2, self.c, self.ratio
        sine, cosine = half.sin(), half.cos()
        turn = half - ((1 - r) * sine * cosine / (cosine**2 + r * sine**2)).atan()
        if self.root == 1:
            turn = arb(0)
        total = (1 + c) * theta - 2 * self.root * theta.sin() - 2 * (1 - c) * turn
        return total / (2 * arb.pi() * c)

    def slope(self, theta: Any) -> Any:
        if self.root == 1:
            return (1 - theta.cos()) / arb.pi()
        return 2 / arb.pi() * theta.sin() ** 2 / (1 + self.c + 2 * self.root * theta.cos())


def _angle(rank_ratio: Fraction, aspect: Fraction, bits: int) -> Any:
    """theta in (0, pi): Newton's iteration kept in a bracket, then a proved enclosure."""
    target = arb(fmpz(rank_ratio.numerator)) / arb(fmpz(rank_ratio.denominator))
    mass = _Mass(aspect)
    low, high = arb(0), arb.pi().mid()
    theta = (3 * arb.pi() * target * (1 + mass.root) ** 2 / 2).root(3).mid()
    for _ in range(8 * bits):
        if not (theta > low and theta < high):
            theta = ((low + high) / 2).mid()
        gap = (mass(theta) - target).mid()
        low, high = (theta, high) if gap < 0 else (low, theta)
        change = (gap / mass.slope(theta)).mid()
        theta = (theta - change).mid()
        if abs(change) < theta * arb(2) ** (-bits // 2 - 8):
            break
    width = theta * arb(2) ** (-bits // 2)
    for _ in range(20):
        below, above = theta - width, theta + width
        if mass(below) < target and mass(above) > target:
            # one interval Newton step doubles the accuracy of the proved bracket
            slope = mass.slope(below.union(above))
            return theta - (mass(theta) - target) / slope if slope > 0 else below.union(above)
        width = 4 * width
    raise ArithmeticError("the angle of the truncated spectrum could not be bracketed")
