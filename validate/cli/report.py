"""`factcap report`: run the checks and write one self-contained report."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
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

BLAS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
SUFFIXES = {"html": ".html", "markdown": ".md", "json": ".json"}


def register(app: typer.Typer) -> None:
    """Add the command to the application."""

    @app.command()
    def report(
        preset: Annotated[
            str,
            typer.Option(help="How much to measure: quick (minutes) or paper (an hour or more)."),
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
        store: Annotated[
            Path | None,
            typer.Option(help="SQLite file that keeps finished work; one of a sweep is reused."),
        ] = None,
    ) -> None:
        """Derive, compute, simulate, compare: write the validation report.

        With a store every finished piece of work is kept at once: kill the report at any time, give
        the same command again, and it goes on where it was. The preset paper keeps a store beside
        the report unless another one is given.
        """
        form = chosen_format(format, out)
        path = out if out is not None else Path(f"report{SUFFIXES[form]}")
        check_writable(path)
        from validate.report.presets import check_preset, check_run, preset_named

        check_preset(preset)
        check_run(seed, workers, embeddings)
        if store is None and preset == "paper":
            store = path.with_suffix(".sqlite")
        if store is not None:
            check_distinct(path, store, "the store")
        if store is not None:
            from validate.store import Store

            with Store.open(store):  # a file that is no store is refused before the work
                pass
        # One thread a process, for BLAS too: read when NumPy is first imported, below.
        for name in () if "numpy" in sys.modules else BLAS:
            os.environ[name] = "1"
        require_extra("torch", "matplotlib", "joblib", "jinja2", "latex2mathml")
        if embeddings is not None:
            from validate.problems.files import read_embeddings

            check_distinct(path, embeddings, "the file of the embeddings")
            read_embeddings(embeddings)  # a file that cannot be used is refused before the work
        from validate.report.progress import progress_bar
        from validate.report.render import render, verdict_line
        from validate.report.run import run
        from validate.store import Store

        sizes = preset_named(preset)
        with nullcontext() if store is None else Store.open(store) as opened:
            try:
                with progress_bar() as reporter:
                    result = run(
                        sizes,
                        seed=seed,
                        workers=workers,
                        embeddings=embeddings,
                        store=opened,
                        reporter=reporter,
                    )
            except KeyboardInterrupt:
                kept = f"; finished work is kept in {str(store)!r}" if store else ""
                print(f"factcap: interrupted{kept}", file=sys.stderr)
                raise SystemExit(130) from None
        write_text_atomically(path, render(result, form))
        typer.echo(verdict_line(result))
        for check in result.checks:
            if check.verdict == "disagrees":
                typer.echo(f"disagrees: {check.claim}")
        if store is not None:
            typer.echo(f"Finished work is kept in {store}")
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
