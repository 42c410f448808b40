"""`factcap threshold`: JSON keys, table, bad input, no torch."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from fractions import Fraction
from typing import Any, NamedTuple

import pytest

from numerics.balls import Certified
from numerics.cone import critical_load, statistical_dimension


class Done(NamedTuple):
    """What a finished command left behind."""

    returncode: int
    stdout: str
    stderr: str


def run(*arguments: str) -> Done:
    """The command through its entry point, in this process (starting Python 40 times is slow)."""
    from validate.cli import main

    out, err = io.StringIO(), io.StringIO()
    code = 0
    before = sys.argv
    sys.argv = ["factcap", *arguments]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    finally:
        sys.argv = before
    return Done(code, out.getvalue(), err.getvalue())


def certified(data: dict[str, Any], key: str) -> Certified:
    return Certified.from_json(data[key])


def test_json_keys_and_values() -> None:
    done = run("threshold", "--facts", "1000", "--digits", "30", "--json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert list(data) == [
        "facts", "competitors", "statistical_dimension", "critical_load", "facts_per_parameter",
    ]  # fmt: skip
    assert (data["facts"], data["competitors"]) == (1000, 999)
    assert certified(data, "statistical_dimension").overlaps(statistical_dimension(999, 40))
    assert certified(data, "critical_load").overlaps(critical_load(1000, digits=40))
    product = certified(data, "statistical_dimension") * certified(data, "facts_per_parameter")
    assert product.contains(1)
    for key in ("statistical_dimension", "critical_load", "facts_per_parameter"):
        low, high = certified(data, key).bounds
        assert high - low < low * Fraction(1, 10**29)


def test_dimension_alone_and_with_facts() -> None:
    data = json.loads(run("threshold", "--dim", "20", "--json").stdout)
    assert (data["dim"], data["critical_facts"], data["facts"]) == (20, 86, 86)
    data = json.loads(run("threshold", "--dim", "20", "--facts", "50", "--json").stdout)
    assert (data["critical_facts"], data["facts"], data["competitors"]) == (86, 50, 49)
    data = json.loads(run("threshold", "--dim", "20", "--rank-ratio", "0.5", "--json").stdout)
    assert data["critical_facts"] == 79
    data = json.loads(run("threshold", "--dim", "1", "--json").stdout)
    assert data["critical_facts"] == 2


def test_huge_counts_and_competitors() -> None:
    data = json.loads(run("threshold", "--facts", "1e100", "--json").stdout)
    assert data["facts"] == 10**100
    assert str(certified(data, "critical_load")).startswith("0.5193226118072")
    data = json.loads(run("threshold", "--facts", "64", "--competitors", "1", "--json").stdout)
    assert data["competitors"] == 1
    assert certified(data, "statistical_dimension").contains(Fraction(1, 2))


def test_table_for_people_fits_80_columns() -> None:
    done = run("threshold", "--facts", "1e60", "--dim", "50", "--digits", "80")
    assert done.returncode == 0, done.stderr
    assert "statistical dimension" in done.stdout
    assert "proved" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--facts", "1"], "facts is 1"),
        (["--facts", "-5"], "facts is -5"),
        (["--facts", "many"], "facts is many"),
        (["--facts", "10", "--digits", "-3"], "digits is -3"),
        (["--facts", "10", "--digits", "10001"], "digits is 10001"),
        (["--facts", "10", "--digits", "x"], "digits is x"),
        (["--dim", "0"], "dim is 0"),
        (["--dim", "10", "--rank-ratio", "0"], "rank_ratio is 0"),
        (["--dim", "10", "--dim-out", "12", "--rank-ratio", "1.5"], "rank_ratio is 1.5"),
        (["--facts", "10", "--margin", "nan"], "margin is nan"),
        (["--facts", "10", "--competitors", "0"], "competitors is 0"),
        (["--facts", "10", "--rank-ratio", "2"], "rank_ratio is 2"),
        (["--facts", "10", "--dim-out", "5"], "--dim"),
        ([], "--facts"),
    ],
)
def test_bad_input_is_one_sentence_and_code_2(arguments: list[str], word: str) -> None:
    done = run("threshold", *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert word in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_numbers_need_no_torch_and_no_sympy() -> None:
    code = (
        "import sys; sys.argv = ['factcap', 'threshold', '--facts', '1000', '--json']\n"
        "from validate.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'matplotlib', 'joblib', 'pandas', 'sympy', 'scipy'} & set(sys.modules)\n"
        "print(sorted(heavy), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert json.loads(done.stdout)["facts"] == 1000
    assert done.stderr.strip() == "[]"


def test_the_smallest_size_is_not_called_the_largest_that_fits() -> None:
    # One fact fits; the numbers below are those of two facts, the fewest that compete.
    done = run("threshold", "--dim", "3", "--rank-ratio", "1e-300")
    assert done.returncode == 0, done.stderr
    assert "largest number of facts  1" in done.stdout
    assert "(the largest)" not in done.stdout
    assert "(the largest)" in run("threshold", "--dim", "3").stdout
