"""One small real report, run once a session, shared by the tests of page, formats and browser."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from validate.report.model import Report
from validate.report.presets import PRESETS
from validate.report.progress import Stopwatch
from validate.report.run import run

SMALL = replace(
    PRESETS["quick"],
    name="small",
    ladder=((5, (16, 16, 16)),),
    targets=(0.95, 0.5, 0.1),
    projections=10_000,
    projection_sizes=(1, 2, 9),
    volumes_at=20,
    hebbian_dim=5,
    hebbian_loads=(5, 8, 12),
    hebbian_instances=20,
    learning_dim=6,
    learning_shares=(0.4, 1.6),
    learning_instances=2,
    shuffles=1,
    table_facts=(10, 1000),
    table_dims=(10, 64),
)


class Counting(Stopwatch):
    """A stopwatch that adds up the work it is told of."""

    def __init__(self) -> None:
        super().__init__()
        self.work = 0.0

    def advance(self, work: float) -> None:
        self.work += work


_reporter = Counting()


@lru_cache(maxsize=1)
def small_report() -> Report:
    """The report of the preset SMALL with seed 0, one process."""
    rng = np.random.default_rng(3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "twelve_facts.npz"
        np.savez(path, inputs=rng.standard_normal((12, 8)), outputs=rng.standard_normal((12, 8)))
        return run(SMALL, seed=0, workers=1, embeddings=path, reporter=_reporter)


def reported_work() -> float:
    """Units of work that the report's stages announced as done."""
    small_report()
    return _reporter.work
