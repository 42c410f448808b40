"""Accuracy against load for several ridges, on the Gaussian problem, with the rules without one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from scipy.interpolate import PchipInterpolator

from numerics.trained.curve import pseudo_inverse_recall
from numerics.trained.recall import recall_by_lead
from replica.errors import InvalidInput
from validate.checks.base import Check, Record
from validate.checks.statistics import mean_interval
from validate.checks.trained_measure import RULES, Sample, Theory
from validate.plotting import label_axes, new_figure, note, simulation_points, theory_line

TITLES = {"hebbian": "Hebb", "pseudo_inverse": "pseudo-inverse"}


def rule_recall(rule: str, parameters: int, facts: float, competitors: int) -> float:
    """P(a fact is recalled) by the "hebbian" or "pseudo_inverse" memory as N grows, p/N fixed.

    Hebb: int Dz Phi(sqrt(N/p) + z)^M. Pseudo-inverse: the squared loss without ridge.

    >>> round(rule_recall("hebbian", 10**6, 1, 1), 6)
    1.0
    """
    if rule == "hebbian":
        return recall_by_lead(competitors, (parameters / facts) ** 0.5)
    if rule != "pseudo_inverse":
        raise InvalidInput(
            f"the rule is {rule!r}; it must be one of {', '.join(RULES)}; choose one"
        )
    return pseudo_inverse_recall(facts / parameters, competitors)


@dataclass(frozen=True)
class CurvePoint:
    """One load and ridge: sample, and the accuracy of the rules on each of its instances."""

    sample: Sample
    rules: Mapping[str, Sequence[float]]


def check_trained_curve(
    points: Sequence[CurvePoint],
    theories: Mapping[tuple[float, int], Theory],
    critical_facts: float,
) -> Check:
    """Measured and predicted accuracy at every load and ridge, and of both rules.

    `theories` at (ridge, facts) holds every measured point, and may hold loads in between.

    A measurement at one finite N: the difference holds the 1/N correction, which
    `check_trained_memory` separates. Raises `InvalidInput` for an empty list.
    """
    if not points:
        raise InvalidInput("no points of the curve were given; measure one load at least")
    table: list[Record] = [
        {
            "source": "theory",
            "rule": "ridge",
            "ridge": ridge,
            "facts": facts,
            "accuracy": float(theory.value[0]),
        }
        for (ridge, facts), theory in sorted(theories.items())
    ]
    worst = (0.0, 0.0, 0.0, points[0])
    for point in points:
        setting = point.sample.setting
        about: Record = {"rule": "ridge", "ridge": setting.ridge, "facts": setting.facts}
        predicted = float(theories[setting.ridge, setting.facts].value[0])
        mean, low, high = mean_interval(point.sample.values[:, 0])
        table += [
            {
                "source": "simulation",
                **about,
                "accuracy": mean,
                "low": low,
                "high": high,
                "instances": point.sample.size,
            },
        ]
        if abs(mean - predicted) >= abs(worst[0]):
            worst = (mean - predicted, low - predicted, high - predicted, point)
        for rule, shares in point.rules.items():
            if any(r["rule"] == rule and r["facts"] == setting.facts for r in table):
                continue  # the same instances under another ridge
            mean, low, high = mean_interval(shares)
            law = rule_recall(rule, setting.parameters, setting.facts, setting.competitors)
            about_rule: Record = {"rule": rule, "ridge": None, "facts": setting.facts}
            table += [
                {"source": "theory", **about_rule, "accuracy": law},
                {
                    "source": "simulation",
                    **about_rule,
                    "accuracy": mean,
                    "low": low,
                    "high": high,
                    "instances": len(shares),
                },
            ]
    first = points[0].sample.setting
    at = worst[3].sample.setting
    return Check(
        name=f"trained_curve_d{first.dim}",
        claim=f"Gaussian problem, d = {first.dim}: training accuracy follows its theory at every "
        "load, below and above capacity.",
        source="zero-temperature limit of the replica calculation; M = p − 1",
        quantity=f"largest difference of accuracy from theory (p = {at.facts}, λ = {at.ridge:g})",
        predicted="0, up to corrections of order 1/N",
        measured=f"{worst[0]:+.3f}",
        interval=f"[{worst[1]:+.3f}, {worst[2]:+.3f}]",
        sample_size=f"{sum(p.sample.size for p in points)} memories at {len(points)} pairs of "
        "load and ridge",
        undecided=sum(p.sample.loose for p in points),
        remark="The largest of many differences is expected to leave its own 95 % interval.",
        table=table,
        settings={"dim": first.dim, "critical facts": round(critical_facts, 2)},
    )


def plot_trained_curve(check: Check) -> Figure:
    """Accuracy against p: lines of theory and measured points, for every ridge and both rules."""
    figure, axes = new_figure(4.0)
    dim = int(check.settings["dim"])
    ridges = sorted({r["ridge"] for r in check.table if r["rule"] == "ridge"})
    for series, ridge in enumerate(ridges):
        label = f"$\\lambda={ridge:g}$"
        _series(axes, check, {"rule": "ridge", "ridge": ridge}, series, label)
    facts = [r["facts"] for r in check.table]
    grid = np.linspace(min(facts), max(facts), 60).tolist()
    for series, rule in enumerate(RULES, len(ridges)):
        if check.select("simulation", rule=rule):
            law = [rule_recall(rule, dim * dim, p, round(p) - 1) for p in grid]
            _series(axes, check, {"rule": rule}, series, TITLES[rule], (grid, law))
    note(axes, float(check.settings["critical facts"]), r"$p\,\delta=d^2$", height=1.0)
    axes.set_ylim(0, 1.06)
    label_axes(
        axes,
        "facts $p$",
        "training accuracy",
        title=f"$d={dim}$, $M=p-1$",
        legend="upper right",
    )
    return figure


def _series(
    axes: object,
    check: Check,
    about: Record,
    series: int,
    label: str,
    line: tuple[list[float], list[float]] | None = None,
) -> None:
    rows = sorted(check.select("simulation", **about), key=lambda r: r["facts"])
    if line is None:
        theory = sorted(check.select("theory", **about), key=lambda r: r["facts"])
        computed = [r["facts"] for r in theory], [r["accuracy"] for r in theory]
        line = _smooth(*computed) if len(theory) > 2 else computed
    theory_line(axes, *line, series=series, label=label)
    simulation_points(
        axes,
        [r["facts"] for r in rows],
        [r["accuracy"] for r in rows],
        [r["low"] for r in rows],
        [r["high"] for r in rows],
        series=series,
        label="",
    )


def _smooth(facts: Sequence[float], accuracies: Sequence[float]) -> tuple[list[float], list[float]]:
    """A monotone curve through computed loads, for drawing."""
    grid = np.linspace(min(facts), max(facts), 120)
    return grid.tolist(), PchipInterpolator(facts, accuracies)(grid).tolist()
