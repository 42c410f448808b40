"""Progress of a report: units done, rate and time left, on a terminal or as lines now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from validate.sweep.pool import Status, duration

PLAIN_SECONDS = 30.0
"""Without a terminal a line of progress is printed this often."""


class Reporter(Protocol):
    """What a run tells: the name of a stage when it begins, and where the units stand."""

    def begin(self, stage: str) -> None:
        """A stage starts."""

    def show(self, status: Status) -> None:
        """The units of the running stage stand so."""

    def finish(self) -> dict[str, float]:
        """All stages are over: seconds of each and in total."""
        ...


class Stopwatch:
    """Times the stages; shows nothing. The base of the others and enough for tests.

    >>> watch = Stopwatch()
    >>> watch.begin("measuring")
    >>> sorted(watch.finish())
    ['measuring', 'total']
    """

    def __init__(self) -> None:
        self._start = self._last = time.perf_counter()
        self._stage: str | None = None
        self._seconds: dict[str, float] = {}

    def begin(self, stage: str) -> None:
        """Close the running stage and start `stage`."""
        self._close()
        self._stage = stage

    def show(self, status: Status) -> None:
        """Nothing to show."""

    def finish(self) -> dict[str, float]:
        """Seconds of each stage and in total."""
        self._close()
        self._stage = None
        return {**self._seconds, "total": time.perf_counter() - self._start}

    def _close(self) -> None:
        now = time.perf_counter()
        if self._stage is not None:
            self._seconds[self._stage] = self._seconds.get(self._stage, 0.0) + now - self._last
        self._last = now


class BarReporter(Stopwatch):
    """A `rich` bar on a terminal."""

    def __init__(self, progress: Progress) -> None:
        super().__init__()
        self._progress = progress
        self._task = progress.add_task("starting", total=None, pace="")

    def begin(self, stage: str) -> None:
        """Show the stage's name beside the bar."""
        super().begin(stage)
        self._progress.update(self._task, description=stage, pace="")

    def show(self, status: Status) -> None:
        """Move the bar."""
        self._progress.update(
            self._task, completed=status.finished, total=status.total, pace=pace(status)
        )


class LineReporter(Stopwatch):
    """Lines on standard error: every stage, and the state of the units every half minute."""

    def __init__(self) -> None:
        super().__init__()
        self._next = 0.0

    def begin(self, stage: str) -> None:
        """Say what begins."""
        super().begin(stage)
        print(stage, file=sys.stderr, flush=True)

    def show(self, status: Status) -> None:
        """Say where the units stand, if it is time."""
        if status.seconds >= self._next or status.finished == status.total:
            self._next = status.seconds + PLAIN_SECONDS
            print(
                f"  {status.finished} of {status.total} units, {pace(status)}".rstrip(", "),
                file=sys.stderr,
                flush=True,
            )


def pace(status: Status) -> str:
    """Units found in the store, rate and time left, as far as they are known.

    >>> pace(Status(10, 2, 6, 4, 8.0, 1.0, 2.0))
    '2 kept from before, 0.5 units/s, 16 s left'
    """
    parts = [f"{status.resumed} kept from before"] if status.resumed else []
    left = status.seconds_left
    if left is not None and status.rate > 0:
        parts += [f"{status.rate:.2g} units/s", f"{duration(left)} left"]
    return ", ".join(parts)


@contextmanager
def progress_bar() -> Iterator[Reporter]:
    """A bar that is removed at the end, or lines where standard error is no terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield LineReporter()
        return
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[pace]}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    ) as progress:
        yield BarReporter(progress)
