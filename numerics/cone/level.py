"""The factor of the level t: quadrature over t for all k at once.

    S = sum_k d_k L_k,   L_k = int dt e^{-m t} Phi(t)^{M-k} e^{-(k+1) t^2/2},   d_k >= 0,

is the integral of F(t) = e^{-mt - t^2/2} Phi^M P(r), r = e^{-t^2/2}/Phi(t), P the polynomial with
coefficients d_k: all terms positive, no cancellation. Every term is log-concave in t, which bounds
what is cut off at both ends. F is entire, so the trapezoidal rule converges geometrically; two
grids have a proved error:

* nodes t_j = j h. |Phi(t+ia)| <= e^{a^2/2} Phi(t), so the error is at most
  2 e^{(M+1)a^2/2} S / (e^{2 pi a/h} - 1): good for small M;
* nodes t_j = tau + e^{jh}, dense where the M competitors make F rise steeply (just above tau) and
  sparse in the Gaussian tail. The error is at most 2 N / (e^{2 pi a/h} - 1) with N the integral of
  |F| along the ray tau + rho e^{ia}. For w = t + iy, t > 0, on the ray
      |Q(w)| <= e^{y^2/2} Q(t),   Re Q(w) >= Q(t) - phi(t) e^{y^2/2} (1 - cos min(ty, pi))/t
  (Q(t+iy) = Q(t) - i int_0^y phi(t+is) ds), which bounds |Phi(w)| = |1 - Q(w)| by end points.
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
    lower_tail,
    upper_tail,
)

_ROUGH_BITS = 64
_SMALL = 1e9  # numbers of competitors up to here are also tried on the equidistant grid


@dataclass(frozen=True)
class Grid:
    """Nodes numbered first..last, t_j = j h or tau + e^{jh}, and the bound on the error of S."""

    step: Any
    first: int
    last: int
    origin: Any  # tau, or None for the equidistant grid
    relative: Any  # the error is at most relative * S + absolute
    absolute: Any

    def __len__(self) -> int:
        return self.last - self.first + 1

    def node(self, j: int) -> tuple[Any, Any]:
        """t_j and its weight, at the current precision."""
        x = arb(j) * self.step
        if self.origin is None:
            return x, self.step
        rho = x.exp()
        return self.origin + rho, self.step * rho


class LevelSum:
    """The sums over t for M competitors, margin m and coefficients d_k (balls, k = 0, 1, ...)."""

    def __init__(self, competitors: int, coefficients: list[Any], margin: Any = None) -> None:
        self.competitors = competitors
        self.ball = arb(fmpz(competitors))
        self.margin = arb(0) if margin is None else margin
        self.count = len(coefficients)
        self.coefficients = coefficients
        self.least = next(k for k, d in enumerate(coefficients) if not d.is_zero())
        with working_precision(_ROUGH_BITS):
            self.rough_coefficients = [(+d).upper() for d in coefficients]
            self._rough = arb_poly(self.rough_coefficients)
        log_m = float_log(fmpz(competitors))
        shift = float(self.margin.mid())
        self.level = float_level(log_m, shift) if competitors > 1 else -0.5 * shift
        # M phi(t) is about (t + m) t^2 at the level, so F turns over on the scale 1/sqrt(t (t + m))
        self.scale = 1.0 / math.sqrt(max(1.0, self.level) * (max(1.0, self.level) + shift))
        self.guard = 50 + 2 * math.ceil(math.log2(self.count + 2))
        self.guard += 4 * math.ceil(math.log2(self.level**2 + shift**2 + 16.0))

    # -- the integrand ---------------------------------------------------------------------

    def factors(self, t: Any) -> tuple[Any, Any]:
        """e^{-mt - t^2/2} Phi(t)^M and r(t) = e^{-t^2/2}/Phi(t)."""
        log_phi = log_lower_tail(t)
        gauss = -t * t / 2
        weight = self.ball * log_phi + gauss - self.margin * t
        return weight.exp(), (gauss - log_phi).exp()

    def _rough_value(self, t: Any) -> Any:
        weight, ratio = self.factors(t)
        return weight * self._rough(ratio)

    def _log_rough(self, t: float) -> float:
        value = self._rough_value(arb(t)).upper()
        return float(value.log().mid()) if value > 0 else -math.inf

    def _slope_left(self, t: Any) -> Any:
        """Lower bound on the logarithmic slope of every term at t (it falls with k)."""
        hazard = density(t) / lower_tail(t)
        top = self.count - 1
        return (self.ball - top) * hazard - (top + 1) * t - self.margin

    def _slope_right(self, t: Any) -> Any:
        """Lower bound on minus the logarithmic slope of every term at t."""
        hazard = density(t) / lower_tail(t)
        low = self.least
        return (low + 1) * t + self.margin - (self.ball - low) * hazard

    # -- choosing the grid -----------------------------------------------------------------

    def _edge(self, sign: int, floor: float) -> float:
        """A level on the given side where F has fallen below e^{floor} and every term falls."""
        stride = self.scale
        inside, outside = self.level, self.level + sign * stride
        while self._log_rough(outside) > floor:
            inside, stride = outside, 1.6 * stride
            outside = inside + sign * stride
        for _ in range(5):
            middle = 0.5 * (inside + outside)
            inside, outside = (
                (middle, outside) if self._log_rough(middle) > floor else (inside, middle)
            )
        slope = self._slope_left if sign < 0 else self._slope_right
        while not slope(arb(outside)) > 1.0 / abs(self.level - outside):
            outside += sign * 0.25 * self.scale
        return outside

    def grid(self, nats: float) -> Grid:
        """Choose nodes so that the quadrature error is about e^{-nats} S, and prove its bound."""
        with working_precision(_ROUGH_BITS + self.guard):
            peak = max(self._log_rough(self.level + x * self.scale) for x in (-1, 0, 1))
            needed = nats + 3.0
            left, right = self._edge(-1, peak - needed), self._edge(+1, peak - needed)
            flat_step = 0.0
            if self.competitors < _SMALL:
                strip = math.sqrt(2.0 * needed / (self.competitors + 1.0))
                flat_step = math.pi * strip / needed
            flat_count = (right - left) / flat_step if flat_step else math.inf
            if left <= 0.3 or flat_count < 60:
                if not flat_step:
                    raise ArithmeticError("the margin is too large for so many competitors")
                return self._flat_grid(left, right, strip, flat_step)
            grid = self._ray_grid(needed, left, right, peak + math.log(self.scale))
            if flat_count < len(grid):
                return self._flat_grid(left, right, strip, flat_step)
            return grid

    def _flat_grid(self, left: float, right: float, strip: float, step: float) -> Grid:
        step = _round_down(step)
        a, h = arb(strip), arb(step)
        growth = ((self.ball + 1) * a * a / 2).exp()
        relative = (2 * growth / ((2 * arb.pi() * a / h).exp() - 1)).upper()
        first, last = math.floor(left / step), math.ceil(right / step)
        absolute = arb(0)
        for j, slope in ((first, self._slope_left), (last, self._slope_right)):
            t = arb(j) * h
            decay = (-slope(t) * h).exp()
            absolute += h * self._rough_value(t) * decay / (1 - decay)
        return Grid(h, first, last, None, relative, absolute.upper())

    def _ray_grid(self, needed: float, left: float, right: float, log_size: float) -> Grid:
        tau = _round_down(left - min(0.4 * (self.level - left), 0.5 * left))
        best = (0.0, 0.0, arb(0))
        for beta in (0.8, 0.55):
            angle = min(0.7, beta * self.scale / (self.level - tau))
            integral = self._ray_integral(angle, tau, left, right)
            loss = max(0.0, float(integral.log().mid()) - log_size)
            step = 2.0 * math.pi * angle / (needed + loss)
            if step > best[0]:
                best = (step, angle, integral)
            if loss < 0.3 * needed:
                break
        step = _round_down(best[0])
        origin, h = arb(tau), arb(step)
        absolute = 2 * best[2] / ((2 * arb.pi() * arb(best[1]) / h).exp() - 1)
        first = math.floor(math.log(left - tau) / step)
        last = math.ceil(math.log(right - tau) / step)
        # left out below the first node: in the sum, and in the integral up to tau
        rho = (first * h).exp()
        value, slope = self._rough_value(origin + rho), self._slope_left(origin + rho)
        absolute += value * h * rho * (-h).exp() / (1 - (-h).exp()) if slope > 0 else arb("inf")
        slope = self._slope_left(origin)
        absolute += self._rough_value(origin) / slope if slope > 0 else arb("inf")
        # left out above the last node: F rho falls at least geometrically there
        rho = (last * h).exp()
        decay = (-(self._slope_right(origin + rho) * rho - 1) * h).exp()
        value = self._rough_value(origin + rho) * h * rho * decay / (1 - decay)
        absolute += value if decay < 1 else arb("inf")
        return Grid(h, first, last, origin, arb(0), absolute.upper())

    def _ray_integral(self, angle: float, tau: float, left: float, right: float) -> Any:
        """Upper bound on int_0^inf |F(tau + rho e^{i angle})| d rho by end points, tau > 0."""
        cosine, sine = arb(angle).cos(), arb(angle).sin()
        fine = 0.6 * self.scale**2
        top = max(right, self.level + 4.0 * self.scale) * 1.2
        points = [tau]
        stride = fine
        while points[-1] < left:  # F is tiny here: few intervals, halving towards the bulk
            points.append(min(left, points[-1] + max(fine, 0.4 * (left - points[-1]))))
        while points[-1] < top:
            points.append(points[-1] + stride)
            if points[-1] > self.level + 2.0 * self.scale:
                stride *= 1.12
        heights = [(arb(p) - arb(tau)) * sine / cosine for p in points]
        tails = [upper_tail(arb(p)) for p in points]
        densities = [density(arb(p)) for p in points]
        total = arb(0)
        for i in range(len(points) - 1):
            t, y = arb(points[i]), heights[i + 1]
            modulus = _log_modulus_bound(
                t, arb(points[i + 1]), y, densities[i], tails[i], tails[i + 1]
            )
            gauss = -(t * t - heights[i] ** 2) / 2  # t^2 - y^2 grows along the ray
            weight = (self.ball * modulus + gauss - self.margin * t).exp()
            width = (arb(points[i + 1]) - t) / cosine
            total += width * weight * self._rough((gauss - modulus).exp())
        return (total + self._beyond(points[-1], heights[-1], sine / cosine, cosine)).upper()

    def _beyond(self, end: float, y: Any, tangent: Any, cosine: Any) -> Any:
        """The rest of the ray: |Phi(w)| <= 1 + e^{y^2/2} Q(t), and t^2 - y^2 grows by >= slope."""
        t = arb(end)
        # e^{y^2/2} Q(t) <= e^{(y^2 - t^2)/2} falls along the ray, so its value here bounds it
        gauss = (y * y - t * t) / 2
        inflated = gauss.exp().log1p()
        slope = t - y * tangent
        weight = (self.ball * inflated + gauss - self.margin * t).exp()
        return weight / slope / cosine * self._rough(gauss.exp())

    # -- the sums --------------------------------------------------------------------------

    def _truncated(self, floor: Any, ratio: Any) -> tuple[int, Any]:
        """Smallest degree whose neglected terms at this ratio are below `floor`, with their sum."""
        total, power = arb(0), ratio ** (self.count - 1)
        inverse = 1 / ratio
        for k in range(self.count - 1, 0, -1):
            term = self.rough_coefficients[k] * power
            if not total + term < floor:
                return k, total.upper()
            total += term
            power *= inverse
        return 0, total.upper()

    def total(self, nats: float) -> Any:
        """S as a ball with relative error about e^{-nats}."""
        grid = self.grid(nats)
        with working_precision(math.ceil(nats / math.log(2)) + self.guard):
            polynomial = arb_poly(self.coefficients)
            total, largest = arb(0), arb(0)
            chunk = max(16, len(grid) // 12)
            for number, j in enumerate(range(grid.first, grid.last + 1)):
                t, width = grid.node(j)
                weight, ratio = self.factors(t)
                if number % chunk == 0 and number and largest:
                    polynomial = self._shorter(t, ratio, largest, nats, len(grid))
                term = width * weight * polynomial(ratio)
                total += term
                largest = largest.max(term.mid())
            # |sum - S| <= relative S + absolute  and  S <= (sum + absolute)/(1 - relative)
            size = (total + grid.absolute) / (1 - grid.relative)
            error = grid.relative * size + grid.absolute
            return total + arb(0, error.upper())

    def _shorter(self, t: Any, ratio: Any, largest: Any, nats: float, nodes: int) -> Any:
        """P cut to the terms that matter at t and above; what is cut sits in the constant's ball.

        r falls with t, so the neglected terms at t bound those of all later nodes. Their weight
        e^{-mt - t^2/2} Phi^M is at most e^{-mt - t^2/2} from here on (t > 0).
        """
        with working_precision(_ROUGH_BITS):
            if not t > 0:
                return arb_poly(self.coefficients)
            most = (-t * t / 2 - self.margin * t).exp() * max(1.0, float(t.mid()))
            floor = largest / most / nodes * arb(-nats - 4.0).exp()
            degree, rest = self._truncated(floor, +ratio)
        coefficients = self.coefficients[: degree + 1]
        coefficients[0] = coefficients[0] + arb(rest / 2, rest / 2)
        return arb_poly(coefficients)

    def each(self, nats: float) -> list[Any]:
        """d_k L_k for every k, each with absolute error about e^{-nats} S."""
        grid = self.grid(nats)
        with working_precision(math.ceil(nats / math.log(2)) + self.guard):
            moments = [arb(0)] * self.count
            for j in range(grid.first, grid.last + 1):
                t, width = grid.node(j)
                power, ratio = self.factors(t)
                power *= width
                for k in range(self.count):
                    moments[k] += power
                    power *= ratio
            terms = [d * x for d, x in zip(self.coefficients, moments, strict=True)]
            # every term's error is at most the bound on the whole, which is a sum of such bounds
            size = (sum(terms, arb(0)) + grid.absolute) / (1 - grid.relative)
            error = (grid.relative * size + grid.absolute).upper()
            return [term + arb(0, error) for term in terms]


def _log_modulus_bound(t: Any, t_next: Any, y: Any, phi: Any, tail: Any, tail_next: Any) -> Any:
    """Upper bound on log |Phi| on the piece of the ray between t and t_next, height <= y."""
    growth = (y * y / 2).exp()
    turn = (t_next * y).upper()
    swing = 1 - turn.cos() if turn < arb.pi() else arb(2)
    rise = phi * growth * swing / t - tail_next
    return (2 * rise + (growth * tail) ** 2).log1p() / 2


def _round_down(number: float) -> float:
    """A binary number of 11 bits not above the given one, so that nodes are exact."""
    mantissa, exponent = math.frexp(number)
    return math.ldexp(math.floor(math.ldexp(mantissa, 11)), exponent - 11)
