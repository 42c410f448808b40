"""Overlap q of two uniform solutions: exact sampler against the saddle point and against 2 alpha.

Gaussian problem at fixed load gamma = p/d^2 and number of competitors M. Every instance is sampled
by several chains of exact Hamiltonian Monte Carlo; q of an instance is the mean cosine of solutions
from different chains. Instances scatter far more than chains, so instances are the unit of the
error; means at several d are extrapolated in 1/N, N = d^2, and compared with the saddle point of
the replica calculation at M competitors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator

from replica.errors import InvalidInput
from validate.checks.base import Check, Record
from validate.checks.finite_size import (
    Cell,
    cell_of,
    extrapolate,
    squares_test,
    summarise,
)
from validate.plotting import label_axes, new_figure, simulation_points, theory_line

Floats = NDArray[np.float64]
NOTICED = 0.05
"""A second alternative, for the remark: q wrong by this share at every load."""


def measure_overlaps(
    dim: int,
    facts: int,
    competitors: int,
    count: int,
    seed: Sequence[int],
    chains: int,
    samples: int,
    warmup: int,
) -> dict[str, Any]:
    """Overlap of `count` Gaussian instances with seeds (*seed, i): `summarise` of q and the rest.

    `worst` lists R-hat, effective sample size and q of each instance whose chains do not agree
    (R-hat above the limit of `validate.sampler`): they stay in the sums. `r_hat` and `effective`
    are the largest and the least over instances, `chain_error` the mean error of one q; `missed`
    counts instances without a perfect memory, which have no solution space.
    """
    from validate.problems import make_problem
    from validate.sampler import measure_overlap, sample
    from validate.solvers.exact import solve

    rows, worst, r_hats, sizes, errors, starts = [], [], [], [], [], []
    missed = 0
    for i in range(count):
        problem = make_problem(
            "gaussian", dim=dim, facts=facts, competitors=competitors, seed=(*seed, i)
        )
        start = solve(problem)
        if start.verdict != "separable" or start.weights is None:
            missed += 1
            continue
        found = measure_overlap(
            sample(
                problem,
                chains=chains,
                samples=samples,
                warmup=warmup,
                seed=(*seed, i, 1),
                start=start.weights,
            )
        )
        rows.append([found.value])
        r_hats.append(found.r_hat)
        sizes.append(found.effective_size)
        errors.append(found.stderr)
        starts.append(found.start_overlap)
        if not found.converged:
            worst.append([found.r_hat, found.effective_size, found.value])
    if not rows:
        raise InvalidInput(
            f"none of the {count} Gaussian instances with d = {dim}, p = {facts} has a perfect "
            "memory; take fewer facts"
        )
    return {
        **summarise(rows),
        "missed": missed,
        "worst": worst,
        "r_hat": max(r_hats),
        "effective": min(sizes),
        "chain_error": float(np.mean(errors)),
        "start": float(np.mean(starts)),
    }


@lru_cache(maxsize=64)
def predicted_overlap(load: float, competitors: int, accuracy: float) -> tuple[float, float]:
    """q of the saddle point at gamma = `load` and M, with its standard error.

    >>> q, error = predicted_overlap(0.1, 39, 2e-3)
    >>> abs(q - 0.4345) < 6 * error < 0.012
    True
    """
    from numerics.order_parameters import top_one_order_parameters

    found = top_one_order_parameters(load, competitors, accuracy=accuracy, samples=512).overlap
    return found.value, found.stderr


def limit_overlap(load: float, competitors: int) -> float:
    """2 alpha, alpha = gamma log(M + 1): the overlap in the limit p -> infinity.

    An overlap only up to 1: beyond, the load is above the capacity 1/2 of the limit.

    >>> round(limit_overlap(0.1, 39), 3)
    0.738
    """
    return 2.0 * load * math.log(competitors + 1)


@dataclass(frozen=True)
class OverlapCell:
    """One load at one size: `cell` of the overlaps and what the chains say about themselves."""

    dim: int
    facts: int
    competitors: int
    cell: Cell
    missed: int
    worst: tuple[tuple[float, float, float], ...]
    r_hat: float
    effective: float
    chain_error: float

    @property
    def load(self) -> float:
        """gamma = p/d^2."""
        return self.facts / self.dim**2


def overlap_cell(
    dim: int, facts: int, competitors: int, answers: Sequence[Mapping[str, Any]]
) -> OverlapCell:
    """Pool the answers of `measure_overlaps` for one cell."""
    return OverlapCell(
        dim,
        facts,
        competitors,
        cell_of(dim**2, answers),
        sum(int(a["missed"]) for a in answers),
        tuple((r[0], r[1], r[2]) for a in answers for r in a["worst"]),
        max(float(a["r_hat"]) for a in answers),
        min(float(a["effective"]) for a in answers),
        float(np.mean([a["chain_error"] for a in answers])),
    )


def check_overlap(
    cells: Sequence[OverlapCell],
    *,
    seed: int,
    accuracy: float = 4e-4,
    law: Mapping[float, tuple[float, float]] | None = None,
    nulls: int = 200_000,
) -> Check:
    """Hypothesis: at every load the mean overlap tends to the saddle point as N -> infinity.

    Student statistics t of the extrapolated differences, one a load, with the error of the
    prediction added in quadrature; sum t^2 against simulated sums of Student variables. Named
    alternative: q = min(2 alpha, 1), for 2 alpha belongs to p -> infinity and exceeds 1 at a fixed
    M and large load; it lies so far off that the power against q wrong by `NOTICED` is stated too.
    `law` replaces the prediction (value, standard error) by load;
    `nulls` simulated sums.
    Raises `InvalidInput` for mixed numbers of competitors or a load measured at one size only.
    """
    if len({c.competitors for c in cells}) != 1:
        raise InvalidInput(
            "overlaps of different numbers of competitors were given; a check needs one M; split "
            "the cells"
        )
    M = cells[0].competitors
    table: list[Record] = []
    statistics, shifts, few_per_cent, degrees, limits = [], [], [], [], []
    for load in sorted({c.load for c in cells}):
        at = sorted((c for c in cells if c.load == load), key=lambda c: c.dim)
        q, q_error = predicted_overlap(load, M, accuracy) if law is None else law[load]
        alternative = min(limit_overlap(load, M), 1.0)
        found = extrapolate([c.cell for c in at])
        error = math.hypot(float(found.error[0]), q_error)
        low, high = found.interval(0)
        statistics.append((float(found.value[0]) - q) / error)
        shifts.append((alternative - q) / error)
        few_per_cent.append(NOTICED * q / error)
        degrees.append(found.degrees)
        limits.append((load, q, float(found.value[0]), low, high))
        table.append(
            {
                "source": "theory",
                "load": load,
                "overlap": q,
                "error": q_error,
                "limit 2 alpha": limit_overlap(load, M),
            }
        )
        table += [_record(c) for c in at]
        table.append(
            {
                "source": "simulation",
                "load": load,
                "dim": "infinity",
                "overlap": float(found.value[0]),
                "low": low,
                "high": high,
                "slope": float(found.slope[0]),
                "t": statistics[-1],
            }
        )
    test = squares_test(statistics, shifts, degrees, seed=(seed, 41), samples=nulls)
    # Same draws, another alternative.
    near = squares_test(statistics, few_per_cent, degrees, seed=(seed, 41), samples=nulls)
    power = near.power(0.05)
    load, q, measured, low, high = limits[-1]
    beyond = limit_overlap(load, M)
    missed = sum(c.missed for c in cells)
    doubtful = sum(len(c.worst) for c in cells)
    total = sum(c.cell.count for c in cells)
    dims = ", ".join(map(str, sorted({c.dim for c in cells})))
    return Check(
        name="overlap_gaussian",
        claim=f"Gaussian problem, M = {M} fixed: two random solutions have the overlap q of the "
        "replica-symmetric saddle point at this M.",
        source="saddle point q/(1−q)² = γ E|∇ log Z|² at finite M",
        quantity=f"q at p/d² = {load:.4g}, N → ∞",
        predicted=f"{q:.4f}",
        measured=f"{measured:.4f}",
        interval=f"[{low:.4f}, {high:.4f}]",
        sample_size=f"{total} sampled instances, {len(limits)} loads, d = {dims}",
        hypothesis="the mean overlap tends to the saddle point at every load",
        p_value=test.p_value,
        alternative="q = min(2α, 1), α = γ log(M + 1): the limit of many competitors",
        power_at=test.power,
        undecided=missed,
        remark=f"M stays at {M} while N grows, so q = 2α is not expected; at the largest load "
        f"2α = {beyond:.2f}{', which is no overlap' * (beyond > 1.0)}. Against q wrong by "
        f"{100 * NOTICED:.0f} % at every load the test alone, at level 0.05, has power "
        f"{power:.2f}. Chains of {doubtful} of {total} instances have an R-hat above 1.05 "
        f"(largest {max(c.r_hat for c in cells):.3f}, least effective sample size "
        f"{min(c.effective for c in cells):.0f}); they are kept. One q is known to "
        f"{max(c.chain_error for c in cells):.4f} from its chains; instances scatter by "
        f"{max(float(np.sqrt(c.cell.covariance[0, 0])) for c in cells):.4f}.",
        table=table,
        settings={"competitors": M, "seed": seed},
    )


def _record(c: OverlapCell) -> Record:
    value, error = float(c.cell.mean[0]), float(c.cell.error[0])
    return {
        "source": "simulation",
        "load": c.load,
        "dim": c.dim,
        "overlap": value,
        "low": value - 1.96 * error,
        "high": value + 1.96 * error,
        "instances": c.cell.count,
        "missed": c.missed,
        "unconverged": len(c.worst),
        "largest R-hat": c.r_hat,
        "least effective size": c.effective,
        "unconverged overlaps": [w[2] for w in c.worst],
    }


def plot_overlap(check: Check) -> Figure:
    """q against gamma: saddle point and 2 alpha as lines, each size and the limit as points.

    Instances whose chains disagree are drawn one by one, as crosses.
    """
    figure, axes = new_figure()
    theory = check.select("theory")
    M = int(check.settings["competitors"])
    top = max(r["load"] for r in theory)
    nodes = np.linspace(0.0, 1.08 * top, 8)
    values = [0.0, *(predicted_overlap(float(load), M, 4e-3)[0] for load in nodes[1:])]
    grid = np.linspace(0.0, 1.08 * top, 60).tolist()
    line = PchipInterpolator(nodes, values)(grid).tolist()
    theory_line(axes, grid, line, series=0, label=f"saddle point, $M={M}$")
    alpha = [(load, limit_overlap(load, M)) for load in grid if limit_overlap(load, M) <= 1.0]
    theory_line(
        axes,
        [x for x, _ in alpha],
        [y for _, y in alpha],
        series=5,
        label=r"limit $p\to\infty$: $q=2\alpha$",
    )
    rows = check.select("simulation")
    dims = sorted({r["dim"] for r in rows if r["dim"] != "infinity"})
    width = 0.012 * top
    for number, dim in enumerate(dims, 1):
        at = [r for r in rows if r["dim"] == dim]
        simulation_points(
            axes,
            [r["load"] + width * (number - (len(dims) + 2) / 2) for r in at],
            [r["overlap"] for r in at],
            [r["low"] for r in at],
            [r["high"] for r in at],
            series=number,
            label=f"sampled, $d={dim}$",
        )
    limit = [r for r in rows if r["dim"] == "infinity"]
    simulation_points(
        axes,
        [r["load"] + width * (len(dims) / 2) for r in limit],
        [r["overlap"] for r in limit],
        [r["low"] for r in limit],
        [r["high"] for r in limit],
        series=0,
        label=r"sampled, $N\to\infty$",
    )
    doubtful = [(r["load"], value) for r in rows for value in r.get("unconverged overlaps", ())]
    if doubtful:
        axes.plot(
            [x for x, _ in doubtful],
            [y for _, y in doubtful],
            linestyle="none",
            marker="x",
            markersize=4,
            alpha=0.6,
            color="#5c6670",
            label="instance, $\\hat R>1.05$",
            zorder=2,
        )
    axes.set_xlim(0, 1.1 * top)
    axes.set_ylim(0, 1.0)
    label_axes(axes, "facts per weight $\\gamma=p/d^2$", "overlap $q$", legend="upper left")
    return figure
