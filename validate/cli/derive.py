"""`factcap derive`: print a numbered derivation, as text, LaTeX, code or JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from replica.errors import InvalidInput
from validate.cli.common import print_json

if TYPE_CHECKING:
    from replica.derivation import Derivation

FORMATS = ("text", "latex", "json")


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("derive")(derive)


def derive(
    prior: Annotated[str, typer.Option(help="Weight prior by name.")] = "spherical",
    criterion: Annotated[str, typer.Option(help="Retrieval criterion by name.")] = "top_one",
    expansion: Annotated[
        str | None, typer.Option(help="Derive this expansion in 1/log p instead of a model.")
    ] = None,
    order: Annotated[int | None, typer.Option(help="Order of the expansion.")] = None,
    output: Annotated[str, typer.Option("--format", help=" | ".join(FORMATS))] = "text",
) -> None:
    """Derive a model from its replicated action (or an expansion), every step printed."""
    if output not in FORMATS:
        raise InvalidInput(f"unknown format {output!r}; the known ones are: {', '.join(FORMATS)}")
    if expansion is None and order is not None:
        raise InvalidInput("--order was given without --expansion; add --expansion NAME or drop it")
    derivation = _derivation(prior, criterion, expansion, order)
    if output == "json":
        print_json(derivation.to_json())
    else:
        print({"text": derivation.to_text, "latex": derivation.to_latex}[output]())


def _derivation(prior: str, criterion: str, expansion: str | None, order: int | None) -> Derivation:
    if expansion is not None:
        from replica.expansion import derive_expansion

        result: Any = derive_expansion(expansion, 6 if order is None else order)
        return result  # type: ignore[no-any-return]
    from replica.catalogue import model

    return model(prior, criterion).derivation
