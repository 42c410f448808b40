"""`factcap sweep` as a user meets it."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from validate.store import Store
from validate.sweep.pool import duration

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
    assert said["others"] == 0
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


def rows_in(store: Path) -> int:
    """Finished cells, read beside a sweep that is running."""
    if not store.exists():
        return 0
    connection = sqlite3.connect(f"file:{store}?mode=ro", uri=True, timeout=30)
    try:
        (count,) = connection.execute("SELECT count(*) FROM results").fetchone()
    finally:
        connection.close()
    return int(count)


@pytest.mark.long
def test_the_command_killed_with_two_jobs_ends_with_the_same_bytes(tmp_path: Path) -> None:
    """SIGKILL to the real command: once at work, then at random moments of as long a life."""
    common = [*SMALL, "--seeds", "150"]
    alone = tmp_path / "alone.csv"
    code, _, err = factcap(*common, "--store", str(tmp_path / "a.sqlite"), "--export", str(alone))
    assert code == 0, err
    store, file = tmp_path / "k.sqlite", tmp_path / "killed.csv"
    options = [*common, "--store", str(store), "--jobs", "2", "--export", str(file)]
    total = len(alone.read_text().splitlines()) - 1
    generator = np.random.default_rng(5)
    usual = 0.0
    for _ in range(6):
        began = time.monotonic()
        process = start(*options)
        if not usual:
            while rows_in(store) < 5:
                assert process.poll() is None
                time.sleep(0.02)
            usual = time.monotonic() - began
        else:
            time.sleep(generator.uniform(0.0, 1.3 * usual))
        process.kill()
        process.communicate()
    assert 5 <= rows_in(store) < total
    code, _, err = factcap(*options)
    assert code == 0, err
    assert file.read_bytes() == alone.read_bytes()
    with Store.open(store) as opened:
        assert set(opened.run_counts().values()) == {1}
