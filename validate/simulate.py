"""One cell of an experiment: many instances of one size, one method, counted verdicts."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from replica.errors import InvalidInput
from validate.certificates import check
from validate.checks.statistics import clopper_pearson
from validate.decide import decide_many
from validate.embeddings import Ensemble
from validate.problems import Problem, make_problem
from validate.problems.base import check_count
from validate.solvers.adam import adam
from validate.solvers.hebbian import hebbian
from validate.solvers.learned import Learned
from validate.solvers.low_rank import low_rank, rank_of
from validate.solvers.pseudo_inverse import pseudo_inverse
from validate.solvers.solution import SEPARABLE, UNDECIDED, Solution

METHODS = ("exact", "adam", "newton", "hebbian", "pseudo_inverse")
LOW_RANK_METHODS = ("adam", "newton")
Progress = Callable[[int, int], None]
Steps = Callable[[int], None]
BATCH_ROWS = 60_000
"""Constraint rows decided together: small instances spend their time on calls, large on algebra."""


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

    @property
    def doubtful(self) -> int:
        """Instances that may count either way: undecided, or recalled by a rule without proof."""
        open_ = [o for o in self.outcomes if o.verdict == UNDECIDED]
        if self.method == "exact":
            return len(open_)
        # A rule that fails proves nothing about the instance, but it has failed.
        return sum(o.accuracy == 1.0 for o in open_)

    @property
    def interval(self) -> tuple[float, float]:
        """Exact 95 % interval of P(separable); for a rule, of P(it recalls every fact)."""
        n, yes = len(self.outcomes), self.count(SEPARABLE)
        return clopper_pearson(yes, n)[0], clopper_pearson(yes + self.doubtful, n)[1]

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
    steps: Steps | None = None,
) -> Cell:
    """Run `method` on `seeds` instances; instance i has the seed (`seed`, i).

    `rank_ratio` trains W = Q R^T of rank round(rank_ratio min(dim, dim_out)) by "adam" or by
    "newton", which trains nothing else. `time_limit` holds for each instance of the exact method;
    without one, small instances are decided in batches, whose instances then share their time
    equally. `progress(instances done, seeds)` and, within an exact decision,
    `steps(iterations)` are told how far it is.

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
    check_low_rank(method, rank_ratio)
    start = time.monotonic()
    outcomes: list[Outcome] = []
    rows = facts * (facts - 1 if competitors is None else competitors)
    batch = 1
    if method == "exact" and time_limit is None:
        batch = max(1, BATCH_ROWS // max(1, rows))
    while len(outcomes) < seeds:
        numbers = range(len(outcomes), min(len(outcomes) + batch, seeds))
        instances = [
            make_problem(
                problem,
                dim=dim,
                facts=facts,
                competitors=competitors,
                dim_out=dim_out,
                ensemble=ensemble,
                seed=(seed, index),
            )
            for index in numbers
        ]
        if len(instances) > 1:
            outcomes += run_exact(instances, steps=steps)
        else:
            outcomes.append(
                run_one(
                    instances[0],
                    method,
                    rank=rank,
                    time_limit=time_limit,
                    seed=_training_seed(seed, dim, facts, numbers[0]),
                    steps=steps,
                )
            )
        if progress is not None:
            progress(len(outcomes), seeds)
    return Cell(problem, dim, facts, method, outcomes, time.monotonic() - start)


def _training_seed(*entropy: int) -> int:
    """A seed of its own for the random starts of every instance of every size and root."""
    return int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0])


def check_low_rank(method: str, rank_ratio: float | None) -> None:
    """Refuse a rank ratio for a method that ignores it, and Newton's method without one."""
    if rank_ratio is not None and method not in LOW_RANK_METHODS:
        raise InvalidInput(
            f"the rank ratio {rank_ratio} was given with the method {method!r}; only "
            f"{' and '.join(LOW_RANK_METHODS)} train memories of low rank; leave it out or take "
            "one of them"
        )
    if method == "newton" and rank_ratio is None:
        raise InvalidInput(
            "the method newton was given without a rank ratio; it trains memories W = Q R^T of "
            "low rank only; give a rank ratio in (0, 1]"
        )


def run_exact(
    instances: Sequence[Problem], *, time_limit: float | None = None, steps: Steps | None = None
) -> list[Outcome]:
    """Proved verdicts of a batch of instances of one kind and shape."""
    start = time.monotonic()
    inner = None if steps is None else (lambda iterations, _left: steps(iterations))
    decisions = decide_many(instances, time_limit=time_limit, progress=inner)
    share = (time.monotonic() - start) / len(instances)
    return [Outcome(d.verdict, 1.0 if d.verdict == SEPARABLE else None, share) for d in decisions]


def run_one(
    instance: Problem,
    method: str,
    *,
    rank: int | None = None,
    time_limit: float | None = None,
    seed: int = 0,
    steps: Steps | None = None,
) -> Outcome:
    """One method on one instance; `seed` starts the training of low-rank memories."""
    if method == "exact":
        return run_exact([instance], time_limit=time_limit, steps=steps)[0]
    start = time.monotonic()
    learned: Learned
    if rank is not None:
        learned = low_rank(instance, rank=rank, method=method, seed=seed)
    else:
        learned = {"adam": adam, "hebbian": hebbian, "pseudo_inverse": pseudo_inverse}[method](
            instance
        )
    verdict = UNDECIDED
    if learned.accuracy == 1.0:
        claim = Solution(SEPARABLE, learned.weights, None, float("nan"), 0, 0.0)
        verdict = check(instance, claim).verdict
    return Outcome(verdict, learned.accuracy, time.monotonic() - start)
