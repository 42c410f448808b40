"""Success probability: Cover's formula, the table of THEORY.md, convolution, tails, order."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import acb, acb_poly, arb, arb_poly
from hypothesis import given, settings
from hypothesis import strategies as st

from numerics.balls import working_precision
from numerics.cone import (
    critical_facts,
    failure_probability,
    intrinsic_volumes,
    success,
    success_probability,
)
from numerics.cone.success import exact_success
from numerics.cone.volumes import volume_balls
from replica.errors import InvalidInput

TABLE = {  # THEORY.md section 4
    10: {26: ".9895", 28: ".8978", 29: ".7804", 31: ".4299", 32: ".2632", 34: ".0649"},
    20: {78: ".9963", 83: ".8744", 87: ".4889", 91: ".1221", 96: ".0056"},
    40: {248: ".9898", 261: ".5028", 274: ".0130"},
}


@pytest.mark.parametrize(
    ("dim", "facts", "text"), [(d, p, t) for d, row in TABLE.items() for p, t in row.items()]
)
def test_probability_table(dim: int, facts: int, text: str) -> None:
    probability = success_probability(dim, facts, digits=8)
    low, high = probability.bounds
    assert abs(low - Fraction(text)) <= Fraction(1, 20000)
    assert high - low < Fraction(1, 10**8)


def cover(parameters: int, facts: int) -> Fraction:
    """2^{1-p} sum_{i<N} binom(p-1, i), exactly."""
    return Fraction(sum(math.comb(facts - 1, i) for i in range(parameters)), 2 ** (facts - 1))


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 250))
@settings(max_examples=60, deadline=None)
def test_cover(d_in: int, d_out: int, facts: int) -> None:
    exact = cover(d_in * d_out, facts)
    probability = success_probability(d_in, facts, 1, dim_out=d_out, digits=12)
    failure = failure_probability(d_in, facts, 1, dim_out=d_out, digits=12)
    for ball, value in ((probability, exact), (failure, 1 - exact)):
        low, high = ball.bounds
        assert low <= value <= high
        assert high - low <= value * Fraction(1, 10**11)  # relative, however small


def by_convolution(parameters: int, facts: int, competitors: int) -> float:
    """2 sum_{j odd} P(K_tot = N - j) with the law of K_tot from repeated np.convolve."""
    law = np.array([v.to_float_lossy() for v in intrinsic_volumes(competitors, 18)])
    total = np.ones(1)
    for _ in range(facts):
        total = np.convolve(total, law)
    wanted = range(parameters - 1, -1, -2)
    return 2.0 * float(sum(total[n] for n in wanted if n < len(total)))


@given(st.integers(2, 6), st.integers(2, 40), st.integers(1, 25))
@settings(max_examples=40, deadline=None)
def test_against_plain_convolution(dim: int, facts: int, competitors: int) -> None:
    value = success_probability(dim, facts, competitors, digits=14).to_float_lossy()
    assert value == pytest.approx(by_convolution(dim * dim, facts, competitors), abs=1e-12)


def test_tiny_probability_against_exact_power() -> None:
    """d = 10, p = 100: 4.88e-94, to 30 relative digits, beside the power of the polynomial."""
    value = success_probability(10, 100, digits=30)
    volumes = intrinsic_volumes(99, 140)
    with working_precision(700):
        power = arb_poly([v.ball for v in volumes][:100])
        result = arb_poly([1])
        for bit in bin(100)[2:]:
            result = (result * result).truncate(100)
            if bit == "1":
                result = (result * power).truncate(100)
        exact = 2 * sum((result[n] for n in range(99, -1, -2)), arb(0))
        assert value.ball.overlaps(exact)
    assert value.digits >= 30


@pytest.mark.parametrize("facts", [7850, 7950, 8050])
def test_skipped_angles_change_nothing(facts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """d = 300: the short cut is taken, and agrees with the sum over every angle."""
    kept = []
    original = success._relevant_angles

    def spy(*arguments: Any) -> Any:
        found = original(*arguments)
        kept.append((found[0], arguments[2] // 2))
        return found

    monkeypatch.setattr(success, "_relevant_angles", spy)
    monkeypatch.setattr(success, "_ALL_NODES", 10)
    short = success_probability(300, facts, digits=10)
    assert kept
    assert all(used < everything / 2 for used, everything in kept)
    monkeypatch.setattr(success, "_ALL_NODES", 10**9)
    whole = success_probability(300, facts, digits=14)
    assert short.overlaps(whole)
    assert short.digits >= 10
    both = failure_probability(300, facts, digits=14)
    assert (whole + both).contains(1)


def test_bound_on_skipped_angles_exceeds_the_integrand() -> None:
    """On both sides of the threshold, at angles between the mesh points."""
    for weights in (90_000 - 400, 90_000 + 400):
        found = volume_balls(7949, 20)
        law = success._Law(found.balls, found.cut, 7950, weights)
        below = weights < 90_000
        with working_precision(120):
            radius = arb(success._saddle(law, below))
            last, bound = success._relevant_angles(law, radius, 10**6, 30.0)
            assert last < 10**5
            polynomial = acb_poly(list(found.balls))
            peak = polynomial(acb(radius)).real
            for l in range(last, 5 * 10**5, 9973):
                angle = arb(2 * l) / 10**6
                value = polynomial(radius * acb(angle.cos_pi(), angle.sin_pi()))
                assert (abs(value) / peak) ** 7950 < bound


def test_astronomic_sizes_cost_no_more() -> None:
    """d = 10^6 and 2.6e10 facts, at the threshold: close to one half, decided by parity sums."""
    facts = critical_facts(10**6)
    value = success_probability(10**6, facts, digits=8)
    assert abs(value - Fraction(1, 2)) < Fraction(1, 1000)
    assert value.digits >= 8


@given(st.integers(2, 12), st.integers(2, 60))
@settings(max_examples=30, deadline=None)
def test_monotone(dim: int, facts: int) -> None:
    """Compared on the smaller of success and failure, which has relative accuracy."""
    if success_probability(dim, facts, digits=10) < Fraction(1, 2):
        here = success_probability(dim, facts, digits=10)
        assert success_probability(dim, facts + 1, digits=10) < here
        assert success_probability(dim, facts, dim_out=dim + 1, digits=10) > here
        return
    here = failure_probability(dim, facts, digits=10)
    if here != 0:
        assert failure_probability(dim, facts + 1, digits=10) > here
        assert failure_probability(dim, facts, dim_out=dim + 1, digits=10) < here


def test_two_competitors_are_rational() -> None:
    for weights, facts in ((4, 4), (9, 11), (25, 30)):
        exact = exact_success(weights, facts, 2)
        assert success_probability(weights, facts, 2, dim_out=1, digits=20).contains(exact)
        assert exact_success(weights, facts, 1) == cover(weights, facts)


def test_exactly_certain_up_to_the_number_of_weights() -> None:
    assert success_probability(3, 9, 1) == 1
    assert success_probability(3, 10, 1) < 1
    assert failure_probability(4, 4, 4) == 0


def test_rectangular_is_the_product() -> None:
    a = success_probability(6, 30, dim_out=24, digits=12)
    assert a.overlaps(success_probability(12, 30, digits=12))


def test_law_of_the_total_by_sampling() -> None:
    """K_tot drawn by sorting Gaussians: the parity sum matches; false alarm 6e-7 (|z| > 5)."""
    rng = np.random.default_rng(11)
    samples, facts, rivals, dim = 20_000, 14, 13, 6
    z = rng.standard_normal((samples * facts, rivals + 1))
    tops = -np.sort(-z[:, 1:], axis=1)
    levels = (z[:, :1] + np.cumsum(tops, axis=1)) / np.arange(2, rivals + 2)
    total = (tops > levels).sum(axis=1).reshape(samples, facts).sum(axis=1)
    hit = (total < dim * dim) & ((dim * dim - total) % 2 == 1)
    exact = success_probability(dim, facts).to_float_lossy() / 2.0
    error = math.sqrt(exact * (1.0 - exact) / samples)
    assert abs(hit.mean() - exact) < 5.0 * error
    assert 0.05 < exact < 0.45  # the comparison is not vacuous


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((0, 10), "dim is 0"),
        ((3, 1), "facts is 1"),
        ((3, 10, 0), "competitors is 0"),
        ((10**200, 10), "at most 10\\^300"),
    ],
)
def test_bad_input(arguments: tuple[int, ...], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        success_probability(*arguments)
