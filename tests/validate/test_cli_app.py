"""The command line as a whole: help is fast and light, every mistake is one sentence and code 2."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    code = "import sys; from validate.cli import main; sys.argv[0] = 'factcap'; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["bogus"], "No such command 'bogus'"),
        (["threshold", "--bogus", "3"], "No such option"),
        (["threshold", "--facts"], "requires an argument"),
        (["success", "--dim", "3"], "Missing option '--facts'"),
        (["threshold", "--facts", "1"], "facts is 1"),
        (["threshold", "--facts", "10", "--digits", "-3"], "digits is -3"),
        (["threshold", "--dim", "0"], "dim is 0"),
        (["table", "--facts", "10", "--order", "²"], "order is ²"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(arguments: list[str], words: str) -> None:
    result = run(*arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith("factcap: ")
    assert result.stderr.count("\n") == 1
    assert words in result.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["threshold", "--help"]])
def test_help_ends_well(arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.returncode == 0
    assert "Usage: factcap" in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["threshold", "--facts", "100"], ["success", "--dim", "10", "--facts", "30"]],
)
def test_numbers_and_help_do_not_import_torch(arguments: list[str]) -> None:
    code = (
        "import sys\n"
        "from validate.cli import main\n"
        "sys.argv[0] = 'factcap'\n"
        "try:\n    main()\n"
        "finally:\n"
        "    heavy = {'torch', 'matplotlib', 'joblib', 'pandas', 'jinja2'} & set(sys.modules)\n"
        "    print('heavy:', sorted(heavy))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.rstrip().endswith("heavy: []")


def test_a_missing_extra_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from replica.errors import InvalidInput
    from validate.cli.common import require_extra

    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InvalidInput, match=r"pip install 'factcap\[validate\]'"):
        require_extra("torch")


def test_an_output_that_is_no_plain_file_is_left_alone(tmp_path: Path) -> None:
    # Renaming a finished file over a device as an administrator would destroy the device.
    pipe = tmp_path / "pipe.html"
    os.mkfifo(pipe)
    for arguments in (
        ["table", "--facts", "10", "--out", str(pipe)],
        ["report", "--out", str(pipe)],
    ):
        result = run(*arguments)
        assert result.returncode == 2
        assert result.stderr.count("\n") == 1
        assert "is a device, pipe or socket" in result.stderr
        assert stat.S_ISFIFO(pipe.stat().st_mode)
        assert list(tmp_path.iterdir()) == [pipe]


def test_ctrl_c_says_so_and_leaves_no_file(tmp_path: Path) -> None:
    # Long enough to be running whenever the signal comes; the delays hit loading and computing.
    code = (
        "import signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "print('ready', flush=True)\n"
        "from validate.cli import main\n"
        "sys.argv[0] = 'factcap'\n"
        "main()\n"
    )
    out = tmp_path / "table.csv"
    arguments = ["table", "--facts", "1e900,1e901,...,1e999", "--digits", "9", "--out", str(out)]
    for delay in (3.0, 5.0):
        process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 130
        assert errors.strip() == "factcap: interrupted"
        assert list(tmp_path.iterdir()) == []


def test_a_name_the_system_refuses_is_one_sentence(tmp_path: Path) -> None:
    result = run("table", "--facts", "10", "--out", str(tmp_path / ("a" * 300)))
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "File name too long" in result.stderr


def test_an_output_never_replaces_what_is_read(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    both = run("sweep", "--store", str(path), "--export", str(path), "--dims", "3", "--facts", "4")
    assert both.returncode == 2
    assert "is also the store" in both.stderr
    assert list(tmp_path.iterdir()) == []
    path.write_text("facts")
    link = tmp_path / "link.csv"
    link.symlink_to(path)
    both = run("report", "--out", str(link), "--embeddings", str(path))
    assert both.returncode == 2
    assert both.stderr.count("\n") == 1
    assert "is also the file of the embeddings" in both.stderr
    assert path.read_text() == "facts"
