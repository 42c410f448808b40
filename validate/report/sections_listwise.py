"""Section "listwise recall": tail-average and halfspace thresholds on certified instances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from validate.checks.base import Check
from validate.checks.listwise import (
    ListCell,
    check_cover,
    list_counts,
    list_loads,
    list_threshold,
    list_units,
)
from validate.checks.listwise_law import pooled_volumes, projection_unit
from validate.checks.listwise_limit import check_list_threshold, plot_list_thresholds
from validate.checks.units import Unit
from validate.plotting import to_svg
from validate.report.model import Figure, Section, Table


@dataclass(frozen=True)
class Sizes:
    """`cover`: N and instances a load; `series`: criterion, parameter and (N, instances a load).

    `projections`: draws of the competitors for the law of every tail average.
    """

    cover: tuple[int, int]
    series: tuple[tuple[str, str, tuple[tuple[int, int], ...]], ...]
    projections: int


SIZES = {
    "quick": Sizes(
        (64, 40),
        (
            ("margin", "0.5", ((16, 30), (36, 30), (64, 20))),
            ("tail", "0.5", ((20, 10), (40, 10), (70, 6))),
        ),
        20_000,
    ),
    "paper": Sizes(
        (100, 600),
        (
            ("margin", "0.5", ((16, 600), (36, 600), (100, 400))),
            ("tail", "0.5", ((20, 400), (40, 300), (90, 200))),
            ("tail", "0.1", ((20, 400), (40, 300), (90, 150))),
        ),
        100_000,
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


def projected(part: list[ListCell]) -> dict[int, tuple[int, int]]:
    """By N of a series: M and the number of averaged competitors; none but for tail averages."""
    return {
        c.parameters: (c.competitors, round(float(c.parameter) * c.competitors))
        for c in part
        if c.criterion == "tail"
    }


def units(sizes: Sizes, seed: int) -> list[Unit]:
    """Batches of certified instances, one series after the other; the projections of each last."""
    return [unit for part in cells(sizes) for unit in _series_units(sizes, part, seed)]


def _series_units(sizes: Sizes, part: list[ListCell], seed: int) -> list[Unit]:
    laws = [projection_unit(M, m, seed, sizes.projections) for M, m in projected(part).values()]
    return [*list_units(part, seed), *laws]


def build(sizes: Sizes, seed: int, answers: list[Any]) -> Section:
    """Cover's law, the thresholds of the series, and their figure."""
    checks: list[Check] = []
    rest = list(answers)
    for number, part in enumerate(cells(sizes)):
        own = list_units(part, seed)
        counts = list_counts(part, own, rest[: len(own)])
        rest = rest[len(own) :]
        laws = {size: pooled_volumes([rest.pop(0)])[0] for size in projected(part)}
        checks.append(
            check_list_threshold(part, counts, seed=seed, volumes=laws)
            if number
            else check_cover(part, counts, seed=seed)
        )
    return Section(
        identifier="listwise",
        title="Listwise recall and halfspaces",
        introduction="Listwise recall asks that the target beats the average of the best r M "
        "competitors. As M grows this becomes Gardner's halfspace with the margin κ_r = "
        "φ(Φ⁻¹(1−r))/r. With one competitor it is Cover's problem, whose success curve is known "
        "exactly. So are the others: recall is membership of a cone, and the conic kinematic "
        "formula gives the success curve at every N from the law of K, the dimension of the face "
        "that a Gaussian point is projected on. For a halfspace with margin k, K is 0, or 1 plus a "
        "Poisson number of mean k(z + k) for a Gaussian z > −k; for a tail average of M "
        "competitors its law is found by projecting points. The hypothesis therefore leaves little "
        "room: beyond that law the 50 % point may move by 1 % at every N and the width by 10 %, "
        "which covers the error of the projected laws; data that no such curve meets are rejected. "
        "Instances have Gaussian scores in R^N and are decided with proof: cutting planes on sets "
        "of competitors, each step certified.",
        tables=[
            Table(
                "50 % point over the threshold p/N for infinite N",
                ("criterion", "N", "threshold, N → ∞", "law at N", "measured", "95 % interval"),
                [
                    (
                        f"{r['criterion']} {r['parameter']}",
                        str(r["parameters"]),
                        f"{law['threshold']:.4f}",
                        f"{law['expected']:.3f}",
                        f"{r['ratio']:.3f}",
                        f"[{r['ratio_low']:.3f}, {r['ratio_high']:.3f}]",
                    )
                    for check in checks[1:]
                    for r in check.table
                    if "ratio_low" in r
                    for law in check.select("theory", parameters=r["parameters"])
                ],
                "Law at N: 50 % point of the kinematic formula at this N (and about 2 N "
                "competitors of a tail average), divided by N times the threshold. Agreement: the "
                "interval holds the law's ratio, and that ratio tends to 1.",
            )
        ],
        figures=[
            Figure(
                "listwise",
                "Listwise thresholds",
                "50 % point over the threshold for infinite N, against 1/N: points with 95 % "
                "intervals for every series, the law of finite size as a line of the same colour, "
                "and the level 1.",
                "Agreement: points within their bars on the line of their colour; the lines run "
                "into 1 at the left edge (N → ∞), as they must for the threshold to be the one "
                "predicted. Thick bars at the left edge: the limit left free, with its 95 % "
                "interval. A wrong threshold would put all points of a series beside their line by "
                "the same share. A tail average starts far above 1 because it has only about 2 N "
                "competitors. Lines join computed N; triangles mark bars that leave the axes.",
                to_svg(
                    plot_list_thresholds(checks[1:]),
                    identifier="listwise",
                    title="50 % point over the threshold for infinite N against 1/N",
                    description="Halfspace and tail-average series with 95 % intervals, each with "
                    "the line of its law of finite size.",
                ),
            )
        ],
        checks=checks,
    )
