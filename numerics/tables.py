"""Threshold tables: one row a number of facts, columns chosen by name, every number certified.

A cell is printed once, correctly rounded to the digits asked for, and that text goes into every
format; JSON adds the radius that makes it an enclosure.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import arb, fmpz

from numerics.balls import Certified, working_precision
from numerics.cone import (
    rank_factor,
    statistical_dimension,
    variance_of_active,
)
from numerics.cone.rank import check_rank_ratio
from numerics.cone.volumes import check_digits, check_margin
from replica.errors import InvalidInput

DEFAULT_COLUMNS = ("facts", "delta", "critical_load", "facts_per_parameter")
FORMATS = ("csv", "markdown", "latex", "json")
_GUARD = 6
Cell = int | Fraction | Certified


@dataclass(frozen=True)
class Setting:
    """What one row is about: p facts, p - 1 competitors, rank and margin, digits, order."""

    facts: int
    rank_ratio: Fraction
    margin: Fraction
    digits: int
    order: int

    @property
    def competitors(self) -> int:
        """M = p - 1."""
        return self.facts - 1

    @property
    def bits(self) -> int:
        """Working precision for the arithmetic of a cell."""
        return math.ceil((self.digits + _GUARD) * math.log2(10)) + 40


@dataclass(frozen=True)
class Column:
    """A column: header for text and for LaTeX, meaning, and how a cell is computed."""

    title: str
    latex: str
    meaning: str
    compute: Callable[[Setting], Any]


def _delta(row: Setting) -> Any:
    return statistical_dimension(row.competitors, row.digits + _GUARD, margin=row.margin).ball


def _factor(row: Setting) -> Any:
    return rank_factor(row.rank_ratio, row.digits + _GUARD).ball


def _log_facts(row: Setting) -> Any:
    return arb(fmpz(row.facts)).log()


def _critical_load(row: Setting) -> Any:
    return _factor(row) * _log_facts(row) / _delta(row)


def _leading_order(row: Setting) -> Any:
    """I/2, reduced by (1 + m/sqrt(2 log p))^2 for a margin."""
    margin = arb(fmpz(row.margin.numerator)) / arb(fmpz(row.margin.denominator))
    return _factor(row) / 2 / (1 + margin / (2 * _log_facts(row)).sqrt()) ** 2


def _expansion(row: Setting) -> Any:
    """I L / (c_0 T^2 + ... + c_N T^{2-2N}) with the certified level T of M = p - 1."""
    from numerics.remainders import level
    from replica.expansion.cone import statistical_dimension as series

    if row.margin:
        raise InvalidInput(
            "the columns expansion and relative_error were asked for with a margin; "
            "they exist for zero margin only; leave out the margin or them"
        )
    height = level(row.competitors, row.digits + _GUARD).ball
    total = arb(0)
    for i, c in enumerate(series(row.order + 1)):
        coefficient = arb(fmpz(int(c.numerator))) / arb(fmpz(int(c.denominator)))
        total += coefficient * height ** (2 - 2 * i)
    if not total > 0:
        raise InvalidInput(
            f"the expansion of order {row.order} is not positive at {row.facts} facts (it is "
            "asymptotic); take a smaller --order or more facts"
        )
    return _factor(row) * _log_facts(row) / total


def _relative_error(row: Setting) -> Any:
    return _expansion(row) / _critical_load(row) - 1


def _success_width(row: Setting) -> Any:
    """sqrt(Var K / p)/delta: relative standard deviation of the number of active constraints."""
    if row.margin or row.rank_ratio != 1:
        raise InvalidInput(
            "the column success_width was asked for with a margin or a rank ratio; the law behind "
            "it is known for full rank and zero margin; leave out the column"
        )
    variance = variance_of_active(row.competitors, row.digits + _GUARD).ball
    return (variance / fmpz(row.facts)).sqrt() / _delta(row)


def _variance(row: Setting) -> Any:
    return variance_of_active(row.competitors, row.digits + _GUARD, margin=row.margin).ball


COLUMNS: dict[str, Column] = {
    "facts": Column("facts", "$p$", "number of facts p", lambda row: row.facts),
    "competitors": Column("competitors", "$M$", "M = p - 1", lambda row: row.competitors),
    "rank_ratio": Column("rank_ratio", r"$m/d$", "rank over d", lambda row: row.rank_ratio),
    "margin": Column("margin", "margin", "margin of every recall", lambda row: row.margin),
    "delta": Column("delta", r"$\delta$", "statistical dimension", _delta),
    "critical_load": Column(
        "critical_load", r"$\alpha_c$", "critical load I log p / delta", _critical_load
    ),
    "facts_per_parameter": Column(
        "facts_per_parameter",
        "$p/d^2$",
        "facts per weight at the threshold, I / delta",
        lambda row: _factor(row) / _delta(row),
    ),
    "leading_order": Column(
        "leading_order", r"$\alpha_c^{(0)}$", "scaling limit of the critical load", _leading_order
    ),
    "expansion": Column(
        "expansion", r"$\alpha_c^{(N)}$", "critical load from the expansion of order N", _expansion
    ),
    "relative_error": Column(
        "relative_error", r"$\alpha_c^{(N)}/\alpha_c-1$", "of the expansion", _relative_error
    ),
    "success_width": Column(
        "success_width", r"$\sigma_K/(\sqrt{p}\,\delta)$", "relative success width", _success_width
    ),
    "active_variance": Column("active_variance", r"$\sigma_K^2$", "Var K", _variance),
}


@dataclass(frozen=True)
class Table:
    """Rows of cells: an int, a Fraction, or a correctly rounded decimal with its radius."""

    columns: tuple[str, ...]
    cells: tuple[tuple[Cell, ...], ...]
    digits: int

    def to_csv(self) -> str:
        """Comma-separated values with a header; large counts as 1e100 where exact."""
        lines = [",".join(self.columns)]
        lines += [",".join(_plain(cell) for cell in row) for row in self.cells]
        return "\n".join(lines) + "\n"

    def to_markdown(self) -> str:
        """A table in GitHub's Markdown, numbers flush right."""
        body = [[_plain(cell) for cell in row] for row in self.cells]
        widths = [
            max(len(name), *(len(row[j]) for row in body)) for j, name in enumerate(self.columns)
        ]
        lines = [_pipe(self.columns, widths), _pipe(["-" * (w - 1) + ":" for w in widths], widths)]
        lines += [_pipe(row, widths) for row in body]
        return "\n".join(lines) + "\n"

    def to_latex(self) -> str:
        """A tabular environment that needs no package."""
        lines = [rf"\begin{{tabular}}{{{'r' * len(self.columns)}}}", r"\hline"]
        lines.append(" & ".join(COLUMNS[name].latex for name in self.columns) + r" \\")
        lines.append(r"\hline")
        lines += [" & ".join(_latex(cell) for cell in row) + r" \\" for row in self.cells]
        lines += [r"\hline", r"\end{tabular}"]
        return "\n".join(lines) + "\n"

    def to_json(self) -> str:
        """`columns` with their meaning, `digits`, and `rows`: objects by column name."""
        rows = [
            {name: _json(cell) for name, cell in zip(self.columns, row, strict=True)}
            for row in self.cells
        ]
        meaning = {name: COLUMNS[name].meaning for name in self.columns}
        return (
            json.dumps({"columns": meaning, "digits": self.digits, "rows": rows}, indent=2) + "\n"
        )

    def render(self, style: str) -> str:
        """The table in one of `FORMATS`."""
        if style not in FORMATS:
            raise InvalidInput(
                f"format is {style}; it must be one of {', '.join(FORMATS)}; choose one of these"
            )
        writers: dict[str, Callable[[], str]] = {
            "csv": self.to_csv,
            "markdown": self.to_markdown,
            "latex": self.to_latex,
            "json": self.to_json,
        }
        return writers[style]()


