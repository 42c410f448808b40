"""Section "learning rules": Hebb, pseudo-inverse, Adam; exact laws, thresholds, accuracy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numerics import cone
from validate.checks.base import Check
from validate.checks.finite_size import Cell, cell_of
from validate.checks.hebbian import (
    check_every_recall,
    check_thresholds,
    check_typical_recall,
    plot_every,
)
from validate.checks.learning import check_learning, outcomes_of, plot_learning
from validate.checks.rule_laws import check_rule
from validate.checks.units import Unit
from validate.plotting import to_svg
from validate.report.model import Figure, Section

Loads = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Sizes:
    """(facts, instances) of each experiment, and the d at which it is done.

    `typical`, `every`: Hebb in the Gaussian problem; `hebb`, `inverse`: one-step rules in the
    decoupled problem; `learning`: all rules beside the exact solver in the original problem, facts
    as shares of the critical number. `noise`: the named alternatives have sigma times that.
    """

    hebbian_dim: int
    typical: Loads
    every: Loads
    rules_dim: int
    hebb: Loads
    inverse: Loads
    learning_dim: int
    learning: tuple[tuple[float, int], ...]
    noise: float = 1.05
    seconds: float = 15.0


SIZES = {
    "quick": Sizes(
        hebbian_dim=10,
        typical=((16, 200), (22, 150), (30, 120), (42, 100)),
        every=((7, 400), (9, 400), (11, 400), (13, 400)),
        rules_dim=10,
        hebb=((12, 200), (20, 150), (32, 100)),
        inverse=((14, 200), (20, 150), (32, 100)),
        learning_dim=12,
        learning=((0.4, 3), (0.7, 3), (0.9, 3), (1.2, 3), (1.6, 3)),
    ),
    "paper": Sizes(
        hebbian_dim=16,
        typical=((28, 1000), (38, 1000), (50, 800), (70, 500), (100, 300)),
        every=((12, 2500), (15, 2500), (18, 2500), (21, 2500), (25, 2500)),
        rules_dim=16,
        hebb=((20, 2000), (32, 1500), (50, 1000), (80, 500)),
        inverse=((24, 2000), (32, 1500), (50, 1000), (80, 500)),
        learning_dim=20,
        learning=(
            (0.25, 12), (0.4, 12), (0.55, 12), (0.75, 16), (0.9, 20), (1.05, 20), (1.25, 12),
            (1.6, 12),
        ),
    ),
}  # fmt: skip


def units(sizes: Sizes, seed: int) -> list[Unit]:
    """Batches of instances of every experiment."""
    return [unit for plan in _plans(sizes, seed) for _, batch in plan for unit in batch]


def build(sizes: Sizes, seed: int, answers: list[Any]) -> Section:
    """Exact laws of one-step rules, tested; thresholds and accuracies of all rules, measured."""
    queue = iter(answers)
    found = [
        [(facts, [next(queue) for _ in batch]) for facts, batch in plan]
        for plan in _plans(sizes, seed)
    ]
    typical, every = (_cells(sizes.hebbian_dim**2, part) for part in found[:2])
    hebb, inverse = (_cells(sizes.rules_dim, part) for part in found[2:4])
    outcomes = [o for facts, batch in found[4] for o in outcomes_of(facts, batch)]
    checks = [
        check_typical_recall(sizes.hebbian_dim, typical, seed=seed, noise=sizes.noise),
        check_every_recall(sizes.hebbian_dim, every, seed=seed, noise=sizes.noise),
        check_thresholds(sizes.hebbian_dim, typical, every),
        check_rule("decoupled", "hebbian", sizes.rules_dim, hebb, seed=seed, noise=sizes.noise),
        check_rule(
            "decoupled", "pseudo_inverse", sizes.rules_dim, inverse, seed=seed, noise=sizes.noise
        ),
        check_learning(
            sizes.learning_dim, outcomes, float(cone.critical_facts(sizes.learning_dim))
        ),
    ]
    return Section(
        identifier="rules",
        title="Learning rules",
        introduction="What simple rules make of the same facts: the Hebbian sum, the "
        "pseudo-inverse (least squares), and gradient descent (Adam) on the cross-entropy of "
        "retrieval. Recall by the first two has exact laws at every size.",
        figures=_figures(sizes, checks),
        checks=checks,
    )


def _figures(sizes: Sizes, checks: list[Check]) -> list[Figure]:
    typical, every, _, _, _, learned = checks
    return [
        Figure(
            "hebbian",
            "Hebbian recall, Gaussian problem",
            "Share of facts recalled, and chance that all are, against the number of facts: exact "
            "laws as two falling lines, measured values as points with bars.",
            "The memory that adds up the facts, W = Σ u eᵀ, loses its first fact long before it "
            "loses half of them: thresholds 1/8 and 1/2 in the limit. The lines are exact at "
            "this d. Agreement: points within their bars on them.",
            to_svg(
                plot_every(every, typical),
                identifier="hebbian",
                title=f"Hebbian recall against number of facts at d = {sizes.hebbian_dim}",
                description="Two falling curves, and measured points for each.",
            ),
        ),
        Figure(
            "learning",
            "Accuracy of three rules, original problem",
            "Share of facts recalled against the number of facts for Hebb, pseudo-inverse and "
            "Adam as points with bars; the laws of the two one-step rules in the decoupled problem "
            "as lines; a dotted line at the critical number of facts.",
            "The dotted line is where p δ = d². Expected: Adam at 1 to its left and below 1 to its "
            "right. The lines hold for the decoupled problem; here competitors are stored facts "
            "themselves, so points of the one-step rules below their lines are no contradiction at "
            "finite d. Bars are 95 % intervals over instances.",
            to_svg(
                plot_learning(learned),
                identifier="learning",
                title=f"Accuracy of three rules against facts at d = {sizes.learning_dim}",
                description="Points of the three rules, laws of the one-step rules as lines.",
            ),
        ),
    ]


def _cells(size: int, part: list[tuple[int, list[Any]]]) -> list[tuple[int, Cell]]:
    return [(facts, cell_of(size, batch)) for facts, batch in part]


def _plans(sizes: Sizes, seed: int) -> list[list[tuple[int, list[Unit]]]]:
    """The five experiments: for each number of facts its batches of units."""
    centre = int(cone.critical_facts(sizes.learning_dim))
    learning = tuple((max(3, round(share * centre)), n) for share, n in sizes.learning)
    experiments = (
        ("hebbian:measure_hebbian", "", sizes.hebbian_dim, sizes.typical, 21),
        ("hebbian:measure_hebbian", "", sizes.hebbian_dim, sizes.every, 22),
        ("rule_laws:measure_rules", "decoupled", sizes.rules_dim, sizes.hebb, 23),
        ("rule_laws:measure_rules", "decoupled", sizes.rules_dim, sizes.inverse, 24),
        ("learning:measure_learning", "original", sizes.learning_dim, learning, 31),
    )
    return [
        [(p, _batch(sizes, task, kind, dim, p, n, seed, stream)) for p, n in loads]
        for task, kind, dim, loads, stream in experiments
    ]


def _batch(
    sizes: Sizes, task: str, kind: str, dim: int, facts: int, count: int, seed: int, stream: int
) -> list[Unit]:
    """Units of about `sizes.seconds` for `count` instances."""
    work = 3e-3 + 2e-8 * facts**2 * dim**2
    if task.startswith("learning"):
        work = 1.5 * (dim / 20.0) ** 2
    batch = max(1, min(count, round(sizes.seconds / work)))
    return [
        Unit(
            f"validate.checks.{task}",
            {
                **({"kind": kind} if kind else {}),
                "dim": dim,
                "facts": facts,
                "count": min(batch, count - first),
                "seed": [seed, stream, facts, first],
            },
            work=work * min(batch, count - first),
        )
        for first in range(0, count, batch)
    ]
