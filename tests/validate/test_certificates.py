"""Certificates: they accept what is true, and reject every forged or damaged proof."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from validate.certificates import (
    check,
    check_exactly,
    check_not_separable,
    check_separable,
    largest_margin,
    least_eigenvalue_bound,
    rows_of,
    rows_of_matrix,
)
from validate.certified_rows import exact_rank, spanning_columns
from validate.decide import decide
from validate.problems import KINDS, OriginalProblem, Problem, make_problem
from validate.solvers.exact import solve
from validate.solvers.solution import Solution
from validate.survey import separable_by_linear_programming


def exact_margins(problem: Problem, W: torch.Tensor) -> list[list[mpmath.mpf]]:
    """Margins at 60 digits from the definition, by products with unit matrices (exact data)."""
    units = torch.eye(problem.parameters, dtype=torch.float64)
    scores = problem.scores(units.view(-1, problem.dim_out, problem.dim_in))
    w = [mpmath.mpf(float(x)) for x in W.flatten()]
    with mpmath.workdps(60):
        rows = scores.permute(1, 2, 0).tolist()
        values = [[mpmath.fdot(w, row) for row in fact] for fact in rows]
        return [[v[0] - x for x in v[1:]] for v in values]


@pytest.mark.parametrize("kind", KINDS)
def test_margin_enclosures_hold(kind: str) -> None:
    """The Gaussian rows are data; those of the other kinds are products, so compare loosely."""
    problem = make_problem(kind, dim=4, facts=6, seed=1)
    W = np.random.default_rng(3).standard_normal((4, 4))
    rows = rows_of(problem)
    truth = exact_margins(problem, torch.from_numpy(W))
    slack = 0.0 if kind == "gaussian" else 1e-13
    seen = 0
    for block in rows.margins(W):
        for k, (margins, bounds) in enumerate(zip(block.margins, block.bounds, strict=True)):
            for rho, (m, b) in enumerate(zip(margins, bounds, strict=True)):
                assert 0 < b < 1e-12
                assert abs(truth[block.offset + k][rho] - float(m)) <= b + slack
                exact = rows.exact_margin(W, (block.offset + k, rho))
                assert abs(exact - Fraction(float(m))) <= Fraction(float(b))
                seen += 1
    assert seen == 30


@pytest.mark.parametrize("kind", KINDS)
def test_true_claims_are_proved(kind: str) -> None:
    below = make_problem(kind, dim=6, facts=8, seed=0)
    above = make_problem(kind, dim=6, facts=30, seed=0)
    certificate = decide(below).certificate
    assert certificate.verdict == "separable"
    assert 0 < certificate.margin <= solve(below).margin * (1 + 1e-12)
    certificate = decide(above).certificate
    assert certificate.verdict == "not_separable"
    assert certificate.residual < 1e-10
    assert certificate.correction < 1


@pytest.mark.parametrize("kind", KINDS)
def test_forged_claims_are_not_proved(kind: str) -> None:
    below = make_problem(kind, dim=6, facts=8, seed=0)
    above = make_problem(kind, dim=6, facts=30, seed=0)
    W, l = solve(below).weights, solve(above).multipliers
    assert W is not None
    assert l is not None
    uniform = torch.full((8, 7), 1.0 / 56, dtype=torch.float64)
    forged = [
        (above, Solution("separable", W, None, 1.0, 0, 0.0)),
        (below, Solution("separable", -W, None, 1.0, 0, 0.0)),
        (below, Solution("separable", 0 * W, None, 1.0, 0, 0.0)),
        (below, Solution("separable", W * math.nan, None, 1.0, 0, 0.0)),
        (below, Solution("not_separable", None, uniform, 0.0, 0, 0.0)),
        (above, Solution("not_separable", None, -l, 0.0, 0, 0.0)),
        (above, Solution("not_separable", None, 0 * l, 0.0, 0, 0.0)),
        (above, Solution("not_separable", None, l * math.nan, 0.0, 0, 0.0)),
        (above, Solution("not_separable", None, l.roll(1, 0), 0.0, 0, 0.0)),
        (above, Solution("not_separable", None, None, 0.0, 0, 0.0)),
        (above, Solution("separable", None, None, 0.0, 0, 0.0)),
        (above, Solution("undecided", W, l, 0.0, 0, 0.0, "out of time")),
    ]
    for problem, solution in forged:
        certificate = check(problem, solution)
        assert certificate.verdict == "undecided"
        assert certificate.reason


def test_a_small_damage_to_the_multipliers_is_within_the_correction() -> None:
    problem = make_problem("original", dim=6, facts=30, seed=0)
    solution = solve(problem)
    assert solution.multipliers is not None
    noise = torch.from_numpy(np.random.default_rng(0).standard_normal((30, 29)))
    small = replace(solution, multipliers=solution.multipliers * (1 + 1e-8 * noise))
    large = replace(solution, multipliers=solution.multipliers * (1 + 0.5 * noise).abs())
    assert check(problem, small).verdict == "not_separable"
    assert check(problem, large).verdict == "undecided"


def test_no_verdict_is_ever_the_opposite_of_the_truth() -> None:
    """Nearly balanced multipliers of separable instances must not pass for a proof."""

    @settings(max_examples=30, deadline=None)
    @given(st.integers(0, 10**6), st.floats(-14, -2))
    def sound(seed: int, exponent: float) -> None:
        # Two nearly opposite rows: separable for every positive angle between them.
        angle = 10.0**exponent
        A = np.array([[1.0, 0.0, 0.0], [-1.0, angle, 0.0], [0.0, angle, angle]])
        turned, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((3, 3)))
        l = np.array([0.5, 0.5, 0.0])
        rotated = A @ turned
        assert check_not_separable(rows_of_matrix(A), l).verdict == "undecided"
        if exponent > -10:
            assert check_not_separable(rows_of_matrix(rotated), l).verdict == "undecided"

    sound()


def test_doubtful_margins_are_settled_exactly() -> None:
    tiny = 2.0**-60
    matrix = np.array([[1.0, 1.0 + 2.0**-52]])
    rows = rows_of_matrix(matrix)
    just = np.array([1.0 + 2.0**-52, -1.0])
    assert rows.exact_margin(just, (0,)) == 0
    assert check_separable(rows, just).verdict == "undecided"
    matrix = np.array([[1.0, 1.0 + 2.0**-52, tiny]])
    certificate = check_separable(rows_of_matrix(matrix), np.r_[just, 1.0])
    assert certificate.verdict == "separable"
    assert "exactly" in certificate.method
    assert 0 < certificate.margin <= tiny


def test_the_sharp_bound_is_taken_where_the_coarse_one_leaves_doubt() -> None:
    """One large entry makes the bound by the largest entry useless for a row of tiny ones."""
    matrix = np.array([[1e6, 0.0, 1e6], [0.0, 3e-12, 1e-12]])
    w = np.array([1.0, 1.0, 1.0])
    first, second = next(iter(rows_of_matrix(matrix).margins(w))).bounds
    assert second < 1e-25 < first
    certificate = check_separable(rows_of_matrix(matrix), w)
    assert certificate.verdict == "separable"
    assert certificate.method == "floating-point bounds"


def test_multipliers_whose_sum_overflows_prove_nothing() -> None:
    """Divided by an infinite sum they would all be zero, and zero multipliers balance."""
    huge = np.array([1e308, 1e308])
    assert check_not_separable(rows_of_matrix(np.eye(2)), huge).verdict == "undecided"
    assert not rows_of_matrix(np.eye(2)).exactly_balanced(np.zeros(2))
    opposite = rows_of_matrix(np.array([[1.0, 2.0], [-1.0, -2.0]]))
    assert check_not_separable(opposite, huge).verdict == "not_separable"
    assert largest_margin(opposite, huge) < 1e-14


def test_margins_that_overflow_prove_nothing() -> None:
    r = 1.7e308
    rows = rows_of_matrix(np.array([[r, r, -r, -r, -r]]))
    assert check_separable(rows, np.full(5, 0.99)).verdict == "undecided"
    for bad in (np.nan, np.inf):
        rows = rows_of_matrix(np.array([[1.0, bad]]))
        assert check_separable(rows, np.ones(2)).verdict == "undecided"
        assert check_not_separable(rows, np.ones(1)).verdict == "undecided"
        assert largest_margin(rows, np.ones(1)) == math.inf


def test_integers_are_read_as_floats() -> None:
    """The smallest integers have no negative of their own type."""
    rows = rows_of_matrix(np.array([[-(2**63), 1]], dtype=np.int64))
    assert rows.largest() == 2.0**63
    assert check_separable(rows, np.array([-1.0, 1.0])).verdict == "separable"


@pytest.mark.parametrize("kind", ["decoupled", "original"])
def test_inputs_that_are_all_zero_are_certified(kind: str) -> None:
    problem = replace(
        make_problem(kind, dim=4, facts=12, seed=0), inputs=torch.zeros(12, 4).double()
    )
    assert decide(problem).verdict == "not_separable"


def test_gathered_rows_prove_the_same() -> None:
    """Residual and Gram matrix from the rows of the nonzero multipliers alone."""
    problem = make_problem("gaussian", dim=5, facts=30, seed=4)
    rows = rows_of(problem)
    l = np.random.default_rng(5).random((30, 29))
    l[l < 0.8] = 0.0
    gathered, kept = rows.reduced(l) or pytest.fail("nothing was gathered")
    assert kept.size == np.count_nonzero(l)
    A = problem.margins(torch.eye(25, dtype=torch.float64).view(-1, 5, 5)).flatten(1).numpy().T
    norm = float(np.linalg.norm(l.flatten() @ A))
    for some, multipliers in ((rows, l), (gathered, kept)):
        assert norm * (1.0 - 1e-12) <= some.residual(multipliers) <= norm * (1.0 + 1e-12)
        G, error = some.gram(multipliers)
        D = np.sort(l.flatten())[::-1][: 3 * 25]
        big = l.flatten() >= D[-1]
        truth = A[big].T @ (A[big] * l.flatten()[big, None] ** 2)
        assert np.abs(np.triu(G) - np.triu(truth)).max() <= error + 1e-12
    index = (17,)
    place = tuple(int(axis[17]) for axis in np.nonzero(l))
    assert gathered.exact_row(index) == rows.exact_row(place)


def test_bounds_on_the_largest_margin_hold() -> None:
    problem = make_problem("decoupled", dim=6, facts=11, seed=4)
    solution = solve(problem, maximum_margin=True)
    assert solution.multipliers is not None
    rows = rows_of(problem)
    best = largest_margin(rows, solution.multipliers.numpy())
    stream = np.random.default_rng(0)
    for _ in range(50):
        W = torch.from_numpy(stream.standard_normal((6, 6)))
        assert float(problem.margins(W).amin() / W.norm()) <= best
        l = stream.random((11, 10))
        assert largest_margin(rows, l) >= best * (1 - 1e-9)
    assert largest_margin(rows, -solution.multipliers.numpy()) == math.inf


@pytest.mark.parametrize("kind", KINDS)
def test_gram_matrix_and_residual_enclose_the_truth(kind: str) -> None:
    problem = make_problem(kind, dim=3, dim_out=4, facts=5, seed=2)
    units = torch.eye(12, dtype=torch.float64).view(-1, 4, 3)
    A = problem.margins(units).flatten(1).T.numpy()
    l = np.random.default_rng(1).random((5, 4))
    rows = rows_of(problem)
    G, error = rows.gram(l)
    exact = (A * l.reshape(-1, 1) ** 2).T @ A
    if kind != "gaussian":
        np.testing.assert_allclose(G, exact, rtol=1e-11, atol=1e-11)
    assert np.linalg.norm(G - (exact if kind != "gaussian" else G), 2) <= error + 1e-12
    residual = rows.residual(l)
    truth = np.linalg.norm(A.T @ l.reshape(-1))
    assert truth <= residual <= truth * (1 + 1e-10)


def test_least_eigenvalue_bound_is_a_lower_bound() -> None:
    stream = np.random.default_rng(0)
    for size in (3, 20, 60):
        B = stream.standard_normal((size, 2 * size))
        G = B @ B.T
        truth = float(np.linalg.eigvalsh(G)[0])
        bound = least_eigenvalue_bound(G.copy(), 0.0, wanted=0.5 * truth)
        assert bound is not None
        assert 0.5 * truth <= bound <= truth
        assert least_eigenvalue_bound(G.copy(), 0.0, wanted=1.5 * truth) is None
        assert least_eigenvalue_bound(G.copy(), 2.0 * truth, wanted=0.0) is None
    singular = np.ones((2, 2))
    assert least_eigenvalue_bound(singular, 0.0, wanted=0.0) is None


def test_rational_evidence_is_checked_exactly() -> None:
    A = np.array([[1.0, 0.0], [-1.0, 0.1]])
    third = Fraction(1, 3)
    assert check_exactly(A, weights=[third, Fraction(10)]).verdict == "separable"
    assert check_exactly(A, weights=[third, Fraction(1)]).verdict == "undecided"
    assert check_exactly(A, multipliers=[third, third]).verdict == "undecided"
    opposite = np.array([[0.1, 3.0], [-0.1, -3.0]])
    assert check_exactly(opposite, multipliers=[third, third]).verdict == "not_separable"
    assert check_exactly(opposite, multipliers=[-third, -third]).verdict == "undecided"


def test_exact_rank_and_spanning_columns() -> None:
    stream = np.random.default_rng(0)
    x = stream.standard_normal((9, 4))
    assert exact_rank(x) == 4
    x[:, 2] = 2.0 * x[:, 0]
    x[:, 3] = 0.0
    assert exact_rank(x) == 2
    found = spanning_columns(x)
    assert found is not None
    assert found.size == 2
    # A dependence that holds to rounding only is no dependence.
    x[:, 3] = x[:, 0] + x[:, 1]
    assert exact_rank(x) == 3
    assert spanning_columns(x) is None
    shifted = np.hstack([np.ones((5, 1)), stream.standard_normal((5, 2))])
    found = spanning_columns(shifted, differences=True)
    assert found is not None
    assert found.tolist() == [1, 2]


@pytest.mark.parametrize("ensemble", ["rademacher", "sparse"])
def test_degenerate_faces_are_proved_on_their_own_columns(ensemble: str) -> None:
    """Discrete vectors fail on faces of low dimension: the rows of the face carry the proof."""
    verdicts = []
    for seed in range(4):
        problem = make_problem("original", dim=5, facts=6, ensemble=ensemble, seed=seed)
        verdict = decide(problem).verdict
        assert verdict == (
            "separable" if separable_by_linear_programming(problem) else "not_separable"
        )
        verdicts.append(verdict)
    assert len(set(verdicts)) == 2


def test_absurd_data_are_left_undecided() -> None:
    problem = make_problem("original", dim=3, facts=4, seed=0)
    assert isinstance(problem, OriginalProblem)
    solution = solve(problem)
    huge = replace(problem, inputs=problem.inputs * 1e60)
    assert check(huge, solution).verdict == "undecided"
    broken = replace(problem, inputs=problem.inputs * math.nan)
    assert check(broken, solution).verdict == "undecided"


def test_a_fact_without_input_is_proved_impossible() -> None:
    """Orthonormal facts cut to fewer components: the last input is zero, its scores are all 0."""
    from validate.problems.files import Embeddings

    identity = np.eye(5)
    embeddings = Embeddings(identity, identity, ("",) * 5, ("",) * 5)
    assert decide(embeddings.problem(components=4)).verdict == "not_separable"
    assert decide(embeddings.problem(components=5)).verdict == "separable"
