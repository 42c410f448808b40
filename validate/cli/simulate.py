"""`factcap simulate`: one cell of an experiment, verdicts counted and accuracy averaged."""

from __future__ import annotations

from typing import Annotated

import typer

from validate.cli.options import (
    Competitors,
    DimOut,
    EnsembleName,
    Json,
    Problem,
    RankRatio,
    Root,
    Seeds,
    Spectrum,
    TimeLimit,
)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("simulate")(simulate)


def simulate(
    problem: Problem = "original",
    dim: Annotated[int, typer.Option(help="Input dimension d.", metavar="D")] = ...,  # type: ignore[assignment]
    facts: Annotated[int, typer.Option(help="Number of facts p.", metavar="P")] = ...,  # type: ignore[assignment]
    method: Annotated[
        str,
        typer.Option(
            help="exact, adam, newton (low rank), hebbian or pseudo_inverse.", metavar="METHOD"
        ),
    ] = "exact",
    seeds: Seeds = 20,
    seed: Root = 0,
    competitors: Competitors = None,
    dim_out: DimOut = None,
    rank_ratio: RankRatio = None,
    ensemble: EnsembleName = "gaussian",
    spectrum: Spectrum = None,
    time_limit: TimeLimit = None,
    json: Json = False,
) -> None:
    """Draw instances of one size and count how many a linear memory can recall.

    Exact verdicts are proved; what cannot be proved is undecided. For a learning rule, instances
    with perfect recall are counted (in the JSON: separable, and undecided the rest, since a rule
    that fails proves nothing). Where theory has a value for this size, it stands beside.
    """
    from validate.cli.common import print_json, require_extra

    require_extra("torch")
    from validate.cli.progress import counter
    from validate.embeddings import with_spectrum
    from validate.predictions import predictions
    from validate.simulate import simulate as run

    law = with_spectrum(ensemble, spectrum)
    with counter("instances", quiet=json) as tick:
        cell = run(
            problem,
            dim=dim,
            facts=facts,
            method=method,
            seeds=seeds,
            seed=seed,
            competitors=competitors,
            dim_out=dim_out,
            rank_ratio=rank_ratio,
            ensemble=law,
            time_limit=time_limit,
            progress=tick,
            steps=lambda n: tick.say(f"iteration {n} of about 15"),
        )
    data = cell.to_json()
    if json:
        print_json(data)
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{problem} problem, d = {dim}, p = {facts}, {method}")
    table.add_column("quantity")
    table.add_column("value", justify="right")
    total = data["seeds"]
    if method == "exact":
        counted = {"separable": "separable", "not separable": "not_separable"}
        chance = "P(separable)"
    else:
        # A rule that fails proves nothing about the instance.
        counted = {"all facts recalled, proved": "separable"}
        chance = "P(all recalled)"
    for name, key in counted.items():
        table.add_row(name, f"{data[key]} of {total}")
    if method == "exact" or cell.doubtful:
        table.add_row("undecided", f"{cell.doubtful} of {total}")
    low, high = cell.interval
    table.add_row(f"{chance}, 95 %", f"{low:.3f} .. {high:.3f}")
    mean, error = data["accuracy_mean"], data["accuracy_stderr"]
    if mean is not None and method != "exact":
        table.add_row("accuracy", f"{mean:.4f}" + ("" if error is None else f" +- {error:.4f}"))
    theory = predictions(
        problem,
        method,
        dim=dim,
        facts=facts,
        competitors=competitors,
        dim_out=dim_out,
        ensemble=law.name,
    )
    for found in theory:
        name = chance if found.quantity == "separable" else found.quantity
        table.add_row(f"theory: {name}", f"{found.value:.4f}")
    table.add_row("seconds", f"{data['seconds']:.2f}")
    screen = Console()
    screen.print(table)
    for text in dict.fromkeys(found.law for found in theory):
        screen.print(f"theory: {text}")
