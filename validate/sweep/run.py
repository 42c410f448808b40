"""Work through the cells of a plan: claim, compute, commit, on one or many processes.

Only the process that called `run` writes to the store; workers compute. Cells are claimed as
workers become free, so that several processes, each with workers of its own, can share one store.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from itertools import islice
from typing import Any

from replica.errors import InvalidInput
from validate.owner import end_with_parent
from validate.problems.base import check_count
from validate.store import Store, key_of
from validate.sweep.cell import Cell, Outcome, compute
from validate.sweep.code import code_version
from validate.sweep.plan import Plan

POLL_SECONDS = 0.2
SCHEDULER_SECONDS = 10.0
Progress = Callable[["Status"], None]


@dataclass(frozen=True)
class Status:
    """Where a sweep stands: cells in all, found finished at the start, finished by now.

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
        """Cells a second finished since the start (0 before the first)."""
        return (self.finished - self.resumed) / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """Estimated time left, None before the first cell."""
        if self.work_left <= 0:
            return 0.0
        return self.seconds * self.work_left / self.work_done if self.work_done > 0 else None


def run(
    plan: Plan,
    store: Store,
    *,
    jobs: int = 1,
    dask: str | None = None,
    progress: Progress | None = None,
) -> Status:
    """Compute every cell of `plan` that `store` does not hold, and wait for those of others.

    `jobs` processes (joblib's loky; 1 computes in this process), or the workers of the Dask
    scheduler at the address `dask`. Results do not depend on either. `progress` is called after
    every cell. When this returns, every cell of the plan is in the store.

    Raises `InvalidInput` for a bad number of jobs, an unreachable scheduler or a worker with other
    code.
    """
    check_count("jobs", jobs, 1)
    if dask is not None and jobs != 1:
        raise InvalidInput(
            f"{jobs} jobs and a Dask scheduler were asked for; its workers are the jobs; give one "
            "of the two"
        )
    code = code_version()
    cells = {key_of(cell.config, code): cell for cell in plan.cells}
    tracker = _Tracker(cells, store, progress)
    with ExitStack() as stack:
        stream = stack.enter_context(_stream(cells, code, jobs, dask))
        while tracker.pending:
            found = 0
            for key, outcome in _without_traceback(stream(_claimed(tracker, store, jobs))):
                store.finish(cells[key].config, code, outcome.result, seconds=outcome.seconds)
                tracker.done(key)
                found += 1
            if not found and tracker.pending:
                time.sleep(POLL_SECONDS)
            tracker.look()
    return tracker.status()


class _Tracker:
    """Which cells are still to be finished, and how fast it goes."""

    def __init__(self, cells: dict[str, Cell], store: Store, progress: Progress | None) -> None:
        self._cells, self._store, self._progress = cells, store, progress
        done = store.finished(list(cells))
        self.pending = {key: None for key in cells if key not in done}
        self._resumed, self._here = len(done), 0
        self._all_work = sum(cells[key].work for key in self.pending)
        self._work_done = 0.0
        self._start = time.monotonic()
        self._lock = threading.Lock()
        if progress is not None:
            progress(self.status())

    def done(self, key: str) -> None:
        """This process finished a cell."""
        self._here += 1
        self._drop([key])

    def look(self) -> None:
        """Take note of cells that other processes finished."""
        if self.pending:
            self._drop(self._store.finished(list(self.pending)))

    def snapshot(self) -> list[str]:
        """Keys of the pending cells, in the order of the plan."""
        with self._lock:
            return list(self.pending)

    def status(self) -> Status:
        """The present state."""
        return Status(
            total=len(self._cells),
            resumed=self._resumed,
            finished=len(self._cells) - len(self.pending),
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
                    self._work_done += self._cells[key].work
                    changed = True
        if changed and self._progress is not None:
            self._progress(self.status())


def _claimed(tracker: _Tracker, store: Store, jobs: int) -> Iterator[str]:
    """Pending cells, claimed a few at a time when they are asked for; one pass over the plan."""
    rest = iter(tracker.snapshot())
    while candidates := list(islice(rest, max(1, jobs))):
        yield from store.claim(candidates)


def _without_traceback(found: Iterator[Any]) -> Iterator[Any]:
    """A worker that dies is the machine's trouble, not a defect to be debugged."""
    try:
        yield from found
    except Exception as error:
        if type(error).__name__ not in ("TerminatedWorkerError", "KilledWorker"):
            raise
        raise InvalidInput(
            "a worker process was killed, most likely because memory ran out; finished cells are "
            "kept; give the same command with fewer jobs"
        ) from None


Stream = Callable[[Iterator[str]], Iterator[tuple[str, Outcome]]]


def _stream(
    cells: dict[str, Cell], code: str, jobs: int, dask: str | None
) -> AbstractContextManager[Stream]:
    from contextlib import contextmanager

    @contextmanager
    def inline() -> Iterator[Stream]:
        yield lambda keys: ((key, compute(cells[key], code)) for key in keys)

    @contextmanager
    def parallel() -> Iterator[Stream]:
        import joblib

        with ExitStack() as stack:
            threads = max((cell.threads for cell in cells.values()), default=1)
            if dask is None:
                setting = joblib.parallel_config(
                    "loky",
                    n_jobs=jobs,
                    inner_max_num_threads=threads,
                    initializer=end_with_parent,
                    initargs=(os.getpid(),),
                )
            else:
                stack.enter_context(_client(dask))
                setting = joblib.parallel_config("dask", n_jobs=-1)
            stack.enter_context(setting)
            pool = stack.enter_context(
                joblib.Parallel(
                    return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs"
                )
            )
            yield lambda keys: pool(joblib.delayed(_worker)(key, cells[key], code) for key in keys)

    return inline() if jobs == 1 and dask is None else parallel()


def _client(address: str) -> AbstractContextManager[Any]:
    try:
        from distributed import Client
    except ImportError:
        raise InvalidInput(
            "a Dask scheduler was asked for but the Python package 'distributed' is not installed; "
            "install the extra with: pip install 'factcap[cluster]'"
        ) from None
    try:
        client = Client(address, timeout=SCHEDULER_SECONDS)
    except (OSError, TimeoutError, ValueError) as error:
        raise InvalidInput(
            f"the Dask scheduler at {address!r} does not answer ({type(error).__name__}); give the "
            "address of a running one, as in tcp://host:8786"
        ) from None
    if not client.scheduler_info()["workers"]:
        client.close()
        raise InvalidInput(
            f"the Dask scheduler at {address!r} has no workers; start some with: dask worker "
            f"{address}"
        )
    return client


def _worker(key: str, cell: Cell, code: str) -> tuple[str, Outcome]:
    import torch

    torch.set_num_threads(cell.threads)
    return key, compute(cell, code)
