"""`factcap table`: thresholds for a list of numbers of facts, in four formats."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("table")(table)


def table(
    facts: Annotated[
        str, typer.Option(help="Numbers of facts: 1e2,1e3,...,1e100.", metavar="P,P,...")
    ],
    columns: Annotated[
        str | None,
        typer.Option(
            help="Columns by name, among facts, competitors, delta, critical_load, "
            "facts_per_parameter, leading_order, expansion, relative_error, success_width, "
            "active_variance, rank_ratio, margin.",
            metavar="NAME,...",
        ),
    ] = None,
    rank_ratio: Annotated[
        str, typer.Option("--rank-ratio", help="Rank of W over d, in (0, 1].", metavar="R")
    ] = "1",
    margin: Annotated[
        str, typer.Option(help="Margin of every recall, in score deviations.", metavar="m")
    ] = "0",
    order: Annotated[str, typer.Option(help="Order N of the expansion.", metavar="N")] = "3",
    digits: Annotated[str, typer.Option(help="Proved digits, 1 to 10000.", metavar="N")] = "15",
    style: Annotated[
        str, typer.Option("--format", help="csv, markdown, latex or json.", metavar="F")
    ] = "markdown",
    out: Annotated[
        Path | None, typer.Option(help="Write to this file instead of the screen.", metavar="FILE")
    ] = None,
) -> None:
    """Table of critical loads with proved digits."""
    from numerics.counts import parse_counts
    from numerics.tables import DEFAULT_COLUMNS, FORMATS, threshold_table
    from replica.errors import InvalidInput
    from validate.cli.common import check_writable, write_text_atomically
    from validate.cli.output import parse_digits, progress

    if style not in FORMATS:
        raise InvalidInput(
            f"format is {style}; it must be one of {', '.join(FORMATS)}; choose one of these"
        )
    if not order.isdecimal() or len(order) > 9:
        raise InvalidInput(f"order is {order[:40]}; it must be a whole number from 0 to 60; give 3")
    if out is not None:
        check_writable(out)
    counts = parse_counts(facts, "facts", least=2)
    names = DEFAULT_COLUMNS if columns is None else [c.strip() for c in columns.split(",")]

    def watch(items: Any) -> Any:
        return progress(items, "rows")

    found = threshold_table(
        counts,
        columns=names,
        digits=parse_digits(digits),
        rank_ratio=rank_ratio,
        margin=margin,
        order=int(order),
        watch=watch,
    )
    text = found.render(style)
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_text_atomically(out, text)
        typer.echo(f"wrote {len(found.cells)} rows to {out}", err=True)
