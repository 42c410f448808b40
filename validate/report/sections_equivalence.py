"""Section "original against decoupled": the excess of the 50 % point as a function of d."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from validate.checks.equivalence_limit import check_equivalence_limit, plot_equivalence_limit
from validate.checks.ladder import Cell, LadderPoint, ladder_points, ladder_units
from validate.checks.theory_curve import TheoryCurve
from validate.checks.units import Unit
from validate.plotting import to_svg
from validate.report.model import Figure, Section, Table


@dataclass(frozen=True)
class Sizes:
    """`ladder`: d, instances a load of the original problem, of the decoupled one (0: none).

    `targets`: success probabilities aimed at; `guess` (c, b): the excess (c delta + b)/d assumed
    when the loads of the original problem are placed, nothing else.
    """

    ladder: tuple[tuple[int, tuple[int, int]], ...]
    targets: tuple[float, ...] = (0.85, 0.5, 0.15)
    guess: tuple[float, float] = (0.22, -0.4)


SIZES = {
    "quick": Sizes(((6, (60, 30)), (8, (60, 30)), (12, (30, 12)), (16, (12, 0)), (20, (5, 0)))),
    "paper": Sizes(
        (
            (6, (1500, 600)),
            (8, (1500, 600)),
            (12, (1200, 400)),
            (16, (700, 200)),
            (24, (160, 40)),
            (32, (50, 12)),
            (40, (16, 0)),
        )
    ),
}


def curves(sizes: Sizes) -> list[int]:
    """Dimensions whose exact curves are needed."""
    return [dim for dim, _ in sizes.ladder]


def cells(sizes: Sizes) -> list[Cell]:
    """The original problem around its own 50 % point, the decoupled one around the exact one."""
    found = []
    for dim, (original, decoupled) in sizes.ladder:
        curve = TheoryCurve.at(dim)
        excess = (sizes.guess[0] * curve.delta_at_half + sizes.guess[1]) / dim
        moved = curve.interpolated(curve.facts / (1.0 + excess))
        loads = sorted({int(curve.facts[np.argmin(np.abs(moved - t))]) for t in sizes.targets})
        found += [Cell("original", dim, p, original) for p in loads]
        if decoupled:
            found += [Cell("decoupled", dim, p, decoupled) for p in curve.loads(sizes.targets)]
    return found


def units(sizes: Sizes, seed: int) -> list[Unit]:
    """Batches of certified instances; streams of their own, apart from those of the ladder."""
    return ladder_units(cells(sizes), seed + 1, batch=20)


def build(sizes: Sizes, seed: int, answers: list[Any]) -> Section:
    """The extrapolation, its figure and the ratios as a table."""
    points = ladder_points(cells(sizes), units(sizes, seed), answers)

    def rows(kind: str) -> list[list[LadderPoint]]:
        of_kind = [[p for p in points if p.kind == kind and p.dim == d] for d, _ in sizes.ladder]
        return [row for row in of_kind if row]

    theories = {dim: TheoryCurve.at(dim) for dim, _ in sizes.ladder}
    check = check_equivalence_limit(rows("original"), rows("decoupled"), theories, seed=seed)
    return Section(
        identifier="equivalence",
        title="Original against decoupled, as d grows",
        introduction="In the original problem all facts share their competitors. That may make it "
        "a little easier at finite d: its 50 % point may lie above that of the decoupled problem, "
        "by a few per cent where it was measured before. The decoupling hypothesis says that this "
        "excess vanishes as d grows; here it is measured at several d and extrapolated. No theory "
        "gives its form; the fit takes a correction linear in δ, over d. Without bounds that would "
        "fit anything, so the hypothesis states them: 0 to 8 % at every d, curves half to twice as "
        "wide as the exact ones; data that no such curve meets are rejected. The box is "
        "empirical: twice the 2 to 4 % that were measured at d = 8 to 40 before. So the test sees "
        "an excess that remains, not one that the correction can describe: an extra 0.3/d (5 % at "
        "d = 6, 2.5 % at d = 12) would not be noticed, and with as few instances as in the quick "
        "preset not even 5 % more at d ≤ 12 alone. An excess of 2 % that remains is seen poorly "
        "too; the named alternative is 5 %.",
        tables=[
            Table(
                "50 % point over the exact one",
                ("problem", "d", "δ/d", "ratio", "95 % interval"),
                [
                    (
                        r["problem"],
                        str(r["dim"]),
                        f"{r['delta_over_d']:.3f}",
                        f"{r['ratio']:.4f}",
                        f"[{r['ratio_low']:.4f}, {r['ratio_high']:.4f}]",
                    )
                    for r in check.table
                    if "ratio_low" in r
                ],
                "Widths of the success curves are fitted at every d; instances are certified.",
            )
        ],
        figures=[
            Figure(
                "equivalence-limit",
                "Excess of the original problem",
                "Excess of the 50 % point in per cent against 1/d: triangles for the original "
                "problem, squares for the decoupled one, a line at zero for the exact law, and the "
                "curve of the fit, which is made to end at zero at the left edge.",
                "The curve of the fit ends at zero at the left edge (d → ∞) by hypothesis; the "
                "thick bar there is the limit left free, with its 95 % interval. Agreement: that "
                "bar holds zero, and triangles lie within their bars on the curve. Squares are the "
                "control: within their bars on the line at zero if the exact law holds for the "
                "decoupled problem.",
                to_svg(
                    plot_equivalence_limit(check),
                    identifier="equivalence-limit",
                    title="Excess of the 50 % point against 1/d",
                    description="Measured excess of the original and the decoupled problem with "
                    "95 % intervals, the exact law at zero and the fit that ends at zero.",
                ),
            )
        ],
        checks=[check],
    )
