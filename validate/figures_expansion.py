"""How alpha_c(p) approaches 1/2 from p = 10 to 10^1000, exactly and by its series."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import sympy as sp

from numerics.cone import critical_load
from numerics.cone.gauss import float_level, float_log
from numerics.remainders import grid
from replica.expansion import capacity, cone
from replica.expansion.result import series_expression
from validate.plotting import label_axes, new_figure, theory_line, to_svg

ORDERS = (1, 2, 4)
RESUMMED_TERMS = 2


def _optimal(coefficients: Sequence[Any], x: float) -> float:
    """sum_i c_i x^(1-i) up to and without its smallest term: optimal truncation."""
    total, smallest = 0.0, math.inf
    for i, c in enumerate(coefficients):
        term = float(c) * x ** (1 - i)
        if abs(term) >= smallest:
            break
        smallest = abs(term)
        total += term
    return total


def expansion_data(points: int = 24) -> list[dict[str, Any]]:
    """Records {facts_log10, quantity, source, load}: exact critical load and its descriptions.

    `source` is "exact" (certified, then rounded to a float for drawing), "limit", "order N" (series
    in 1/log p), "resummed" (Lambert form L/(X_W + 3)) or "level" (series in 1/T^2, optimally
    truncated).
    """
    series = {n: series_expression(capacity.capacity(n)) for n in ORDERS}
    size = sp.Symbol("L")
    functions = {n: sp.lambdify(size, e, "math") for n, e in series.items()}
    resummed = capacity.resummed_dimension(RESUMMED_TERMS)
    dimension = cone.statistical_dimension(12)
    records = []
    for facts in grid(10, points):
        log_p, log_m = float_log(facts), float_log(facts - 1)
        lambert = _lambert_level(log_m)
        values = {
            "exact": critical_load(facts, digits=10).to_float_lossy(),
            "limit": 0.5,
            "resummed": log_p / sum(float(c) * lambert ** (1 - i) for i, c in enumerate(resummed)),
            "level": log_p / _optimal(dimension, float_level(log_m) ** 2),
            **{f"order {n}": float(f(log_p)) for n, f in functions.items()},
        }
        records += [
            {"facts_log10": log_p / math.log(10), "source": source, "load": value}
            for source, value in values.items()
        ]
    return records


def _lambert_level(log_m: float) -> float:
    """X_W + 3 log X_W = 2 log M - log 2 pi, by Newton's iteration in floats (no overflow)."""
    wanted = 2 * log_m - math.log(2 * math.pi)
    x = max(1.0, wanted)
    for _ in range(60):
        x = max(1e-3, x - (x + 3 * math.log(x) - wanted) / (1 + 3 / x))
    return x


def _curve(records: list[dict[str, Any]], source: str) -> tuple[list[float], list[float]]:
    rows = [r for r in records if r["source"] == source]
    return [r["facts_log10"] for r in rows], [r["load"] for r in rows]


def plot_expansion(records: list[dict[str, Any]]) -> str:
    """Inline SVG: loads against log10 p; what to see is in its description."""
    figure, axes = new_figure(3.8)
    names = [
        ("exact", "exact (certified)"),
        ("order 1", "order 1 in 1/log p"),
        ("order 2", "order 2"),
        ("order 4", "order 4"),
        ("resummed", r"Lambert form $L/(X_W+3)$"),
    ]
    for number, (source, label) in enumerate(names):
        x, y = _curve(records, source)
        theory_line(axes, x, y, series=number, label=label)
    axes.axhline(0.5, color="#5c6670", linewidth=1.0)
    axes.set_xscale("log")
    axes.set_ylim(0.45, 1.25)
    label_axes(
        axes,
        r"$\log_{10} p$",
        r"critical load $\alpha_c(p) = \log p\,/\,\delta$",
        legend="upper right",
    )
    return to_svg(
        figure,
        identifier="expansion-capacity",
        title="Critical load against the number of facts",
        description=(
            "The exact critical load falls from 1.16 at p = 10 towards one half, slowly: it is "
            "0.63 at p = 10^10 and 0.503 at p = 10^1000. The series in 1/log p approach it from "
            "below, order 4 within one per cent from p = 10 on; L/(X_W + 3) needs large p."
        ),
    )


def plot_errors(records: list[dict[str, Any]]) -> str:
    """Inline SVG: relative error of each description against the exact load."""
    figure, axes = new_figure(3.8)
    _, exact = _curve(records, "exact")
    names = [
        ("limit", "1/2"),
        ("order 1", "order 1 in 1/log p"),
        ("order 4", "order 4"),
        ("resummed", r"Lambert form $L/(X_W+3)$"),
        ("level", r"series in $1/T^2$, optimal"),
    ]
    for number, (source, label) in enumerate(names):
        x, y = _curve(records, source)
        error = [max(abs(v / e - 1), 1e-10) for v, e in zip(y, exact, strict=True)]
        theory_line(axes, x, error, series=number, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    label_axes(axes, r"$\log_{10} p$", "relative error", legend="lower left")
    return to_svg(
        figure,
        identifier="expansion-errors",
        title="Relative error of the expansions of the critical load",
        description=(
            "The leading value one half is off by tens of per cent for every practical p. Above "
            "p of about 10^7 the optimally truncated series in 1/T^2 is the best description, "
            "until the ten digits of the exact values are used up; below, order 4 in 1/log p is."
        ),
    )
