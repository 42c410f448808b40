"""`factcap sweep` as a user meets it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from validate.cli.sweep import duration
from validate.store import Store

FACTCAP = [sys.executable, "-m", "validate.cli"]
SMALL = ["--problem", "decoupled", "--dims", "4,5", "--loads", "0.6:1.0:0.2", "--method", "hebbian"]


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", "from validate.cli import main; main()", "sweep", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "80"},
    )


def factcap(*arguments: str) -> tuple[int, str, str]:
    process = start(*arguments)
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def test_a_sweep_prints_progress_and_a_table_and_exports(tmp_path: Path) -> None:
    store, file = tmp_path / "runs.sqlite", tmp_path / "r.csv"
    code, out, err = factcap(*SMALL, "--seeds", "3", "--store", str(store), "--export", str(file))
    assert code == 0, err
    frame = pd.read_csv(file)
    assert len(frame) == 3 * len(frame[["dim", "facts"]].drop_duplicates())
    assert f"{len(frame)} of {len(frame)} cells" in err
    assert "cells/s" in err
    assert f"0 found, {len(frame)} computed here" in " ".join(out.split())
    assert max(len(line) for line in out.splitlines()) <= 80

    again = tmp_path / "r2.parquet"
    code, out, err = factcap(
        *SMALL, "--seeds", "3", "--store", str(store), "--export", str(again), "--json"
    )
    assert (code, err) == (0, "")
    said = json.loads(out)
    assert (said["cells"], said["found"], said["computed"]) == (len(frame), len(frame), 0)
    assert sum(row["separable"] for row in said["sizes"]) == (frame["verdict"] == "separable").sum()
    assert pd.read_parquet(again)["verdict"].tolist() == frame["verdict"].tolist()


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["--dims", "x", "--loads", "1", "--store", "S"], "dims is 'x'"),
        (["--dims", "4", "--loads", "1:0:1", "--store", "S"], "the loads '1:0:1'"),
        (["--dims", "4", "--loads", "1", "--store", "S", "--export", "r.txt"], "must end in"),
        (["--dims", "4", "--loads", "1", "--store", "FOREIGN"], "is not a factcap store"),
        (["--dims", "4", "--loads", "1", "--store", "S", "--jobs", "0"], "jobs is 0"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    tmp_path: Path, arguments: list[str], match: str
) -> None:
    from validate.cli.app import main

    foreign = tmp_path / "foreign.sqlite"
    foreign.write_text("dim,facts\n")
    names = {"S": str(tmp_path / "s.sqlite"), "FOREIGN": str(foreign)}
    words = [names.get(word, word) for word in arguments]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["factcap", "sweep", *words])
        said: list[str] = []
        patch.setattr(sys, "stderr", _Catch(said))
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code == 2
    text = "".join(said)
    assert match in text
    assert text.count("\n") == 1
    assert foreign.read_text() == "dim,facts\n"


class _Catch:
    """Standard error kept in a list."""

    def __init__(self, said: list[str]) -> None:
        self._said = said

    def write(self, text: str) -> int:
        self._said.append(text)
        return len(text)

    def flush(self) -> None:
        """Nothing to do."""

    def isatty(self) -> bool:
        return False


def test_durations_read_well() -> None:
    assert [duration(s) for s in (0, 59.4, 60, 3599, 86400)] == [
        "0 s",
        "59 s",
        "1 min 00 s",
        "59 min 59 s",
        "1 d 00 h",
    ]


@pytest.mark.long
def test_the_command_killed_with_two_jobs_ends_with_the_same_bytes(tmp_path: Path) -> None:
    """SIGKILL to the real command, workers and all, at six random moments of its life."""
    common = [*SMALL, "--seeds", "150"]
    alone = tmp_path / "alone.csv"
    code, _, err = factcap(*common, "--store", str(tmp_path / "a.sqlite"), "--export", str(alone))
    assert code == 0, err
    store, file = tmp_path / "k.sqlite", tmp_path / "killed.csv"
    options = [*common, "--store", str(store), "--jobs", "2", "--export", str(file)]
    partial = 0
    for moment in np.random.default_rng(5).uniform(4.0, 25.0, size=6):
        process = start(*options)
        time.sleep(moment)
        process.kill()
        process.communicate()
        if store.exists():
            with Store.open(store) as opened:
                partial += 0 < len(opened.rows()) < len(alone.read_text().splitlines()) - 1
    code, _, err = factcap(*options)
    assert code == 0, err
    assert file.read_bytes() == alone.read_bytes()
    with Store.open(store) as opened:
        assert set(opened.run_counts().values()) == {1}
    assert partial >= 1
