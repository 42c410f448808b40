"""Does a perfect memory exist, and which one has the largest margin?"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import torch

from replica.errors import InvalidInput
from validate.problems import Problem
from validate.solvers.faces import impossible_facts, needs_a_face
from validate.solvers.interior_point import RawResult, interior_point
from validate.solvers.maximum_margin import maximum_margin as widest
from validate.solvers.operators import Operator, RowsOperator, Tensor, operator_of
from validate.solvers.solution import NOT_SEPARABLE, SEPARABLE, UNDECIDED, Solution
from validate.solvers.threads import threads_for
from validate.solvers.working_set import (
    solve_with_working_set,
    widen_with_working_set,
    worth_a_working_set,
)

Progress = Callable[[int, int], None]


def solve(
    problem: Problem,
    *,
    time_limit: float | None = None,
    maximum_margin: bool = False,
    device: torch.device | str | None = None,
    progress: Progress | None = None,
    warm: Solution | None = None,
) -> Solution:
    """Decide whether some W has all margins of `problem` positive.

    With `maximum_margin` the iteration goes on to the W of unit norm with the largest least margin;
    the multipliers then prove that no other W of unit norm has a margin above |A^T l|. The claim is
    to be proved by `validate.certificates.check`. `warm` is the separable solution of an instance
    with fewer facts or competitors of the same nested family; it about halves the iterations.

    Raises `InvalidInput` for a time limit that is not positive.

    >>> from validate.problems import make_problem
    >>> solve(make_problem("original", dim=6, facts=6, seed=0)).verdict
    'separable'
    >>> solve(make_problem("original", dim=3, facts=40, seed=0)).verdict
    'not_separable'
    """
    return solve_many(
        [problem],
        time_limit=time_limit,
        maximum_margin=maximum_margin,
        device=device,
        progress=progress,
        warm=warm,
    )[0]


def solve_many(
    problems: Sequence[Problem],
    *,
    time_limit: float | None = None,
    maximum_margin: bool = False,
    device: torch.device | str | None = None,
    progress: Progress | None = None,
    warm: Solution | None = None,
) -> list[Solution]:
    """As `solve` for several problems of one kind and shape, as one batch of tensors.

    `seconds` of each solution is its share of the wall time.
    """
    if time_limit is not None and not time_limit > 0:
        raise InvalidInput(
            f"the time limit is {time_limit} s; it must be positive; leave it out for no limit"
        )
    if not problems:
        return []
    shapes = {(p.kind, p.dim_in, p.dim_out, p.facts, p.competitors) for p in problems}
    if len(shapes) > 1:
        raise InvalidInput(
            f"a batch of problems with {len(shapes)} different shapes was given; all must have the "
            "same kind and sizes; call solve for each"
        )
    start = time.monotonic()
    deadline = None if time_limit is None else start + time_limit
    local = problems if device is None else [p.to(device) for p in problems]
    with threads_for(problems[0].parameters):
        operator = operator_of(local)
        raw = _decide(operator, deadline, progress, [_padded(p, warm) for p in local])
        if maximum_margin:
            raw = [
                _widest(
                    operator.select(torch.tensor([index], device=local[index].device)), r, deadline
                )
                for index, r in enumerate(raw)
            ]
        raw = [
            impossible_facts(p, r, deadline) if needs_a_face(p, r) else r
            for p, r in zip(local, raw, strict=True)
        ]
    seconds = (time.monotonic() - start) / len(problems)
    return [_solution(p, r, seconds) for p, r in zip(problems, raw, strict=True)]


def _decide(
    operator: Operator,
    deadline: float | None,
    progress: Progress | None,
    starts: list[Tensor | None],
) -> list[RawResult]:
    if isinstance(operator, RowsOperator) and worth_a_working_set(operator):
        pairs = zip(operator.matrix, starts, strict=True)
        return [
            solve_with_working_set(matrix, deadline, start, progress) for matrix, start in pairs
        ]
    given = [start for start in starts if start is not None]
    start = torch.stack(given) if given else None
    return interior_point(operator, deadline=deadline, progress=progress, start=start)


def _padded(problem: Problem, warm: Solution | None) -> Tensor | None:
    """Multipliers of a smaller instance, with their median for the new facts and competitors."""
    if warm is None or warm.verdict != SEPARABLE or warm.multipliers is None:
        return None
    old = warm.multipliers.to(problem.device)
    facts, rivals = old.shape
    if facts > problem.facts or rivals > problem.competitors:
        return None
    padded = old.new_full((problem.facts, problem.competitors), float(old.median()))
    padded[:facts, :rivals] = old
    return padded.flatten()


def _widest(operator: Operator, raw: RawResult, deadline: float | None) -> RawResult:
    """Go on from separating weights to the maximum margin."""
    if raw.verdict != SEPARABLE or raw.weights is None or raw.multipliers is None:
        return raw
    if isinstance(operator, RowsOperator) and worth_a_working_set(operator):
        found = widen_with_working_set(operator.matrix[0], raw.weights, deadline)
    else:
        found = widest(operator, raw.weights[None], raw.multipliers[None], deadline=deadline)
    if not found.gap < 1.0:
        return raw
    reason = f"relative gap of the margin {found.gap:.1e}"
    iterations = raw.iterations + found.iterations
    return RawResult(SEPARABLE, found.weights[0], found.multipliers[0], iterations, reason)


def _solution(problem: Problem, raw: RawResult, seconds: float) -> Solution:
    weights, multipliers, margin = raw.weights, raw.multipliers, float("nan")
    if weights is not None:
        weights = weights.to(problem.device).view(problem.dim_out, problem.dim_in)
        norm = weights.norm()
        weights = weights / norm if float(norm) > 0 else weights
        margin = float(problem.margins(weights).amin())
    if multipliers is not None:
        multipliers = multipliers.to(problem.device).view(problem.facts, problem.competitors)
    verdict, reason = raw.verdict, raw.reason
    if verdict != SEPARABLE:
        empty = _fact_without_input(problem)
        if empty is not None:
            # Its scores are 0 whatever W: one multiplier on one of its rows balances exactly.
            multipliers = torch.zeros(problem.facts, problem.competitors, dtype=torch.float64)
            multipliers[empty, 0] = 1.0
            verdict, reason = NOT_SEPARABLE, f"the input of fact {empty} is zero"
    if verdict == SEPARABLE and not margin > 0:
        verdict = UNDECIDED
        reason = "the separating weights lost their sign when rounded; the instance is ill-scaled"
    return Solution(verdict, weights, multipliers, margin, raw.iterations, seconds, reason)


def _fact_without_input(problem: Problem) -> int | None:
    """Index of a fact whose input vector is zero, if there is one."""
    inputs = getattr(problem, "inputs", None)
    if inputs is None:
        return None
    zero = (inputs == 0).all(dim=1).nonzero()
    return int(zero[0, 0]) if zero.numel() else None
