"""The exact solver against a linear-programming code, the theory's table, and known cases."""

from __future__ import annotations

import math
from dataclasses import replace

import clarabel
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse, stats

from numerics.cone import critical_facts, success_probability
from replica.errors import InvalidInput
from validate.certificates import check
from validate.decide import decide, decide_many
from validate.embeddings import NAMES
from validate.problems import KINDS, GaussianProblem, OriginalProblem, Problem, make_problem
from validate.solvers.exact import solve, solve_many
from validate.solvers.operators import RowsOperator, operator_of
from validate.solvers.rows import solve_rows
from validate.solvers.working_set import worth_a_working_set

SIZES = [
    {"dim": 4, "facts": 7},
    {"dim": 3, "dim_out": 5, "facts": 8},
    {"dim": 5, "dim_out": 2, "facts": 4, "competitors": 9},
    {"dim": 4, "facts": 8, "competitors": 3},
    {"dim": 6, "facts": 3},
]


def explicit_rows(problem: Problem) -> np.ndarray:
    """The constraint matrix (p M, d_out d_in), by applying the margins to unit matrices."""
    units = torch.eye(problem.parameters, dtype=torch.float64)
    shaped = units.view(-1, problem.dim_out, problem.dim_in)
    return problem.margins(shaped).flatten(1).T.numpy()


def separable_by_linear_programming(A: np.ndarray) -> bool:
    """max t with A w >= t, |w_i| <= 1 (HiGHS)."""
    n, N = A.shape
    norms = np.linalg.norm(A, axis=1)
    A = A / norms[:, None]
    result = optimize.linprog(
        np.r_[np.zeros(N), -1.0],
        A_ub=np.c_[-A, np.ones(n)],
        b_ub=np.zeros(n),
        bounds=[(-1, 1)] * N + [(None, 1)],
        method="highs",
    )
    assert result.status == 0
    return bool(-result.fun > 1e-8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sizes", SIZES)
def test_operators_are_the_constraint_matrix(kind: str, sizes: dict[str, int]) -> None:
    problems = [make_problem(kind, **sizes, seed=s) for s in range(3)]
    A = np.stack([explicit_rows(p) for p in problems])
    operator = operator_of(problems)
    stream = np.random.default_rng(0)
    w = stream.standard_normal((3, operator.size))
    D = stream.random((3, operator.rows)) ** 8
    got = operator.apply(torch.from_numpy(w)).numpy()
    np.testing.assert_allclose(got, np.einsum("bnk,bk->bn", A, w), rtol=1e-11, atol=1e-11)
    got = operator.adjoint(torch.from_numpy(D)).numpy()
    np.testing.assert_allclose(got, np.einsum("bnk,bn->bk", A, D), rtol=1e-11, atol=1e-11)
    got = operator.gram(torch.from_numpy(D)).numpy()
    expected = np.einsum("bnk,bn,bnl->bkl", A, D, A)
    np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-11)
    got = operator.scale().numpy()
    np.testing.assert_allclose(got, np.sqrt((A**2).sum((1, 2)) / A.shape[1]), rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_verdicts_agree_with_linear_programming(kind: str) -> None:
    verdicts = []
    for facts in (12, 15, 18, 22):
        for seed in range(4):
            problem = make_problem(kind, dim=6, facts=facts, seed=(facts, seed))
            verdict = decide(problem).verdict
            expected = separable_by_linear_programming(explicit_rows(problem))
            assert verdict == ("separable" if expected else "not_separable")
            verdicts.append(verdict)
    assert set(verdicts) == {"separable", "not_separable"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sizes", SIZES)
def test_rectangular_memories_and_any_number_of_competitors(
    kind: str, sizes: dict[str, int]
) -> None:
    for seed in range(4):
        problem = make_problem(kind, **sizes, seed=seed)
        expected = separable_by_linear_programming(explicit_rows(problem))
        assert decide(problem).verdict == ("separable" if expected else "not_separable")


def test_batches_decide_as_single_instances_do() -> None:
    problems = [make_problem("decoupled", dim=8, facts=21, seed=s) for s in range(12)]
    together = [d.verdict for d in decide_many(problems)]
    assert together == [decide(p).verdict for p in problems]
    assert len(set(together)) == 2


def test_verdicts_do_not_change_under_scaling_and_rotation() -> None:
    @settings(max_examples=15, deadline=None)
    @given(st.integers(0, 10**6), st.floats(-20, 20), st.floats(-20, 20))
    def invariant(seed: int, log_in: float, log_out: float) -> None:
        problem = make_problem("original", dim=5, facts=14, seed=seed)
        assert isinstance(problem, OriginalProblem)
        stream = np.random.default_rng(seed)
        left, _ = np.linalg.qr(stream.standard_normal((5, 5)))
        right, _ = np.linalg.qr(stream.standard_normal((5, 5)))
        moved = OriginalProblem(
            problem.inputs @ torch.from_numpy(left) * math.exp(log_in),
            problem.outputs @ torch.from_numpy(right) * math.exp(log_out) + 3.0,
            problem.targets,
        )
        assert decide(moved).verdict == decide(problem).verdict

    invariant()


@pytest.mark.parametrize(
    ("kind", "dim", "facts"), [("gaussian", 8, 17), ("decoupled", 8, 17), ("original", 8, 18)]
)
def test_maximum_margin_equals_a_quadratic_programming_code(
    kind: str, dim: int, facts: int
) -> None:
    problem = make_problem(kind, dim=dim, facts=facts, seed=2)
    A = explicit_rows(problem)
    quiet = clarabel.DefaultSettings()
    quiet.verbose = False
    n, N = A.shape
    answer = clarabel.DefaultSolver(
        sparse.eye(N, format="csc"),
        np.zeros(N),
        sparse.csc_matrix(-A),
        -np.ones(n),
        [clarabel.NonnegativeConeT(n)],
        quiet,
    ).solve()
    decision = decide(problem, maximum_margin=True)
    expected = 1.0 / np.linalg.norm(answer.x)
    assert decision.solution.margin == pytest.approx(expected, rel=1e-6)
    certificate = decision.certificate
    assert certificate.margin <= certificate.margin_above <= certificate.margin * (1 + 1e-7)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "gaussian"])
