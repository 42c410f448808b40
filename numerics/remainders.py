"""How far the expansions in 1/log p are from the truth, measured with balls.

For an expansion truncated at `order` the normalised remainder is

    r(p) = (exact - truncated) / (next scale),

exact and truncated both certified, so r is an enclosure. A `RemainderClaim` says
-below <= r <= above at every point of a grid from p0 to 10^1000; the wording is "verified on
[p0, 10^1000]" and means the grid points, no more: nothing is proved between or beyond them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import sympy as sp
from flint import acb, arb, fmpq, fmpz

from numerics.balls import Certified, bits_for, working_precision
from numerics.cone import statistical_dimension, variance_of_active
from numerics.cone.gauss import density, float_level, float_log, upper_tail
from numerics.evaluator import compile_program
from numerics.hebbian_threshold import threshold
from replica.errors import InvalidInput
from replica.expansion import capacity, cone, hebbian
from replica.expansion.below import derive_maximum
from replica.expansion.result import series_expression
from replica.logseries import LogSeries

TOP_EXPONENT = 1000
DIGITS = 36
_TOP = sp.Symbol("L")


def _rational(value: Fraction) -> Any:
    return arb(fmpq(value.numerator, value.denominator))


@lru_cache(maxsize=4096)
def level(competitors: int, digits: int = DIGITS) -> Certified:
    """T with M (phi(T) - T Q(T)) = T: a certified enclosure of the only root.

    The left side decreases and the right side increases in T, so opposite signs at the two ends
    of a bracket prove it.

    >>> print(level(10**6).to_string(10))
    4.122525298
    """
    if competitors < 1:
        raise InvalidInput(f"competitors is {competitors}; it must be at least 1; give 1 or more")
    bits = bits_for(digits) + 60
    with working_precision(bits):
        size = arb(fmpz(competitors))

        def excess(t: Any) -> Any:
            return size * (density(t) - t * upper_tail(t)) - t

        root = arb(float_level(float_log(competitors)))
        for _ in range(12):  # Newton on the midpoints: a good guess, not yet a proof
            slope = -size * upper_tail(root) - 1
            root = (root - excess(root) / slope).mid()
        step = root * arb(10) ** (-digits - 3)
        low, high = (root - step).mid(), (root + step).mid()
        if not (excess(low) > 0 and excess(high) < 0):
            raise ArithmeticError(
                f"the level for {competitors} competitors was not bracketed at {digits} digits"
            )
        return Certified(low.union(high))


@lru_cache(maxsize=4096)
def maximum_location(competitors: int, digits: int = DIGITS) -> Certified:
    """b with M phi(b) = b, by Lambert's function: b^2 = W(M^2 / (2 pi))."""
    with working_precision(bits_for(digits) + 40):
        square = arb(fmpz(competitors)) ** 2 / (2 * arb.pi())
        return Certified(square.lambertw().sqrt())


@lru_cache(maxsize=4096)
def _dimension(competitors: int, digits: int) -> Certified:
    return statistical_dimension(competitors, digits)


@lru_cache(maxsize=1024)
def _variance(competitors: int, digits: int) -> Certified:
    return variance_of_active(competitors, digits)


def _in_power(coefficients: Any, base: Any, leading: int) -> Any:
    """sum_i c_i base^(leading - i)."""
    total, power = arb(0), base**leading
    for c in coefficients:
        total += _rational(Fraction(c)) * power
        power /= base
    return total


@lru_cache(maxsize=128)
def _program(name: str, order: int) -> tuple[Any, tuple[Fraction, int]]:
    """Compiled known terms of a series in L = log p, and the key of its O-term."""
    series = _LOG_SERIES[name](order)
    if series.remainder is None:
        raise InvalidInput(f"the series {name!r} is exact; it has no remainder to measure")
    return compile_program(series_expression(series)), series.remainder


def _constants() -> dict[sp.Symbol, Any]:
    """Balls for L-independent symbols of the series: polygamma(i, 1) and the Hebbian ones."""
    values = {sp.Symbol("psi_0"): acb(-arb.const_euler())}
    for i in range(1, 20):  # polygamma(i, 1) = (-1)^(i+1) i! zeta(i+1)
        zeta = arb(i + 1).zeta()
        values[sp.Symbol(f"psi_{i}")] = acb((-1) ** (i + 1) * arb.fac_ui(i) * zeta)
    values[hebbian.ROOT] = acb(1 / arb.pi().sqrt())
    log_2 = arb(2).log()
    values[hebbian.OFFSET] = acb(arb.pi().log() / 2 - log_2 - log_2.log())
    return values


