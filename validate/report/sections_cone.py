"""Section "the cone": statistical dimension and active competitors by direct projection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from numerics import cone
from validate.checks.statistical_dimension import (
    check_active_competitors,
    check_statistical_dimension,
    plot_active_competitors,
    plot_statistical_dimension,
)
from validate.checks.units import Unit
from validate.plotting import to_svg
from validate.report.model import Figure, Section


@dataclass(frozen=True)
class Sizes:
    """`competitors`: every M; `law_at`: the M whose law of K is tested; `samples`: points each."""

    competitors: tuple[int, ...]
    law_at: int
    samples: int
    batch: int = 100_000


SIZES = {
    "quick": Sizes((1, 2, 9, 86), 86, 200_000),
    "paper": Sizes((1, 2, 9, 86, 261), 86, 2_000_000),
}


def units(sizes: Sizes, seed: int) -> list[Unit]:
    """Batches of projected points for every M."""
    return [
        Unit(
            "validate.checks.statistical_dimension:measure_projection",
            {"competitors": m, "seed": seed, "batch": number, "samples": count},
            work=0.1 + 4e-8 * count * m,
        )
        for m in dict.fromkeys((*sizes.competitors, sizes.law_at))
        for number, count in enumerate(_batches(sizes))
    ]


def build(sizes: Sizes, seed: int, answers: list[Any]) -> Section:
    """delta(M) and the law of K against projection."""
    by_size: dict[int, list[Any]] = {}
    for unit, answer in zip(units(sizes, seed), answers, strict=True):
        by_size.setdefault(unit.arguments["competitors"], []).append(answer)
    predicted = [_delta(m) for m in sizes.competitors]
    dimension = check_statistical_dimension(
        sizes.competitors, predicted, seed=seed, answers=by_size
    )
    volumes = [v.to_float_lossy() for v in cone.intrinsic_volumes(sizes.law_at, digits=15).volumes]
    active = check_active_competitors(
        sizes.law_at, volumes, seed=seed, answers=by_size[sizes.law_at]
    )
    grid = np.unique(np.geomspace(1, max(sizes.competitors), 25).round().astype(int)).tolist()
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
                "Points from direct projection, the certified values as a curve.",
                "Agreement: points on the line; their error bars are smaller than the marks, so "
                "any gap that can be seen is a disagreement.",
                to_svg(
                    plot_statistical_dimension(dimension, [(m, _delta(m)) for m in grid]),
                    identifier="statistical-dimension",
                    title="Statistical dimension against number of competitors",
                    description="Certified curve, and points from direct projection.",
                ),
            ),
            Figure(
                "active-competitors",
                "Active competitors",
                f"Probability that k of {sizes.law_at} competitors are active: measured shares as "
                "points, intrinsic volumes as a curve.",
                f"How many of M = {sizes.law_at} competitors are pressed down to the decision "
                "level; the mean of this law is δ(M). Agreement: points on the curve at every k.",
                to_svg(
                    plot_active_competitors(active),
                    identifier="active-competitors",
                    title="Law of the number of active competitors",
                    description="A single-humped law as a curve, measured shares as points.",
                ),
            ),
        ],
        checks=[dimension, active],
    )


def _batches(sizes: Sizes) -> list[int]:
    starts = range(0, sizes.samples, sizes.batch)
    return [min(sizes.batch, sizes.samples - start) for start in starts]


def _delta(competitors: int) -> float:
    return float(cone.statistical_dimension(competitors, 15).to_float_lossy())
