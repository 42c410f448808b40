"""Work through the cells of a plan: claim, compute, commit, on one or many processes.

Only the process that called `run` writes to the store; workers compute. Cells are claimed as
workers become free, so that several processes, each with workers of its own, can share one store.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from replica.errors import InvalidInput
from validate.owner import end_with_parent
from validate.problems.base import check_count
from validate.store import Store, key_of
from validate.sweep.cell import Cell, Outcome, compute
from validate.sweep.code import code_version
from validate.sweep.plan import Plan
from validate.sweep.pool import (
    POLL_SECONDS,
    Progress,
    Status,
    Tracker,
    claimed,
    without_traceback,
)

__all__ = ["Progress", "Status", "run"]

SCHEDULER_SECONDS = 10.0


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
    tracker = Tracker(cells, store, progress)
    with ExitStack() as stack:
        stream = stack.enter_context(_stream(cells, code, jobs, dask))
        while tracker.pending:
            found = 0
            for key, outcome in without_traceback(stream(claimed(tracker, store, jobs))):
                store.finish(cells[key].config, code, outcome.result, seconds=outcome.seconds)
                tracker.done(key)
                found += 1
            if not found and tracker.pending:
                time.sleep(POLL_SECONDS)
            tracker.look()
    return tracker.status()


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
