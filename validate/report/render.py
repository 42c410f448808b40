"""A report as one HTML file, as Markdown, or as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib import resources

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from replica.errors import InvalidInput
from validate.checks.base import Check
from validate.report.font import NOTICE, font_style
from validate.report.mathml import print_size, to_mathml, upright
from validate.report.model import Report, Table
from validate.report.prose import prose
from validate.report.words import basename, detail, deviation

LONG_TABLE = 12
"""Rows above which a table is folded away."""
SHORT_DIGITS = 4
"""Digits of a long number that a narrow screen shows."""
LEADING = ("thresholds",)
"""Sections that answer the page's question, before its claims."""
MARKS = {"agrees": "✓", "disagrees": "✗", "inconclusive": "?", "measured": "○", "proved": "■"}


def render(report: Report, form: str) -> str:
    """Text of the report in the format `form`: html, markdown or json."""
    formats: dict[str, Callable[[Report], str]] = {
        "html": to_html,
        "markdown": to_markdown,
        "json": to_json,
    }
    if form not in formats:
        raise InvalidInput(
            f"the report format is {form!r}; it must be one of {', '.join(formats)}; choose one"
        )
    return formats[form](report)


def to_html(report: Report) -> str:
    """One self-contained page: no script, no request, figures and formulas inline."""
    folder = resources.files("validate.report")
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    template = environment.from_string((folder / "report.html.j2").read_text("utf-8"))
    return template.render(
        report=report,
        style=Markup(font_style() + "\n" + (folder / "style.css").read_text("utf-8")),
        font_notice=NOTICE,
        leading=[s for s in report.sections if s.identifier in LEADING],
        following=[s for s in report.sections if s.identifier not in LEADING],
        mark=MARKS,
        formula=formula,
        p_text=p_text,
        power_text=power_text,
        prose=prose,
        verdict_line=verdict_line(report),
        verdict_words=verdict_words(report),
        p_value_text=p_value_text,
        compared=compared,
        off_by=off_by,
        spread=spread,
        detail=detail,
        basename=basename,
        short_digits=short_digits,
        has_long_digits=has_long_digits,
        long_table=LONG_TABLE,
        strictest=report.false_alarm_rate / max(1, report.tested),
    )


def formula(latex: str, number: int) -> Markup:
    """A displayed formula in a box of its own that scrolls on screen and shrinks on paper."""
    markup = to_mathml(latex)
    return Markup(
        '<div class="formula scroll" tabindex="0" role="group" aria-label="Formula of step {}" '
        'style="--print-size: {}pt">{}</div>'
    ).format(number, print_size(markup), Markup(markup))


