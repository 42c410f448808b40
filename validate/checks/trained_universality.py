"""Trained memories of the decoupled and the original problem: how far from the theory at finite d.

The relative difference of a quantity from the theory at the same N = d^2, p, M and lambda,

    r_d = mean over instances / theory - 1,

is fitted by a + b/d, a + b/d + c/d^2 and a + b d^{-1/2}, whose limits a say whether the problem
becomes the Gaussian one, and by b d^{-k} with k free, which assumes that it does and asks how fast.
Along a series p/N and M are fixed (decoupled), or p is a fixed share of the critical number of
facts and M = p - 1 (original, whose competitors are the other outputs).
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

CORRECTIONS: dict[str, tuple[float, ...]] = {
    "1/d": (1.0,),
    "1/d and 1/d²": (1.0, 2.0),
    "d^(−1/2)": (0.5,),
}
"""What each fit allows beside the limit: its name and the exponents of 1/d."""
_LINES: dict[str, object] = {"1/d": "-", "d^(−1/2)": (0, (1.2, 1.6))}


@dataclass(frozen=True)
class LimitFit:
    """r = `limit` + sum_j `slopes`[j] d^-`exponents`[j]: weighted least squares, known errors.

    `error`: standard error of the limit; `chi_square` on `degrees` degrees of freedom.
    """

    exponents: tuple[float, ...]
    limit: float
    slopes: tuple[float, ...]
    error: float
    chi_square: float
    degrees: int

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the limit."""
        half = float(normal_quantile(0.975)) * self.error
        return self.limit - half, self.limit + half

    def at(self, dims: Floats) -> Floats:
        """The fitted r at these d."""
        steps = (b * dims**-k for k, b in zip(self.exponents, self.slopes, strict=True))
        return self.limit + sum(steps, np.zeros_like(dims))


def fit_limit(
    dims: Floats, ratios: Floats, errors: Floats, exponents: tuple[float, ...]
) -> LimitFit:
    """Fit r = a + sum_j b_j d^-k_j at the given k_j.

    >>> d = np.array([4.0, 16.0, 64.0])
    >>> fit = fit_limit(d, np.array([0.6, 0.35, 0.225]), np.ones(3), (0.5,))
    >>> round(fit.limit, 12), round(fit.slopes[0], 12)
    (0.1, 1.0)
    """
    columns = [np.ones_like(dims), *(dims**-k for k in exponents)]
    design = np.column_stack(columns) / errors[:, None]
    information = design.T @ design
    theta = np.linalg.solve(information, design.T @ (ratios / errors))
    left = ratios / errors - design @ theta
    return LimitFit(
        exponents,
        float(theta[0]),
        tuple(float(b) for b in theta[1:]),
        float(np.sqrt(np.linalg.inv(information)[0, 0])),
        float(left @ left),
        len(dims) - design.shape[1],
    )


@dataclass(frozen=True)
class PowerFit:
    """r = b d^-k with k free: best k, its 95 % likelihood interval, chi-square there."""

    exponent: float
    low: float
    high: float
    chi_square: float
    degrees: int


LEAST_EXPONENT, MOST_EXPONENT = -1.0, 4.0
LEAST_CHANCE = 0.05
"""A form of the correction counts as describing the data above this P-value of its fits."""


def fit_power(dims: Floats, ratios: Floats, errors: Floats) -> PowerFit:
    """Fit r = b d^-k over k in [-1, 4]; ends of the interval stop at these bounds.

    >>> d = np.array([8.0, 16.0, 32.0])
    >>> round(fit_power(d, 2 * d**-0.75, 0.01 * np.ones(3)).exponent, 6)
    0.75
    """

    def misfit(k: float) -> float:
        x = dims**-k / errors
        b = float(x @ (ratios / errors) / (x @ x))
        left = ratios / errors - b * x
        return float(left @ left)

    grid = np.linspace(LEAST_EXPONENT, MOST_EXPONENT, 201)
    start = float(grid[int(np.argmin([misfit(k) for k in grid]))])
    around = (max(LEAST_EXPONENT, start - 0.05), min(MOST_EXPONENT, start + 0.05))
    best = optimize.minimize_scalar(misfit, bounds=around, method="bounded")
    k, least = float(best.x), float(best.fun)
    allowed = least + float(special.chdtri(1, 0.05))

    def end(side: float) -> float:
        if misfit(side) <= allowed:
            return side
        return float(optimize.brentq(lambda v: misfit(v) - allowed, *sorted((k, side))))

    return PowerFit(k, end(LEAST_EXPONENT), end(MOST_EXPONENT), least, len(dims) - 2)


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
    fits: list[tuple[Series, str, dict[str, LimitFit], PowerFit]] = []
    for one in series:
        for quantity in QUANTITIES:
            ratios, errors = one.ratios(quantity)
            table += _rows(one, quantity, ratios, errors)
            if (errors > 0.0).all():
                lines = {
                    name: fit_limit(one.dims, ratios, errors, exponents)
                    for name, exponents in CORRECTIONS.items()
                    if len(one.dims) > 1 + len(exponents)
                }
                fits.append((one, quantity, lines, fit_power(one.dims, ratios, errors)))
    for one, quantity, lines, power in fits:
        for name, line in lines.items():
            low, high = line.interval
            table.append(
                {
                    "source": "simulation",
                    "problem": one.kind,
                    "load": one.name,
                    "quantity": quantity,
                    "dim": "∞",
                    "correction": name,
                    "difference": line.limit,
                    "low": low,
                    "high": high,
                    "curve": _curve(line, one.dims),
                    "chi_square": line.chi_square,
                    "degrees": line.degrees,
                    "free_exponent": power.exponent,
                    "free_low": power.low,
                    "free_high": power.high,
                }
            )
    leading = [(one, quantity, lines["1/d"]) for one, quantity, lines, _ in fits]
    if not leading:
        raise InvalidInput("every quantity is without spread; measure memories above capacity too")
    holding = sum(line.interval[0] <= 0.0 <= line.interval[1] for _, _, line in leading)
    one, quantity, worst = max(leading, key=lambda f: abs(f[2].limit) / f[2].error)
    low, high = worst.interval
    dims = sorted({s.setting.dim for o in series for s in o.samples})
    return Check(
        name="trained_universality",
        claim="How far trained memories of the decoupled and original problems are from those of "
        f"the Gaussian problem at d = {dims[0]} to {dims[-1]}, and what a correction in 1/d leaves "
        "of it as d → ∞.",
        source="universality and decoupling, assumed by the calculation",
        quantity=f"limits whose 95 % interval holds zero, of {len(leading)}; then the limit "
        f"farthest from zero in its errors ({SYMBOLS[quantity]}, {one.kind}, {one.name})",
        predicted="all; 0",
        measured=f"{holding} of {len(leading)}; {worst.limit:+.2%}",
        interval=f"[{low:+.2%}, {high:+.2%}]",
        sample_size=f"{sum(s.size for o in series for s in o.samples)} memories at d = "
        f"{', '.join(map(str, dims))}",
        undecided=sum(s.loose for o in series for s in o.samples),
        remark=_summary(fits),
        table=table,
        settings={"dims": dims},
    )


