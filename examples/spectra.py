"""Singular values of learned memories against the quarter circle, at full and at low rank.

Claim: random facts leave no structure in the best memory; its singular values follow the quarter
circle, at low rank the quarter circle above a cut. Gaussian matrices of the same size say how far
from the law a finite spectrum lies anyway.
Run: python examples/spectra.py [figure.svg]
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path

from matplotlib.figure import Figure

from numerics.spectrum import SingularValueLaw
from validate.checks.spectra import (
    distances,
    gaussian_spectra,
    law_quantiles,
    measure_spectra,
    plot_spectrum,
    spectra_of,
)
from validate.cli.common import write_text_atomically
from validate.plotting import PAPER

DIM, SEED = 12, 7
MEMORIES = (  # problem, rule, facts, rank, instances
    ("gaussian", "maximum_margin", 33, 12, 12),
    ("original", "maximum_margin", 33, 12, 12),
    ("original", "adam", 33, 12, 6),
    ("gaussian", "low_rank", 22, 6, 3),
)


def main() -> None:
    """Print distances beside those of Gaussian matrices; write the figure if a file is given."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", nargs="?", type=Path, help="SVG file to write")
    file = parser.parse_args().file
    half = SingularValueLaw(rank_ratio="0.5")
    print(f"quarter circle on [0, 2]; at rank d/2 cut at {half.support()[0].to_string(10)}")
    print(f"d = {DIM}; Wasserstein-1 distance of the singular values to the law\n")
    print(f"{'memory':26} {'p':>3} {'rank':>4}  {'distance':>8}  Gaussian matrices")
    groups = []
    for kind, method, facts, rank, count in MEMORIES:
        answer = measure_spectra(kind, method, DIM, facts, rank, count, [SEED])
        group = spectra_of(kind, method, DIM, facts, [answer])
        noise = distances(gaussian_spectra(DIM, rank, 1000, [SEED]), law_quantiles(DIM, rank))
        print(
            f"{group.name:26} {facts:3d} {rank:4d}  {group.distances().mean():8.3f}  "
            f"{noise.mean():.3f} ± {noise.std():.3f}"
        )
        groups.append(group)
    if file is not None:
        write_text_atomically(file, drawing(plot_spectrum(groups[:3])))
        print(f"figure written to {file}")


def drawing(figure: Figure) -> str:
    """The figure as SVG text of its own."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", facecolor=PAPER, metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


if __name__ == "__main__":
    main()
