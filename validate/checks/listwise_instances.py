"""Instances of listwise recall and of halfspaces, decided with proof.

Scores are <G_mu,rho, w> with Gaussian G in R^N. Entries are rounded to multiples of 2^-24, so that
the sums below are exact in double precision and every proof is about the instance itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from replica.errors import InvalidInput
from validate.certificates import largest_margin, rows_of_matrix
from validate.certified_rows import SLACK, TINY, gamma
from validate.solvers.rows import solve_rows

Floats = NDArray[np.float64]
GRID = 2.0**24
ROUNDS = 60


def gaussian_rows(seed: tuple[int, ...], shape: tuple[int, ...]) -> Floats:
    """Standard Gaussians rounded to multiples of 2^-24."""
    stream = np.random.default_rng(np.random.SeedSequence(seed))
    x: Floats = np.round(stream.standard_normal(shape) * GRID) / GRID
    return x


def halfspace_verdict(rows: Floats, margin: float = 0.0) -> str:
    """Is there w with <a_mu, w> > margin |w| for every row? Proved, or "undecided".

    With a margin the largest one is enclosed: below by the least margin of a memory, above by
    |A^T l| / sum l of its multipliers (weak duality).

    >>> halfspace_verdict(np.eye(2)), halfspace_verdict(np.eye(2), 0.8)
    ('separable', 'not_separable')
    """
    if not margin >= 0.0:
        raise InvalidInput(f"the margin is {margin}; it must be at least 0; give such a number")
    found = solve_rows(rows, maximum_margin=margin > 0.0)
    if margin == 0.0 or found.verdict != "separable":
        return found.verdict
    if found.certificate.margin > margin:
        return "separable"
    assert found.multipliers is not None
    above = largest_margin(rows_of_matrix(rows), np.maximum(found.multipliers, 0.0))
    return "not_separable" if above < margin else "undecided"


def tail_average_verdict(scores: Floats, count: int) -> str:
    """Is there w whose target scores exceed the mean of the `count` best competitors? Proved.

    `scores` G of shape (p, M + 1, N), the target first, entries multiples of 2^-24 below 2^5. The
    condition says <g_0 - mean_{rho in S} g_rho, w> > 0 for every set S of `count` competitors.
    Cutting planes: solve for the sets found so far, add the best `count` of every fact at that w.
    A finite family of sets without a solution proves that there is none; else the tail average of
    the last w is bounded with its rounding. Raises `InvalidInput` for a count out of range.
    """
    facts, competitors = scores.shape[0], scores.shape[1] - 1
    if not 1 <= count <= competitors:
        raise InvalidInput(
            f"the number of averaged competitors is {count}; it must lie between 1 and "
            f"{competitors}; give such a number"
        )
    w = scores[:, 0].sum(axis=0) - scores[:, 1:].mean(axis=1).sum(axis=0)
    rows = np.empty((0, scores.shape[2]))
    known: set[tuple[int, bytes]] = set()
    for _ in range(ROUNDS):
        values = scores @ w
        best = np.argpartition(-values[:, 1:], count - 1, axis=1)[:, :count] + 1
        least = tail_margin_below(scores, w, count)
        if least > 0.0:
            return "separable"
        fresh = []
        for mu in range(facts):
            chosen = np.sort(best[mu])
            key = (mu, chosen.tobytes())
            if key not in known:
                known.add(key)
                # count g_0 - sum g_rho: integers below 2^53 in units of 2^-24, hence exact
                fresh.append(count * scores[mu, 0] - scores[mu, chosen].sum(axis=0))
        if not fresh:
            return "undecided"
        rows = np.vstack([rows, *fresh])
        found = solve_rows(rows)
        if found.verdict != "separable":
            return found.verdict
        assert found.weights is not None
        w = found.weights / np.linalg.norm(found.weights)
    return "undecided"


def tail_margin_below(scores: Floats, w: Floats, count: int) -> float:
    """A proved lower bound of min_mu (target score - mean of the best `count` competitors).

    |fl(g . w) - g . w| <= gamma_N |g| . |w| (Higham 2002); the mean of the best is monotone in
    every score, so the bounds of the scores bound it.
    """
    value = scores @ w
    error = SLACK * gamma(w.size + 2) * (np.abs(scores) @ np.abs(w)) + TINY
    upper = value[:, 1:] + error[:, 1:]
    best = -np.sort(-upper, axis=1)[:, :count]
    mean = best.mean(axis=1) + SLACK * gamma(count + 4) * np.abs(best).mean(axis=1)
    lower = value[:, 0] - error[:, 0] - mean
    lower = lower - SLACK * gamma(4) * (np.abs(value[:, 0]) + np.abs(mean))
    return float(lower.min())
