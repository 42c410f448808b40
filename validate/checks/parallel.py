"""The ladder on several processes: same counts, whatever the number of workers."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from validate.checks.ladder import Cell as Cell
from validate.checks.ladder import LadderPoint, certified_verdicts, tally_point
from validate.checks.ladder import largest_batch as largest_batch


def available_cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def measure_cells(
    cells: Sequence[Cell],
    *,
    seed: int,
    batch: int = 10,
    workers: int = 1,
    progress: Callable[[Cell, int], None] | None = None,
) -> list[LadderPoint]:
    """Certified counts of every cell; instance i of a cell has seed (seed, facts, i).

    `progress(cell, n)` is told of n finished instances. The largest cells start first, so that no
    worker idles at the end.
    """
    import joblib

    jobs = [
        (number, list(range(first, min(first + step, cell.instances))))
        for number, cell in enumerate(cells)
        for step in [min(batch, largest_batch(cell))]
        for first in range(0, cell.instances, step)
    ]
    jobs.sort(key=lambda job: -cells[job[0]].dim * cells[job[0]].facts)
    run = joblib.Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)
    verdicts: list[list[str]] = [[] for _ in cells]
    seconds = [0.0] * len(cells)
    for number, found, elapsed in run(
        joblib.delayed(_job)(number, cells[number], seed, numbers, workers > 1)
        for number, numbers in jobs
    ):
        verdicts[number] += found
        seconds[number] += elapsed
        if progress is not None:
            progress(cells[number], len(found))
    return [
        tally_point(cell.kind, cell.dim, cell.facts, found, spent)
        for cell, found, spent in zip(cells, verdicts, seconds, strict=True)
    ]


def _job(
    number: int, cell: Cell, seed: int, numbers: Sequence[int], one_thread: bool
) -> tuple[int, list[str], float]:
    import time

    import torch

    if one_thread:
        torch.set_num_threads(1)
    start = time.perf_counter()
    found = certified_verdicts(
        cell.kind, cell.dim, cell.facts, [(seed, cell.facts, i) for i in numbers]
    )
    return number, found, time.perf_counter() - start
