"""The command line as a whole: help is fast and light, every mistake is one sentence and code 2."""

from __future__ import annotations

import subprocess
import sys

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