def _maximum_series(order: int) -> LogSeries:
    series = derive_maximum(order).series
    assert series is not None
    return series


_LOG_SERIES: dict[str, Callable[[int], LogSeries]] = {
    "capacity": capacity.capacity,
    "gaussian_maximum": _maximum_series,
    "hebbian_typical": hebbian.typical_load,
    "hebbian_all": hebbian.all_facts_load,
}


def _exact_in_log(name: str, facts: int, digits: int) -> Any:
    """The quantity a series in log p stands for, as a ball."""
    size = arb(fmpz(facts)).log()
    if name == "capacity":
        return size / _dimension(facts - 1, digits).ball
    if name == "gaussian_maximum":
        return maximum_location(facts, digits).ball
    return size / threshold(facts, every=name == "hebbian_all", digits=11).ball ** 2


def normalised_remainder(name: str, order: int, facts: int, digits: int = DIGITS) -> Certified:
    """(exact - truncated) / (next scale) at p = facts, certified.

    The scale is T^(-2 order) for expansions in the level T (the power of the first term left
    out), X_W^(-order) for the resummed one, and the series' own O-term for those in log p.

    >>> print(normalised_remainder("statistical_dimension", 1, 10**10).to_string(3))
    -7.66
    """
    if name not in NAMES:
        raise InvalidInput(
            f"no remainder is known for {name!r}; choose one of {', '.join(sorted(NAMES))}"
        )
    with working_precision(bits_for(digits) + 40):
        if name in _LOG_SERIES:
            program, (power, log_power) = _program(name, order)
            size = arb(fmpz(facts)).log()
            known = program({_TOP: acb(size), **_constants()}).real
            scale = size ** arb(fmpq(power.numerator, power.denominator))
            scale *= size.log() ** log_power
            return Certified((_exact_in_log(name, facts, digits) - known) / scale)
        if name == "variance":
            exact = _variance(facts - 1, digits).ball
            series = cone.variance_of_active(order + 1)
        else:
            exact = _dimension(facts - 1, digits).ball
            series = cone.statistical_dimension(order + 1)
        if name == "capacity_resummed":
            size = arb(fmpz(facts - 1)).log()
            base = 3 * (((2 * size - (2 * arb.pi()).log()) / 3).exp() / 3).lambertw()
            series = list(capacity.resummed_dimension(order + 1))
        else:
            base = level(facts - 1, digits).ball ** 2
        known = _in_power(series, base, 1)
        return Certified((exact - known) * base**order)


NAMES = frozenset({*_LOG_SERIES, "statistical_dimension", "variance", "capacity_resummed"})


def grid(first: int, points: int, shift: Fraction = Fraction(0)) -> Iterator[int]:
    """Numbers p from `first` to 10^1000, equally spaced in log log p; both ends are included.

    `shift` in [0, 1) moves the inner points by that share of a step: another grid, same range.

    >>> [len(str(p)) for p in grid(10, 4)]
    [2, 10, 100, 1001]
    """
    start = Fraction(int(float_log(first) / float_log(10) * 10**6), 10**6)
    ratio = float(TOP_EXPONENT / start)
    yield first
    for i in range(1, points - 1):
        exponent = float(start) * ratio ** ((i + float(shift)) / (points - 1))
        whole = int(exponent)
        yield round(10 ** (exponent - whole) * 10**15) * 10**whole // 10**15
    yield 10**TOP_EXPONENT


@dataclass(frozen=True)
class RemainderClaim:
    """-below <= (exact - truncated) / scale <= above for p = first, ..., 10^1000 on a grid."""

    name: str
    order: int
    first: int
    below: Fraction
    above: Fraction

    def holds_at(self, facts: int) -> bool:
        """Whether the certified remainder at p lies inside; raises if the ball cannot decide."""
        remainder = normalised_remainder(self.name, self.order, facts)
        return bool(remainder >= -self.below and remainder <= self.above)

    def statement(self, points: int) -> str:
        """The claim in words."""
        least = f"-{float(self.below):g}" if self.below else "0"
        return (
            f"{self.name}, order {self.order}: {least} <= remainder / scale <= "
            f"{float(self.above):g}, verified on [{self.first}, 10^{TOP_EXPONENT}] "
            f"({points} grid points)"
        )


