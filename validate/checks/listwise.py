"""Certified instances of listwise (tail-average) recall and halfspaces; Cover's law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from replica.errors import InvalidInput
from validate.checks.base import Check, Record
from validate.checks.curves import curve_power, curve_test, half_point
from validate.checks.statistics import clopper_pearson
from validate.checks.undecided import undecided_remark
from validate.checks.units import Unit

CRITERIA = ("cover", "margin", "tail")
NOTICED = 0.04
"""The named alternative: the threshold wrong by this share."""


@dataclass(frozen=True)
class ListCell:
    """One load: N = `parameters` entries of w, p facts, instances.

    `criterion`: cover (one competitor), margin (`parameter` = the margin, as text) or tail
    (`parameter` = r, as text, with M = about 2 N competitors).
    """

    criterion: str
    parameter: str
    parameters: int
    facts: int
    instances: int

    @property
    def competitors(self) -> int:
        """M: the multiple of 10 next above 2 N, so that r M is whole for r = 0.1, 0.2, ..."""
        return 10 * -(-2 * self.parameters // 10)


def measure_listwise(
    criterion: str,
    parameter: str,
    parameters: int,
    facts: int,
    competitors: int,
    seed: int,
    first: int,
    count: int,
) -> dict[str, Any]:
    """Certified verdicts of the instances (seed, criterion, N, p, i), first <= i < first + count.

    >>> measure_listwise("cover", "", 9, 4, 1, seed=0, first=0, count=3)["separable"]
    3
    """
    from validate.checks.listwise_instances import (
        gaussian_rows,
        halfspace_verdict,
        tail_average_verdict,
    )

    if criterion not in CRITERIA:
        raise InvalidInput(
            f"the criterion is {criterion!r}; it must be one of {', '.join(CRITERIA)}; choose one"
        )
    verdicts = []
    for i in range(first, first + count):
        key = (seed, CRITERIA.index(criterion), parameters, facts, i)
        if criterion == "tail":
            scores = gaussian_rows(key, (facts, competitors + 1, parameters))
            verdicts.append(tail_average_verdict(scores, round(float(parameter) * competitors)))
        else:
            rows = gaussian_rows(key, (facts, parameters))
            verdicts.append(halfspace_verdict(rows, float(parameter or 0.0)))
    return {
        "separable": verdicts.count("separable"),
        "undecided": verdicts.count("undecided"),
        "count": count,
    }


def list_units(cells: Sequence[ListCell], seed: int, batch: int = 10) -> list[Unit]:
    """The instances of all cells as units of at most `batch` instances."""
    rate = {"cover": 0.02, "margin": 0.08, "tail": 0.2}
    return [
        Unit(
            "validate.checks.listwise:measure_listwise",
            {
                "criterion": cell.criterion,
                "parameter": cell.parameter,
                "parameters": cell.parameters,
                "facts": cell.facts,
                "competitors": cell.competitors if cell.criterion == "tail" else 1,
                "seed": seed,
                "first": first,
                "count": min(batch, cell.instances - first),
            },
            work=rate[cell.criterion]
            * (cell.parameters / 64.0) ** 1.5
            * min(batch, cell.instances - first),
        )
        for cell in cells
        for first in range(0, cell.instances, batch)
    ]


def list_counts(
    cells: Sequence[ListCell], units: Sequence[Unit], answers: Sequence[Any]
) -> list[tuple[int, int]]:
    """(separable, undecided) of every cell, from the answers of its units."""
    names = ("criterion", "parameter", "parameters", "facts")
    tally = {tuple(getattr(cell, name) for name in names): [0, 0, 0] for cell in cells}
    for unit, answer in zip(units, answers, strict=True):
        entry = tally[tuple(unit.arguments[name] for name in names)]
        for slot, name in enumerate(("separable", "undecided", "count")):
            entry[slot] += answer[name]
    counts = []
    for cell in cells:
        separable, undecided, seen = tally[tuple(getattr(cell, name) for name in names)]
        if seen != cell.instances:
            raise InvalidInput(
                f"the answers hold {seen} instances of a cell of {cell.instances}; give the "
                "answers of its own units"
            )
        counts.append((separable, undecided))
    return counts


def list_threshold(criterion: str, parameter: str) -> float:
    """The predicted critical p/N for N -> infinity.

    >>> round(list_threshold("tail", "0.5"), 6), list_threshold("cover", "")
    (0.657713, 2.0)
    """
    from numerics.certify import certify
    from numerics.tail_average import exact_number, rational, tail_average_capacity
    from replica.catalogue import model

    if criterion == "tail":
        return float(tail_average_capacity(parameter).to_float_lossy())
    margin = exact_number(parameter or "0", "margin", "a number >= 0")
    capacity = model("spherical", "halfspace", margin=rational(margin)).capacity
    return float(certify(capacity, 15, real=True).to_float_lossy())


def list_loads(
    threshold: float, parameters: int, targets: Sequence[float] = (-1.0, 0.0, 1.0)
) -> list[int]:
    """Numbers of facts at `targets` widths above threshold N, one width being about 1/sqrt(N)."""
    centre = threshold * parameters
    return sorted({max(2, round(centre * (1.0 + t / parameters**0.5))) for t in targets})


def check_cover(
    cells: Sequence[ListCell],
    counts: Sequence[tuple[int, int]],
    *,
    seed: int,
    samples: int = 20_000,
) -> Check:
    """Hypothesis: separable counts are Binomial(n, 2^{1-p} sum_{i<N} binom(p-1, i)) (Cover 1965).

    One N; the probability comes from the conic route of `numerics.cone` at M = 1.
    """
    from numerics.cone import success_probability

    size = one_kind([cell.parameters for cell in cells])
    facts, trials = [c.facts for c in cells], [c.instances for c in cells]

    def law(factor: float) -> list[float]:
        # Phi^{-1}(P) is close to linear in p: read off at p / factor, between integers
        from scipy import special

        values = []
        for p in facts:
            low = int(p / factor)
            ends = [
                special.ndtri(
                    float(success_probability(size, q, 1, dim_out=1, digits=15).to_float_lossy())
                )
                for q in (low, low + 1)
            ]
            values.append(float(special.ndtr(np.interp(p / factor, (low, low + 1), ends))))
        return values

    exact = law(1.0)
    undecided = sum(u for _, u in counts)
    test = curve_test(
        [s for s, _ in counts],
        trials,
        exact,
        seed=seed,
        samples=samples,
        undecided=[u for _, u in counts],
    )
    wrong = law(1.0 + NOTICED)

    def power(level: float) -> float:
        return curve_power(test, trials, exact, wrong, level=level, seed=seed + 1)

    fit = half_point(facts, [s for s, _ in counts], trials, undecided=[u for _, u in counts])
    table: list[Record] = [
        {"source": "theory", "criterion": "cover", "facts": p, "probability": v}
        for p, v in zip(facts, exact, strict=True)
    ]
    table += [count_record(cell, *count) for cell, count in zip(cells, counts, strict=True)]
    return Check(
        name=f"cover_N{size}",
        claim=f"One competitor, N = {size} parameters: the success curve is Cover's count of "
        "separable dichotomies.",
        source="Cover 1965; Gardner 1988 at margin 0",
        quantity="50 % point p",
        predicted=f"{2 * size}",
        measured=f"{fit.value:.2f}",
        interval=f"[{fit.low:.2f}, {fit.high:.2f}]",
        sample_size=f"{sum(trials)} certified instances at {len(facts)} loads",
        hypothesis="counts are binomial with Cover's probability at every load (score test for "
        "shift and width, simulated null)",
        p_value=test.p_value,
        alternative=f"threshold off by {100 * NOTICED:.0f} %",
        power_at=power,
        undecided=undecided,
        remark=undecided_remark(undecided).strip() if undecided else "",
        table=table,
        settings={"facts": facts, "instances": trials},
    )


def count_record(cell: ListCell, separable: int, undecided: int) -> Record:
    """A row of a tidy table: the counts of one cell with their exact interval."""
    return {
        "source": "simulation",
        "criterion": cell.criterion,
        "parameter": cell.parameter,
        "parameters": cell.parameters,
        "facts": cell.facts,
        "separable": separable,
        "undecided": undecided,
        "instances": cell.instances,
        "probability": separable / max(1, cell.instances - undecided),
        "low": clopper_pearson(separable, cell.instances)[0],
        "high": clopper_pearson(separable + undecided, cell.instances)[1],
    }


def one_kind(values: Sequence[Any]) -> Any:
    """The value that all of them share. Raises `InvalidInput` if they differ."""
    if len(set(values)) != 1:
        raise InvalidInput(f"cells of one kind are needed; got {sorted(set(values))}")
    return values[0]
