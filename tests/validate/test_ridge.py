"""Ridge training: the certificate against solutions that share no code with it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import optimize, special

from replica.errors import InvalidInput
from validate.problems import KINDS, OriginalProblem, Problem, make_problem
from validate.solvers.ridge import (
    certify,
    margin_gradient_norms,
    ridge_memory,
    score_gradient_norms,
    score_scale,
)

RIDGE = 0.02


def score_map(problem: Problem) -> np.ndarray:
    """All scores as a linear map of W, shape (p, M + 1, N), from unit matrices."""
    units = torch.eye(problem.parameters, dtype=torch.float64)
    return problem.scores(units.view(-1, problem.dim_out, problem.dim_in)).permute(1, 2, 0).numpy()


def reference(problem: Problem, ridge: float, loss: str) -> np.ndarray:
    """The minimiser by SciPy's L-BFGS from formulas of loss and gradient written out in NumPy."""
    S = score_map(problem)
    strength = ridge * problem.parameters

    def value(w: np.ndarray) -> tuple[float, np.ndarray]:
        s = S @ w
        if loss == "cross_entropy":
            total = (special.logsumexp(s, axis=1) - s[:, 0]).sum()
            pull = special.softmax(s, axis=1)
            pull[:, 0] -= 1.0
        elif loss == "squared_hinge":
            pull = np.zeros_like(s)
            pull[:, 1:] = np.maximum(1.0 - s[:, :1] + s[:, 1:], 0.0)
            total = 0.5 * (pull**2).sum()
            pull[:, 0] = -pull.sum(axis=1)
        else:
            pull = np.zeros_like(s)
            pull[:, 0] = s[:, 0] - 1.0
            total = 0.5 * (pull**2).sum()
        gradient = np.einsum("pm,pmn->n", pull, S) + strength * w
        return total + 0.5 * strength * (w @ w), gradient

    options = {"maxiter": 20000, "maxfun": 40000, "ftol": 1e-16, "gtol": 1e-9, "maxcor": 30}
    found = optimize.minimize(
        value, np.zeros(S.shape[2]), jac=True, method="L-BFGS-B", options=options
    )
    return np.asarray(found.x)


@pytest.mark.parametrize("loss", ["cross_entropy", "squared_hinge", "squared"])
@pytest.mark.parametrize("kind", KINDS)
def test_newton_finds_the_minimiser_of_an_independent_solver(kind: str, loss: str) -> None:
    problem = make_problem(kind, dim=6, facts=13, seed=(3, 1))
    memory = ridge_memory(problem, RIDGE, loss=loss)
    other = reference(problem, RIDGE, loss)
    apart = float(np.linalg.norm(memory.weights.flatten().numpy() - other))
    assert memory.relative_distance < 1e-6
    # L-BFGS stops at a gradient of about 1e-8, |W - W*| <= 1e-8/(0.02 * 36).
    assert apart <= memory.distance + 1e-6


def test_squared_loss_is_a_linear_system() -> None:
    problem = make_problem("gaussian", dim=6, facts=30, seed=4)
    rows = problem.scores(torch.eye(36, dtype=torch.float64).view(-1, 6, 6))[:, :, 0].T
    strength = RIDGE * 36
    exact = torch.linalg.solve(
        rows.T @ rows + strength * torch.eye(36, dtype=torch.float64), rows.sum(0)
    )
    memory = ridge_memory(problem, RIDGE, loss="squared", tolerance=1e-10)
    assert float((memory.weights.flatten() - exact).norm()) < 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_adam_and_newton_agree_within_their_bounds(kind: str) -> None:
    problem = make_problem(kind, dim=6, facts=16, seed=(9, 2))
    newton = ridge_memory(problem, RIDGE)
    trained = ridge_memory(problem, RIDGE, method="adam", maximum_steps=1500)
    apart = float((newton.weights - trained.weights).norm())
    assert apart <= newton.distance + trained.distance
    # The bound itself says that Adam has arrived.
    assert trained.relative_distance < 0.02
    assert trained.steps == 1500


