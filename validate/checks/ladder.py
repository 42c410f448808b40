"""Measured success counts of the ladder Gaussian -> decoupled -> original.

Every verdict comes from `validate.certificates`, never from the solver; what cannot be proved
either way is counted as undecided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from replica.errors import InvalidInput
from validate.checks.base import Record
from validate.checks.statistics import clopper_pearson
from validate.checks.units import Unit

KIND_NAMES = {"gaussian": "Gaussian", "decoupled": "decoupled", "original": "original"}


@dataclass(frozen=True)
class Cell:
    """One load point of one problem: `instances` verdicts wanted."""

    kind: str
    dim: int
    facts: int
    instances: int


def largest_batch(cell: Cell, entries: int = 6_000_000) -> int:
    """Instances that fit in `entries` doubles: loky restarts workers that grow by 300 MB.

    >>> largest_batch(Cell("gaussian", 20, 87, 10)), largest_batch(Cell("original", 20, 87, 10))
    (1, 689)
    """
    rows = {"gaussian": cell.facts * cell.dim, "decoupled": cell.facts}.get(cell.kind, 5)
    return max(1, entries // (rows * cell.facts * cell.dim))


@dataclass(frozen=True)
class LadderPoint:
    """Certified counts of one cell: `separable` + `not_separable` + `undecided` = instances."""

    kind: str
    dim: int
    facts: int
    separable: int
    not_separable: int
    undecided: int
    seconds: float = 0.0

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
    kind: str, dim: int, facts: int, verdicts: Sequence[str], seconds: float = 0.0
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


def instance_work(kind: str, dim: int) -> float:
    """Rough seconds for one certified instance at criticality, for progress only."""
    return {"gaussian": 0.6, "decoupled": 0.07}.get(kind, 0.05) * (dim / 20.0) ** 3.5


def ladder_units(cells: Sequence[Cell], seed: int, batch: int = 10) -> list[Unit]:
    """The instances of all cells as units of at most `batch` instances, for `ladder_points`.

    Instance i of a cell has seed (seed, facts, i), whatever the batch.

    >>> [unit.arguments["first"] for unit in ladder_units([Cell("original", 4, 6, 5)], 0, batch=2)]
    [0, 2, 4]
    """
    return [
        Unit(
            "validate.checks.ladder:measure_verdicts",
            {
                "kind": cell.kind,
                "dim": cell.dim,
                "facts": cell.facts,
                "seed": seed,
                "first": first,
                "count": min(step, cell.instances - first),
            },
            work=instance_work(cell.kind, cell.dim) * min(step, cell.instances - first),
        )
        for cell in cells
        for step in [min(batch, largest_batch(cell))]
        for first in range(0, cell.instances, step)
    ]


def measure_verdicts(
    kind: str, dim: int, facts: int, seed: int, first: int, count: int
) -> dict[str, Any]:
    """Verdicts of the instances with seeds (seed, facts, i), first <= i < first + count.

    >>> measure_verdicts("original", 6, 6, seed=0, first=0, count=2)["verdicts"]
    ['separable', 'separable']
    """
    seeds = [(seed, facts, first + i) for i in range(count)]
    verdicts = certified_verdicts(kind, dim, facts, seeds)
    return {"verdicts": verdicts}


def ladder_points(
    cells: Sequence[Cell], units: Sequence[Unit], answers: Sequence[Any]
) -> list[LadderPoint]:
    """The counts of every cell from the `answers` of its `ladder_units`, in the order of `cells`.

    Raises `InvalidInput` if a cell's instances are not all there.

    >>> cells = [Cell("original", 6, 6, 2)]
    >>> units = ladder_units(cells, seed=0)
    >>> ladder_points(cells, units, [unit.run() for unit in units])[0].separable
    2
    """
    verdicts: dict[tuple[str, int, int], list[str]] = {}
    for unit, answer in zip(units, answers, strict=True):
        key = (unit.arguments["kind"], unit.arguments["dim"], unit.arguments["facts"])
        verdicts.setdefault(key, []).extend(answer["verdicts"])
    points = []
    for cell in cells:
        key = (cell.kind, cell.dim, cell.facts)
        found = verdicts.get(key, [])
        if len(found) != cell.instances:
            raise InvalidInput(
                f"{len(found)} verdicts of the {cell.kind} problem at d = {cell.dim}, "
                f"p = {cell.facts} were given for a cell of {cell.instances}; give the answers of "
                "its own units"
            )
        points.append(tally_point(*key, found))
    return points


def same_cell(points: Sequence[LadderPoint]) -> tuple[str, int]:
    """The one kind and dimension of `points`, which must be at growing, distinct loads."""
    kinds = {(point.kind, point.dim) for point in points}
    if len(kinds) != 1 or any(a.facts >= b.facts for a, b in pairwise(points)):
        raise InvalidInput(
            "a success curve needs points of one problem and one dimension at increasing loads; "
            f"got {sorted(kinds)}"
        )
    return next(iter(kinds))