def measure(
    name: str, order: int, first: int, points: int, shift: Fraction = Fraction(0)
) -> tuple[Fraction, Fraction]:
    """Smallest and largest normalised remainder on a grid, as outward-rounded fractions."""
    values = [normalised_remainder(name, order, p).bounds for p in grid(first, points, shift)]
    return min(low for low, _ in values), max(high for _, high in values)


def claim(name: str, order: int, first: int, points: int) -> RemainderClaim:
    """A claim whose constants are the measured ones, enlarged by 5 % and rounded up to 3 digits."""
    low, high = measure(name, order, first, points)
    return RemainderClaim(name, order, first, _round_up(-low), _round_up(high))


def _round_up(value: Fraction) -> Fraction:
    if value <= 0:
        return Fraction(0)
    enlarged = value * Fraction(21, 20)
    unit = Fraction(1)
    while enlarged < 100 * unit:
        unit /= 10
    while enlarged >= 1000 * unit:
        unit *= 10
    return -(-enlarged // unit) * unit


# Measured by `claim` on 60 grid points; re-verified on another grid by the tests.
_MEASURED = (
    ("statistical_dimension", 0, 10, "0", "63/20"),
    ("statistical_dimension", 1, 10, "236/25", "0"),
    ("statistical_dimension", 2, 10, "0", "593/10"),
    ("statistical_dimension", 3, 10, "532", "0"),
    ("statistical_dimension", 4, 10, "0", "6100"),
    ("statistical_dimension", 5, 10, "84200", "0"),
    ("statistical_dimension", 6, 10, "0", "1350000"),
    ("capacity_resummed", 0, 10, "0", "63/20"),
    ("capacity_resummed", 1, 10, "79/5", "0"),
    ("capacity_resummed", 2, 10, "0", "101"),
    ("capacity_resummed", 3, 10, "893", "0"),
    ("capacity_resummed", 4, 10, "0", "9980"),
    ("capacity_resummed", 5, 10, "133000", "0"),
    ("capacity_resummed", 6, 10, "0", "2020000"),
    ("capacity", 0, 100, "0", "73/50"),
    ("capacity", 1, 100, "0", "31/20"),
    ("capacity", 2, 100, "0", "147/100"),
    ("capacity", 3, 100, "0", "9/5"),
    ("capacity", 4, 100, "0", "213/100"),
    ("capacity", 5, 100, "0", "61/25"),
    ("capacity", 6, 100, "0", "68/25"),
    ("gaussian_maximum", 0, 100, "487/500", "0"),
    ("gaussian_maximum", 1, 100, "1/20", "101/2500"),
    ("gaussian_maximum", 2, 100, "403/50000", "17/125"),
    ("gaussian_maximum", 3, 100, "47/62500", "57/625"),
    ("gaussian_maximum", 4, 100, "0", "11/500"),
    ("gaussian_maximum", 5, 100, "27/1000", "77/25000"),
    ("gaussian_maximum", 6, 100, "39/1000", "643/1000000"),
    ("variance", 0, 10, "21/5", "0"),
    ("variance", 1, 10, "0", "44"),
    ("variance", 2, 10, "487", "0"),
    ("variance", 3, 10, "0", "6080"),
    ("variance", 4, 10, "85800", "0"),
    ("hebbian_typical", 0, 100, "0", "189/250"),
    ("hebbian_typical", 1, 100, "0", "387/500"),
    ("hebbian_typical", 2, 100, "0", "16/25"),
    ("hebbian_all", 0, 100, "0", "139/1000"),
    ("hebbian_all", 1, 100, "117/10000", "471/10000"),
)

PUBLISHED = tuple(
    RemainderClaim(name, order, first, Fraction(below), Fraction(above))
    for name, order, first, below, above in _MEASURED
)
PUBLISHED_POINTS = 60


def published_for(name: str, order: int) -> list[str]:
    """The published claims about one truncated expansion, in words; empty where there is none.

    >>> len(published_for("capacity", 2)), published_for("overlap", 1)
    (1, [])
    """
    return [
        row.statement(PUBLISHED_POINTS)
        for row in PUBLISHED
        if (row.name, row.order) == (name, order)
    ]


def published_table() -> str:
    """Every published claim, one a line.

    >>> print(published_table().splitlines()[0])
    statistical_dimension, order 0: 0 <= remainder / scale <= 3.15, verified on [10, 10^1000]
    (60 grid points)
    """
    return "\n".join(row.statement(PUBLISHED_POINTS) for row in PUBLISHED)
