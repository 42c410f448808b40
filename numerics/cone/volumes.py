"""Intrinsic volumes, statistical dimension and Var K of the polar recall cone, certified.

The polar of the cone {y_0 >= max_rho y_rho} (M competitors) has conic intrinsic volumes
v_k = P(K = k), K the number of active competitors, and statistical dimension delta = E K.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from flint import arb, fmpz

from numerics.balls import Certified, working_precision
from numerics.cone.active import active_integrals
from numerics.cone.level import LevelSum
from numerics.cone.tail import Cut, choose_cut
from numerics.counts import parse_count
from replica.errors import InvalidInput

MAX_DIGITS = 10_000
MAX_MARGIN = 1000
LOG10 = math.log(10.0)
# delta(1) and delta(2) are rational; every other delta(M) is believed not to be.
EXACT_DIMENSION = {1: Fraction(1, 2), 2: Fraction(5, 6)}


@dataclass(frozen=True)
class IntrinsicVolumes:
    """v_0 .. v_{k_max} of the polar recall cone, and a proved bound on the rest.

    `volumes[k]` is the enclosure of v_k (absolute radius about 10^-digits), `tail_bound` is at
    least sum_{k > k_max} v_k; it is exactly 0 when k_max = M.
    """

    competitors: int
    volumes: tuple[Certified, ...]
    tail_bound: Certified

    @property
    def k_max(self) -> int:
        """Largest k kept."""
        return len(self.volumes) - 1

    def __getitem__(self, k: int) -> Certified:
        return self.volumes[k]

    def __len__(self) -> int:
        return len(self.volumes)

    def __iter__(self) -> Iterator[Certified]:
        return iter(self.volumes)

    def total(self) -> Certified:
        """Enclosure of sum_k v_k over all k, the tail included; it must contain 1."""
        with working_precision(64 + max(v.ball.rel_one_accuracy_bits() for v in self.volumes)):
            total = sum((v.ball for v in self.volumes), arb(0))
            return Certified(total + _up_to(self.tail_bound.ball))


def check_digits(digits: Any) -> int:
    """`digits` if it is an integer from 1 to 10000, else `InvalidInput`."""
    if isinstance(digits, bool) or not isinstance(digits, int) or not 1 <= digits <= MAX_DIGITS:
        raise InvalidInput(
            f"digits is {digits}; it must be a whole number from 1 to {MAX_DIGITS}; "
            "give for example 15 or 50"
        )
    return digits


def check_margin(margin: Any) -> Fraction:
    """`margin` as an exact number in [0, 1000] (int, Fraction, decimal string, or finite float)."""
    sentence = (
        f"margin is {margin}; it must be a finite number from 0 to {MAX_MARGIN}; "
        "give for example 0.5"
    )
    try:
        if isinstance(margin, bool):
            raise ValueError
        exact = Fraction(margin)
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        raise InvalidInput(sentence) from None
    if not 0 <= exact <= MAX_MARGIN:
        raise InvalidInput(sentence)
    return exact


def exact_ball(number: Fraction, bits: int) -> Any:
    """A ball around a rational number at the given precision."""
    with working_precision(bits):
        return arb(fmpz(number.numerator)) / arb(fmpz(number.denominator))


def _up_to(bound: Any) -> Any:
    """The ball [0, bound]."""
    half = bound.upper() / 2
    return half + arb(0, half.upper())


@dataclass(frozen=True)
class Coefficients:
    """d_k with v_k (or the mean square distance on the face) = d_k L_k, and the cut of the tail."""

    plain: list[Any]
    moment: list[Any]
    cut: Cut
    margin: Any
    bits: int


def coefficients(
    competitors: int, nats: float, margin: Fraction = Fraction(0), tilt: float = 0.0
) -> Coefficients:
    """binom(M,k) (k+1)/(2 pi) I_k for every k up to a cut with negligible remainder."""
    bits = math.ceil(nats / math.log(2)) + 80
    ball = exact_ball(margin, bits + 40) if margin else None
    cut = choose_cut(competitors, nats, ball, tilt=tilt)
    integrals = active_integrals(cut.last + 1, nats, margin)
    plain, moment = [], []
    with working_precision(bits):
        binomial = 1 / (2 * arb.pi())
        for k in range(cut.last + 1):
            plain.append(binomial * (k + 1) * integrals.plain[k])
            moment.append(binomial * (k + 1) * integrals.moment[k])
            binomial = binomial * fmpz(competitors - k) / (k + 1)
    if not margin:
        moment[0] = arb(0)
    return Coefficients(plain, moment, cut, ball, bits)


def refine(compute: Any, digits: int, what: str) -> Any:
    """Call `compute(digits)` with growing digits until the relative radius is below 10^-digits."""
    extra = 2
    for _ in range(8):
        ball = compute(digits + extra)
        if ball.is_finite() and ball.rel_accuracy_bits() >= digits * math.log2(10) + 1:
            return ball
        extra = 2 * extra + 6
    raise ArithmeticError(f"{what}: {digits} digits were not reached with {digits + extra} digits")


def statistical_dimension(
    competitors: int | str, digits: int = 15, *, margin: Any = 0
) -> Certified:
    """delta(M) = E dist^2(z, C), C = {y_0 >= max_rho y_rho + margin}, z ~ N(0, I_{M+1}).

    For zero margin delta = sum_k k v_k = E K. Arguments: `competitors` M from 1 to 10^1000 (an
    integer or text such as "1e100"); `digits`, relative accuracy 10^-digits, 1 to 10000;
    `margin` in [0, 1000], in units of the standard deviation of a score. Raises `InvalidInput`.
    Source: statistical dimension of a cone (Amelunxen et al. 2014); intrinsic volumes as
    two one-dimensional Gaussian integrals.

    >>> print(statistical_dimension(10, 20).to_string(18))
    2.09392892798232790
    >>> statistical_dimension(2).contains(Fraction(5, 6))
    True
    """
    competitors = parse_count(competitors, "competitors")
    digits, exact_margin = check_digits(digits), check_margin(margin)
    if not exact_margin and competitors in EXACT_DIMENSION:
        exact = EXACT_DIMENSION[competitors]
        return Certified(exact_ball(exact, math.ceil(digits * math.log2(10)) + 30))
    return Certified(dimension_ball(competitors, digits + 3, exact_margin))


@lru_cache(maxsize=4096)
def dimension_ball(competitors: int, digits: int, margin: Fraction = Fraction(0)) -> Any:
    """As `statistical_dimension`, unchecked and as a ball."""

    def compute(working: int) -> Any:
        nats = working * LOG10
        parts = coefficients(competitors, nats, margin)
        total = LevelSum(competitors, parts.moment, parts.margin).total(nats)
        beyond = parts.cut.distance_beyond() if margin else parts.cut.beyond(1)
        with working_precision(parts.bits):
            return total + _up_to(beyond)

    return refine(compute, digits, "statistical dimension")


def mean_active(competitors: int | str, digits: int = 15, *, margin: Any = 0) -> Certified:
    """E K = sum_k k v_k: the mean number of active competitors (= delta when the margin is 0).

    >>> mean_active(2).contains(Fraction(5, 6))
    True
    """
    competitors = parse_count(competitors, "competitors")
    return Certified(_moment(competitors, check_digits(digits), check_margin(margin), 1))


def variance_of_active(competitors: int | str, digits: int = 15, *, margin: Any = 0) -> Certified:
    """Var K = sum_k k^2 v_k - (sum_k k v_k)^2, K the number of active competitors.

    It sets the width of the success curve: Var K_tot = p Var K. Arguments and errors as
    `statistical_dimension`.

    >>> variance_of_active(1).contains(Fraction(1, 4))
    True
    """
    competitors = parse_count(competitors, "competitors")
    digits, exact_margin = check_digits(digits), check_margin(margin)

    def compute(working: int) -> Any:
        first = _moment(competitors, working, exact_margin, 1)
        second = _moment(competitors, working, exact_margin, 2)
        with working_precision(math.ceil(working * math.log2(10)) + 80):
            return second - first * first

    return Certified(refine(compute, digits, "variance of the active competitors"))


def _moment(competitors: int, digits: int, margin: Fraction, power: int) -> Any:
    def compute(working: int) -> Any:
        nats = working * LOG10
        parts = coefficients(competitors, nats, margin)
        with working_precision(parts.bits):
            weighted = [c * k**power for k, c in enumerate(parts.plain)]
            total = LevelSum(competitors, weighted, parts.margin).total(nats)
            return total + _up_to(parts.cut.beyond(power))

    return refine(compute, digits, f"moment {power} of the active competitors")


@dataclass(frozen=True)
class VolumeBalls:
    """v_k as balls, and the cut that bounds what is left out."""

    balls: tuple[Any, ...]
    cut: Cut


def volume_balls(competitors: int, digits: int, margin: Any = 0, tilt: float = 0.0) -> VolumeBalls:
    """v_0 .. v_last with absolute radius about 10^-digits, uncertified type (internal)."""
    nats = digits * LOG10
    parts = coefficients(competitors, nats, Fraction(margin), tilt)
    levels = LevelSum(competitors, parts.plain, parts.margin).each(nats)
    return VolumeBalls(tuple(levels), parts.cut)


def intrinsic_volumes(
    competitors: int | str, digits: int = 15, *, margin: Any = 0
) -> IntrinsicVolumes:
    """v_k = binom(M,k) A_k B_{k,M-k} = P(K = k), k = 0 .. k_max, with a proved bound on the rest.

    Arguments as `statistical_dimension`; the absolute radius of each v_k and the tail bound are
    about 10^-digits. Raises `InvalidInput`. Source: orthogonal decomposition of k+1 Gaussians into
    mean and deviations.

    >>> volumes = intrinsic_volumes(2)
    >>> [v.to_string(8) for v in volumes]
    ['0.33333333', '0.50000000', '0.16666667']
    >>> volumes.total().contains(1), volumes.tail_bound.is_exact
    (True, True)
    """
    competitors = parse_count(competitors, "competitors")
    digits, exact_margin = check_digits(digits), check_margin(margin)
    found = volume_balls(competitors, digits + 2, exact_margin)
    return IntrinsicVolumes(
        competitors,
        tuple(Certified(v) for v in found.balls),
        Certified(found.cut.beyond(0)).rounded_up(),
    )