def test_other_ensembles_are_decided(name: str) -> None:
    for facts in (14, 40):
        problem = make_problem("original", dim=7, facts=facts, ensemble=name, seed=1)
        expected = separable_by_linear_programming(explicit_rows_without_zeros(problem))
        if len(torch.unique(explicit_zero_rows(problem))) > 1:
            expected = False
        verdict = decide(problem).verdict
        # Discrete vectors lie in faces of low dimension, where a proof may be missing, never wrong.
        allowed = {"separable" if expected else "not_separable"}
        assert verdict in (allowed | {"undecided"} if name == "sparse" else allowed)


def explicit_zero_rows(problem: Problem) -> torch.Tensor:
    return torch.from_numpy((explicit_rows(problem) == 0).all(1))


def explicit_rows_without_zeros(problem: Problem) -> np.ndarray:
    A = explicit_rows(problem)
    return A[A.any(axis=1)]


@pytest.mark.parametrize("kind", ["gaussian", "decoupled"])
def test_success_frequencies_follow_the_theory(kind: str) -> None:
    """Exact binomial tests at d = 10, three loads, 50 instances each.

    Two-sided level 1e-4 a load, so the false-alarm rate of the test is below 3e-4 for the Gaussian
    problem, where the probability is exact. The decoupled problem has the same law only for large
    d; the level is the same and its known deviation at d = 10 is below one standard error here.
    """
    for facts in (27, 30, 33):
        problems = [make_problem(kind, dim=10, facts=facts, seed=(9, s)) for s in range(50)]
        verdicts = [d.verdict for d in decide_many(problems)]
        assert verdicts.count("undecided") == 0
        predicted = success_probability(10, facts).to_float_lossy()
        p_value = stats.binomtest(verdicts.count("separable"), 50, predicted).pvalue
        assert p_value > 1e-4


