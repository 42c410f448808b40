"""Success curve of the Gaussian and the decoupled problem against the exact probability."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from replica.errors import InvalidInput
from validate.checks.base import Check, Record
from validate.checks.curves import curve_power, curve_test, half_point
from validate.checks.ladder import KIND_NAMES, LadderPoint, same_cell
from validate.checks.theory_curve import Floats, TheoryCurve
from validate.checks.undecided import undecided_remark
from validate.plotting import SERIES, label_axes, new_figure, note, simulation_points, theory_line

ORDER = ("gaussian", "decoupled", "original")


def check_success_curve(
    points: Sequence[LadderPoint], theory: TheoryCurve, *, seed: int, samples: int = 20_000
) -> Check:
    """Hypothesis: at every load the number of separable instances is Binomial(n, P_exact).

    Arguments: certified counts of one problem at one dimension, the exact `theory` at that
    dimension, `seed` of the simulated null. The p-value is the largest over all ways of deciding
    the undecided instances (`curve_test` minimises its statistic over them). The decoupled problem
    is predicted by the same formula (Gaussian universality).
    """
    kind, dim = same_cell(points)
    if dim != theory.dim:
        raise InvalidInput(f"the counts are at d = {dim} but the theory is at d = {theory.dim}")
    facts = [point.facts for point in points]
    trials = [point.instances for point in points]
    exact = theory.exact(facts)
    separable = [point.separable for point in points]
    unknown = [point.undecided for point in points]
    test = curve_test(separable, trials, exact, seed=seed, samples=samples, undecided=unknown)
    fit = half_point(facts, separable, trials, undecided=unknown)

    def power(alternative: Floats, level: float) -> float:
        return curve_power(test, trials, exact, alternative, level=level, seed=seed + 1)

    leading = theory.if_half(facts)
    power_delta = power(theory.if_delta(1.01, facts), 0.05)

    table: list[Record] = [
        {
            "source": "theory",
            "problem": kind,
            "dim": dim,
            "facts": int(p),
            "probability": float(value),
            "demand": float(p * delta),
        }
        for p, value, delta in zip(theory.facts, theory.probability, theory.delta, strict=True)
    ]
    table += [point.record() for point in points]
    rung = {
        "gaussian": "tests the replica calculation itself",
        "decoupled": "tests Gaussian universality",
    }.get(kind, "")
    return Check(
        name=f"success_{kind}_d{dim}",
        claim=f"{KIND_NAMES[kind].capitalize()} problem, d = {dim}: the success curve is the exact "
        f"finite-(d, p) probability ({rung}).",
        source="exact finite-(d, p) law, P = 2 Σ P(K_tot = d² − j), j odd",
        quantity="50 % point p",
        predicted=f"{theory.half:.2f}",
        measured=f"{fit.value:.2f}",
        interval=f"[{fit.low:.2f}, {fit.high:.2f}]",
        sample_size=f"{sum(trials)} certified instances at {len(facts)} loads",
        hypothesis="the number of separable instances is binomial with the exact probability at "
        "every load (score test for shift and width, simulated null)",
        p_value=test.p_value,
        alternative="α_c = 1/2 at this d",
        power_at=lambda level: power(leading, level),
        undecided=sum(unknown),
        remark=f"Against δ off by 1 % the test alone, at level 0.05, has power {power_delta:.2f}."
        + (undecided_remark(sum(unknown)) if any(unknown) else ""),
        table=table,
        settings={"facts": facts, "instances": trials, "power_delta_1_percent": power_delta},
    )


def plot_success_curves(checks: Sequence[Check], dim: int) -> Figure:
    """Exact curve (line) with the measured rates of every problem at `dim` over it (points)."""
    figure, axes = new_figure()
    rows = next(c for c in checks if c.select("theory", dim=dim)).select("theory", dim=dim)
    theory_line(
        axes,
        [r["facts"] for r in rows],
        [r["probability"] for r in rows],
        series=0,
        label="exact, Gaussian problem",
    )
    offset = {"gaussian": -0.18, "decoupled": 0.0, "original": 0.18}
    for number, kind in enumerate(ORDER):
        found = [
            row for check in checks for row in check.select("simulation", problem=kind, dim=dim)
        ]
        if found:
            simulation_points(
                axes,
                [row["facts"] + offset[kind] for row in found],
                [row["probability"] for row in found],
                [row["low"] for row in found],
                [row["high"] for row in found],
                series=number,
                label=f"{KIND_NAMES[kind]}, measured",
            )
    shown = [r["facts"] for c in checks for r in c.select("simulation", dim=dim) if "facts" in r]
    margin = max(2.0, 0.12 * (max(shown) - min(shown)))
    axes.set_xlim(min(shown) - margin, max(shown) + margin)
    axes.set_ylim(-0.03, 1.03)
    axes.axhline(0.5, color=SERIES[0], linewidth=0.6, alpha=0.35)
    critical = float(np.interp(dim * dim, [r["demand"] for r in rows], [r["facts"] for r in rows]))
    note(axes, critical, r"$p\,\delta=d^2$")
    label_axes(axes, "facts $p$", "P(all facts recalled)", title=f"$d={dim}$", legend="lower left")
    return figure
