"""The uniform form of E log Z: its two ends, and Monte Carlo at finitely many competitors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import log_ndtr, logsumexp

from numerics.cone import statistical_dimension
from numerics.cone.gauss import float_level
from numerics.crossover import (
    log_gamma_partition,
    mean_log_probability,
    uniform_log_partition,
)
from replica.errors import InvalidInput


@pytest.mark.parametrize("exponent", [10, 50])
def test_small_v_gives_the_statistical_dimension(exponent: int) -> None:
    """-2 V E log Z -> delta up to O(1/T^2), so T^2 + 3 is right and T^2 + 2 would not be."""
    log_m = exponent * math.log(10)
    square = float_level(log_m) ** 2
    delta = statistical_dimension(10**exponent, 12).to_float_lossy()
    v = 1e-4 / square
    limit = -2 * v * uniform_log_partition(log_m, 1 - v, 800)
    assert abs(limit - delta) < 5 / square


@pytest.mark.parametrize(("q", "exponent"), [(0.2, 50), (0.5, 50), (0.7, 100)])
def test_fixed_v_gives_the_log_gamma_form(q: float, exponent: int) -> None:
    """Agreement up to the corrections in 1/b^2 (coefficients of order one there)."""
    log_m = exponent * math.log(10)
    difference = uniform_log_partition(log_m, q, 800) - log_gamma_partition(log_m, q)
    assert abs(difference) < 2.5 / (2 * log_m)


def test_ranges_of_the_two_regimes() -> None:
    """Measured at M = 10^50, V T^2 = 5, 1, 0.1: the log-Gamma form against the uniform one."""
    log_m = 50 * math.log(10)
    square = float_level(log_m) ** 2
    gaps = {}
    for scaled in (5.0, 1.0, 0.1):
        q = 1 - scaled / square
        gaps[scaled] = abs(log_gamma_partition(log_m, q) / uniform_log_partition(log_m, q) - 1)
    assert gaps[5.0] < 1e-3 < gaps[1.0] < 1e-2 < gaps[0.1]


def sample(m: int, q: float, draws: int, seed: int) -> tuple[float, float]:
    """Mean and standard error of log Z - log Z(uniform), the same omega_0 in both."""
    v = 1 - q
    rng = np.random.default_rng(seed)
    grid = np.linspace(-0.4, 5.0, 271)
    uniform = mean_log_probability(grid, math.log(m), q)
    lowest = 0.0
    far = np.linspace(-7 * math.sqrt(q), lowest, 200)
    weight = np.exp(-(far**2) / (2 * q)) / math.sqrt(2 * math.pi * q) * (far[1] - far[0])
    weight[[0, -1]] /= 2
    mean_far = m * (weight * log_ndtr((grid[:, None] - far[None, :]) / math.sqrt(v))).sum(axis=1)
    values = []
    for _ in range(draws):
        omega0 = math.sqrt(q) * rng.standard_normal()
        omega = math.sqrt(q) * rng.standard_normal(m)
        near = omega[omega > lowest]
        product = log_ndtr((grid[:, None] - near[None, :]) / math.sqrt(v)).sum(axis=1) + mean_far
        target = -((grid - omega0) ** 2) / (2 * v)
        values.append(logsumexp(target + product) - logsumexp(target + uniform))
    return float(np.mean(values)), float(np.std(values) / math.sqrt(draws))


@pytest.mark.parametrize("q", [0.5, 0.9])
def test_monte_carlo_in_the_crossover(q: float) -> None:
    """M = 1000, 250 draws, fixed seed: V T^2 is about 3 and 0.6.

    Band: 4.5 standard errors (false-alarm rate 7e-6) plus 2 % of |E log Z| for the fluctuations
    that the uniform form leaves out (relative order T^{-4}, T^2 about 5.7 here).
    """
    m = 1000
    mean, error = sample(m, q, 250, 11)
    size = abs(uniform_log_partition(math.log(m), q))
    assert abs(mean) < 4.5 * error + 0.02 * size
    if q > 0.8:  # power: the log-Gamma form is refused by the same data
        gap = log_gamma_partition(math.log(m), q) - uniform_log_partition(math.log(m), q)
        assert abs(mean - gap) > 4.5 * error + 0.02 * size


def test_refusals() -> None:
    for log_m, q in ((10.0, 0.0), (10.0, 1.0), (0.1, 0.5), (float("nan"), 0.5)):
        with pytest.raises(InvalidInput):
            uniform_log_partition(log_m, q)
