"""`factcap critical`: add facts to one instance after the other until recall fails, with proof."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from validate.cli.options import (
    Competitors,
    DimOut,
    EnsembleName,
    Json,
    Problem,
    Root,
    Seeds,
    Spectrum,
    TimeLimit,
)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("critical")(critical)


def critical(
    dim: Annotated[int, typer.Option(help="Input dimension d.", metavar="D")],
    problem: Problem = "original",
    seeds: Seeds = 20,
    seed: Root = 0,
    competitors: Competitors = None,
    dim_out: DimOut = None,
    ensemble: EnsembleName = "gaussian",
    spectrum: Spectrum = None,
    time_limit: TimeLimit = None,
    json: Json = False,
) -> None:
    """The critical number of facts p_c of instances, and its law against the exact success curve.

    Facts are added one at a time (nested instances, warm starts); p_c is the last number for which
    a memory exists, proved on both sides. P(p_c >= p) should be the success probability at p.
    """
    from validate.cli.common import print_json, require_extra

    require_extra("torch")
    from validate.cli.progress import counter
    from validate.critical_load import survey
    from validate.embeddings import with_spectrum

    law = with_spectrum(ensemble, spectrum)
    with counter("instances", quiet=json) as tick:
        found = survey(
            problem,
            dim=dim,
            seeds=seeds,
            seed=seed,
            dim_out=dim_out,
            competitors=competitors,
            ensemble=law,
            time_limit=time_limit,
            progress=tick,
            facts_tried=lambda p, _verdict: tick.say(f"p = {p}"),
        )
    data = found.to_json()
    if json:
        print_json(data)
        return
    _print_table(data)


def _print_table(data: dict[str, Any]) -> None:
    from rich.table import Table

    from validate.cli.output import console

    size = f"d = {data['dim']}"
    if data["dim_out"] != data["dim"]:
        size = f"{data['dim_out']} x {data['dim']}"
    table = Table(title=f"{data['problem']} problem, {size}, {data['seeds']} instances")
    table.add_column("facts p", justify="right")
    table.add_column("instances with p_c >= p", justify="right")
    table.add_column("share", justify="right")
    table.add_column("success probability", justify="right")
    for row in data["curve"]:
        table.add_row(
            str(row["facts"]),
            f"{row['count']} of {data['seeds']}",
            f"{row['share']:.3f}",
            f"{row['success_probability']:.3f}",
        )
    screen = console()
    screen.print(table)
    screen.print(
        f"Median p_c = {data['median']:g}; theory: p delta(M) <= d_in d_out up to "
        f"p = {data['theory']}.\n"
        "The probability is exact for the Gaussian problem.",
        style="dim",
        highlight=False,
    )
    if data["undecided"]:
        screen.print(
            f"{data['undecided']} instances ended at an undecided verdict: their p_c is a lower "
            "bound, and counts as one here.",
            highlight=False,
        )
