"""Progress of a report: one bar over all stages with the time left."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


class Reporter(Protocol):
    """What a stage tells: its name when it begins, and work done in the units of the plan."""

    def begin(self, stage: str) -> None:
        """A stage starts."""

    def advance(self, work: float) -> None:
        """`work` units are done."""

    def finish(self) -> dict[str, float]:
        """All stages are over: seconds of each and in total."""
        ...


class Stopwatch:
    """Times the stages; shows nothing. The base of `BarReporter` and enough for tests.

    >>> watch = Stopwatch()
    >>> watch.begin("ladder")
    >>> watch.advance(1.0)
    >>> sorted(watch.finish())
    ['ladder', 'total']
    """

    def __init__(self) -> None:
        self._start = self._last = time.perf_counter()
        self._stage: str | None = None
        self._seconds: dict[str, float] = {}

    def begin(self, stage: str) -> None:
        """Close the running stage and start `stage`."""
        self._close()
        self._stage = stage

    def advance(self, work: float) -> None:
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
    """A `rich` bar on standard error over `total` units of work."""

    def __init__(self, progress: Progress, total: float) -> None:
        super().__init__()
        self._progress = progress
        self._task = progress.add_task("starting", total=total)

    def begin(self, stage: str) -> None:
        """Show the stage's name beside the bar."""
        super().begin(stage)
        self._progress.update(self._task, description=stage)

    def advance(self, work: float) -> None:
        """Move the bar."""
        self._progress.advance(self._task, work)

    @property
    def fraction(self) -> float:
        """Share of the work that is done."""
        return self._progress.tasks[self._task].percentage / 100.0


@contextmanager
def progress_bar(total: float) -> Iterator[BarReporter]:
    """A bar for `total` units of work, removed from the terminal at the end."""
    with Progress(
        TextColumn("{task.description:<34}"),
        BarColumn(bar_width=None),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(elapsed_when_finished=True),
        console=Console(stderr=True),
        transient=True,
    ) as progress:
        yield BarReporter(progress, total)
