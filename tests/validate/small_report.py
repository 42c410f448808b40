"""One small real report, run once a session, shared by the tests of page, formats and browser."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from validate.report.model import Report
from validate.report.presets import Preset, preset_named
from validate.report.run import run

QUICK = preset_named("quick").sizes
SMALL = Preset(
    "small",
    {
        "thresholds": replace(QUICK["thresholds"], facts=(10, 1000), dims=(10, 64)),
        "derivation": QUICK["derivation"],
        "cone": replace(QUICK["cone"], competitors=(1, 2, 9), law_at=20, samples=10_000),
        "ladder": replace(QUICK["ladder"], ladder=((5, (16, 16, 16)),), targets=(0.95, 0.5, 0.1)),
        "embeddings": replace(QUICK["embeddings"], shuffles=1),
    },
)


def write_facts(path: Path, facts: int = 12, dim: int = 8) -> Path:
    """A file of random facts for the section on real embeddings."""
    rng = np.random.default_rng(3)
    shape = (facts, dim)
    np.savez(path, inputs=rng.standard_normal(shape), outputs=rng.standard_normal(shape))
    return path


@lru_cache(maxsize=1)
def small_report() -> Report:
    """The report of the preset SMALL with seed 0, one process."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_facts(Path(folder) / "twelve_facts.npz")
        return run(SMALL, seed=0, workers=1, embeddings=path)
