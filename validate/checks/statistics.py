"""Intervals, multiple testing and Monte Carlo p-values: the statistics every check shares."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from replica.errors import InvalidInput


def clopper_pearson(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Exact binomial interval: all P with P(X >= s) and P(X <= s) above (1 - confidence)/2.

    Arguments: `successes` of `trials` (integers, 0 <= successes <= trials, trials >= 1) and
    `confidence` in (0, 1). Coverage is at least `confidence` for every P. Raises
    `InvalidInput` otherwise.
    Source: Clopper and Pearson 1934, through quantiles of the beta distribution.

    >>> low, high = clopper_pearson(0, 10)
    >>> low, round(high, 4)
    (0.0, 0.3085)
    """
    _check_confidence(confidence)
    if trials < 1 or not 0 <= successes <= trials:
        raise InvalidInput(
            f"{successes} successes of {trials} trials; trials must be at least 1 and successes "
            "between 0 and trials; give the counts of one experiment"
        )
    tail = (1.0 - confidence) / 2.0
    low = special.betaincinv(successes, trials - successes + 1, tail) if successes else 0.0
    high = (
        special.betaincinv(successes + 1, trials - successes, 1.0 - tail)
        if successes < trials
        else 1.0
    )
    return float(low), float(high)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values: with p_(1) <= ... <= p_(m), max over i <= j of (m-i+1) p_(i).

    Rejecting every hypothesis whose adjusted value is below A keeps the chance of any false
    rejection below A, whatever the dependence. Source: Holm 1979.

    >>> [round(p, 6) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p_values, dtype=float)
    if values.size and not ((values >= 0.0) & (values <= 1.0)).all():
        raise InvalidInput("a p-value lies outside [0, 1]; give probabilities only")
    order = np.argsort(values, kind="stable")
    weights = np.arange(values.size, 0, -1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.maximum.accumulate(weights * values[order]), 1.0)
    return [float(p) for p in adjusted]


def monte_carlo_p_value(statistic: float, null_sample: ArrayLike) -> float:
    """(1 + number of null values >= statistic) / (1 + size), valid at any null sample size.

    `null_sample` holds independent draws of the statistic under the hypothesis.
    Source: Davison and Hinkley 1997, section 4.2.

    >>> monte_carlo_p_value(2.5, [1.0, 2.0, 3.0])
    0.5
    """
    null = np.asarray(null_sample, dtype=float)
    if null.size == 0:
        raise InvalidInput("the null sample is empty; simulate the statistic at least once")
    # A relative slack makes ties between equal counts count as ties despite rounding.
    threshold = statistic - 1e-9 * (1.0 + abs(statistic))
    return float((1 + np.count_nonzero(null >= threshold)) / (1 + null.size))


def mean_interval(values: ArrayLike, confidence: float = 0.95) -> tuple[float, float, float]:
    """Mean and its Student interval, mean +- t_{n-1} s / sqrt(n), for n >= 2 independent values.

    >>> mean, low, high = mean_interval([1.0, 2.0, 3.0])
    >>> mean, round(high - mean, 3)
    (2.0, 2.484)
    """
    _check_confidence(confidence)
    sample = np.asarray(values, dtype=float)
    if sample.ndim != 1 or sample.size < 2:
        raise InvalidInput(
            f"an interval for a mean needs at least 2 values, got {sample.size}; take more samples"
        )
    mean = float(sample.mean())
    quantile = float(special.stdtrit(sample.size - 1, 0.5 + confidence / 2.0))
    half = quantile * float(sample.std(ddof=1)) / float(np.sqrt(sample.size))
    return mean, mean - half, mean + half


def generator(*entropy: int) -> np.random.Generator:
    """The random stream of one cell: `SeedSequence(entropy)`; seed 0 is a seed like any other.

    >>> generator(0, 1).integers(100) == generator(0, 1).integers(100)
    np.True_
    """
    return np.random.default_rng(np.random.SeedSequence(entropy))


def normal_quantile(probability: ArrayLike) -> NDArray[np.float64]:
    """Phi^{-1} elementwise."""
    return np.asarray(special.ndtri(np.asarray(probability, dtype=float)))


def _check_confidence(confidence: float) -> None:
    if not 0.0 < confidence < 1.0:
        raise InvalidInput(
            f"confidence is {confidence}; it must lie strictly between 0 and 1; 0.95 is usual"
        )
