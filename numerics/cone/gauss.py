"""The Gaussian functions of the cone: balls for proofs, floats for choosing steps and cuts."""

from __future__ import annotations

import math
from typing import Any

from flint import acb, arb

SQRT2 = math.sqrt(2.0)
LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


def density(t: Any) -> Any:
    """phi(t) = exp(-t^2/2)/sqrt(2 pi), a ball at the current precision."""
    return (-t * t / 2).exp() / (2 * arb.pi()).sqrt()


def lower_tail(t: Any) -> Any:
    """Phi(t), a real or complex ball."""
    return (-t / arb(2).sqrt()).erfc() / 2


def upper_tail(t: Any) -> Any:
    """Q(t) = Phi(-t), a real or complex ball."""
    return (t / arb(2).sqrt()).erfc() / 2


def laplace(w: Any) -> Any:
    """R(w) = Phi(w) e^{w^2/2} = int_0^inf e^{wx - x^2/2} dx / sqrt(2 pi).

    The integral form makes R positive definite along every vertical line:
    |R(c + iy)| <= R(c). All contour bounds of this package rest on that.
    """
    return lower_tail(w) * (w * w / 2).exp()


def log_lower_tail(t: Any) -> Any:
    """log Phi(t) of a real ball with full relative accuracy on both sides."""
    return (-upper_tail(t)).log1p() if t > 0 else lower_tail(t).log()


def log_modulus_lower_tail(t: Any, height: Any) -> Any:
    """log |Phi(t + i height)|, a real ball, accurate also where Phi is close to 1."""
    if t > 0:
        tail = upper_tail(acb(t, height))
        return (tail.real * tail.real + tail.imag * tail.imag - 2 * tail.real).log1p() / 2
    return abs(lower_tail(acb(t, height))).log()


def float_log_laplace(x: float) -> float:
    """log R(x) in floating point (used to choose parameters, never to prove)."""
    if x > -6.0:
        return math.log(0.5 * math.erfc(-x / SQRT2)) + 0.5 * x * x
    u, fraction = -x, 0.0
    for n in range(40, 0, -1):
        fraction = n / (u + fraction)
    return -math.log(u + fraction) - LOG_SQRT_2PI


def float_mills(t: float) -> float:
    """Q(t)/phi(t) in floating point."""
    return math.exp(float_log_laplace(-t) + LOG_SQRT_2PI)


def float_log(number: Any) -> float:
    """log of a positive ball, integer or float as a float, of any size."""
    return float((arb(number).log()).mid())


def float_level(log_competitors: float, margin: float = 0.0) -> float:
    """The typical level t at capacity: M (phi(t) - t Q(t)) = t + margin, by bisection.

    `t` is the height to which the active competitors are pressed. For zero margin it is
    the T of the expansions in 1/log p.
    """

    def excess(t: float) -> float:
        if t + margin <= 0:
            return 1.0
        if t > 30:  # 1 - t m(t) = t^-2 - 3 t^-4 + ..., without the cancellation
            log_psi = -0.5 * t * t - LOG_SQRT_2PI + math.log(t**-2 - 3 * t**-4 + 15 * t**-6)
        elif t > -6:
            log_psi = -0.5 * t * t - LOG_SQRT_2PI + math.log(1.0 - t * float_mills(t))
        else:
            log_psi = math.log(-t)
        return log_competitors + log_psi - math.log(t + margin)

    low, high = -margin - 1.0, math.sqrt(2.0 * log_competitors) + 2.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return 0.5 * (low + high)