def threshold_table(
    facts: Sequence[int],
    *,
    columns: Sequence[str] = DEFAULT_COLUMNS,
    digits: int = 15,
    rank_ratio: Any = 1,
    margin: Any = 0,
    order: int = 3,
    watch: Callable[[Iterable[int]], Iterable[int]] | None = None,
) -> Table:
    """A table with one row for each p in `facts` and the named `columns`, to `digits` digits.

    Arguments: `rank_ratio` in (0, 1], `margin` >= 0, `order` N >= 0 of the expansion in 1/T^2;
    `watch` wraps the loop over the facts (a progress bar). Raises `InvalidInput`. Source: the
    functions of `numerics.cone`.

    >>> print(threshold_table([100, 1000], digits=6).to_csv(), end="")
    facts,delta,critical_load,facts_per_parameter
    100,4.79332,0.960748,0.208624
    1000,8.12024,0.850684,0.123149
    """
    names = tuple(columns)
    unknown = [name for name in names if name not in COLUMNS]
    if unknown or not names:
        raise InvalidInput(
            f"the column {unknown[0] if unknown else ''!r} is unknown; the columns are "
            f"{', '.join(COLUMNS)}; choose among them"
        )
    if isinstance(order, bool) or not isinstance(order, int) or not 0 <= order <= 60:
        raise InvalidInput(f"order is {order}; it must be a whole number from 0 to 60; give 3")
    check_digits(digits)
    ratio, shift = check_rank_ratio(rank_ratio), check_margin(margin)
    small = [p for p in facts if p < 2]
    if small:
        raise InvalidInput(f"facts is {small[0]}; a table starts at 2 facts; leave it out")
    rows = []
    for p in watch(facts) if watch is not None else facts:
        setting = Setting(p, ratio, shift, digits, order)
        rows.append(tuple(_cell(COLUMNS[name], setting) for name in names))
    return Table(names, tuple(rows), digits)