def to_json(report: Report) -> str:
    """Every number of the report; NaN and infinity are refused."""
    return json.dumps(report.to_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def to_markdown(report: Report) -> str:
    """GitHub-flavoured Markdown: formulas between $$, figures as tables of what they show."""
    lines = [f"# {report.title}", "", report.answer, "", f"{report.created}", ""]
    lines += ["## Claims and verdicts", "", verdict_line(report), "", verdict_words(report), ""]
    header = ("Claim", "Quantity", "Predicted", "Measured", "95 % interval", "Off by", "Verdict")
    rows = [
        (c.claim, c.quantity, c.predicted, c.measured, c.interval, off_by(c), f"**{c.verdict}**")
        for c in report.checks
    ]
    lines += _grid(header, rows)
    for section in report.sections:
        lines += ["", f"## {section.title}", "", section.introduction]
        if section.derivation:
            for number, step in enumerate(section.derivation, 1):
                lines += ["", f"{number}. {step.title}", "", f"$${upright(step.latex)}$$"]
                if step.reason:
                    lines += ["", f"   {step.reason}"]
        for table in section.tables:
            lines += ["", f"### {table.title}", "", *_grid(table.header, table.rows)]
            if table.note:
                lines += ["", table.note]
        for figure in section.figures:
            lines += ["", f"**{figure.title}.** {figure.description}"]
        for check in section.checks:
            lines += ["", f"- {MARKS[str(check.verdict)]} **{check.verdict}**: {check.claim}"]
            if check.p_value is not None:
                lines.append(f"  Hypothesis: {check.hypothesis}. {p_value_text(check)}.")
            if check.power is not None:
                lines.append(f"  Power {power_text(check.power)} against: {check.alternative}.")
            lines.append(f"  Sample: {check.sample_size}; {check.undecided} undecided.")
            lines.append(f"  Source: {check.source}.")
            if check.remark:
                lines.append(f"  {check.remark}")
    lines += ["", "## How this was made", ""]
    for group in (report.settings, report.versions):
        lines += [*_grid(("Name", "Value"), [(k, basename(v)) for k, v in group.items()]), ""]
    sizes = [
        (s.title, key, basename(value))
        for s in report.sections
        for key, value in s.settings.items()
    ]
    lines += [*_grid(("Section", "Size", "Value"), sizes), ""]
    costs = [
        (c.section, str(c.units), str(c.kept), *(f"{t:.1f} s" for t in c.times))
        for c in report.costs
    ]
    columns = ("Section", "Units", "Kept from before", "Measuring", "Theory, tests, figures")
    lines += [*_grid(columns, costs), ""]
    times = [(name, f"{value:.1f} s") for name, value in report.seconds.items()]
    lines += _grid(("Stage", "Time"), times)
    return "\n".join(lines) + "\n"


def verdict_line(report: Report) -> str:
    """One sentence that counts the verdicts."""
    words = {
        "agrees": "agree",
        "disagrees": "disagree",
        "inconclusive": "inconclusive for want of data",
        "proved": "proved by certificates",
        "measured": "measured without a verdict",
    }
    parts = [f"{report.count(verdict)} {text}" for verdict, text in words.items()]
    return f"{len(report.checks)} claims: {', '.join(parts)}."


def verdict_words(report: Report) -> str:
    """What the words of the verdicts mean, and how false alarms are bounded."""
    return (
        "Agrees: not refuted, by a test that would notice the named error with a power of at least "
        "1/2. Inconclusive: not refuted, but the power is less. Disagrees: refuted; Holm’s rule "
        f"over the {report.tested} claims with a P-value keeps the chance that any true claim is "
        f"called so below {100 * report.false_alarm_rate:g} %, and powers are stated at its "
        "strictest level. Measured: a number without a test. Proved: rests on certificates alone."
    )


def compared(check: Check) -> str:
    """One line: what was compared, with interval and P-value where there are any.

    >>> compared(Check("a", "c", "s", "q", "1", "2", "", "1", []))
    'q. Predicted 1, measured 2.'
    """
    text = f"{check.quantity}. Predicted {check.predicted}, measured {check.measured}"
    if check.interval:
        numeric = any(c.isdigit() for c in check.interval)
        text += f", 95 % interval {check.interval}" if numeric else f" ({check.interval})"
    text += f"; off by {off}." if (off := off_by(check)) else "."
    if check.p_value is not None:
        text += f" {p_value_text(check)}."
    return text + (f" {check.undecided} undecided." if check.undecided else "")


def off_by(check: Check) -> str:
    """Relative deviation of the measured from the predicted number, with its interval."""
    return deviation(check.predicted, check.measured, check.interval)


def spread(deviation: str) -> Markup:
    """A deviation as the table of claims shows it: its interval set apart."""
    value, bracket, rest = deviation.partition(" (")
    interval = Markup(' <span class="small interval">{}</span>').format(prose(bracket[1:] + rest))
    return prose(value) + interval if bracket else prose(value)


def p_value_text(check: Check) -> str:
    """The P-value, and the one adjusted by Holm's rule where that is below 1.

    >>> check = Check("a", "c", "s", "q", "1", "1", "", "1", [], hypothesis="h", p_value=0.24)
    >>> check.adjusted_p = 0.9
    >>> p_value_text(check)
    'P-value 0.24 (adjusted 0.9)'
    """
    text = f"P-value {p_text(check.p_value)}"
    adjusted = check.adjusted_p
    return text if adjusted is None or adjusted >= 1.0 else f"{text} (adjusted {p_text(adjusted)})"


def short_digits(cell: str) -> Markup:
    """A cell whose digits beyond `SHORT_DIGITS` give way to an ellipsis on a narrow screen.

    >>> short_digits("0.5019855113")
    Markup('0.5019<span class="more">855113</span><span class="dots">…</span>')
    """
    kept = _kept(cell)
    if kept is None:
        return prose(cell)
    return Markup('{}<span class="more">{}</span><span class="dots">…</span>').format(
        cell[:kept], cell[kept:]
    )


def has_long_digits(table: Table) -> bool:
    """Whether a cell of the table is shortened on a narrow screen."""
    return bool(table.secondary) or any(
        _kept(cell) is not None for row in table.rows for cell in row
    )


def _kept(cell: str) -> int | None:
    """Characters of a plain decimal number that stay; None if nothing is to be gained."""
    if not re.fullmatch(r"-?[0-9]+\.[0-9]+", cell):
        return None
    digits = 0
    for position, character in enumerate(cell):
        digits += character.isdigit() and (digits > 0 or character != "0")
        if digits == SHORT_DIGITS:
            return position + 1 if position + 3 < len(cell) else None
    return None


def p_text(p: float | None) -> str:
    """A p-value to two digits.

    >>> p_text(0.25), p_text(0.00012)
    ('0.25', '1.2e-04')
    """
    if p is None:
        return "—"
    return f"{p:.2g}" if p >= 1e-3 else f"{p:.1e}"


def power_text(power: float) -> str:
    """A power to two or three digits that never claims certainty.

    >>> power_text(0.4137), power_text(0.9996), power_text(1.0), power_text(0.0)
    ('0.41', 'over 0.999', 'over 0.999', 'below 0.01')
    """
    if power > 0.999:
        return "over 0.999"
    if power < 0.01:
        return "below 0.01"
    return f"{power:.3f}" if power > 0.99 else f"{power:.2f}"


def _grid(header: object, rows: object) -> list[str]:
    """Rows of a Markdown table."""
    assert isinstance(header, tuple | list)
    assert isinstance(rows, tuple | list)

    def line(cells: object) -> str:
        assert isinstance(cells, tuple | list)
        return (
            "| " + " | ".join(str(c).replace("|", "\\|").replace("\n", " ") for c in cells) + " |"
        )

    return [line(header), "|" + "---|" * len(header), *(line(row) for row in rows)]
