"""Threshold tables: same values in every format, columns by name, LaTeX that reads back."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from numerics.cone import (
    critical_load,
    rank_factor,
    statistical_dimension,
    success_probability,
)
from numerics.tables import COLUMNS, FORMATS, threshold_table
from replica.errors import InvalidInput

ALL = [name for name in COLUMNS if name not in ("rank_ratio", "margin")]


@pytest.fixture(scope="module")
def table() -> Any:
    return threshold_table([1000, 10**9, 10**30], columns=ALL, digits=12, order=4)


def latex_number(text: str) -> str:
    """$1.5\\cdot 10^{-7}$ -> 1.5e-7, $10^{100}$ -> 1e100."""
    text = text.strip().strip("$").replace(r"\cdot ", "x")
    text = re.sub(r"^10\^\{(-?\d+)\}$", r"1e\1", text)
    return re.sub(r"x10\^\{(-?\d+)\}$", r"e\1", text)


def test_all_formats_hold_the_same_values(table: Any) -> None:
    by_csv = list(csv.reader(io.StringIO(table.render("csv"))))
    assert by_csv[0] == ALL
    markdown = [
        [cell.strip() for cell in line.strip("| \n").split("|")]
        for line in table.render("markdown").splitlines()
    ]
    assert markdown[0] == by_csv[0]
    assert markdown[2:] == by_csv[1:]
    body = [line for line in table.render("latex").splitlines() if line.endswith(r"\\")][1:]
    latex = [[latex_number(c) for c in line[:-2].split(" & ")] for line in body]
    assert latex == by_csv[1:]
    data = json.loads(table.render("json"))
    for row, plain in zip(data["rows"], by_csv[1:], strict=True):
        for name, text in zip(ALL, plain, strict=True):
            cell = row[name]
            if isinstance(cell, int):
                assert Fraction(text) == cell
            else:
                assert cell["value"] == text


def test_cells_are_correctly_rounded(table: Any) -> None:
    data = json.loads(table.render("json"))
    for row in data["rows"]:
        facts = row["facts"]
        for name, exact in (
            ("delta", statistical_dimension(facts - 1, 30)),
            ("critical_load", critical_load(facts, digits=30)),
        ):
            low, high = exact.bounds
            value, radius = Fraction(row[name]["value"]), Fraction(row[name]["radius"])
            assert value - radius <= low
            assert high <= value + radius
            assert radius <= value * Fraction(1, 10**11)


def test_expansion_and_error(table: Any) -> None:
    rows = json.loads(table.render("json"))["rows"]
    errors = [abs(float(row["relative_error"]["value"])) for row in rows]
    assert errors[2] < errors[1] < errors[0]
    assert errors[2] < 1e-6
    for row in rows:
        ratio = float(row["expansion"]["value"]) / float(row["critical_load"]["value"]) - 1.0
        assert float(row["relative_error"]["value"]) == pytest.approx(ratio, abs=1e-10)
    # T^2 + 3 - 9/T^2 + 113/(2 T^4) - 1015/(2 T^6), T by plain Newton steps in floats
    facts = 10**30
    t = 11.0
    for _ in range(200):
        psi = math.exp(-t * t / 2) / math.sqrt(2 * math.pi) - t * math.erfc(t / math.sqrt(2)) / 2
        t += 0.05 * math.log(facts * psi / t) / t
    series = t**2 + 3 - 9 / t**2 + 56.5 / t**4 - 507.5 / t**6
    assert float(rows[2]["expansion"]["value"]) == pytest.approx(math.log(facts) / series, rel=1e-6)


def test_success_width_is_the_width_of_the_curve() -> None:
    """One relative width above or below p delta = N the probability is that of one sigma."""
    facts, dim = 1192, 100
    row = threshold_table([facts], columns=["delta", "success_width"], digits=8).cells[0]
    delta, width = (float(c.value) for c in row)  # type: ignore[union-attr]
    centre = facts * delta
    for sign in (-1, 1):
        weights = round(centre * (1 + sign * width))
        value = success_probability(weights, facts, dim_out=1).to_float_lossy()
        sigma = (weights - centre) / (centre * width)
        assert value == pytest.approx(0.5 * math.erfc(-sigma / math.sqrt(2)), abs=0.01)
    assert dim * dim == pytest.approx(centre, rel=0.01)


def test_rank_and_margin_columns() -> None:
    table = threshold_table(
        [100], columns=["facts", "rank_ratio", "margin", "critical_load", "leading_order"],
        rank_ratio="0.5", margin="0.25", digits=10,
    )  # fmt: skip
    facts, rank, margin, load, leading = table.cells[0]
    assert (facts, rank, margin) == (100, Fraction(1, 2), Fraction(1, 4))
    factor = rank_factor("0.5").to_float_lossy()
    delta = statistical_dimension(99, margin="0.25").to_float_lossy()
    assert float(load.value) == pytest.approx(factor * math.log(100) / delta)  # type: ignore[union-attr]
    scale = 1 + 0.25 / math.sqrt(2 * math.log(100))
    assert float(leading.value) == pytest.approx(factor / 2 / scale**2)  # type: ignore[union-attr]


def test_exact_cells_have_radius_zero() -> None:
    row = threshold_table([100], columns=["leading_order"]).cells[0][0]
    assert row.to_json() == {"value": "0.5", "radius": "0"}  # type: ignore[union-attr]


def test_latex_compiles_or_is_well_formed(table: Any, tmp_path: Path) -> None:
    """Compiled where a LaTeX is installed; in any case balanced, with equal numbers of cells."""
    body = table.render("latex")
    assert body.count("{") == body.count("}")
    assert body.count("$") % 2 == 0
    rows = [line for line in body.splitlines() if line.endswith(r"\\")]
    assert {line.count("&") for line in rows} == {len(ALL) - 1}
    assert r"\begin{tabular}{" + "r" * len(ALL) + "}" in body
    engine = shutil.which("pdflatex") or shutil.which("xelatex") or shutil.which("tectonic")
    if engine is None:
        return
    source = tmp_path / "table.tex"
    source.write_text("\\documentclass{article}\\begin{document}\n" + body + "\\end{document}\n")
    done = subprocess.run(
        [engine, source.name],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout[-2000:]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"columns": ["alpha"]}, "'alpha' is unknown"),
        ({"columns": []}, "unknown"),
        ({"digits": 0}, "digits is 0"),
        ({"order": -1}, "order is -1"),
        ({"order": 61}, "order is 61"),
        ({"rank_ratio": 2}, "rank_ratio is 2"),
        ({"margin": -1}, "margin is -1"),
        ({"margin": 1, "columns": ["expansion"]}, "zero margin"),
        ({"margin": 1, "columns": ["success_width"]}, "success_width"),
        ({"facts": [1]}, "facts is 1"),
        ({"facts": [3], "columns": ["expansion"], "order": 4}, "smaller --order"),
    ],
)
def test_bad_input(arguments: dict[str, Any], sentence: str) -> None:
    facts = arguments.pop("facts", [100])
    with pytest.raises(InvalidInput, match=sentence):
        threshold_table(facts, **arguments)


def test_unknown_format(table: Any) -> None:
    assert len(FORMATS) == 4
    with pytest.raises(InvalidInput, match="csv, markdown, latex, json"):
        table.render("html")
