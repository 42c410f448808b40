"""Which cells a sweep consists of: dimensions x loads x seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from replica.errors import InvalidInput
from validate.embeddings import parse_ensemble
from validate.problems.base import check_count
from validate.problems.make import KINDS
from validate.simulate import check_low_rank
from validate.solvers.low_rank import rank_of
from validate.sweep.cell import METHODS, Cell

LOAD_UNITS = ("plogp", "ratio", "critical")
MOST_CELLS = 10_000_000
MOST_LOADS = 10_000


@dataclass(frozen=True)
class Plan:
    """The cells of a sweep in their order: dimensions, then facts, then instances."""

    cells: tuple[Cell, ...]

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """The distinct (dim, facts)."""
        return list(dict.fromkeys((cell.dim, cell.facts) for cell in self.cells))


def make_plan(
    problem: str,
    *,
    dims: Sequence[int],
    loads: Sequence[Fraction | float] | None = None,
    facts: Sequence[int] | None = None,
    method: str = "exact",
    seeds: int,
    root: int = 0,
    load_unit: str = "plogp",
    dim_out: int | None = None,
    competitors: int | None = None,
    ensemble: str = "gaussian",
    rank_ratio: float | None = None,
    time_limit: float | None = None,
    samples: int | None = None,
    threads: int = 1,
) -> Plan:
    """Cells of every dimension, load and instance index 0 .. seeds-1.

    Give either `loads` or `facts` (numbers p). Units of a load: "plogp" p log p / (d_in d_out),
    "ratio" p / (d_in d_out), "critical" p / p_c with p_c the largest p with p delta <= d_in d_out;
    p is the integer >= 2 whose load is nearest. Loads that give the same p are one cell.

    Raises `InvalidInput` for unknown names, numbers out of range, and a plan of no or too many
    cells.

    >>> plan = make_plan("original", dims=[10], loads=[0.5, 1.0], seeds=3)
    >>> plan.sizes, len(plan.cells)
    ([(10, 17), (10, 30)], 6)
    """
    _check_names(problem, method, load_unit)
    parse_ensemble(ensemble)
    for name, value, least in (("seeds", seeds, 1), ("seed", root, 0), ("threads", threads, 1)):
        check_count(name, value, least)
    if method == "sample":
        samples = check_count("samples", 100 if samples is None else samples, 8)
    elif samples is not None:
        raise InvalidInput(
            f"samples is {samples} but the method is {method!r}; only the method sample draws "
            "points; leave it out"
        )
    check_low_rank(method, rank_ratio)
    if time_limit is not None and not 0 < time_limit < math.inf:
        raise InvalidInput(
            f"the time limit is {time_limit} s; it must be positive and finite; leave it out for "
            "no limit"
        )
    if (loads is None) == (facts is None):
        raise InvalidInput("give either the loads or the numbers of facts, not both and not none")
    sizes: list[tuple[int, int, int]] = []
    for dim in dict.fromkeys(dims):
        check_count("dim", dim, 1)
        d_out = check_count("dim_out", dim if dim_out is None else dim_out, 1)
        if rank_ratio is not None:
            rank_of(rank_ratio, dim, d_out)
        counts = _counts(facts, loads, load_unit, dim, d_out, competitors)
        sizes += [(dim, d_out, p) for p in dict.fromkeys(counts)]
    if not sizes or len(sizes) * seeds > MOST_CELLS:
        raise InvalidInput(
            f"the sweep has {len(sizes) * seeds} cells; it must have between 1 and {MOST_CELLS}; "
            "change dims, loads or seeds"
        )
    return Plan(
        tuple(
            Cell(
                problem=problem,
                dim=dim,
                dim_out=d_out,
                facts=p,
                competitors=p - 1 if competitors is None else competitors,
                method=method,
                index=index,
                root=root,
                ensemble=ensemble,
                rank_ratio=rank_ratio,
                time_limit=time_limit,
                samples=samples,
                threads=threads,
            )
            for dim, d_out, p in sizes
            for index in range(seeds)
        )
    )


def facts_of_load(load: Fraction | float, unit: str, scale: int) -> int:
    """The integer p >= 2 whose p log p / scale ("plogp") or p / scale is nearest to `load`.

    Of two equally near ones the smaller. Raises `InvalidInput` unless 0 < load < 10^6.

    >>> facts_of_load(1.0, "plogp", 400)
    89
    """
    if not (load > 0 and load < 10**6):
        raise InvalidInput(
            f"the load is {float(load)}; it must be positive and below 10^6; give such a number"
        )
    target = float(load) * scale
    if unit != "plogp":
        return max(2, math.ceil(Fraction(load) * scale - Fraction(1, 2)))

    def excess(p: int) -> float:
        return p * math.log(p) - target

    low, high = 2, 3
    while excess(high) < 0:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if excess(middle) < 0 else (low, middle)
    return low if abs(excess(low)) <= abs(excess(high)) else high


def parse_loads(text: str) -> list[Fraction]:
    """Loads from `0.6:1.2:0.05` (first, last, step; the last included) or `0.6,0.8,1`; exact.

    >>> [float(x) for x in parse_loads("0.6:0.75:0.05")]
    [0.6, 0.65, 0.7, 0.75]
    >>> [float(x) for x in parse_loads("0.5,1")]
    [0.5, 1.0]
    """
    found: list[Fraction] = []
    for part in text.split(","):
        numbers = [_number(piece, text) for piece in part.split(":")]
        if len(numbers) == 1:
            found += numbers
            continue
        if len(numbers) != 3 or numbers[2] <= 0 or numbers[1] < numbers[0]:
            raise InvalidInput(
                f"the loads {text!r} hold {part!r}; a range is FIRST:LAST:STEP with FIRST <= LAST "
                "and STEP > 0, as in 0.6:1.2:0.05; write it so"
            )
        first, last, step = numbers
        steps = (last - first) // step
        if steps >= MOST_LOADS:
            raise InvalidInput(
                f"the range {part!r} holds {steps + 1} loads; at most {MOST_LOADS} are allowed; "
                "take a larger step"
            )
        found += [first + k * step for k in range(steps + 1)]
    return found


def parse_counts(text: str, name: str) -> list[int]:
    """Whole numbers from `10,20,40`.

    >>> parse_counts("10,20", "dims")
    [10, 20]
    """
    try:
        return [int(piece) for piece in text.split(",")]
    except ValueError:
        raise InvalidInput(
            f"{name} is {text!r}; it must be whole numbers with commas between, as in 10,20,40; "
            "write it so"
        ) from None


def _number(piece: str, text: str) -> Fraction:
    try:
        return Fraction(piece.strip())
    except (ValueError, ZeroDivisionError):
        raise InvalidInput(
            f"the loads {text!r} hold {piece!r}, which is no number; write 0.6:1.2:0.05 or 0.6,0.8"
        ) from None


def _counts(
    facts: Sequence[int] | None,
    loads: Sequence[Fraction | float] | None,
    unit: str,
    dim: int,
    dim_out: int,
    competitors: int | None,
) -> list[int]:
    if facts is not None:
        return [check_count("facts", p, 2) for p in facts]
    scale = dim * dim_out
    if unit == "critical":
        from numerics.cone import critical_facts

        scale = critical_facts(dim, dim_out=dim_out, competitors=competitors)
    return [facts_of_load(load, unit, scale) for load in loads or ()]


def _check_names(problem: str, method: str, load_unit: str) -> None:
    given: tuple[tuple[str, Any, tuple[str, ...]], ...] = (
        ("problem", problem, KINDS),
        ("method", method, METHODS),
        ("load unit", load_unit, LOAD_UNITS),
    )
    for name, value, allowed in given:
        if value not in allowed:
            raise InvalidInput(
                f"the {name} is {value!r}; it must be one of {', '.join(allowed)}; choose one"
            )
