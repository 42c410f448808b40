"""How often the exact solver is undecided, and whether a second code ever contradicts a proof."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import optimize

from validate.decide import decide_many
from validate.problems import Problem, make_problem

BATCH = {10: 25, 20: 8}
CLEAR = 1e-7
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Survey:
    """Counts over many instances.

    `verdicts`: proved verdicts by name; `claimed`: what the solver said; `compared`: instances also
    given to a linear-programming code; `contradicted`: those where the two clearly disagree.
    """

    instances: int
    verdicts: dict[str, int]
    claimed: dict[str, int]
    compared: int
    contradicted: int
    seconds: float


def survey(
    cells: Sequence[tuple[str, int, int]],
    *,
    instances: int,
    seed: int,
    compare_every: int = 20,
    progress: Progress | None = None,
) -> Survey:
    """Decide `instances` problems for each cell (kind, dim, facts), with certificates.

    Every `compare_every`-th instance of dimension at most 12 is also given to HiGHS (SciPy), as
    max t subject to A w >= t, |w_i| <= 1. A contradiction is a proved "separable" with t < 1e-7 of
    the largest row norm, or a proved "not separable" with t above it.

    >>> survey([("original", 5, 8)], instances=2, seed=0).contradicted
    0
    """
    begin = time.monotonic()
    verdicts = dict.fromkeys(("separable", "not_separable", "undecided"), 0)
    claimed = dict(verdicts)
    compared = contradicted = done = 0
    for problems in _batches(cells, instances, seed):
        for problem, decision in zip(problems, decide_many(problems), strict=True):
            verdicts[decision.verdict] += 1
            claimed[decision.solution.verdict] += 1
            if done % compare_every == 0 and problem.dim_in <= 12:
                compared += 1
                separable = separable_by_linear_programming(problem)
                contradicted += decision.verdict == ("not_separable" if separable else "separable")
            done += 1
        if progress is not None:
            progress(done, instances * len(cells))
    spent = time.monotonic() - begin
    return Survey(done, verdicts, claimed, compared, contradicted, spent)


def _batches(
    cells: Sequence[tuple[str, int, int]], instances: int, seed: int
) -> Iterator[list[Problem]]:
    for kind, dim, facts in cells:
        size = BATCH.get(dim, 8)
        for start in range(0, instances, size):
            yield [
                make_problem(kind, dim=dim, facts=facts, seed=(seed, index))
                for index in range(start, min(start + size, instances))
            ]


def separable_by_linear_programming(problem: Problem) -> bool:
    """The verdict of HiGHS on the explicit constraint matrix, without proof."""
    units = torch.eye(problem.parameters, dtype=torch.float64)
    shaped = units.view(-1, problem.dim_out, problem.dim_in)
    A: NDArray[np.float64] = problem.margins(shaped).flatten(1).T.numpy()
    A = A / np.linalg.norm(A, axis=1).max()
    n, N = A.shape
    result = optimize.linprog(
        np.r_[np.zeros(N), -1.0],
        A_ub=np.c_[-A, np.ones(n)],
        b_ub=np.zeros(n),
        bounds=[(-1, 1)] * N + [(None, 1)],
        method="highs",
    )
    if result.status != 0:
        raise RuntimeError(f"the linear-programming code failed: {result.message}")
    return bool(-result.fun > CLEAR)
