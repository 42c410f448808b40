"""`factcap sweep`: dimensions x loads x seeds, kept in a store that survives being killed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from replica.errors import InvalidInput
from validate.cli.common import (
    check_distinct,
    check_writable,
    require_extra,
    write_bytes_atomically,
)
from validate.cli.options import (
    Competitors,
    DimOut,
    EnsembleName,
    Json,
    Problem,
    RankRatio,
    Root,
    Seeds,
)

if TYPE_CHECKING:
    from validate.sweep import Status

MOST_THREADS = 1024
PLAIN_SECONDS = 30.0
"""Without a terminal a line of progress is printed this often."""


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("sweep")(sweep)


def sweep(
    store: Annotated[
        Path, typer.Option(help="SQLite file of the results; created, or resumed if it exists.")
    ] = ...,  # type: ignore[assignment]
    dims: Annotated[str, typer.Option(help="Dimensions d, as in 10,20,40.", metavar="D,...")] = ...,  # type: ignore[assignment]
    problem: Problem = "original",
    loads: Annotated[
        str | None,
        typer.Option(help="Loads FIRST:LAST:STEP or a,b,c; p log p / d^2.", metavar="LOADS"),
    ] = None,
    facts: Annotated[
        str | None, typer.Option(help="Numbers of facts instead of loads.", metavar="P,...")
    ] = None,
    load_unit: Annotated[
        str,
        typer.Option(
            "--load-unit",
            help="plogp: p log p / d^2; ratio: p / d^2; critical: p / p_c of the theory.",
            metavar="UNIT",
        ),
    ] = "plogp",
    method: Annotated[
        str,
        typer.Option(
            help="exact, adam, newton (low rank), hebbian, pseudo_inverse or sample (overlap).",
            metavar="METHOD",
        ),
    ] = "exact",
    seeds: Seeds = 20,
    seed: Root = 0,
    jobs: Annotated[int, typer.Option(help="Worker processes.", metavar="N")] = 1,
    dask: Annotated[
        str | None,
        typer.Option(help="Address of a Dask scheduler, as in tcp://host:8786.", metavar="ADDRESS"),
    ] = None,
    export: Annotated[
        Path | None, typer.Option(help="Write the results to a .csv or .parquet file at the end.")
    ] = None,
    competitors: Competitors = None,
    dim_out: DimOut = None,
    rank_ratio: RankRatio = None,
    ensemble: EnsembleName = "gaussian",
    samples: Annotated[
        int | None,
        typer.Option(help="Points of each of 8 chains; method sample only.", metavar="N"),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            "--time-limit",
            help="Seconds for one exact verdict; the results then depend on the machine.",
            metavar="S",
        ),
    ] = None,
    threads: Annotated[
        int,
        typer.Option(
            help="Threads of one cell; part of what identifies a result.",
            metavar="N",
        ),
    ] = 1,
    json: Json = False,
) -> None:
    """Run every cell (dimension, load, instance) that the store does not hold yet.

    Kill it at any time and give the same command again: no finished cell is lost or repeated, and
    the exported results are the same bytes. Several processes may work on one store at once.
    """
    if not 1 <= threads <= MOST_THREADS:
        raise InvalidInput(
            f"threads is {threads}; an integer from 1 to {MOST_THREADS} is allowed; give 1"
        )
    # One thread a cell, for BLAS too: read when NumPy is first imported, below.
    blas = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    for name in () if "numpy" in sys.modules else blas:
        os.environ[name] = str(max(1, threads))
    require_extra("torch", "pandas", "pyarrow", "joblib")
    from validate.store import Store
    from validate.sweep import export as to_bytes
    from validate.sweep import make_plan, parse_counts, parse_loads, results_frame, run
    from validate.sweep.results import check_export

    if export is not None:
        check_export(export)
        check_writable(export)
        check_distinct(export, store, "the store")
    plan = make_plan(
        problem,
        dims=parse_counts(dims, "dims"),
        loads=None if loads is None else parse_loads(loads),
        facts=None if facts is None else parse_counts(facts, "facts"),
        method=method,
        seeds=seeds,
        root=seed,
        load_unit=load_unit,
        dim_out=dim_out,
        competitors=competitors,
        ensemble=ensemble,
        rank_ratio=rank_ratio,
        time_limit=time_limit,
        samples=samples,
        threads=threads,
    )
    with Store.open(store) as opened:
        try:
            with _display(quiet=json) as show:
                status = run(plan, opened, jobs=jobs, dask=dask, progress=show)
        except KeyboardInterrupt:
            print(
                f"factcap: interrupted; finished cells are kept in {str(store)!r}, give the same "
                "command again to go on",
                file=sys.stderr,
            )
            raise SystemExit(130) from None
        frame = results_frame(opened, plan)
        others = opened.count() - len(frame)
    if export is not None:
        write_bytes_atomically(export, to_bytes(frame, export))
    _report(frame, status, store, others, export, json)


@contextmanager
def _display(*, quiet: bool) -> Iterator[Callable[[Status], None]]:
    """Progress, rate and time left: a bar on a terminal, else a line now and then."""
    from rich.console import Console

    console = Console(stderr=True)
    if quiet:
        yield lambda status: None
    elif console.is_terminal:
        with _bar(console) as show:
            yield show
    else:
        yield _Lines()


@contextmanager
def _bar(console: Any) -> Iterator[Callable[[Status], None]]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    with Progress(
        TextColumn("cells"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[pace]}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    ) as bar:
        task = bar.add_task("cells", total=None, pace="")

        def show(status: Status) -> None:
            bar.update(task, completed=status.finished, total=status.total, pace=_pace(status))

        yield show


class _Lines:
    """Prints the first and the last state, and one every half minute."""

    def __init__(self) -> None:
        self._next = 0.0

    def __call__(self, status: Status) -> None:
        if status.seconds >= self._next or status.finished == status.total:
            self._next = status.seconds + PLAIN_SECONDS
            pace = _pace(status)
            print(
                f"{status.finished} of {status.total} cells" + (f", {pace}" if pace else ""),
                file=sys.stderr,
                flush=True,
            )


def _pace(status: Status) -> str:
    from validate.sweep.pool import duration

    left = status.seconds_left
    if left is None or status.rate <= 0:
        return ""
    return f"{status.rate:.3g} cells/s, {duration(left)} left"


def _report(
    frame: Any, status: Status, store: Path, others: int, export: Path | None, json: bool
) -> None:
    from validate.cli.common import print_json
    from validate.sweep.summary import summary

    rows = summary(frame)
    if json:
        print_json(
            {
                "store": str(store),
                "export": None if export is None else str(export),
                "cells": status.total,
                "found": status.resumed,
                "computed": status.here,
                "others": others,
                "sizes": rows,
            }
        )
        return
    from rich.table import Table

    from validate.cli.output import console

    table = Table(title=f"{frame['problem'][0]} problem, {frame['method'][0]}")
    proves = frame["method"][0] in ("exact", "sample")
    # A learning rule recalls all facts or fails; its failures prove nothing.
    counted = ("separable", "not_separable", "undecided") if proves else ("separable",)
    heads = ("yes", "no", "?") if proves else ("all",)
    for name in ("d", "p", "load", "n", *heads, "P(yes), 95 %" if proves else "P(all), 95 %"):
        table.add_column(name, justify="right")
    sure = any("separable" in row["theory"] for row in rows)
    if sure:
        table.add_column("theory", justify="right")
    measured = "overlap" if frame["method"][0] == "sample" else "accuracy"
    extra = [name for name in (measured,) if not proves or measured == "overlap"]
    known = [name for name in extra if any(name in row["theory"] for row in rows)]
    for name in extra:
        table.add_column(name, justify="right")
        if name in known:
            table.add_column("theory", justify="right")
    for row in rows:
        counts = (row[k] for k in ("instances", *counted))
        cells = [str(row["dim"]), str(row["facts"]), f"{row['load']:.3f}", *map(str, counts)]
        cells.append(f"{row['low']:.3f} .. {row['high']:.3f}")
        if sure:
            cells.append(_show(row["theory"].get("separable"), None))
        for name in extra:
            cells.append(_show(row[name], row.get(f"{name}_stderr")))
            if name in known:
                cells.append(_show(row["theory"].get(name), None))
        table.add_row(*cells)
    screen = console()
    screen.print(table)
    if proves:
        screen.print("yes, no, ?: proved separable, proved not separable, undecided")
    else:
        screen.print("all: instances whose facts are all recalled, proved")
    for law in dict.fromkeys(row["law"] for row in rows if row["law"]):
        screen.print(f"theory: {law}")
    screen.print(
        f"{status.total} cells: {status.resumed} found, {status.here} computed here; "
        f"kept in {store}"
    )
    if others:
        screen.print(f"it also holds {others} cells of other settings or code versions")
    doubtful = sum(row.get("unconverged", 0) for row in rows)
    if doubtful:
        screen.print(f"in {doubtful} cells the chains disagree: give more --samples")
    if export is not None:
        screen.print(f"results exported to {export}")


def _show(value: float | None, error: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.4f}" if error is None else f"{value:.4f} +- {error:.4f}"
