"""Monte Carlo estimates: coverage, control variates, and their separation from proved numbers."""

from __future__ import annotations

import json
import operator

import numpy as np
import pytest
from scipy import stats

from numerics.balls import Certified
from numerics.estimate import (
    MonteCarloEstimate,
    check_seed,
    controlled_mean,
    samples_for,
)
from replica.errors import InvalidInput

ESTIMATE = MonteCarloEstimate(0.5, 0.01, 100, 0)


@pytest.mark.parametrize(
    "operation",
    [operator.add, operator.sub, operator.mul, operator.truediv, operator.lt, operator.ge],
)
def test_arithmetic_with_proved_numbers_is_refused_both_ways(operation: object) -> None:
    assert callable(operation)
    for left, right in ((ESTIMATE, Certified(1)), (Certified(1), ESTIMATE), (ESTIMATE, ESTIMATE)):
        with pytest.raises(TypeError):
            operation(left, right)
    with pytest.raises(TypeError, match="silently"):
        float(ESTIMATE)


def test_interval_covers_as_often_as_it_says() -> None:
    # 12000 experiments of 12 normal draws; two-sided binomial test, false alarm 1e-6
    rng = np.random.default_rng(7)
    data = rng.standard_normal((12_000, 12))
    inside = 0
    for row in data:
        estimate = MonteCarloEstimate(
            float(row.mean()), float(row.std(ddof=1) / np.sqrt(12)), 12, 7
        )
        low, high = estimate.interval(0.9)
        inside += low <= 0.0 <= high
    assert stats.binomtest(inside, 12_000, 0.9).pvalue > 1e-6
    # a normal quantile instead of Student's would be noticed: it covers 87.2 % here
    assert stats.binomtest(inside, 12_000, 0.872).pvalue < 1e-6


def test_controlled_mean_is_unbiased_and_states_its_error() -> None:
    # 400 repetitions; chi-squared of the standardised means, false alarm 1e-6 on either side
    rng = np.random.default_rng(11)
    scores = []
    for _ in range(400):
        z = rng.standard_normal((120, 2))
        target = np.exp(0.5 * z[:, 0]) + 0.3 * z[:, 1] ** 3
        controls = np.stack([z[:, 0], z[:, 1], z[:, 0] ** 2 - 1, z[:, 1] ** 2 - 1], axis=1)
        result = controlled_mean(target, controls)
        scores.append((result.value - np.exp(0.125)) / result.stderr)
    total = float(np.sum(np.square(scores)))
    # heavier tails than normal are allowed for by 15 % on the upper side
    assert stats.chi2(400).ppf(1e-6) < total < 1.15 * stats.chi2(400).isf(1e-6)
    assert abs(np.mean(scores)) * np.sqrt(400) < 5


def test_a_control_with_the_wrong_mean_is_noticed() -> None:
    rng = np.random.default_rng(3)
    z = rng.standard_normal(20_000)
    good = controlled_mean(z + 0.1 * z**2, z[:, None])
    bad = controlled_mean(z + 0.1 * z**2, (z + 0.05)[:, None])
    assert abs(good.value - 0.1) < 5 * good.stderr
    assert abs(bad.value - 0.1) > 5 * bad.stderr


def test_bad_input_is_refused_in_sentences() -> None:
    with pytest.raises(InvalidInput, match="whole number >= 0"):
        check_seed(-1)
    with pytest.raises(InvalidInput, match="whole number >= 0"):
        check_seed(True)
    assert check_seed(0) == 0
    with pytest.raises(InvalidInput, match="not finite"):
        MonteCarloEstimate(float("nan"), 1.0, 10, 0)
    with pytest.raises(InvalidInput, match="at least 2"):
        MonteCarloEstimate(1.0, 1.0, 1, 0)
    with pytest.raises(InvalidInput, match="strictly between"):
        ESTIMATE.interval(1.0)
    with pytest.raises(InvalidInput, match="too few"):
        controlled_mean(np.ones(20), np.ones((20, 2)))
    with pytest.raises(InvalidInput, match="positive number"):
        samples_for(ESTIMATE, 0.0, 1000)
    with pytest.raises(InvalidInput, match="at most 1000"):
        samples_for(ESTIMATE, 1e-5, 1000)


def test_json_and_printing() -> None:
    data = json.loads(json.dumps(ESTIMATE.to_json()))
    assert MonteCarloEstimate(**data) == ESTIMATE
    assert "radius" not in data  # the key of a proved number
    assert str(ESTIMATE) == "0.5 +- 0.01 (Monte Carlo, 100 samples, seed 0)"
