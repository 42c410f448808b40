"""Run units on several processes and keep every answer in a store as soon as it is there."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replica.errors import InvalidInput
from validate.checks.unit_code import code_of_task
from validate.checks.units import Unit
from validate.owner import end_with_parent
from validate.problems.base import check_count
from validate.store import Store, key_of
from validate.sweep.cell import threads
from validate.sweep.pool import POLL_SECONDS, Progress, Tracker, claimed, without_traceback


@dataclass(frozen=True)
class Measured:
    """Answers in the order of the units, with the processor seconds each took when it was run.

    `resumed[i]`: the answer was in the store already.
    """

    answers: list[Any]
    seconds: list[float]
    resumed: list[bool]


def measure(
    units: Sequence[Unit],
    *,
    workers: int = 1,
    store: Store | None = None,
    progress: Progress | None = None,
) -> Measured:
    """Run the units that `store` does not hold; equal units run once.

    Each unit runs with one thread, so that its answer does not depend on `workers`. The longest
    start first, so that no worker idles at the end. A store may serve several reports at once:
    units are claimed, and those of others are waited for. Without a store answers live in memory.

    Raises `InvalidInput` for fewer than one worker, an answer that is no JSON, or sources that
    change while the units run.
    """
    check_count("workers", workers, 1)
    with ExitStack() as stack:
        kept = store if store is not None else stack.enter_context(_passing_store())
        code = {unit.task: code_of_task(unit.task) for unit in units}
        keys = [key_of(unit.config, code[unit.task]) for unit in units]
        order = sorted(range(len(units)), key=lambda i: -units[i].work)
        jobs = {keys[i]: units[i] for i in order}
        tracker = Tracker(jobs, kept, progress)
        before = set(jobs) - set(tracker.pending)
        while tracker.pending:
            found = 0
            waiting = claimed(tracker, kept, workers)
            for key, answer, seconds in without_traceback(_answers(waiting, jobs, code, workers)):
                unit = jobs[key]
                kept.finish(unit.config, code[unit.task], {"answer": answer}, seconds=seconds)
                tracker.done(key)
                found += 1
            if not found and tracker.pending:
                time.sleep(POLL_SECONDS)
            tracker.look()
        rows = {row.key: row.result["answer"] for row in kept.rows(list(jobs))}
        spent = kept.seconds()
    return Measured(
        [rows[key] for key in keys],
        [spent[key] for key in keys],
        [key in before for key in keys],
    )


def _answers(
    keys: Iterator[str], jobs: dict[str, Unit], code: dict[str, str], workers: int
) -> Iterator[tuple[str, Any, float]]:
    import joblib

    with processes(workers):
        pool = joblib.Parallel(
            return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs"
        )
        yield from pool(joblib.delayed(_run)(key, jobs[key], code[jobs[key].task]) for key in keys)


@contextmanager
def processes(workers: int) -> Iterator[None]:
    """joblib with `workers` processes of one thread each, which end with this one.

    The same settings everywhere, so that joblib keeps its processes from one stage to the next.
    """
    import joblib

    with joblib.parallel_config(
        "loky",
        n_jobs=workers,
        inner_max_num_threads=1,
        initializer=end_with_parent,
        initargs=(os.getpid(),),
    ):
        yield


def _run(key: str, unit: Unit, code: str) -> tuple[str, Any, float]:
    here = code_of_task(unit.task)
    if here != code:
        raise InvalidInput(
            f"a worker has code version {here} of {unit.task} but the report was started with "
            f"{code}; do not edit the sources while it runs; give the same command again"
        )
    with threads(1):
        start = time.process_time()
        answer = unit.run()
        return key, answer, time.process_time() - start


@contextmanager
def _passing_store() -> Iterator[Store]:
    with (
        tempfile.TemporaryDirectory(prefix="factcap-") as folder,
        Store.open(Path(folder) / "units.sqlite") as store,
    ):
        yield store
