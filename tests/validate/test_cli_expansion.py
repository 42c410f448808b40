"""`factcap derive --expansion`: the remainders verified for it."""

from __future__ import annotations

import contextlib
import json
import sys

import pytest

from validate.cli import main


def run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str
) -> str:
    monkeypatch.setattr(sys, "argv", ["factcap", "derive", "--expansion", *arguments])
    with contextlib.suppress(SystemExit):
        main()
    return capsys.readouterr().out


def test_verified_remainders_are_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = run(capsys, monkeypatch, "statistical_dimension", "--order", "1")
    assert "verified on [10, 10^1000]" in text
    data = json.loads(run(capsys, monkeypatch, "capacity", "--order", "2", "--format", "json"))
    assert len(data["verified"]) == 1
    assert "verified on [100, 10^1000]" in data["verified"][0]


def test_an_expansion_without_claims(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = json.loads(run(capsys, monkeypatch, "overlap", "--order", "0", "--format", "json"))
    assert data["order"] == 0
    assert data["verified"] == []
