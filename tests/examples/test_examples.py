"""Every script in examples/ runs from a fresh process and prints what it promises."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from validate.checks.ladder import LadderPoint

FOLDER = Path(__file__).parents[2] / "examples"
# Script -> words that only a run that went through prints.
PROMISES = {
    "how_many_facts.py": "  1024     69881",
    "derive_gardner.py": "critical_load:",
    "own_embeddings.py": "least components, true pairing:     15",
    "critical_loads.py": "original: median",
    "ladder.py": "d = 8, 40 certified instances a cell",
    "expansion_figure.py": "1000.0   0.50263",
    "latex_table.py": r"1\,024 & 69\,881 & 0.74338992 & 0.066644551 \\",
    "new_criterion.py": "capacity: 4/3 facts per weight; v_k = [3/8, 1/2, 1/8]",
    "critical_load_figure.py": "instances is decided",
    "spectra.py": "Gaussian, low rank          22    6     0.0",
    "trained_memory.py": "   60  *0.28,",
    "cluster_sweep.py": "60 of 60 cells, 0 kept from before",
}


def test_every_script_is_listed() -> None:
    assert {path.name for path in FOLDER.glob("*.py")} == set(PROMISES)


@pytest.mark.parametrize("name", sorted(PROMISES))
def test_script_runs(name: str, tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, str(FOLDER / name)],
        capture_output=True,
        text=True,
        timeout=240,
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stderr
    assert PROMISES[name] in result.stdout


@pytest.mark.parametrize("name", sorted(PROMISES))
def test_help_is_help_and_nothing_is_written(name: str, tmp_path: Path) -> None:
    """Scripts that take arguments explain them; the others ignore what they do not know."""
    if "argparse" not in (FOLDER / name).read_text("utf-8"):
        assert "sys.argv" not in (FOLDER / name).read_text("utf-8")
        return
    result = subprocess.run(
        [sys.executable, str(FOLDER / name), "--help"],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("usage:")
    assert list(tmp_path.iterdir()) == []


def test_undecided_instances_of_the_figure_are_counted_and_shown() -> None:
    """Three undecided of 20 widen the bar of their point and are named in text and figure."""
    path = FOLDER / "critical_load_figure.py"
    example = runpy.run_path(str(path))
    kinds, dims = example["KINDS"], example["DIMS"]

    def counts(undecided: int) -> list[LadderPoint]:
        return [
            LadderPoint(kind, dim, p, s - lost, 20 - s, lost, 0.0)
            for kind in kinds
            for dim in dims
            for p, s in ((2 * dim, 18), (3 * dim, 10), (4 * dim, 3))
            for lost in (undecided if (kind, dim, p) == ("original", 8, 24) else 0,)
        ]

    sure, doubtful = (example["half_points"](counts(n)) for n in (0, 3))
    assert sure["decoupled", 8] == doubtful["decoupled", 8]
    narrow, wide = (fit["original", 8] for fit in (sure, doubtful))
    assert wide.low < narrow.low < narrow.value < narrow.high <= wide.high
    assert example["undecided_sentence"](counts(0)) == "every one of 480 instances is decided"
    said = example["undecided_sentence"](counts(3))
    assert said.startswith("3 of 480 instances are undecided")
    assert "original, d = 8, p = 24" in said
    drawn = [example["draw"]([5.0, 50.0], [1.0, 0.8], doubtful, n) for n in (0, 3)]
    assert ["undecided" in svg for svg in drawn] == [False, True]
