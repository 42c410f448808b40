"""Listwise recall and halfspaces with a margin: do 50 % points tend to the predicted threshold?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray
from scipy import special

from replica.errors import InvalidInput
from validate.checks.base import Check, Record
from validate.checks.extrapolation import (
    Box,
    DimensionCounts,
    LimitTest,
    ShiftModel,
    focus,
    limit_test,
)
from validate.checks.listwise import ListCell, count_record, list_threshold, one_kind
from validate.checks.listwise_law import half_facts, law_curve, margin_volumes, mean_dimension
from validate.checks.undecided import shift_band, undecided_remark, ways_to_decide
from validate.plotting import (
    SERIES,
    label_axes,
    limit_bar,
    new_figure,
    simulation_points,
    theory_line,
)

NOTICED = 0.04
"""The named alternative: the threshold wrong by this share."""
BOX = Box((-0.01, 0.01), (0.9, 1.1))
"""What a finite N may do beyond the law of finite size: move the 50 % point by 1 %, change the
width of the curve by 10 %.

By theory nothing: `listwise_law` is exact (at margin 0 the 50 % point is 2 N, so b = 0 there; at
margin 1/2 it lies 0.17/N above the limit, and the law says so). The box only covers the law's own
error, v_k of a tail average being projected: 0.3 % of delta in the quick preset, three standard
errors of which make 1 %. Nothing in it was fitted to instances.
"""


def check_list_threshold(
    cells: Sequence[ListCell],
    counts: Sequence[tuple[int, int]],
    *,
    seed: int,
    volumes: Mapping[int, ArrayLike] | None = None,
    threshold: float | None = None,
    samples: int = 20_000,
) -> Check:
    """Hypothesis: the 50 % points tend to p/N = 1/[(1 + k^2) Phi(k) + k phi(k)] as N -> infinity.

    Arguments: cells of one criterion and parameter at two or more N, with (separable, undecided) in
    each; `volumes` v_k by N (of the tail average: projected; of a margin: left out, for they are
    the same at every N); `threshold` replaces the predicted p/N (to plant a wrong one). k is the
    margin, or kappa_r for the tail average.

    Every curve is the exact one of that N, its p multiplied by threshold times delta, delta the
    mean of K at N = infinity by quadrature: 1 if the threshold is right. Fits the ratio of measured
    to predicted 50 % point as 1 + a + b/N with b/N and the widths in `BOX` and tests a = 0: score
    test and lack of fit share the level, nulls simulated. Undecided instances are decided in the
    way that speaks least for rejection (`undecided.ways_to_decide`).
    """
    criterion = one_kind([cell.criterion for cell in cells])
    parameter = one_kind([cell.parameter for cell in cells])
    gamma = list_threshold(criterion, parameter) if threshold is None else threshold
    at_infinity = margin_volumes(effective_margin(criterion, parameter))
    undecided = sum(u for _, u in counts)
    groups = []
    for size in sorted({cell.parameters for cell in cells}):
        law = _volumes_at(criterion, size, at_infinity, volumes)
        curve = law_curve(law, size, gamma * mean_dimension(at_infinity))
        groups.append((size, *_group(size, curve, cells, counts)))
    test = _kindest([g[1] for g in groups], [g[2] for g in groups], seed, samples)
    table: list[Record] = []
    for size, part, unknown in groups:
        expected = half_facts(part.curve) / (gamma * size)
        common = {"criterion": criterion, "parameter": parameter, "parameters": size}
        table.append({"source": "theory", **common, "threshold": gamma, "expected": expected})
        ratio, low, high = (expected * v for v in shift_band(part, unknown))
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
    table += [count_record(cell, *count) for cell, count in zip(cells, counts, strict=True)]
    low, high = test.interval(0)
    limit = 1.0 + float(test.free[0])
    powers = {off: test.power(off, 0.05, seed=seed + 1) for off in (-NOTICED, NOTICED)}
    what = (
        f"tail average over the best r = {parameter}"
        if criterion == "tail"
        else f"halfspace with margin {parameter}"
    )
    return Check(
        name=f"{criterion}_{parameter}",
        claim=f"{what[0].upper()}{what[1:]}: the threshold is p/N = {gamma:.4f} for large N, and "
        "at every N measured the 50 % point is that of the kinematic formula within 1 %.",
        source="arXiv:2605.05189; Gardner 1988; conic kinematic formula"
        if criterion == "tail"
        else "Gardner 1988; conic kinematic formula",
        quantity="threshold p/N, N → ∞",
        predicted=f"{gamma:.4f}",
        measured=f"{limit * gamma:.4f}",
        interval=f"[{(1.0 + low) * gamma:.4f}, {(1.0 + high) * gamma:.4f}]",
        sample_size=f"{sum(c.instances for c in cells)} certified instances at "
        f"{len({c.parameters for c in cells})} sizes",
        hypothesis="a = 0 in 1 + a + b/N, the ratio of the measured 50 % point to that of the law "
        "at this N, with |b/N| at most 1 % and widths within 10 % of the law's (score test and "
        "lack of fit, twice the smaller p; nulls simulated at the fitted b and widths)",
        p_value=test.p_value,
        alternative=f"threshold off by {100 * NOTICED:.0f} %, up or down (the lesser power)",
        power_at=lambda level: min(
            test.power(off, level, seed=seed + 1) for off in (-NOTICED, NOTICED)
        ),
        undecided=undecided,
        remark="Every verdict is proved: a finite family of sets of competitors without a solution "
        "rules out every memory, and tail averages of a memory are bounded with their rounding. "
        f"Against a threshold off by {100 * NOTICED:.0f} % the test alone, at level 0.05, has "
        f"power {min(powers.values()):.2f}. p of the score {test.p_score:.2g}, p of the fit "
        f"{test.p_fit:.2g}." + (undecided_remark(undecided) if undecided else ""),
        table=table,
        settings={
            "power": min(powers.values()),
            "a": float(test.free[0]),
            "limit": [1.0 + low, limit, 1.0 + high],
        },
    )


def effective_margin(criterion: str, parameter: str) -> float:
    """The margin, or kappa_r = phi(Phi^{-1}(1 - r))/r of the tail average, in floats.

    >>> round(effective_margin("tail", "0.5"), 6), effective_margin("margin", "0.5")
    (0.797885, 0.5)
    """
    if criterion != "tail":
        return float(parameter or 0.0)
    r = float(parameter)
    return math.exp(-(float(special.ndtri(1.0 - r)) ** 2) / 2.0) / math.sqrt(2.0 * math.pi) / r


def _volumes_at(
    criterion: str,
    size: int,
    at_infinity: NDArray[np.float64],
    volumes: Mapping[int, ArrayLike] | None,
) -> NDArray[np.float64]:
    if criterion != "tail":
        return at_infinity
    if volumes is None or size not in volumes:
        raise InvalidInput(
            f"the volumes of the tail average at N = {size} are missing; project on its cone and "
            "give them in volumes"
        )
    return np.asarray(volumes[size], dtype=float)


def _group(
    size: int, curve: Any, cells: Sequence[ListCell], counts: Sequence[tuple[int, int]]
) -> tuple[DimensionCounts, list[int]]:
    """Counts at one N, and its undecided instances."""
    here = [(c, n) for c, n in zip(cells, counts, strict=True) if c.parameters == size]
    here.sort(key=lambda pair: pair[0].facts)
    part = DimensionCounts(
        curve,
        [c.facts for c, _ in here],
        [s for _, (s, _) in here],
        [c.instances for c, _ in here],
        (1.0 / size,),
    )
    return part, [u for _, (_, u) in here]


def _kindest(
    data: Sequence[DimensionCounts], undecided: Sequence[Sequence[int]], seed: int, samples: int
) -> LimitTest:
    """The test with the largest p-value over `ways_to_decide` the instances, all inside `BOX`."""
    ends = np.cumsum([len(d.facts) for d in data])[:-1]

    def model(counts: NDArray[np.int64]) -> ShiftModel:
        parts = np.split(counts, ends)
        return ShiftModel(
            [replace(d, successes=part.tolist()) for d, part in zip(data, parts, strict=True)], BOX
        )

    def expected_under(counts: NDArray[np.int64]) -> NDArray[np.float64]:
        tried = model(counts)
        held = tried.fit(tried.successes, fixed={0: 0.0})
        return np.asarray(tried.trials * tried.probabilities(held))

    ways = ways_to_decide(
        np.concatenate([d.successes for d in data]), np.concatenate(list(undecided)), expected_under
    )
    tests = (limit_test(model(counts), 0.0, seed=seed, samples=samples) for counts in ways)
    return max(tests, key=lambda test: test.p_value)


def plot_list_thresholds(checks: Sequence[Check]) -> Figure:
    """50 % point over the threshold for infinite N against 1/N: law of finite size and measured."""
    figure, axes = new_figure()
    edge = 0.0
    for number, check in enumerate(checks):
        rows = [r for r in check.table if "ratio" in r]
        law = [r for r in check.table if "expected" in r]
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
        axes.plot(
            [*(1.0 / r["parameters"] for r in law), 0.0],
            [*(r["expected"] for r in law), 1.0],
            color=SERIES[number],
            linewidth=1.2,
        )
        limit_bar(axes, number, check.settings["limit"], series=number)
    theory_line(axes, [0.0, 1.1 * edge], [1.0, 1.0], series=4, label=r"theory, $N\to\infty$")
    axes.set_xlim(0.0, 1.1 * edge)
    shown = [r for check in checks for r in check.table if "ratio_low" in r]
    low, high = focus([(r["ratio"], r["ratio_low"], r["ratio_high"]) for r in shown], 1.0)
    axes.set_ylim(low, high + 0.3 * (high - low))
    label_axes(
        axes,
        "$1/N$",
        r"50 % point over the threshold for $N\to\infty$",
        title="Listwise recall (lines: law of finite size)",
        legend="upper left",
    )
    return figure
