"""`factcap trained`: JSON keys, the table, bad input, no heavy imports."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from numerics.trained import predict
from tests.validate.test_cli_threshold import run
from validate.cli.trained import _with_error

QUANTITIES = ("accuracy", "loss", "norm_squared", "order_parameter_V")


def test_json() -> None:
    done = run("trained", "--dim", "10", "--facts", "40", "--ridge", "0.1", "--competitors", "5",
               "--accuracy", "0.02", "--seed", "3", "--json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    memory = predict(100, 40, 5, 0.1, accuracy=0.02, seed=3)
    for name in QUANTITIES:
        assert set(data[name]) == {"value", "stderr"}
        assert data[name]["value"] == pytest.approx(getattr(memory, name).value, rel=1e-12)
        assert 0 <= data[name]["stderr"] <= 0.02 * data[name]["value"]
    assert (data["dim"], data["parameters"], data["facts"], data["competitors"]) == (10, 100, 40, 5)
    assert data["loss_function"] == "cross_entropy"


def test_rectangular_logistic_and_default_competitors() -> None:
    done = run(
        "trained", "--dim", "5", "--dim-out", "20", "--facts", "2", "--ridge", "0.3", "--json"
    )
    data = json.loads(done.stdout)
    assert (data["parameters"], data["competitors"], data["dim_out"]) == (100, 1, 20)
    done = run("trained", "--dim", "10", "--facts", "2", "--ridge", "0.3", "--loss", "logistic",
               "--json")  # fmt: skip
    other = json.loads(done.stdout)
    assert other["norm_squared"] == data["norm_squared"]
    assert other["facts_drawn"] == 0


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "squared", "tail_average"])
def test_table_for_people(loss: str) -> None:
    done = run("trained", "--dim", "10", "--facts", "20", "--ridge", "0.1", "--loss", loss,
               "--competitors", "10", "--accuracy", "0.05")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "training accuracy" in done.stdout
    assert "||W||^2" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--dim", "0", "--facts", "10", "--ridge", "1"], "dim is 0"),
        (["--dim", "5", "--facts", "1", "--ridge", "1"], "facts is 1"),
        (["--dim", "5", "--facts", "10", "--ridge", "-1"], "ridge is -1"),
        (["--dim", "5", "--facts", "10", "--ridge", "nan"], "ridge is nan"),
        (["--dim", "5", "--facts", "10", "--ridge", "many"], "many"),
        (["--dim", "5", "--facts", "10"], "ridge"),
        (["--dim", "5", "--facts", "10", "--ridge", "1", "--loss", "banana"], "unknown loss"),
        (["--dim", "5", "--facts", "10", "--ridge", "1", "--fraction", "0.5"], "tail_average"),
        (["--dim", "5", "--facts", "5", "--ridge", "1", "--loss", "tail_average"], "less than one"),
        (["--dim", "5", "--facts", "10", "--ridge", "1", "--loss", "logistic"], "competitors is 9"),
        (["--dim", "5", "--facts", "10", "--ridge", "1", "--accuracy", "0"], "accuracy is 0"),
        (["--dim", "5", "--facts", "10", "--ridge", "1", "--seed", "-1"], "seed is -1"),
        (["--dim", "50", "--facts", "10", "--ridge", "0"], "below the capacity"),
        (["--dim", "5", "--facts", "10", "--ridge", "1e-300"], "between 1e-12 and 1e+12"),
        (["--dim", "5", "--facts", "1e300", "--ridge", "1"], "10^15"),
        (
            ["--dim", "5000", "--facts", "1e7", "--ridge", "1", "--loss", "hinge"],
            "competitors is about 1e+07",
        ),
    ],
)
def test_bad_input(arguments: list[str], word: str) -> None:
    done = run("trained", *arguments)
    assert done.returncode == 2, done.stdout + done.stderr
    assert word in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_the_memory_that_is_zero() -> None:
    done = run("trained", "--dim", "16", "--facts", "100", "--ridge", "0", "--loss",
               "tail_average", "--json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data["norm_squared"]["value"] == 0
    assert "W = 0" in data["method"]


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys\n"
        "from validate.cli import main\n"
        "sys.argv = 'factcap trained --dim 9 --facts 2 --ridge 1 --json'.split()\n"
        "try:\n    main()\nexcept SystemExit as done:\n    assert not done.code\n"
        "heavy = {'torch', 'matplotlib', 'joblib', 'pandas', 'jinja2'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_numbers_are_shown_to_their_error() -> None:
    assert _with_error(0.27408, 0.00011) == "0.27408 +- 0.00011"
    assert _with_error(12.0, 0.0) == "12"
    assert _with_error(1.5, 0.03) == "1.500 +- 0.030"
    assert _with_error(25657.1, 300.0) == "25657 +- 300"
