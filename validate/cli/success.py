"""`factcap success`: the probability that all facts can be recalled, certified."""

from __future__ import annotations

from typing import Annotated, Any

import typer


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("success")(success)


def success(
    dim: Annotated[str, typer.Option(help="Dimension d of the embeddings.", metavar="D")],
    facts: Annotated[str, typer.Option(help="Number of facts p.", metavar="P")],
    dim_out: Annotated[
        str | None, typer.Option("--dim-out", help="Output dimension, if not d.", metavar="D")
    ] = None,
    competitors: Annotated[
        str | None, typer.Option(help="Competitors of each fact; p - 1 if not given.", metavar="M")
    ] = None,
    digits: Annotated[str, typer.Option(help="Proved digits, 1 to 10000.", metavar="N")] = "15",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Probability that some linear memory recalls all p random facts."""
    from numerics.cone import success_probability
    from numerics.counts import parse_count
    from validate.cli.common import print_json
    from validate.cli.output import parse_digits

    places = parse_digits(digits)
    size = parse_count(dim, "dim")
    rivals = None if competitors is None else parse_count(competitors, "competitors")
    count = parse_count(facts, "facts", least=2 if rivals is None else 1)
    other = None if dim_out is None else parse_count(dim_out, "dim_out")
    probability = success_probability(size, count, rivals, dim_out=other, digits=places)
    row: dict[str, Any] = {"dim": size}
    if other is not None:
        row["dim_out"] = other
    row["facts"] = count
    row["competitors"] = count - 1 if rivals is None else rivals
    row["success_probability"] = probability.to_json()
    if json:
        print_json(row)
        return
    _print_table(row, probability.to_string(places))


def _print_table(row: dict[str, Any], probability: str) -> None:
    from rich.table import Table

    from validate.cli.output import console, show_count

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    size = show_count(row["dim"])
    if "dim_out" in row:
        size = f"{size} x {show_count(row['dim_out'])}"
    table.add_row("dimension d", size)
    table.add_row("facts p", show_count(row["facts"]))
    table.add_row("competitors M", show_count(row["competitors"]))
    table.add_row("success probability", probability)
    screen = console()
    screen.print(table)
    screen.print(
        "Chance that some d x d matrix recalls all p random facts (Gaussian problem,\n"
        "exact at this size). All printed digits are proved.",
        style="dim",
        highlight=False,
    )
