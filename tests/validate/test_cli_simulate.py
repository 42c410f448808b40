"""`factcap simulate` on the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from validate.cli.app import main


def run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str
) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of `factcap` with these arguments."""
    monkeypatch.setattr(sys, "argv", ["factcap", *arguments])
    code = 0
    try:
        main()
    except SystemExit as error:
        code = int(error.code or 0)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_json_has_exactly_the_promised_keys(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = run(
        capsys, monkeypatch, "simulate", "--problem", "gaussian", "--dim", "5", "--facts", "8",
        "--method", "exact", "--seeds", "4", "--seed", "7", "--json",
    )  # fmt: skip
    data = json.loads(out)
    assert code == 0
    assert err == ""
    assert set(data) == {
        "problem", "dim", "facts", "method", "seeds", "separable", "not_separable", "undecided",
        "accuracy_mean", "accuracy_stderr", "seconds",
    }  # fmt: skip
    assert (data["problem"], data["dim"], data["facts"], data["seeds"]) == ("gaussian", 5, 8, 4)
    assert data["separable"] + data["not_separable"] + data["undecided"] == 4


def test_table(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for method, words in (("exact", "theory: P(separable)"), ("hebbian", "theory: accuracy")):
        code, out, _ = run(
            capsys, monkeypatch, "simulate", "--dim", "5", "--facts", "4", "--seeds", "2",
            "--method", method,
        )  # fmt: skip
        assert code == 0
        assert words in out


def test_the_same_seed_gives_the_same_result(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    results = []
    for _ in range(2):
        _, out, _ = run(
            capsys, monkeypatch, "simulate", "--dim", "5", "--facts", "4", "--seeds", "3",
            "--method", "adam", "--rank-ratio", "0.6", "--json",
        )  # fmt: skip
        data = json.loads(out)
        data.pop("seconds")
        results.append(data)
    assert results[0] == results[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--dim", "0", "--facts", "5"], "dim is 0"),
        (["--dim", "5", "--facts", "1"], "facts is 1"),
        (["--dim", "5", "--facts", "5", "--method", "magic"], "'magic'"),
        (["--dim", "5", "--facts", "5", "--problem", "magic"], "'magic'"),
        (["--dim", "5", "--facts", "5", "--seeds", "0"], "seeds is 0"),
        (["--dim", "5", "--facts", "5", "--seed", "-1"], "seed"),
        (["--dim", "5", "--facts", "5", "--rank-ratio", "0.5"], "rank ratio"),
        (["--dim", "5", "--facts", "5", "--time-limit", "0"], "time limit"),
        (["--dim", "5", "--facts", "5", "--method", "newton"], "without a rank ratio"),
        (["--dim", "5", "--facts", "5", "--spectrum", "no/such.txt"], "cannot be read"),
        (["--dim", "5", "--facts", "5", "--ensemble", "correlated:400"], "between -20 and 20"),
    ],
)
def test_bad_input_gets_one_sentence_and_code_two(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    words: str,
) -> None:
    code, out, err = run(capsys, monkeypatch, "simulate", *arguments)
    assert code == 2
    assert out == ""
    assert words in err
    assert err.count("\n") == 1
    assert err.startswith("factcap: ")


def test_covariance_spectrum_from_a_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """k^-1 written out is the built-in spectrum; other files are refused in one sentence."""
    import numpy as np

    cell = ["simulate", "--dim", "5", "--facts", "9", "--seeds", "6", "--json"]
    values = 1.0 / np.arange(1, 6)
    np.savetxt(tmp_path / "spectrum.txt", values, fmt="%.17g")
    np.save(tmp_path / "spectrum.npy", values)
    counts = []
    for law in (
        ["--ensemble", "correlated:1"],
        ["--spectrum", str(tmp_path / "spectrum.txt")],
        ["--ensemble", "correlated", "--spectrum", str(tmp_path / "spectrum.npy")],
    ):
        code, out, _ = run(capsys, monkeypatch, *cell, *law)
        assert code == 0
        counts.append(json.loads(out)["separable"])
    assert counts[0] == counts[1] == counts[2]
    for content, words in (("", "is empty"), ("1\n2\n", "2 eigenvalues"), ("1\nx\n", "be read")):
        (tmp_path / "bad.txt").write_text(content)
        code, _, err = run(capsys, monkeypatch, *cell, "--spectrum", str(tmp_path / "bad.txt"))
        assert code == 2
        assert words in err
    code, _, err = run(
        capsys, monkeypatch, *cell, "--ensemble", "sphere", "--spectrum",
        str(tmp_path / "spectrum.txt"),
    )  # fmt: skip
    assert code == 2
    assert "only correlated" in err
