"""The README's walk-through, executed exactly as printed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from replica.catalogue import CRITERIA, model

README = Path(__file__).parents[2] / "README.md"
BLOCK = re.compile(
    r"<!-- adding-a-criterion:begin -->\s*```python\n(.*?)```\s*<!-- adding-a-criterion:end -->",
    re.DOTALL,
)


@pytest.fixture
def namespace() -> Iterator[dict[str, Any]]:
    known = set(CRITERIA)
    found = BLOCK.search(README.read_text(encoding="utf-8"))
    assert found, "README.md lacks the walk-through between its markers"
    source = found.group(1)
    assert len([line for line in source.splitlines() if line.strip()]) <= 30
    space: dict[str, Any] = {"__name__": "walk_through"}
    exec(compile(source, str(README), "exec", dont_inherit=True), space)
    yield space
    for name in set(CRITERIA) - known:
        del CRITERIA[name]
    model.cache_clear()


def test_walk_through_gives_capacity_row_and_simulation(namespace: dict[str, Any]) -> None:
    assert namespace["capacity"] == 1
    assert namespace["row"]["capacity"] == "1"
    assert namespace["row"]["criterion"] == "either_sign"
    # Cover for 2p points in 40 dimensions: P = .98, .50, .05 at p = 32, 40, 48 (40 draws each);
    # for a correct theory the bounds fail with probability 2e-4 together; the seed is fixed
    low, middle, high = (namespace["share"][p] for p in (32, 40, 48))
    assert low > 0.8
    assert 0.2 < middle < 0.9
    assert high < 0.4


def test_everything_else_follows_for_the_new_criterion(namespace: dict[str, Any]) -> None:
    derivation = model("spherical", "either_sign").derivation
    for key in ("free_entropy", "saddle_point", "stability", "capacity_equation", "critical_load"):
        assert key in derivation.results
    assert derivation.results["critical_load"] == 1
    functions: dict[str, Any] = {}
    exec(derivation.to_python(), functions)
    functions["NODES"], functions["REACH"] = 120, 9.0
    step = 1e-3
    ends = [functions["free_entropy"](gamma=0.5, q=0.4 + s) for s in (step, -step)]
    residual = functions["saddle_point_1"](gamma=0.5, q=0.4)
    assert residual == pytest.approx((ends[0] - ends[1]) / step, abs=1e-4)
