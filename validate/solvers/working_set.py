"""Explicit rows, many more than unknowns: work on the few that matter, check against all.

A Farkas vector of a subset of rows is one of all rows, and weights that separate a subset either
separate all rows or name the rows to add. About N of the rows are active near the transition, so
the subsets stay at a few N rows and each round starts from the multipliers of the last.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import torch

from validate.solvers.acceleration import LEAST_SHARE, accelerated_start
from validate.solvers.interior_point import SPREAD, Iteration, RawResult
from validate.solvers.maximum_margin import MarginResult, maximum_margin
from validate.solvers.operators import RowsOperator, Tensor

KEPT, ADDED, MOST_ADDED = 2.0, 0.5, 1.0
"""Rows kept from the last round, added at least and added at most, in units of N."""
FULL_STEPS, SCREENED = 8, 6.0
"""First-order steps on all rows, and rows kept for the others, in units of N."""
IN_RANGE = 1e12
"""Sizes of entries between one over this and this have squares well inside single precision."""
ROUNDS_WITH_DROPPING = 12
WORTH_IT = 4.0
"""Least ratio of rows to unknowns for which a working set pays."""


def worth_a_working_set(operator: RowsOperator) -> bool:
    """Whether there are many more rows than unknowns."""
    return operator.rows >= WORTH_IT * operator.size


def solve_with_working_set(
    matrix: Tensor,
    deadline: float | None = None,
    start: Tensor | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> RawResult:
    """Decide A w > 0 for explicit rows A = `matrix` (n, N); `start`: multipliers (n,) to try."""
    size = matrix.shape[1]
    kept, added, most = (max(1, int(x * size)) for x in (KEPT, ADDED, MOST_ADDED))
    multipliers: Tensor | None = None
    if start is None:
        weights = first_order_weights(matrix)
        margins = matrix @ weights
        if float(margins.amin()) > 0:
            return RawResult("separable", weights, margins.amin() / margins, 0, "")
        rows = smallest(margins, kept)
        q = torch.softmax(-margins[rows], 0)
        multipliers = q.clamp_min(LEAST_SHARE * float(q.max()))[None]
    else:
        near = smallest(matrix @ (start @ matrix), kept)
        rows = torch.unique(torch.cat([torch.topk(start, min(kept, start.numel())).indices, near]))
        multipliers = start[rows].clamp_min(1e-3 / matrix.shape[0] * start.sum())[None]
    iterations = rounds = 0
    while True:
        rounds += 1
        iteration = Iteration(RowsOperator(matrix[rows][None]), multipliers, SPREAD)
        iteration.run(deadline, progress)
        result = iteration.results[0]
        iterations += result.iterations
        l = result.multipliers
        if result.verdict != "separable" or result.weights is None or l is None:
            full = None
            if l is not None:
                full = matrix.new_zeros(matrix.shape[0]).index_copy_(0, rows, l)
            return RawResult(result.verdict, result.weights, full, iterations, result.reason)
        margins = matrix @ result.weights
        wrong = int((margins <= 0).sum())
        if not wrong:
            full = matrix.new_zeros(matrix.shape[0]).index_copy_(0, rows, l)
            return RawResult("separable", result.weights, full, iterations, "")
        margins[rows] = float("inf")
        fresh = smallest(margins, min(max(wrong, added), most))
        # Dropping rows for ever could cycle; later rounds only add, and rows are finitely many.
        if rounds <= ROUNDS_WITH_DROPPING and l.numel() > kept:
            keep = torch.topk(l, kept).indices
            rows, l = rows[keep], l[keep]
        rows = torch.cat([rows, fresh])
        multipliers = torch.cat([l, l.median().expand(fresh.numel())])[None]


def first_order_weights(matrix: Tensor) -> Tensor:
    """A few steps on all rows, then more on the rows that came out lowest, which are cheaper.

    In single precision: the steps are bound by memory traffic, and a start needs no more. Rows
    whose squares would leave its range are scaled by a power of two first.
    """
    size = float(torch.linalg.vector_norm(matrix)) / matrix.numel() ** 0.5
    exponent = 0 if IN_RANGE**-1 <= size <= IN_RANGE or size == 0 else math.frexp(size)[1]
    factor = 2.0**-exponent
    single = (matrix * factor if exponent else matrix).float()
    operator = RowsOperator(single[None])
    many = int(SCREENED * matrix.shape[1])
    if matrix.shape[0] <= 2 * many:
        found = accelerated_start(operator)
    else:
        first = accelerated_start(operator, steps=FULL_STEPS)
        low = RowsOperator(single[smallest(first.margins[0], many)][None])
        found = accelerated_start(low, weights=first.weights)
    weights = found.weights[0].double() * factor
    return weights if bool(torch.isfinite(weights).all()) else torch.zeros_like(weights)


def widen_with_working_set(
    matrix: Tensor, weights: Tensor, deadline: float | None = None, tolerance: float = 1e-9
) -> MarginResult:
    """Maximum margin over all rows, from weights that separate them."""
    rows = smallest(matrix @ weights, max(1, int(KEPT * matrix.shape[1])))
    iterations = 0
    w = weights
    while True:
        operator = RowsOperator(matrix[rows][None])
        ones = matrix.new_full((1, rows.numel()), 1.0 / rows.numel())
        found = maximum_margin(operator, w[None], ones, tolerance=tolerance, deadline=deadline)
        iterations += found.iterations
        candidate = found.weights[0]
        margins = matrix @ candidate
        low = margins < (1.0 - tolerance) * margins[rows].amin()
        low[rows] = False
        late = deadline is not None and time.monotonic() > deadline
        if late or not bool(low.any()) or not found.gap < 1.0:
            l = matrix.new_zeros(matrix.shape[0]).index_copy_(0, rows, found.multipliers[0])
            better = float(margins.amin() / candidate.norm()) > float(
                (matrix @ w).amin() / w.norm()
            )
            w = candidate if better else w
            return MarginResult(w[None], l[None], found.gap, iterations)
        rows = torch.cat([rows, torch.nonzero(low).flatten()])


def smallest(values: Tensor, count: int) -> Tensor:
    """Indices of the `count` smallest values."""
    return torch.topk(values, min(count, values.numel()), largest=False).indices
