"""Hebbian recall, W = sum_mu u_mu e_mu^T, at finite p: certified probabilities and thresholds.

A target scores 1 + sigma z against M competitors sigma z_rho with sigma^2 = p/(d_in d_out), in the
limit of large d at a fixed number of competitors: P(typical fact) = E Phi(a + z)^M, a = 1/sigma.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from flint import acb, arb, ctx, fmpz
from scipy import optimize, special

from numerics.balls import Certified, Undecided, bits_for, working_precision
from numerics.certify import certify
from numerics.cone.gauss import float_log
from numerics.cone.volumes import check_digits
from numerics.counts import parse_count
from numerics.roots import certified_root
from numerics.tail_average import exact_number
from replica import symbols as s
from replica.errors import InvalidInput
from replica.hebbian import HebbianRule, d, p, sigma


@lru_cache(maxsize=256)
def typical_recall(competitors: int) -> Any:
    """E Phi(1/sigma + z)^M of `replica`, shifted to g = z + 1/sigma by the Cameron-Martin rule.

    In g the factor Phi(g)^M itself bounds the left tail, however large M is.

    >>> typical_recall(1).doit()
    Phi(sqrt(2)/(2*sigma))
    """
    return HebbianRule(competitors=competitors).typical_recall.shift(s.z, -1 / sigma)


def typical_failure(competitors: int) -> Any:
    """1 - E Phi(1/sigma + z)^M, the probability that a typical fact is lost."""
    return 1 - typical_recall(competitors)


@dataclass(frozen=True)
class HebbianRecall:
    """`typical` = E Phi(a + z)^M; `failure` = 1 - typical; every fact of p at once:

    `every_independent` = typical^p, exact for facts recalled independently (their correlation
    vanishes as d grows), and `every_lower_bound` = max(0, 1 - p failure), true however they depend.
    """

    typical: Certified
    failure: Certified
    every_independent: Certified
    every_lower_bound: Certified


def hebbian_recall(
    dim: int,
    facts: int | str,
    competitors: int | str | None = None,
    *,
    dim_out: int | None = None,
    digits: int = 15,
) -> HebbianRecall:
    """Recall of the Hebbian memory, a = sqrt(d_in d_out / p), M = `competitors` (p - 1 if None).

    Arguments: `dim`, `dim_out` (= dim if None) >= 1; `facts` p >= 2; `digits`, relative accuracy of
    `typical` and `failure`. Large d is taken in the score laws, nothing else.
    Raises `InvalidInput`. Source: signal-to-noise of the correlation matrix memory.

    >>> recall = hebbian_recall(20, 40)
    >>> print(recall.typical.to_string(10), recall.every_independent.to_string(5))
    0.8199684278 0.00035636
    """
    count, others, weights = _check(dim, facts, competitors, dim_out)
    digits = check_digits(digits)
    square = Fraction(weights, count)
    for extra in (4, 12, 60, 240):
        with working_precision(bits_for(digits + extra)):
            failure = failure_ball(square, others)
            typical = 1 - failure
            every = (arb(fmpz(count)) * (-failure).log1p()).exp()
            union = (1 - arb(fmpz(count)) * failure).max(arb(0))
        wanted = digits * math.log2(10) + 1
        if min(typical.rel_accuracy_bits(), failure.rel_accuracy_bits()) >= wanted:
            return HebbianRecall(*(Certified(x) for x in (typical, failure, every, union)))
    raise ArithmeticError(f"{digits} digits of Hebbian recall were not reached")


def failure_ball(square: Fraction, competitors: int) -> Any:
    """1 - E Phi(a + z)^M at a^2 = `square` as a ball, to relative working precision.

    The fast path beside the compiled `typical_failure`: the integrand phi(g - a)(1 - Phi(g)^M) is
    positive and written without cancellation. Tails: 1 - Phi^M <= 1 below, <= M Q above.
    """
    a_ball = (arb(fmpz(square.numerator)) / arb(fmpz(square.denominator))).sqrt()
    number = arb(fmpz(competitors))
    middle, log_m = float(a_ball.mid()), float_log(fmpz(competitors))
    log_size = _float_log_failure(middle, log_m)
    nats = ctx.prec * math.log(2.0) - log_size
    low, high = _range(middle, log_m, nats)

    def integrand(g: Any, _analytic: bool) -> Any:
        upper = (g / arb(2).sqrt()).erfc() / 2
        if g.real > 0 and upper.abs_upper() < 1:
            lost = -(number * (-upper).log1p()).expm1()
        else:
            lost = 1 - (1 - upper).pow(acb(number))
        return (-((g - a_ball) ** 2) / 2).exp() * lost

    tolerance = arb(2) ** -ctx.prec
    value = acb.integral(
        integrand, low, high, rel_tol=tolerance, abs_tol=tolerance * arb(log_size).exp()
    )
    # below `low`: 0 <= phi(g - a) - integrand <= phi(g - a) Phi(low)^M, and above `high`:
    # integrand <= phi(g - a) M Q(high)
    mass_below, mass_above = _tail(a_ball - low), _tail(high - a_ball)
    kept = (number * (-_tail(low)).log1p()).exp() if low > 0 else arb(2) ** -competitors
    below = mass_below * (1 - kept / 2 + arb(0, (kept / 2).upper()))
    above = (mass_above * number * _tail(high)).upper() / 2
    return value.real / (2 * arb.pi()).sqrt() + below + above + arb(0, above)


def _tail(x: Any) -> Any:
    """Q(x) of a real ball."""
    return (x / arb(2).sqrt()).erfc() / 2


def _range(middle: float, log_m: float, nats: float) -> tuple[Any, Any]:
    """Where to integrate: outside, what is not known in closed form is below e^-nats."""

    def crossing(function: Callable[[float], float], start: float, end: float) -> float:
        """Last point from `start` towards `end` at which the rising function is below 0."""
        for _ in range(40):
            half = 0.5 * (start + end)
            start, end = (half, end) if function(half) < 0.0 else (start, half)
        return start

    far = math.sqrt(2.0 * nats) + 1.0
    low = middle - far
    log_nats = math.log(nats + 5.0)
    if log_m + special.log_ndtr(-max(low, 0.0)) > log_nats:
        top = math.sqrt(2.0 * log_m) + 1.0
        low = crossing(lambda g: log_nats - log_m - special.log_ndtr(-g), max(low, 0.0), top)
    end = max(middle, math.sqrt(2.0 * log_m)) + far
    high = crossing(
        lambda g: log_m + special.log_ndtr(-g) + special.log_ndtr(middle - g) + nats, end, low
    )
    return arb(math.floor(64 * low)) / 64, arb(math.ceil(64 * high)) / 64


def _float_log_failure(ratio: float, log_others: float) -> float:
    """log of the failure probability in floats (sets tolerances and starting points only)."""
    g = np.linspace(min(-9.0, ratio - 9.0), max(ratio, math.sqrt(2.0 * log_others)) + 12.0, 4001)
    log_lost = np.minimum(log_others + special.log_ndtr(-g), 700.0)
    log_weight = -0.5 * (g - ratio) ** 2
    with np.errstate(divide="ignore"):
        lost = np.where(log_lost < -30.0, log_lost, np.log(-np.expm1(-np.exp(log_lost))))
    return float(special.logsumexp(log_weight + lost) - special.logsumexp(log_weight))


def hebbian_finite_size_recall(dim: int, facts: int, digits: int = 15) -> Certified:
    """P(typical fact) with the O(1/d) parts of the score variances kept, d_in = d_out = `dim`.

    E Phi((1 + s_t z)/s_r)^M, s_t^2 = p/d^2 + 4/d, s_r^2 = p/d^2 + 2/d, M = p - 1: Gaussian
    embeddings, whose norms fluctuate. Source: `replica.hebbian.HebbianRule.finite_size_recall`.

    >>> print(hebbian_finite_size_recall(20, 40).to_string(6))
    0.527738
    """
    count, others, _ = _check(dim, facts, None, None)
    rule = HebbianRule(competitors=others).finite_size_recall
    return certify(rule, check_digits(digits), {p: count, d: dim}, real=True)


def _check(
    dim: int, facts: int | str, competitors: int | str | None, dim_out: int | None
) -> tuple[int, int, int]:
    count = parse_count(facts, "facts", 2)
    others = count - 1 if competitors is None else parse_count(competitors, "competitors")
    sides = [parse_count(dim, "dim")]
    sides.append(sides[0] if dim_out is None else parse_count(dim_out, "dim_out"))
    return count, others, sides[0] * sides[1]


def hebbian_load(
    facts: int | str,
    probability: Any = Fraction(1, 2),
    *,
    every: bool = False,
    competitors: int | str | None = None,
    digits: int = 15,
) -> Certified:
    """Load alpha = p log p/(d_in d_out) = log p / a^2 at which recall has the given probability.

    `every=False`: a typical fact, E Phi(a + z)^M = probability; tends to 1/2 as p -> infinity.
    `every=True`: all p facts, [E Phi(a + z)^M]^p = probability (independent facts); tends to 1/8.
    Arguments: `facts` p from 2 to 10^1000; `probability`, exact, in (0, 1); `competitors` (p - 1 if
    None). The threshold a is unique since recall grows with a. Raises `InvalidInput` when chance
    alone (1/(M+1) at a = 0) already reaches the probability.

    >>> print(hebbian_load(1000).to_string(12))
    0.659555783418
    >>> print(hebbian_load(1000, every=True).to_string(12))
    0.154266431075
    """
    count, others, _ = _check(1, facts, competitors, None)
    digits = check_digits(digits)
    # chance alone, a = 0, recalls one fact with probability 1/(M + 1)
    wanted = exact_number(probability, "probability", "a number in (0, 1)")
    if not 0 < wanted < 1:
        raise InvalidInput(f"probability is {probability}; it must lie strictly between 0 and 1")
    if Fraction(1, others + 1) >= wanted if not every else _chance_suffices(count, others, wanted):
        raise InvalidInput(
            f"probability is {probability}; chance alone reaches it with {others} competitors; "
            "give a larger probability"
        )
    ratio = _signal_to_noise(count, others, wanted, every, digits + 3)
    with working_precision(bits_for(digits + 3)):
        return Certified(arb(fmpz(count)).log() / ratio.ball**2)


def _chance_suffices(count: int, others: int, wanted: Fraction) -> bool:
    """(1/(M+1))^p >= probability, for p facts guessed independently."""
    log_cost = float_log(fmpz(count)) + math.log(float_log(fmpz(others + 1)))
    return log_cost <= math.log(-_log(wanted)) + 1e-12


def _log(number: Fraction) -> float:
    """log of a positive fraction whose parts may exceed the range of floats."""
    return float_log(fmpz(number.numerator)) - float_log(fmpz(number.denominator))


def _signal_to_noise(
    count: int, others: int, wanted: Fraction, every: bool, digits: int
) -> Certified:
    """The a at which the failure of a typical fact equals the allowed one."""
    log_m = float_log(fmpz(others))
    # log of 1 - probability^(1/p)
    log_cost = math.log(-_log(wanted)) - (float_log(fmpz(count)) if every else 0.0)
    log_allowed = log_cost if log_cost < -30.0 else math.log(-math.expm1(-math.exp(log_cost)))
    high = Fraction(10)
    while _float_log_failure(float(high), log_m) > log_allowed - 1.0:
        high *= 2
    guess = optimize.brentq(
        lambda ratio: _float_log_failure(ratio, log_m) - log_allowed, 0.0, float(high), xtol=1e-13
    )
    return certified_root(
        _excess(count, others, wanted, every), Fraction(0), high, digits, guess=float(guess)
    )


def _excess(
    count: int, others: int, wanted: Fraction, every: bool
) -> Callable[[Fraction, int], Any]:
    """log(failure / allowed failure) as a ball function of a, smooth and falling."""

    @lru_cache(maxsize=16)
    def function(x: Fraction, digits: int) -> Any:
        with working_precision(bits_for(digits)):
            target = arb(fmpz(wanted.numerator)) / arb(fmpz(wanted.denominator))
            allowed = -(target.log() / (fmpz(count) if every else 1)).expm1()
            return (failure_ball(x * x, others) / allowed).log()

    return function


def hebbian_critical_facts(
    dim: int,
    probability: Any = Fraction(1, 2),
    *,
    every: bool = False,
    dim_out: int | None = None,
) -> int:
    """The largest p (M = p - 1) recalled with at least the given probability, by enclosures.

    `every` as in `hebbian_load`. Recall falls with p, so bisection over p decides.

    >>> hebbian_critical_facts(20), hebbian_critical_facts(20, every=True)
    (71, 23)
    """
    size = parse_count(dim, "dim") * parse_count(dim if dim_out is None else dim_out, "dim_out")
    wanted = exact_number(probability, "probability", "a number in (0, 1)")
    if not 0 < wanted < 1:
        raise InvalidInput(f"probability is {probability}; it must lie strictly between 0 and 1")

    def enough(count: int) -> bool:
        for digits in (10, 20, 40, 80):
            recall = hebbian_recall(size, count, dim_out=1, digits=digits)
            reached = recall.every_independent if every else recall.typical
            try:
                return reached >= wanted
            except Undecided:
                continue
        raise Undecided(f"recall of {count} facts is not told apart from {wanted}")

    if not enough(2):
        return 1
    low, high = 2, 4
    while enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    return low
