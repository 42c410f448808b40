"""`factcap report`: run the checks and write one self-contained report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from replica.errors import InvalidInput
from validate.cli.common import (
    check_distinct,
    check_writable,
    require_extra,
    write_text_atomically,
)

SUFFIXES = {"html": ".html", "markdown": ".md", "json": ".json"}


def register(app: typer.Typer) -> None:
    """Add the command to the application."""

    @app.command()
    def report(
        preset: Annotated[
            str, typer.Option(help="How much to measure: quick (minutes) or paper (hours).")
        ] = "quick",
        out: Annotated[
            Path | None, typer.Option(help="File to write; report.html, .md or .json by default.")
        ] = None,
        format: Annotated[
            str | None,
            typer.Option(help="html, markdown or json; by default what the file's name says."),
        ] = None,
        seed: Annotated[int, typer.Option(help="Root of every random stream.")] = 0,
        workers: Annotated[
            int | None, typer.Option(help="Processes; by default all available cores.")
        ] = None,
        embeddings: Annotated[
            Path | None,
            typer.Option(help="Facts of your own in place of the shipped example (see fit)."),
        ] = None,
    ) -> None:
        """Derive, compute, simulate, compare: write the validation report."""
        form = chosen_format(format, out)
        path = out if out is not None else Path(f"report{SUFFIXES[form]}")
        check_writable(path)
        from validate.report.presets import check_run, preset_named

        sizes = preset_named(preset)
        check_run(seed, workers, embeddings)
        require_extra("torch", "matplotlib", "joblib", "jinja2", "latex2mathml")
        if embeddings is not None:
            from validate.problems.files import read_embeddings

            check_distinct(path, embeddings, "the file of the embeddings")
            read_embeddings(embeddings)  # a file that cannot be used is refused before the work
        from validate.report.progress import progress_bar
        from validate.report.render import render
        from validate.report.run import planned_work, run

        with progress_bar(planned_work(sizes)) as reporter:
            result = run(
                sizes, seed=seed, workers=workers, embeddings=embeddings, reporter=reporter
            )
        write_text_atomically(path, render(result, form))
        from validate.report.render import verdict_line

        typer.echo(verdict_line(result))
        for check in result.checks:
            if check.verdict == "disagrees":
                typer.echo(f"disagrees: {check.claim}")
        typer.echo(f"The report took {result.seconds['total']:.0f} s and is in {path}")


def chosen_format(format: str | None, out: Path | None) -> str:
    """The format asked for, else the one the file's suffix means, else html.

    >>> chosen_format(None, Path("a.md"))
    'markdown'
    """
    if format is not None:
        if format not in SUFFIXES:
            raise InvalidInput(
                f"the format is {format!r}; it must be one of {', '.join(SUFFIXES)}; choose one"
            )
        return format
    by_suffix = {suffix: name for name, suffix in SUFFIXES.items()}
    return by_suffix.get(out.suffix.lower() if out is not None else "", "html")
