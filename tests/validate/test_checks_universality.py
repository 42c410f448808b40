"""Embedding ensembles: exact invariances, predicted shifts, planted thresholds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from numerics.cone import statistical_dimension
from replica.errors import InvalidInput
from validate.checks.base import Check, settle
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

LEVEL = 3e-4
SHIFTS = {
    "gaussian": 0.0,
    "correlated": 0.0,
    "sphere": 0.05,
    "sparse:0.5": -0.06,
    "sparse:0.8": -0.02,
}


@pytest.fixture(scope="module")
def curves() -> dict[int, TheoryCurve]:
    return {dim: TheoryCurve.at(dim) for dim in (12, 16)}


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


def moved(x: float) -> float:
    return 1 + 1.35 * x * (1 - 4 * x)


def synthetic(
    curves: Mapping[int, TheoryCurve],
    n: int,
    seed: int,
    *,
    off: Mapping[str, float] | None = None,
    undecided: float = 0.0,
) -> dict[tuple[str, int], list[LadderPoint]]:
    """50 % points at (1 + 1.35 x (1 - 4 x))(1 + off); a share `undecided` of the verdicts
    is lost, whatever they were."""
    points = {}
    for number, (ensemble, x) in enumerate(SHIFTS.items()):
        for dim, curve in curves.items():
            expected = curve.interpolated(curve.facts / moved(x))
            loads = sorted(
                {int(curve.facts[np.argmin(np.abs(expected - t))]) for t in (0.85, 0.5, 0.15)}
            )
            ratio = moved(x) * (1 + (off or {}).get(ensemble, 0.0))
            rng = np.random.default_rng((seed, number, dim))
            s = rng.binomial(n, curve.interpolated(np.asarray(loads) / ratio))
            lost, lost_too = rng.binomial(s, undecided), rng.binomial(n - s, undecided)
            points[ensemble, dim] = [
                LadderPoint("decoupled", dim, p, int(k - u), int(n - k - v), int(u + v), 0.0)
                for p, k, u, v in zip(loads, s, lost, lost_too, strict=True)
            ]
    return points


def judged(
    curves: Mapping[int, TheoryCurve], n: int, seed: int, *, samples: int = 5200, **how: Any
) -> Check:
    shifts = {(e, d): x for e, x in SHIFTS.items() for d in curves}
    return check_universality(
        synthetic(curves, n, seed, **how), shifts, curves, seed=seed + 1, samples=samples
    )


def test_check_agrees_when_only_the_fourth_cumulant_moves_the_threshold(
    curves: dict[int, TheoryCurve],
) -> None:
    check = judged(curves, 400, 1, samples=400)
    settle([check], 0.01)
    assert check.verdict == "agrees"
    low, high = check.settings["c_interval"]
    assert low < 1.35 < high
    assert set(check.settings["p_values"]) == {"joint", *map(title_of, SHIFTS)}
    assert plot_universality(check).axes


@pytest.mark.parametrize("ensemble", SHIFTS)
@pytest.mark.parametrize("off", [-0.06, 0.06])
def test_one_ensemble_off_by_six_per_cent_is_refused(
    curves: dict[int, TheoryCurve], ensemble: str, off: float
) -> None:
    """400 instances a load, all others as they should be: beyond every one of 1600 null draws."""
    check = judged(curves, 400, 3, samples=400, off={ensemble: off})
    assert check.p_value == pytest.approx(6 / 1601)


@pytest.mark.long
@pytest.mark.parametrize("ensemble", SHIFTS)
@pytest.mark.parametrize("off", [-0.06, 0.06])
def test_one_ensemble_off_by_six_per_cent_is_refused_at_the_level_of_a_report(
    curves: dict[int, TheoryCurve], ensemble: str, off: float
) -> None:
    check = judged(curves, 400, 3, off={ensemble: off})
    assert check.p_value is not None
    assert check.p_value < LEVEL


def test_wrong_predicted_shifts_are_refused(curves: dict[int, TheoryCurve]) -> None:
    """Every ensemble has the Gaussian threshold although shifts up to 6 % are predicted."""
    wrong = {e: 1 / moved(x) - 1 for e, x in SHIFTS.items()}
    check = judged(curves, 300, 4, off=wrong)
    assert check.p_value is not None
    assert check.p_value < LEVEL


def test_stated_power_is_that_of_the_weakest_case(curves: dict[int, TheoryCurve]) -> None:
    many, few = judged(curves, 400, 1, samples=400), judged(curves, 4, 1, samples=400)
    for check in (many, few):
        settle([check], 0.01)
    assert many.power is not None
    assert many.power > 0.9
    assert few.power is not None
    assert few.power < 0.5, "a small sample says so"
    assert few.verdict == "inconclusive"


@pytest.mark.long
def test_honest_data_are_refused_at_most_at_the_stated_rate(
    curves: dict[int, TheoryCurve],
) -> None:
    """40 data sets of 30 a load at level 0.05: at most 8 alarms (false alarm below 1e-3)."""
    values = [judged(curves, 30, 100 + s, samples=100).p_value for s in range(40)]
    assert sum(p is not None and p <= 0.05 for p in values) <= 8


def test_undecided_instances_neither_raise_nor_hide_an_alarm(
    curves: dict[int, TheoryCurve],
) -> None:
    """A fifth undecided at random: honest data pass; 8 % in one ensemble with 2 % undecided not."""
    honest = judged(curves, 300, 1, undecided=0.2, samples=400)
    assert honest.undecided > 500
    assert honest.p_value is not None
    assert honest.p_value > 0.5
    assert "undecided" in honest.remark
    for ensemble in ("correlated", "sphere"):
        wrong = judged(curves, 300, 5, undecided=0.02, off={ensemble: 0.08}, samples=400)
        assert wrong.p_value == pytest.approx(6 / 1601)
