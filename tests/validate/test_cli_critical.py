"""`factcap critical` on the command line."""

from __future__ import annotations

import json

import pytest

from numerics.cone import success_probability
from tests.validate.test_cli_simulate import run
from validate.critical_load import critical_load


def test_json_holds_loads_and_their_law(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = run(
        capsys, monkeypatch, "critical", "--problem", "decoupled", "--dim", "4", "--seeds", "5",
        "--seed", "3", "--json",
    )  # fmt: skip
    assert (code, err) == (0, "")
    data = json.loads(out)
    loads = data["loads"]
    assert loads == [critical_load("decoupled", dim=4, seed=(3, i)).facts for i in range(5)]
    assert [row["facts"] for row in data["curve"]] == list(range(min(loads), max(loads) + 2))
    for row in data["curve"]:
        assert row["count"] == sum(p >= row["facts"] for p in loads)
        exact = success_probability(4, row["facts"]).to_float_lossy()
        assert row["success_probability"] == pytest.approx(exact, abs=1e-12)
    assert (data["undecided"], data["seeds"]) == (0, 5)


def test_table(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, _ = run(capsys, monkeypatch, "critical", "--dim", "4", "--seeds", "3")
    assert code == 0
    assert "Median p_c" in out
    assert "3 of 3" in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--dim", "0"], "dim is 0"),
        (["--dim", "4", "--seeds", "0"], "seeds is 0"),
        (["--dim", "4", "--seed", "-1"], "seed is -1"),
        (["--dim", "4", "--problem", "magic"], "'magic'"),
        (["--dim", "1"], "larger dim"),
    ],
)
def test_bad_input(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    words: str,
) -> None:
    code, out, err = run(capsys, monkeypatch, "critical", *arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1
