"""Section "scores": what the maximum-margin memory does to the scores of a fact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from validate.checks.score_laws import (
    Layout,
    ScoreData,
    check_active,
    check_best_law,
    check_normalised,
    check_scales,
    check_target_law,
    collect,
    plot_active,
    plot_normalised,
    plot_score_laws,
)
from validate.checks.units import Unit
from validate.plotting import to_svg
from validate.report.model import Figure, Section

# M = 9, 3 facts for 16 weights: the target score lies near 1.76, the best competitor near 0.47.
LAYOUT = Layout(6, (1.2, 1.5, 1.8, 2.1, 2.4), (-0.1, 0.2, 0.5, 0.8, 1.1))
COMPETITORS = 9
FACTS_PER_16 = 3


@dataclass(frozen=True)
class Sizes:
    """(d, instances) of the Gaussian problem and of the others; d multiples of 4.

    `widening`: the named alternative is a score law that much wider.
    """

    gaussian: tuple[tuple[int, int], ...]
    others: tuple[tuple[int, int], ...]
    widening: float
    seconds: float = 20.0


SIZES = {
    "quick": Sizes(((8, 160), (12, 70)), ((8, 12), (12, 8), (16, 6)), 1.3),
    "paper": Sizes(
        ((8, 2000), (12, 1200), (16, 600), (20, 150)),
        ((8, 400), (12, 200), (16, 100), (24, 30)),
        1.05,
    ),
}


def units(sizes: Sizes, seed: int) -> list[Unit]:
    """Batches of maximum-margin memories of the three problems."""
    return [
        unit
        for kind in ("gaussian", "decoupled", "original")
        for dim, count in _cells(sizes, kind)
        for unit in _cell_units(sizes, seed, kind, dim, count)
    ]


def build(sizes: Sizes, seed: int, answers: list[Any]) -> Section:
    """Score laws of the Gaussian problem, tested; of the others after normalising, measured."""
    queue = iter(answers)
    data: dict[str, ScoreData] = {}
    for kind in ("gaussian", "decoupled", "original"):
        cells = _cells(sizes, kind)
        found = [
            [next(queue) for _ in _cell_units(sizes, seed, kind, dim, count)]
            for dim, count in cells
        ]
        data[kind] = collect(kind, [_size(kind, dim) for dim, _ in cells], LAYOUT, found)
    gaussian = data["gaussian"]
    scales = check_scales(gaussian, widening=sizes.widening)
    active = check_active(gaussian, tilt=sizes.widening)
    target = check_target_law(gaussian, widening=sizes.widening)
    best = check_best_law(gaussian, widening=sizes.widening)
    others = [check_normalised(data[kind]) for kind in ("decoupled", "original")]
    return Section(
        identifier="scores",
        title="What happens to the scores of a fact",
        introduction="In theory the best memory lifts the target score and presses the K strongest "
        "competitors down to one level, a margin below it; all others stay Gaussian. Each law is "
        "compared with maximum-margin memories, instance by instance, in the limit of many "
        "weights.",
        figures=[
            Figure(
                "score-laws",
                "Target score and best competitor",
                "Distribution functions of the target score and of the best competitor: laws as "
                "lines, measured values as points with bars.",
                "Agreement: points within their bars on the line of their colour. Typical "
                "competitors have scores of order one standard deviation; "
                "the margin is the horizontal gap between the curves. Measured values are instance "
                "means extrapolated to N → ∞, bars are 95 % intervals over instances.",
                to_svg(
                    plot_score_laws(target, best, gaussian),
                    identifier="score-laws",
                    title="Distribution functions of target score and best competitor",
                    description="Two rising curves, and measured points for each.",
                ),
            ),
            Figure(
                "active-at-margin",
                "Active competitors at the largest margin",
                "Share of facts with k competitors at the margin: measured shares as points, "
                "intrinsic volumes as a line.",
                "How many competitors of a fact are held exactly at the margin. Agreement: points "
                "within their bars on the line at every k. The same integers "
                "decide the capacity: their mean without a margin is δ.",
                to_svg(
                    plot_active(active),
                    identifier="active-at-margin",
                    title="Law of the number of active competitors at the largest margin",
                    description="A single-humped law as a line, measured shares as points.",
                ),
            ),
            Figure(
                "normalised-scores",
                "Universality of the scores",
                "Mean target score and best competitor of the decoupled and the original problem, "
                "normalised fact by fact, over the Gaussian law, against 1/d.",
                "Agreement: points that tend to 1 at the left edge (1/d → 0). At finite d they may "
                "lie well beside it, for scales are universal in the limit only, unlike capacity "
                "and K; points that level off away from 1 would contradict universality. How fast "
                "they should come is not known, so this is measured, not tested.",
                to_svg(
                    plot_normalised(others),
                    identifier="normalised-scores",
                    title="Normalised scores over the Gaussian law against 1/d",
                    description="Ratios with bars at several 1/d; a line marks one.",
                ),
            ),
        ],
        checks=[scales, active, target, best, *others],
    )


def _size(kind: str, dim: int) -> tuple[int, int, int]:
    """(d, p, M): the original problem has M + 1 = p outputs, the others a fixed M."""
    facts = FACTS_PER_16 * dim * dim // 16
    return dim, facts, facts - 1 if kind == "original" else COMPETITORS


def _cells(sizes: Sizes, kind: str) -> tuple[tuple[int, int], ...]:
    return sizes.gaussian if kind == "gaussian" else sizes.others


def _cell_units(sizes: Sizes, seed: int, kind: str, dim: int, count: int) -> list[Unit]:
    number = ("gaussian", "decoupled", "original").index(kind)
    _, facts, competitors = _size(kind, dim)
    work = 0.02 + 0.1 * (dim / 16.0) ** 4 * (1.0 if kind != "original" else 2.0)
    batch = max(2, min(count, round(sizes.seconds / work)))
    return [
        Unit(
            "validate.checks.score_laws:measure_scores",
            {
                "kind": kind,
                "dim": dim,
                "facts": facts,
                "competitors": competitors,
                "count": min(batch, count - first),
                "seed": [seed, 30 + number, dim, first],
                "shares": LAYOUT.shares,
                "target_grid": list(LAYOUT.target_grid),
                "best_grid": list(LAYOUT.best_grid),
            },
            work=work * min(batch, count - first),
        )
        for first in range(0, count, batch)
    ]
