"""`factcap trained`: what training reaches, predicted at every load."""

from __future__ import annotations

from typing import Annotated, Any

import typer


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("trained")(trained)


def trained(
    dim: Annotated[str, typer.Option(help="Dimension d of the embeddings.", metavar="D")],
    facts: Annotated[str, typer.Option(help="Number of facts p.", metavar="P")],
    ridge: Annotated[
        str,
        typer.Option(help="Ridge lambda > 0; the penalty is lambda d^2/2 ||W||^2.", metavar="X"),
    ],
    loss: Annotated[
        str,
        typer.Option(
            help="cross_entropy, logistic (M = 1), hinge, squared_hinge, tail_average or squared.",
            metavar="NAME",
        ),
    ] = "cross_entropy",
    competitors: Annotated[
        str | None, typer.Option(help="Competitors of each fact; p - 1 if not given.", metavar="M")
    ] = None,
    dim_out: Annotated[
        str | None, typer.Option("--dim-out", help="Output dimension, if not d.", metavar="D")
    ] = None,
    fraction: Annotated[
        str | None,
        typer.Option(
            help="Fraction of the competitors that the loss tail_average averages; 0.1.",
            metavar="R",
        ),
    ] = None,
    accuracy: Annotated[
        str, typer.Option(help="Relative standard error wanted.", metavar="E")
    ] = "0.003",
    seed: Annotated[int, typer.Option(help="Seed of the random averages.", metavar="N")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Accuracy, loss and norm of the memory that training with a ridge penalty reaches."""
    from rich.console import Console

    from numerics.counts import parse_count
    from numerics.trained import predict
    from validate.cli.common import print_json

    size = parse_count(dim, "dim")
    rivals = None if competitors is None else parse_count(competitors, "competitors")
    count = parse_count(facts, "facts", least=2 if rivals is None else 1)
    other = size if dim_out is None else parse_count(dim_out, "dim_out")
    with Console(stderr=True).status("fixed point") as status:  # silent when not a terminal
        memory = predict(
            size * other,
            count,
            count - 1 if rivals is None else rivals,
            _real("ridge", ridge),
            loss,
            _real("accuracy", accuracy),
            seed,
            fraction=None if fraction is None else _real("fraction", fraction),
            tick=lambda words: status.update(f"fixed point: {words}"),
        )
    row: dict[str, Any] = {"dim": size}
    if dim_out is not None:
        row["dim_out"] = other
    row.update(memory.to_json())
    if json:
        print_json(row)
        return
    _print_table(row)


def _real(name: str, text: str) -> float:
    """The number written as text, else one sentence."""
    from replica.errors import InvalidInput

    try:
        return float(text)
    except ValueError:
        raise InvalidInput(
            f"{name} is {text[:40]!r}; it must be a number; write it like 0.01 or 1e-2"
        ) from None


_LABELS = {
    "accuracy": "training accuracy",
    "loss": "loss per fact",
    "norm_squared": "||W||^2",
    "order_parameter_V": "order parameter V",
}


def _print_table(row: dict[str, Any]) -> None:
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
    table.add_row("loss", row["loss_function"])
    table.add_row("ridge", f"{row['ridge']:g}")
    for name, label in _LABELS.items():
        table.add_row(label, _with_error(row[name]["value"], row[name]["stderr"]))
    screen = console()
    screen.print(table)
    drawn = row["facts_drawn"]
    how = f"{row['method']}, {drawn} facts drawn" if drawn else f"{row['method']}, no sampling"
    screen.print(
        f"Theory of the minimiser (Gaussian problem, d large at fixed p/d^2 and M); {how};\n"
        f"residual of its equations {row['residual']:.1g}.",
        style="dim",
        highlight=False,
    )


def _with_error(value: float, stderr: float) -> str:
    """The value with two digits of its standard error; ten digits where that is below."""
    import math

    if stderr <= 1e-10 * abs(value):
        return f"{value:.10g}"
    places = 1 - math.floor(math.log10(stderr))
    if abs(value) >= 1e6 or places > 12:
        return f"{value:.6g} +- {stderr:.1g}"
    return f"{value:.{max(places, 0)}f} +- {stderr:.{max(places, 0)}f}"
