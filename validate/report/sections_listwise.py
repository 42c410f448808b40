"""Section "listwise recall": tail-average and halfspace thresholds on certified instances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from validate.checks.base import Check
from validate.checks.listwise import (
    ListCell,
    check_cover,
    check_list_threshold,
    list_counts,
    list_loads,
    list_threshold,
    list_units,
    plot_list_thresholds,
)
from validate.checks.units import Unit
from validate.plotting import to_svg
from validate.report.model import Figure, Section, Table


@dataclass(frozen=True)
class Sizes:
    """`cover`: N and instances a load; `series`: criterion, parameter and (N, instances a load)."""

    cover: tuple[int, int]
    series: tuple[tuple[str, str, tuple[tuple[int, int], ...]], ...]


SIZES = {
    "quick": Sizes(
        (64, 40),
        (
            ("margin", "0.5", ((16, 30), (36, 30), (64, 20))),
            ("tail", "0.5", ((20, 10), (40, 10), (70, 6))),
        ),
    ),
    "paper": Sizes(
        (100, 600),
        (
            ("margin", "0.5", ((16, 600), (36, 600), (100, 400))),
            ("tail", "0.5", ((20, 400), (40, 300), (90, 200))),
            ("tail", "0.1", ((20, 400), (40, 300), (90, 150))),
        ),
    ),
}


def cells(sizes: Sizes) -> list[list[ListCell]]:
    """Cover's cells, then those of every series."""
    size, count = sizes.cover
    found = [[ListCell("cover", "", size, p, count) for p in list_loads(2.0, size)]]
    for criterion, parameter, sizes_of in sizes.series:
        threshold = list_threshold(criterion, parameter)
        found.append(
            [
                ListCell(criterion, parameter, n, p, count)
                for n, count in sizes_of
                for p in list_loads(threshold, n)
            ]
        )
    return found


def units(sizes: Sizes, seed: int) -> list[Unit]:
    """Batches of certified instances, one series after the other."""
    return [unit for part in cells(sizes) for unit in list_units(part, seed)]


def build(sizes: Sizes, seed: int, answers: list[Any]) -> Section:
    """Cover's law, the thresholds of the series, and their figure."""
    checks: list[Check] = []
    used = 0
    for number, part in enumerate(cells(sizes)):
        own = list_units(part, seed)
        counts = list_counts(part, own, answers[used : used + len(own)])
        used += len(own)
        judge = check_list_threshold if number else check_cover
        checks.append(judge(part, counts, seed=seed))
    return Section(
        identifier="listwise",
        title="Listwise recall and halfspaces",
        introduction="Listwise recall asks that the target beats the average of the best r M "
        "competitors. As M grows this becomes Gardner's halfspace with the margin κ_r = "
        "φ(Φ⁻¹(1−r))/r. With one competitor it is Cover's problem, whose success curve is known "
        "exactly. Instances have Gaussian scores in R^N and are decided with proof: cutting "
        "planes on sets of competitors, each step certified.",
        tables=[
            Table(
                "Threshold p/N",
                ("criterion", "N", "N → ∞", "ratio", "95 % interval"),
                [
                    (
                        f"{r['criterion']} {r['parameter']}",
                        str(r["parameters"]),
                        f"{r['threshold'] / r['ratio']:.4f}",
                        f"{r['ratio']:.3f}",
                        f"[{r['ratio_low']:.3f}, {r['ratio_high']:.3f}]",
                    )
                    for check in checks[1:]
                    for r in check.table
                    if "ratio_low" in r
                ],
                "Ratio of the measured 50 % point to the prediction for infinite N.",
            )
        ],
        figures=[
            Figure(
                "listwise",
                "Listwise thresholds",
                "Ratio of measured to predicted threshold against 1/N; every series approaches one "
                "at the left edge.",
                "Points need not lie at 1, but each series should run into it at the left (N → ∞).",
                to_svg(
                    plot_list_thresholds(checks[1:]),
                    identifier="listwise",
                    title="Measured over predicted threshold against 1/N",
                    description="Halfspace and tail-average series with 95 % intervals.",
                ),
            )
        ],
        checks=checks,
    )
