"""Which ridge to train with, and what accuracy to expect: theory beside trained memories.

For a d x d memory at several numbers of facts and three ridges: the accuracy predicted, and what
memories trained on random embeddings (original problem) reach; a star marks the best ridge.
Predictions are for large d; at d = 12 trained memories lie below them, most at a large ridge.
Run: python examples/trained_memory.py [FILE.svg]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from numerics.cone import critical_facts
from numerics.trained import predict
from validate.cli.common import write_text_atomically
from validate.plotting import label_axes, new_figure, note, simulation_points, theory_line, to_svg
from validate.problems import make_problem
from validate.solvers.ridge import ridge_memory

DIM, FACTS, RIDGES, SEEDS = 12, (20, 36, 60), (0.01, 0.3, 10.0), 4


def train(facts: int, ridge: float) -> list[float]:
    """Accuracy of memories within a millionth of the minimiser, proved by strong convexity."""
    problems = [make_problem("original", dim=DIM, facts=facts, seed=s) for s in range(SEEDS)]
    return [ridge_memory(problem, ridge).accuracy for problem in problems]


def main() -> None:
    """Print the table; draw accuracy against load, if a file is given."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", nargs="?", type=Path, help="SVG file to draw the figure to")
    file = parser.parse_args().file
    print(f"d = {DIM}: perfect recall ends at {critical_facts(DIM)} facts; predicted, trained")
    print("facts  " + "".join(f"ridge {ridge:<12g}" for ridge in RIDGES))
    predicted: dict[float, list[float]] = {ridge: [] for ridge in RIDGES}
    trained: dict[float, list[list[float]]] = {ridge: [] for ridge in RIDGES}
    for facts in FACTS:
        for ridge in RIDGES:
            found = predict(DIM * DIM, facts, facts - 1, ridge, accuracy=0.02)
            predicted[ridge].append(found.accuracy.value)
            trained[ridge].append(train(facts, ridge))
        best = max(predicted[ridge][-1] for ridge in RIDGES)
        cells = (
            f"{'*' if predicted[r][-1] == best else ' '}{predicted[r][-1]:.2f}, "
            f"{sum(trained[r][-1]) / SEEDS:.2f}       "
            for r in RIDGES
        )
        print(f"{facts:5d}  {''.join(cells)}".rstrip())
    if file is None:
        return
    figure, axes = new_figure()
    for series, ridge in enumerate(RIDGES):
        theory_line(axes, FACTS, predicted[ridge], series=series, label=f"$\\lambda={ridge:g}$")
        means = [sum(found) / SEEDS for found in trained[ridge]]
        low, high = ([end(found) for found in trained[ridge]] for end in (min, max))
        simulation_points(axes, FACTS, means, low, high, series=series, label="trained, range")
    note(axes, float(int(critical_facts(DIM))), r"$p\,\delta=d^2$")
    label_axes(axes, "facts $p$", "accuracy", title=f"$d={DIM}$", legend="upper right")
    svg = to_svg(
        figure,
        identifier="trained",
        title="Accuracy of trained memories",
        description="Accuracy against the number of facts for each ridge: predictions as lines, "
        "trained memories as points with the range over seeds.",
    )
    write_text_atomically(file, svg)
    print(f"figure written to {file}")


if __name__ == "__main__":
    main()