def _cell(column: Column, setting: Setting) -> Cell:
    with working_precision(setting.bits):
        found = column.compute(setting)
    if isinstance(found, int | Fraction):
        return found
    number = Certified(found)
    if number.contains(number.to_string(setting.digits)) and number.is_exact:
        return number
    if number.digits < setting.digits:
        # cancellation (relative_error): compute with as many more digits as were lost
        lost = setting.digits - number.digits + 4
        wider = Setting(
            setting.facts, setting.rank_ratio, setting.margin, setting.digits + lost, setting.order
        )
        with working_precision(wider.bits):
            number = Certified(column.compute(wider))
    text = number.to_string(setting.digits)
    mantissa, _, power = text.partition("e")
    last = int(power or 0) - len(mantissa.partition(".")[2])
    return Certified.from_decimal(text, f"5e{last - 1}")  # correctly rounded: half a unit


def _short_count(number: int) -> str:
    text = str(number)
    stripped = text.rstrip("0")
    zeros = len(text) - len(stripped)
    return f"{stripped}e{zeros}" if zeros > 6 and len(stripped) < 6 else text


def _plain(cell: Cell) -> str:
    if isinstance(cell, int):
        return _short_count(cell)
    return cell.value if isinstance(cell, Certified) else str(cell)


def _pipe(cells: Iterable[str], widths: list[int]) -> str:
    return "| " + " | ".join(c.rjust(w) for c, w in zip(cells, widths, strict=True)) + " |"


def _latex(cell: Cell) -> str:
    text = _plain(cell)
    mantissa, _, power = text.partition("e")
    if not power:
        return f"${text}$"
    if mantissa == "1":
        return f"$10^{{{power}}}$"
    return rf"${mantissa}\cdot 10^{{{power}}}$"


def _json(cell: Cell) -> Any:
    if isinstance(cell, int):
        return cell
    if isinstance(cell, Fraction):
        return str(cell)
    return cell.to_json()
