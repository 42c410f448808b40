"""Proof that many active competitors are improbable: a Chernoff bound in closed form.

Given K = k active competitors (zero margin) dist^2 is chi-square with k degrees of freedom, so
E s^K = E e^{eta dist^2} with s = (1 - 2 eta)^{-1/2}. And for every fixed t
dist^2 <= (t+m-z_0)_+^2 + sum (z_rho-t)_+^2, whose exponential moment factorises:

    E s^K <= [Q(u) + s e^{(s^2-1)u^2/2} Phi(s u)] [Phi(t) + s e^{(s^2-1)t^2/2} Q(s t)]^M,
    u = t + m.

With a margin m >= 0 the same bound holds for sum_k s^k v_k, because the Gaussian on the face is
then shifted towards larger distances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from flint import arb, fmpz

from numerics.balls import working_precision
from numerics.cone.gauss import (
    LOG_SQRT_2PI,
    float_level,
    float_log,
    float_log_laplace,
    float_mills,
    lower_tail,
    upper_tail,
)


@dataclass(frozen=True)
class Cut:
    """Keep k <= `last`; `generating` bounds sum_k base^k v_k, or is None where nothing is cut."""

    last: int
    base: Any
    generating: Any

    def beyond(self, power: int = 0, ratio: Any = None) -> Any:
        """Upper bound on sum_{k > last} k^power ratio^k v_k (ratio = 1 if not given)."""
        if self.generating is None:
            return arb(0)
        with working_precision(64):
            step = self.base if ratio is None else self.base / ratio
            start = arb(self.last + 1)
            # k^power step^-k decreases from k = last + 1 on once power <= (last+1) log(step)
            if not step > 1 or not start * step.log() >= power:
                return arb("inf")
            return (start**power * self.generating * (-start * step.log()).exp()).upper()

    def distance_beyond(self) -> Any:
        """Upper bound on E[dist^2; K > last], any margin >= 0.

        x <= e^{eps x}/(e eps), and the tilt by eps is dominated by the tilt by eta > eps:
        E[e^{eps dist^2}; K = k] <= (s_eps/s_eta)^k E[e^{eta dist^2}; K = k].
        """
        if self.generating is None:
            return arb(0)
        with working_precision(64):
            eps = arb(1) / (self.last + 3)
            step = self.base * (1 - 2 * eps).sqrt()
            if not step > 1:
                return arb("inf")
            bound = self.generating * (-(self.last + 1) * step.log()).exp()
            return (bound / (arb(1).exp() * eps)).upper()


def _log_add(x: float, y: float) -> float:
    high, low = max(x, y), min(x, y)
    return high + math.log1p(math.exp(low - high))


def _float_log_generating(s: float, t: float, log_m: float, margin: float) -> float:
    u = t + margin
    log_q = float_log_laplace(-u) - 0.5 * u * u
    shifted = math.log(s) + float_log_laplace(s * u) - 0.5 * u * u
    if t < -5.0:  # the Gaussian factor of a competitor is mostly one-sided
        total = math.exp(min(700.0, log_m)) * (math.log(s) + 0.5 * (s * s - 1.0) * t * t)
        return _log_add(log_q, shifted) + total
    excess = s * float_mills(s * t) - float_mills(t)
    if not excess > 0.0:
        return math.inf
    log_x = math.log(excess) - 0.5 * t * t - LOG_SQRT_2PI
    if log_x < -30.0:
        total = math.exp(min(700.0, log_m + log_x))
    else:
        total = math.exp(min(700.0, log_m)) * math.log1p(math.exp(log_x))
    return _log_add(log_q, shifted) + total


def _golden(function: Any, low: float, high: float, steps: int) -> tuple[float, float]:
    ratio = 0.5 * (math.sqrt(5.0) - 1.0)
    x, y = high - ratio * (high - low), low + ratio * (high - low)
    fx, fy = function(x), function(y)
    for _ in range(steps):
        if fx < fy:
            high, y, fy = y, x, fx
            x = high - ratio * (high - low)
            fx = function(x)
        else:
            low, x, fx = x, y, fy
            y = low + ratio * (high - low)
            fy = function(y)
    return (x, fx) if fx < fy else (y, fy)


def generating_bound(competitors: int, s: Any, t: Any, margin: Any) -> Any:
    """The closed-form upper bound on sum_k s^k v_k as a ball (the caller sets the precision)."""
    u = t + margin
    growth = s * s - 1
    target = upper_tail(u) + s * (growth * u * u / 2).exp() * lower_tail(s * u)
    excess = s * (growth * t * t / 2).exp() * upper_tail(s * t) - upper_tail(t)
    return target * (arb(fmpz(competitors)) * excess.log1p()).exp()


def choose_cut(competitors: int, nats: float, margin: Any = None, *, tilt: float = 0.0) -> Cut:
    """The smallest cut found whose neglected part is below e^{-nats}, with its rigorous bound.

    `tilt` = log of a ratio > 1 with which the tail will be weighted.
    """
    log_m = float_log(fmpz(competitors))
    shift = 0.0 if margin is None else float(margin.mid())
    level = float_level(log_m, shift) if competitors > 1 else 0.0
    window = 2.0 + 0.5 * abs(level)

    def last_for(log_s: float) -> float:
        s = math.exp(log_s)
        _, value = _golden(
            lambda t: _float_log_generating(s, t, log_m, shift), level - window, level + window, 18
        )
        return (value + nats + 12.0 + max(0.0, tilt)) / (log_s - tilt)

    log_s, last_float = _golden(last_for, tilt + 1e-4, tilt + 3.0, 26)
    if not last_float < competitors - 1:
        return Cut(competitors, None, None)
    last = max(4, math.ceil(last_float))
    if last >= competitors:
        return Cut(competitors, None, None)
    s = math.exp(log_s)
    t, _ = _golden(
        lambda x: _float_log_generating(s, x, log_m, shift), level - window, level + window, 30
    )
    with working_precision(96 + 2 * math.ceil(math.log2(level * level + 16.0))):
        zero = arb(0) if margin is None else margin
        bound = generating_bound(competitors, arb(s), arb(t), zero)
        return Cut(last, arb(s), bound.upper())
