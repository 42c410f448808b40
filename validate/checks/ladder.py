"""Measured success counts of the ladder Gaussian -> decoupled -> original.

Every verdict comes from `validate.certificates`, never from the solver; what cannot be proved
either way is counted as undecided.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from replica.errors import InvalidInput
from validate.checks.base import Record
from validate.checks.statistics import clopper_pearson

KIND_NAMES = {"gaussian": "Gaussian", "decoupled": "decoupled", "original": "original"}
Decide = Callable[[str, int, int, Sequence[tuple[int, ...]]], list[str]]


@dataclass(frozen=True)
class LadderPoint:
    """Certified counts of one cell: `separable` + `not_separable` + `undecided` = instances."""

    kind: str
    dim: int
    facts: int
    separable: int
    not_separable: int
    undecided: int
    seconds: float

    @property
    def instances(self) -> int:
        """All instances of the cell, undecided ones included."""
        return self.separable + self.not_separable + self.undecided

    def record(self) -> Record:
        """Tidy row: rate with its exact 95 % interval; undecided instances widen it both ways."""
        n = self.instances
        low = clopper_pearson(self.separable, n)[0]
        high = clopper_pearson(self.separable + self.undecided, n)[1]
        decided = n - self.undecided
        return {
            "source": "simulation",
            "problem": self.kind,
            "dim": self.dim,
            "facts": self.facts,
            "probability": self.separable / decided if decided else float("nan"),
            "low": low,
            "high": high,
            "separable": self.separable,
            "undecided": self.undecided,
            "instances": n,
        }


def certified_verdicts(
    kind: str, dim: int, facts: int, seeds: Sequence[tuple[int, ...]]
) -> list[str]:
    """Draw one instance a seed, solve all in one batch, recheck each.

    Every entry is separable, not_separable or undecided, as `validate.certificates` says.
    """
    from validate.certificates import check
    from validate.problems import make_problem
    from validate.solvers.exact import solve_many

    problems = [make_problem(kind, dim=dim, facts=facts, seed=seed) for seed in seeds]
    solutions = solve_many(problems)
    return [str(check(p, s).verdict) for p, s in zip(problems, solutions, strict=True)]


def measure(
    kind: str,
    dim: int,
    facts: int,
    instances: int,
    *,
    seed: int,
    batch: int = 10,
    decide: Decide = certified_verdicts,
    progress: Callable[[int], None] | None = None,
) -> LadderPoint:
    """Count the certified verdicts of `instances` independent instances; `seed` is their root.

    Instance i of a cell has seed (seed, facts, i), so cells are independent and the counts do not
    depend on `batch`. `progress` is told the number of instances just finished.
    """
    if instances < 1 or batch < 1:
        raise InvalidInput(
            f"instances is {instances} and batch {batch}; both must be at least 1; ask for more"
        )
    start = time.perf_counter()
    tally = {"separable": 0, "not_separable": 0, "undecided": 0}
    for first in range(0, instances, batch):
        numbers = range(first, min(instances, first + batch))
        for verdict in decide(kind, dim, facts, [(seed, facts, number) for number in numbers]):
            tally[verdict] += 1
        if progress is not None:
            progress(len(numbers))
    return LadderPoint(kind, dim, facts, **tally, seconds=time.perf_counter() - start)


def same_cell(points: Sequence[LadderPoint]) -> tuple[str, int]:
    """The one kind and dimension of `points`, which must be at growing, distinct loads."""
    kinds = {(point.kind, point.dim) for point in points}
    if len(kinds) != 1 or any(a.facts >= b.facts for a, b in pairwise(points)):
        raise InvalidInput(
            "a success curve needs points of one problem and one dimension at increasing loads; "
            f"got {sorted(kinds)}"
        )
    return next(iter(kinds))
