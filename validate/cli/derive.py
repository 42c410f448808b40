"""`factcap derive`: print a numbered derivation, as text, LaTeX, code or JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from replica.errors import InvalidInput
from validate.cli.common import print_json

if TYPE_CHECKING:
    from replica.derivation import Derivation

FORMATS = ("text", "latex", "python", "mathematica", "json")
RULES = ("optimal", "hebbian", "trained")


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("derive")(derive)


def derive(
    prior: Annotated[
        str | None,
        typer.Option(help="Weight prior: spherical or low_rank.", show_default="spherical"),
    ] = None,
    criterion: Annotated[
        str | None,
        typer.Option(
            help="Retrieval criterion: top_one, halfspace, tail_average, list_wise.",
            show_default="top_one",
        ),
    ] = None,
    rule: Annotated[
        str | None,
        typer.Option(
            help="optimal (a prior and a criterion), hebbian, or trained (a loss with a ridge).",
            show_default="optimal",
        ),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            help="Loss of --rule trained: cross_entropy, logistic, hinge, squared_hinge, squared, "
            "tail_average.",
            show_default="cross_entropy",
        ),
    ] = None,
    expansion: Annotated[
        str | None, typer.Option(help="Derive this expansion in 1/log p instead of a model.")
    ] = None,
    order: Annotated[
        int | None, typer.Option(help="Order of the expansion (6, or the largest offered).")
    ] = None,
    margin: Annotated[
        str | None, typer.Option(help="A number for the margin (symbolic without).")
    ] = None,
    competitors: Annotated[
        int | None, typer.Option(help="A number of competitors: every score explicit, at most 8.")
    ] = None,
    rank_ratio: Annotated[str | None, typer.Option(help="A number in (0, 1].")] = None,
    aspect_ratio: Annotated[
        str | None, typer.Option(help="d_out/d_in in (0, 1] of a low-rank memory, or `symbol`.")
    ] = None,
    list_size: Annotated[int | None, typer.Option(help="Length of the list (list_wise).")] = None,
    tail: Annotated[
        str | None, typer.Option("--r", help="Fraction averaged, in (0, 1] (tail_average).")
    ] = None,
    output: Annotated[str, typer.Option("--format", help=" | ".join(FORMATS))] = "text",
) -> None:
    """Derive a model from its replicated action (or an expansion), every step printed."""
    if output not in FORMATS:
        raise InvalidInput(f"unknown format {output!r}; the known ones are: {', '.join(FORMATS)}")
    if rule is not None and rule not in RULES:
        raise InvalidInput(f"unknown rule {rule!r}; the known ones are: {', '.join(RULES)}")
    if expansion is None and order is not None:
        raise InvalidInput("--order was given without --expansion; add --expansion NAME or drop it")
    if competitors is not None and not 1 <= competitors <= 8:
        raise InvalidInput(
            f"competitors is {competitors}; an explicit derivation takes 1 to 8, leave the option "
            "out for a symbolic number"
        )
    given = {
        "prior": prior,
        "criterion": criterion,
        "margin": _number("margin", margin),
        "competitors": competitors,
        "rank_ratio": _number("rank_ratio", rank_ratio),
        "aspect_ratio": _number("aspect_ratio", aspect_ratio),
        "list_size": list_size,
        "r": _number("r", tail),
    }
    parameters = {name: value for name, value in given.items() if value is not None}
    if loss is not None and rule != "trained":
        raise InvalidInput(
            f"--loss {loss} was given without --rule trained; add --rule trained or drop it"
        )
    derivation = _derivation(rule, expansion, order, parameters, loss)
    if output == "json":
        print_json(derivation.to_json())
    else:
        writers = {
            "text": derivation.to_text,
            "latex": derivation.to_latex,
            "python": derivation.to_python,
            "mathematica": derivation.to_mathematica,
        }
        print(writers[output]())
        if output == "text":
            for claim in getattr(derivation, "extra", {}).get("verified", []):
                print(f"Remainder, exact minus truncated: {claim}")


def _number(name: str, text: str | None) -> Any:
    """The exact rational that the text states (1/3, 0.25, 2), or the symbol itself."""
    if text is None:
        return None
    from fractions import Fraction

    import sympy as sp

    from replica import symbols

    if text == "symbol":
        return getattr(symbols, name)
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise InvalidInput(f"{name} is {text!r}; it must be a number such as 0.25 or 1/4") from None
    return sp.Rational(value.numerator, value.denominator)


def _derivation(
    rule: str | None,
    expansion: str | None,
    order: int | None,
    parameters: dict[str, Any],
    loss: str | None,
) -> Derivation:
    if (expansion is not None or rule in ("hebbian", "trained")) and parameters:
        raise InvalidInput(
            f"the option(s) {', '.join(sorted(parameters))} belong to a prior and a criterion; "
            f"drop them with --expansion or --rule {rule or 'hebbian'}"
        )
    if expansion is not None and rule is not None:
        raise InvalidInput(
            f"both --rule {rule} and --expansion {expansion} were given; an expansion belongs to "
            "no rule; drop one of them"
        )
    if expansion is not None:
        from replica.expansion import derive_expansion

        result = derive_expansion(expansion, order)
        # Imported here: numerics is not needed for anything else of this command.
        from numerics.remainders import published_for

        result.extra["verified"] = published_for(expansion, result.extra["order"])
        return result
    if rule == "hebbian":
        from replica.hebbian import HebbianRule

        return HebbianRule().derivation
    if rule == "trained":
        from replica.trained import theory

        return theory(loss or "cross_entropy").derivation
    from replica.catalogue import model

    return model(**parameters).derivation
