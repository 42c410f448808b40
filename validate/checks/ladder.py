"""Measured success counts of the ladder Gaussian -> decoupled -> original.

Every verdict comes from `validate.certificates`, never from the solver; what cannot be proved
either way is counted as undecided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from replica.errors import InvalidInput
from validate.checks.base import Record
from validate.checks.statistics import clopper_pearson

KIND_NAMES = {"gaussian": "Gaussian", "decoupled": "decoupled", "original": "original"}


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


def tally_point(
    kind: str, dim: int, facts: int, verdicts: Sequence[str], seconds: float
) -> LadderPoint:
    """Count verdicts; a verdict of another name is refused.

    >>> tally_point("gaussian", 3, 4, ["separable", "undecided"], 0.1).instances
    2
    """
    tally = {"separable": 0, "not_separable": 0, "undecided": 0}
    for verdict in verdicts:
        if verdict not in tally:
            raise InvalidInput(
                f"the verdict {verdict!r} is unknown; it must be one of {', '.join(tally)}"
            )
        tally[verdict] += 1
    return LadderPoint(kind, dim, facts, **tally, seconds=seconds)


def same_cell(points: Sequence[LadderPoint]) -> tuple[str, int]:
    """The one kind and dimension of `points`, which must be at growing, distinct loads."""
    kinds = {(point.kind, point.dim) for point in points}
    if len(kinds) != 1 or any(a.facts >= b.facts for a, b in pairwise(points)):
        raise InvalidInput(
            "a success curve needs points of one problem and one dimension at increasing loads; "
            f"got {sorted(kinds)}"
        )
    return next(iter(kinds))
