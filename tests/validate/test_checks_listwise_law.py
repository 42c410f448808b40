"""The law of listwise recall at every size: against Cover, planar geometry, projections, instances.

Statistical tests use fixed seeds; each states its false-alarm rate.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize, special

from numerics.cone import intrinsic_volumes
from replica.errors import InvalidInput
from validate.checks.listwise import list_threshold, measure_listwise
from validate.checks.listwise_law import (
    conditional_law,
    half_facts,
    law_curve,
    margin_volumes,
    mean_dimension,
    measure_tail_projection,
    pooled_volumes,
    separable_probability,
)


def test_margin_zero_is_cover_and_its_half_point_is_two_n() -> None:
    """2^{1-p} sum_{i<N} binom(p-1, i) in rational arithmetic; 1/2 at p = 2 N exactly."""
    law = margin_volumes(0.0)
    for size in (1, 5, 16, 33):
        for p in (1, 3, size, 2 * size, 3 * size):
            count = Fraction(sum(math.comb(p - 1, i) for i in range(size)), 2 ** (p - 1))
            assert separable_probability(law, p, size) == pytest.approx(float(count), abs=1e-11)
        assert half_facts(law_curve(law, size)) == pytest.approx(2 * size, rel=1e-9)


@pytest.mark.parametrize("margin", [0.2, 1.0, 2.5])
def test_lines_and_planes(margin: float) -> None:
    """N = 1: all rows beyond the margin on one side, 2 Q(k)^p. N = 2: one row, P(|g| >= k); two
    rows of lengths r, s: the arcs of half-width acos(k/r), acos(k/s) overlap, by quadrature."""
    law = margin_volumes(margin)
    tail = special.ndtr(-margin)
    for p in (1, 2, 5):
        assert separable_probability(law, p, 1) == pytest.approx(2 * tail**p, rel=1e-10)
    assert separable_probability(law, 1, 2) == pytest.approx(math.exp(-(margin**2) / 2), rel=1e-10)
    u = (np.arange(2000) + 0.5) / 2000
    length = np.sqrt(margin**2 - 2 * np.log(u))  # given r >= k
    arc = np.arccos(margin / length)
    both = np.minimum(1.0, (arc[:, None] + arc) / math.pi).mean() * math.exp(-(margin**2))
    assert separable_probability(law, 2, 2) == pytest.approx(both, rel=1e-4)


@pytest.mark.parametrize("margin", ["0", "0.5", "1.7", "4"])
def test_mean_of_the_law_is_one_over_the_capacity(margin: str) -> None:
    """sum_k k v_k by quadrature of the Poisson law against the derived Gardner capacity."""
    law = margin_volumes(float(margin))
    assert law.sum() == pytest.approx(1.0, abs=1e-12)
    assert 1 / mean_dimension(law) == pytest.approx(list_threshold("margin", margin), rel=1e-9)


def test_one_averaged_competitor_has_the_intrinsic_volumes_of_recall() -> None:
    """Against certified v_k at M = 9: 20 000 draws, four standard errors of each share without
    integrating z_0 out (false alarm below 1e-3)."""
    found, error = pooled_volumes([measure_tail_projection(9, 1, 3, 0, 20_000)])
    exact = np.array([v.to_float_lossy() for v in intrinsic_volumes(9, digits=15).volumes])
    allowed = 4 * np.sqrt(exact * (1 - exact) / 20_000) + 1e-4
    assert (np.abs(found - exact) <= allowed).all()
    assert error < 0.005


def test_all_averaged_is_a_halfspace_through_the_origin() -> None:
    law = conditional_law(-np.sort(-np.random.default_rng(0).standard_normal((50, 6)), axis=1), 6)
    mean = np.random.default_rng(0).standard_normal((50, 6)).mean(axis=1)
    assert law.shape == (50, 2)
    assert law[:, 1] == pytest.approx(special.ndtr(mean))


def dimension(target: float, rivals: np.ndarray, averaged: int) -> int:
    """Dimension of the face hit by (target, rivals), by a general optimiser over (s, a)."""
    M = rivals.size

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        s, a = x[0], x[1:]
        gradient = np.concatenate([[s + target], a - rivals])
        value = ((target + s) ** 2 + ((rivals - a) ** 2).sum()) / 2
        return float(value), gradient

    constraints = [
        {
            "type": "eq",
            "fun": lambda x: x[0] - x[1:].sum(),
            "jac": lambda x: np.concatenate([[1.0], -np.ones(M)]),
        },
        {
            "type": "ineq",
            "fun": lambda x: x[0] / averaged - x[1:],
            "jac": lambda x: np.hstack([np.full((M, 1), 1 / averaged), -np.eye(M)]),
        },
    ]
    found = optimize.minimize(
        loss,
        np.full(M + 1, 0.1),
        jac=True,
        method="SLSQP",
        bounds=[(0, None)] * (M + 1),
        constraints=constraints,
        options={"ftol": 1e-14, "maxiter": 500},
    )
    s, a = found.x[0], found.x[1:]
    if s < 1e-5:
        return 0
    between = int(((a > 1e-5) & (a < s / averaged - 1e-5)).sum())
    return max(1, between)


@pytest.mark.parametrize("averaged", [1, 3, 5])
def test_law_given_the_competitors_is_that_of_a_quadratic_programme(averaged: int) -> None:
    """60 quantiles of z_0 projected one by one: shares within 1/60 a border of the pieces."""
    rivals = -np.sort(-np.random.default_rng(averaged).standard_normal(8))
    law = conditional_law(rivals[None], averaged)[0]
    grid = special.ndtri((np.arange(60) + 0.5) / 60)
    shares = np.bincount([dimension(z, rivals, averaged) for z in grid], minlength=law.size) / 60
    assert shares[: law.size] == pytest.approx(law, abs=2.5 / 60)
    assert law.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("ratio", [0.1, 0.5])
def test_many_competitors_give_the_halfspace(ratio: float) -> None:
    """M = 600 and 6000: delta approaches that of the margin kappa_r like 1/M."""
    margin = math.exp(-(special.ndtri(1 - ratio) ** 2) / 2) / math.sqrt(2 * math.pi) / ratio
    limit = mean_dimension(margin_volumes(margin))
    for M, samples in ((600, 6000), (6000, 1200)):
        volumes, error = pooled_volumes(
            [measure_tail_projection(M, round(ratio * M), 5, 0, samples)]
        )
        # 1.3/(r M) is what tail averages at M = 40 and 80 fall short by, and a margin for noise.
        assert abs(mean_dimension(volumes) / limit - 1) < 1.5 / (ratio * M) + 4 * error


@pytest.mark.parametrize(
    ("criterion", "parameter", "size", "competitors", "facts"),
    [("margin", "0.5", 6, 1, 6), ("margin", "2", 8, 1, 2), ("tail", "0.25", 8, 16, 3)],
)
def test_certified_instances_obey_the_law(
    criterion: str, parameter: str, size: int, competitors: int, facts: int
) -> None:
    """150 instances each, within four standard errors (false alarm below 2e-4 in all)."""
    law = margin_volumes(float(parameter)) if criterion == "margin" else None
    if law is None:
        averaged = round(float(parameter) * competitors)
        law = pooled_volumes([measure_tail_projection(competitors, averaged, 1, 0, 50_000)])[0]
    rate = separable_probability(law, facts, size)
    found = measure_listwise(
        criterion, parameter, size, facts, competitors, seed=11, first=0, count=150
    )
    assert 0.1 < rate < 0.9
    assert found["undecided"] == 0
    assert abs(found["separable"] - 150 * rate) < 4 * math.sqrt(150 * rate * (1 - rate))


def test_refusals() -> None:
    with pytest.raises(InvalidInput, match="between 0 and 10"):
        margin_volumes(-0.5)
    with pytest.raises(InvalidInput, match="1 to 4"):
        measure_tail_projection(4, 5, 0, 0, 10)
