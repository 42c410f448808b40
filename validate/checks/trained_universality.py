"""Trained memories of the decoupled and the original problem: how far from the theory at finite d.

At a fixed ratio of p to the critical number of facts (so that every d is in the same regime) and
a fixed ridge, with M = p - 1, the relative difference of a quantity,

    r_d = mean over instances / theory at (N = d^2, p, M) - 1,

is fitted by a + b d^{-k} for k = 1/2 and k = 1, whose limits a say whether the problem becomes the
Gaussian one, and by b d^{-k} with k free, which assumes that it does and asks how fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from scipy import optimize, special

from replica.errors import InvalidInput
from validate.checks.base import Check, Record
from validate.checks.statistics import normal_quantile
from validate.checks.trained_measure import QUANTITIES, SYMBOLS, Floats, Sample, Theory
from validate.plotting import MUTED, SERIES, label_axes, new_figure, simulation_points

EXPONENTS = (0.5, 1.0)
_SUPERSCRIPTS = {0.5: "d^(−1/2)", 1.0: "1/d"}


@dataclass(frozen=True)
class LineFit:
    """r = `limit` + `slope` d^-`exponent`: weighted least squares with known errors.

    `error`: standard error of the limit; `chi_square` on `degrees` degrees of freedom.
    """

    exponent: float
    limit: float
    slope: float
    error: float
    chi_square: float
    degrees: int

    @property
    def p_value(self) -> float:
        """P(chi-square at least as large) if the line is right."""
        return float(special.chdtrc(self.degrees, self.chi_square)) if self.degrees else 1.0

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the limit."""
        half = float(normal_quantile(0.975)) * self.error
        return self.limit - half, self.limit + half


def fit_line(dims: Floats, ratios: Floats, errors: Floats, exponent: float) -> LineFit:
    """Fit r = a + b d^-k at the given k.

    >>> fit = fit_line(np.array([4.0, 16.0, 64.0]), np.array([0.6, 0.35, 0.225]), np.ones(3), 0.5)
    >>> round(fit.limit, 12), round(fit.slope, 12)
    (0.1, 1.0)
    """
    design = np.column_stack([np.ones_like(dims), dims**-exponent]) / errors[:, None]
    information = design.T @ design
    theta = np.linalg.solve(information, design.T @ (ratios / errors))
    left = ratios / errors - design @ theta
    return LineFit(
        exponent,
        float(theta[0]),
        float(theta[1]),
        float(np.sqrt(np.linalg.inv(information)[0, 0])),
        float(left @ left),
        len(dims) - 2,
    )


@dataclass(frozen=True)
class PowerFit:
    """r = b d^-k with k free: best k, its 95 % likelihood interval, chi-square there."""

    exponent: float
    low: float
    high: float
    chi_square: float
    degrees: int


def fit_power(dims: Floats, ratios: Floats, errors: Floats, most: float = 4.0) -> PowerFit:
    """Fit r = b d^-k over k in [-1, `most`]; ends of the interval stop at these bounds.

    >>> d = np.array([8.0, 16.0, 32.0])
    >>> round(fit_power(d, 2 * d**-0.75, 0.01 * np.ones(3)).exponent, 6)
    0.75
    """

    def misfit(k: float) -> float:
        x = dims**-k / errors
        b = float(x @ (ratios / errors) / (x @ x))
        left = ratios / errors - b * x
        return float(left @ left)

    grid = np.linspace(-1.0, most, 201)
    start = float(grid[int(np.argmin([misfit(k) for k in grid]))])
    around = (max(-1.0, start - 0.05), min(most, start + 0.05))
    best = optimize.minimize_scalar(misfit, bounds=around, method="bounded")
    k, least = float(best.x), float(best.fun)
    allowed = least + float(special.chdtri(1, 0.05))

    def end(side: float) -> float:
        if misfit(side) <= allowed:
            return side
        return float(optimize.brentq(lambda v: misfit(v) - allowed, *sorted((k, side))))

    return PowerFit(k, end(-1.0), end(most), least, len(dims) - 2)


@dataclass(frozen=True)
class Series:
    """One problem at one load and ridge: samples at growing d, each with its theory."""

    kind: str
    name: str
    samples: Sequence[Sample]
    theories: Sequence[Theory]

    def __post_init__(self) -> None:
        if len(self.samples) < 3 or len(self.samples) != len(self.theories):
            raise InvalidInput(
                f"{len(self.samples)} samples and {len(self.theories)} theories were given for the "
                f"{self.kind} problem; a line and its test need one of each at three dimensions"
            )

    @property
    def dims(self) -> Floats:
        """d of every sample."""
        return np.array([float(s.setting.dim) for s in self.samples])

    def ratios(self, quantity: str) -> tuple[Floats, Floats]:
        """r_d and its standard error (that of the theory included)."""
        k = QUANTITIES.index(quantity)
        theory = np.array([t.value[k] for t in self.theories])
        mean = np.array([s.mean[k] for s in self.samples])
        error = np.array([s.error[k] for s in self.samples])
        known = np.array([t.stderr[k] for t in self.theories])
        ratio = mean / theory
        return ratio - 1.0, np.hypot(error, ratio * known) / theory


