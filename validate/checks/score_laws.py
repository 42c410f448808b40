"""Scores of the maximum-margin memory against the laws of `numerics.scores`.

Gaussian problem, W of unit norm and largest least margin, p/N and M fixed: as N grows the margin,
the target score y_0, the best competitor and the number K of active competitors of a fact follow
the projection on {y_0 >= max_rho y_rho + m}, with m the root of p delta_m = N. Every law is tested
as the limit N -> infinity of instance means (`finite_size`).

Decoupled and original problem: W can trade the norm of W e_mu, so each fact's scores are divided by
it, the standard deviation of a competing score, before they are compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from replica.errors import InvalidInput
from validate.checks.base import Check, Record
from validate.checks.finite_size import (
    Cell,
    Limit,
    WaldTest,
    cell_of,
    distance,
    extrapolate,
    summarise,
    wald_test,
)
from validate.plotting import INK, SERIES, label_axes, new_figure, simulation_points, theory_line

Floats = NDArray[np.float64]
SCALES = ("margin", "target score", "target score squared", "best competitor")
BATCH = 25
SHOWN = {"gaussian": "Gaussian", "decoupled": "decoupled", "original": "original"}


@dataclass(frozen=True)
class Layout:
    """What is measured on every instance, in this order.

    `SCALES`; the shares of facts with K = 0, ..., `shares` - 1; those with y_0 <= y, y in
    `target_grid`; those with best competitor <= b, b in `best_grid`.
    """

    shares: int
    target_grid: tuple[float, ...]
    best_grid: tuple[float, ...]

    @property
    def active(self) -> range:
        """Columns of the shares of K."""
        return range(len(SCALES), len(SCALES) + self.shares)

    @property
    def target(self) -> range:
        """Columns of the distribution function of the target score."""
        return range(self.active.stop, self.active.stop + len(self.target_grid))

    @property
    def best(self) -> range:
        """Columns of the distribution function of the best competitor."""
        return range(self.target.stop, self.target.stop + len(self.best_grid))


def measure_scores(
    kind: str,
    dim: int,
    facts: int,
    competitors: int,
    count: int,
    seed: Sequence[int],
    shares: int,
    target_grid: Sequence[float],
    best_grid: Sequence[float],
) -> dict[str, Any]:
    """`summarise` of the observables of `Layout` over `count` maximum-margin memories.

    Instance i has seed (*seed, i); instances without a perfect memory are counted in `missed`, the
    largest relative gap between the margin and its proved upper bound is `gap`. A competitor is
    active when its multiplier exceeds its slack (in units of the margin), which strict
    complementarity tells apart.
    """
    from validate.problems import make_problem
    from validate.solvers.exact import solve_many

    layout = Layout(shares, tuple(target_grid), tuple(best_grid))
    rows: list[Floats] = []
    missed, gap = 0, 0.0
    for first in range(0, count, BATCH):
        problems = [
            make_problem(kind, dim=dim, facts=facts, competitors=competitors, seed=(*seed, i))
            for i in range(first, min(count, first + BATCH))
        ]
        for problem, found in zip(problems, solve_many(problems, maximum_margin=True), strict=True):
            if found.verdict != "separable" or found.weights is None or found.multipliers is None:
                missed += 1
                continue
            bound = float(problem.adjoint(found.multipliers).norm() / found.multipliers.sum())
            gap = max(gap, bound / found.margin - 1.0)
            scores = problem.scores(found.weights).numpy(force=True)
            slack = scores[:, :1] - scores[:, 1:] - found.margin
            active = found.multipliers.numpy(force=True) * found.margin > slack
            if kind != "gaussian":
                inputs = problem.inputs  # type: ignore[attr-defined]
                answers = (inputs @ found.weights.T).numpy(force=True)
                scores = scores / np.linalg.norm(answers, axis=1, keepdims=True)
            rows.append(observables(scores, active.sum(axis=1), layout))
    if not rows:
        raise InvalidInput(
            f"none of the {count} {kind} instances with d = {dim}, p = {facts} has a perfect "
            "memory; take fewer facts"
        )
    return {**summarise(rows), "missed": missed, "gap": gap}


def observables(scores: Floats, active: NDArray[np.int64], layout: Layout) -> Floats:
    """One instance's means over facts; scores (p, M + 1), target first, active (p,).

    >>> layout = Layout(2, (0.5,), (0.5,))
    >>> observables(np.array([[2.0, 1.0], [0.0, -1.0]]), np.array([1, 0]), layout).tolist()
    [1.0, 1.0, 2.0, 0.0, 0.5, 0.5, 0.5, 0.5]
    """
    target, best = scores[:, 0], scores[:, 1:].max(axis=1)
    return np.array(
        [
            float((target - best).min()),
            target.mean(),
            (target**2).mean(),
            best.mean(),
            *((active == k).mean() for k in range(layout.shares)),
            *((target <= y).mean() for y in layout.target_grid),
            *((best <= b).mean() for b in layout.best_grid),
        ]
    )


@lru_cache(maxsize=32)
def predicted(dim: int, facts: int, competitors: int, layout: Layout) -> tuple[float, ...]:
    """The laws at M, p/d^2, in the order of `Layout`, from certified numbers.

    >>> law = predicted(16, 45, 44, Layout(1, (), ()))
    >>> [round(value, 3) for value in law[:2]]
    [0.577, 1.905]
    """
    from numerics.scores import CapacityScores, largest_margin

    margin = largest_margin(dim, facts, competitors, digits=10).to_float_lossy()
    laws = CapacityScores(competitors, Fraction(margin).limit_denominator(10**8))
    mean, spread = laws.target_mean(7).to_float_lossy(), laws.target_std(7).to_float_lossy()
    volumes = [volume.to_float_lossy() for volume in laws.active_law(7).volumes]
    volumes += [0.0] * (layout.shares - len(volumes))
    return (
        margin,
        mean,
        spread**2 + mean**2,
        laws.best_mean(7).to_float_lossy(),
        *volumes[: layout.shares],
        *(laws.target_cdf(Fraction(y), 7).to_float_lossy() for y in layout.target_grid),
        *(laws.best_cdf(Fraction(b), 7).to_float_lossy() for b in layout.best_grid),
    )


@dataclass(frozen=True)
class ScoreData:
    """Cells of one problem at fixed p/d^2, one a size, and the laws for them (cells, k)."""

    kind: str
    dims: tuple[int, ...]
    facts: tuple[int, ...]
    competitors: tuple[int, ...]
    layout: Layout
    cells: tuple[Cell, ...]
    laws: Floats
    missed: int
    gap: float

    @property
    def instances(self) -> int:
        """All instances that entered."""
        return sum(cell.count for cell in self.cells)

    @property
    def theory(self) -> Floats:
        """The law at the largest size."""
        return np.asarray(self.laws[int(np.argmax(self.dims))])

    def limit(self, columns: Sequence[int]) -> Limit:
        """Difference to the law of these observables, extrapolated."""
        pick = list(columns)
        return extrapolate([cell.part(pick) for cell in self.cells], self.laws[:, pick])


def collect(
    kind: str,
    sizes: Sequence[tuple[int, int, int]],
    layout: Layout,
    answers: Sequence[Sequence[Mapping[str, Any]]],
    laws: Sequence[Sequence[float]] | None = None,
) -> ScoreData:
    """Cells from the answers of `measure_scores`: `sizes` are (d, p, M), `answers` a list a size.

    `laws` replaces the prediction (for planted errors). Raises `InvalidInput` unless p/d^2 is the
    same at every size.
    """
    if len({Fraction(p, d * d) for d, p, _ in sizes}) != 1:
        raise InvalidInput(
            f"the sizes (d, p, M) are {list(sizes)}; p/d^2 must be the same at each, or there is "
            "no common limit; choose such p"
        )
    # The Gaussian problem knows N = d^2 only; vectors of length d bring corrections in 1/d.
    power = 2 if kind == "gaussian" else 1
    if laws is None:
        # One margin serves all sizes with the same M, since p/d^2 is the same.
        first = {M: (d, p) for d, p, M in reversed(sizes)}
        laws = [predicted(*first[M], M, layout) for _, _, M in sizes]
    return ScoreData(
        kind,
        tuple(d for d, _, _ in sizes),
        tuple(p for _, p, _ in sizes),
        tuple(M for _, _, M in sizes),
        layout,
        tuple(cell_of(d**power, found) for (d, _, _), found in zip(sizes, answers, strict=True)),
        np.asarray(laws, dtype=float),
        sum(int(answer["missed"]) for found in answers for answer in found),
        max(float(answer["gap"]) for found in answers for answer in found),
    )


def check_scales(data: ScoreData, *, widening: float = 1.05) -> Check:
    """Margin, mean and second moment of the target score, best competitor: Hotelling's test.

    Named alternative: the standard deviation of the target score is `widening` times the law's.
    """
    columns = range(len(SCALES))
    limit, law = data.limit(columns), data.theory
    spread = spread_of(law[1], law[2])
    shift = np.zeros(len(SCALES))
    shift[2] = (widening**2 - 1.0) * spread**2
    values = limit.value + law[:4]
    low, high = limit.interval(0)
    table = [
        row
        for name, column in zip(SCALES, columns, strict=True)
        for row in _rows(data, limit, columns, column, {"observable": name})
    ]
    return _tested(
        data,
        "score_scales",
        claim="the margin, the target score and the best competitor of the maximum-margin memory "
        "have the predicted means and spread",
        quantity="margin; target score (mean ± sd)",
        predicted=f"{law[0]:.3f}; {law[1]:.3f} ± {spread:.3f}",
        measured=f"{values[0]:.3f}; {values[1]:.3f} ± {spread_of(values[1], values[2]):.3f}",
        interval=f"margin [{law[0] + low:.3f}, {law[0] + high:.3f}]",
        hypothesis="the four means tend to the law as N → ∞",
        limit=limit,
        shift=shift,
        alternative=f"standard deviation of the target score {100 * (widening - 1):.0f} % larger",
        table=table,
    )


def check_active(data: ScoreData, *, tilt: float = 1.05) -> Check:
    """Shares of facts with K active competitors against the intrinsic volumes v_k at the margin.

    Named alternative: v_k tilted (v_k e^{theta k}) to a mean `tilt` times as large.
    """
    columns = data.layout.active
    limit, law = data.limit(columns), data.theory[list(columns)]
    index = np.arange(len(law))
    mean = float(law @ index)
    error = 1.96 * float(np.sqrt(index @ limit.covariance @ index))
    measured = mean + float(index @ limit.value)
    table = [row for k in index.tolist() for row in _rows(data, limit, columns, k, {"k": k})]
    return _tested(
        data,
        "active_at_margin",
        claim="the number K of active competitors of a fact follows the intrinsic volumes v_k at "
        "the largest margin",
        quantity=f"E[K; K < {len(law)}]",
        predicted=f"{mean:.3f}",
        measured=f"{measured:.3f}",
        interval=f"[{measured - error:.3f}, {measured + error:.3f}]",
        hypothesis=f"the shares of facts with K = 0, …, {len(law) - 1} tend to v_k as N → ∞",
        limit=limit,
        shift=tilted_law(law, tilt) - law,
        alternative=f"v_k tilted to a mean {100 * (tilt - 1):.0f} % larger",
        table=table,
        remark=f"P(K ≥ {len(law)}) = {1.0 - float(law.sum()):.1e} by the law.",
    )


def check_target_law(data: ScoreData, *, widening: float = 1.05) -> Check:
    """Distribution of the target score: Hotelling's test of its values on a grid.

    Named alternative: the law stretched about its mean by `widening`.
    """
    return _check_law(data, "target", widening)


def check_best_law(data: ScoreData, *, widening: float = 1.05) -> Check:
    """Distribution of the best competitor, as `check_target_law`."""
    return _check_law(data, "best", widening)


def _check_law(data: ScoreData, which: str, widening: float) -> Check:
    columns, grid = _grid(data, which)
    limit, law = data.limit(columns), data.theory[list(columns)]
    worst = int(np.argmax(np.abs(limit.value) / limit.error))
    low, high = limit.interval(worst)
    name = {"target": "target score", "best": "best competitor"}[which]
    table = [
        row
        for number, x in enumerate(grid)
        for row in _rows(data, limit, columns, number, {"score": x})
    ]
    return _tested(
        data,
        f"{which}_law",
        claim=f"the {name} of a fact follows the law of the projection on the recall cone",
        quantity=f"P({name} ≤ {grid[worst]:g}), the point of largest |t|",
        predicted=f"{law[worst]:.4f}",
        measured=f"{law[worst] + limit.value[worst]:.4f}",
        interval=f"[{law[worst] + low:.4f}, {law[worst] + high:.4f}]",
        hypothesis=f"P({name} ≤ x) at {len(grid)} points x tends to the law as N → ∞",
        limit=limit,
        shift=stretched(data, which, widening) - law,
        alternative=f"the law stretched about its mean by {100 * (widening - 1):.0f} %",
        table=table,
    )


def _grid(data: ScoreData, which: str) -> tuple[range, tuple[float, ...]]:
    if which == "target":
        return data.layout.target, data.layout.target_grid
    return data.layout.best, data.layout.best_grid


def _cdf(data: ScoreData, which: str, points: Sequence[float]) -> Floats:
    """Certified distribution function at the largest size, at scores rounded to 1e-6."""
    margin = Fraction(float(data.theory[0])).limit_denominator(10**8)
    exact = tuple(Fraction(float(x)).limit_denominator(10**6) for x in points)
    return np.array(
        _certified_cdf(data.competitors[int(np.argmax(data.dims))], margin, which, exact)
    )


@lru_cache(maxsize=64)
def _certified_cdf(
    competitors: int, margin: Fraction, which: str, points: tuple[Fraction, ...]
) -> tuple[float, ...]:
    from numerics.scores import CapacityScores

    laws = CapacityScores(competitors, margin)
    function = laws.target_cdf if which == "target" else laws.best_cdf
    return tuple(function(x, 7).to_float_lossy() for x in points)


def stretched(data: ScoreData, which: str, factor: float) -> Floats:
    """The law of the target score or best competitor, stretched about its mean, on the grid."""
    mean = float(data.theory[1] if which == "target" else data.theory[3])
    return _cdf(data, which, [mean + (x - mean) / factor for x in _grid(data, which)[1]])


def tilted_law(law: Floats, factor: float) -> Floats:
    """e^{theta k} law_k, of the same total and `factor` times the mean.

    >>> tilted_law(np.array([0.5, 0.5]), 1.2).round(6).tolist()
    [0.4, 0.6]
    """
    index, total = np.arange(law.size), float(law.sum())
    goal, theta = factor * float(law @ index), 0.0
    for _ in range(60):
        tilted = law * np.exp(theta * index)
        tilted *= total / tilted.sum()
        mean = float(tilted @ index)
        theta -= (mean - goal) / float(tilted @ (index - mean / total) ** 2)
    return np.asarray(tilted)


def spread_of(mean: float, square: float) -> float:
    """Standard deviation from the first two moments."""
    return float(np.sqrt(max(0.0, square - mean**2)))


def _tested(
    data: ScoreData,
    name: str,
    *,
    claim: str,
    limit: Limit,
    shift: Floats,
    alternative: str,
    remark: str = "",
    **fields: Any,
) -> Check:
    test: WaldTest = wald_test(limit)
    noncentrality = distance(limit, shift)
    missed = f" {data.missed} instances had no perfect memory and do not enter." * (data.missed > 0)
    return Check(
        name=f"{name}_{data.kind}",
        claim=f"{SHOWN[data.kind].capitalize()} problem, {_load(data)}: {claim}.",
        source="replica calculation with a margin, p δ_m = d²; projection on the recall cone",
        sample_size=f"{data.instances} maximum-margin memories at d = {_dims(data)}",
        p_value=test.p_value,
        alternative=alternative,
        power_at=lambda level: test.power(noncentrality, level),
        remark=f"Instance means extrapolated in 1/N; Hotelling's T² of {test.components} "
        f"components, {test.degrees:.0f} degrees of freedom.{missed} {remark}".strip(),
        settings=_settings(data),
        **fields,
    )


def _load(data: ScoreData) -> str:
    return f"M = {data.competitors[0]}, p/d² = {data.facts[0] / data.dims[0] ** 2:.4g}"


def _dims(data: ScoreData) -> str:
    return ", ".join(map(str, data.dims))


def _settings(data: ScoreData) -> Record:
    return {
        "problem": data.kind,
        "dims": list(data.dims),
        "facts": list(data.facts),
        "competitors": list(data.competitors),
        "instances": [cell.count for cell in data.cells],
        "largest relative gap of a margin": data.gap,
    }


def _rows(data: ScoreData, limit: Limit, columns: range, number: int, key: Record) -> list[Record]:
    """The law, every size and the limit (dim "infinity") of the observable `columns[number]`."""
    place = columns[number]
    law = float(data.theory[place])
    rows: list[Record] = [{"source": "theory", **key, "value": law}]
    for d, cell in zip(data.dims, data.cells, strict=True):
        value, error = float(cell.mean[place]), float(cell.error[place])
        rows.append({"source": "simulation", **key, "dim": d, "value": value, "error": error})
    value, error = law + float(limit.value[number]), float(limit.error[number])
    rows.append({"source": "simulation", **key, "dim": "infinity", "value": value, "error": error})
    return rows


def check_normalised(data: ScoreData) -> Check:
    """Decoupled or original problem: score laws after normalising each fact's scores, as measured.

    Universality of the scales is not exact at finite d, so there is no p-value: the table holds
    every size and the extrapolation in 1/d, as differences to the law at that size.
    """
    columns = list(range(len(SCALES))) + list(data.layout.active)
    names = [*SCALES, *(f"P(K = {k})" for k in range(data.layout.shares))]
    limit = data.limit(columns)
    table: list[Record] = []
    for number, (name, place) in enumerate(zip(names, columns, strict=True)):
        for d, cell, law in zip(data.dims, data.cells, data.laws, strict=True):
            table.append(
                {"source": "theory", "observable": name, "dim": d, "value": float(law[place])}
            )
            table.append(
                {
                    "source": "simulation",
                    "observable": name,
                    "dim": d,
                    "value": float(cell.mean[place]),
                    "error": float(cell.error[place]),
                }
            )
        table.append(
            {
                "source": "simulation",
                "observable": name,
                "dim": "infinity",
                "difference": float(limit.value[number]),
                "error": float(limit.error[number]),
            }
        )
    low, high = limit.interval(1)
    last = int(np.argmax(data.dims))
    finite = float(data.cells[last].mean[1] - data.laws[last][1])
    return Check(
        name=f"normalised_scores_{data.kind}",
        claim=f"{SHOWN[data.kind].capitalize()} problem: each fact's scores, divided by |W e|, "
        "follow the laws of the Gaussian problem as d → ∞.",
        source="equivalence of the problems; laws of the projection on the recall cone",
        quantity="mean target score, measured minus law, extrapolated in 1/d",
        predicted="0",
        measured=f"{limit.value[1]:.3f} ({finite:.3f} at d = {data.dims[last]})",
        interval=f"[{low:.3f}, {high:.3f}]",
        sample_size=f"{data.instances} maximum-margin memories at d = {_dims(data)}",
        undecided=data.missed,
        remark="No test: how fast the scales become universal is not known, and a straight line in "
        "1/d is an assumption.",
        table=table,
        settings=_settings(data),
    )


def plot_score_laws(target: Check, best: Check, data: ScoreData) -> Figure:
    """Distribution functions of target score and best competitor: laws as lines, limits as points.

    Smaller marks without bars would hide the finite-size drift, so the largest size is drawn too.
    """
    figure, axes = new_figure()
    for series, (check, which, name) in enumerate(
        ((target, "target", "target score $y_0$"), (best, "best", "best competitor"))
    ):
        grid = _grid(data, which)[1]
        reach = 0.35 * (grid[-1] - grid[0])
        line = np.linspace(grid[0] - reach, grid[-1] + reach, 61)
        theory_line(
            axes,
            line.tolist(),
            _cdf(data, which, line.tolist()).tolist(),
            series=series,
            label=f"{name}, law",
        )
        rows = check.select("simulation", dim="infinity")
        simulation_points(
            axes,
            [r["score"] for r in rows],
            [r["value"] for r in rows],
            [r["value"] - 1.96 * r["error"] for r in rows],
            [r["value"] + 1.96 * r["error"] for r in rows],
            series=series,
            label="measured, $N\\to\\infty$",
        )
    axes.set_ylim(-0.03, 1.03)
    label_axes(
        axes,
        "score (standard deviations of a typical score)",
        "distribution function",
        title=f"$M={data.competitors[0]}$, $p/d^2={data.facts[0] / data.dims[0] ** 2:.4g}$",
        legend="lower right",
    )
    return figure


def plot_active(check: Check) -> Figure:
    """Shares of facts with K active competitors: v_k as a line, the limits as points."""
    figure, axes = new_figure()
    theory = check.select("theory")
    rows = check.select("simulation", dim="infinity")
    theory_line(
        axes,
        [r["k"] for r in theory],
        [r["value"] for r in theory],
        series=0,
        label="$v_k$ at the largest margin",
    )
    simulation_points(
        axes,
        [r["k"] for r in rows],
        [r["value"] for r in rows],
        [r["value"] - 1.96 * r["error"] for r in rows],
        [r["value"] + 1.96 * r["error"] for r in rows],
        series=1,
        label="maximum-margin memories, $N\\to\\infty$",
    )
    axes.set_ylim(0, 1.35 * max(r["value"] for r in rows))
    label_axes(axes, "active competitors $k$ of a fact", "$P(K=k)$", legend="upper left")
    return figure


def plot_normalised(checks: Sequence[Check]) -> Figure:
    """Mean target score over its law against 1/d, per problem; 1 is the Gaussian law."""
    figure, axes = new_figure()
    axes.axhline(1.0, color=SERIES[0], linewidth=1.8)
    axes.annotate(
        "law of the Gaussian problem",
        (0.02, 1.0),
        xycoords=("axes fraction", "data"),
        xytext=(0, 4),
        textcoords="offset points",
        ha="left",
        fontsize=8.5,
        color=INK,
    )
    for series, check in enumerate(checks, 1):
        for filled, name in ((True, "target score"), (False, "best competitor")):
            theory = {r["dim"]: r["value"] for r in check.select("theory", observable=name)}
            rows = [
                r for r in check.select("simulation", observable=name) if r["dim"] != "infinity"
            ]
            simulation_points(
                axes,
                [1.0 / r["dim"] for r in rows],
                [r["value"] / theory[r["dim"]] for r in rows],
                [(r["value"] - 1.96 * r["error"]) / theory[r["dim"]] for r in rows],
                [(r["value"] + 1.96 * r["error"]) / theory[r["dim"]] for r in rows],
                series=series if filled else series + 2,
                label=f"{SHOWN[str(check.settings['problem'])]}, {name}",
            )
    axes.set_xlim(left=0)
    bottom, top = axes.get_ylim()
    axes.set_ylim(bottom, top + 0.35 * (top - bottom))
    label_axes(axes, "$1/d$", "normalised score, measured / law", legend="upper left")
    return figure
