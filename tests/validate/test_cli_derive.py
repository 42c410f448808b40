"""`factcap derive` as a user meets it: its output and its exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import sympy as sp

from validate.cli import main


@dataclass
class Outcome:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def factcap(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Outcome]:
    """The command in this process: same entry point, exit code and streams, no second start-up."""

    def run(*arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["factcap", *arguments])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        streams = capsys.readouterr()
        return Outcome(code, streams.out, streams.err)

    return run


def test_json_of_the_main_job(factcap: Callable[..., Outcome]) -> None:
    done = factcap("derive", "--format", "json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert sp.sympify(data["critical_load"]).subs("margin", 0) == sp.Rational(1, 2)
    assert sp.sympify(data["overlap"]).subs("margin", 0) == sp.Eq(
        sp.Symbol("q"), 2 * sp.Symbol("alpha")
    )
    free = sp.sympify(data["free_entropy_at_saddle"]).subs("margin", 0)
    assert sp.expand(free - sp.log(1 - 2 * sp.Symbol("alpha")) / 2) == 0
    assert isinstance(data["saddle_point"], list)
    capacity = sp.sympify(data["capacity_equation"])
    assert {s.name for s in capacity.free_symbols} == {"gamma", "M", "margin"}
    assert len(data["steps"]) > 20
    assert set(data["steps"][0]) >= {"title", "latex", "sympy"}


def test_text_latex_and_code(factcap: Callable[..., Outcome]) -> None:
    text = factcap("derive", "--criterion", "halfspace", "--margin", "0")
    assert text.returncode == 0
    assert "Stein's lemma" in text.stdout
    assert "Entropic term" in text.stdout
    latex = factcap("derive", "--criterion", "halfspace", "--format", "latex")
    assert latex.stdout.count(r"\item") > 20
    python = factcap("derive", "--criterion", "halfspace", "--format", "python")
    namespace: dict[str, object] = {}
    exec(python.stdout, namespace)
    assert namespace["critical_load"](margin=0.0) == pytest.approx(2)  # type: ignore[operator]
    mathematica = factcap("derive", "--rule", "hebbian", "--format", "mathematica")
    assert "criticalLoadEveryFact = 1/8;" in mathematica.stdout


def test_low_rank_json_uses_the_named_symbols(factcap: Callable[..., Outcome]) -> None:
    done = factcap(
        "derive", "--prior", "low_rank", "--criterion", "tail_average", "--format", "json"
    )
    data = json.loads(done.stdout)
    names = {s.name for s in sp.sympify(data["critical_load"]).free_symbols}
    assert names == {"margin", "r", "rank_ratio"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--prior", "cubic"], ["cubic", "spherical", "low_rank"]),
        (["--criterion", "best"], ["best", "top_one", "halfspace", "tail_average", "list_wise"]),
        (["--format", "pdf"], ["pdf", "text", "latex", "python", "mathematica", "json"]),
        (["--rule", "magic"], ["magic", "optimal", "hebbian", "trained"]),
        (["--rule", "trained", "--loss", "magic"], ["magic", "cross_entropy"]),
        (["--rule", "trained", "--margin", "1"], ["margin", "trained"]),
        (["--loss", "hinge"], ["hinge", "--rule trained"]),
        (["--order", "3"], ["--expansion"]),
        (["--margin", "wide"], ["wide", "0.25"]),
        (["--competitors", "0"], ["competitors", "1 to 8"]),
        (["--prior", "low_rank", "--rank-ratio", "2"], ["rank_ratio", "(0, 1]"]),
        (["--rank-ratio", "1/2"], ["rank_ratio", "competitors"]),
        (["--rule", "hebbian", "--margin", "1"], ["margin", "hebbian"]),
        (["--rule", "hebbian", "--criterion", "halfspace"], ["criterion", "hebbian"]),
        (["--rule", "hebbian", "--expansion", "capacity"], ["hebbian", "capacity"]),
        (["--expansion", "capacity", "--prior", "low_rank"], ["prior", "--expansion"]),
        (["--margin", "-1"], ["margin is -1", "greater than -1"]),
        (["--margin", "-2"], ["margin is -2", "greater than -1"]),
        (["--r", "0.5"], ["it has: competitors, margin"]),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_two(
    arguments: list[str], words: list[str], factcap: Callable[..., Outcome]
) -> None:
    done = factcap("derive", *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert all(word in done.stderr for word in words)


def test_derive_does_not_import_torch() -> None:
    code = (
        "import sys; from validate.cli.app import app; "
        "from typer.testing import CliRunner; "
        "r = CliRunner().invoke(app, ['derive', '--criterion', 'halfspace']); "
        "assert r.exit_code == 0, r.output; assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
