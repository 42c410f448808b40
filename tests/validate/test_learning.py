"""Learning rules: each against a second computation that shares no code with it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import optimize, special

from replica.errors import InvalidInput
from validate.decide import decide
from validate.problems import (
    KINDS,
    DecoupledProblem,
    GaussianProblem,
    OriginalProblem,
    Problem,
    make_problem,
)
from validate.solvers.adam import adam
from validate.solvers.hebbian import hebbian
from validate.solvers.low_rank import low_rank, rank_of
from validate.solvers.newton import newton_cg
from validate.solvers.pseudo_inverse import pseudo_inverse


def score_matrix(problem: Problem) -> np.ndarray:
    """All scores as a linear map of W, shape (p, M + 1, N), from unit matrices."""
    units = torch.eye(problem.parameters, dtype=torch.float64)
    shaped = units.view(-1, problem.dim_out, problem.dim_in)
    return problem.scores(shaped).permute(1, 2, 0).numpy()


def ridge_minimum(problem: Problem, decay: float) -> tuple[np.ndarray, float]:
    """Minimum of mean cross-entropy + decay/2 |W sqrt(N)|^2, by L-BFGS in NumPy; W and the loss."""
    S = score_matrix(problem) / math.sqrt(problem.parameters)
    p = problem.facts

    def value(w: np.ndarray) -> tuple[float, np.ndarray]:
        s = S @ w
        loss = (special.logsumexp(s, axis=1) - s[:, 0]).mean()
        weights = special.softmax(s, axis=1)
        weights[:, 0] -= 1.0
        gradient = np.einsum("pm,pmn->n", weights, S) / p
        return loss + 0.5 * decay * (w @ w), gradient + decay * w

    options = {"maxiter": 5000, "maxfun": 20000, "ftol": 1e-15, "gtol": 1e-11}
    start = np.zeros(problem.parameters)
    found = optimize.minimize(value, start, jac=True, method="L-BFGS-B", options=options)
    loss = value(found.x)[0] - 0.5 * decay * (found.x @ found.x)
    return found.x / math.sqrt(problem.parameters), float(loss)


@pytest.mark.parametrize("kind", KINDS)
def test_adam_reaches_the_unique_minimum(kind: str) -> None:
    problem = make_problem(kind, dim=6, facts=14, seed=0)
    learned = adam(
        problem,
        weight_decay=1e-2,
        learning_rate=0.05,
        stop_when_perfect=False,
        maximum_steps=4000,
    )
    W, loss = ridge_minimum(problem, 1e-2)
    np.testing.assert_allclose(learned.weights.numpy().reshape(-1), W, atol=2e-3 * np.abs(W).max())
    assert learned.history[-1].loss == pytest.approx(loss, rel=1e-4)


@pytest.mark.long
def test_adam_agrees_with_the_theory_of_trained_memories() -> None:
    """THEORY.md section 8, d = 16, p = 90, lambda = 0.01: Q 4.28, accuracy 0.264, loss 3.015.

    Three instances; the spread of Q and loss over instances is 3 % and 1 %, so 8 % and 3 % are
    more than four standard errors of the mean: false-alarm rate below 1e-4.
    """
    norms, accuracies, losses = [], [], []
    for seed in range(3):
        problem = make_problem("gaussian", dim=16, facts=90, seed=(8, seed))
        learned = adam(problem, weight_decay=0.01 / 90, stop_when_perfect=False, maximum_steps=1500)
        norms.append(float(learned.weights.square().sum()))
        accuracies.append(learned.accuracy)
        losses.append(learned.history[-1].loss)
    assert np.mean(norms) == pytest.approx(4.28, rel=0.08)
    assert np.mean(losses) == pytest.approx(3.015, rel=0.03)
    assert np.mean(accuracies) == pytest.approx(0.264, abs=0.06)


def test_adam_finds_what_exists_and_says_why_it_stops() -> None:
    problem = make_problem("original", dim=8, facts=14, seed=0)
    learned = adam(problem)
    assert learned.accuracy == 1.0 == problem.accuracy(learned.weights)
    assert learned.stop_reason == "every fact is recalled"
    steps = [s.step for s in learned.history]
    assert steps[0] == 0
    assert steps == sorted(set(steps))
    assert learned.history[0].loss == pytest.approx(math.log(14))
    hopeless = make_problem("original", dim=4, facts=40, seed=0)
    learned = adam(hopeless, maximum_steps=50)
    assert learned.accuracy < 1
    assert "50 steps" in learned.stop_reason
    assert decide(hopeless).verdict == "not_separable"
    stalled = adam(hopeless, check_every=5)
    assert "improves" in stalled.stop_reason


def test_hebbian_memory_is_the_sum_of_outer_products() -> None:
    problem = make_problem("decoupled", dim=5, dim_out=4, facts=6, seed=0)
    assert isinstance(problem, DecoupledProblem)
    W = sum(
        np.outer(u, e) for u, e in zip(problem.outputs.numpy(), problem.inputs.numpy(), strict=True)
    )
    np.testing.assert_allclose(hebbian(problem).weights.numpy(), W)
    gaussian = make_problem("gaussian", dim=5, facts=6, seed=0)
    assert isinstance(gaussian, GaussianProblem)
    expected = gaussian.matrices.numpy()[:, 0].sum(0)
    np.testing.assert_allclose(hebbian(gaussian).weights.numpy(), expected)


def test_pseudo_inverse_is_least_squares() -> None:
    for facts in (5, 9):
        problem = make_problem("original", dim=7, dim_out=6, facts=facts, seed=1)
        assert isinstance(problem, OriginalProblem)
        solved = np.linalg.lstsq(problem.inputs.numpy(), problem.outputs.numpy(), rcond=None)[0]
        learned = pseudo_inverse(problem)
        np.testing.assert_allclose(learned.weights.numpy(), solved.T, atol=1e-10)
    gaussian = make_problem("gaussian", dim=5, facts=8, seed=1)
    W = pseudo_inverse(gaussian).weights
    np.testing.assert_allclose(gaussian.scores(W)[:, 0].numpy(), 1.0, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_pseudo_inverse_recalls_up_to_d_facts_where_outputs_are_far_apart(kind: str) -> None:
    problem = make_problem(kind, dim=30, facts=10, seed=0)
    assert pseudo_inverse(problem).accuracy == 1.0


@pytest.mark.parametrize("method", ["adam", "newton"])
@pytest.mark.parametrize("kind", KINDS)
def test_low_rank_memories(kind: str, method: str) -> None:
    """d = 10, rank 5: the threshold is near p = 27, so 18 facts are learned."""
    problem = make_problem(kind, dim=10, facts=18, seed=3)
    learned = low_rank(problem, rank=5, method=method)
    assert learned.accuracy == 1.0 == problem.accuracy(learned.weights)
    assert np.linalg.matrix_rank(learned.weights.numpy()) == 5
    assert learned.factors is not None
    Q, R = learned.factors
    assert Q.shape == R.shape == (10, 5)
    torch.testing.assert_close(Q @ R.T, learned.weights)
    assert learned.history[-1].accuracy == 1.0


def test_rank_one_holds_few_facts() -> None:
    """Rank 1 orders all outputs along one line, up to sign: at most 2 of them are ever on top."""
    problem = make_problem("original", dim=6, facts=9, seed=3)
    learned = low_rank(problem, rank=1, method="newton", starts=1)
    assert learned.accuracy <= 2 / 9
    assert learned.stop_reason


def test_newton_minimises_a_curved_valley() -> None:
    def rosenbrock(x: torch.Tensor) -> torch.Tensor:
        return ((1 - x[:-1]) ** 2 + 100 * (x[1:] - x[:-1] ** 2) ** 2).sum()

    start = torch.tensor([-1.2, 1.0, -0.5], dtype=torch.float64)
    x, reason = newton_cg(rosenbrock, start, lambda _step, _x, _loss: "")
    torch.testing.assert_close(x, torch.ones(3, dtype=torch.float64), rtol=0, atol=1e-8)
    assert reason


def test_bad_settings_get_one_sentence() -> None:
    problem = make_problem("original", dim=4, facts=5, seed=0)
    for settings in ({"learning_rate": 0.0}, {"weight_decay": -1.0}, {"maximum_steps": 0}):
        with pytest.raises(InvalidInput):
            adam(problem, **settings)  # type: ignore[arg-type]
    for settings in (
        {"rank": 0},
        {"rank": 5},
        {"rank": 2, "method": "sgd"},
        {"rank": 2, "starts": 0},
    ):
        with pytest.raises(InvalidInput):
            low_rank(problem, **settings)  # type: ignore[arg-type]
    for ratio in (0.0, 1.1, math.nan):
        with pytest.raises(InvalidInput):
            rank_of(ratio, 4, 4)
