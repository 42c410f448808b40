"""The tail average at many facts: W = 0, its border, the capacity at ridge 0."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from numerics.trained import best_ridge, predict, score_laws
from numerics.trained.losses.tail_average import TailAverage
from numerics.trained.population import draw_population
from numerics.trained.vanishing import kink_share
from replica.errors import InvalidInput


@pytest.mark.parametrize("ridge", [0.0, 0.05, 10.0])
def test_no_memory_at_many_facts(ridge: float) -> None:
    memory = predict(25, 100, 6, ridge, "tail_average", fraction=1 / 3)
    assert (memory.norm_squared.value, memory.order_parameter_V.value) == (0.0, 0.0)
    assert (memory.loss.value, memory.accuracy.value) == (1.0, 0.0)
    assert "W = 0" in memory.method


def _direct(size: int, facts: int, rng: np.random.Generator) -> tuple[float, float]:
    """(||W||^2, loss) of M = 6, r M = 2, ridge 0.05 as a quadratic programme over all pairs."""
    clarabel = pytest.importorskip("clarabel", reason="needs the development extra")
    from scipy import sparse

    pairs = list(itertools.combinations(range(1, 7), 2))
    lead = np.zeros((len(pairs), 7))
    for row, pair in zip(lead, pairs, strict=True):
        row[0], row[list(pair)] = 1.0, -0.5
    table = rng.standard_normal((facts, 7, size))
    rows = np.einsum("ij,pjn->pin", lead, table).reshape(-1, size)
    slack = sparse.kron(sparse.eye(facts), np.ones((len(pairs), 1)))
    constraints = sparse.vstack(
        [
            sparse.hstack([-rows, -slack]),
            sparse.hstack([sparse.csc_matrix((facts, size)), -sparse.eye(facts)]),
        ]
    ).tocsc()
    bound = np.concatenate([-np.ones(len(rows)), np.zeros(facts)])
    penalty = sparse.block_diag([0.05 * size * sparse.eye(size), sparse.csc_matrix((facts, facts))])
    cost = np.concatenate([np.zeros(size), np.ones(facts)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cones = [clarabel.NonnegativeConeT(len(bound))]
    solved = clarabel.DefaultSolver(
        penalty.tocsc(), cost, constraints, bound, cones, settings
    ).solve()
    x = np.array(solved.x)
    return float(x[:size] @ x[:size]), float(x[size:].mean())


def test_against_a_quadratic_programme() -> None:
    """W = 0 above the border, which lies at 1.617 here; below it norm and loss, deviations O(1/N):

    six instances, ten standard errors (Student, 5 degrees of freedom) and 4/N.
    """
    rng = np.random.default_rng(21)
    norm, loss = _direct(25, 100, rng)
    assert norm < 1e-6
    assert loss == pytest.approx(1.0, abs=1e-6)
    found = np.array([_direct(60, 36, rng) for _ in range(6)])
    memory = predict(60, 36, 6, 0.05, "tail_average", 0.02, fraction=1 / 3)
    error = found.std(axis=0, ddof=1) / np.sqrt(6)
    for column, value in enumerate((memory.norm_squared.value, memory.loss.value)):
        mean = found[:, column].mean()
        assert abs(mean - value) < 10 * error[column] + 4 / 60 * abs(mean)
    assert memory.norm_squared.value > 0.3


def test_the_norm_vanishes_at_the_border() -> None:
    """The fixed point, which knows nothing of the border, ends there: Q falls to 0 towards it."""
    border = 1 / float(np.mean(kink_share(TailAverage(1 / 3), draw_population(6, 256, 3))))
    norms = [
        predict(
            1000, round(1000 * border * x), 6, 0.05, "tail_average", 0.05, fraction=1 / 3
        ).norm_squared.value
        for x in (0.9, 0.97, 1.03)
    ]
    assert norms[0] > 1.5 * norms[1] > 0
    assert norms[2] == 0


def test_ridge_zero_has_its_own_capacity() -> None:
    with pytest.raises(InvalidInput, match=r"below the capacity 0\.7.* of the tail_average"):
        predict(100, 60, 12, 0.0, "tail_average", 0.05, fraction=0.5)
    assert predict(100, 110, 12, 0.0, "tail_average", 0.05, fraction=0.5).norm_squared.value > 0


def test_one_population_two_fractions() -> None:
    population = draw_population(8, 16, 0)
    first = population.averages(TailAverage(0.25), 1.0, 1.0).loss
    second = population.averages(TailAverage(0.75), 1.0, 1.0).loss
    assert np.array_equal(
        second, draw_population(8, 16, 0).averages(TailAverage(0.75), 1.0, 1.0).loss
    )
    assert not np.allclose(first, second)


def test_one_sentence() -> None:
    for ridge in (1e-300, 1e300):
        with pytest.raises(InvalidInput, match="between 1e-12 and"):
            predict(100, 50, 1, ridge)
    with pytest.raises(InvalidInput, match="W = 0"):
        best_ridge(25, 100, 6, "tail_average", fraction=1 / 3)
    with pytest.raises(InvalidInput, match="W = 0"):
        score_laws(25, 100, 6, 0.1, "tail_average", fraction=1 / 3)


def test_near_capacity_by_convolution() -> None:
    """Q = 1332 and V = 185: against 8192 sampled facts, 4.5 standard errors."""
    exact = predict(256, 60, 59, 1e-4)
    assert exact.method == "convolution"
    sampled = predict(256, 60, 59, 1e-4, accuracy=0.2, method="population", seed=1)
    gap = abs(exact.norm_squared.value - sampled.norm_squared.value)
    assert gap < 4.5 * sampled.norm_squared.stderr
