"""The factor of the level t: trapezoidal sums over t for all k at once.

    S = sum_k d_k L_k,   L_k = int dt e^{-m t} Phi(t)^{M-k} e^{-(k+1) t^2/2},   d_k >= 0,

is int dt e^{-mt - t^2/2} Phi^M P(r), r = e^{-t^2/2}/Phi(t), P the polynomial with coefficients d_k:
all terms positive, no cancellation. Every term is log-concave in t, which bounds what is cut off at
both ends. The discretisation error needs int |F(t + ia)| dt, bounded in one of two ways:

* |Phi(t+ia)| <= e^{a^2/2} Phi(t) for all t and a, hence <= e^{(M+1)a^2/2} S: good for small M;
* for 0 < a <= 0.3 and t <= 1/a, |Phi(t+ia)| increases with t, because
  d log|Phi(w)|/dt has the sign of Re int_0^inf e^{wx-x^2/2} dx, which for t <= 0 is the cosine
  transform of a product of positive-definite functions, and for t > 0 is at least
  sqrt(2 pi) e^{t^2/2} [e^{-a^2/2} cos(ta) - Q(t)] > 0 (cos(1) e^{-0.045} > 1/2 >= Q). So finitely
  many end points bound the integral over t <= 1/a; beyond, |Phi| <= 1 + e^{a^2/2} Q(t).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from flint import arb, arb_poly, fmpz

from numerics.balls import working_precision
from numerics.cone.gauss import (
    density,
    float_level,
    float_log,
    log_lower_tail,
    log_modulus_lower_tail,
    lower_tail,
    upper_tail,
)


@dataclass(frozen=True)
class Grid:
    """Nodes t_j = j h, first <= j <= last, and the bound on the whole quadrature error of S."""

    step: Any
    first: int
    last: int
    relative: Any  # error is at most relative * S + absolute
    absolute: Any


class LevelSum:
    """The sums over t for M competitors, margin m and coefficients d_k (balls, k = 0, 1, ...)."""

    def __init__(self, competitors: int, coefficients: list[Any], margin: Any = None) -> None:
        self.competitors = competitors
        self.margin = arb(0) if margin is None else margin
        self.count = len(coefficients)
        self.coefficients = coefficients
        self.least = next(k for k, d in enumerate(coefficients) if not d.is_zero())
        with working_precision(64):
            self._rough = arb_poly([+d for d in coefficients])
        self._float_margin = float(self.margin.mid())
        log_m = float_log(fmpz(competitors))
        self.level = float_level(log_m, self._float_margin) if competitors > 1 else 0.0
        self.guard = 50 + 2 * math.ceil(math.log2(self.count + 2))
        self.guard += 4 * math.ceil(math.log2(self.level**2 + 16.0))

    # -- the integrand ---------------------------------------------------------------------

    def factors(self, t: Any) -> tuple[Any, Any]:
        """e^{-mt - t^2/2} Phi(t)^M and r(t) = e^{-t^2/2}/Phi(t)."""
        log_phi = log_lower_tail(t)
        gauss = -t * t / 2
        weight = arb(fmpz(self.competitors)) * log_phi + gauss - self.margin * t
        return weight.exp(), (gauss - log_phi).exp()

    def _rough_value(self, t: Any) -> Any:
        weight, ratio = self.factors(t)
        return weight * self._rough(ratio)

    def _log_rough(self, t: float) -> float:
        value = self._rough_value(arb(t))
        return float(value.upper().log().mid()) if value.upper() > 0 else -math.inf

    # -- choosing the grid -----------------------------------------------------------------

    def _edge(self, sign: int, floor: float) -> float:
        """A level on the given side where the integrand has fallen below e^{floor}."""
        stride = 1.0 / max(1.0, self.level)
        inside, outside = self.level, self.level + sign * stride
        while self._log_rough(outside) > floor:
            inside, stride = outside, 1.6 * stride
            outside = inside + sign * stride
        for _ in range(6):
            middle = 0.5 * (inside + outside)
            if self._log_rough(middle) > floor:
                inside = middle
            else:
                outside = middle
        return outside

    def _steepness_left(self, t: Any) -> Any:
        """Lower bound on the logarithmic slope of every term at t (smallest at the largest k)."""
        hazard = density(t) / lower_tail(t)
        top = self.count - 1
        return arb(fmpz(self.competitors - top)) * hazard - (top + 1) * t - self.margin

    def _steepness_right(self, t: Any) -> Any:
        hazard = density(t) / lower_tail(t)
        low = self.least
        return (low + 1) * t + self.margin - arb(fmpz(self.competitors - low)) * hazard

    def _strip_integral(self, a: float, left: float, right: float, ratio: float) -> Any:
        """Upper bound on int |F(t + ia)| dt by monotonicity, 0 < a <= 0.3, edges of the bulk given."""
        height = arb(a)
        half = height * height / 2
        end = 1.0 / a * (1.0 - 2.0**-40)
        fine = ratio / max(1.0, self.level) ** 2
        points = [left]
        stride = fine
        while points[-1] < min(right, end):
            points.append(points[-1] + fine)
        while points[-1] < end:
            stride *= 1.5
            points.append(points[-1] + stride)
        points = [p for p in points if p < end] + [end]
        stride, below = fine, left
        lowest = min(0.0, left)
        while below > lowest:
            stride *= 1.7
            below = max(lowest, below - stride)
            points.insert(0, below)
        competitors = arb(fmpz(self.competitors))
        moduli = [log_modulus_lower_tail(arb(p), height) for p in points]
        total = self._left_of(arb(points[0]), moduli[0], half)
        for (x, y), modulus in zip(zip(points, points[1:], strict=False), moduli[1:], strict=True):
            nearest = 0.0 if x < 0.0 < y else min(abs(x), abs(y))
            gauss = half - arb(nearest) ** 2 / 2
            weight = (competitors * modulus + gauss - self.margin * arb(x)).exp()
            total += (arb(y) - arb(x)) * weight * self._rough((gauss - modulus).exp())
        return (total + self._right_of(arb(end), half)).upper()

    def _left_of(self, t: Any, modulus: Any, half: Any) -> Any:
        """int over (-inf, t], t <= 0 or t far below the bulk: |Phi| is at most its value at t."""
        nearest = t if t < 0 else arb(0)
        gauss = half - nearest * nearest / 2
        weight = (arb(fmpz(self.competitors)) * modulus + half + self.margin**2 / 2).exp()
        mass = (2 * arb.pi()).sqrt() * lower_tail(t + self.margin)
        return weight * mass * self._rough((gauss - modulus).exp())

    def _right_of(self, t: Any, half: Any) -> Any:
        """int over [t, inf), t > 0: |Phi| <= 1 + e^{a^2/2} Q(t)."""
        inflated = (half.exp() * upper_tail(t)).log1p()
        gauss = half - t * t / 2
        weight = (arb(fmpz(self.competitors)) * inflated + gauss - self.margin * t).exp()
        return weight / t * self._rough(gauss.exp())

    def grid(self, nats: float) -> Grid:
        """Choose nodes so that the quadrature error is about e^{-nats} S, and prove its bound."""
        with working_precision(64 + self.guard):
            peak = max(self._log_rough(self.level + x / max(1.0, self.level)) for x in (-1, 0, 1))
            floor = peak - nats - 3.0
            left, right = self._edge(-1, floor), self._edge(+1, floor)
            stride = 0.25 / max(1.0, self.level)
            while not self._steepness_left(arb(left)) > 0.5:
                left -= stride
            while not self._steepness_right(arb(right)) > 0.5:
                right += stride
            step, relative, absolute = self._best_step(nats, left, right, peak)
            h = arb(step)
            first, last = math.floor(left / step), math.ceil(right / step)
            for j, slope in (
                (first, self._steepness_left(arb(first) * h)),
                (last, self._steepness_right(arb(last) * h)),
            ):
                decay = (-slope * h).exp()
                absolute += h * self._rough_value(arb(j) * h) * decay / (1 - decay)
            return Grid(h, first, last, relative, absolute.upper())

    def _best_step(
        self, nats: float, left: float, right: float, peak: float
    ) -> tuple[float, Any, Any]:
        """The larger of the steps that the two strip bounds allow, with (relative, absolute)."""
        log_size = peak - math.log(max(1.0, self.level))  # about log S
        needed = nats + 3.0
        float_m = float(self.competitors) if self.competitors < 10**9 else math.inf
        strip = math.sqrt(2.0 * needed / (float_m + 1.0)) if float_m < math.inf else 0.0
        step = math.pi * strip / needed
        if step > 0.05 / max(1.0, self.level) or self.competitors < 8:
            step = _round_down(step)
            a, h = arb(strip), arb(step)
            growth = (arb(self.competitors + 1) * a * a / 2).exp()
            return step, (2 * growth / ((2 * arb.pi() * a / h).exp() - 1)).upper(), arb(0)
        best: tuple[float, float, Any] = (0.0, 0.0, None)
        for beta in (0.45,):
            a_float = min(0.3, beta / max(self.level, 1.0))
            integral = self._strip_integral(a_float, left, right, 0.5)
            loss = float(integral.log().mid()) - log_size
            h_float = 2.0 * math.pi * a_float / (needed + max(0.0, loss))
            if h_float > best[0]:
                best = (h_float, a_float, integral)
        step = _round_down(best[0])
        damping = 2 / ((2 * arb.pi() * arb(best[1]) / arb(step)).exp() - 1)
        return step, arb(0), (best[2] * damping).upper()

    # -- the sums --------------------------------------------------------------------------

    def total(self, nats: float) -> Any:
        """S as a ball with relative error about e^{-nats}."""
        grid = self.grid(nats)
        with working_precision(math.ceil(nats / math.log(2)) + self.guard):
            polynomial = arb_poly(self.coefficients)
            total = arb(0)
            for j in range(grid.first, grid.last + 1):
                weight, ratio = self.factors(arb(j) * grid.step)
                total += weight * polynomial(ratio)
            total *= grid.step
            # |sum - S| <= relative S + absolute  and  S <= (sum + absolute)/(1 - relative)
            size = (total + grid.absolute) / (1 - grid.relative)
            error = grid.relative * size + grid.absolute
            return total + arb(0, error.upper())

    def each(self, nats: float) -> list[Any]:
        """d_k L_k for every k, each with absolute error about e^{-nats} S."""
        grid = self.grid(nats)
        with working_precision(math.ceil(nats / math.log(2)) + self.guard):
            moments = [arb(0)] * self.count
            for j in range(grid.first, grid.last + 1):
                power, ratio = self.factors(arb(j) * grid.step)
                for k in range(self.count):
                    moments[k] += power
                    power *= ratio
            terms = [
                grid.step * d * moment for d, moment in zip(self.coefficients, moments, strict=True)
            ]
            # every term's error is at most the bound on the whole (all are bounded termwise)
            size = (sum(terms, arb(0)) + grid.absolute) / (1 - grid.relative)
            error = (grid.relative * size + grid.absolute).upper()
            return [term + arb(0, error) for term in terms]


def _round_down(step: float) -> float:
    """A binary number of 11 bits not above the step, so that nodes are exact."""
    mantissa, exponent = math.frexp(step)
    return math.ldexp(math.floor(math.ldexp(mantissa, 11)), exponent - 11)
