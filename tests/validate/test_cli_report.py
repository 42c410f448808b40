"""`factcap report` on the command line: what it writes, and its refusals."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from replica.errors import InvalidInput
from tests.validate.small_report import SMALL, small_report
from validate.cli import main
from validate.cli.report import chosen_format, register


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the command in this process with the experiments of the small preset already done."""
    import validate.report.presets as presets
    import validate.report.run as runner

    monkeypatch.setattr(presets, "preset_named", lambda name: SMALL)
    monkeypatch.setattr(runner, "run", lambda *args, **options: small_report())
    app = typer.Typer()

    @app.callback()
    def group() -> None:
        """Keeps `report` a subcommand."""

    register(app)
    return lambda *arguments: CliRunner().invoke(app, ["report", *arguments])


@pytest.mark.parametrize(
    ("name", "start"), [("a.html", "<!DOCTYPE html>"), ("a.md", "# How"), ("a.json", "{")]
)
def test_report_writes_what_the_name_says(
    invoke: Any, tmp_path: Path, name: str, start: str
) -> None:
    out = tmp_path / name
    result = invoke("--out", str(out))
    assert result.exit_code == 0, result.output
    assert out.read_text("utf-8").startswith(start)
    assert str(out) in result.output
    assert "claims" in result.output
    assert list(tmp_path.iterdir()) == [out]


def test_format_option_beats_the_suffix(invoke: Any, tmp_path: Path) -> None:
    out = tmp_path / "report.txt"
    assert invoke("--out", str(out), "--format", "markdown").exit_code == 0
    assert out.read_text("utf-8").startswith("# ")


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["--store", "{tmp}/kept.sqlite"], "kept.sqlite"),
        (["--preset", "paper"], "r.sqlite"),  # beside the report, for an hour is worth keeping
        (["--preset", "quick"], None),
    ],
)
def test_where_finished_work_is_kept(
    invoke: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: list[str],
    name: str | None,
) -> None:
    import validate.report.run as runner

    seen: list[Any] = []

    def run(*_: Any, store: Any, **__: Any) -> Any:
        seen.append(None if store is None else store.path.name)
        return small_report()

    monkeypatch.setattr(runner, "run", run)
    given = [a.replace("{tmp}", str(tmp_path)) for a in arguments]
    assert invoke("--out", str(tmp_path / "r.html"), *given).exit_code == 0
    assert seen == [name]
    assert {path.name for path in tmp_path.iterdir()} == {"r.html", *([name] if name else [])}


def test_an_interrupt_says_where_the_work_is(
    invoke: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import validate.report.run as runner

    def run(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "run", run)
    out, store = tmp_path / "r.html", tmp_path / "kept.sqlite"
    result = invoke("--out", str(out), "--store", str(store))
    assert result.exit_code == 130
    assert "interrupted" in result.output
    assert "kept.sqlite" in result.output
    assert not out.exists()


def test_default_format() -> None:
    assert chosen_format(None, None) == "html"
    assert chosen_format(None, Path("x.JSON")) == "json"
    with pytest.raises(InvalidInput):
        chosen_format("pdf", None)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--preset", "fast"], "preset"),
        (["--format", "pdf"], "format"),
        (["--out", "{tmp}/no/such/folder/r.html"], "folder"),
        (["--out", "{tmp}"], "folder"),
        (["--seed", "-1"], "seed"),
        (["--workers", "0"], "workers"),
        (["--embeddings", "{tmp}/none.npz"], "embeddings"),
        (["--embeddings", __file__], "convert it"),
        (["--store", "{tmp}/r.html"], "the store"),
        (["--store", __file__], "not a factcap store"),
    ],
)
def test_bad_input_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    arguments: list[str],
    word: str,
) -> None:
    given = [a.replace("{tmp}", str(tmp_path)) for a in arguments]
    if "--out" not in given:
        given += ["--out", str(tmp_path / "r.html")]
    monkeypatch.setattr(sys, "argv", ["factcap", "report", *given])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    lines = shown.err.strip().splitlines()
    assert len(lines) == 1, shown.err
    assert lines[0].startswith("factcap: ")
    assert word in lines[0]
    assert list(tmp_path.iterdir()) == []


def test_refusals_come_before_heavy_imports(tmp_path: Path) -> None:
    """A real process: exit code 2, no traceback, and torch is never imported."""
    code = (
        "import sys; from validate.cli import main\n"
        "try: main()\nfinally: print('torch' in sys.modules, 'matplotlib' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "report", "--seed", "-1", "--out", str(tmp_path / "r.html")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stdout.split() == ["False", "False"]
    assert len(done.stderr.strip().splitlines()) == 1
