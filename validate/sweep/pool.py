"""Keyed jobs worked through with a store: what is pending, who claims what, how fast it goes.

Sweeps and reports share this: a job is known by its key, done when its key has a row in the store.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from replica.errors import InvalidInput
from validate.store import Store

POLL_SECONDS = 0.2
Progress = Callable[["Status"], None]


class Job(Protocol):
    """Anything with a rough cost, in units of its own."""

    @property
    def work(self) -> float:
        """Rough cost, for the time left only."""


@dataclass(frozen=True)
class Status:
    """Where a run stands: jobs in all, found finished at the start, finished by now.

    `here` were computed by this process; the fractions of work are estimates for the time left.
    """

    total: int
    resumed: int
    finished: int
    here: int
    seconds: float
    work_done: float
    work_left: float

    @property
    def rate(self) -> float:
        """Jobs a second finished since the start (0 before the first)."""
        return (self.finished - self.resumed) / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """Estimated time left, None before the first job."""
        if self.work_left <= 0:
            return 0.0
        return self.seconds * self.work_left / self.work_done if self.work_done > 0 else None


class Tracker:
    """Which jobs are still to be finished, and how fast it goes."""

    def __init__(self, jobs: Mapping[str, Job], store: Store, progress: Progress | None) -> None:
        self._jobs, self._store, self._progress = jobs, store, progress
        done = store.finished(list(jobs))
        self.pending = {key: None for key in jobs if key not in done}
        self._resumed, self._here = len(done), 0
        self._all_work = sum(jobs[key].work for key in self.pending)
        self._work_done = 0.0
        self._start = time.monotonic()
        self._lock = threading.Lock()
        if progress is not None:
            progress(self.status())

    def done(self, key: str) -> None:
        """This process finished a job."""
        self._here += 1
        self._drop([key])

    def look(self) -> None:
        """Take note of jobs that other processes finished."""
        if self.pending:
            self._drop(self._store.finished(list(self.pending)))

    def snapshot(self) -> list[str]:
        """Keys of the pending jobs, in the order given."""
        with self._lock:
            return list(self.pending)

    def status(self) -> Status:
        """The present state."""
        return Status(
            total=len(self._jobs),
            resumed=self._resumed,
            finished=len(self._jobs) - len(self.pending),
            here=self._here,
            seconds=time.monotonic() - self._start,
            work_done=self._work_done,
            work_left=self._all_work - self._work_done if self.pending else 0.0,
        )

    def _drop(self, keys: Any) -> None:
        changed = False
        with self._lock:
            for key in keys:
                if key in self.pending:
                    del self.pending[key]
                    self._work_done += self._jobs[key].work
                    changed = True
        if changed and self._progress is not None:
            self._progress(self.status())


def claimed(tracker: Tracker, store: Store, most: int) -> Iterator[str]:
    """Pending jobs, claimed up to `most` at a time when they are asked for; one pass over all."""
    rest = iter(tracker.snapshot())
    while candidates := list(islice(rest, max(1, most))):
        yield from store.claim(candidates)


def without_traceback(found: Iterator[Any]) -> Iterator[Any]:
    """A worker that dies is the machine's trouble, not a defect to be debugged."""
    try:
        yield from found
    except Exception as error:
        if type(error).__name__ not in ("TerminatedWorkerError", "KilledWorker"):
            raise
        raise InvalidInput(
            "a worker process was killed, most likely because memory ran out; what is finished is "
            "kept in the store; give the same command with fewer processes"
        ) from None


def duration(seconds: float) -> str:
    """A time in two units.

    >>> duration(5.2), duration(125), duration(7322), duration(200000)
    ('5 s', '2 min 05 s', '2 h 02 min', '2 d 07 h')
    """
    s = round(seconds)
    if s < 60:
        return f"{s} s"
    if s < 3600:
        return f"{s // 60} min {s % 60:02d} s"
    if s < 86400:
        return f"{s // 3600} h {s % 3600 // 60:02d} min"
    return f"{s // 86400} d {s % 86400 // 3600:02d} h"
