"""The sections of the report; each runs its experiments and returns what is to be shown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from numerics import cone
from validate.checks.base import Check
from validate.checks.embeddings import check_embeddings, plot_embeddings
from validate.checks.equivalence import check_equivalence
from validate.checks.hebbian import check_hebbian, plot_hebbian
from validate.checks.ladder import LadderPoint
from validate.checks.learning import check_learning, learn, plot_learning
from validate.checks.parallel import Cell, measure_cells
from validate.checks.statistical_dimension import (
    check_active_competitors,
    check_statistical_dimension,
    plot_active_competitors,
    plot_statistical_dimension,
)
from validate.checks.success_curve import check_success_curve, plot_success_curves
from validate.checks.theory_curve import TheoryCurve, leading_order_facts
from validate.plotting import to_svg
from validate.report.model import Figure, Section, Table
from validate.report.presets import LADDER_KINDS, Preset
from validate.report.progress import Reporter


def grouped(number: int) -> str:
    """An integer for a table: grouped digits, or 10^k for large powers of ten.

    >>> grouped(4096), grouped(10**100)
    ('4\u202f096', '10^100')
    """
    text = str(number)
    if len(text) > 12 and text == "1" + "0" * (len(text) - 1):
        return f"10^{len(text) - 1}"
    return f"{number:,}".replace(",", "\u202f")


def threshold_section(preset: Preset, reporter: Reporter) -> Section:
    """Certified thresholds: by number of facts and by dimension."""
    reporter.begin("certified thresholds")
    by_facts = []
    for facts in preset.table_facts:
        by_facts.append(
            (
                grouped(facts),
                cone.statistical_dimension(facts - 1, preset.digits).to_string(preset.digits),
                cone.critical_load(facts, digits=preset.digits).to_string(preset.digits),
                cone.facts_per_parameter(facts, digits=preset.digits).to_string(preset.digits),
            )
        )
        reporter.advance(0.1)
    by_dim = []
    for dim in preset.table_dims:
        facts = int(cone.critical_facts(dim))
        leading = leading_order_facts(dim)
        by_dim.append(
            (
                str(dim),
                grouped(dim * dim),
                grouped(facts),
                grouped(round(leading)),
                f"{facts / leading:.2f}",
            )
        )
        reporter.advance(0.1)
    return Section(
        identifier="thresholds",
        title="How many facts fit: certified thresholds",
        introduction="A linear memory with d² weights recalls p random facts, all of them, up to "
        "p δ(p−1) = d², where δ(M) is the statistical dimension for M competitors. The critical "
        "load α_c(p) = log p / δ(p−1) tends to 1/2 only as log log p / log p: at every size in use "
        "the finite-p value is what counts.",
        tables=[
            Table(
                "By number of facts",
                ("facts p", "δ(p−1)", "critical load α_c(p)", "facts per weight 1/δ"),
                by_facts,
                f"Every printed digit is proved by ball arithmetic (up to {preset.digits} asked).",
            ),
            Table(
                "By dimension",
                ("d", "weights d²", "most facts p_c", "p from α_c = 1/2", "ratio"),
                by_dim,
                "p_c: largest p with p δ(p−1) ≤ d², decided rigorously. Next to it, what the "
                "limit value α_c = 1/2 would say (p log p = d²/2), and by how much that is short.",
            ),
        ],
    )


def cone_section(preset: Preset, seed: int, reporter: Reporter) -> Section:
    """delta and the law of K against direct projection."""
    reporter.begin("projection on the cone")
    sizes = preset.projection_sizes
    predicted = [cone.statistical_dimension(m, 15).to_float_lossy() for m in sizes]
    dimension = check_statistical_dimension(sizes, predicted, seed=seed, samples=preset.projections)
    reporter.advance(5.0)
    volumes = [
        v.to_float_lossy() for v in cone.intrinsic_volumes(preset.volumes_at, digits=15).volumes
    ]
    active = check_active_competitors(
        preset.volumes_at, volumes, seed=seed, samples=preset.projections
    )
    reporter.advance(3.0)
    grid = np.unique(np.geomspace(1, max(sizes), 25).round().astype(int)).tolist()
    curve = [(m, cone.statistical_dimension(m, 15).to_float_lossy()) for m in grid]
    return Section(
        identifier="cone",
        title="The cone behind the formulas",
        introduction="δ and v_k come from integrals with proved error bounds. Here Gaussian points "
        "are projected on the retrieval cone by sorting, a route that shares no formula with them.",
        figures=[
            Figure(
                "statistical-dimension",
                "Statistical dimension",
                "Statistical dimension against the number of competitors on a logarithmic axis. "
                "The measured points lie on the rising certified curve.",
                "Look for points on the line; their error bars are smaller than the marks.",
                to_svg(
                    plot_statistical_dimension(dimension, curve),
                    identifier="statistical-dimension",
                    title="Statistical dimension against number of competitors",
                    description="Points from direct projection lie on the certified curve.",
                ),
            ),
            Figure(
                "active-competitors",
                "Active competitors",
                f"Probability that k of {preset.volumes_at} competitors are active; measured "
                "shares lie on the curve of intrinsic volumes.",
                f"How many of M = {preset.volumes_at} competitors are pressed down to the decision "
                "level; the mean of this law is δ(M).",
                to_svg(
                    plot_active_competitors(active),
                    identifier="active-competitors",
                    title="Law of the number of active competitors",
                    description="A single-humped distribution; measured shares follow it.",
                ),
            ),
        ],
        checks=[dimension, active],
    )


def ladder_section(preset: Preset, seed: int, workers: int, reporter: Reporter) -> Section:
    """Gaussian -> decoupled -> original at every dimension of the preset."""
    reporter.begin("exact success curves")
    curves = {}
    for dim, _ in preset.ladder:
        curves[dim] = TheoryCurve.at(dim)
        reporter.advance(1.0)
    cells = [
        Cell(kind, dim, facts, count)
        for dim, counts in preset.ladder
        for kind, count in zip(LADDER_KINDS, counts, strict=True)
        for facts in curves[dim].loads(preset.targets)
    ]
    reporter.begin("ladder of certified instances")
    points = measure_cells(
        cells,
        seed=seed,
        workers=workers,
        progress=lambda cell, n: reporter.advance(n * instance_work(cell.kind, cell.dim)),
    )
    checks: list[Check] = []
    figures: list[Figure] = []
    for dim, _ in preset.ladder:
        of_kind = {
            kind: [p for p in points if p.kind == kind and p.dim == dim] for kind in LADDER_KINDS
        }
        found = ladder_checks(of_kind, curves[dim], seed)
        checks += found
        figures.append(_ladder_figure(found, dim, preset))
    return Section(
        identifier="ladder",
        title="Gaussian → decoupled → original",
        introduction="Each rung isolates one assumption. Gaussian against the curve tests the "
        "replica calculation itself; decoupled against the curve tests Gaussian universality; "
        "original against decoupled tests the decoupling hypothesis, where a small shift is "
        "expected at finite d. Every instance is solved and its verdict proved.",
        figures=figures,
        checks=checks,
    )


def ladder_checks(
    points: dict[str, list[LadderPoint]], curve: TheoryCurve, seed: int
) -> list[Check]:
    """The three comparisons at one dimension."""
    return [
        check_success_curve(points["gaussian"], curve, seed=seed),
        check_success_curve(points["decoupled"], curve, seed=seed + 7),
        check_equivalence(points["original"], points["decoupled"], curve),
    ]


def _ladder_figure(checks: Sequence[Check], dim: int, preset: Preset) -> Figure:
    counts = ", ".join(map(str, dict(preset.ladder)[dim]))
    return Figure(
        f"ladder-{dim}",
        f"Success curve at d = {dim}",
        f"Probability that all facts are recalled against the number of facts at d = {dim}. The "
        "exact curve falls from one to zero; the measured Gaussian and decoupled rates follow it, "
        "the original ones lie a little to the right.",
        f"Circles and squares should lie on the line, triangles slightly to its right. {counts} "
        "certified instances a point (Gaussian, decoupled, original); bars are exact 95 % "
        "intervals; points of one load are drawn side by side. α_c = 1/2 would put the drop at "
        f"p = {leading_order_facts(dim):.0f}.",
        to_svg(
            plot_success_curves(checks, dim),
            identifier=f"ladder-{dim}",
            title=f"Success probability against number of facts at d = {dim}",
            description="Measured rates of the three problems with 95 % intervals over the exact "
            "curve of the Gaussian problem.",
        ),
    )


def instance_work(kind: str, dim: int) -> float:
    """Rough seconds for one certified instance, for the progress bar only."""
    return (0.6 if kind == "gaussian" else 0.1) * (dim / 20.0) ** 3


def learning_work(preset: Preset) -> float:
    """Rough seconds of the learning rules, for the progress bar only."""
    return 1.0 * len(preset.learning_shares) * preset.learning_instances


def derivation_section(reporter: Reporter) -> Section:
    """The derivation of the free entropy, the capacity and the scaling limit, step by step."""
    from replica.catalogue import model

    reporter.begin("derivation")
    derivation = model("spherical", "top_one").derivation
    reporter.advance(3.0)
    return Section(
        identifier="derivation",
        title="Derivation",
        introduction="From the replicated action to the capacity. Every line is the output of an "
        "operation on expressions, named under it; nothing is typed in. Wide formulas scroll.",
        derivation=derivation,
    )


def learning_section(preset: Preset, seed: int, workers: int, reporter: Reporter) -> Section:
    """Hebbian recall against its exact law; Hebb, Adam and exact solver on the same instances."""
    reporter.begin("Hebbian memory")
    hebb = check_hebbian(
        preset.hebbian_dim,
        preset.hebbian_loads,
        preset.hebbian_instances,
        seed=seed,
        progress=lambda: reporter.advance(0.005),
    )
    reporter.begin("Adam")
    dim = preset.learning_dim
    centre = int(cone.critical_facts(dim))
    loads = sorted({max(3, round(share * centre)) for share in preset.learning_shares})
    outcomes = learn(
        dim,
        loads,
        preset.learning_instances,
        seed=seed,
        workers=workers,
        progress=lambda _: reporter.advance(1.0),
    )
    adam = check_learning(dim, outcomes, centre)
    return Section(
        identifier="learning",
        title="Learning rules",
        introduction="What simple rules make of the same facts: the Hebbian sum, and gradient "
        "descent (Adam) on the cross-entropy of retrieval.",
        figures=[
            Figure(
                "hebbian",
                "Hebbian recall, Gaussian problem",
                "Share of facts recalled against the number of facts; the measured points lie on "
                "the falling exact curve.",
                "The memory that just adds up the facts, W = Σ u eᵀ, loses them gradually, long "
                "before capacity. Points should lie on the solid line, an exact finite-size law; "
                "the dashed one is its large-d form.",
                to_svg(
                    plot_hebbian(hebb),
                    identifier="hebbian",
                    title=f"Hebbian recall against number of facts at d = {preset.hebbian_dim}",
                    description="Measured shares with 95 % intervals on the exact curve.",
                ),
            ),
            Figure(
                "learning",
                "Adam and Hebb, original problem",
                "Share of facts recalled against the number of facts for Adam and Hebb. Adam stays "
                "at one up to the capacity and falls after it; Hebb falls from the start.",
                "Adam should recall everything left of the dotted line, where p δ = d², and lose "
                "facts right of it; Hebb lies below its large-d law, by a gap that closes as d "
                f"grows. {preset.learning_instances} instances a load; bars span the instances.",
                to_svg(
                    plot_learning(adam),
                    identifier="learning",
                    title=f"Accuracy of Adam and Hebb against number of facts at d = {dim}",
                    description="Adam recalls all facts up to the capacity; Hebb far fewer.",
                ),
            ),
        ],
        checks=[hebb, adam],
    )


def embeddings_section(path: Path, preset: Preset, seed: int, reporter: Reporter) -> Section:
    """The user's own facts: how many components they need, true and shuffled."""
    from validate.fit import fit
    from validate.problems.files import read_embeddings

    reporter.begin("your embeddings")
    result = fit(read_embeddings(path), shuffles=preset.shuffles, seed=seed)
    reporter.advance(10.0)
    check = check_embeddings(result, path.name)
    least = result.least.components
    return Section(
        identifier="embeddings",
        title="Real embeddings",
        introduction=f"{path.name}: {result.embeddings.facts} facts with embeddings of "
        f"{result.embeddings.components} components. How many leading components does a memory "
        "need to recall all of them? Run factcap fit on a file of your own.",
        figures=[
            Figure(
                "embeddings",
                "Components needed",
                f"The true pairing needs {least} components; random facts would need "
                f"{result.theory}.",
                "The true pairing (triangle) against shuffled pairings of the same vectors "
                "(squares) and the theory for random facts (line): facts with structure are "
                "cheaper, and shuffling takes the structure away.",
                to_svg(
                    plot_embeddings(check),
                    identifier="embeddings",
                    title="Least number of components by pairing",
                    description=f"True pairing {least}, theory for random facts {result.theory}.",
                ),
            )
        ],
        checks=[check],
    )
