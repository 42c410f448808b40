"""Section "real embeddings": how many components the reader's facts need, true and shuffled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from replica.errors import InvalidInput
from validate.checks.embeddings import (
    Pairings,
    check_embeddings,
    file_digest,
    plot_embeddings,
)
from validate.checks.units import Unit
from validate.plotting import to_svg
from validate.report.catalogue import Context
from validate.report.model import Figure, Section


@dataclass(frozen=True)
class Sizes:
    """`shuffles`: random pairings beside the true one; `file`: the facts (`prepare` fills it)."""

    shuffles: int
    file: str = ""


SIZES = {"quick": Sizes(shuffles=3), "paper": Sizes(shuffles=20)}


def prepare(sizes: Sizes, context: Context) -> Sizes:
    """Take the reader's file."""
    return replace(sizes, file=str(context.embeddings))


def units(sizes: Sizes, seed: int) -> list[Unit]:
    """One search for the true pairing and for every shuffled one."""
    if not sizes.file:
        raise InvalidInput("no file of embeddings was given; call `prepare` with one")
    digest = file_digest(sizes.file)
    return [
        Unit(
            "validate.checks.embeddings:measure_pairing",
            {"path": sizes.file, "digest": digest, "seed": seed, "index": index},
            work=3.0,
        )
        for index in (None, *range(sizes.shuffles))
    ]


def build(sizes: Sizes, seed: int, answers: list[Any]) -> Section:
    """Components needed by pairing, beside the theory for random facts."""
    name = Path(sizes.file).name
    result = Pairings.from_answers(answers)
    check = check_embeddings(result, name)
    least = result.least.components
    return Section(
        identifier="embeddings",
        title="Real embeddings",
        introduction=f"{name}: {result.facts} facts with embeddings of {result.components} "
        "components. How many leading components does a memory need to recall all of them? Run "
        "factcap fit on a file of your own.",
        figures=[
            Figure(
                "embeddings",
                "Components needed",
                f"The true pairing needs {least} components; random facts would need "
                f"{result.theory}.",
                "The true pairing (triangle) against shuffled pairings of the same vectors "
                "(squares) and the theory for random facts (line). A triangle below the squares "
                "says that structure makes these facts cheaper; squares near the line, that "
                "shuffling takes the structure away.",
                to_svg(
                    plot_embeddings(check),
                    identifier="embeddings",
                    title="Least number of components by pairing",
                    description=f"True pairing {least}, theory for random facts {result.theory}.",
                ),
            )
        ],
        checks=[check],
    )
