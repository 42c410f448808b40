"""`factcap threshold`: how many facts fit, with certified digits."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any

import typer


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("threshold")(threshold)


def threshold(
    facts: Annotated[
        str | None, typer.Option(help="Number of facts p: 1000, 1e100 or 10^1000.", metavar="P")
    ] = None,
    dim: Annotated[
        str | None,
        typer.Option(help="Dimension d: also print the largest p that fits.", metavar="D"),
    ] = None,
    dim_out: Annotated[
        str | None, typer.Option("--dim-out", help="Output dimension, if not d.", metavar="D")
    ] = None,
    competitors: Annotated[
        str | None, typer.Option(help="Competitors of each fact; p - 1 if not given.", metavar="M")
    ] = None,
    rank_ratio: Annotated[
        str | None,
        typer.Option("--rank-ratio", help="Rank of W over d, in (0, 1].", metavar="R"),
    ] = None,
    margin: Annotated[
        str, typer.Option(help="Margin of every recall, in score deviations.", metavar="m")
    ] = "0",
    digits: Annotated[str, typer.Option(help="Proved digits, 1 to 10000.", metavar="N")] = "15",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Critical load of a linear memory that must recall every fact.

    --facts P: statistical dimension, critical load, facts per weight.  --dim D: the largest number
    of facts p with p delta(p-1) <= D^2; without --facts the rest is printed for that p.
    """
    from numerics.cone import (
        critical_facts,
        critical_load,
        facts_per_parameter,
        statistical_dimension,
    )
    from numerics.counts import parse_count
    from replica.errors import InvalidInput
    from validate.cli.common import print_json
    from validate.cli.output import parse_digits

    if facts is None and dim is None:
        raise InvalidInput(
            "neither --facts nor --dim was given; threshold needs one of them; "
            "try factcap threshold --facts 1000"
        )
    if dim is None and dim_out is not None:
        raise InvalidInput(
            "--dim-out was given without --dim; it only changes how many facts fit into a given "
            "dimension; add --dim"
        )
    places = parse_digits(digits)
    rivals = None if competitors is None else parse_count(competitors, "competitors")
    row: dict[str, Any] = {}
    if facts is not None:
        least = 2 if rivals is None else 1
        count = parse_count(facts, "facts", least=least)
    most = None
    if dim is not None:
        most = critical_facts(
            parse_count(dim, "dim"),
            dim_out=None if dim_out is None else parse_count(dim_out, "dim_out"),
            competitors=rivals,
            rank_ratio=rank_ratio,
            margin=margin,
        )
        if facts is None:
            count = max(most, 2 if rivals is None else 1)
    row["facts"] = count
    row["competitors"] = count - 1 if rivals is None else rivals
    aspect = Fraction(1)
    if dim is not None and dim_out is not None:
        sizes = parse_count(dim, "dim"), parse_count(dim_out, "dim_out")
        aspect = Fraction(min(sizes), max(sizes))
    setting = {
        "margin": margin,
        "rank_ratio": 1 if rank_ratio is None else rank_ratio,
        "aspect_ratio": aspect,
    }
    rivals = row["competitors"]
    numbers = {
        "statistical_dimension": statistical_dimension(rivals, places, margin=margin),
        "critical_load": critical_load(count, rivals, places, **setting),
        "facts_per_parameter": facts_per_parameter(count, rivals, places, **setting),
    }
    if dim is not None:
        row["dim"] = parse_count(dim, "dim")
        if dim_out is not None:
            row["dim_out"] = parse_count(dim_out, "dim_out")
        row["critical_facts"] = most
    if json:
        print_json(
            {
                "facts": row["facts"],
                "competitors": row["competitors"],
                **{name: number.to_json() for name, number in numbers.items()},
                **{k: v for k, v in row.items() if k not in ("facts", "competitors")},
            }
        )
        return
    largest = facts is None and count == most
    texts = {name: n.to_string(places) for name, n in numbers.items()}
    _print_table(row, texts, largest, full_rank=rank_ratio is None)


def _print_table(
    row: dict[str, Any], numbers: dict[str, str], largest: bool, *, full_rank: bool
) -> None:
    from rich.table import Table

    from validate.cli.output import console, show_count

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    if "dim" in row:
        size = show_count(row["dim"])
        if "dim_out" in row:
            size = f"{size} x {show_count(row['dim_out'])}"
        table.add_row("dimension d", size)
        table.add_row("largest number of facts", show_count(row["critical_facts"]))
    table.add_row("facts p", show_count(row["facts"]) + (" (the largest)" if largest else ""))
    table.add_row("competitors M", show_count(row["competitors"]))
    table.add_row("statistical dimension", numbers["statistical_dimension"])
    table.add_row("critical load", numbers["critical_load"])
    table.add_row("facts per weight", numbers["facts_per_parameter"])
    screen = console()
    screen.print(table)
    room = "d^2" if full_rank else "d^2 I(rank ratio)"
    limit = " (1/2 at infinite p)" if full_rank else ""
    screen.print(
        f"p facts fit as long as p x (statistical dimension) <= {room};\n"
        f"the load p log p / d^2 is then at most the critical load{limit}.\n"
        "All printed digits are proved.",
        style="dim",
        highlight=False,
    )
