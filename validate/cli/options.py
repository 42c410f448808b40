"""Options that several commands of experiments share, as annotated types."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Problem = Annotated[str, typer.Option(help="gaussian, decoupled or original.", metavar="KIND")]
Seeds = Annotated[int, typer.Option(help="Number of instances (of each size).", metavar="N")]
Root = Annotated[int, typer.Option(help="Root of the random streams.", metavar="ROOT")]
Competitors = Annotated[
    int | None, typer.Option(help="Competitors of a fact; p - 1 if not given.", metavar="M")
]
DimOut = Annotated[
    int | None, typer.Option("--dim-out", help="Output dimension, if not d.", metavar="D")
]
RankRatio = Annotated[
    float | None,
    typer.Option("--rank-ratio", help="Rank of W over d, in (0, 1]; adam or newton.", metavar="R"),
]
EnsembleName = Annotated[
    str,
    typer.Option(
        help="gaussian, sphere, rademacher, sparse[:DENSITY] or correlated[:EXPONENT].",
        metavar="LAW",
    ),
]
Spectrum = Annotated[
    Path | None,
    typer.Option(
        help="Covariance eigenvalues of correlated embeddings: text, one a line, or .npy.",
        metavar="FILE",
    ),
]
TimeLimit = Annotated[
    float | None,
    typer.Option("--time-limit", help="Seconds for one exact verdict.", metavar="S"),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
