"""Law of the level t at capacity as contour integrals over one variable, for any M, certified.

t is the root of F(t) = t + m - z_0 - S(t), S(t) = sum_rho (z_rho - t)_+ , which increases. So
P(t <= tau) = P(z_0 + S(tau) <= tau + m), and with G(w) = E exp(-w (z - tau)_+) = Phi(tau) + X(w),
X(w) = e^{tau w + w^2/2} Q(tau + w), for any s > 0 (for s < 0: minus the survival probability)

    P(t <= tau)  = (1/2 pi i) int_{s - i oo}^{s + i oo} dw e^{w (tau + m) + w^2/2} G^M / w,
    density(tau) = (1/2 pi i) int dw e^{w (tau + m) + w^2/2} (G^M + M X G^{M-1}),   any s,

the second by d/dtau G = w X. |G(s + i l)| <= G(s) and |X(s + i l)| <= X(s) bound everything:
trapezoidal rule with proved errors. The k-sum of `numerics.cone` is another route to the same law.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import acb, arb, ctx, fmpz
from scipy import optimize, special

from numerics.balls import working_precision
from numerics.cone.gauss import float_log
from numerics.cone.volumes import exact_ball

_ROUGH_BITS = 64
SMALLEST = -2000.0  # log of the smallest probability computed with relative digits


@dataclass(frozen=True)
class Level:
    """One level tau (exact), M competitors and the margin (exact)."""

    competitors: int
    margin: Fraction
    tau: Fraction

    def cdf(self, digits: int) -> Any:
        """P(t <= tau) as a ball, relative accuracy about 10^-digits (below e^-2000: a bound)."""
        return self._probability(1, digits)

    def survival(self, digits: int) -> Any:
        """P(t > tau) as a ball, relative accuracy about 10^-digits (below e^-2000: a bound)."""
        return self._probability(-1, digits)

    def density(self, digits: int) -> Any:
        """Density of t at tau as a ball, relative accuracy as `cdf`."""
        s, height = self._saddle(0)
        if height < SMALLEST:
            return self._at_most(s, 0)
        return self._relative(lambda nats: self._sum(nats, 0), digits)

    def _probability(self, side: int, digits: int) -> Any:
        """The smaller of the two probabilities by its own contour, the other as 1 minus it."""
        lines = {each: self._saddle(each) for each in (1, -1)}
        chernoff = {each: height + math.log(abs(s)) for each, (s, height) in lines.items()}
        small = 1 if chernoff[1] < chernoff[-1] else -1
        if chernoff[small] < SMALLEST:
            ball = self._at_most(lines[small][0], small)
        else:
            ball = self._relative(lambda nats: self._sum(nats, small), digits + 1)
        if small == side:
            return ball
        with working_precision(math.ceil(digits * math.log2(10)) + 20):
            return 1 - ball

    def _at_most(self, s: float, side: int) -> Any:
        """[0, bound]: Chernoff for a probability, the integral of the bound for the density."""
        with working_precision(_ROUGH_BITS):
            bound = self._bound(arb(_dyadic(s)), False)
            half = (bound / 2).upper()
            return half + arb(0, half)

    @staticmethod
    def _relative(compute: Callable[[float], Any], digits: int) -> Any:
        nats = (digits + 2) * math.log(10.0) + 6.0
        for _ in range(6):
            ball = compute(nats)
            if ball.is_finite() and ball.rel_accuracy_bits() >= digits * math.log2(10):
                return ball
            nats = 1.5 * nats + 30.0
        return ball

    # -- the integrand on the real line, in floats and as a bound ------------------------------
    def _float_log(self, s: float, with_pole: bool) -> float:
        """log of the integrand at real s in floats; steers, proves nothing."""
        tau, margin = float(self.tau), float(self.margin)
        log_m = float_log(fmpz(self.competitors))
        log_q = float(special.log_ndtr(-tau))
        log_x = tau * s + 0.5 * s * s + float(special.log_ndtr(-tau - s))
        ratio = log_x - log_q
        if ratio == 0.0:
            power = 0.0
        elif ratio > 30.0:
            growth = log_x if log_x < -30.0 else math.log(np.logaddexp(0.0, log_x))
            power = math.exp(min(700.0, log_m + growth))
        else:
            excess = math.expm1(ratio)
            tail = math.exp(log_q) * excess
            if abs(tail) > 1e-3:
                change = float(np.logaddexp(special.log_ndtr(tau), log_x))
                log_change = math.log(abs(change)) if change else -math.inf
            else:
                log_change = log_q + math.log(abs(excess))
            power = math.copysign(math.exp(min(700.0, log_m + log_change)), excess)
        value = s * (tau + margin) + 0.5 * s * s + power
        return value - math.log(abs(s)) if with_pole else value

    def _bound(self, s: Any, with_pole: bool) -> Any:
        """Upper bound on |integrand| e^{l^2/2} on the line Re w = s, as a ball."""
        total, log_total, x, number = self._parts(s)
        size = (s * (self._tau + self._margin) + s * s / 2 + number * log_total).exp()
        if with_pole:
            return size / abs(s)
        return size * (1 + number * x / total)

    @property
    def _tau(self) -> Any:
        return exact_ball(self.tau, ctx.prec)

    @property
    def _margin(self) -> Any:
        return exact_ball(self.margin, ctx.prec)

    def _parts(self, w: Any) -> tuple[Any, Any, Any, Any]:
        """G = Phi(tau) + X, a logarithm of it (any branch: M is whole), X and M at w."""
        tau, root = self._tau, arb(2).sqrt()
        x = (tau * w + w * w / 2).exp() * ((tau + w) / root).erfc() / 2
        number = arb(fmpz(self.competitors))
        if tau < 0:  # G may be tiny: 1 + (X - Q) would lose it
            total = (-tau / root).erfc() / 2 + x
            return total, total.log(), x, number
        less = x - (tau / root).erfc() / 2
        return 1 + less, less.log1p(), x, number

    # -- quadrature ----------------------------------------------------------------------------
    def _saddle(self, side: int) -> tuple[float, float]:
        """The real s where the integrand is smallest, and its logarithm there, in floats."""
        if side == 0:
            reach = abs(float(self.tau)) + float(self.margin) + 30.0
            found = optimize.minimize_scalar(
                lambda s: self._float_log(s, False), bounds=(-reach, reach), method="bounded"
            )
            return float(found.x), float(found.fun)
        found = optimize.minimize_scalar(
            lambda u: self._float_log(side * math.exp(u), True),
            bounds=(-8.0, 6.0),
            method="bounded",
        )
        return side * math.exp(float(found.x)), float(found.fun)

    def _line(self, nats: float, side: int) -> tuple[float, float, float, float]:
        """Contour s, strip a, step h and the loss: side = +1, -1 with the pole, 0 without."""
        s, base = self._saddle(side)
        reach = abs(s) if side else 8.0
        best = (0.0, 0.0, 0.0)
        for i in range(1, 40):
            a = reach * i / 41.0
            ends = (self._float_log(s + a, side != 0), self._float_log(s - a, side != 0))
            loss = max(0.0, max(ends) - base)
            h = 2.0 * math.pi * a / (nats + loss)
            if h > best[1]:
                best = (a, h, loss)
        s, a, h = (_dyadic(value) for value in (s, best[0], best[1]))
        return s, a, h, best[2]

    def _sum(self, nats: float, side: int) -> Any:
        s, a, h, loss = self._line(nats, side)
        with_pole = side != 0
        count = math.ceil(math.sqrt(2.0 * (nats + 3.0)) / h)
        level = abs(float(self.tau)) + float(self.margin) + abs(s) + 2.0
        bits = math.ceil((nats + loss) / math.log(2.0)) + 30 + 4 * math.ceil(math.log2(level + 2.0))
        with working_precision(bits):
            tau_margin, step = self._tau + self._margin, arb(h)
            total = arb(0)
            for j in range(count + 1):
                w = acb(s, j * step)
                whole, log_whole, x, number = self._parts(w)
                term = (w * tau_margin + w * w / 2 + number * log_whole).exp()
                term = term / w if with_pole else term * (1 + number * x / whole)
                # the integrand at the conjugate node is the conjugate
                total += term.real * (1 if j == 0 else 2)
            total = total * step
        with working_precision(_ROUGH_BITS + bits):
            damping = 1 / ((2 * arb.pi() * arb(a) / arb(h)).exp() - 1)
            lines = self._bound(arb(s) + arb(a), with_pole) + self._bound(
                arb(s) - arb(a), with_pole
            )
            cut = count * arb(h)
            beyond = 2 * (-cut * cut / 2).exp() / cut
            error = (2 * arb.pi()).sqrt() * damping * lines + beyond * self._bound(
                arb(s), with_pole
            )
            enclosed = (total + arb(0, error.upper())) / (2 * arb.pi())
            return -enclosed if side < 0 else enclosed


def _dyadic(number: float) -> float:
    mantissa, exponent = math.frexp(number)
    return math.ldexp(math.floor(math.ldexp(mantissa, 12)), exponent - 12)
