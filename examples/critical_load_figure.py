"""The figure of the README: the critical load where memories are made, not where p is infinite.

Line: alpha_c(p) = log p / delta(p-1) against d, where p delta(p-1) = d^2. Points: 50 % points of
instances drawn at random and decided with proof; undecided ones, if any, are counted and widen the
bars: all of them failures at one end, all successes at the other. Dotted: the limit 1/2.
Run: python examples/critical_load_figure.py [FILE.svg]
"""

from __future__ import annotations

import argparse
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from numerics.cone import critical_facts, statistical_dimension
from validate.checks.curves import HalfPoint, half_point
from validate.checks.ladder import Cell, LadderPoint, ladder_points, ladder_units
from validate.checks.parallel import available_cores
from validate.checks.units import run_units
from validate.cli.common import write_text_atomically
from validate.plotting import (
    MUTED,
    PAPER,
    label_axes,
    new_figure,
    simulation_points,
    theory_line,
)

DIMS = (8, 10, 14, 18)
SHARES = (0.85, 0.95, 1.02, 1.1, 1.2)
INSTANCES = 20
KINDS = ("decoupled", "original")


def theory(last: float = 1e7, count: int = 60) -> tuple[list[float], list[float]]:
    """d and alpha_c along the threshold, p from 10 to `last`."""
    facts = sorted({round(10 * (last / 10) ** (k / (count - 1))) for k in range(count)})
    delta = [statistical_dimension(p - 1, 12).to_float_lossy() for p in facts]
    dims = [math.sqrt(p * value) for p, value in zip(facts, delta, strict=True)]
    return dims, [math.log(p) / value for p, value in zip(facts, delta, strict=True)]


def measured() -> list[LadderPoint]:
    """Counts of certified instances of both problems at every dimension and load."""
    cells = [
        Cell(kind, dim, facts, INSTANCES)
        for kind in KINDS
        for dim in DIMS
        for facts in sorted({round(share * critical_facts(dim)) for share in SHARES})
    ]
    units = ladder_units(cells, seed=5)
    return ladder_points(cells, units, run_units(units, workers=available_cores()))


def half_points(points: Sequence[LadderPoint]) -> dict[tuple[str, int], HalfPoint]:
    """50 % points by kind and dimension; undecided instances widen the interval."""
    found = {}
    for kind in KINDS:
        for dim in DIMS:
            own = [p for p in points if (p.kind, p.dim) == (kind, dim)]
            found[kind, dim] = half_point(
                [p.facts for p in own],
                [p.separable for p in own],
                [p.instances for p in own],
                undecided=[p.undecided for p in own],
            )
    return found


def undecided_sentence(points: Sequence[LadderPoint]) -> str:
    """How many instances are undecided, and where."""
    total = sum(p.instances for p in points)
    where = [f"{p.undecided} ({p.kind}, d = {p.dim}, p = {p.facts})" for p in points if p.undecided]
    if not where:
        return f"every one of {total} instances is decided"
    count = sum(p.undecided for p in points)
    return f"{count} of {total} instances are undecided, inside the bars: {', '.join(where)}"


def load(facts: float, dim: int) -> float:
    """p log p / d^2; an open end of an interval (0 or infinity) is drawn far outside."""
    facts = min(max(facts, 1.0), 1e6)
    return facts * math.log(facts) / dim**2


def draw(
    dims: Sequence[float],
    loads: Sequence[float],
    fits: Mapping[tuple[str, int], HalfPoint],
    undecided: int = 0,
) -> str:
    """The figure as an SVG file of its own; it says how many instances are undecided, if any."""
    figure, axes = new_figure(height=3.2)
    theory_line(axes, dims, loads, series=0, label=r"exact: $\log p/\delta(p-1)$, $p\,\delta=d^2$")
    for series, kind in enumerate(KINDS, 1):
        own = [(d * (0.98 if series == 1 else 1.02), d, fits[kind, d]) for d in DIMS]
        simulation_points(
            axes,
            [x for x, _, _ in own],
            [load(fit.value, d) for _, d, fit in own],
            [load(fit.low, d) for _, d, fit in own],
            [load(fit.high, d) for _, d, fit in own],
            series=series,
            label=f"{kind} problem, 50 % point",
        )
    axes.axhline(0.5, color=MUTED, linestyle=":", linewidth=1.4, label=r"$p\to\infty$: 1/2")
    axes.set_xscale("log")
    axes.set_ylim(0.4, 1.25)
    if undecided:
        axes.annotate(
            f"{undecided} undecided instances: inside the bars",
            (0.02, 0.03),
            xycoords="axes fraction",
            fontsize=8.5,
            color=MUTED,
        )
    label_axes(axes, "dimension $d$", r"critical load $p\,\log p/d^2$", legend="upper right")
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", facecolor=PAPER, metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def main() -> None:
    """Print the measured points beside the theory; write the figure if a file is given."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", nargs="?", type=Path, help="SVG file to write")
    file = parser.parse_args().file
    points = measured()
    fits = half_points(points)
    print(f"{'d':>3} {'theory':>7} {'decoupled':>25} {'original':>25}   (50 % point p, 95 %)")
    for dim in DIMS:
        cells = [
            f"{fit.value:7.1f} [{fit.low:6.1f}, {fit.high:6.1f}]"
            for fit in (fits[kind, dim] for kind in KINDS)
        ]
        print(f"{dim:3d} {critical_facts(dim):7d} " + " ".join(f"{c:>25}" for c in cells))
    print(undecided_sentence(points))
    if file is not None:
        undecided = sum(p.undecided for p in points)
        write_text_atomically(file, draw(*theory(), fits, undecided))
        print(f"figure written to {file}")


if __name__ == "__main__":
    main()
