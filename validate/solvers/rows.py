"""Homogeneous separation by explicit rows: is there w with A w > 0?"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from replica.errors import InvalidInput
from validate.certificates import (
    Certificate,
    check_exactly,
    check_not_separable,
    check_separable,
    rows_of_matrix,
)
from validate.solvers.exact_rational import rational_decision
from validate.solvers.interior_point import interior_point
from validate.solvers.maximum_margin import maximum_margin as widest
from validate.solvers.operators import RowsOperator
from validate.solvers.threads import threads_for

FloatArray = NDArray[np.float64]
SMALL = 400
"""Entries up to which an undecided instance is settled in rational arithmetic."""


@dataclass(frozen=True)
class RowsDecision:
    """`verdict` as proved by `certificate`; `weights` w (N,) or `multipliers` l (n,) as evidence.

    `margin` is min(A w) / |w|, over the entries of w that are not free.
    """

    verdict: str
    certificate: Certificate
    weights: FloatArray | None
    multipliers: FloatArray | None
    margin: float


def solve_rows(
    matrix: FloatArray,
    *,
    maximum_margin: bool = False,
    free: tuple[int, ...] = (),
    time_limit: float | None = None,
) -> RowsDecision:
    """Decide, with proof, whether A w > 0 has a solution; A = `matrix` of shape (n, N).

    `maximum_margin` asks for the w of largest min(A w) / |w|; entries of w listed in `free` (an
    intercept) do not count in |w|. Badly scaled rows and columns are scaled by powers of two first.

    Raises `InvalidInput` for a matrix that is empty, not two-dimensional or not finite.

    >>> import numpy as np
    >>> solve_rows(np.array([[1.0, 0.0], [-1.0, 1e-9]])).verdict
    'separable'
    >>> solve_rows(np.array([[1.0], [-1.0]])).verdict
    'not_separable'
    """
    A = _checked(matrix, free)
    deadline = None if time_limit is None else time.monotonic() + time_limit
    row, column = equilibrate(A)
    scaled = torch.from_numpy(A * column * row[:, None])[None]
    with threads_for(A.shape[1]):
        raw = interior_point(RowsOperator(scaled), deadline=deadline)[0]
        weights = None if raw.weights is None else raw.weights.numpy() * column
        multipliers = None if raw.multipliers is None else raw.multipliers.numpy() * row
        if maximum_margin and raw.verdict == "separable" and multipliers is not None:
            assert weights is not None
            counted = np.ones(A.shape[1])
            counted[list(free)] = 0.0
            found = widest(
                RowsOperator(torch.from_numpy(A * column)[None]),
                torch.from_numpy(weights / column)[None],
                torch.from_numpy(multipliers)[None],
                norm=torch.from_numpy(counted * column**2),
                deadline=deadline,
            )
            if found.gap < 1.0:
                weights = found.weights[0].numpy() * column
                multipliers = found.multipliers[0].numpy()
    rows = rows_of_matrix(A)
    if raw.verdict == "separable" and weights is not None:
        certificate = check_separable(rows, weights)
    elif raw.verdict == "not_separable" and multipliers is not None:
        certificate = check_not_separable(rows, multipliers)
    else:
        certificate = Certificate("undecided", raw.verdict, "", reason=raw.reason)
    if certificate.verdict == "undecided" and A.size <= SMALL:
        return _rational(A, free)
    return _decision(A, free, certificate, weights, multipliers)


def equilibrate(A: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Powers of two that bring the largest entry of every row and column near 1 (Ruiz 2001)."""
    row, column = np.ones(A.shape[0]), np.ones(A.shape[1])
    size = np.abs(A)
    for _ in range(20):
        scaled = size * column * row[:, None]
        row = row * _half_power(scaled.max(axis=1))
        scaled = size * column * row[:, None]
        column = column * _half_power(scaled.max(axis=0))
    return row, column


def _half_power(largest: FloatArray) -> FloatArray:
    exponent = np.where(largest > 0, np.log2(np.where(largest > 0, largest, 1.0)), 0.0)
    result: FloatArray = np.exp2(-np.round(exponent / 2))
    return result


def _rational(A: FloatArray, free: tuple[int, ...]) -> RowsDecision:
    found = rational_decision(A)
    certificate = check_exactly(A, weights=found.weights, multipliers=found.multipliers)
    weights = multipliers = None
    if found.weights is not None:
        largest = max(abs(x) for x in found.weights)
        weights = np.array([float(x / largest) for x in found.weights])
    if found.multipliers is not None:
        multipliers = np.array([float(x) for x in found.multipliers])
    return _decision(A, free, certificate, weights, multipliers)


def _decision(
    A: FloatArray,
    free: tuple[int, ...],
    certificate: Certificate,
    weights: FloatArray | None,
    multipliers: FloatArray | None,
) -> RowsDecision:
    margin = float("nan")
    if certificate.verdict == "separable" and weights is not None:
        counted = np.delete(weights, list(free))
        norm = float(np.linalg.norm(counted))
        margin = float((A @ weights).min()) / norm if norm > 0 else float("inf")
    return RowsDecision(certificate.verdict, certificate, weights, multipliers, margin)


def _checked(matrix: FloatArray, free: tuple[int, ...]) -> FloatArray:
    A = np.asarray(matrix)
    if A.ndim != 2 or 0 in A.shape or A.dtype.kind not in "fiu":
        raise InvalidInput(
            f"the constraint matrix has shape {A.shape} and type {A.dtype}; it must be a real "
            "matrix of shape (rows, unknowns); reshape or convert it"
        )
    A = np.ascontiguousarray(A, dtype=np.float64)
    if not np.isfinite(A).all():
        raise InvalidInput(
            "the constraint matrix has NaN or infinite entries; all must be finite; repair it"
        )
    if any(not 0 <= k < A.shape[1] for k in free):
        raise InvalidInput(
            f"free is {free}; it must list columns from 0 to {A.shape[1] - 1}; give such columns"
        )
    return A
