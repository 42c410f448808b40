"""Laws of the scores of a recalled fact at capacity, exactly at finite M, certified.

In units where a typical score is N(0, 1), the memory at capacity maps a fact's scores z to the
nearest point of C = {y_0 >= max_rho y_rho + margin}: the target rises to y_0 = t + margin, the K
top competitors are pressed down to the level t, the rest stay. (K = 0: nothing moves and
t = z_0 - margin.)

    P(y_0 <= y)   = P(t <= y - margin)
    P(best <= b)  = P(t <= b) + Phi(b)^M Q(b + margin)
    P(gap > g)    = int dx phi(x + g) Phi(x)^M,  g >= margin;  the gap is the margin if K >= 1
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import sympy as sp
from flint import acb, acb_poly, arb, ctx, fmpz

from numerics.balls import Certified, bits_for, working_precision
from numerics.certify import certify
from numerics.cone.gauss import density, float_level, float_log, log_lower_tail, upper_tail
from numerics.cone.volumes import (
    LOG10,
    IntrinsicVolumes,
    check_digits,
    check_margin,
    coefficients,
    dimension_ball,
    exact_ball,
    intrinsic_volumes,
    mean_active,
    statistical_dimension,
    variance_of_active,
)
from numerics.counts import parse_count
from numerics.level_law import Level
from numerics.roots import certified_root
from numerics.tail_average import exact_number
from replica.errors import InvalidInput
from replica.gaussian import GaussianAverage, Phi, phi

MOST_MEAN = 10**12  # moments need the k-sum, whose length grows with log M


@dataclass(frozen=True)
class CapacityScores:
    """The laws for M = `competitors` and a margin, exact (int, Fraction, decimal text).

    Arguments of the methods are exact scores in standard deviations; results are `Certified`,
    relative accuracy 10^-digits. Raises `InvalidInput`. Source: projection onto the recall cone.

    >>> scores = CapacityScores(1)
    >>> print(scores.target_cdf(0).to_string(10))  # two half-planes at 45 degrees
    0.3750000000
    >>> print(CapacityScores(44, "0.576").target_mean(8).to_string(5))
    1.9041
    """

    competitors: Any
    margin: Any = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "competitors", parse_count(self.competitors, "competitors"))
        object.__setattr__(self, "margin", check_margin(self.margin))

    # -- target score --------------------------------------------------------------------------
    def _level(self, t: Fraction) -> Level:
        return Level(self.competitors, self.margin, t)

    def target_density(self, y: Any, digits: int = 15) -> Certified:
        """Density of the target score y_0 at y."""
        point = exact_number(y, "y", "a score") - self.margin
        return Certified(self._level(point).density(check_digits(digits)))

    def target_cdf(self, y: Any, digits: int = 15) -> Certified:
        """P(y_0 <= y)."""
        point = exact_number(y, "y", "a score") - self.margin
        return Certified(self._level(point).cdf(check_digits(digits)))

    def target_survival(self, y: Any, digits: int = 15) -> Certified:
        """P(y_0 > y), with relative digits in the upper tail."""
        point = exact_number(y, "y", "a score") - self.margin
        return Certified(self._level(point).survival(check_digits(digits)))

    def target_quantile(self, u: Any, digits: int = 15) -> Certified:
        """The y with P(y_0 <= y) = u, 0 < u < 1, u exact; unique, the density being positive.

        >>> print(CapacityScores(1).target_quantile("0.25", 12).to_string(4))
        -0.2775
        """
        level = exact_number(u, "u", "a probability in (0, 1)")
        if not 0 < level < 1:
            raise InvalidInput(f"u is {u}; a quantile needs a probability strictly between 0 and 1")
        digits = check_digits(digits)
        low_half = level <= Fraction(1, 2)
        wanted = level if low_half else 1 - level

        @lru_cache(maxsize=8)
        def excess(t: Fraction, working: int) -> Any:
            law = self._level(t)
            ball = law.cdf(working) if low_half else law.survival(working)
            with working_precision(bits_for(working)):
                return (ball - exact_ball(wanted, ctx.prec)) / exact_ball(wanted, ctx.prec)

        centre = Fraction(round(64 * float_level(self._log_m, float(self.margin))), 64)
        low, high = self._bracket(excess, centre, low_half)
        root = certified_root(excess, low, high, digits + 1)
        return root + self.margin

    def _bracket(self, excess: Any, centre: Fraction, rising: bool) -> tuple[Fraction, Fraction]:
        """Two levels between which `excess` changes sign, searched outwards from the centre."""
        step = Fraction(1, 2)
        low = high = centre
        for _ in range(60):
            if bool(excess(low, 4) < 0) == rising and bool(excess(high, 4) > 0) == rising:
                return low, high
            if bool(excess(low, 4) < 0) != rising:
                low -= step
            if bool(excess(high, 4) > 0) != rising:
                high += step
            step *= Fraction(3, 2)
        raise ArithmeticError("no bracket of the quantile was found")

    @property
    def _log_m(self) -> float:
        return float_log(fmpz(self.competitors)) if self.competitors > 1 else 0.0

    def target_mean(self, digits: int = 15) -> Certified:
        """E y_0 = margin + E t (another form: half the derivative of E dist^2 in the margin)."""
        return Certified(_refined(lambda w: self._level_moment(1, w), digits)) + self.margin

    def target_variance(self, digits: int = 15) -> Certified:
        """Var y_0 = E (t - c)^2 - (E t - c)^2, c near the mean."""

        def compute(working: int) -> Any:
            centre = Fraction(round(256 * float_level(self._log_m, float(self.margin))), 256)
            second = self._level_moment(2, working, centre)
            first = self._level_moment(1, working, centre)
            with working_precision(bits_for(working) + 40):
                return second - first * first

        return Certified(_refined(compute, digits))

    def target_std(self, digits: int = 15) -> Certified:
        """Standard deviation of the target score."""
        variance = self.target_variance(digits + 1)
        with working_precision(bits_for(digits + 4)):
            return Certified(variance.ball.sqrt())

    def _level_moment(self, power: int, digits: int, centre: Fraction = Fraction(0)) -> Any:
        """E (t - c)^power from the density e^{-mt - t^2/2} Phi^M P(r), r = e^{-t^2/2}/Phi, of t.

        P collects the coefficients of the k-sum; the k beyond its cut are bounded by P(K > last)
        on the range of integration, and t beyond that range by P(t > u) <= M Q(u) + Q(u + m) and
        P(t < -u) <= Q(u - m), as t <= max(z_0 - m, max z) and t >= z_0 - m.
        """
        if self.competitors > MOST_MEAN:
            raise InvalidInput(
                f"competitors is {self.competitors}; moments of the target score are computed "
                "up to 10^12; use target_quantile, which has no such limit"
            )
        nats = digits * LOG10 + 8.0
        parts = coefficients(self.competitors, nats, self.margin)
        with working_precision(parts.bits):
            margin, shift = exact_ball(self.margin, ctx.prec), exact_ball(centre, ctx.prec)
            number = arb(fmpz(self.competitors))
            polynomial = acb_poly([acb(c) for c in parts.plain])
            reach = math.sqrt(2.0 * (nats + 12.0))
            high = arb(math.ceil(math.sqrt(2.0 * (nats + 12.0 + self._log_m))))
            low = arb(-math.ceil(reach - float(self.margin)))
            if self.competitors > 30:
                low = low.max(arb(math.floor(4 * self._least_level(nats + 30.0))) / 4).mid()

            def integrand(t: Any, _analytic: bool) -> Any:
                log_phi = _log_cdf(t)
                gauss = -t * t / 2
                weight = (number * log_phi + gauss - margin * t).exp()
                return (t - shift) ** power * weight * polynomial((gauss - log_phi).exp())

            tolerance = arb(-nats).exp()
            value = acb.integral(integrand, low, high, rel_tol=tolerance, abs_tol=tolerance).real
            widest = abs(low - shift).max(abs(high - shift)) ** power
            error = widest * parts.cut.beyond(0) + self._outside(low, high, shift, power)
            return value + arb(0, error.upper())

    def _least_level(self, nats: float) -> float:
        """A level below which t lies with probability under e^-nats (checked by `_outside`)."""
        level = float_level(self._log_m, float(self.margin))
        for i in range(1, 200):
            candidate = level - 0.25 * i
            if candidate <= -float(self.margin):
                return candidate
            law = Level(self.competitors, self.margin, Fraction(round(4 * candidate), 4))
            s, height = law._saddle(1)
            if height + math.log(s) < -nats:
                return candidate
        return level - 50.0

    def _outside(self, low: Any, high: Any, shift: Any, power: int) -> Any:
        """Bound on E[|t - c|^n; t outside [low, high]], n = 1 or 2, by integration by parts.

        Above, P(t > u) <= (M + 1) Q(u); far below, P(t < -u) <= Q(u - m); in between, P(t < low).
        E[|t|^n; t > H] <= (H^n + n) Q(H) for such a tail, and |t - c| <= |t| (1 + |c|) if |t| >= 1.
        """
        margin, number = exact_ball(self.margin, ctx.prec), arb(fmpz(self.competitors))

        def gaussian(start: Any) -> Any:
            return (start**power + power) * upper_tail(start)

        above = (number + 1) * (1 + abs(shift)) ** power * gaussian(high)
        reach = (-low - margin).max(arb(math.ceil(math.sqrt(2.0 * math.log(2.0) * ctx.prec))))
        below = gaussian(reach) * (1 + margin + abs(shift)) ** power
        if low > -(reach + margin):
            law = Level(self.competitors, self.margin, _exact(low))
            below += law.cdf(3).upper() * (reach + margin + abs(shift)) ** power
        return above + below

    # -- competitors ---------------------------------------------------------------------------
    def active_law(self, digits: int = 15) -> IntrinsicVolumes:
        """P(K = k), K the number of active competitors: the intrinsic volumes v_k."""
        return intrinsic_volumes(self.competitors, digits, margin=self.margin)

    def active_mean(self, digits: int = 15) -> Certified:
        """E K."""
        return mean_active(self.competitors, digits, margin=self.margin)

    def active_variance(self, digits: int = 15) -> Certified:
        """Var K."""
        return variance_of_active(self.competitors, digits, margin=self.margin)

    def best_cdf(self, b: Any, digits: int = 15) -> Certified:
        """P(best competitor <= b): t where one is active, the largest competitor where none is."""
        point = exact_number(b, "b", "a score")
        digits = check_digits(digits)
        level = self._level(point).cdf(digits + 2)
        with working_precision(bits_for(digits + 4)):
            x, margin = exact_ball(point, ctx.prec), exact_ball(self.margin, ctx.prec)
            free = (arb(fmpz(self.competitors)) * log_lower_tail(x)).exp() * upper_tail(x + margin)
            return Certified(level + free)

    def best_density(self, b: Any, digits: int = 15) -> Certified:
        """Density of the best competitor at b, the derivative of `best_cdf`.

        For one competitor at 0 it is 1/(2 sqrt(pi)) + 1/(2 sqrt(2 pi)).

        >>> print(CapacityScores(1).best_density(0).to_string(6))
        0.481566
        """
        point = exact_number(b, "b", "a score")
        number = arb(fmpz(self.competitors))

        def compute(working: int) -> Any:
            level = self._level(point).density(working)
            with working_precision(bits_for(working) + 20):
                x, margin = exact_ball(point, ctx.prec), exact_ball(self.margin, ctx.prec)
                others = ((number - 1) * log_lower_tail(x)).exp()
                free = number * density(x) * others * upper_tail(x + margin)
                none_active = (number * log_lower_tail(x)).exp() * density(x + margin)
                return level + free - none_active

        digits = check_digits(digits)
        for extra in (3, digits + 10, 3 * digits + 30):  # one term may cancel most of another
            ball = compute(digits + extra)
            if ball.rel_accuracy_bits() >= digits * math.log2(10) + 1:
                break
        return Certified(ball)  # far out a bound, as for `target_density`

    def gap_density(self, g: Any, digits: int = 15) -> Certified:
        """Density of the gap at g > margin, M int dx phi(x + g) phi(x) Phi(x)^(M-1).

        The rest of the mass, 1 - v_0, sits at the margin itself. Raises InvalidInput for g at or
        below the margin.
        """
        gap = exact_number(g, "g", "a gap")
        if gap <= self.margin:
            raise InvalidInput(
                f"g is {g}; the gap has a density above the margin {self.margin} only and an atom "
                "there; give a larger g"
            )
        lead = sp.Rational(gap.numerator, gap.denominator)
        x = sp.Symbol("x", real=True)
        body = phi(x) * Phi(x) ** (self.competitors - 1) * sp.exp(-lead * x)
        value = self.competitors * sp.exp(-(lead**2) / 2) * GaussianAverage(body, x)
        return certify(value, check_digits(digits), real=True)

    def gap_survival(self, g: Any, digits: int = 15) -> Certified:
        """P(y_0 - best > g), g >= margin; below the margin it is 1. The gap is the margin
        itself with probability 1 - v_0.

        >>> print(CapacityScores(1).gap_survival(0).to_string(6))
        0.500000
        """
        gap = exact_number(g, "g", "a gap")
        if gap < self.margin:
            return Certified(1)
        lead = sp.Rational(gap.numerator, gap.denominator)
        x = sp.Symbol("x", real=True)
        body = Phi(x) ** self.competitors * sp.exp(-lead * x)
        value = sp.exp(-(lead**2) / 2) * GaussianAverage(body, x)
        return certify(value, check_digits(digits), real=True)

    def gap_mean(self, digits: int = 15) -> Certified:
        """E gap = margin + int dx Q(x + margin) Phi(x)^M."""
        lead = sp.Rational(self.margin.numerator, self.margin.denominator)
        x = sp.Symbol("x", real=True)
        excess = sp.Integral(Phi(-x - lead) * Phi(x) ** self.competitors, (x, -sp.oo, sp.oo))
        return certify(lead + excess, check_digits(digits), real=True)

    def best_mean(self, digits: int = 15) -> Certified:
        """E best competitor = E y_0 - E gap."""
        return self.target_mean(digits + 2) - self.gap_mean(digits + 2)


def _exact(ball: Any) -> Fraction:
    mantissa, exponent = ball.man_exp()
    mantissa, exponent = int(mantissa), int(exponent)
    return Fraction(mantissa << exponent) if exponent >= 0 else Fraction(mantissa, 1 << -exponent)


def _log_cdf(t: Any) -> Any:
    """log Phi of a complex ball near the real line; not finite where Phi may vanish."""
    if t.real > 0:
        upper = (t / arb(2).sqrt()).erfc() / 2
        if upper.abs_upper() < 1:
            return (-upper).log1p()
    return ((-t / arb(2).sqrt()).erfc() / 2).log(analytic=True)


def _refined(compute: Any, digits: int) -> Any:
    """Call `compute(working digits)` until the relative radius is below 10^-digits."""
    digits = check_digits(digits)
    extra = 3
    for _ in range(5):
        ball = compute(digits + extra)
        if ball.is_finite() and ball.rel_accuracy_bits() >= digits * math.log2(10) + 1:
            return ball
        extra = 2 * extra + 4
    raise ArithmeticError(f"{digits} digits were not reached; the value may be near 0")


def largest_margin(
    dim: int,
    facts: int | str,
    competitors: int | str | None = None,
    *,
    dim_out: int | None = None,
    digits: int = 15,
) -> Certified:
    """The margin m with p delta(M, m) = d_in d_out: the largest at which p facts can be recalled.

    In standard deviations of a score of a unit-norm memory (Gaussian problem, large d). delta grows
    with m, so the root is unique. Arguments: `facts` p, `competitors` M (p - 1 if None), `dim`,
    `dim_out`. Raises `InvalidInput` when p facts are above capacity without any margin.

    >>> print(largest_margin(16, 45).to_string(6))
    0.577105
    """
    count = parse_count(facts, "facts", 2)
    number = count - 1 if competitors is None else parse_count(competitors, "competitors")
    size = parse_count(dim, "dim") * parse_count(dim if dim_out is None else dim_out, "dim_out")
    digits = check_digits(digits)
    load = Fraction(size, count)
    plain = statistical_dimension(number, 20)
    if not plain < load:
        raise InvalidInput(
            f"facts is {facts}; {size} weights recall fewer facts even without a margin; "
            "give fewer facts or a larger dim"
        )

    @lru_cache(maxsize=8)
    def excess(margin: Fraction, working: int) -> Any:
        ball = dimension_ball(number, working + 2, margin)
        with working_precision(bits_for(working + 2)):
            return ball / exact_ball(load, ctx.prec) - 1

    high = Fraction(1)
    while not excess(high, 6) > 0:
        high *= 2
        if high > 500:
            raise InvalidInput(f"facts is {facts}; the margin at {size} weights exceeds 500")
    return certified_root(excess, Fraction(0), high, digits + 1)
