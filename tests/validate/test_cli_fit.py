"""`factcap fit` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from numerics.cone import least_dimension
from tests.validate.test_cli_simulate import run
from tests.validate.test_fit import CAPITALS


def test_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with np.load(CAPITALS) as whole:
        np.savez(tmp_path / "a.npz", **{key: whole[key][:25] for key in whole.files})
    path = str(tmp_path / "a.npz")
    code, out, err = run(
        capsys, monkeypatch, "fit", path, "--components", "12", "--shuffles", "1", "--json"
    )
    data = json.loads(out)
    assert code == 0
    assert err == ""
    assert data["facts"] == 25
    assert data["verdict"] == "separable"
    assert data["certificate"]["margin"] > 0
    assert data["least_components"] <= 12
    assert data["least_components_proved"] is True
    assert data["theory_least_dimension"] == least_dimension(25)


def test_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stream = np.random.default_rng(0)
    path = tmp_path / "a.npz"
    np.savez(path, inputs=stream.standard_normal((30, 4)), outputs=stream.standard_normal((30, 4)))
    code, out, _ = run(capsys, monkeypatch, "fit", str(path), "--shuffles", "1")
    assert code == 0
    assert "No: no linear memory recalls all of them (proved)." in out
    assert "more than 4" in out
    assert "in conflict" in out


def test_bad_files(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    x = np.ones((3, 2))
    x[1, 0] = np.nan
    np.savez(tmp_path / "nan.npz", inputs=x, outputs=np.eye(3))
    np.savez(tmp_path / "same.npz", inputs=np.eye(3), outputs=np.ones((3, 2)))
    cases = [("nan.npz", "NaN"), ("same.npz", "same output"), ("none.npz", "no file")]
    for name, words in cases:
        code, out, err = run(capsys, monkeypatch, "fit", str(tmp_path / name))
        assert code == 2
        assert out == ""
        assert words in err
        assert err.count("\n") == 1
        assert "Traceback" not in err
    code, _, err = run(capsys, monkeypatch, "fit", str(CAPITALS), "--components", "99")
    assert code == 2
    assert "components is 99" in err
