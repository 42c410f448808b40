"""Speed of one point (p, M, lambda) of the trained memory, processor seconds, one thread.

    pytest tests/bench/test_trained_bench.py -o addopts="-q --strict-markers" --benchmark-only -s

Targets on two cores: 0.3 % within 5 s at M = 100 and 30 s at M = 1000. The convolution (the default
for cross-entropy) and the population (every other loss) are timed apart.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from numerics.trained import predict

pytestmark = pytest.mark.benchmark(timer=time.process_time)

CASES = [
    (256, 90, 89, 0.01, "cross_entropy", "auto", 5.0),
    (256, 90, 89, 0.01, "cross_entropy", "population", 15.0),
    (5000, 1000, 999, 0.01, "cross_entropy", "auto", 30.0),
    (5000, 1000, 999, 0.01, "cross_entropy", "population", 60.0),
    (256, 90, 89, 0.1, "squared_hinge", "auto", 15.0),
]


@pytest.mark.parametrize(
    ("parameters", "facts", "competitors", "ridge", "loss", "method", "most"), CASES
)
def test_one_point(
    benchmark: Any,
    parameters: int,
    facts: int,
    competitors: int,
    ridge: float,
    loss: str,
    method: str,
    most: float,
) -> None:
    memory = benchmark.pedantic(
        predict,
        args=(parameters, facts, competitors, ridge, loss),
        kwargs={"accuracy": 0.003, "method": method},
        rounds=1,
    )
    assert memory.norm_squared.stderr <= 0.003 * memory.norm_squared.value
    assert benchmark.stats.stats.mean < most
    benchmark.extra_info["target_s"] = most


@pytest.mark.parametrize(
    ("parameters", "facts", "competitors", "ridge"),
    [(256, 90, 89, 0.01), (5000, 1000, 999, 0.01)],
)
def test_convolution_against_sampling(
    benchmark: Any, parameters: int, facts: int, competitors: int, ridge: float
) -> None:
    """At a tenth of the error: the population's cost grows, the convolution's does not."""
    point = (parameters, facts, competitors, ridge)
    benchmark.pedantic(predict, args=point, kwargs={"accuracy": 0.003}, rounds=1)
    start = time.process_time()
    predict(*point, accuracy=0.003, method="population")
    sampled = time.process_time() - start
    benchmark.extra_info["population_s"] = sampled
    assert benchmark.stats.stats.mean < 5.0 * sampled
