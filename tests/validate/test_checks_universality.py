"""Embedding ensembles: exact invariances, predicted shifts, planted thresholds."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest

from numerics.cone import statistical_dimension
from replica.errors import InvalidInput
from validate.checks.base import settle
from validate.checks.ladder import LadderPoint
from validate.checks.theory_curve import TheoryCurve
from validate.checks.universality import (
    EnsembleCell,
    check_universality,
    ensemble_points,
    ensemble_units,
    measure_dimension,
    measure_ensemble,
    plot_universality,
    predicted_shift,
    title_of,
)
from validate.decide import decide
from validate.problems import make_problem

SHIFTS = {
    "gaussian": 0.0,
    "correlated": 0.0,
    "sphere": 0.05,
    "sparse:0.5": -0.06,
    "sparse:0.8": -0.02,
}


@pytest.fixture(scope="module")
def curves() -> dict[int, TheoryCurve]:
    return {dim: TheoryCurve.at(dim) for dim in (8, 12)}


@pytest.mark.parametrize("kind", ["decoupled", "original"])
def test_correlated_embeddings_are_the_gaussian_problem_in_other_coordinates(kind: str) -> None:
    """With one seed the correlated instance is the Gaussian one times sqrt(spectrum): W absorbs it,
    so the verdicts agree one by one."""
    verdicts = [
        [
            decide(make_problem(kind, dim=6, facts=15, ensemble=e, seed=(s,))).verdict
            for s in range(16)
        ]
        for e in ("gaussian", "correlated")
    ]
    assert verdicts[0] == verdicts[1]
    assert set(verdicts[0]) == {"separable", "not_separable"}


def test_ensembles_have_streams_of_their_own() -> None:
    runs = [
        measure_ensemble("decoupled", e, 6, 15, seed=1, first=0, count=30)["verdicts"]
        for e in ("gaussian", "correlated")
    ]
    assert runs[0] != runs[1]
    assert runs[0] == measure_ensemble("decoupled", "gaussian", 6, 15, 1, 0, 30)["verdicts"]


def test_dimension_of_gaussian_scores_is_the_certified_one() -> None:
    """Mean of 40 000 projections within five standard errors (false alarm 6e-7)."""
    for ensemble, dim in (("gaussian", 6), ("gaussian", 12)):
        found = measure_dimension(ensemble, dim, 30, seed=4, samples=40_000)
        exact = float(statistical_dimension(30, 12).to_float_lossy())
        error = math.sqrt(found["variance"] / found["samples"])
        assert abs(found["mean"] - exact) < 5 * error
        assert error < 0.02


def test_dimension_of_sphere_scores_by_another_route() -> None:
    """u . v/|v| of u uniform on the sphere is sqrt(d) times a coordinate, sqrt(d) b with (b + 1)/2
    Beta((d-1)/2, (d-1)/2); five standard errors (false alarm 6e-7)."""
    from validate.checks.statistical_dimension import project

    dim, rivals, samples = 7, 20, 40_000
    found = measure_dimension("sphere", dim, rivals, seed=4, samples=samples)
    beta = np.random.default_rng(5).beta((dim - 1) / 2, (dim - 1) / 2, (samples, rivals + 1))
    distance, _ = project(math.sqrt(dim) * (2 * beta - 1))
    error = math.sqrt((found["variance"] + distance.var()) / samples)
    assert abs(found["mean"] - distance.mean()) < 5 * error


def test_light_tails_raise_the_threshold_and_heavy_ones_lower_it(
    curves: dict[int, TheoryCurve],
) -> None:
    shift = {
        e: predicted_shift(
            e, curves[12], measure_dimension(e, 12, round(curves[12].half) - 1, 3, 20_000)["mean"]
        )
        for e in ("sphere", "sparse:0.5")
    }
    assert shift["sphere"] > 0.02
    assert shift["sparse:0.5"] < -0.02
    assert predicted_shift("correlated", curves[12], 99.0) == 0.0
    # p (delta + change) = d^2 solved directly, with delta at neighbouring p from the curve
    curve = curves[12]
    facts = curve.facts.astype(float)
    mean = 1.05 * float(curve.delta[np.searchsorted(curve.facts, round(curve.half))])
    roots = [
        float(np.interp(144.0, facts * curve.delta * f, facts))
        for f in (mean / curve.delta[np.searchsorted(curve.facts, round(curve.half))], 1.0)
    ]
    assert predicted_shift("sphere", curve, mean) == pytest.approx(
        roots[0] / roots[1] - 1, abs=2e-3
    )


def test_units_reproduce_the_cells() -> None:
    cells = [EnsembleCell("original", e, 6, 12, 4) for e in ("rademacher", "sphere")]
    units = ensemble_units(cells, seed=2, batch=3)
    answers = [unit.run() for unit in units]
    points = ensemble_points(cells, units, answers)
    assert [p.instances for p in points] == [4, 4]
    with pytest.raises(InvalidInput, match="its own units"):
        ensemble_points(cells, units[:-1], answers[:-1])
    assert title_of("rademacher") == "signs (Rademacher)"


def synthetic(
    curves: Mapping[int, TheoryCurve], n: int, seed: int, *, common: float = 0.0
) -> dict[tuple[str, int], list[LadderPoint]]:
    """Counts with 50 % points at 1 + common + 1.3 x of the exact one."""
    points = {}
    for number, (ensemble, x) in enumerate(SHIFTS.items()):
        for dim, curve in curves.items():
            ratio = 1 + common + 1.3 * x
            rates = curve.interpolated(curve.facts / ratio)
            loads = sorted(
                {int(curve.facts[np.argmin(np.abs(rates - t))]) for t in (0.85, 0.5, 0.15)}
            )
            rng = np.random.default_rng((seed, number, dim))
            s = rng.binomial(n, curve.interpolated(np.asarray(loads) / ratio)).tolist()
            points[ensemble, dim] = [
                LadderPoint("decoupled", dim, p, k, n - k, 0, 0.0)
                for p, k in zip(loads, s, strict=True)
            ]
    return points


def test_check_agrees_when_only_the_fourth_cumulant_moves_the_threshold(
    curves: dict[int, TheoryCurve],
) -> None:
    shifts = {(e, d): x for e, x in SHIFTS.items() for d in curves}
    check = check_universality(synthetic(curves, 400, 1), shifts, curves, seed=2, samples=1200)
    settle([check], 0.01)
    assert check.verdict == "agrees"
    low, high = check.settings["c_interval"]
    assert low < 1.3 < high
    assert plot_universality(check).axes


def test_planted_common_shift_is_noticed(curves: dict[int, TheoryCurve]) -> None:
    """2 % in every threshold, 4000 instances a load: stated power above 0.9, verdict follows."""
    shifts = {(e, d): x for e, x in SHIFTS.items() for d in curves}
    points = synthetic(curves, 4000, 1, common=0.02)
    check = check_universality(points, shifts, curves, seed=2, samples=1200)
    settle([check], 0.01)
    assert check.power is not None
    assert check.power > 0.9
    assert check.verdict == "disagrees"
    few = check_universality(synthetic(curves, 4, 1), shifts, curves, seed=2, samples=1200)
    settle([few], 0.01)
    assert few.power is not None
    assert few.power < 0.5, "a small sample says so"