def _summary(fits: Sequence[tuple[Series, str, dict[str, LimitFit], PowerFit]]) -> str:
    """Goodness of the fits, what follows from it, and the free exponents of the norm."""
    parts, fitting = [], []
    for name in CORRECTIONS:
        chosen = [f[2][name] for f in fits if name in f[2]]
        degrees = sum(line.degrees for line in chosen)
        if degrees:
            total = sum(line.chi_square for line in chosen)
            chance = float(special.chdtrc(degrees, total))
            parts.append(f"{total:.1f} on {degrees} (correction in {name}; P-value {chance:.2g})")
            if chance >= LEAST_CHANCE:
                fitting.append(name)
    verdict = (
        f"Corrections that describe the data: {', '.join(fitting)}; the limit depends on which."
        if fitting
        else "Neither form of the correction describes the data at these d, so no limit is claimed."
    )
    exponents = [
        f"{one.kind}, {one.name}: {_exponent(power)}"
        for one, quantity, _, power in fits
        if quantity == "norm_squared"
    ]
    return (
        f"χ² of all fits, on degrees of freedom: {', '.join(parts)}. {verdict} Exponent k if the "
        f"difference of ‖W‖² is b d^(−k): {'; '.join(exponents)}."
    )


def _exponent(power: PowerFit) -> str:
    """The exponent with its interval; an interval that ends at both bounds determines nothing."""
    if power.low <= LEAST_EXPONENT and power.high >= MOST_EXPONENT:
        return "undetermined"
    low = "below" if power.low <= LEAST_EXPONENT else f"{power.low:.2f}"
    high = "above" if power.high >= MOST_EXPONENT else f"{power.high:.2f}"
    return f"{power.exponent:.2f} [{low}, {high}]"


def _curve(line: LimitFit, dims: Floats) -> list[list[float]]:
    """Points (1/d, r) of a fit for drawing, from the limit to the smallest d."""
    grid = np.linspace(1e-4, 1.05 / float(dims.min()), 40)
    return [[float(x), float(y)] for x, y in zip(grid, line.at(1.0 / grid), strict=True)]


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
    """Difference from the theory against 1/d for every series, with its fits."""
    figure, axes = new_figure(4.0)
    axes.axhline(0.0, color=MUTED, linewidth=1.8, label="theory")
    rows = check.select("simulation", quantity=quantity)
    names = list(dict.fromkeys((r["problem"], r["load"]) for r in rows))
    for series, (kind, load) in enumerate(names):
        chosen = [r for r in rows if (r["problem"], r["load"]) == (kind, load)]
        points = [r for r in chosen if "correction" not in r]
        simulation_points(
            axes,
            [1.0 / r["dim"] for r in points],
            [100.0 * r["difference"] for r in points],
            [100.0 * r["low"] for r in points],
            [100.0 * r["high"] for r in points],
            series=series,
            label=f"{kind}, {load}",
        )
        for fit in chosen:
            if fit.get("correction") in _LINES:
                axes.plot(
                    [x for x, _ in fit["curve"]],
                    [100.0 * y for _, y in fit["curve"]],
                    color=SERIES[series],
                    linewidth=1.0,
                    linestyle=_LINES[fit["correction"]],
                )
    axes.set_xlim(left=0.0)
    label_axes(axes, "$1/d$", f"{SYMBOLS[quantity]}, difference from theory (%)", legend="best")
    return figure
