"""One step of replica symmetry breaking: its limit, and its equations against differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sp

from replica.catalogue import model
from replica.code import to_python
from replica.errors import InvalidInput


@pytest.fixture(scope="module")
def functions() -> dict[str, Any]:
    entry = model("spherical", "halfspace")
    equations = dict(zip(("e0", "e1", "ex"), entry.one_step.saddle_point_equations, strict=True))
    space: dict[str, Any] = {}
    results = {"phi": entry.one_step.free_entropy, "flat": entry.free_entropy, **equations}
    exec(to_python(results), space)
    space["NODES"], space["REACH"] = 200, 9.0
    return space


def test_equal_overlaps_give_the_symmetric_free_entropy(functions: dict[str, Any]) -> None:
    point = {"gamma": 1.5, "margin": -0.4}
    flat = functions["flat"](q=0.4, **point)
    # q1 - q0 = 1e-9: the inner average is over a point
    value = functions["phi"](q0=0.4, q1=0.4 + 1e-9, block=0.3, **point)
    assert value == pytest.approx(flat, abs=1e-7)
    # block -> 1 integrates the increment out: symmetric with overlap q0
    merged = functions["phi"](q0=0.4, q1=0.7, block=1 - 1e-9, **point)
    assert merged == pytest.approx(flat, abs=1e-6)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_equations_are_the_derivatives(functions: dict[str, Any], seed: int) -> None:
    rng = np.random.default_rng(seed)
    q0 = rng.uniform(0.1, 0.4)
    point = {
        "q0": q0,
        "q1": q0 + rng.uniform(0.1, 0.4),
        "block": rng.uniform(0.2, 0.8),
        "gamma": rng.uniform(0.5, 3),
        "margin": rng.uniform(-0.8, 0.4),
    }
    step = 1e-4
    for name, variable, sign in (("e0", "q0", 1), ("e1", "q1", 1), ("ex", "block", 1)):
        ends = [functions["phi"](**{**point, variable: point[variable] + s}) for s in (step, -step)]
        derivative = (ends[0] - ends[1]) / (2 * step)
        assert functions[name](**point) == pytest.approx(sign * derivative, abs=2e-6)


def test_low_rank_prior_says_why_it_has_no_one_step_form() -> None:
    with pytest.raises(InvalidInput, match="spherical"):
        _ = model("low_rank", "halfspace").one_step.free_entropy
    assert sp.Symbol("q0") not in model("low_rank", "halfspace").free_entropy.free_symbols
