"""`factcap table`: formats, files written whole or not at all, bad input."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from tests.validate.test_cli_threshold import run


def test_dots_and_formats() -> None:
    done = run("table", "--facts", "1e2,1e3,...,1e8", "--digits", "9", "--format", "csv")
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["facts"] for row in rows] == [
        "100",
        "1000",
        "10000",
        "100000",
        "1000000",
        "1e7",
        "1e8",
    ]
    loads = [float(row["critical_load"]) for row in rows]
    assert loads == sorted(loads, reverse=True)
    assert loads[1] == pytest.approx(0.850683865)


def test_written_to_a_file_in_whole(tmp_path: Path) -> None:
    out = tmp_path / "table.json"
    done = run("table", "--facts", "100", "--format", "json", "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert json.loads(out.read_text())["rows"][0]["facts"] == 100
    assert [p.name for p in tmp_path.iterdir()] == ["table.json"]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--facts", "1e2,...,1e5"], "'...'"),
        (["--facts", "1"], "facts is 1"),
        (["--facts", "100", "--format", "html"], "csv, markdown, latex, json"),
        (["--facts", "100", "--columns", "alpha"], "'alpha' is unknown"),
        (["--facts", "100", "--order", "-1"], "order is -1"),
        (["--facts", "100", "--digits", "0"], "digits is 0"),
        (["--facts", "100", "--out", "/no/such/folder/table.csv"], "does not exist"),
        (["--facts", "100", "--margin", "inf"], "margin is inf"),
        (["--facts", "100", "--rank-ratio", "1.01"], "rank_ratio is 1.01"),
    ],
)
def test_bad_input(arguments: list[str], word: str) -> None:
    done = run("table", *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert word in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
