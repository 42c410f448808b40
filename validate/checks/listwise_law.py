"""The law of listwise recall and of halfspaces with a margin at every size, nothing fitted.

Recall of one fact is w . (g_0, ..., g_M) in a cone C, and p such facts of Gaussian scores are
recalled by some w in R^N with the probability of the conic kinematic formula,

    P(separable) = 2 sum_{j = 1, 3, 5, ...} P(K_tot = N - j),

K_tot a sum of p independent copies of K, the dimension of the face of the polar cone on which a
Gaussian point is projected. For the tail average over the best m of M competitors that cone is
{(-s, a): 0 <= a_i <= s/m, sum a_i = s}: a face has l entries strictly between the walls (dimension
l), or none, with m of them at s/m (dimension 1).

As M grows at r = m/M, a point with target score z_0 is projected after lowering the gap by
lambda = (kappa_r - z_0)_+, and the entries between the walls become a Poisson number of mean
kappa_r lambda above the one: the law of Gardner's halfspace with margin kappa_r.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from replica.errors import InvalidInput
from validate.checks.extrapolation import Curve
from validate.checks.statistics import generator
from validate.checks.units import Unit

Floats = NDArray[np.float64]
BLOCK = 4_000_000
"""Scores held at once."""
NEGLIGIBLE = 1e-14


def margin_volumes(margin: float) -> Floats:
    """v_k = P(K = k) of the halfspace with a margin: K = 1{z > -margin} (1 + Poisson).

    z standard Gaussian, the Poisson variable of mean margin (z + margin): v_0 = Phi(-margin). By
    Gauss-Legendre quadrature; v_k below 1e-14 are left out. Raises `InvalidInput` for a margin that
    is negative or above 10.

    >>> margin_volumes(0.0).round(12).tolist()
    [0.5, 0.5]
    """
    if not 0.0 <= margin <= 10.0:
        raise InvalidInput(f"the margin is {margin}; it must lie between 0 and 10; change it")
    nodes, weights = np.polynomial.legendre.leggauss(400)
    reach = margin + 9.0
    gap = reach * (nodes + 1.0) / 2.0
    density = np.exp(-((gap - margin) ** 2) / 2.0) / math.sqrt(2.0 * math.pi)
    mean = margin * gap
    k = np.arange(int(mean.max() + 12.0 * mean.max() ** 0.5) + 2)[:, None]
    poisson = np.exp(special.xlogy(k, mean) - mean - special.gammaln(k + 1.0))
    found = np.concatenate([[special.ndtr(-margin)], poisson @ (density * weights) * reach / 2.0])
    return np.asarray(found[: int(np.flatnonzero(found > NEGLIGIBLE)[-1]) + 1])


def measure_tail_projection(
    competitors: int, averaged: int, seed: int, batch: int, samples: int
) -> dict[str, Any]:
    """Sum over `samples` draws of the competitors of P(K = k | competitors), k = 0, 1, ...

    The target score is integrated out exactly: for given competitors the projection is a path in
    the height c = s/m of the walls, along which the entries between the walls only increase, and
    every piece of it belongs to an interval of z_0. `square`: the sum of E[K | competitors]^2.
    """
    if not 1 <= averaged <= competitors:
        raise InvalidInput(
            f"{averaged} averaged competitors of {competitors} were asked for; give a number from "
            f"1 to {competitors}"
        )
    total = np.zeros(0)
    square = 0.0
    stream = generator(seed, 94, competitors, averaged, batch)
    step = max(1, BLOCK // competitors)
    for first in range(0, samples, step):
        z = stream.standard_normal((min(step, samples - first), competitors))
        law = conditional_law(-np.sort(-z, axis=1), averaged)
        width = max(total.size, law.shape[1])
        total = np.pad(total, (0, width - total.size))
        total[: law.shape[1]] += law.sum(axis=0)
        square += float(((law @ np.arange(law.shape[1])) ** 2).sum())
    return {"volumes": total.tolist(), "square": square, "samples": samples}


def conditional_law(scores: Floats, averaged: int) -> Floats:
    """P(K = k | competitors) of each row of `scores` (n, M), largest first; shape (n, k).

    With j entries at the walls and b between them, t the level that the latter are pressed to,
    sum a_i = s reads t = mean - (m - j) c/b. The next piece begins where t + c meets entry j or t
    meets entry j + b + 1: every row has exactly one entry more between the walls on every piece.

    >>> conditional_law(np.array([[0.0, 0.0]]), 2).round(12).tolist()
    [[0.5, 0.5]]
    """
    n, M = scores.shape
    m, rows = averaged, np.arange(n)
    sums = np.concatenate([np.zeros((n, 1)), np.cumsum(scores, axis=1)], axis=1)
    # Entry 0 is never released, entry M + 1 never reached.
    ends = np.concatenate([np.full((n, 1), np.inf), scores, np.full((n, 1), -np.inf)], axis=1)
    passed = special.ndtr(sums[:, m] / m)
    pieces = [1.0 - passed]
    c = ends[:, m] - ends[:, m + 1]
    left = special.ndtr(sums[:, m] / m - (m + 1.0) * c)
    at, last = np.full(n, m - 1), np.full(n, min(m + 1, M))
    while True:
        pieces.append(passed - left)
        passed = left
        if float(passed.max()) < NEGLIGIBLE:
            return np.stack(pieces, axis=1)
        between = last - at
        share = (m - at) / between
        mean = (sums[rows, last] - sums[rows, at]) / between
        up = (ends[rows, at] - mean) / (1.0 - share)
        down = (mean - ends[rows, last + 1]) / share
        goes_on = np.isfinite(np.minimum(up, down))
        c = np.where(goes_on, np.minimum(up, down), 0.0)
        level = (sums[rows, at] - at * c + (m - at) * (mean - share * c)) / m - m * c
        left = np.where(goes_on, np.minimum(passed, special.ndtr(level)), 0.0)
        at = np.where(goes_on & (up <= down), at - 1, at)
        last = np.where(goes_on & (up > down), last + 1, last)


def projection_unit(competitors: int, averaged: int, seed: int, samples: int) -> Unit:
    """The draws of one M, in one unit."""
    return Unit(
        "validate.checks.listwise_law:measure_tail_projection",
        {
            "competitors": competitors,
            "averaged": averaged,
            "seed": seed,
            "batch": 0,
            "samples": samples,
        },
        work=0.05 + 1e-6 * samples * competitors,
    )


def pooled_volumes(answers: Sequence[Mapping[str, Any]]) -> tuple[Floats, float]:
    """v_k of all answers of one M, and the relative standard error of delta = sum k v_k."""
    width = max(len(a["volumes"]) for a in answers)
    total = sum(np.pad(a["volumes"], (0, width - len(a["volumes"]))) for a in answers)
    n = sum(a["samples"] for a in answers)
    volumes = np.asarray(total, dtype=float) / n
    delta = mean_dimension(volumes)
    variance = sum(a["square"] for a in answers) / n - delta**2
    return volumes, math.sqrt(max(0.0, variance) / n) / delta


def mean_dimension(volumes: ArrayLike) -> float:
    """delta = sum_k k v_k, the statistical dimension of the polar cone.

    >>> mean_dimension([0.5, 0.5])
    0.5
    """
    v = np.asarray(volumes, dtype=float)
    return float(v @ np.arange(v.size))


def separable_probability(volumes: ArrayLike, facts: int, parameters: int) -> float:
    """2 sum_{j odd} P(K_tot = N - j) for p facts in N dimensions; `volumes` v_0, v_1, ...

    >>> separable_probability([0.5, 0.5], 8, 4), separable_probability([0.5, 0.5], 3, 4)
    (0.5, 1.0)
    """
    size = parameters
    power, law, left = np.asarray(volumes, dtype=float)[:size], np.ones(1), facts
    while left:
        if left & 1:
            law = np.convolve(law, power)[:size]
        left >>= 1
        if left:
            power = np.convolve(power, power)[:size]
    law = np.pad(law, (0, size - law.size))
    return float(min(1.0, 2.0 * law[size - 1 :: -2].sum()))


def law_curve(volumes: ArrayLike, parameters: int, shift: float = 1.0) -> Curve:
    """Phi^{-1} of the probability at every p where it lies in [1e-9, 1 - 1e-9], p times `shift`."""
    centre = parameters / mean_dimension(volumes)
    facts, probits = [], []
    for p in range(1, math.ceil(centre * (1.0 + 8.0 / parameters**0.5)) + 9):
        value = separable_probability(volumes, p, parameters)
        if 1e-9 < value < 1.0 - 1e-9:
            facts.append(float(p))
            probits.append(float(special.ndtri(value)))
    return np.log(facts) + math.log(shift), np.array(probits)


def half_facts(curve: Curve) -> float:
    """The real p with probability 1/2, linear in log p and Phi^{-1} between the integers."""
    return float(np.exp(np.interp(0.0, -curve[1], curve[0])))
