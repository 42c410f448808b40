"""Hebbian recall at finite p, certified: the threshold u = 1/sigma of one fact or of all.

One fact is recalled with probability P(D < u) = int Dz Phi(u + z)^M, all p of them (independent
competitors) with its p-th power. The integral is enclosed by Arb's integrator on a finite range,
the rest bounded by Gaussian tails; the threshold is bracketed by opposite signs.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from flint import acb, arb, fmpz
from scipy.optimize import brentq
from scipy.special import log_ndtr

from numerics.balls import Certified, bits_for, working_precision
from numerics.cone.gauss import float_log
from replica.errors import InvalidInput

MOST_DIGITS = 11


def _miss(u: Any, size: Any, low: Any, high: Any, tolerance: Any) -> Any:
    """e^{(u-low)^2/2} times the part of P(D > u) from y in [low, high].

    P(D > u) = int dy phi(y - u) (1 - Phi(y)^M), y being the largest competitor.
    """
    offset = (u - low) ** 2 / 2

    def integrand(y: Any, _analytic: bool) -> Any:
        tail = (y / acb(2).sqrt()).erfc() / 2
        inside = 1 - tail
        # log(1 - Q) is needed where 1 - Q stays in the right half-plane: no cut is met there
        if not inside.real > 0:
            return acb(arb.nan(), arb.nan())
        lost = -(acb(size) * (-tail).log1p()).expm1()
        return (offset - (y - u) ** 2 / 2).exp() * lost

    value = acb.integral(
        integrand, acb(low), acb(high), rel_tol=tolerance, abs_tol=arb(0), eval_limit=200_000
    )
    return value.real / (2 * arb.pi()).sqrt()


def miss_probability(facts: int, u: Any, *, digits: int = 12) -> Any:
    """P(D > u) as an arb: the chance that one fact is not recalled.

    Below `low` the factor 1 - Phi^M lies in [1 - Phi(low)^M, 1], Phi(low)^M < e^{-2.3 digits-20};
    above `high` it is at most M Q(y) <= M phi(y) / y. Both parts are closed Gaussian tails.
    """
    size = arb(fmpz(facts - 1))
    log_m = float_log(facts - 1)
    b = math.sqrt(2 * log_m)
    middle = float(u.mid())
    spread = math.sqrt(2 * (digits + 4) * math.log(10))
    enough = math.log(2.3 * digits + 20)

    def log_loss(y: float) -> float:
        """log of M |log Phi(y)|, in floats: only the choice of the cut depends on it."""
        return log_m + (math.log(-float(log_ndtr(y))) if y < 9 else float(log_ndtr(-y)))

    cut = brentq(lambda y: log_loss(y) - enough, -30.0, b + 1)
    low, high = arb(cut), arb(max(b, middle) + spread + 2)
    scaled = _miss(u, size, low, high, arb(10) ** (-digits - 2))
    inner = scaled * (-((u - low) ** 2) / 2).exp()
    log_phi = ((-low / arb(2).sqrt()).erfc() / 2).log()
    if low > 0:  # log(1 - Q) without cancellation
        log_phi = (-(low / arb(2).sqrt()).erfc() / 2).log1p()
    lost = (size * log_phi).exp()  # Phi(low)^M
    below = ((u - low) / arb(2).sqrt()).erfc() / 2 * (1 - lost * arb(0.5, 0.5))
    # phi(y-u) phi(y) = e^{-u^2/4} e^{-(y-u/2)^2} / (2 pi)
    above = (-(u**2) / 4).exp() / (4 * arb.pi().sqrt()) * (high - u / 2).erfc() / high * size
    return inner + below + above * arb(0.5, 0.5)


@lru_cache(maxsize=512)
def threshold(facts: int, *, every: bool = False, digits: int = 8) -> Certified:
    """u = 1/sigma = d/sqrt(p) at which one fact (or every fact) is recalled with probability 1/2.

    Relative accuracy 10^-digits, 1 to 11 digits: the bracket is put around a float. Any accuracy:
    `numerics.hebbian.hebbian_load`. Raises InvalidInput for fewer than 3 facts or other digits.

    >>> print(threshold(1000, digits=6).to_string(5))
    3.2363
    """
    if facts < 3:
        raise InvalidInput(f"facts is {facts}; it must be at least 3; give 3 or more")
    if not 1 <= digits <= MOST_DIGITS:
        raise InvalidInput(
            f"digits is {digits}; this threshold is available to 1 to {MOST_DIGITS} digits; use "
            "hebbian_load for more"
        )
    with working_precision(bits_for(digits) + 60):
        wanted = -(-arb(2).log() / fmpz(facts)).expm1() if every else arb(1) / 2

        guess = _float_threshold(facts, every)
        low, high = arb(guess * (1 - 10.0**-digits)), arb(guess * (1 + 10.0**-digits))
        above = miss_probability(facts, low, digits=digits + 2) > wanted
        if not (above and miss_probability(facts, high, digits=digits + 2) < wanted):
            raise ArithmeticError(
                f"the threshold for {facts} facts was not bracketed to {digits} digits"
            )
        return Certified(low.union(high))


def _float_threshold(facts: int, every: bool) -> float:
    """The same threshold in floating point, by sums over the law of the maximum: a guess."""
    log_m, log_p = float_log(facts - 1), float_log(facts)
    b = math.sqrt(2 * log_m)
    y = np.linspace(b - 8, b + max(12.0, 0.8 * b), 60001)
    step = y[1] - y[0]
    # Phi^(M-1) = exp(-(M-1) |log Phi|); |log Phi| is Q to double accuracy from y = 9 on
    with np.errstate(divide="ignore"):
        log_loss = np.where(y < 9, np.log(-log_ndtr(np.minimum(y, 9.0))), log_ndtr(-y))
    lost = np.exp(float_log(max(facts - 2, 1)) + log_loss)
    log_density = log_m - y**2 / 2 - math.log(2 * math.pi) / 2 - lost
    wanted = -math.log(2)
    if every:
        share = math.log(2) * math.exp(-log_p)
        wanted = math.log(-math.expm1(-share)) if log_p < 30 else math.log(math.log(2)) - log_p

    def excess(u: float) -> float:
        terms = log_density + log_ndtr(y - u)
        top = terms.max()
        return float(top + np.log(np.exp(terms - top).sum() * step)) - wanted

    return float(brentq(excess, 0.3 * b, 3 * b + 2, xtol=1e-13))
