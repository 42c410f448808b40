"""Low-rank memories W = Q R^T against p delta(p-1) = d^2 I(rank_ratio).

The theory is an upper bound (Gordon's inequality), and a search may overlook a memory, so what is
measured is a lower bound of the true success rate. The check asks whether the two meet as d grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy import optimize

from replica.errors import InvalidInput
from validate.checks.base import Check, Record
from validate.checks.extrapolation import (
    Box,
    DimensionCounts,
    ShiftModel,
    focus,
    limit_test,
    single_shift,
    theory_probit,
)
from validate.checks.statistics import clopper_pearson
from validate.checks.theory_curve import TheoryCurve
from validate.checks.units import Unit
from validate.plotting import (
    SERIES,
    label_axes,
    limit_bar,
    new_figure,
    simulation_points,
    theory_line,
)

NOTICED = 0.1
"""The named alternative: I(rank_ratio) wrong by this share, up or down.

What 1950 instances at three d see at the level of a report; 2 % hides behind a correction b/d.
`rank_share` notices 2 % in I itself.
"""
BOX = Box((-0.08, 0.08))
"""What a finite d may do: move the 50 % point by 8 %, halve or double the width of the curve.

Empirical: no theory says how much a search overlooks.
"""


@dataclass(frozen=True)
class LowRankCell:
    """One load of one dimension: rank m, p facts, how many instances, starts a search."""

    dim: int
    rank: int
    facts: int
    instances: int
    starts: int
    kind: str = "decoupled"


def measure_low_rank(
    kind: str, dim: int, rank: int, facts: int, seed: int, first: int, count: int, starts: int
) -> dict[str, Any]:
    """How many of the instances (seed, facts, i), first <= i < first + count, hold a found memory.

    A found memory is certified (`low_rank_search.certified`); the rest are failed searches.
    """
    from validate.checks.low_rank_search import search
    from validate.problems import make_problem

    found = 0
    for i in range(first, first + count):
        problem = make_problem(kind, dim=dim, facts=facts, seed=(seed, facts, i))
        found += search(problem, rank, seed=(seed, i), starts=starts).factors is not None
    return {"found": found, "count": count}


def low_rank_units(cells: Sequence[LowRankCell], seed: int, batch: int = 5) -> list[Unit]:
    """The instances of all cells as units of at most `batch` instances."""
    return [
        Unit(
            "validate.checks.low_rank:measure_low_rank",
            {
                "kind": cell.kind,
                "dim": cell.dim,
                "rank": cell.rank,
                "facts": cell.facts,
                "seed": seed,
                "first": first,
                "count": min(batch, cell.instances - first),
                "starts": cell.starts,
            },
            work=0.1 * cell.starts * (cell.dim / 20.0) ** 4 * min(batch, cell.instances - first),
        )
        for cell in cells
        for first in range(0, cell.instances, batch)
    ]


def low_rank_counts(
    cells: Sequence[LowRankCell], units: Sequence[Unit], answers: Sequence[Any]
) -> list[int]:
    """Found memories of every cell, from the `answers` of its units."""
    found = dict.fromkeys(((c.dim, c.rank, c.facts) for c in cells), 0)
    seen = dict.fromkeys(found, 0)
    for unit, answer in zip(units, answers, strict=True):
        key = tuple(unit.arguments[name] for name in ("dim", "rank", "facts"))
        found[key] += answer["found"]
        seen[key] += answer["count"]
    for cell in cells:
        if seen[cell.dim, cell.rank, cell.facts] != cell.instances:
            raise InvalidInput(
                f"the answers hold {seen[cell.dim, cell.rank, cell.facts]} instances of a cell of "
                f"{cell.instances}; give the answers of its own units"
            )
    return [found[c.dim, c.rank, c.facts] for c in cells]


@lru_cache(maxsize=256)
def threshold_facts(dim: int, factor: float = 1.0) -> float:
    """The real p with p delta(p-1) = d^2 factor, log-linear between the integers.

    >>> round(threshold_facts(20), 2)
    86.87
    """
    from numerics import cone

    if not (factor > 0.0 and dim * dim * factor > 1.0):
        raise InvalidInput(
            f"the share {factor} of d^2 at d = {dim} leaves no room for 2 facts; take more"
        )

    def demand(p: int) -> float:
        delta = float(cone.statistical_dimension(p - 1, 15).to_float_lossy())
        return float(np.log(p * delta / (dim * dim * factor)))

    low, high = 2, 4
    while demand(high) <= 0.0:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if demand(middle) <= 0.0 else (low, middle)
    a, b = demand(low), demand(high)
    return float(np.exp(np.log(low) - a * (np.log(high) - np.log(low)) / (b - a)))


def predicted_half(theory: TheoryCurve, rank_factor: float) -> float:
    """The predicted 50 % point at rank factor I: that of full rank, moved as p delta = d^2 I is."""
    return theory.half * threshold_facts(theory.dim, rank_factor) / threshold_facts(theory.dim)


def low_rank_loads(
    theory: TheoryCurve, rank_factor: float, targets: Sequence[float] = (0.9, 0.7, 0.4, 0.15)
) -> list[int]:
    """Numbers of facts where the moved curve comes closest to the `targets`."""
    move = predicted_half(theory, rank_factor) / theory.half

    def load(target: float) -> int:
        low, high = 0.5 * theory.half, 1.5 * theory.half
        root = optimize.brentq(lambda p: theory.interpolated(p) - target, low, high)
        return max(2, round(float(root) * move))

    return sorted({load(target) for target in targets})


def check_low_rank(
    rank_ratio: str,
    cells: Sequence[LowRankCell],
    found: Sequence[int],
    *,
    seed: int,
    factor: float | None = None,
    noticed: float = NOTICED,
    samples: int = 20_000,
) -> Check:
    """Hypothesis: the 50 % points of the search tend to p delta = d^2 I(rank_ratio), ratio -> 1.

    Arguments: `rank_ratio` as exact text; `cells` of at least three dimensions, with the number
    `found` in each; `factor` replaces I(rank_ratio) (to plant a wrong one); `noticed`: the named
    alternative is I off by this share, in the direction that is seen less. Fits P = Phi(s_d U_d)
    with the 50 % point at r_d = 1 + a + b/d times the predicted one, U_d the exact full-rank curve,
    with b/d and s_d in `BOX`, and tests a = 0: score test and lack of fit, nulls simulated.
    """
    from numerics.cone import rank_factor

    I = float(rank_factor(rank_ratio, 12).to_float_lossy()) if factor is None else factor
    data, table = [], []
    for dim in sorted({cell.dim for cell in cells}):
        here = [(c, n) for c, n in zip(cells, found, strict=True) if c.dim == dim]
        here.sort(key=lambda pair: pair[0].facts)
        theory = TheoryCurve.at(dim)
        half = predicted_half(theory, I)
        counts = DimensionCounts(
            theory_probit(theory, half),
            [c.facts for c, _ in here],
            [n for _, n in here],
            [c.instances for c, _ in here],
            (1.0 / dim,),
        )
        data.append(counts)
        ratio, low, high = single_shift(counts)
        table.append({"source": "theory", "rank_ratio": rank_ratio, "dim": dim, "half": half})
        table.append(
            {
                "source": "simulation",
                "rank_ratio": rank_ratio,
                "dim": dim,
                "rank": here[0][0].rank,
                "half": ratio * half,
                "ratio": ratio,
                "ratio_low": low,
                "ratio_high": high,
            }
        )
        table += [_record(rank_ratio, cell, n) for cell, n in here]
    model = ShiftModel(data, BOX)
    test = limit_test(model, 0.0, seed=seed, samples=samples)
    low, high = test.interval(0)
    deviance = float(model.deviance(test.held, model.successes))
    largest = [r for r in table if "ratio" in r][-1]
    widest = TheoryCurve.at(max(cell.dim for cell in cells))

    def power(share: float, level: float) -> float:
        """The lesser of I off by `share` up and down; delta grows with p: p moves by less."""
        here = predicted_half(widest, I)
        shifts = [predicted_half(widest, (1.0 + off) * I) / here - 1.0 for off in (share, -share)]
        return min(test.power(shift, level, seed=seed + 1) for shift in shifts)

    small = power(0.02, 0.05)
    return Check(
        name=f"low_rank_{rank_ratio}",
        claim=f"Rank ratio {rank_ratio}: memories W = QRᵀ exist up to p δ(p−1) = d² I, "
        f"I = {I:.4f}; a good search reaches that bound as d grows and is within 8 % of it "
        "at every d measured.",
        source="Gordon's inequality (upper bound), quarter circle",
        quantity="50 % point over the predicted one, d → ∞",
        predicted="1",
        measured=f"{1.0 + float(test.free[0]):.4f}",
        interval=f"[{1.0 + low:.4f}, {1.0 + high:.4f}]",
        sample_size=f"{int(model.trials.sum())} instances at {len(data)} dimensions",
        hypothesis="a = 0 in r_d = 1 + a + b/d, the ratio of measured to predicted 50 % point, "
        "with |b/d| at most 8 % and widths within a factor 2 of the predicted ones (score test and "
        "lack of fit, twice the smaller p; nulls simulated at the fitted b and widths)",
        p_value=test.p_value,
        alternative=f"I(rank_ratio) off by {100 * noticed:.0f} %, up or down (the lesser power)",
        power_at=lambda level: power(noticed, level),
        remark=f"At d = {largest['dim']} the ratio is {largest['ratio']:.4f} "
        f"[{largest['ratio_low']:.4f}, {largest['ratio_high']:.4f}]. A found memory is certified; "
        "one not found may exist all the same, so the measured 50 % point is a lower bound and the "
        "theory an upper bound. I off by 2 % hides behind the correction b/d: against it the test "
        f"alone, at level 0.05, has power {small:.2f}. p of the score {test.p_score:.2g}, p of the "
        f"fit {test.p_fit:.2g} (deviance {deviance:.1f} at {model.successes.size} loads).",
        table=table,
        settings={
            "power_I_2_percent": small,
            "a": float(test.free[0]),
            "b": float(test.free[1]),
            "limit": [1.0 + v for v in (low, float(test.free[0]), high)],
            "starts": [cell.starts for cell in cells],
        },
    )


def _record(rank_ratio: str, cell: LowRankCell, found: int) -> Record:
    low, high = clopper_pearson(found, cell.instances)
    return {
        "source": "simulation",
        "rank_ratio": rank_ratio,
        "problem": cell.kind,
        "dim": cell.dim,
        "rank": cell.rank,
        "facts": cell.facts,
        "found": found,
        "instances": cell.instances,
        "probability": found / cell.instances,
        "low": low,
        "high": high,
    }


def plot_low_rank(checks: Sequence[Check]) -> Figure:
    """Measured over predicted 50 % point against 1/d, with the fitted limits at the left edge."""
    figure, axes = new_figure()
    edge = 0.0
    for number, check in enumerate(checks):
        rows = [r for r in check.table if "ratio" in r]
        x = [1.0 / r["dim"] for r in rows]
        edge = max(edge, *x)
        simulation_points(
            axes,
            [v * (1.0 + 0.012 * (number - 1)) for v in x],
            [r["ratio"] for r in rows],
            [r["ratio_low"] for r in rows],
            [r["ratio_high"] for r in rows],
            series=number,
            label=f"rank ratio {rows[0]['rank_ratio']}",
        )
        grid = np.linspace(0.0, max(x), 40)
        fitted = 1.0 + check.settings["a"] + check.settings["b"] * grid
        axes.plot(grid, fitted, color=SERIES[number], linewidth=0.9, alpha=0.7)
        limit_bar(axes, number, check.settings["limit"], series=number)
    theory_line(
        axes, [0.0, 1.08 * edge], [1.0, 1.0], series=3, label=r"theory, $p\,\delta=d^2 I(k)$"
    )
    axes.set_xlim(0.0, 1.08 * edge)
    _set_height(axes, checks)
    label_axes(
        axes,
        "$1/d$",
        "50 % point, found / predicted",
        title="Low-rank memories",
        legend="upper right",
    )
    return figure


def _set_height(axes: Any, checks: Sequence[Check]) -> None:
    rows = [r for check in checks for r in check.table if "ratio_low" in r]
    low, high = focus([(r["ratio"], r["ratio_low"], r["ratio_high"]) for r in rows], 1.0)
    axes.set_ylim(low, high + 0.3 * (high - low))
