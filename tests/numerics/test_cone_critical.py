"""Thresholds decided with proof: ties, scans, rank, margin, the inverse problem."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numerics.cone import (
    critical_facts,
    critical_load,
    facts_per_parameter,
    failure_probability,
    least_dimension,
    rank_factor,
    statistical_dimension,
    success_probability,
)
from replica.errors import InvalidInput


def test_ties_are_exact() -> None:
    assert critical_facts(1) == 2  # 2 delta(1) = 1 = d^2 exactly
    for dim in (1, 2, 7, 1000):
        assert critical_facts(dim, competitors=1) == 2 * dim * dim
    assert critical_facts(5, competitors=2) == 30  # 30 * 5/6 = 25
    assert critical_facts(4, competitors=2) == 19  # 19 * 5/6 = 15.83, 20 * 5/6 > 16
    assert least_dimension(2 * 49, 1) == 7
    assert least_dimension(2 * 49 + 1, 1) == 8


def test_against_a_scan() -> None:
    """Every threshold up to d = 24, beside a linear scan over p with the floats of delta."""
    loads = [0.0, 0.0] + [p * statistical_dimension(p - 1).to_float_lossy() for p in range(2, 130)]
    for dim in range(2, 25):
        scan = max(p for p in range(2, 130) if loads[p] <= dim * dim)
        assert critical_facts(dim) == scan
        assert critical_facts(dim, dim_out=dim) == scan


@given(st.integers(2, 3000), st.integers(1, 3000))
@settings(max_examples=12, deadline=None)
def test_the_answer_is_the_largest_that_fits(d_in: int, d_out: int) -> None:
    weights = d_in * d_out
    p = critical_facts(d_in, dim_out=d_out)
    assert p == critical_facts(d_out, dim_out=d_in)
    if p > 2:
        assert p * statistical_dimension(p - 1, 25) < weights
    assert (p + 1) * statistical_dimension(p, 25) > weights
    fixed = critical_facts(d_in, dim_out=d_out, competitors=9)
    delta = statistical_dimension(9, 25)
    assert fixed * delta < weights
    assert (fixed + 1) * delta > weights


def test_large_dimensions() -> None:
    p = critical_facts(10**6)
    assert p == 26260995467
    assert p * statistical_dimension(p - 1, 30) < 10**12
    assert (p + 1) * statistical_dimension(p, 30) > 10**12


@pytest.mark.long
def test_astronomic_dimension() -> None:
    p = critical_facts(10**40)
    assert p * statistical_dimension(p - 1, 100) < 10**80
    assert (p + 1) * statistical_dimension(p, 100) > 10**80


def test_rank() -> None:
    # THEORY.md section 4: d = 20, rank 10 gives 79, rank 5 gives 60
    assert critical_facts(20, rank_ratio="0.5") == 79
    assert critical_facts(20, rank_ratio="0.25") == 60
    assert critical_facts(20, rank_ratio=1) == critical_facts(20)
    assert rank_factor(1) == 1
    # rectangular memories: either orientation, fewer facts than at full rank
    assert critical_facts(20, dim_out=30, rank_ratio="0.5") == 103
    assert critical_facts(30, dim_out=20, rank_ratio="0.5") == 103
    assert critical_facts(20, dim_out=30) == 119


@pytest.mark.parametrize(("ratio", "aspect"), [("1/2", "1/2"), ("9/10", "1/3"), ("1/100", "1/50")])
def test_rectangular_rank_factor_by_marchenko_pastur_quadrature(ratio: str, aspect: str) -> None:
    """I = int_cut^top x rho(x) dx with the density itself and a bisected cut, in mpmath."""
    with mp.workdps(30):
        c = mp.mpf(Fraction(aspect).numerator) / Fraction(aspect).denominator
        target = mp.mpf(Fraction(ratio).numerator) / Fraction(ratio).denominator
        bottom, top = (1 - mp.sqrt(c)) ** 2, (1 + mp.sqrt(c)) ** 2

        def above(cut: Any, power: int) -> Any:
            # x = top - u^2 makes the upper edge smooth
            def density(u: Any) -> Any:
                x = top - u * u
                return x**power * u * mp.sqrt(abs(x - bottom)) / (2 * mp.pi * c * x) * 2 * u

            return mp.quad(density, [0, mp.sqrt(top - cut)])

        cut = mp.findroot(
            lambda x: above(x, 0) - target, (bottom + 1e-9, top - 1e-9), solver="illinois"
        )
        expected = Fraction(mp.nstr(above(cut, 1), 25))
    ball = rank_factor(ratio, 20, aspect_ratio=aspect)
    assert abs(Fraction(ball.to_string(20)) - expected) < Fraction(1, 10**12)


@pytest.mark.parametrize("ratio", ["0.5", "0.25", "0.9", "0.001", "1e-8"])
def test_rank_factor_by_quadrature(ratio: str) -> None:
    """I = int_a^2 s^2 rho, with a found by bisecting int_a^2 rho = rank_ratio in mpmath."""
    with mp.workdps(45):
        target = mp.mpf(ratio)

        def mass(a: Any, power: int) -> Any:
            # s = 2 cos(x): the integrand is smooth at the edge
            return mp.quad(
                lambda x: (2 * mp.cos(x)) ** power * 4 * mp.sin(x) ** 2 / mp.pi, [0, mp.acos(a / 2)]
            )

        edge = mp.findroot(lambda a: mass(a, 0) - target, (mp.mpf("1e-9"), 2), solver="anderson")
        exact = Fraction(mp.nstr(mass(edge, 2), 40))
    ball = rank_factor(ratio, 25)
    lower, upper = ball.bounds
    slack = exact * Fraction(1, 10**28)
    assert lower - slack <= exact <= upper + slack
    assert upper - lower <= exact * Fraction(1, 10**24)


def test_margin() -> None:
    # THEORY.md section 6: d = 16, p = 45: the largest margin is 0.576
    assert critical_facts(16, margin="0.576") == 45
    assert critical_facts(16, margin=0) > critical_facts(16, margin="0.1")
    assert critical_facts(2, margin=50) == 1  # not even two facts fit
    assert critical_facts(2, margin=50, competitors=3) == 0


def test_load_and_capacity() -> None:
    assert facts_per_parameter(2, digits=30).contains(2)
    assert critical_load(1000, digits=6).to_string(4) == "0.8507"
    # THEORY.md section 4: 0.85 at p = 1000, 0.63 at p = 10^10
    assert critical_load(10**10, digits=6).to_string(2) == "0.63"
    product = critical_load(500, digits=20) / facts_per_parameter(500, digits=20)
    assert str(product).startswith("6.2146080984221917")  # log 500


@given(st.integers(2, 400))
@settings(max_examples=15, deadline=None)
def test_least_dimension_inverts(facts: int) -> None:
    dim = least_dimension(facts)
    assert critical_facts(dim) >= facts
    if dim > 1:
        assert critical_facts(dim - 1) < facts


def test_least_dimension_with_failure() -> None:
    for epsilon in ("0.5", "0.01", "1e-9"):
        dim = least_dimension(100, failure=epsilon)
        assert failure_probability(dim, 100) < Fraction(epsilon)
        assert failure_probability(dim - 1, 100) > Fraction(epsilon)
    assert least_dimension(100) == 22  # the shuffled capitals need 22 or 23 components
    assert least_dimension(8, 1, failure=Fraction(1, 2)) == 2  # Cover: exactly 1/2 at p = 2N


def test_half_point_is_the_threshold() -> None:
    """The success probability crosses 1/2 within one fact of p delta(p-1) = d^2."""
    for dim in (6, 10, 20, 40):
        p = critical_facts(dim)
        assert success_probability(dim, p - 1) > Fraction(1, 2)
        assert success_probability(dim, p + 2) < Fraction(1, 2)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: critical_facts(0), "dim is 0"),
        (lambda: critical_facts(5, dim_out=-1), "dim_out is -1"),
        (lambda: critical_facts(5, rank_ratio=0), "rank_ratio is 0"),
        (lambda: critical_facts(5, rank_ratio=1.5), "rank_ratio is 1.5"),
        (lambda: critical_facts(5, margin=float("inf")), "margin is inf"),
        (lambda: critical_facts(10**600), "10\\^1000"),
        (lambda: critical_load(1), "facts is 1"),
        (lambda: critical_load(10, digits=-3), "digits is -3"),
        (lambda: least_dimension(1), "facts is 1"),
        (lambda: least_dimension(9, failure=0), "failure is 0"),
        (lambda: least_dimension(9, failure="0.1", margin=1), "full rank"),
    ],
)
def test_bad_input(call: Any, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        call()


def test_low_rank_scales_the_critical_load() -> None:
    full, half = critical_load(1000), critical_load(1000, rank_ratio="0.5")
    assert (full * rank_factor("0.5")).overlaps(half)
    flat = critical_load(1000, rank_ratio="0.5", aspect_ratio="0.5")
    assert (full * rank_factor("0.5", aspect_ratio="0.5")).overlaps(flat)
