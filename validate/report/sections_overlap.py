"""Section "overlap": how alike two solutions are, by exact sampling, against the saddle point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from validate.checks.overlap import check_overlap, overlap_cell, plot_overlap
from validate.checks.units import Unit
from validate.plotting import to_svg
from validate.report.model import Figure, Section


@dataclass(frozen=True)
class Sizes:
    """`cells`: (d, p, instances); p/d^2 of a load must occur at two d at least. Chains a cell."""

    competitors: int
    cells: tuple[tuple[int, int, int], ...]
    chains: int = 4
    samples: int = 40
    warmup: int = 8
    seconds: float = 20.0


SIZES = {
    "quick": Sizes(9, ((4, 2, 8), (8, 8, 5), (4, 4, 8), (8, 16, 5)), samples=24, warmup=6),
    "paper": Sizes(
        19,
        (
            *((8, p, n) for p, n in ((4, 60), (8, 60), (12, 60))),
            *((12, p, n) for p, n in ((9, 40), (18, 40), (27, 40))),
            *((16, p, n) for p, n in ((16, 24), (32, 24), (48, 24))),
        ),
    ),
}


def units(sizes: Sizes, seed: int) -> list[Unit]:
    """Batches of sampled instances."""
    return [unit for cell in sizes.cells for unit in _cell_units(sizes, seed, *cell)]


def build(sizes: Sizes, seed: int, answers: list[Any]) -> Section:
    """The overlap against load: saddle point at fixed M, limit 2 alpha, sampled points."""
    queue = iter(answers)
    cells = [
        overlap_cell(
            dim,
            facts,
            sizes.competitors,
            [next(queue) for _ in _cell_units(sizes, seed, dim, facts, count)],
        )
        for dim, facts, count in sizes.cells
    ]
    check = check_overlap(cells, seed=seed)
    return Section(
        identifier="overlap",
        title="How alike two solutions are",
        introduction="Below capacity many memories recall every fact. Their overlap q, the order "
        "parameter of the replica calculation, is measured by exact Hamiltonian Monte Carlo inside "
        "the cone of solutions: no step is ever rejected, and several chains check each other. The "
        f"number of competitors stays at M = {sizes.competitors} while d grows; the limit q = 2α "
        "needs M → ∞ and is no prediction here. It even exceeds 1 at the larger loads, where the "
        "named alternative is q = 1.",
        figures=[
            Figure(
                "overlap",
                "Overlap against load",
                "Overlap of two solutions against the number of facts per weight: sampled points "
                "with 95 % intervals at several d and for N → ∞, the curve of the saddle point at "
                f"M = {sizes.competitors}, and the line 2α as far as it is at most 1.",
                "Agreement: the points for N → ∞ within their bars on the saddle-point curve at "
                "every load; points at finite d may lie beside it by an amount of order 1/N. "
                "Points near the line 2α would contradict the saddle point at "
                f"M = {sizes.competitors}. "
                "Bars span instances; crosses are single instances whose chains do not agree yet.",
                to_svg(
                    plot_overlap(check),
                    identifier="overlap",
                    title="Overlap of two solutions against load",
                    description="The saddle point and the limit 2 alpha as lines, sampled overlaps "
                    "as points with bars.",
                ),
            )
        ],
        checks=[check],
    )


def _work(sizes: Sizes, dim: int, facts: int) -> float:
    """Rough seconds of one instance: bounces grow with the load, each costs p M + d^2 numbers."""
    points = sizes.chains * (sizes.samples + sizes.warmup) / 192.0
    return points * (0.1 + 1.5 * (dim / 12.0) ** 2 * facts / dim**2 * sizes.competitors / 2.0)


def _cell_units(sizes: Sizes, seed: int, dim: int, facts: int, count: int) -> list[Unit]:
    work = _work(sizes, dim, facts)
    batch = max(2, min(count, round(sizes.seconds / work)))
    return [
        Unit(
            "validate.checks.overlap:measure_overlaps",
            {
                "dim": dim,
                "facts": facts,
                "competitors": sizes.competitors,
                "count": min(batch, count - first),
                "seed": [seed, 40, dim, facts, first],
                "chains": sizes.chains,
                "samples": sizes.samples,
                "warmup": sizes.warmup,
            },
            work=work * min(batch, count - first),
        )
        for first in range(0, count, batch)
    ]
