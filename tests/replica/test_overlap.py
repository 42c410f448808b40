"""Overlap matrices at symbolic n against explicit matrices of rationals."""

from __future__ import annotations

import mpmath
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from replica.errors import InvalidInput
from replica.overlap import OverlapMatrix, replica_limit
from replica.symbols import block, n, q, q0, q1

fractions = st.fractions(min_value="1/20", max_value="19/20", max_denominator=40)


def explicit_determinant(matrix: sp.Matrix) -> sp.Rational:
    return matrix.det(method="berkowitz")


@given(size=st.integers(2, 8), overlap=fractions)
@settings(max_examples=12, deadline=None)
def test_replica_symmetric_matrix_matches_its_entries(size: int, overlap: object) -> None:
    value = sp.Rational(str(overlap))
    matrix = OverlapMatrix.replica_symmetric()
    explicit = sp.Matrix(size, size, lambda i, j: 1 if i == j else value)
    at = {q: value, n: size}
    assert matrix.explicit(size).subs(q, value) == explicit
    assert matrix.trace().subs(at) == explicit.trace()
    powers = [(e.subs(at), m.subs(at)) for e, m in matrix.eigenvalues()]
    assert sum(m for _, m in powers) == size
    assert sp.Mul(*[e**m for e, m in powers]) == explicit_determinant(explicit)
    inverse = sp.Matrix(
        size, size, lambda i, j: matrix.inverse().overlaps[-1 if i == j else 0].subs(at)
    )
    assert explicit * inverse == sp.eye(size)


@given(
    shape=st.sampled_from([(4, 2), (6, 2), (6, 3), (8, 2), (8, 4)]),
    low=fractions,
    rise=fractions,
)
@settings(max_examples=10, deadline=None)
def test_one_step_matrix_matches_its_entries(
    shape: tuple[int, int], low: object, rise: object
) -> None:
    size, block_size = shape
    a = sp.Rational(str(low))
    b = a + (1 - a) * sp.Rational(str(rise))
    matrix = OverlapMatrix.one_step()
    explicit = sp.Matrix(
        size, size, lambda i, j: 1 if i == j else (b if i // block_size == j // block_size else a)
    )
    at = {q0: a, q1: b, n: size, block: block_size}
    assert matrix.explicit(size, block=block_size).subs(at) == explicit
    powers = [(e.subs(at), m.subs(at)) for e, m in matrix.eigenvalues()]
    assert sum(m for _, m in powers) == size
    assert sp.Mul(*[e**m for e, m in powers]) == explicit_determinant(explicit)
    product = matrix * matrix.inverse()
    assert product.is_identity()
    entries = [entry.subs(at) for entry in matrix.inverse().overlaps]
    inverse = sp.Matrix(
        size,
        size,
        lambda i, j: entries[2 if i == j else 1 if i // block_size == j // block_size else 0],
    )
    assert explicit * inverse == sp.eye(size)


@pytest.mark.parametrize("matrix", [OverlapMatrix.replica_symmetric(), OverlapMatrix.one_step()])
def test_replica_limit_is_the_numeric_derivative_at_zero(matrix: OverlapMatrix) -> None:
    at = {q: 0.3, q0: 0.3, q1: 0.55, block: 0.4}
    log_det = sp.lambdify(n, matrix.log_det().subs(at), "mpmath")
    assert abs(log_det(mpmath.mpf(0))) < 1e-14
    slope = mpmath.diff(log_det, 0)
    assert float(replica_limit(matrix.log_det()).subs(at)) == pytest.approx(float(slope), rel=1e-10)


def test_one_step_reduces_to_replica_symmetric() -> None:
    reduced = replica_limit(OverlapMatrix.one_step().log_det()).subs({q0: q, q1: q})
    direct = replica_limit(OverlapMatrix.replica_symmetric().log_det())
    assert sp.cancel(sp.expand(reduced) - sp.expand(direct)) == 0


def test_bad_matrices_are_refused() -> None:
    with pytest.raises(InvalidInput, match="vanish"):
        replica_limit(sp.log(2 + n))
    with pytest.raises(InvalidInput, match="block sizes"):
        OverlapMatrix.one_step().explicit(6, block=4)
    with pytest.raises(InvalidInput, match="same blocks"):
        OverlapMatrix.one_step() * OverlapMatrix.replica_symmetric()
    with pytest.raises(InvalidInput, match="one coefficient"):
        OverlapMatrix((1,), (n, 1))
