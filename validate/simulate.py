"""One cell of an experiment: many instances of one size, one method, counted verdicts."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from replica.errors import InvalidInput
from validate.certificates import check
from validate.decide import decide
from validate.embeddings import Ensemble
from validate.problems import Problem, make_problem
from validate.problems.base import check_count
from validate.solvers.adam import adam
from validate.solvers.hebbian import hebbian
from validate.solvers.learned import Learned
from validate.solvers.low_rank import low_rank, rank_of
from validate.solvers.pseudo_inverse import pseudo_inverse
from validate.solvers.solution import SEPARABLE, UNDECIDED, Solution

METHODS = ("exact", "adam", "hebbian", "pseudo_inverse")
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Outcome:
    """One instance: the proved `verdict` and the `accuracy` of the memory (None without one)."""

    verdict: str
    accuracy: float | None
    seconds: float


@dataclass(frozen=True)
class Cell:
    """Outcomes of `seeds` instances.

    `exact` counts proved verdicts. For a learning rule, "separable" counts instances where its
    memory provably recalls every fact; the others are "undecided", since a rule that fails proves
    nothing. Accuracies are averaged over the instances for which the method returns a memory (the
    exact method: the separable ones).
    """

    problem: str
    dim: int
    facts: int
    method: str
    outcomes: list[Outcome] = field(repr=False)
    seconds: float

    def count(self, verdict: str) -> int:
        """Number of instances with this proved verdict."""
        return sum(outcome.verdict == verdict for outcome in self.outcomes)

    @property
    def accuracies(self) -> list[float]:
        """Accuracies of the memories that exist."""
        return [o.accuracy for o in self.outcomes if o.accuracy is not None]

    def to_json(self) -> dict[str, Any]:
        """Plain data; `accuracy_mean` is null without memories, `accuracy_stderr` below two."""
        values = self.accuracies
        mean = math.fsum(values) / len(values) if values else None
        error = None
        if mean is not None and len(values) > 1:
            spread = math.fsum((a - mean) ** 2 for a in values) / (len(values) - 1)
            error = math.sqrt(spread / len(values))
        return {
            "problem": self.problem,
            "dim": self.dim,
            "facts": self.facts,
            "method": self.method,
            "seeds": len(self.outcomes),
            "separable": self.count("separable"),
            "not_separable": self.count("not_separable"),
            "undecided": self.count("undecided"),
            "accuracy_mean": mean,
            "accuracy_stderr": error,
            "seconds": self.seconds,
        }


def simulate(
    problem: str,
    *,
    dim: int,
    facts: int,
    method: str = "exact",
    seeds: int = 20,
    seed: int = 0,
    competitors: int | None = None,
    dim_out: int | None = None,
    rank_ratio: float | None = None,
    ensemble: str | Ensemble = "gaussian",
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> Cell:
    """Run `method` on `seeds` instances; instance i has the seed (`seed`, i).

    `rank_ratio` (Adam only) trains W = Q R^T of rank round(rank_ratio min(dim, dim_out)).
    `time_limit` holds for each instance of the exact method.

    Raises `InvalidInput` for unknown names and sizes out of range.

    >>> simulate("original", dim=4, facts=5, seeds=3).count("separable")
    3
    """
    if method not in METHODS:
        raise InvalidInput(
            f"the method is {method!r}; it must be one of {', '.join(METHODS)}; choose one"
        )
    check_count("seeds", seeds, 1)
    rank = None if rank_ratio is None else rank_of(rank_ratio, dim, dim_out or dim)
    if rank is not None and method != "adam":
        raise InvalidInput(
            f"the rank ratio {rank_ratio} was given with the method {method!r}; only adam trains "
            "memories of low rank; leave it out or take adam"
        )
    start = time.monotonic()
    outcomes = []
    for index in range(seeds):
        instance = make_problem(
            problem,
            dim=dim,
            facts=facts,
            competitors=competitors,
            dim_out=dim_out,
            ensemble=ensemble,
            seed=(seed, index),
        )
        outcomes.append(run_one(instance, method, rank=rank, time_limit=time_limit, seed=index))
        if progress is not None:
            progress(index + 1, seeds)
    return Cell(problem, dim, facts, method, outcomes, time.monotonic() - start)


def run_one(
    instance: Problem,
    method: str,
    *,
    rank: int | None = None,
    time_limit: float | None = None,
    seed: int = 0,
) -> Outcome:
    """One method on one instance; `seed` starts the training of low-rank memories."""
    start = time.monotonic()
    if method == "exact":
        decision = decide(instance, time_limit=time_limit)
        accuracy = 1.0 if decision.verdict == SEPARABLE else None
        return Outcome(decision.verdict, accuracy, time.monotonic() - start)
    learned: Learned
    if rank is not None:
        learned = low_rank(instance, rank=rank, seed=seed)
    else:
        learned = {"adam": adam, "hebbian": hebbian, "pseudo_inverse": pseudo_inverse}[method](
            instance
        )
    verdict = UNDECIDED
    if learned.accuracy == 1.0:
        claim = Solution(SEPARABLE, learned.weights, None, float("nan"), 0, 0.0)
        verdict = check(instance, claim).verdict
    return Outcome(verdict, learned.accuracy, time.monotonic() - start)
