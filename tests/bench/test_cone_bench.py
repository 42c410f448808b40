"""Speed of the cone's numbers beside a straightforward mpmath quadrature of the same k-sum.

    pytest tests/bench/test_cone_bench.py -o addopts="-q --strict-markers" --benchmark-only -s

Every timed call computes from nothing: all caches are emptied first. The baseline is what one
writes down from the formula: for each k both integrals by mpmath's tanh-sinh or Gauss-Legendre
quadrature at the wanted precision, on the real line where the integrand lives (the contour already
shifted to its saddle, so that it does not oscillate). Its whole sum at M = 10^6 and 50 digits takes
minutes, so a few k are timed and scaled by the number of terms, which is said in the output.
Both are single-threaded; processor time is measured, so that a busy machine does not matter.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import mpmath as mp
import pytest

from numerics.cone import (
    active,
    critical_facts,
    statistical_dimension,
    success_probability,
    volumes,
)
from numerics.counts import parse_counts
from numerics.tables import threshold_table

pytestmark = pytest.mark.benchmark(timer=time.process_time)


def forget() -> None:
    """Empty every cache, so that the next call pays for all of its work."""
    active._block.cache_clear()
    volumes.dimension_ball.cache_clear()


def fresh(function: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
    def call() -> Any:
        forget()
        return function(*arguments)

    return call


def baseline_term(competitors: int, k: int, digits: int) -> Any:
    """k v_k = k binom(M, k) A_k B_{k,M-k} by mpmath quadrature."""
    with mp.workdps(digits + 10):
        root = mp.sqrt((k + 1) / (2 * mp.pi))
        saddle = mp.findroot(
            lambda c: k * mp.npdf(c) / mp.ncdf(c) + (k + 1) * c, -mp.sqrt(mp.mpf(k)) / 2 - 0.2
        )

        def active_part(y: Any) -> Any:
            w = mp.mpc(saddle, y)
            return mp.re((mp.erfc(-w / mp.sqrt(2)) / 2) ** k * mp.exp((k + 1) * w * w / 2))

        def level_part(t: Any) -> Any:
            return mp.ncdf(t) ** (competitors - k) * mp.exp(-(k + 1) * t * t / 2)

        # the level is narrow: without break points around its mode mp.quad misses it (case 6)
        size = competitors - k
        low, high = mp.mpf(0), mp.mpf(10)
        for _ in range(40):
            mode = (low + high) / 2
            rising = size * mp.npdf(mode) / mp.ncdf(mode) > (k + 1) * mode
            low, high = (mode, high) if rising else (low, mode)
        width = 1 / mp.sqrt(k + 1 + (k + 1) * mode * max(mode, 1))
        reach = mp.sqrt(2 * mp.log(10) * (digits + 10))
        steps = [width * 2**i for i in range(30) if width * 2**i < reach]
        breaks = [mode - x for x in reversed(steps)] + [mode] + [mode + x for x in steps]
        a_k = 2 * root * mp.quad(active_part, mp.linspace(0, reach, 29))
        b_k = root * mp.quad(level_part, [-reach, *breaks[1:-1], reach + 1])
        return k * mp.binomial(competitors, k) * a_k * b_k


def baseline_seconds(competitors: int, digits: int, terms: int) -> tuple[float, dict[int, Any]]:
    """Estimated time of the whole baseline sum from three of its terms, and their values."""
    sample = (1, terms // 3, terms - 1)
    start = time.process_time()
    values = {k: baseline_term(competitors, k, digits) for k in sample}
    return (time.process_time() - start) * terms / len(sample), values


@pytest.mark.parametrize("digits", [15, 50])
def test_million_competitors_beside_mpmath(benchmark: Any, digits: int) -> None:
    ours = benchmark.pedantic(fresh(statistical_dimension, 10**6, digits), rounds=5)
    found = volumes.intrinsic_volumes(10**6, digits)
    seconds, values = baseline_seconds(10**6, digits, len(found))
    for k, value in values.items():
        # same numbers, as far as mp.quad gets with these break points: it would need still more
        # work for all digits, so the ratio is an underestimate
        with mp.workdps(digits + 10):
            difference = abs(mp.mpf(found[k].value) * k - value)
            assert difference < value / 10**7 + mp.mpf(10) ** (3 - digits)
    ratio = seconds / benchmark.stats.stats.median
    benchmark.extra_info.update(baseline_seconds=seconds, ratio=ratio)
    print(
        f"\ndelta(10^6), {digits} digits: {benchmark.stats.stats.median:.3f} s, mpmath about "
        f"{seconds:.0f} s for {len(found)} terms (3 timed), ratio {ratio:.0f}"
    )
    assert ours.digits >= digits
    if digits == 50:
        assert ratio > 1000
        assert benchmark.stats.stats.min < 0.2


def test_whole_small_sum_beside_mpmath(benchmark: Any) -> None:
    """All terms timed, nothing scaled: delta(20) to 30 digits."""
    ours = benchmark.pedantic(fresh(statistical_dimension, 20, 30), rounds=5)
    start = time.process_time()
    with mp.workdps(40):
        total = mp.fsum(baseline_term(20, k, 30) for k in range(1, 21))
        assert abs(total - mp.mpf(ours.value)) < mp.mpf(10) ** -28
    seconds = time.process_time() - start
    print(
        f"\ndelta(20), 30 digits: {benchmark.stats.stats.median:.4f} s, mpmath {seconds:.1f} s, "
        f"ratio {seconds / benchmark.stats.stats.median:.0f}"
    )


def test_googol_competitors(benchmark: Any) -> None:
    benchmark.pedantic(fresh(statistical_dimension, 10**100, 50), rounds=3)
    assert benchmark.stats.stats.min < 2.0


@pytest.mark.parametrize("digits", [15, 50, 200, 1000])
def test_cost_grows_slowly_with_digits(benchmark: Any, digits: int) -> None:
    ours = benchmark.pedantic(fresh(statistical_dimension, 1000, digits), rounds=1 + (digits < 300))
    assert ours.digits >= digits - 1
    print(f"\ndelta(1000), {digits} digits: {benchmark.stats.stats.min:.3f} s")


def test_success_near_threshold(benchmark: Any) -> None:
    benchmark.pedantic(fresh(success_probability, 100, 1200), rounds=5)
    assert benchmark.stats.stats.min < 1.0


def test_critical_facts(benchmark: Any) -> None:
    benchmark.pedantic(fresh(critical_facts, 1000), rounds=3)


def test_table_of_100_rows(benchmark: Any) -> None:
    facts = parse_counts("10,100,...,1e100")
    table = benchmark.pedantic(fresh(lambda: threshold_table(facts, digits=30)), rounds=1)
    assert len(table.cells) == 100
    assert benchmark.stats.stats.min < 20.0