MEASURED_ORIGINAL = {10: {26: 40, 29: 37, 31: 22, 34: 6}, 20: {83: 38, 87: 30, 91: 15}}
"""THEORY.md section 4, original problem: separable instances of 40."""


@pytest.mark.parametrize(
    ("dim", "instances"), [(10, 40), pytest.param(20, 40, marks=pytest.mark.long)]
)
def test_original_problem_agrees_with_the_measured_table(dim: int, instances: int) -> None:
    """Fisher's exact test of two samples at level 1e-4 a load: false-alarm rate below 4e-4."""
    for facts, before in MEASURED_ORIGINAL[dim].items():
        problems = [
            make_problem("original", dim=dim, facts=facts, seed=(4, s)) for s in range(instances)
        ]
        verdicts = [d.verdict for d in decide_many(problems)]
        assert "undecided" not in verdicts
        now = verdicts.count("separable")
        table = [[before, 40 - before], [now, instances - now]]
        assert stats.fisher_exact(table).pvalue > 1e-4


def test_wrong_theory_would_be_noticed() -> None:
    """The same data reject the leading-order threshold p log p = d^2 / 2 beyond doubt."""
    facts = 26
    problems = [make_problem("decoupled", dim=10, facts=facts, seed=(9, s)) for s in range(50)]
    found = sum(d.verdict == "separable" for d in decide_many(problems))
    assert facts * math.log(facts) > 100 / 2
    assert stats.binomtest(found, 50, 0.5, alternative="greater").pvalue < 1e-10
    assert critical_facts(10) > facts


def test_time_limit_ends_as_undecided() -> None:
    problem = make_problem("original", dim=12, facts=36, seed=0)
    solution = solve(problem, time_limit=1e-9)
    assert solution.verdict == "undecided"
    assert "time limit" in solution.reason
    decision = decide(problem, time_limit=1e-9)
    assert decision.verdict == "undecided"


def test_bad_calls_get_one_sentence() -> None:
    problem = make_problem("original", dim=4, facts=5, seed=0)
    with pytest.raises(InvalidInput, match="time limit"):
        solve(problem, time_limit=0.0)
    with pytest.raises(InvalidInput, match="shapes"):
        solve_many([problem, make_problem("original", dim=4, facts=6, seed=0)])
    assert solve_many([]) == []


def test_equal_outputs_cannot_be_told_apart() -> None:
    problem = make_problem("original", dim=5, facts=4, seed=0)
    assert isinstance(problem, OriginalProblem)
    problem.outputs[3] = problem.outputs[1]
    assert decide(problem).verdict == "not_separable"


def test_few_shared_answers_for_many_facts() -> None:
    """Differences of 4 outputs span 3 of 6 dimensions: the proof must work in that subspace."""
    verdicts = set()
    for facts in (10, 60):
        problem = make_problem("original", dim=6, facts=facts, competitors=3, seed=facts)
        expected = separable_by_linear_programming(explicit_rows(problem))
        verdict = decide(problem).verdict
        assert verdict == ("separable" if expected else "not_separable")
        verdicts.add(verdict)
    assert len(verdicts) == 2


def test_inputs_in_a_subspace() -> None:
    problem = make_problem("original", dim=6, facts=30, seed=1)
    assert isinstance(problem, OriginalProblem)
    problem.inputs[:, 2] = 0.0
    problem.inputs[:, 4] = 2.0 * problem.inputs[:, 1]
    assert decide(problem).verdict == "not_separable"


def test_one_target_in_the_hull_of_its_rivals() -> None:
    """A fact that no memory can recall: the proof rests on it alone."""
    problem = make_problem("original", dim=8, dim_out=2, facts=7, seed=1)
    decision = decide(problem)
    assert decision.verdict == "not_separable"
    assert decision.solution.multipliers is not None
    heavy = torch.nonzero(decision.solution.multipliers.sum(1)).flatten()
    assert isinstance(problem, OriginalProblem)
    assert heavy.numel() < 7
    for mu in heavy.tolist():
        target, others = problem.outputs[mu], np.delete(problem.outputs.numpy(), mu, axis=0)
        inside = optimize.linprog(
            np.zeros(6),
            A_eq=np.vstack([others.T, np.ones(6)]),
            b_eq=np.r_[target.numpy(), 1.0],
            method="highs",
        )
        assert inside.status == 0


