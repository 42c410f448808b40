"""Undecided instances: the way of deciding them that speaks most for the hypothesis.

With u of n instances undecided, the count of separable ones is known to lie in [s, s + u] only. A
test is valid whatever the truth if it reports the largest p-value over that box. A two-sided test
has it inside the box, not at a corner.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize

from validate.checks.extrapolation import DimensionCounts, single_shift

Floats = NDArray[np.float64]
ROUNDS = 30


def nearest_counts(
    separable: ArrayLike, undecided: ArrayLike, expected: ArrayLike
) -> NDArray[np.int64]:
    """The whole numbers in [s_i, s_i + u_i] nearest to the expected ones, load by load.

    >>> nearest_counts([3, 8, 0], [4, 4, 4], [5.2, 2.0, 9.0]).tolist()
    [5, 8, 4]
    """
    low = np.asarray(separable, dtype=np.int64)
    wanted = np.rint(np.asarray(expected, dtype=float)).astype(np.int64)
    return np.clip(wanted, low, low + np.asarray(undecided, dtype=np.int64))


def least_square(
    separable: ArrayLike, undecided: ArrayLike, expected: ArrayLike, root: Floats
) -> Floats:
    """argmin of |R (x - e)|^2 over s_i <= x_i <= s_i + u_i, real x: bounded least squares.

    Arguments: lists of length I and R of shape (K, I). The least value over real x is at most that
    over whole numbers, so a statistic of this form, evaluated there, has a p-value no smaller than
    under any way of deciding the instances. R x weighs loads against each other: deviations may
    cancel, so the count nearest to the expected one at every load need not be best.

    >>> least_square([4, 0], [0, 9], [3, 5], np.array([[1.0, 1.0]])).round(6).tolist()
    [4.0, 4.0]
    """
    low, spare = np.asarray(separable, dtype=float), np.asarray(undecided, dtype=float)
    mean = np.asarray(expected, dtype=float)
    best = np.clip(mean, low, low + spare)
    free = spare > 0
    if free.any():
        fixed = np.where(free, 0.0, low) - mean
        found = optimize.lsq_linear(
            root[:, free],
            -(root @ fixed),
            bounds=(low[free], (low + spare)[free]),
            method="trf",
            tol=1e-12,
        ).x
        other = best.copy()
        other[free] = np.clip(found, low[free], (low + spare)[free])
        # An interior-point answer is inexact at the bounds; the plain choice can be as good.
        if np.square(root @ (other - mean)).sum() < np.square(root @ (best - mean)).sum():
            best = other
    return best


def ways_to_decide(
    separable: ArrayLike,
    undecided: ArrayLike,
    expected_under: Callable[[NDArray[np.int64]], Floats],
) -> list[NDArray[np.int64]]:
    """Counts to try when the hypothesis has fitted parameters: none, half, all, and the nearest.

    `expected_under(counts)` gives the expected counts of the fit of the hypothesis to `counts`. The
    nearest ones are its fixed point in the box, reached by turns of fitting and clipping; each turn
    lowers the Kullback-Leibler distance of counts and fit, so it ends where the likelihood ratio
    against the hypothesis is least. One entry when nothing is undecided.
    """
    low, spare = np.asarray(separable, dtype=np.int64), np.asarray(undecided, dtype=np.int64)
    if not spare.any():
        return [low]
    ways = [low, low + spare // 2, low + spare]
    counts = ways[1]
    for _ in range(ROUNDS):
        found = nearest_counts(low, spare, expected_under(counts))
        if (found == counts).all():
            break
        counts = found
    return [*ways, counts]


def shift_band(counts: DimensionCounts, undecided: Sequence[int]) -> tuple[float, float, float]:
    """`single_shift`, with the interval from the lower end with none to the upper end with all.

    The value shares the undecided instances out like the decided ones at the same load.
    """
    if not any(undecided):
        return single_shift(counts)
    low, spare = np.asarray(counts.successes), np.asarray(undecided)
    ends = [single_shift(replace(counts, successes=(low + k * spare).tolist())) for k in (0, 1)]
    shared = nearest_counts(low, spare, proportional(low, spare, counts.trials))
    ratio = single_shift(replace(counts, successes=shared.tolist()))[0]
    return ratio, min(ratio, ends[0][1]), max(ratio, ends[1][2])


def proportional(separable: ArrayLike, undecided: ArrayLike, trials: ArrayLike) -> Floats:
    """n s/(n - u): the undecided instances split like the decided ones, in halves if none is.

    >>> proportional([30, 0], [50, 9], [100, 9]).tolist()
    [60.0, 4.5]
    """
    s, u, n = (np.asarray(v, dtype=float) for v in (separable, undecided, trials))
    decided = n - u
    return np.where(decided > 0, n * s / np.maximum(decided, 1.0), n / 2.0)


def undecided_remark(count: int) -> str:
    """A sentence for the reader, led by a space."""
    return (
        f" {count} instances are undecided and none is dropped: the p-value is the largest found "
        "over ways of deciding them, and the interval reaches from all of them failures to all of "
        "them successes."
    )
