"""`factcap fit`: can a linear memory recall the user's own facts?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from validate.fit import Fit


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("fit")(fit)


def fit(
    inputs: Annotated[
        Path,
        typer.Argument(help="File with arrays inputs and outputs, row mu of both being fact mu."),
    ],
    outputs: Annotated[
        Path | None, typer.Argument(help="File of the outputs, if inputs has only the inputs.")
    ] = None,
    components: Annotated[
        int | None,
        typer.Option(help="Decide with the K leading components; all if not given.", metavar="K"),
    ] = None,
    principal: Annotated[
        bool, typer.Option("--principal", help="Rotate to principal components first.")
    ] = False,
    shuffles: Annotated[
        int, typer.Option(help="Number of shuffled pairings to compare with.", metavar="N")
    ] = 5,
    seed: Annotated[int, typer.Option(help="Root of the shuffles.", metavar="ROOT")] = 0,
    share_outputs: Annotated[
        bool, typer.Option("--share-outputs", help="Equal outputs are one answer of many facts.")
    ] = False,
    time_limit: Annotated[
        float | None, typer.Option("--time-limit", help="Seconds for one verdict.", metavar="S")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Decide, with proof, whether one linear memory recalls all of the given facts.

    Also finds the least number of leading components that suffice, for the true pairing and for
    shuffled pairings, beside the least dimension that the theory gives for as many random facts.
    Reads .npz, .npy, .pt and .safetensors.
    """
    from validate.cli.common import print_json, require_extra

    require_extra("torch")
    from rich.console import Console

    from validate.fit import fit as run
    from validate.problems.files import read_embeddings

    embeddings = read_embeddings(inputs, outputs, share_outputs=share_outputs)
    errors = Console(stderr=True)
    with errors.status("reading") as status:
        result = run(
            embeddings,
            components=components,
            shuffles=shuffles,
            seed=seed,
            principal=principal,
            time_limit=time_limit,
            progress=status.update,
        )
    if json:
        print_json(result.to_json())
    else:
        _show(result)


def _show(result: Fit) -> None:
    from rich.console import Console
    from rich.table import Table

    certificate = result.decision.certificate
    sentence = {
        "separable": "Yes: a linear memory recalls all of them (proved).",
        "not_separable": "No: no linear memory recalls all of them (proved).",
        "undecided": f"Undecided: {certificate.reason}.",
    }[certificate.verdict]
    proof = {
        "separable": f"all margins of a unit-norm W exceed {certificate.margin:.3g}",
        "not_separable": "nonnegative multipliers balance; relative correction below "
        f"{certificate.correction:.1e}",
        "undecided": "-",
    }[certificate.verdict]
    table = Table(title=f"{result.embeddings.facts} facts, {result.components} components")
    table.add_column("quantity")
    table.add_column("value", justify="right")
    table.add_row("verdict", certificate.verdict.replace("_", " "))
    table.add_row("certificate", f"{proof} ({certificate.method})")
    least = result.least
    exact = "" if least.exact else " (one fewer is undecided)"
    most = result.embeddings.components
    found = f"more than {most}" if least.components is None else f"{least.components}{exact}"
    table.add_row("least components, true pairing", found)
    if result.shuffled:
        numbers = [
            f">{most}" if s.components is None else str(s.components) for s in result.shuffled
        ]
        table.add_row("least components, shuffled", ", ".join(numbers))
    table.add_row("least dimension, theory for random facts", str(result.theory))
    for name, share in result.conflicts:
        table.add_row(f"in conflict: {name}", f"{100 * share:.1f} % of the proof")
    console = Console()
    console.print(sentence)
    console.print(table)
