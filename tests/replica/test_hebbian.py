"""The Hebbian rule against simulated Hebbian memories."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
import sympy as sp
from scipy.special import ndtr

from replica.gaussian import GaussianAverage, plain
from replica.hebbian import HebbianRule, p, sigma
from replica.hebbian import d as dimension
from replica.symbols import M, z


def test_thresholds_follow_from_the_balance() -> None:
    rule = HebbianRule()
    assert rule.typical_threshold == sp.Rational(1, 2)
    assert rule.every_fact_threshold == sp.Rational(1, 8)
    equation = rule.derivation.results["dimension_every_fact"]
    assert equation.rhs == 8 * p * sp.log(p)


def test_pair_error_by_sampling() -> None:
    # two-sided at 4.9 standard errors: false alarm 1e-6
    draws = np.random.default_rng(5).standard_normal((400_000, 2))
    s = 0.8
    measured = np.mean(1 + s * draws[:, 0] < s * draws[:, 1])
    predicted = float(plain(HebbianRule().pair_error).subs(sigma, s))
    assert abs(measured - predicted) < 4.9 * sqrt(predicted * (1 - predicted) / 400_000)


@pytest.mark.parametrize(("d", "facts"), [(150, 1200), (100, 1000)])
def test_recall_of_real_hebbian_memories(d: int, facts: int) -> None:
    # statistical error of 4 memories about 0.008; 0.03 leaves room for the next order in 1/d
    recalled = []
    for seed in range(4):
        rng = np.random.default_rng((17, seed))
        e, u = rng.standard_normal((2, facts, d)) / sqrt(d)
        scores = (e @ (u.T @ e).T) @ u.T
        recalled.append(np.mean(scores.argmax(axis=1) == np.arange(facts)))

    def recall(average: GaussianAverage, values: dict[sp.Symbol, float]) -> float:
        assert average.body.exp == M
        argument = sp.lambdify(z, average.body.base.args[0].subs(values))
        nodes = np.linspace(-9, 9, 4001)
        weights = np.exp(-(nodes**2) / 2) / sqrt(2 * np.pi) * (nodes[1] - nodes[0])
        return float(np.sum(weights * ndtr(argument(nodes)) ** (facts - 1)))

    predicted = recall(HebbianRule().finite_size_recall, {p: facts, dimension: d})
    assert np.mean(recalled) == pytest.approx(predicted, abs=0.03)
    assert 0.1 < predicted < 0.95  # a regime where the test can fail
    # the leading order, without terms of order d/p, is visibly off at this size: the terms matter
    leading = recall(HebbianRule().typical_recall, {sigma: sqrt(facts) / d})
    assert leading > predicted + 0.03


def test_union_bound_holds() -> None:
    rule = HebbianRule(competitors=20)
    bound = float(plain(rule.expected_errors / p).subs(sigma, 0.4))
    draws = np.random.default_rng(8).standard_normal((100_000, 21))
    lost = np.mean(1 + 0.4 * draws[:, 0] < 0.4 * draws[:, 1:].max(axis=1))
    assert lost < bound * 1.05
    assert bound < 3 * lost
