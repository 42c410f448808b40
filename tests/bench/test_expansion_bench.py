"""Expansions: order 6 under 1 s, order 20 under 60 s, each from scratch."""

from __future__ import annotations

from typing import Any

import pytest

from replica.expansion import cone
from replica.wick import saddle


def _derive(order: int) -> list[Any]:
    saddle.cache_clear()
    return list(cone.statistical_dimension(order + 1))


def test_order_6(benchmark: Any) -> None:
    result = benchmark.pedantic(_derive, args=(6,), rounds=3)
    assert len(result) == 7
    assert benchmark.stats.stats.min < 1.0


@pytest.mark.long
def test_order_20(benchmark: Any) -> None:
    result = benchmark.pedantic(_derive, args=(20,), rounds=1)
    assert len(result) == 21
    assert benchmark.stats.stats.min < 60.0
