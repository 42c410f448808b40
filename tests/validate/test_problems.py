"""Problems: margins against the definition written out, adjoints, nesting, seeds, ensembles."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from replica.errors import InvalidInput
from validate.embeddings import NAMES, Ensemble, parse_ensemble
from validate.problems import (
    KINDS,
    DecoupledProblem,
    GaussianProblem,
    OriginalProblem,
    Problem,
    make_problem,
)

SIZES = [
    {"dim": 4, "facts": 6},
    {"dim": 3, "dim_out": 5, "facts": 7},
    {"dim": 5, "dim_out": 2, "facts": 4, "competitors": 9},
    {"dim": 4, "facts": 8, "competitors": 3},
]


def margins_by_definition(problem: Problem, W: np.ndarray) -> np.ndarray:
    """Loops over facts and competitors, NumPy only."""
    out = np.empty((problem.facts, problem.competitors))
    for mu in range(problem.facts):
        if isinstance(problem, GaussianProblem):
            G = problem.matrices.numpy()[mu]
            scores = [float((g * W).sum()) for g in G]
            target, rivals = scores[0], scores[1:]
        elif isinstance(problem, DecoupledProblem):
            answer = W @ problem.inputs.numpy()[mu]
            target = problem.outputs.numpy()[mu] @ answer
            rivals = [u @ answer for u in problem.rivals.numpy()[mu]]
        else:
            assert isinstance(problem, OriginalProblem)
            answer = W @ problem.inputs.numpy()[mu]
            own = int(problem.targets[mu])
            target = problem.outputs.numpy()[own] @ answer
            rivals = [u @ answer for k, u in enumerate(problem.outputs.numpy()) if k != own]
        out[mu] = [target - r for r in rivals]
    return out


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sizes", SIZES)
def test_margins_are_target_minus_competitor(kind: str, sizes: dict[str, int]) -> None:
    problem = make_problem(kind, **sizes, seed=3)
    W = torch.from_numpy(
        np.random.default_rng(0).standard_normal((2, problem.dim_out, problem.dim_in))
    )
    found = problem.margins(W)
    assert found.shape == (2, problem.facts, problem.competitors)
    assert found.dtype == torch.float64
    for k in range(2):
        expected = margins_by_definition(problem, W[k].numpy())
        np.testing.assert_allclose(found[k].numpy(), expected, rtol=1e-12, atol=1e-12)
        assert problem.accuracy(W[k]) == (expected > 0).all(1).mean()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sizes", SIZES)
def test_adjoint_and_hebbian_memory_are_gradients(kind: str, sizes: dict[str, int]) -> None:
    problem = make_problem(kind, **sizes, seed=(5, 1))
    W = torch.zeros(problem.dim_out, problem.dim_in, dtype=torch.float64, requires_grad=True)
    stream = np.random.default_rng(1)
    multipliers = torch.from_numpy(stream.random((problem.facts, problem.competitors)))
    (gradient,) = torch.autograd.grad((problem.margins(W) * multipliers).sum(), W)
    torch.testing.assert_close(problem.adjoint(multipliers), gradient)
    (gradient,) = torch.autograd.grad(problem.scores(W)[:, 0].sum(), W)
    torch.testing.assert_close(problem.hebbian_memory(), gradient)


EMBEDDED = [(kind, name) for kind in ("decoupled", "original") for name in NAMES]


@pytest.mark.parametrize(("kind", "ensemble"), [("gaussian", "gaussian"), *EMBEDDED])
def test_adding_facts_keeps_the_earlier_ones(kind: str, ensemble: str) -> None:
    large = make_problem(kind, dim=6, facts=9, ensemble=ensemble, seed=11)
    small = make_problem(kind, dim=6, facts=5, ensemble=ensemble, seed=11)
    W = torch.from_numpy(np.random.default_rng(2).standard_normal((6, 6)))
    assert torch.equal(large.prefix(5).margins(W), small.margins(W))
    torch.testing.assert_close(large.margins(W)[:5, :4], small.margins(W))


def test_seeds_are_explicit_and_independent_of_order() -> None:
    first = make_problem("decoupled", dim=5, facts=6, seed=0)
    make_problem("decoupled", dim=5, facts=6, seed=1)
    again = make_problem("decoupled", dim=5, facts=6, seed=0)
    assert isinstance(first, DecoupledProblem)
    assert isinstance(again, DecoupledProblem)
    assert torch.equal(first.rivals, again.rivals)
    other = make_problem("decoupled", dim=5, facts=6, seed=1)
    assert isinstance(other, DecoupledProblem)
    assert not torch.equal(first.inputs, other.inputs)
    # Inputs, targets and competitors come from different streams.
    everything = torch.cat([first.inputs, first.outputs, first.rivals.flatten(0, 1)])
    assert len(torch.unique(everything)) == everything.numel()


@pytest.mark.parametrize("name", NAMES)
def test_ensembles_have_norm_squared_d_on_average(name: str) -> None:
    """Mean of |x|^2 / d within 5 standard errors: false alarm below 1e-6 per ensemble."""
    x = Ensemble(name).draw((7,), rows=4000, dim=10)
    squares = (x**2).sum(1) / 10
    if name == "sparse":
        # Given x != 0: E|x|^2 = d / (1 - (1 - density)^d).
        squares = squares * (1 - 0.8**10)
    error = squares.std() / np.sqrt(len(squares)) + 1e-12
    assert abs(squares.mean() - 1) < 5 * error
    assert x.any(axis=1).all()
    assert np.abs(x.mean(0)).max() < 5 * 3 / np.sqrt(4000)


def test_correlated_ensemble_has_the_given_spectrum() -> None:
    """Each variance within 5 of its standard deviations sqrt(2/n): false alarm below 1e-5."""
    spectrum = (4.0, 2.0, 1.0, 1.0)
    x = Ensemble("correlated", spectrum=spectrum).draw((1,), rows=8000, dim=4)
    ratio = x.var(0) / (np.array(spectrum) / 2.0)
    assert np.abs(ratio - 1).max() < 5 * np.sqrt(2 / 8000)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 40), st.integers(1, 8), st.integers(0, 2**40))
def test_sparse_rows_are_never_zero(rows: int, dim: int, seed: int) -> None:
    assert Ensemble("sparse", density=0.05).draw((seed,), rows=rows, dim=dim).any(axis=1).all()


@pytest.mark.parametrize(
    "arguments",
    [
        {"kind": "quantum"},
        {"dim": 0},
        {"facts": 1},
        {"facts": 3.0},
        {"competitors": 0},
        {"dim_out": 0},
        {"facts": 10**15},
        {"dim": 10**20},
        {"kind": "gaussian", "dim": 1000, "facts": 10**6},
        {"seed": -1},
        {"seed": ()},
        {"ensemble": "cauchy"},
        {"ensemble": "sparse:0"},
        {"ensemble": "sparse:x"},
        {"ensemble": "sphere:1"},
        {"kind": "gaussian", "ensemble": "sphere"},
        {"ensemble": Ensemble("correlated", spectrum=(1.0, 2.0))},
    ],
)
def test_bad_arguments_get_one_sentence(arguments: dict[str, object]) -> None:
    good = {"kind": "original", "dim": 4, "facts": 5, "seed": 0}
    with pytest.raises(InvalidInput) as error:
        make_problem(**{**good, **arguments})  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


def test_bad_ensemble_parameters() -> None:
    with pytest.raises(InvalidInput, match="density"):
        Ensemble("sparse", density=1.5)
    with pytest.raises(InvalidInput, match="positive eigenvalues"):
        Ensemble("correlated", spectrum=(1.0, -1.0))
    assert parse_ensemble("correlated:2").exponent == 2.0


def test_prefix_refuses_what_the_instance_does_not_have() -> None:
    problem = make_problem("original", dim=4, facts=5, seed=0)
    with pytest.raises(InvalidInput, match="ask for fewer"):
        problem.prefix(6)
