"""Proofs of separability verdicts, in NumPy, sharing no code with the solvers.

Every number of an instance is a float64, hence an exact dyadic rational; the statements proved are
about those exact numbers. Floating-point results are used with a-priori error bounds

    |fl(x . y) - x . y| <= gamma_n |x| . |y|,   gamma_n = n u / (1 - n u),   u = 2^-53

(Higham 2002, section 3), valid for any order of summation and with or without fused operations.

- separable: every margin of the given W, minus its bound, is positive; doubtful margins are
  recomputed in exact rational arithmetic.
- not separable: multipliers l >= 0 with residual r = A^T l. With D = diag(l^2) and G = A^T D A the
  vector l - D A G^-1 r has A^T (...) = 0 exactly, and |D A G^-1 r|_i <= l_i |r| / sqrt(least
  eigenvalue of G). So |r|^2 < least eigenvalue proves that a nonnegative, nonzero vector with
  A^T l = 0 exists, and by Gordan's theorem that no memory does. The eigenvalue is bounded below by
  a floating-point Cholesky factorisation of G - s I that runs to completion (Rump 2006).

Anything else is "undecided".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from validate.certified_rows import (
    SLACK,
    TINY,
    UNIT,
    ExplicitRows,
    FactoredRows,
    Index,
    Rows,
    gamma,
)
from validate.problems import DecoupledProblem, GaussianProblem, OriginalProblem, Problem
from validate.solvers.solution import Solution

FloatArray = NDArray[np.float64]
LARGEST = 1e50
TOO_LARGE = f"the data exceed {LARGEST:g} in modulus or are not finite; rescale them"
MOST_EXACT = 2000


@dataclass(frozen=True)
class Certificate:
    """The final verdict on one instance.

    `verdict`: "separable", "not_separable" or "undecided"; `claimed`: what the solver said;
    `margin`: proved lower bound of the least margin of W over its Frobenius norm, and
    `margin_above`: proved upper bound of that of every W if the solver gave multipliers (both for
    separable); `residual`: proved upper bound of |A^T l| for multipliers of sum 1, and
    `correction`: proved upper bound of the relative change of a multiplier that makes the residual
    exactly zero (both for not separable); `method`: how it was proved; `reason`: why it was not.
    """

    verdict: str
    claimed: str
    method: str
    margin: float = math.nan
    margin_above: float = math.nan
    residual: float = math.nan
    correction: float = math.nan
    reason: str = ""


def check(problem: Problem, solution: Solution) -> Certificate:
    """Prove or reject the verdict of `solution` on `problem`.

    >>> from validate.problems import make_problem
    >>> from validate.solvers.exact import solve
    >>> problem = make_problem("decoupled", dim=5, facts=40, seed=0)
    >>> check(problem, solve(problem)).verdict
    'not_separable'
    """
    rows = rows_of(problem)
    if solution.verdict == "separable" and solution.weights is not None:
        W = solution.weights.detach().cpu().numpy().astype(np.float64)
        found = check_separable(rows, W, solution.verdict)
        if found.verdict == "separable" and solution.multipliers is not None:
            multipliers = solution.multipliers.detach().cpu().numpy().astype(np.float64)
            found = replace(found, margin_above=largest_margin(rows, multipliers))
        return found
    if solution.verdict == "not_separable" and solution.multipliers is not None:
        multipliers = solution.multipliers.detach().cpu().numpy().astype(np.float64)
        return check_not_separable(rows, multipliers, solution.verdict)
    return _undecided(solution, solution.reason or "the solver gave no evidence to check")


def rows_of(problem: Problem) -> Rows:
    """The constraint rows of an instance, read from its data."""
    if isinstance(problem, OriginalProblem):
        outputs = problem.outputs.numpy(force=True)
        targets = problem.targets.numpy(force=True)
        inputs = problem.inputs.numpy(force=True)
        others = np.arange(outputs.shape[0] - 1)

        def shared(start: int, stop: int) -> FloatArray:
            return outputs[others + (others >= targets[start:stop, None])]

        largest = max(_largest(inputs), _largest(outputs))
        return FactoredRows(inputs, outputs[targets], shared, problem.competitors, largest, outputs)
    if isinstance(problem, DecoupledProblem):
        inputs = problem.inputs.numpy(force=True)
        outputs = problem.outputs.numpy(force=True)
        rivals = problem.rivals.numpy(force=True)
        largest = max(_largest(inputs), _largest(outputs), _largest(rivals))
        return FactoredRows(inputs, outputs, lambda a, b: rivals[a:b], problem.competitors, largest)
    if isinstance(problem, GaussianProblem):
        matrices = problem.matrices.numpy(force=True)
        flat = matrices.reshape(*matrices.shape[:2], -1)
        largest = _largest(flat)

        def exact_row(index: Index) -> list[Fraction]:
            mu, rho = index
            pairs = zip(flat[mu, 0].tolist(), flat[mu, rho + 1].tolist(), strict=True)
            return [Fraction(t) - Fraction(r) for t, r in pairs]

        return ExplicitRows(
            (problem.facts, problem.competitors),
            flat.shape[2],
            lambda a, b: flat[a:b, :1] - flat[a:b, 1:],
            lambda indices: flat[indices[0], 0] - flat[indices[0], indices[1] + 1],
            exact_row,
            largest,
            2.0 * largest,
        )
    raise TypeError(f"no certificate for {type(problem).__name__}")


def rows_of_matrix(matrix: FloatArray) -> ExplicitRows:
    """The rows of an explicit matrix (n, N)."""
    matrix = np.asarray(matrix, dtype=np.float64)
    largest = _largest(matrix)
    return ExplicitRows.of_matrix(
        matrix, lambda index: [Fraction(x) for x in matrix[index[0]].tolist()], largest, largest
    )


def _largest(x: FloatArray) -> float:
    # Two passes without a temporary of the size of the data; NaN propagates.
    return float(np.maximum(x.max(initial=0.0), -x.min(initial=0.0)))


def check_separable(rows: Rows, W: FloatArray, claimed: str = "separable") -> Certificate:
    """Prove that all margins of W are positive."""
    if not rows.largest() <= LARGEST:
        return Certificate("undecided", claimed, "", reason=TOO_LARGE)
    largest = float(np.abs(W).max(initial=0.0))
    if not 0 < largest <= LARGEST:
        return Certificate("undecided", claimed, "", reason="the weights are zero or not finite")
    # An exact power of two: margins of the scaled W have the same signs.
    W = np.ldexp(W, -int(np.frexp(largest)[1]))
    least, exact = math.inf, 0
    for block in rows.margins(W):
        lower = block.margins - block.bounds
        for position in np.argwhere(~(lower > 0)).tolist():
            exact += 1
            if exact > MOST_EXACT:
                return Certificate(
                    "undecided", claimed, "", reason="too many margins are zero to rounding"
                )
            index = (position[0] + block.offset, *position[1:])
            value = rows.exact_margin(W, index)
            if value <= 0:
                return Certificate(
                    "undecided", claimed, "exact", reason="a margin of the weights is not positive"
                )
            lower[tuple(position)] = math.nextafter(float(value), 0.0)
        least = min(least, float(lower.min()))
    norm = float(np.linalg.norm(W)) * (1.0 + gamma(W.size + 4))
    method = "floating-point bounds" if not exact else f"bounds, {exact} margins exactly"
    return Certificate("separable", claimed, method, margin=least / norm * (1.0 - 4 * UNIT))


def largest_margin(rows: Rows, multipliers: FloatArray) -> float:
    """Upper bound of the least margin of any W of unit norm: |A^T l| / sum l, infinite if l < 0."""
    l = _normalised(multipliers)
    if l is None or not rows.largest() <= LARGEST:
        return math.inf
    reduced = rows.reduced(l) if isinstance(rows, ExplicitRows) else None
    smaller, kept = (rows, l) if reduced is None else reduced
    return smaller.residual(kept) * (1.0 + gamma(multipliers.size + 4))


def _normalised(multipliers: FloatArray) -> FloatArray | None:
    """Multipliers of sum 1 up to rounding; None unless finite, nonnegative and nonzero.

    Scaled by their largest first: a sum that overflows would turn them all into zeros.
    """
    peak = float(multipliers.max(initial=0.0))
    if not (np.all(np.isfinite(multipliers)) and np.all(multipliers >= 0) and peak > 0):
        return None
    scaled = np.ldexp(multipliers, -int(np.frexp(peak)[1]))
    l: FloatArray = scaled / scaled.sum()
    return l


def check_not_separable(
    rows: Rows, multipliers: FloatArray, claimed: str = "not_separable"
) -> Certificate:
    """Prove that near the given multipliers there are nonnegative ones with A^T l = 0."""
    if not rows.largest() <= LARGEST:
        return Certificate("undecided", claimed, "", reason=TOO_LARGE)
    l = _normalised(multipliers)
    if l is None:
        return Certificate(
            "undecided", claimed, "", reason="the multipliers are not nonnegative and nonzero"
        )
    # Any nonnegative, nonzero floats will do: flush entries that could underflow squared.
    l[l < 1e-60] = 0.0
    if rows.exactly_balanced(l):
        return Certificate("not_separable", claimed, "exact", residual=0.0, correction=0.0)
    smaller = rows.reduced(l)
    if smaller is not None:
        rows, l = smaller
    found = _corrected(rows, l, claimed)
    explicit = rows.few(l) if found.verdict == "undecided" else None
    return found if explicit is None else _corrected(*explicit, claimed)


def _corrected(rows: Rows, l: FloatArray, claimed: str) -> Certificate:
    """The certificate that l can be corrected to A^T l = 0 exactly, with l >= 0."""
    residual = rows.residual(l)
    G, error = rows.gram(l)
    lower = least_eigenvalue_bound(G, error, wanted=4.0 * residual**2 + TINY)
    if lower is None or not lower > 0:
        return Certificate(
            "undecided",
            claimed,
            "",
            residual=residual,
            reason="the multipliers could not be corrected to an exact proof",
        )
    correction = SLACK * residual / math.sqrt(lower)
    if not correction < 1.0:
        return Certificate(
            "undecided", claimed, "", residual=residual, correction=correction,
            reason="the residual of the multipliers is too large to be corrected",
        )  # fmt: skip
    return Certificate(
        "not_separable", claimed, "verified correction", residual=residual, correction=correction
    )


def check_exactly(
    matrix: FloatArray,
    *,
    weights: list[Fraction] | None = None,
    multipliers: list[Fraction] | None = None,
) -> Certificate:
    """Check rational evidence about the rows of a small matrix in exact arithmetic."""
    rows = [[Fraction(x) for x in row] for row in matrix.tolist()]
    if weights is not None:
        margins = [
            sum((a * x for a, x in zip(row, weights, strict=True)), Fraction(0)) for row in rows
        ]
        if min(margins) > 0:
            norm = math.sqrt(float(sum(x * x for x in weights)))
            lower = float(min(margins)) / norm * (1.0 - 16 * UNIT) if norm > 0 else 0.0
            return Certificate("separable", "separable", "rational arithmetic", margin=lower)
    if multipliers is not None and min(multipliers) >= 0 and max(multipliers) > 0:
        columns = zip(*rows, strict=True)
        if all(sum(l * a for l, a in zip(multipliers, c, strict=True)) == 0 for c in columns):
            return Certificate(
                "not_separable",
                "not_separable",
                "rational arithmetic",
                residual=0.0,
                correction=0.0,
            )
    return Certificate("undecided", "", "rational arithmetic", reason="the evidence is wrong")


def least_eigenvalue_bound(G: FloatArray, error: float, *, wanted: float) -> float | None:
    """A proved lower bound, at least `wanted`, of the least eigenvalue of a symmetric matrix.

    G (overwritten; only its upper triangle counts) approximates the matrix with error at most
    `error` in spectral norm. If the Cholesky factorisation of G - s I completes, its backward error
    is at most gamma_{n+1} / (1 - gamma_{n+1}) trace(G), so the eigenvalue is at least s minus all
    errors. None if the factorisation breaks down.
    """
    n = G.shape[0]
    diagonal = np.einsum("ii->i", G)
    trace, peak = float(diagonal.sum()), float(diagonal.max())
    g = gamma(n + 2)
    errors = SLACK * (error + g / (1.0 - g) * trace + 2 * UNIT * peak) + TINY
    shift = 2.0 * errors + SLACK * wanted
    diagonal -= shift
    _, info = lapack.dpotrf(G.T, lower=1, overwrite_a=1, clean=0)
    return None if info != 0 else shift - errors


def _undecided(solution: Solution, reason: str) -> Certificate:
    return Certificate("undecided", solution.verdict, "", reason=reason)
