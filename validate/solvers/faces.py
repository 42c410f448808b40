"""Instances that fail because of a few facts alone.

If some target lies in the hull of its rivals, that one fact cannot be recalled by any memory, and
the multipliers of all other facts must vanish. The interior-point iteration then creeps towards a
face of the simplex; solving for the heavy facts alone gives positive multipliers there.
"""

from __future__ import annotations

import torch

from validate.problems import DecoupledProblem, OriginalProblem, Problem
from validate.solvers.interior_point import RawResult, interior_point
from validate.solvers.operators import RowsOperator, operator_of

HEAVY = (1e-1, 1e-2, 1e-3, 1e-5, 1e-7)
NEGLIGIBLE = 1e-7
MOST_ROWS = 300


def needs_a_face(problem: Problem, raw: RawResult) -> bool:
    """Whether some facts carry next to nothing of the multipliers, or nothing was decided."""
    if raw.verdict == "separable" or raw.multipliers is None:
        return False
    mass = raw.multipliers.view(problem.facts, -1).sum(1)
    mass = mass[mass > 0]  # exactly zero: left out by the working set, not creeping to a face
    if not mass.numel():
        return False  # no multiplier is positive: there is nothing to go on from
    return raw.verdict == "undecided" or bool(mass.amin() < NEGLIGIBLE * mass.amax())


def impossible_facts(problem: Problem, raw: RawResult, deadline: float | None) -> RawResult:
    """Multipliers of fewer facts that prove impossibility, or `raw` unchanged."""
    assert raw.multipliers is not None
    twin = _indistinguishable(problem)
    if twin is not None:
        return RawResult("not_separable", None, twin.flatten(), raw.iterations, "")
    mass = raw.multipliers.view(problem.facts, -1).sum(1)
    iterations, tried = raw.iterations, problem.facts
    for share in HEAVY:
        facts = torch.nonzero(mass >= share * mass.amax()).flatten()
        if facts.numel() >= problem.facts or facts.numel() in (0, tried):
            continue
        tried = facts.numel()
        found = interior_point(operator_of([problem.subset(facts)]), deadline=deadline)[0]
        iterations += found.iterations
        if found.verdict == "not_separable" and found.multipliers is not None:
            full = mass.new_zeros(problem.facts, problem.competitors)
            full[facts] = found.multipliers.view(facts.numel(), -1)
            return RawResult("not_separable", None, full.flatten(), iterations, "")
    return _impossible_rows(problem, raw, iterations, deadline)


def _impossible_rows(
    problem: Problem, raw: RawResult, iterations: int, deadline: float | None
) -> RawResult:
    """The same on the rows with heavy multipliers, made explicit if they are few."""
    assert raw.multipliers is not None
    l = raw.multipliers
    tried = 0
    for share in HEAVY:
        rows = torch.nonzero(l >= share * l.amax()).flatten()
        if rows.numel() in (0, tried) or rows.numel() > MOST_ROWS:
            continue
        tried = rows.numel()
        matrix = torch.stack([_row(problem, int(index)) for index in rows])
        found = interior_point(RowsOperator(matrix[None]), deadline=deadline)[0]
        iterations += found.iterations
        if found.verdict == "not_separable" and found.multipliers is not None:
            full = torch.zeros_like(l)
            full[rows] = found.multipliers
            return RawResult("not_separable", None, full, iterations, "")
    return raw


def _row(problem: Problem, index: int) -> torch.Tensor:
    unit = torch.zeros(problem.constraints, dtype=torch.float64, device=problem.device)
    unit[index] = 1.0
    return problem.adjoint(unit.view(problem.facts, -1)).flatten()


def _indistinguishable(problem: Problem) -> torch.Tensor | None:
    """One multiplier on a rival that equals its target, if there is one."""
    if isinstance(problem, OriginalProblem):
        rivals = problem.outputs[problem.competitor_rows()]
        targets = problem.outputs[problem.targets]
    elif isinstance(problem, DecoupledProblem):
        rivals, targets = problem.rivals, problem.outputs
    else:
        return None
    same = (rivals == targets[:, None]).all(-1)
    if not bool(same.any()):
        return None
    multipliers = torch.zeros_like(same, dtype=torch.float64)
    multipliers.view(-1)[int(same.flatten().int().argmax())] = 1.0
    return multipliers
