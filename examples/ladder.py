"""Gaussian -> decoupled -> original at one d: certified success rates against the theory.

Claim: the Gaussian and the decoupled problem follow the exact finite-(d, p) law, the original one
lies a few per cent above it.
Run: python examples/ladder.py [figure.svg]
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path

from matplotlib.figure import Figure

from validate.checks.equivalence import check_equivalence
from validate.checks.ladder import Cell, ladder_points, ladder_units
from validate.checks.success_curve import check_success_curve, plot_success_curves
from validate.checks.theory_curve import TheoryCurve
from validate.checks.units import run_units
from validate.cli.common import write_text_atomically
from validate.plotting import PAPER

DIM, INSTANCES, SEED = 8, 40, 0


def main() -> None:
    """Print the rates beside the exact law; write the figure if a file is given."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", nargs="?", type=Path, help="SVG file to write")
    file = parser.parse_args().file
    curve = TheoryCurve.at(DIM)
    loads = curve.loads((0.9, 0.65, 0.35, 0.1))
    kinds = ("gaussian", "decoupled", "original")
    cells = [Cell(kind, DIM, facts, INSTANCES) for kind in kinds for facts in loads]
    units = ladder_units(cells, SEED, batch=20)
    points = ladder_points(cells, units, run_units(units))
    rows = {kind: [p for p in points if p.kind == kind] for kind in kinds}
    print(f"d = {DIM}, {INSTANCES} certified instances a cell; share where all facts are recalled")
    print(f"{'p':>4}  {'exact':>6}  " + "  ".join(f"{kind:>9}" for kind in kinds))
    for number, facts in enumerate(loads):
        rates = "  ".join(f"{rows[k][number].separable / INSTANCES:9.3f}" for k in kinds)
        print(f"{facts:>4}  {curve.exact([facts])[0]:6.3f}  {rates}")
    checks = [check_success_curve(rows[kind], curve, seed=SEED) for kind in kinds[:2]]
    for kind, check in zip(kinds, checks, strict=False):
        print(
            f"{kind:>9}: 50 % point {check.measured} {check.interval}, exact {check.predicted}; "
            f"p-value of the exact law {check.p_value:.3f}"
        )
    shift = check_equivalence(rows["original"], rows["decoupled"], curve)
    print(f" original: 50 % point {shift.measured} from the decoupled one, {shift.interval}")
    if file is not None:
        write_text_atomically(file, drawing(plot_success_curves([*checks, shift], DIM)))
        print(f"figure written to {file}")


def drawing(figure: Figure) -> str:
    """The figure as SVG text of its own."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", facecolor=PAPER, metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


if __name__ == "__main__":
    main()
