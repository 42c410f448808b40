"""Thresholds: critical load, largest number of facts, least dimension; decided with proof."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from flint import arb, fmpz

from numerics.balls import Certified, Undecided, working_precision
from numerics.cone.rank import check_rank_ratio, rank_factor_ball
from numerics.cone.success import check_dimension, exact_success, failure_ball
from numerics.cone.volumes import (
    EXACT_DIMENSION,
    MAX_DIGITS,
    check_digits,
    check_margin,
    dimension_ball,
    statistical_dimension,
)
from numerics.counts import MAX_EXPONENT, parse_count
from replica.errors import InvalidInput


def _facts_and_competitors(facts: Any, competitors: Any) -> tuple[int, int]:
    count = parse_count(facts, "facts", least=1 if competitors is not None else 2)
    return count, count - 1 if competitors is None else parse_count(competitors, "competitors")


def _share_and_dimension(
    competitors: int, digits: int, margin: Any, rank_ratio: Any, aspect_ratio: Any
) -> tuple[Any, Any]:
    """The balls I(rank_ratio) and delta(M), whose ratio is the critical p / d^2."""
    check_digits(digits)
    aspect = check_rank_ratio(aspect_ratio, "aspect_ratio")
    share = rank_factor_ball(check_rank_ratio(rank_ratio), digits + 3, aspect)
    return share, statistical_dimension(competitors, digits, margin=margin).ball


def critical_load(
    facts: int | str,
    competitors: int | str | None = None,
    digits: int = 15,
    *,
    margin: Any = 0,
    rank_ratio: Any = 1,
    aspect_ratio: Any = 1,
) -> Certified:
    """alpha_c(p) = I(rank_ratio) log p / delta(M): critical value of the load p log p / d^2.

    Arguments: `facts` p >= 2; `competitors` M (default p - 1); `digits` relative accuracy;
    `margin` >= 0; `rank_ratio` in (0, 1], rank over the smaller dimension, and `aspect_ratio`,
    smaller over larger dimension. Raises `InvalidInput`. Source: capacity condition
    gamma_c delta = I. At full rank it tends to 1/2, slowly.

    >>> print(critical_load(1000, digits=8).to_string(4))
    0.8507
    """
    count, rivals = _facts_and_competitors(facts, competitors)
    share, delta = _share_and_dimension(rivals, digits, margin, rank_ratio, aspect_ratio)
    with working_precision(math.ceil(digits * math.log2(10)) + 40):
        return Certified(share * arb(fmpz(count)).log() / delta)


def facts_per_parameter(
    facts: int | str,
    competitors: int | str | None = None,
    digits: int = 15,
    *,
    margin: Any = 0,
    rank_ratio: Any = 1,
    aspect_ratio: Any = 1,
) -> Certified:
    """p_c / d^2 = I(rank_ratio)/delta(M): facts that each of the d^2 weights holds at threshold.

    Arguments and errors as `critical_load`.

    >>> facts_per_parameter(2).contains(2)  # Gardner: two facts per weight for one competitor
    True
    """
    _, rivals = _facts_and_competitors(facts, competitors)
    share, delta = _share_and_dimension(rivals, digits, margin, rank_ratio, aspect_ratio)
    with working_precision(math.ceil(digits * math.log2(10)) + 40):
        return Certified(share / delta)


class _Budget:
    """N I(rank_ratio) as a ball at any accuracy, and p delta(M) compared with it by proof."""

    def __init__(
        self,
        parameters: int,
        rank_ratio: Fraction,
        margin: Fraction,
        aspect_ratio: Fraction = Fraction(1),
    ) -> None:
        self.parameters, self.rank_ratio, self.margin = parameters, rank_ratio, margin
        self.aspect_ratio = aspect_ratio

    def ball(self, digits: int) -> Any:
        factor = rank_factor_ball(self.rank_ratio, digits + 3, self.aspect_ratio)
        with working_precision(math.ceil(digits * math.log2(10)) + 60):
            return factor * fmpz(self.parameters)

    def delta(self, competitors: int, digits: int) -> Any:
        return dimension_ball(competitors, digits, self.margin)

    def holds(self, facts: int, competitors: int) -> bool:
        """Whether facts * delta(competitors) <= N I, exactly where both sides are rational."""
        if not self.margin and self.rank_ratio == 1 and competitors in EXACT_DIMENSION:
            return facts * EXACT_DIMENSION[competitors] <= self.parameters
        digits = 10
        while digits <= MAX_DIGITS:
            with working_precision(math.ceil(digits * math.log2(10)) + 60):
                load = self.delta(competitors, digits) * fmpz(facts)
                budget = self.ball(digits)
                if load < budget:
                    return True
                if load > budget:
                    return False
            digits *= 3
        raise Undecided(
            f"{facts} facts: p delta and the number of parameters agree to {MAX_DIGITS} digits, so "
            "the threshold is not decided; change the margin or the rank ratio slightly"
        )


def _midpoint(ball: Any) -> Fraction:
    mantissa, exponent = ball.mid().man_exp()
    power = int(exponent)
    return Fraction(int(mantissa)) * (Fraction(2) ** power)


def critical_facts(
    dim: int | str,
    *,
    dim_out: int | str | None = None,
    competitors: int | str | None = None,
    rank_ratio: Any = None,
    margin: Any = 0,
) -> int:
    """Largest p with p delta(p - 1) <= d_in d_out I(rank_ratio), decided rigorously.

    Arguments: `dim` d_in, `dim_out` d_out (default d_in); `competitors` M if it does not grow
    with p; `rank_ratio` in (0, 1], rank over min(d_in, d_out); `margin` >= 0. If not even two facts
    fit, 1 is returned (one fact has no competitor); with `competitors` given, 0. Raises
    `InvalidInput`, `Undecided`. Source: capacity condition gamma_c delta = 1.

    >>> critical_facts(20), critical_facts(1), critical_facts(10, competitors=2)
    (86, 2, 120)
    """
    size = check_dimension(dim)
    other = size if dim_out is None else check_dimension(dim_out, "dim_out")
    ratio = Fraction(1) if rank_ratio is None else check_rank_ratio(rank_ratio)
    aspect = Fraction(min(size, other), max(size, other))
    budget = _Budget(size * other, ratio, check_margin(margin), aspect)
    if competitors is not None:
        return _linear_facts(budget, parse_count(competitors, "competitors"))
    return _growing_facts(budget)


def _linear_facts(budget: _Budget, competitors: int) -> int:
    """floor(N I / delta(M)) for a fixed number of competitors."""
    digits = 2 * len(str(fmpz(budget.parameters))) + 10
    with working_precision(math.ceil(digits * math.log2(10))):
        guess = _midpoint(budget.ball(digits) / budget.delta(competitors, digits))
    facts = max(0, math.floor(guess))
    while facts and not budget.holds(facts, competitors):
        facts -= 1
    while budget.holds(facts + 1, competitors):
        facts += 1
    return facts


_EXACT_FACTS = 3000  # rational probabilities up to here, so that ties are decided
_MOST_WEIGHTS = 5000 * 10**MAX_EXPONENT  # above 10^1000 delta(10^1000)


def _too_large(budget: _Budget) -> InvalidInput:
    digits = len(str(fmpz(budget.parameters)))
    return InvalidInput(
        f"the threshold for a number of weights of {digits} digits exceeds 10^{MAX_EXPONENT} "
        "facts; give a smaller dimension"
    )


def _growing_facts(budget: _Budget) -> int:
    """The largest p with p delta(p-1) <= N I: bisection and secant steps, every end decided."""
    if not budget.holds(2, 1):
        return 1
    if budget.parameters > _MOST_WEIGHTS:
        raise _too_large(budget)
    low, high = 2, 3
    while budget.holds(high, high - 1):  # p delta(p-1) >= p/2, so p stays below 2 N
        low, high = high, min(high * high, 2 * budget.parameters + 3)
        if high > 10**MAX_EXPONENT:
            raise _too_large(budget)
    while high - low > 1:
        guess = _guess(budget, low, high)
        fits = budget.holds(guess, guess - 1)
        low, high = (guess, high) if fits else (low, guess)
        # the guess is nearly right: a small step to its other side usually closes the bracket
        step = max(1, (high - low) // 2**20)
        probe = min(low + step, high - 1) if fits else max(high - step, low + 1)
        if low < probe < high:
            low, high = (probe, high) if budget.holds(probe, probe - 1) else (low, probe)
    return low


def _guess(budget: _Budget, low: int, high: int) -> int:
    """An integer strictly between low and high near the root, by fixed-point iteration."""
    digits = max(8, len(str(fmpz(high))) - len(str(fmpz(max(1, high - low)))) + 8)
    with working_precision(math.ceil(digits * math.log2(10)) + 40):
        target = _midpoint(budget.ball(digits))
        facts = low
        for _ in range(3):
            delta = _midpoint(budget.delta(max(1, facts - 1), digits))
            # d(p delta)/dp = delta + p delta', and p delta' is about 2
            facts = facts + math.floor((target - facts * delta) / (delta + 2))
            facts = min(max(facts, low + 1), high - 1)
    return facts


def least_dimension(
    facts: int | str,
    competitors: int | str | None = None,
    *,
    failure: Any = None,
    rank_ratio: Any = None,
    margin: Any = 0,
) -> int:
    """Least d such that a d x d memory holds p facts.

    Without `failure`: least d with p delta(M) <= d^2 I(rank_ratio), the threshold. With `failure`
    = eps in (0, 1): least d with P(separable) >= 1 - eps (full rank, no margin). Decided with
    proof. Raises `InvalidInput`, `Undecided`. Source: as `critical_facts`, `success_probability`.

    >>> least_dimension(100), least_dimension(100, failure="0.01")
    (22, 24)
    """
    count, rivals = _facts_and_competitors(facts, competitors)
    ratio = Fraction(1) if rank_ratio is None else check_rank_ratio(rank_ratio)
    shift = check_margin(margin)
    with working_precision(64 + 2 * count.bit_length()):
        load = dimension_ball(rivals, len(str(fmpz(count))) + 12, shift) * fmpz(count)
        need = load / rank_factor_ball(ratio, 20)
        start = math.isqrt(max(1, math.floor(_midpoint(need))))
    if failure is None:

        def enough(dim: int) -> bool:
            return _Budget(dim * dim, ratio, shift).holds(count, rivals)

    else:
        if ratio != 1 or shift:
            raise InvalidInput(
                "failure is given together with rank_ratio or margin; the success probability is "
                "known for full rank and zero margin only; leave out one of them"
            )
        epsilon = _check_failure(failure)

        def enough(dim: int) -> bool:
            return _fails_at_most(dim * dim, count, rivals, epsilon)

    return _least(enough, start)


def _least(enough: Any, start: int) -> int:
    """Least d >= 1 with enough(d), for a monotone predicate, searched outwards from `start`."""
    low, high, stride = max(0, start - 1), max(1, start), 1
    while not enough(high):
        low, high, stride = high, high + stride, 2 * stride
    stride = 1
    while low > 0 and enough(low):
        low, high, stride = max(0, low - stride), low, 2 * stride
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _check_failure(failure: Any) -> Fraction:
    sentence = (
        f"failure is {failure}; it must be a number between 0 and 1, for example 0.01; give one"
    )
    try:
        exact = Fraction(failure)
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        raise InvalidInput(sentence) from None
    if isinstance(failure, bool) or not 0 < exact < 1:
        raise InvalidInput(sentence)
    return exact


def _fails_at_most(parameters: int, facts: int, competitors: int, epsilon: Fraction) -> bool:
    if competitors in EXACT_DIMENSION and facts <= _EXACT_FACTS:
        return 1 - exact_success(parameters, facts, competitors) <= epsilon
    digits = 8
    while digits <= 512:
        ball = failure_ball(parameters, facts, competitors, digits)
        with working_precision(math.ceil(digits * math.log2(10)) + 40):
            limit = arb(fmpz(epsilon.numerator)) / arb(fmpz(epsilon.denominator))
            if ball <= limit:
                return True
            if ball > limit:
                return False
        digits *= 2
    raise Undecided(
        f"the failure probability equals {epsilon} to 512 digits, so the least dimension is not "
        "decided; change failure slightly"
    )
