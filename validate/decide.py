"""Solve and prove: the only verdicts that other code should count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from validate.certificates import Certificate, check
from validate.problems import Problem
from validate.solvers.exact import Progress, solve, solve_many
from validate.solvers.solution import Solution


@dataclass(frozen=True)
class Decision:
    """The solver's claim and its certificate; `verdict` is the certificate's."""

    solution: Solution
    certificate: Certificate

    @property
    def verdict(self) -> str:
        """separable, not_separable or undecided: what was proved."""
        return self.certificate.verdict


def decide_many(
    problems: Sequence[Problem],
    *,
    time_limit: float | None = None,
    maximum_margin: bool = False,
    device: str | None = None,
    progress: Progress | None = None,
) -> list[Decision]:
    """Certified verdicts of a batch of problems of one kind and shape.

    `progress(iterations, instances left)` is called after every iteration of the solver.
    """
    solutions = solve_many(
        problems,
        time_limit=time_limit,
        maximum_margin=maximum_margin,
        device=device,
        progress=progress,
    )
    return [Decision(s, check(p, s)) for p, s in zip(problems, solutions, strict=True)]


def decide(
    problem: Problem,
    *,
    time_limit: float | None = None,
    maximum_margin: bool = False,
    device: str | None = None,
    warm: Solution | None = None,
) -> Decision:
    """The certified verdict of one problem.

    >>> from validate.problems import make_problem
    >>> decide(make_problem("original", dim=6, facts=6, seed=0)).verdict
    'separable'
    """
    solution = solve(
        problem, time_limit=time_limit, maximum_margin=maximum_margin, device=device, warm=warm
    )
    return Decision(solution, check(problem, solution))