@pytest.mark.parametrize("size", [1e-4, 0.03, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_bounds_hold_for_any_weights(kind: str, size: float) -> None:
    problem = make_problem(kind, dim=5, facts=12, seed=(6, 6))
    best = ridge_memory(problem, RIDGE, tolerance=1e-11)
    rng = np.random.default_rng(8)
    tight = 0.0
    for _ in range(20):
        away = best.weights + size * torch.from_numpy(rng.standard_normal((5, 5)))
        told = certify(problem, away, RIDGE)
        assert float((away - best.weights).norm()) <= told.distance
        assert abs(told.loss - best.loss) <= told.loss_error
        assert abs(told.norm_squared - best.norm_squared) <= told.norm_squared_error
        assert told.accuracy_range[0] <= best.accuracy <= told.accuracy_range[1]
        assert told.accuracy_range[0] <= told.accuracy <= told.accuracy_range[1]
        tight = max(tight, float((away - best.weights).norm()) / told.distance)
    assert tight > 1e-3  # a bound thousands of times too large would be of no use


def test_bounds_are_sharp_where_the_problem_is_the_ridge() -> None:
    # With a huge ridge F is lambda N/2 |W - W*|^2 but for a small correction.
    problem = make_problem("gaussian", dim=4, facts=3, seed=1)
    best = ridge_memory(problem, 1e4, tolerance=1e-12)
    away = certify(problem, best.weights + 0.01, 1e4)
    assert away.distance == pytest.approx(0.04, rel=1e-3)


def test_large_ridge_gives_hebb() -> None:
    # grad L(0) = -sum_mu (G_0 - mean of all G_rho): W lambda N tends to minus that.
    problem = make_problem("gaussian", dim=5, facts=7, competitors=3, seed=2)
    ridge = 1e5
    memory = ridge_memory(problem, ridge, tolerance=1e-10)
    S = torch.from_numpy(score_map(problem))
    pull = (S[:, 0] - S.mean(1)).sum(0)
    assert torch.allclose(memory.weights.flatten() * ridge * 25, pull, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_score_gradients_are_those_of_the_scores(kind: str) -> None:
    problem = make_problem(kind, dim=4, facts=7, competitors=5, dim_out=3, seed=11)
    S = torch.from_numpy(score_map(problem))
    assert torch.allclose(score_gradient_norms(problem), S.norm(dim=-1))
    exact = (S[:, :1] - S[:, 1:]).norm(dim=-1)
    assert (margin_gradient_norms(problem) >= exact - 1e-12).all()


@pytest.mark.parametrize("kind", KINDS)
def test_scores_have_unit_variance_weights(kind: str) -> None:
    scales = [score_scale(make_problem(kind, dim=24, facts=60, seed=s)) for s in range(4)]
    assert np.mean(scales) == pytest.approx(1.0, abs=0.02)


def test_ridge_acts_relative_to_the_size_of_the_embeddings() -> None:
    problem = make_problem("original", dim=6, facts=12, seed=5)
    assert isinstance(problem, OriginalProblem)
    twice = OriginalProblem(2.0 * problem.inputs, problem.outputs, problem.targets)
    plain = ridge_memory(problem, 0.01, tolerance=1e-10)
    scaled = ridge_memory(twice, 0.04, tolerance=1e-10)
    assert torch.allclose(2.0 * scaled.weights, plain.weights, atol=1e-8)
    assert score_scale(twice) == pytest.approx(2.0 * score_scale(problem))


def test_small_ridge_converges_beyond_the_rounding_of_the_loss() -> None:
    problem = make_problem("gaussian", dim=8, facts=14, seed=3)
    memory = ridge_memory(problem, 1e-5, tolerance=1e-9)
    assert memory.accuracy == 1.0
    assert memory.relative_distance < 1e-9
    assert "as small as asked for" in memory.stop_reason


def test_limit_of_steps_is_told_by_the_bound() -> None:
    problem = make_problem("gaussian", dim=8, facts=20, seed=0)
    memory = ridge_memory(problem, 0.01, maximum_steps=1)
    assert memory.relative_distance > 1e-3
    assert memory.stop_reason == "the limit of 1 Newton steps was reached"


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"ridge": 0.0}, "ridge"),
        ({"ridge": math.nan}, "ridge"),
        ({"ridge": 0.1, "tolerance": 0.0}, "tolerance"),
        ({"ridge": 0.1, "method": "sgd"}, "method"),
        ({"ridge": 0.1, "loss": "hinge"}, "loss"),
        ({"ridge": 0.1, "loss": "squared", "method": "adam"}, "Adam"),
        ({"ridge": 0.1, "maximum_steps": 0}, "steps"),
    ],
)
def test_bad_settings_are_one_sentence(settings: dict[str, object], word: str) -> None:
    problem = make_problem("gaussian", dim=3, facts=4, seed=0)
    with pytest.raises(InvalidInput, match=word):
        ridge_memory(problem, **settings)  # type: ignore[arg-type]
