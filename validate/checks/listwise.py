"""Listwise (tail-average) recall and halfspaces against Cover, Gardner and the tail average."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from replica.errors import InvalidInput
from validate.checks.base import Check, Record
from validate.checks.curves import curve_power, curve_test, half_point
from validate.checks.extrapolation import (
    DimensionCounts,
    focus,
    limit_test,
    straight_probit,
)
from validate.checks.statistics import clopper_pearson
from validate.checks.undecided import kindest, shift_band, undecided_remark
from validate.checks.units import Unit
from validate.plotting import SERIES, label_axes, new_figure, simulation_points, theory_line

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

    size = _one([cell.parameters for cell in cells])
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
    table += [_record(cell, *count) for cell, count in zip(cells, counts, strict=True)]
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


def check_list_threshold(
    cells: Sequence[ListCell],
    counts: Sequence[tuple[int, int]],
    *,
    seed: int,
    threshold: float | None = None,
    samples: int = 20_000,
) -> Check:
    """Hypothesis: the 50 % points tend to p/N = 1/[(1 + k^2) Phi(k) + k phi(k)] as N -> infinity.

    Arguments: cells of one criterion and parameter at two or more N, with (separable, undecided) in
    each; `threshold` replaces the predicted p/N (to plant a wrong one). k is the margin, or
    kappa_r for the tail average. Fits the ratio of 50 % point to prediction as 1 + a + b/N, widths
    free, and tests a = 0. Undecided instances are decided in the way that speaks least for
    rejection (`undecided.kindest`).
    """
    criterion = _one([cell.criterion for cell in cells])
    parameter = _one([cell.parameter for cell in cells])
    gamma = list_threshold(criterion, parameter) if threshold is None else threshold
    undecided = sum(u for _, u in counts)
    groups = _groups(cells, counts, gamma)
    test = kindest(
        [part for _, part, _ in groups],
        [unknown for _, _, unknown in groups],
        lambda model: limit_test(model, 0.0, seed=seed, samples=samples),
        lambda found: found.p_value,
    )
    table: list[Record] = []
    for size, part, unknown in groups:
        ratio, low, high = shift_band(part, unknown)
        common = {"criterion": criterion, "parameter": parameter, "parameters": size}
        table.append({"source": "theory", **common, "threshold": gamma})
        table.append(
            {
                "source": "simulation",
                **common,
                "threshold": ratio * gamma,
                "ratio": ratio,
                "ratio_low": low,
                "ratio_high": high,
            }
        )
    table += [_record(cell, *count) for cell, count in zip(cells, counts, strict=True)]
    low, high = test.interval(0)
    limit = 1.0 + float(test.free[0])
    power = test.power(NOTICED, 0.05, seed=seed + 1)
    what = (
        f"tail average over the best r = {parameter}"
        if criterion == "tail"
        else f"halfspace with margin {parameter}"
    )
    return Check(
        name=f"{criterion}_{parameter}",
        claim=f"{what[0].upper()}{what[1:]}: the threshold is p/N = {gamma:.4f} for large N.",
        source="arXiv:2605.05189; Gardner 1988" if criterion == "tail" else "Gardner 1988",
        quantity="threshold p/N, N → ∞",
        predicted=f"{gamma:.4f}",
        measured=f"{limit * gamma:.4f}",
        interval=f"[{(1.0 + low) * gamma:.4f}, {(1.0 + high) * gamma:.4f}]",
        sample_size=f"{sum(c.instances for c in cells)} certified instances at "
        f"{len({c.parameters for c in cells})} sizes",
        hypothesis="a = 0 in 1 + a + b/N, the ratio of measured to predicted 50 % point (score "
        "test, null simulated at the fitted b and widths)",
        p_value=test.p_value,
        alternative=f"threshold off by {100 * NOTICED:.0f} %",
        power_at=lambda level: test.power(NOTICED, level, seed=seed + 1),
        undecided=undecided,
        remark="Every verdict is proved: a finite family of sets of competitors without a solution "
        "rules out every memory, and tail averages of a memory are bounded with their rounding. "
        f"Against a threshold off by {100 * NOTICED:.0f} % the test alone, at level 0.05, has "
        f"power {power:.2f}." + (undecided_remark(undecided) if undecided else ""),
        table=table,
        settings={"power": power, "a": float(test.free[0]), "b": float(test.free[1])},
    )


def _groups(
    cells: Sequence[ListCell], counts: Sequence[tuple[int, int]], gamma: float
) -> list[tuple[int, DimensionCounts, list[int]]]:
    """N, its counts and its undecided instances, for every N."""
    groups = []
    for size in sorted({cell.parameters for cell in cells}):
        here = [(c, n) for c, n in zip(cells, counts, strict=True) if c.parameters == size]
        here.sort(key=lambda pair: pair[0].facts)
        part = DimensionCounts(
            straight_probit(gamma * size, 1.0 / size**0.5),
            [c.facts for c, _ in here],
            [s for _, (s, _) in here],
            [c.instances for c, _ in here],
            (1.0 / size,),
        )
        groups.append((size, part, [u for _, (_, u) in here]))
    return groups


def _record(cell: ListCell, separable: int, undecided: int) -> Record:
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


def _one(values: Sequence[Any]) -> Any:
    if len(set(values)) != 1:
        raise InvalidInput(f"cells of one kind are needed; got {sorted(set(values))}")
    return values[0]


def plot_list_thresholds(checks: Sequence[Check]) -> Figure:
    """Measured over predicted threshold against 1/N, with the fitted approach to N = infinity."""
    figure, axes = new_figure()
    edge = 0.0
    for number, check in enumerate(checks):
        rows = [r for r in check.table if "ratio" in r]
        x = [1.0 / r["parameters"] for r in rows]
        edge = max(edge, *x)
        name = "r" if rows[0]["criterion"] == "tail" else "margin"
        simulation_points(
            axes,
            [v * (1.0 + 0.02 * number) for v in x],
            [r["ratio"] for r in rows],
            [r["ratio_low"] for r in rows],
            [r["ratio_high"] for r in rows],
            series=number,
            label=f"{name} = {rows[0]['parameter']}",
        )
        grid = np.linspace(0.0, max(x), 40)
        fitted = 1.0 + check.settings["a"] + check.settings["b"] * grid
        axes.plot(grid, fitted, color=SERIES[number], linewidth=0.9, alpha=0.7)
    theory_line(axes, [0.0, 1.1 * edge], [1.0, 1.0], series=4, label=r"theory, $N\to\infty$")
    axes.set_xlim(0.0, 1.1 * edge)
    _set_height(axes, checks)
    label_axes(
        axes,
        "$1/N$",
        "threshold, measured / predicted",
        title="Listwise recall",
        legend="upper right",
    )
    return figure


def _set_height(axes: Any, checks: Sequence[Check]) -> None:
    rows = [r for check in checks for r in check.table if "ratio_low" in r]
    low, high = focus([(r["ratio"], r["ratio_low"], r["ratio_high"]) for r in rows], 1.0)
    axes.set_ylim(low, high + 0.3 * (high - low))
