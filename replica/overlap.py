"""Overlap matrices of n replicas at symbolic n: the algebra of nested blocks.

A matrix with K steps of replica symmetry breaking is sum_k c_k J_k, where J_k has ones inside the
diagonal blocks of size m_k (m_0 = n > m_1 > ... > m_K = 1, so J_0 is full of ones and J_K = 1).
Nested blocks multiply as J_k J_l = min(m_k, m_l) J_{larger block}: the matrices form a commutative
algebra, everything below follows from that one rule and never needs n to be a number.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import sympy as sp

from replica import symbols as s
from replica.errors import InvalidInput


def replica_limit(expression: Any, n: Any = s.n) -> Any:
    """lim_{n -> 0} expression / n, for an expression that vanishes at n = 0 (else refused).

    >>> import sympy as sp
    >>> from replica.symbols import n, q
    >>> replica_limit(sp.log(1 + n * q), n)
    q
    """
    at_zero = expression.subs(n, 0)
    if at_zero != 0 and sp.expand_log(sp.expand(at_zero), force=True) != 0:
        raise InvalidInput(f"the expression is {at_zero} at n = 0; it must vanish there")
    return expression.diff(n).subs(n, 0)


@dataclass(frozen=True)
class OverlapMatrix:
    """sum_k coefficients[k] J_k with block sizes sizes[k], sizes[0] = n, sizes[-1] = 1.

    >>> from replica.symbols import n, q
    >>> Q = OverlapMatrix.replica_symmetric(q)
    >>> Q.eigenvalues()
    [(n*q - q + 1, 1), (1 - q, n - 1)]
    >>> (Q * Q.inverse()).is_identity()
    True
    """

    coefficients: tuple[Any, ...]
    sizes: tuple[Any, ...]

    def __post_init__(self) -> None:
        if len(self.coefficients) != len(self.sizes) or not self.sizes or self.sizes[-1] != 1:
            raise InvalidInput(
                f"an overlap matrix needs one coefficient a block size and 1 as its last size; got "
                f"{len(self.coefficients)} coefficients and sizes {self.sizes}"
            )

    @staticmethod
    def from_overlaps(overlaps: tuple[Any, ...], sizes: tuple[Any, ...]) -> OverlapMatrix:
        """Entry overlaps[k] for pairs of replicas whose smallest common block has size sizes[k].

        The last entry of `overlaps` is the diagonal.
        """
        previous = sp.S.Zero
        coefficients = []
        for value in overlaps:
            coefficients.append(sp.sympify(value) - previous)
            previous = sp.sympify(value)
        return OverlapMatrix(tuple(coefficients), tuple(sp.sympify(m) for m in sizes))

    @staticmethod
    def replica_symmetric(q: Any = s.q, diagonal: Any = 1, n: Any = s.n) -> OverlapMatrix:
        """Q_ab = q + (diagonal - q) delta_ab."""
        return OverlapMatrix.from_overlaps((q, diagonal), (n, 1))

    @staticmethod
    def one_step(
        q0: Any = s.q0, q1: Any = s.q1, block: Any = s.block, diagonal: Any = 1, n: Any = s.n
    ) -> OverlapMatrix:
        """Q_ab = q1 inside blocks of size `block`, q0 between them, `diagonal` on the diagonal."""
        return OverlapMatrix.from_overlaps((q0, q1, diagonal), (n, block, 1))

    @property
    def n(self) -> Any:
        """The number of replicas (size of the matrix)."""
        return self.sizes[0]

    @property
    def overlaps(self) -> tuple[Any, ...]:
        """Entries by smallest common block; the last is the diagonal."""
        sums = [sp.S.Zero]
        for coefficient in self.coefficients:
            sums.append(sums[-1] + coefficient)
        return tuple(sums[1:])

    def __mul__(self, other: OverlapMatrix) -> OverlapMatrix:
        """Matrix product by J_k J_l = (smaller block size) J_(larger block)."""
        self._same_blocks(other)
        product = [sp.S.Zero] * len(self.sizes)
        for i, a in enumerate(self.coefficients):
            for j, b in enumerate(other.coefficients):
                # The larger block has the smaller index.
                product[min(i, j)] += a * b * self.sizes[max(i, j)]
        return OverlapMatrix(tuple(product), self.sizes)

    def __add__(self, other: OverlapMatrix) -> OverlapMatrix:
        self._same_blocks(other)
        total = zip(self.coefficients, other.coefficients, strict=True)
        return OverlapMatrix(tuple(a + b for a, b in total), self.sizes)

    def _same_blocks(self, other: OverlapMatrix) -> None:
        if self.sizes != other.sizes:
            raise InvalidInput(
                f"the matrices have block sizes {self.sizes} and {other.sizes}; only matrices with "
                "the same blocks can be combined"
            )

    def eigenvalues(self) -> list[tuple[Any, Any]]:
        """Pairs (eigenvalue, multiplicity), from the uniform vector to the finest differences.

        J_k / m_k are nested orthogonal projectors of rank n / m_k. On vectors constant on blocks of
        size m_k that sum to zero on blocks of size m_{k-1}, J_l acts as m_l for l >= k and as 0 for
        l < k; so the eigenvalue is sum_{l >= k} c_l m_l with multiplicity n/m_k - n/m_{k-1}.
        """
        pairs = []
        for level, size in enumerate(self.sizes):
            tail = zip(self.coefficients[level:], self.sizes[level:], strict=True)
            value = sp.expand(sum(c * m for c, m in tail))
            rank = self.n / size
            below = self.n / self.sizes[level - 1] if level else sp.S.Zero
            pairs.append((value, rank - below))
        return pairs

    def trace(self) -> Any:
        """n times the diagonal."""
        return self.n * self.overlaps[-1]

    def log_det(self) -> Any:
        """sum over eigenvalues of multiplicity * log(eigenvalue)."""
        return sp.Add(*[mult * sp.log(value) for value, mult in self.eigenvalues()])

    def inverse(self) -> OverlapMatrix:
        """Inverse in the same algebra: reciprocal eigenvalues, coefficients by telescoping."""
        reciprocal = [1 / value for value, _ in self.eigenvalues()]
        coefficients = []
        for level, size in enumerate(self.sizes):
            finer = reciprocal[level + 1] if level + 1 < len(reciprocal) else sp.S.Zero
            coefficients.append(sp.factor((reciprocal[level] - finer) / size))
        return OverlapMatrix(tuple(coefficients), self.sizes)

    def is_identity(self) -> bool:
        """True when every coefficient but the last vanishes and the last is 1."""
        cancelled = [sp.cancel(c) for c in self.coefficients]
        return all(c == 0 for c in cancelled[:-1]) and cancelled[-1] == 1

    def explicit(self, n: int, **blocks: int) -> Any:
        """The n x n `sympy.Matrix` at integer n (and integer block sizes given by symbol name)."""
        values = {self.n: sp.Integer(n)} | {
            size: sp.Integer(blocks[size.name]) for size in self.sizes[1:-1] if size.name in blocks
        }
        sizes = [size.subs(values) for size in self.sizes]
        pairs = pairwise(sizes)
        if not all(m.is_Integer for m in sizes) or any(a % b for a, b in pairs):
            raise InvalidInput(
                f"block sizes {sizes} must be integers, each dividing the one before; give "
                "n and every block size accordingly"
            )
        entries = [c.subs(values) for c in self.coefficients]

        def entry(i: int, j: int) -> Any:
            inside = [c for c, m in zip(entries, sizes, strict=True) if i // int(m) == j // int(m)]
            return sp.Add(*inside)

        return sp.Matrix(n, n, entry)
