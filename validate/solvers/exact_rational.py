"""Gordan's alternative for small matrices in rational arithmetic, by Bland's simplex method.

Last resort where floating point fails: either w with A w > 0 or l >= 0, sum l = 1, A^T l = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class RationalDecision:
    """Evidence for exactly one of the alternatives, the other one is None.

    `multipliers` l >= 0 with sum 1 and A^T l = 0, or `weights` w with A w > 0.
    """

    multipliers: list[Fraction] | None
    weights: list[Fraction] | None


def rational_decision(matrix: FloatArray) -> RationalDecision:
    """Decide A w > 0 exactly; A = `matrix` (n, N) of floats, read as exact rationals.

    Phase one of the simplex method on A^T l = 0, sum l = 1, l >= 0, with Bland's rule, which cannot
    cycle. If the least sum of artificial variables is positive, the dual solution separates.
    """
    n, N = matrix.shape
    # Rows of the tableau: the N balance equations and the normalisation, with artificials.
    table = [[Fraction(x) for x in matrix[:, k].tolist()] for k in range(N)]
    table.append([Fraction(1)] * n)
    m = N + 1
    rows = [
        equation + [Fraction(int(i == k)) for i in range(m)] + [Fraction(int(k == N))]
        for k, equation in enumerate(table)
    ]
    basis = [n + k for k in range(m)]
    width = n + m
    cost = [-sum((row[j] for row in rows), Fraction(0)) for j in range(n)]
    cost += [Fraction(0)] * m + [-sum((row[width] for row in rows), Fraction(0))]
    while True:
        entering = next((j for j in range(n) if cost[j] < 0), None)
        if entering is None:
            break
        ratios = [
            (row[width] / row[entering], basis[k], k)
            for k, row in enumerate(rows)
            if row[entering] > 0
        ]
        _, _, leaving = min(ratios)
        _pivot(rows, cost, leaving, entering)
        basis[leaving] = entering
    if cost[width] == 0:
        values = dict(zip(basis, (row[width] for row in rows), strict=True))
        return RationalDecision([values.get(j, Fraction(0)) for j in range(n)], None)
    # The reduced cost of artificial k is 1 - y_k with y the dual solution: A y[:N] <= -y_N < 0.
    return RationalDecision(None, [cost[n + k] - 1 for k in range(N)])


def _pivot(rows: list[list[Fraction]], cost: list[Fraction], leaving: int, entering: int) -> None:
    pivot = rows[leaving][entering]
    rows[leaving] = [x / pivot for x in rows[leaving]]
    base = rows[leaving]
    for k, row in enumerate(rows):
        if k != leaving and row[entering] != 0:
            factor = row[entering]
            rows[k] = [x - factor * b for x, b in zip(row, base, strict=True)]
    factor = cost[entering]
    cost[:] = [x - factor * b for x, b in zip(cost, base, strict=True)]
