"""Trained memories of the Gaussian problem: do they tend to the theory as N grows?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from replica.errors import InvalidInput
from validate.checks.base import Check, Record
from validate.checks.statistics import normal_quantile
from validate.checks.trained_limit import Limit, limit_test
from validate.checks.trained_measure import QUANTITIES, Floats
from validate.plotting import MUTED, SERIES, label_axes, new_figure, simulation_points

NORM_TOO_LARGE = 0.03
"""The alternative of the power statement: |W|^2 larger than predicted by this share."""
FITTED = "∞ (fit)"
_NORM = QUANTITIES.index("norm_squared")


def check_trained_memory(limits: Sequence[Limit], *, seed: int) -> Check:
    """Accuracy, loss and |W|^2 of trained memories, jointly, at every load and ridge of `limits`.

    Tests that the limit of large N of all of them is the predicted one (`trained_limit`): what
    is allowed is a correction b/N, fitted for every quantity, and nothing else. Raises
    `InvalidInput` without limits.
    """
    if not limits:
        raise InvalidInput("no samples of trained memories were given; measure one load at least")
    test = limit_test(limits, seed=seed)
    table: list[Record] = []
    for limit in limits:
        table += _rows(limit)
    shown = limits[-1]
    found, _, spread = shown.fit
    half = float(normal_quantile(0.975)) * float(np.sqrt(spread[_NORM, _NORM]))
    samples = [s for limit in limits for s in limit.samples]
    sizes = sorted({s.setting.parameters for s in samples})
    wrong = np.zeros(len(QUANTITIES))
    wrong[_NORM] = NORM_TOO_LARGE
    where = _where(shown)
    loose = sum(s.loose for s in samples)
    return Check(
        name="trained_gaussian",
        claim="Gaussian problem: accuracy, loss and squared norm of the memory that minimises "
        "cross-entropy with ridge are the predicted ones as N grows, below and above capacity.",
        source="zero-temperature limit of the replica calculation, two self-consistent equations",
        quantity=f"‖W‖² at {where}, extrapolated to N → ∞",
        predicted=f"{shown.theory.value[_NORM]:.4g}",
        measured=f"{found[_NORM]:.4g}",
        interval=f"[{found[_NORM] - half:.4g}, {found[_NORM] + half:.4g}]",
        sample_size=f"{sum(s.size for s in samples)} memories at N = "
        f"{', '.join(map(str, sizes))}, {len(limits)} pairs of load and ridge",
        hypothesis="at every load and ridge the three means tend to the predicted values, with a "
        "correction proportional to 1/N",
        p_value=test.p_value,
        alternative=f"a squared norm {NORM_TOO_LARGE:.0%} larger than predicted",
        power_at=lambda level: test.power(wrong, level),
        undecided=loose,
        remark="Every memory is within "
        "10⁻⁶ of the minimiser, relative to its norm, by strong convexity"
        + (f"; {loose} were not and are left out" if loose else "")
        + "."
        + _misfit_sentence(limits),
        table=table,
        settings={"competitors": shown.samples[0].setting.competitors, "sizes": sizes},
    )


def _misfit_sentence(limits: Sequence[Limit]) -> str:
    """How well a + b/N describes the means; two sizes say nothing about that."""
    misfits = [limit.misfit for limit in limits]
    degrees = sum(m[1] for m in misfits)
    if not degrees:
        return " Two sizes leave the form of the correction untested."
    total = sum(m[0] for m in misfits)
    return f" Means against a + b/N: χ² = {total:.1f} for {degrees} degrees of freedom."


def _where(limit: Limit) -> str:
    setting = limit.samples[0].setting
    return f"p/N = {setting.gamma:g}, λ = {setting.ridge:g}"


def _rows(limit: Limit) -> list[Record]:
    setting = limit.samples[0].setting
    about: Record = {
        "load": setting.gamma,
        "ridge": setting.ridge,
        "competitors": setting.competitors,
    }
    rows: list[Record] = [
        {
            "source": "theory",
            **about,
            "N": "∞",
            **_columns(limit.theory.value, limit.theory.stderr),
        }
    ]
    for sample in limit.samples:
        rows.append(
            {
                "source": "simulation",
                **about,
                "N": sample.setting.parameters,
                **_columns(sample.mean, sample.error),
                "instances": sample.size,
            }
        )
    found, slope, spread = limit.fit
    rows.append(
        {
            "source": "simulation",
            **about,
            "N": FITTED,
            **_columns(found, np.sqrt(np.diag(spread))),
            "norm_squared_slope": float(slope[_NORM]),
        }
    )
    return rows


def _columns(values: Floats, errors: Floats) -> Record:
    record: Record = {}
    for name, value, error in zip(QUANTITIES, values, errors, strict=True):
        record[name] = float(value)
        record[f"{name}_error"] = float(error)
    return record


def plot_trained_memory(check: Check) -> Figure:
    """Deviation of the mean |W|^2 from the theory against 1000/N, with the lines of the fit."""
    figure, axes = new_figure()
    axes.axhline(0.0, color=MUTED, linewidth=1.8, label="theory")
    for number, theory in enumerate(check.select("theory")):
        series = number % len(SERIES)
        about = {key: theory[key] for key in ("load", "ridge", "competitors")}
        rows = check.select("simulation", **about)
        points, fit = [r for r in rows if r["N"] != FITTED], rows[-1]
        scale = 100.0 / theory["norm_squared"]
        x = [1000.0 / r["N"] for r in points]
        y = [scale * r["norm_squared"] - 100.0 for r in points]
        bars = [scale * 1.96 * r["norm_squared_error"] for r in points]
        simulation_points(
            axes,
            x,
            y,
            [v - b for v, b in zip(y, bars, strict=True)],
            [v + b for v, b in zip(y, bars, strict=True)],
            series=series,
            label=f"$p/N={theory['load']:g}$, $\\lambda={theory['ridge']:g}$",
        )
        end = scale * fit["norm_squared"] - 100.0
        bar = scale * 1.96 * fit["norm_squared_error"]
        simulation_points(axes, [0.0], [end], [end - bar], [end + bar], series=series, label="")
        far = max(x)
        rise = scale * fit["norm_squared_slope"] * far / 1000.0
        axes.plot([0.0, far], [end, end + rise], color=SERIES[series], linewidth=1.0)
    label_axes(
        axes,
        "$1000/N$",
        r"mean of $\|W\|^2$, deviation from theory (%)",
        title=f"$M={check.settings['competitors']}$ competitors",
        legend="best",
    )
    return figure
