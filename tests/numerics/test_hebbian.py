"""Hebbian recall: mpmath, the compiled formula, simulations, and the two limits of the load."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
import sympy as sp
from scipy import special

from numerics.balls import Certified, bits_for, working_precision
from numerics.certify import certify
from numerics.hebbian import (
    failure_ball,
    hebbian_critical_facts,
    hebbian_finite_size_recall,
    hebbian_load,
    hebbian_recall,
    typical_failure,
    typical_recall,
)
from replica.errors import InvalidInput
from replica.expansion import derive_expansion
from replica.hebbian import sigma


@pytest.mark.parametrize("competitors", [1, 2, 9, 60, 10**10])
@pytest.mark.parametrize("square", [Fraction(1, 10), Fraction(3), Fraction(40)])
def test_fast_path_equals_the_compiled_formula(competitors: int, square: Fraction) -> None:
    with working_precision(bits_for(22)):
        fast = Certified(failure_ball(square, competitors))
    root = sp.sqrt(sp.Rational(square.numerator, square.denominator))
    compiled = certify(typical_failure(competitors), 20, {sigma: 1 / root}, real=True)
    assert fast.overlaps(compiled)
    assert fast.digits >= 18


def test_one_and_two_competitors_in_closed_form() -> None:
    values = {sigma: sp.Integer(1)}
    one = certify(sp.erfc(-sp.Rational(1, 2)) / 2, 30)  # Phi(1/sqrt 2)
    assert certify(typical_recall(1), 30, values, real=True).overlaps(one)
    assert hebbian_recall(1, 2, 2, digits=20).typical < hebbian_recall(1, 2, 1, digits=20).typical


@pytest.mark.parametrize(("dim", "facts"), [(8, 20), (20, 64), (30, 1000), (200, 5000)])
def test_recall_against_mpmath(dim: int, facts: int) -> None:
    with mpmath.workdps(40):
        ratio = mpmath.sqrt(mpmath.mpf(dim) ** 2 / facts)
        points = [-14, -8, -4, -2, 0, 1, 2, 3, 4, 6, 10, 16]
        lost = mpmath.quad(
            lambda z: (
                mpmath.npdf(z) * -mpmath.expm1((facts - 1) * mpmath.log(mpmath.ncdf(ratio + z)))
            ),
            points,
        )
        recall = hebbian_recall(dim, facts, digits=18)
        assert abs(mpmath.mpf(recall.failure.value) / lost - 1) < mpmath.mpf(10) ** -17
        every = (1 - lost) ** facts
        assert abs(mpmath.mpf(recall.every_independent.value) / every - 1) < mpmath.mpf(10) ** -14


def test_simulated_memory_approaches_the_formula_as_d_grows() -> None:
    """Gaussian problem, reduced exactly to three numbers a fact; N = d^2 weights, p = N/8, M = 40.

    W without the fact has norm sqrt(p-1) chi_N; the fact's matrix has a component g along it and
    chi^2_{N-1} beside. Means over 10^5 draws at two sizes: the distance to the formula must fall,
    and vanish at the larger size within 5 standard errors plus 1/d.
    """
    rng = np.random.default_rng(2)
    distance = []
    for dim in (6, 200):
        size = dim**2
        facts = size // 8
        norm = np.sqrt((facts - 1) * rng.chisquare(size, 100_000))
        along, beside = rng.standard_normal(100_000), rng.chisquare(size - 1, 100_000)
        signal = norm * along + along**2 + beside
        length = np.sqrt((norm + along) ** 2 + beside)
        recalled = np.exp(40 * special.log_ndtr(signal / length))
        formula = hebbian_recall(dim, facts, 40).typical.to_float_lossy()
        distance.append(abs(recalled.mean() - formula))
        error = recalled.std() / np.sqrt(100_000)
    assert distance[1] < 5 * error + 0.2 / 200
    assert distance[1] < distance[0]
    assert distance[0] > 5 * error  # finite d is visible at d = 6, so the test can fail


def test_loads_fall_to_one_half_and_one_eighth() -> None:
    for every, limit in ((False, Fraction(1, 2)), (True, Fraction(1, 8))):
        loads = [
            hebbian_load(p, every=every, digits=10) for p in ("1e3", "1e10", "1e100", "1e1000")
        ]
        excess = [abs(load - limit) for load in loads]
        assert all(x > y for x, y in pairwise(excess))
        assert excess[-1] < limit / 500


def test_loads_against_their_expansions() -> None:
    """alpha in 1/L and log L from `replica`, at p = 10^1000: error below the last terms."""
    for name, every, order in (("hebbian_typical", False, 2), ("hebbian_all", True, 1)):
        derived = derive_expansion(name, order)
        size = mpmath.log(10) * 1000
        total, last = mpmath.mpf(0), mpmath.mpf(0)
        for term in derived.extra["terms"]:
            value = mpmath.mpf(sp.N(sp.sympify(term["coefficient"]), 30))
            value *= size ** sp.Rational(term["power_of_L"])
            value *= mpmath.log(size) ** int(term["power_of_ell"])
            total += value
            if sp.Rational(term["power_of_L"]) <= -order:
                last += abs(value)
        load = mpmath.mpf(hebbian_load("1e1000", every=every, digits=12).value)
        assert abs(load - total) < last
        assert abs(load - total) > mpmath.mpf(10) ** -11  # truncated: the comparison has a limit


def test_finite_size_recall_against_a_simulated_memory() -> None:
    """Original problem, Gaussian embeddings, d = 24, p = 60: 4000 memories, 5 standard errors.

    The O(1/d) law is off by O(1/d^2), allowed with a factor 20; the leading law is farther away.
    """
    dim, facts, runs = 24, 60, 4000
    rng = np.random.default_rng(14)
    rates = []
    for _ in range(runs):
        outputs, inputs = rng.standard_normal((2, facts, dim)) / np.sqrt(dim)
        image = (outputs.T @ inputs) @ inputs[0]
        rates.append(float(outputs[0] @ image > np.max(outputs[1:] @ image)))
    formula = hebbian_finite_size_recall(dim, facts, 10).to_float_lossy()
    error = np.std(rates) / np.sqrt(runs)
    assert abs(np.mean(rates) - formula) < 5 * error + 20 / dim**2
    leading = hebbian_recall(dim, facts, digits=10).typical.to_float_lossy()
    assert abs(np.mean(rates) - leading) > 5 * error + 20 / dim**2


def test_load_is_where_recall_is_one_half() -> None:
    # independent bisection in floats on the plain double-precision integral
    z = np.linspace(-10, 10, 4001)
    weight = np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi) * (z[1] - z[0])
    for every in (False, True):
        load = hebbian_load(500, every=every, digits=12).to_float_lossy()
        ratio = np.sqrt(np.log(500) / load)
        recall = float(np.sum(weight * np.exp(499 * special.log_ndtr(ratio + z))))
        assert abs((recall**500 if every else recall) - 0.5) < 1e-9


def test_critical_facts_are_decided_at_the_edge() -> None:
    for every in (False, True):
        count = hebbian_critical_facts(20, every=every)
        pair = [hebbian_recall(20, p) for p in (count, count + 1)]
        last, next_ = (r.every_independent if every else r.typical for r in pair)
        assert last >= Fraction(1, 2)
        assert next_ < Fraction(1, 2)


def test_union_bound_lies_below_and_meets_independence_where_failures_are_rare() -> None:
    rare = hebbian_recall(60, 40)
    assert rare.every_lower_bound < rare.every_independent
    gap = rare.every_independent - rare.every_lower_bound
    assert gap < (rare.failure * 40) ** 2


def test_bad_input() -> None:
    with pytest.raises(InvalidInput, match="facts"):
        hebbian_recall(10, 1)
    with pytest.raises(InvalidInput, match="dim"):
        hebbian_recall(0, 10)
    with pytest.raises(InvalidInput, match="chance alone"):
        hebbian_load(10, "0.05")
    with pytest.raises(InvalidInput, match="strictly between"):
        hebbian_load(10, 1)
    with pytest.raises(InvalidInput, match="exact"):
        hebbian_load(10, 0.5)