def check_trained_universality(series: Sequence[Series]) -> Check:
    """Differences of decoupled and original memories from the theory, with their limits.

    A measurement: nothing is tested, for the form of the correction is not known. Quantities
    without spread (every fact recalled) are left out of the fits. Raises `InvalidInput` for an
    empty list or fewer than three dimensions.
    """
    if not series:
        raise InvalidInput("no trained memories were given; measure the decoupled problem at least")
    table: list[Record] = []
    fits: list[tuple[Series, str, dict[float, LineFit], PowerFit]] = []
    for one in series:
        for quantity in QUANTITIES:
            ratios, errors = one.ratios(quantity)
            table += _rows(one, quantity, ratios, errors)
            if (errors > 0.0).all():
                lines = {k: fit_line(one.dims, ratios, errors, k) for k in EXPONENTS}
                fits.append((one, quantity, lines, fit_power(one.dims, ratios, errors)))
    for one, quantity, lines, power in fits:
        for k, line in lines.items():
            low, high = line.interval
            table.append(
                {
                    "source": "simulation",
                    "problem": one.kind,
                    "load": one.name,
                    "quantity": quantity,
                    "dim": f"∞, {_SUPERSCRIPTS[k]}",
                    "difference": line.limit,
                    "low": low,
                    "high": high,
                    "slope": line.slope,
                    "exponent": k,
                    "fit_p": line.p_value,
                    "free_exponent": power.exponent,
                    "free_low": power.low,
                    "free_high": power.high,
                }
            )
    norm = [f for f in fits if f[1] == "norm_squared"]
    one, _, lines, power = norm[0]
    best = max(lines.values(), key=lambda line: line.p_value)
    low, high = best.interval
    total = {k: sum(f[2][k].chi_square for f in fits) for k in EXPONENTS}
    degrees = sum(f[2][1.0].degrees for f in fits)
    samples = [s for o in series for s in o.samples]
    dims = sorted({s.setting.dim for s in samples})
    return Check(
        name="trained_universality",
        claim="Trained memories of the decoupled and original problems approach those of the "
        "Gaussian problem as d grows at a fixed distance from capacity and a fixed ridge.",
        source="universality and decoupling, assumed by the calculation",
        quantity=f"‖W‖², {one.kind}, {one.name}: difference from theory as d → ∞, "
        f"line in {_SUPERSCRIPTS[best.exponent]}",
        predicted="0",
        measured=f"{best.limit:+.2%} (at d = {dims[-1]}: {one.ratios('norm_squared')[0][-1]:+.2%})",
        interval=f"[{low:+.2%}, {high:+.2%}]",
        sample_size=f"{sum(s.size for s in samples)} memories at d = {', '.join(map(str, dims))}",
        undecided=sum(s.loose for s in samples),
        remark=f"All quantities: χ² = {total[0.5]:.1f} for lines in d^(−1/2), {total[1.0]:.1f} in "
        f"1/d, {degrees} degrees of freedom. If the limit is zero, this difference falls like "
        f"d^(−{power.exponent:.2f}) [{power.low:.2f}, {power.high:.2f}].",
        table=table,
        settings={"dims": dims},
    )


def _rows(one: Series, quantity: str, ratios: Floats, errors: Floats) -> list[Record]:
    k = QUANTITIES.index(quantity)
    rows: list[Record] = []
    for sample, theory, ratio, error in zip(one.samples, one.theories, ratios, errors, strict=True):
        about = {
            "problem": one.kind,
            "load": one.name,
            "quantity": quantity,
            "dim": sample.setting.dim,
            "facts": sample.setting.facts,
        }
        half = float(normal_quantile(0.975)) * float(error)
        rows += [
            {
                "source": "theory",
                **about,
                "value": float(theory.value[k]),
                "value_error": float(theory.stderr[k]),
            },
            {
                "source": "simulation",
                **about,
                "value": float(sample.mean[k]),
                "value_error": float(sample.error[k]),
                "difference": float(ratio),
                "low": float(ratio) - half,
                "high": float(ratio) + half,
                "instances": sample.size,
            },
        ]
    return rows


def plot_trained_universality(check: Check, quantity: str = "norm_squared") -> Figure:
    """Difference from the theory against 1/d for every problem and load, with the 1/d lines."""
    figure, axes = new_figure()
    axes.axhline(0.0, color=MUTED, linewidth=1.8, label="theory")
    rows = check.select("simulation", quantity=quantity)
    names = list(dict.fromkeys((r["problem"], r["load"]) for r in rows))
    for series, (kind, load) in enumerate(names):
        chosen = [r for r in rows if (r["problem"], r["load"]) == (kind, load)]
        points = [r for r in chosen if "exponent" not in r]
        x = [1.0 / r["dim"] for r in points]
        simulation_points(
            axes,
            x,
            [100.0 * r["difference"] for r in points],
            [100.0 * r["low"] for r in points],
            [100.0 * r["high"] for r in points],
            series=series,
            label=f"{kind}, {load}",
        )
        for line in chosen:
            if "exponent" in line:
                grid = np.linspace(1e-4, 1.05 * max(x), 60)
                axes.plot(
                    grid,
                    100.0 * (line["difference"] + line["slope"] * grid ** line["exponent"]),
                    color=SERIES[series],
                    linewidth=1.0,
                    linestyle="-" if line["exponent"] == 1.0 else (0, (1.2, 1.6)),
                )
    axes.set_xlim(left=0.0)
    label_axes(axes, "$1/d$", f"{SYMBOLS[quantity]}, difference from theory (%)", legend="best")
    return figure
