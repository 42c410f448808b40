"""A report as one HTML file, as Markdown, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import resources

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from replica.errors import InvalidInput
from validate.report.mathml import print_size, to_mathml, upright
from validate.report.model import Report
from validate.report.prose import prose

LONG_TABLE = 20
"""Rows above which a table is folded away on screen (never on paper)."""
LEAST_PRINT_SIZE = 5.5
"""Points below which a formula is printed as LaTeX instead."""
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
        style=Markup((folder / "style.css").read_text("utf-8")),
        mark=MARKS,
        formula=formula,
        p_text=p_text,
        power_text=power_text,
        prose=prose,
        verdict_line=verdict_line(report),
        false_alarm_note=false_alarm_note(report),
        long_table=LONG_TABLE,
        strictest=report.false_alarm_rate / max(1, report.tested),
    )


def formula(latex: str, number: int) -> Markup:
    """A displayed formula in a box of its own that scrolls on screen and shrinks on paper.

    Paper gets the LaTeX source of a formula that would be too small to read.
    """
    markup = to_mathml(latex)
    size = print_size(markup)
    small = size < LEAST_PRINT_SIZE
    source = Markup('<code class="paper">{}</code>').format(upright(latex)) if small else ""
    return Markup(
        '<div class="formula scroll{}" tabindex="0" role="group" aria-label="Formula of step {}" '
        'style="--print-size: {}pt">{}</div>{}'
    ).format(" screen" if small else "", number, size, Markup(markup), source)


def to_json(report: Report) -> str:
    """Every number of the report; NaN and infinity are refused."""
    return json.dumps(report.to_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def to_markdown(report: Report) -> str:
    """GitHub-flavoured Markdown: formulas between $$, figures as tables of what they show."""
    lines = [f"# {report.title}", "", report.answer, "", f"{report.created}", ""]
    lines += ["## Claims and verdicts", "", verdict_line(report), ""]
    header = ("Claim", "Source", "Quantity", "Predicted", "Measured", "95 % interval", "Verdict")
    rows = [
        (c.claim, c.source, c.quantity, c.predicted, c.measured, c.interval, f"**{c.verdict}**")
        for c in report.checks
    ]
    lines += [*_grid(header, rows), "", false_alarm_note(report)]
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
                lines.append(f"  Hypothesis: {check.hypothesis}. p = {p_text(check.p_value)}.")
            if check.power is not None:
                lines.append(f"  Power {power_text(check.power)} against: {check.alternative}.")
            lines.append(f"  Sample: {check.sample_size}; {check.undecided} undecided.")
            if check.remark:
                lines.append(f"  {check.remark}")
    lines += ["", "## How this was made", ""]
    for group in (report.settings, report.versions):
        lines += [*_grid(("Name", "Value"), [(k, str(v)) for k, v in group.items()]), ""]
    sizes = [(s.title, key, value) for s in report.sections for key, value in s.settings.items()]
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


def false_alarm_note(report: Report) -> str:
    """What the report-wide error control means."""
    return (
        f"{report.tested} claims carry a p-value. Holm's rule keeps the chance that a true claim "
        f"anywhere in this report is called “disagrees” below {100 * report.false_alarm_rate:g} %. "
        "“Agrees” means not refuted by a sample large enough to notice the error that the check "
        "names, with a power of at least one half at the strictest level that Holm's rule can ask "
        "for; with less power an unrefuted claim is “inconclusive”. The p-values of the table are "
        "adjusted."
    )


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
