"""Section "spectra": singular values of memories, full and low rank, and what the start leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numerics.cone import critical_facts
from numerics.spectrum import SingularValueLaw
from validate.checks.spectra import (
    Spectra,
    check_quarter_circle,
    check_spectra,
    check_start,
    plot_distances,
    plot_spectrum,
    plot_start,
    spectra_of,
)
from validate.checks.units import Unit
from validate.plotting import to_svg
from validate.report.model import Figure, Section

SHARE = 0.85  # of the critical number of facts, so that nearly every instance has a memory


@dataclass(frozen=True)
class Sizes:
    """(d, instances) for each experiment; `aspect`: the named alternative of the rank test.

    `others`: (problem, method, d, instances); `low_rank`: the same with rank d/2; `starts`: (start,
    score scale, instances) at `start_dim`.
    """

    gaussian: tuple[tuple[int, int], ...]
    others: tuple[tuple[str, str, int, int], ...]
    low_rank: tuple[tuple[str, str, int, int], ...]
    starts: tuple[tuple[str, float, int], ...]
    start_dim: int
    aspect: float
    seconds: float = 20.0


SIZES = {
    "quick": Sizes(
        gaussian=((8, 20), (12, 20)),
        others=(
            ("decoupled", "maximum_margin", 8, 8),
            ("decoupled", "maximum_margin", 12, 8),
            ("original", "maximum_margin", 8, 8),
            ("original", "maximum_margin", 12, 8),
            ("original", "adam", 8, 4),
            ("original", "adam", 12, 4),
        ),
        low_rank=(("gaussian", "low_rank", 8, 4),),
        starts=(("flat", 1.0, 4), ("gaussian", 20.0, 4)),
        start_dim=10,
        aspect=0.7,
    ),
    "paper": Sizes(
        gaussian=((8, 200), (12, 150), (16, 100)),
        others=tuple(
            (kind, method, dim, count)
            for kind, method in (
                ("decoupled", "maximum_margin"),
                ("original", "maximum_margin"),
                ("original", "adam"),
            )
            for dim, count in ((8, 60), (12, 40), (16, 30), (24, 20), (32, 6))
        ),
        low_rank=tuple(
            (kind, "low_rank", dim, count)
            for kind in ("gaussian", "original")
            for dim, count in ((8, 24), (12, 20), (16, 16))
        ),
        starts=(
            ("flat", 1.0, 12),
            ("flat", 20.0, 12),
            ("gaussian", 1.0, 12),
            ("gaussian", 5.0, 12),
            ("gaussian", 20.0, 12),
        ),
        start_dim=16,
        aspect=0.8,
    ),
}


def units(sizes: Sizes, seed: int) -> list[Unit]:
    """Batches of memories, then trained starts."""
    spectra = [unit for cell in _cells(sizes) for unit in _cell_units(sizes, seed, *cell)]
    return spectra + _start_units(sizes, seed)


def build(sizes: Sizes, seed: int, answers: list[Any]) -> Section:
    """Rank test of the Gaussian problem; distances of the others; the start."""
    queue = iter(answers)
    found = [
        spectra_of(
            kind,
            method,
            dim,
            _facts(dim, rank),
            [next(queue) for _ in _cell_units(sizes, seed, *c)],
        )
        for c in _cells(sizes)
        for kind, method, dim, rank, _ in [c]
    ]
    count = len(sizes.gaussian)
    gaussian, rest = found[:count], found[count:]
    full = [s for s in rest if s.rank == s.dim]
    low = [s for s in rest if s.rank < s.dim]
    quarter = check_quarter_circle(gaussian, seed=seed, aspect=sizes.aspect)
    others = check_spectra([*gaussian, *full], seed=seed)
    truncated = check_spectra(low, seed=seed)
    start = check_start(
        [(kind, scale, next(queue)) for kind, scale, _ in sizes.starts],
        sizes.start_dim,
        _facts(sizes.start_dim, sizes.start_dim),
    )
    return Section(
        identifier="spectra",
        title="Singular values of a memory",
        introduction="The best memory is claimed to be a random matrix made by the facts, with "
        "singular values on a quarter circle, cut from below at low rank. A matrix of finite size "
        "is never on the law exactly, so the yardstick are Gaussian matrices of the same size. One "
        "claim is tested, and it is the easy one: Gaussian scores have no preferred direction in "
        "the space of matrices, so the maximum-margin memory of the Gaussian problem, divided by "
        "its norm, is a Gaussian matrix divided by its norm, at every d and by symmetry alone. "
        "That test can convict the solver, the code or the law of Gaussian matrices, but it says "
        "nothing about facts that are vectors. For the decoupled and the original problem, for "
        "Adam and for low rank no such symmetry holds: the law is a statement about d → ∞, and no "
        "theory says how far a finite memory is from it. Those distances are measured and shown, "
        "without a verdict.",
        figures=[
            _spectrum_figure("spectrum", _largest([*gaussian, *full]), "quarter circle"),
            _spectrum_figure("spectrum-low-rank", _largest(low), "truncated quarter circle"),
            Figure(
                "spectrum-distances",
                "Distance to the quarter circle",
                "Wasserstein-1 distance of the singular values to the quarter circle against 1/d: "
                "Gaussian matrices as a line, memories of each problem as points with bars.",
                "The line shows Gaussian matrices of the same size. Agreement: points of the "
                "Gaussian problem on it, by symmetry; points of the other problems that come down "
                "to zero with 1/d, as the equivalence hypothesis asks. Points that level off above "
                "zero would contradict it. Bars are 95 % intervals over instances.",
                to_svg(
                    plot_distances(others),
                    identifier="spectrum-distances",
                    title="Distance of the singular values to the quarter circle against 1/d",
                    description="A line for Gaussian matrices and points for the memories of each "
                    "problem.",
                ),
            ),
            Figure(
                "start",
                "What is left of the start",
                "Cosine of the trained memory and its initial value against the ratio of their "
                "norms; a line where the two are equal, another at zero.",
                "Adam starts at W₀. Were W₀ kept and something independent added, the cosine would "
                "be |W₀|/|W| (line, at most 1). Points near zero: the start is forgotten; points "
                "on the line: it is still there.",
                to_svg(
                    plot_start(start),
                    identifier="start",
                    title="Cosine of final and initial memory against the ratio of norms",
                    description="Points for each kind of start, and the line of a start that is "
                    "kept.",
                ),
            ),
        ],
        checks=[quarter, others, truncated, start],
    )


def _largest(spectra: list[Spectra]) -> list[Spectra]:
    """The spectra at the largest d that occurs for every problem and method; at most three.

    The decoupled problem is left to the figure of distances.
    """
    spectra = [s for s in spectra if s.kind != "decoupled"]
    names = {s.name for s in spectra}
    common = [
        d for d in {s.dim for s in spectra} if {s.name for s in spectra if s.dim == d} == names
    ]
    dim = max(common) if common else max(s.dim for s in spectra)
    return [s for s in spectra if s.dim == dim]


def _spectrum_figure(identifier: str, spectra: list[Spectra], law: str) -> Figure:
    names = "; ".join(s.name for s in spectra)
    dim, rank = spectra[0].dim, spectra[0].rank
    size = f"d = {dim}" + (f", rank {rank}" if rank < dim else "")
    return Figure(
        identifier,
        f"Singular values, {size}",
        f"Density of the singular values of memories ({names}) at {size}: histogram points with "
        f"bars, the {law} as a line.",
        f"Agreement: points near the {law} within their bars, but for its edges, which are rounded "
        "at finite d also for Gaussian matrices. Memories: "
        f"{names}; bars are 95 % intervals over instances.",
        to_svg(
            plot_spectrum(spectra),
            identifier=identifier,
            title=f"Density of the singular values at {size}",
            description=f"Histogram points, and the {law} as a line.",
        ),
    )


def _facts(dim: int, rank: int) -> int:
    """Facts at `SHARE` of the critical number, p delta = d^2 I(rank_ratio) at low rank."""
    weights = critical_facts(dim)
    if rank == dim:
        return max(3, round(SHARE * weights))
    ratio = SingularValueLaw(rank_ratio="0.5").moment(2, 8).to_float_lossy() * 0.5
    return max(3, round(0.8 * SHARE * ratio * weights))  # margin ascent needs some room


def _cells(sizes: Sizes) -> list[tuple[str, str, int, int, int]]:
    """(problem, method, d, rank, instances) of every experiment, the rank test's first."""
    return [
        *(("gaussian", "maximum_margin", dim, dim, count) for dim, count in sizes.gaussian),
        *((kind, method, dim, dim, count) for kind, method, dim, count in sizes.others),
        *((kind, method, dim, dim // 2, count) for kind, method, dim, count in sizes.low_rank),
    ]


def _cell_units(
    sizes: Sizes, seed: int, kind: str, method: str, dim: int, rank: int, count: int
) -> list[Unit]:
    number = ("gaussian", "decoupled", "original").index(kind)
    base = 2.0 if method == "low_rank" else 0.6 if method == "adam" else 0.1
    work = base * (dim / 12.0) ** (4.0 if method == "maximum_margin" else 1.0)
    batch = max(1, min(count, round(sizes.seconds / work)))
    return [
        Unit(
            "validate.checks.spectra:measure_spectra",
            {
                "kind": kind,
                "method": method,
                "dim": dim,
                "facts": _facts(dim, rank),
                "rank": rank,
                "count": min(batch, count - first),
                "seed": [seed, 50 + number, dim, rank, first],
            },
            work=work * min(batch, count - first),
        )
        for first in range(0, count, batch)
    ]


def _start_units(sizes: Sizes, seed: int) -> list[Unit]:
    return [
        Unit(
            "validate.checks.spectra:measure_start",
            {
                "kind": "original",
                "dim": sizes.start_dim,
                "facts": _facts(sizes.start_dim, sizes.start_dim),
                "count": count,
                "seed": [seed, 55, number],
                "start": start,
                "scale": scale,
            },
            work=1.0 * count,
        )
        for number, (start, scale, count) in enumerate(sizes.starts)
    ]