def test_threads_are_restored() -> None:
    before = torch.get_num_threads()
    solve(make_problem("original", dim=5, facts=9, seed=0))
    assert torch.get_num_threads() == before


# Cases of people who do this job (CASES.md 11 to 13), at the level of our functions.


def test_ill_scaled_feasible_cone_is_separable() -> None:
    A = np.array([[1.0, 0.0], [-1.0, 1e-9]])
    decision = solve_rows(A, maximum_margin=True)
    assert decision.verdict == "separable"
    assert decision.weights is not None
    assert (A @ decision.weights > 0).all()
    # The best direction is (c, 1) with c = 1e-9 - c.
    assert decision.margin == pytest.approx(5e-10, rel=1e-6)


def test_hard_margin_of_random_labels() -> None:
    A = np.random.default_rng(5).standard_normal((180, 100)) / 10
    labels = np.r_[np.ones(90), -np.ones(90)]
    decision = solve_rows(A * labels[:, None], maximum_margin=True)
    assert decision.verdict == "separable"
    assert decision.margin == pytest.approx(0.017723, abs=5e-7)
    alternating = (-1.0) ** np.arange(180)
    decision = solve_rows(A * alternating[:, None])
    assert decision.verdict == "not_separable"
    assert decision.certificate.correction < 1e-3


def test_hard_margin_with_an_intercept() -> None:
    points = np.array([[1.5, 2.5, 1.0], [2.5, 1.5, 1.0], [2.5, 2.5, 1.0]])
    rows = points * np.array([1.0, 1.0, -1.0])[:, None]
    decision = solve_rows(rows, maximum_margin=True, free=(2,))
    assert decision.verdict == "separable"
    assert decision.margin == pytest.approx(0.5 / math.sqrt(2), rel=1e-8)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_small_integer_matrices_are_always_decided(data: st.DataObject) -> None:
    """Degenerate rows, ties and rank deficiency: rational arithmetic is the last resort."""
    n, N = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 4))
    entries = st.integers(-2, 2)
    rows = data.draw(st.lists(st.lists(entries, min_size=N, max_size=N), min_size=n, max_size=n))
    A = np.array(rows, dtype=float)
    decision = solve_rows(A)
    zero = not A.any(axis=1).all()
    expected = not zero and separable_by_linear_programming(A)
    assert decision.verdict == ("separable" if expected else "not_separable")


@pytest.mark.parametrize(
    "matrix", [np.zeros((0, 3)), np.zeros(3), np.array([[np.nan]]), np.array([["a"]])]
)
def test_bad_matrices_get_one_sentence(matrix: np.ndarray) -> None:
    with pytest.raises(InvalidInput):
        solve_rows(matrix)
    with pytest.raises(InvalidInput, match="columns"):
        solve_rows(np.ones((2, 2)), free=(5,))


@pytest.mark.parametrize("scale", [1e-40, 1e-20, 1e-15, 1e15, 1e20, 1e40])
def test_scales_beyond_single_precision(scale: float) -> None:
    """The first-order start works in single precision: the scale of the data must not matter."""
    problem = make_problem("gaussian", dim=5, facts=25, competitors=12, seed=3)
    assert isinstance(problem, GaussianProblem)
    operator = operator_of([problem])
    assert isinstance(operator, RowsOperator)
    assert worth_a_working_set(operator)
    scaled = replace(problem, matrices=problem.matrices * scale)
    plain, found = solve(problem), solve(scaled)
    assert (found.verdict, found.iterations) == (plain.verdict, plain.iterations)
    assert check(scaled, found).verdict == plain.verdict
