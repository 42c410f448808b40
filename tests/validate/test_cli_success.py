"""`factcap success`: JSON keys, the reference table, bad input."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from numerics.balls import Certified
from tests.validate.test_cli_threshold import run


def test_json() -> None:
    done = run("success", "--dim", "20", "--facts", "87", "--json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert list(data) == ["dim", "facts", "competitors", "success_probability"]
    assert (data["dim"], data["facts"], data["competitors"]) == (20, 87, 86)
    probability = Certified.from_json(data["success_probability"])
    assert abs(probability - Fraction("0.4889")) < Fraction(1, 20000)


def test_competitors_and_dim_out() -> None:
    data = json.loads(
        run("success", "--dim", "2", "--dim-out", "8", "--facts", "32", "--competitors", "1",
            "--json").stdout
    )  # fmt: skip
    assert data["dim_out"] == 8
    assert Certified.from_json(data["success_probability"]).contains("0.5")  # Cover at p = 2 N


def test_table_for_people() -> None:
    done = run("success", "--dim", "10", "--facts", "29")
    assert done.returncode == 0, done.stderr
    assert "0.7804" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--dim", "0", "--facts", "10"], "dim is 0"),
        (["--dim", "5", "--facts", "1"], "facts is 1"),
        (["--dim", "5", "--facts", "10", "--competitors", "-1"], "competitors is -1"),
        (["--dim", "5", "--facts", "10", "--digits", "0"], "digits is 0"),
        (["--dim", "1e200", "--facts", "10"], "10^300"),
    ],
)
def test_bad_input(arguments: list[str], word: str) -> None:
    done = run("success", *arguments)
    assert done.returncode == 2
    assert word in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
