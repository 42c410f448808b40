"""One figure style: theory as a line, simulation as points with error bars, colours safe for all.

Figures are drawn with Matplotlib's SVG backend and no global state. `to_svg` replaces the palette
by CSS variables, so that a figure inside a page follows its light, dark and print themes.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

from replica.errors import InvalidInput

INK, MUTED, GRID, PAPER = "#1b1f24", "#5c6670", "#dfe3e8", "#fefefd"
# Okabe and Ito's palette; order: Gaussian, decoupled, original, then further series.
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
MARKERS = ("o", "s", "^", "D", "v", "P")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.2, 1.6)), (0, (6, 2, 1.2, 2)))

_VARIABLES = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--grid)",
    PAPER: "var(--paper)",
    **{colour: f"var(--s{number})" for number, colour in enumerate(SERIES, 1)},
}

# 5 inches at 72 units an inch: 360 units wide, so text keeps its size on a 390 px phone.
STYLE: dict[str, Any] = {
    "figure.figsize": (5.0, 3.5),
    "figure.constrained_layout.use": True,
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "font.size": 10.0,
    "font.family": "DejaVu Sans",
    "mathtext.fontset": "dejavusans",
    "text.color": INK,
    "axes.facecolor": "none",
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 9.0,
    "ytick.labelsize": 9.0,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.8,
    "lines.markersize": 5.0,
    "svg.fonttype": "path",
    "svg.hashsalt": "factcap",
}


def new_figure(height: float = 3.5) -> tuple[Figure, Any]:
    """A figure in the project's style, 5 inches wide and `height` high, and its axes.

    >>> figure, axes = new_figure()
    >>> figure.get_size_inches().tolist()
    [5.0, 3.5]
    """
    with mpl.rc_context({**STYLE, "figure.figsize": (5.0, height)}):
        figure = Figure()
        FigureCanvasSVG(figure)
        axes = figure.subplots()
    return figure, axes


def theory_line(
    axes: Any, x: Sequence[float], y: Sequence[float], *, series: int, label: str
) -> None:
    """Draw a prediction: a line without marks, dashed by series to survive grey printing."""
    axes.plot(x, y, color=SERIES[series], linestyle=DASHES[series % len(DASHES)], label=label)


def simulation_points(
    axes: Any,
    x: Sequence[float],
    y: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    *,
    series: int,
    label: str,
) -> None:
    """Draw a measurement: points with error bars from `low` to `high`, one mark a series."""
    below = [max(0.0, value - bound) for value, bound in zip(y, low, strict=True)]
    above = [max(0.0, bound - value) for value, bound in zip(y, high, strict=True)]
    axes.errorbar(
        x,
        y,
        yerr=[below, above],
        color=SERIES[series],
        marker=MARKERS[series],
        markeredgecolor=PAPER,
        markeredgewidth=0.6,
        linestyle="none",
        elinewidth=1.1,
        capsize=2.0,
        label=label,
        zorder=3,
    )


def limit_bar(axes: Any, place: int, limit: Sequence[float], *, series: int) -> None:
    """An extrapolated limit (low, value, high) as a bar without a mark at the left edge, x = 0.

    Bars of several series stand side by side at `place` 0, 1, ...
    """
    low, value, high = limit
    axes.errorbar(
        [0.006 + 0.014 * place],
        [value],
        yerr=[[max(0.0, value - low)], [max(0.0, high - value)]],
        transform=axes.get_yaxis_transform(),
        color=SERIES[series],
        marker="_",
        markersize=7.0,
        linestyle="none",
        elinewidth=2.4,
        capsize=0.0,
        alpha=0.75,
        zorder=3,
        clip_on=True,
    )


def mark_cut_bars(axes: Any) -> list[tuple[float, float]]:
    """Small triangles where an error bar leaves the axes; their places, as fractions of the axes.

    >>> figure, axes = new_figure()
    >>> simulation_points(axes, [1.0], [0.5], [0.2], [3.0], series=0, label="")
    >>> _ = axes.set(xlim=(0.0, 2.0), ylim=(0.0, 1.0))
    >>> mark_cut_bars(axes)
    [(0.5, 1.0)]
    """
    low, high = axes.get_ylim()
    places = []
    for container in axes.containers:
        if not isinstance(container, ErrorbarContainer):
            continue
        for bars in container.lines[2]:
            to_axes = bars.get_transform() + axes.transAxes.inverted()
            colour = bars.get_edgecolor()[0]
            for (x, bottom), (_, top) in bars.get_segments():
                for cut, bound, marker, height in (
                    (bottom < low, low, "v", 0.0),
                    (top > high, high, "^", 1.0),
                ):
                    if cut:
                        across = float(to_axes.transform((x, bound))[0])
                        places.append((round(across, 6), height))
                        axes.plot(
                            [across],
                            [height],
                            transform=axes.transAxes,
                            marker=marker,
                            markersize=4.5,
                            color=colour,
                            linestyle="none",
                            clip_on=False,
                            zorder=4,
                        )
    return places


def label_axes(axes: Any, x: str, y: str, *, title: str = "", legend: str = "") -> None:
    """Axis labels, title (left) and legend (position `legend`, e.g. "upper right").

    To be called last: error bars that leave the axes get their marks here.
    """
    mark_cut_bars(axes)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if title:
        axes.set_title(title, loc="left", fontsize=10.5, color=INK)
    if legend:
        axes.legend(loc=legend, frameon=False, fontsize=8.5, labelcolor=INK)


def note(axes: Any, x: float, text: str, *, height: float = 0.97, right: bool = True) -> None:
    """A labelled vertical reference line at `x`; `height` is in units of the axes."""
    axes.axvline(x, color=MUTED, linewidth=1.0, linestyle=(0, (2, 2)), zorder=1)
    axes.annotate(
        text,
        (x, height),
        xycoords=("data", "axes fraction"),
        xytext=(4 if right else -4, 0),
        textcoords="offset points",
        ha="left" if right else "right",
        va="top",
        fontsize=8.5,
        color=MUTED,
    )


def to_svg(figure: Figure, *, identifier: str, title: str, description: str) -> str:
    """Inline SVG of `figure`: themed by CSS variables, accessible, with ids that do not collide.

    Arguments: `identifier` (letters, digits, hyphens) prefixes every id; `title` and `description`
    are read aloud in place of the picture. Raises `InvalidInput` on an unusable identifier or an
    empty text, for a figure without them is closed to some readers.

    >>> figure, axes = new_figure()
    >>> _ = axes.plot([0, 1], [0, 1], color=SERIES[0])
    >>> svg = to_svg(figure, identifier="demo", title="A line", description="It rises.")
    >>> svg.startswith("<svg"), 'role="img"' in svg, "var(--s1)" in svg
    (True, True, True)
    """
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", identifier):
        raise InvalidInput(
            f"the figure identifier {identifier!r} is not usable in a page; "
            "use letters, digits and hyphens, beginning with a letter"
        )
    if not title.strip() or not description.strip():
        raise InvalidInput(
            f"figure {identifier!r} lacks a title or a description; say in words what it shows"
        )
    buffer = io.StringIO()
    with mpl.rc_context(STYLE):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(\bid=")', rf"\1{identifier}-", text)
    text = re.sub(r'(href="#)', rf"\1{identifier}-", text)
    text = re.sub(r"(url\(#)", rf"\1{identifier}-", text)
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, variable)
    box = re.search(r'viewBox="[^"]*"', text)
    assert box is not None, "Matplotlib writes a viewBox"
    head = (
        f'<svg {box.group(0)} xmlns="http://www.w3.org/2000/svg" '
        'xmlns:xlink="http://www.w3.org/1999/xlink" role="img" '
        f'aria-labelledby="{identifier}-title {identifier}-desc">'
        f'<title id="{identifier}-title">{html.escape(title)}</title>'
        f'<desc id="{identifier}-desc">{html.escape(description)}</desc>'
    )
    return head + text[text.index(">", text.index("<svg")) + 1 :].rstrip()
