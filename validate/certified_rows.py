"""Constraint rows of an instance as NumPy arrays, with rigorous rounding bounds, for certificates.

A row is a = v (x) e with v = target output - rival and e the input (`FactoredRows`), or explicit
(`ExplicitRows`). Facts are treated in blocks, so that differences never fill the memory; only the
explicit rows that carry multipliers, a few N of them, are gathered.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import flint
import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, qr

FloatArray = NDArray[np.float64]
Index = tuple[int, ...]
Indices = NDArray[np.int64]

UNIT = 2.0**-53
SLACK = 1.01
"""Covers the rounding of the bounds themselves, whose relative error is far below one per cent."""
TINY = 1e-150
"""Covers underflow, for data below 1e50 in modulus."""
BLOCK = 2_000_000
"""Entries of a block of rows."""
FEW = 64
MOST_EXPLICIT = 300
SHARP_BELOW = 1e3
FEW_ROWS = 0.5
"""Largest share of nonzero multipliers for which their rows are gathered."""


def gamma(n: int) -> float:
    """The constant n u / (1 - n u) of Higham (2002), rounded up."""
    return SLACK * n * UNIT / (1.0 - n * UNIT)


@dataclass(frozen=True)
class MarginBlock:
    """Margins of a block of rows, bounds of their errors, and where the block starts."""

    margins: FloatArray
    bounds: FloatArray
    offset: int


class Rows(abc.ABC):
    """The constraint matrix A of an instance, known through enclosures."""

    shape: Index
    """Shape of the multipliers."""

    @abc.abstractmethod
    def largest(self) -> float:
        """Largest modulus of the data; NaN or infinite if some datum is."""

    @abc.abstractmethod
    def margins(self, W: FloatArray) -> Iterator[MarginBlock]:
        """Enclosures of A w, block by block along the first axis of `shape`."""

    @abc.abstractmethod
    def exact_margin(self, W: FloatArray, index: Index) -> Fraction:
        """One margin in exact arithmetic."""

    @abc.abstractmethod
    def exact_adjoint(self, multipliers: FloatArray) -> list[Fraction]:
        """A^T l in exact arithmetic; for few nonzero multipliers."""

    @abc.abstractmethod
    def residual(self, multipliers: FloatArray) -> float:
        """Upper bound of |A^T l|."""

    def reduced(self, multipliers: FloatArray) -> tuple[Rows, FloatArray] | None:
        """Fewer rows or coordinates and their multipliers, where that pays.

        A^T l = 0 holds for both or for neither; |A^T l| is the same only for `ExplicitRows`, which
        leaves out rows, while `FactoredRows` leaves out coordinates.
        """
        return None

    @abc.abstractmethod
    def exact_row(self, index: Index) -> list[Fraction]:
        """One row of A in exact arithmetic."""

    def few(self, multipliers: FloatArray) -> tuple[ExplicitRows, FloatArray] | None:
        """The rows of the nonzero multipliers, explicitly and on spanning columns, if they are few.

        For proofs that rest on a face of low dimension. None beyond 300 rows or without a proof
        that the columns span.
        """
        indices = [tuple(i) for i in np.argwhere(multipliers).tolist()]
        if not 0 < len(indices) <= MOST_EXPLICIT:
            return None
        exact = [self.exact_row(index) for index in indices]
        rounded = np.array([[float(x) for x in row] for row in exact])
        if not rounded.any():
            return None
        columns = independent_columns(rounded)
        chosen = [[row[k] for k in columns.tolist()] for row in exact]
        if not rational_rank(exact) == rational_rank(chosen) == columns.size:
            return None
        kept = np.ascontiguousarray(rounded[:, columns])
        rows = ExplicitRows.of_matrix(
            kept,
            lambda index: chosen[index[0]],
            self.largest() ** 2,
            float(np.abs(kept).max(initial=0.0)),
        )
        return rows, np.array([multipliers[index] for index in indices])

    @abc.abstractmethod
    def gram(self, multipliers: FloatArray) -> tuple[FloatArray, float]:
        """A^T diag(l^2) A over rows that include enough of the large l, and an error bound.

        Leaving rows out is sound: the correction then changes the remaining multipliers only.
        """

    def exactly_balanced(self, multipliers: FloatArray) -> bool:
        """Whether A^T l = 0 exactly; tried for at most 64 nonzero multipliers."""
        if not 0 < np.count_nonzero(multipliers) <= FEW:
            return False
        return all(value == 0 for value in self.exact_adjoint(multipliers))


class FactoredRows(Rows):
    """a_{mu rho} = (t_mu - r_{mu rho}) (x) e_mu.

    `inputs` (p, d_in), `outputs` (p, d_out) hold e and t; `rivals(a, b)` gives r of the facts
    a <= mu < b, shape (b - a, M, d_out); `shared` the outputs, if all t and r are among them.
    """

    def __init__(
        self,
        inputs: FloatArray,
        outputs: FloatArray,
        rivals: Callable[[int, int], FloatArray],
        competitors: int,
        largest: float,
        shared: FloatArray | None = None,
    ) -> None:
        self.shared = shared
        self.inputs, self.outputs, self.rivals = inputs, outputs, rivals
        self.facts, self.dim_in = inputs.shape
        self.dim_out = outputs.shape[1]
        self.competitors = competitors
        self.shape = (self.facts, competitors)
        self._largest = largest

    def largest(self) -> float:
        return self._largest

    def _blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        step = max(1, BLOCK // (self.competitors * self.dim_out))
        for start in range(0, self.facts, step):
            stop = min(start + step, self.facts)
            # One rounding an entry: fl(t - r) = (t - r)(1 + theta), |theta| <= u.
            yield slice(start, stop), self.outputs[start:stop, None] - self.rivals(start, stop)

    def margins(self, W: FloatArray) -> Iterator[MarginBlock]:
        g = gamma(self.dim_in + self.dim_out + 4)
        for facts, v in self._blocks():
            answers = self.inputs[facts] @ W.T
            sizes = np.abs(self.inputs[facts]) @ np.abs(W).T
            margins = (v @ answers[..., None])[..., 0]
            bounds = SLACK * g * (np.abs(v) @ sizes[..., None])[..., 0] + TINY
            yield MarginBlock(margins, bounds, facts.start)

    def _exact_difference(self, index: Index) -> list[Fraction]:
        mu, rho = index
        rival = self.rivals(mu, mu + 1)[0, rho].tolist()
        target = self.outputs[mu].tolist()
        return [Fraction(t) - Fraction(r) for t, r in zip(target, rival, strict=True)]

    def exact_row(self, index: Index) -> list[Fraction]:
        e = [Fraction(x) for x in self.inputs[index[0]].tolist()]
        return [v * x for v in self._exact_difference(index) for x in e]

    def exact_margin(self, W: FloatArray, index: Index) -> Fraction:
        e = [Fraction(x) for x in self.inputs[index[0]].tolist()]
        total = Fraction(0)
        for v, row in zip(self._exact_difference(index), W.tolist(), strict=True):
            total += v * sum((Fraction(x) * y for x, y in zip(row, e, strict=True)), Fraction(0))
        return total

    def exactly_balanced(self, multipliers: FloatArray) -> bool:
        facts = np.flatnonzero(multipliers.any(axis=1))
        alike = self.shared is not None and bool((self.shared == self.shared[0]).all())
        if facts.size and (alike or not self.inputs[facts].any()):
            return True  # every row that carries a multiplier is zero
        return super().exactly_balanced(multipliers)

    def exact_adjoint(self, multipliers: FloatArray) -> list[Fraction]:
        total = [Fraction(0)] * (self.dim_in * self.dim_out)
        for mu, rho in np.argwhere(multipliers).tolist():
            l = Fraction(float(multipliers[mu, rho]))
            row = self.exact_row((mu, rho))
            total = [t + l * a for t, a in zip(total, row, strict=True)]
        return total

    def residual(self, multipliers: FloatArray) -> float:
        value = np.zeros((self.dim_out, self.dim_in))
        size = np.zeros_like(value)
        for facts, v in self._blocks():
            l = multipliers[facts, None, :]
            value += (l @ v)[:, 0].T @ self.inputs[facts]
            size += (l @ np.abs(v))[:, 0].T @ np.abs(self.inputs[facts])
        g = gamma(2 * self.facts + self.competitors + 6)
        return norm_above(value) + norm_above(SLACK * g * size + TINY)

    def reduced(self, multipliers: FloatArray) -> tuple[FactoredRows, FloatArray] | None:
        """The same rows on fewer coordinates, if the facts that carry multipliers need fewer.

        If their inputs are E = E_J C with columns J, exactly, then A^T l = 0 follows from the
        columns J alone; likewise for the differences of outputs that all facts share.
        """
        facts = np.flatnonzero(multipliers.any(axis=1))
        inputs = self.inputs[facts]
        columns = spanning_columns(inputs)
        if columns is None:
            return None
        rows = np.arange(self.dim_out)
        if self.shared is not None:
            found = spanning_columns(self.shared, differences=True)
            if found is None:
                return None
            rows = found
        if columns.size == self.dim_in and rows.size == self.dim_out:
            return None

        def rivals(start: int, stop: int) -> FloatArray:
            blocks = [self.rivals(mu, mu + 1)[..., rows] for mu in facts[start:stop].tolist()]
            return np.concatenate(blocks)

        smaller = FactoredRows(
            np.ascontiguousarray(inputs[:, columns]),
            np.ascontiguousarray(self.outputs[facts][:, rows]),
            rivals,
            self.competitors,
            self._largest,
        )
        return smaller, multipliers[facts]

    def gram(self, multipliers: FloatArray) -> tuple[FloatArray, float]:
        d, e = self.dim_out, self.dim_in
        i, j = np.tril_indices(d)
        k, m = np.tril_indices(e)
        packed = np.zeros((i.size, k.size))
        trace = 0.0
        for facts, v in self._blocks():
            D = multipliers[facts] ** 2
            products = np.swapaxes(v * D[..., None], 1, 2) @ v
            x = self.inputs[facts]
            packed += products[:, i, j].T @ (x[:, k] * x[:, m])
            squares = np.square(v).sum(2) * D
            trace += float((squares.sum(1) * np.square(x).sum(1)).sum())
        G = np.empty((d, e, d, e))
        unpack = np.empty((e, e), dtype=np.int64)
        unpack[k, m] = unpack[m, k] = np.arange(k.size)
        for row, (a, b) in enumerate(zip(i.tolist(), j.tolist(), strict=True)):
            G[a, :, b, :] = G[b, :, a, :] = packed[row][unpack]
        # Entrywise the error is gamma_n sum D |v||v|^T (x) |e||e|^T, of norm at most gamma_n trace.
        g = gamma(2 * self.facts + self.competitors + 12)
        return G.reshape(d * e, d * e), SLACK * g * trace + TINY


class ExplicitRows(Rows):
    """Rows that are differences t - r of explicit vectors of R^N, or such vectors themselves.

    `block(a, b)` gives the rows of the leading indices a <= mu < b, shape (b - a, ..., N), and
    `chosen(indices)` those at an index array for each axis of `shape`, shape (K, N); each entry is
    rounded at most once. `exact_row(index)` is a row in exact arithmetic, `largest` the largest
    modulus of the data and `entry` that of an entry of a row.
    """

    def __init__(
        self,
        shape: Index,
        size: int,
        block: Callable[[int, int], FloatArray],
        chosen: Callable[[tuple[Indices, ...]], FloatArray],
        exact_row: Callable[[Index], list[Fraction]],
        largest: float,
        entry: float,
    ) -> None:
        self.shape, self.size = shape, size
        self.block, self.chosen, self._exact_row = block, chosen, exact_row
        self._largest, self.entry = largest, entry

    @classmethod
    def of_matrix(
        cls,
        matrix: FloatArray,
        exact_row: Callable[[Index], list[Fraction]],
        largest: float,
        entry: float,
    ) -> ExplicitRows:
        """The rows of `matrix` (n, N), each entry rounded at most once."""
        return cls(
            matrix.shape[:1],
            matrix.shape[1],
            lambda a, b: matrix[a:b],
            lambda indices: matrix[indices],
            exact_row,
            largest,
            entry,
        )

    def exact_row(self, index: Index) -> list[Fraction]:
        return self._exact_row(index)

    def largest(self) -> float:
        return self._largest

    def _blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        step = max(1, BLOCK // (math.prod(self.shape[1:]) * self.size))
        for start in range(0, self.shape[0], step):
            stop = min(start + step, self.shape[0])
            yield slice(start, stop), self.block(start, stop)

    def margins(self, W: FloatArray) -> Iterator[MarginBlock]:
        w = W.reshape(-1)
        g = gamma(self.size + 3)
        # |a| . |w| <= max |a_i| sum |w_i| costs no pass over the rows; margins that it would blur
        # by more than a thousandth get the sharp bound.
        coarse = SLACK * g * self.entry * float(np.abs(w).sum()) + TINY
        for facts, a in self._blocks():
            margins = a @ w
            bounds = np.full(margins.shape, coarse)
            doubtful = ~((margins > SHARP_BELOW * coarse) & np.isfinite(margins))
            bounds[doubtful] = SLACK * g * (np.abs(a[doubtful]) @ np.abs(w)) + TINY
            yield MarginBlock(margins, bounds, facts.start)

    def exact_margin(self, W: FloatArray, index: Index) -> Fraction:
        w = [Fraction(x) for x in W.reshape(-1).tolist()]
        return sum((a * x for a, x in zip(self.exact_row(index), w, strict=True)), Fraction(0))

    def exact_adjoint(self, multipliers: FloatArray) -> list[Fraction]:
        total = [Fraction(0)] * self.size
        for index in np.argwhere(multipliers).tolist():
            l = Fraction(float(multipliers[tuple(index)]))
            total = [t + l * a for t, a in zip(total, self.exact_row(tuple(index)), strict=True)]
        return total

    def reduced(self, multipliers: FloatArray) -> tuple[ExplicitRows, FloatArray] | None:
        """The rows of the nonzero multipliers, gathered, if they are few."""
        indices = np.nonzero(multipliers)
        if not 0 < indices[0].size <= FEW_ROWS * multipliers.size:
            return None

        def exact_row(index: Index) -> list[Fraction]:
            return self._exact_row(tuple(int(axis[index[0]]) for axis in indices))

        gathered = self.chosen(indices)
        rows = ExplicitRows.of_matrix(gathered, exact_row, self._largest, self.entry)
        return rows, multipliers[indices]

    def residual(self, multipliers: FloatArray) -> float:
        value, size = np.zeros(self.size), np.zeros(self.size)
        for facts, a in self._blocks():
            l = multipliers[facts].reshape(-1)
            rows = a.reshape(-1, self.size)
            value += l @ rows
            size += l @ np.abs(rows)
        g = gamma(math.prod(self.shape) + 4)
        return norm_above(value) + norm_above(SLACK * g * size + TINY)

    def gram(self, multipliers: FloatArray) -> tuple[FloatArray, float]:
        # About N multipliers are large; three times as many rows are ample and keep this cheap.
        wanted = min(3 * self.size, multipliers.size)
        cut = np.partition(multipliers.reshape(-1), multipliers.size - wanted)[-wanted]
        indices = np.nonzero((multipliers >= cut) & (multipliers > 0))
        rows = self.chosen(indices) * multipliers[indices][:, None]
        # Only the upper triangle of G is read, the lower one of its transpose.
        G = blas.dsyrk(1.0, rows.T, lower=1).T
        trace = float(np.square(rows).sum())
        return G, SLACK * gamma(rows.shape[0] + 8) * trace + TINY


def spanning_columns(x: FloatArray, *, differences: bool = False) -> NDArray[np.int64] | None:
    """Columns J with x = x_J C exactly (C rational), as few as possible; None if unproved.

    With `differences` the same for the differences of rows, that is up to a constant row. All
    columns qualify without proof; fewer are proved by ranks in exact integer arithmetic.
    """
    columns = independent_columns(x - x[0] if differences else x)
    if columns.size == x.shape[1]:
        return columns
    ones = np.ones((x.shape[0], int(differences)))
    whole, part = np.hstack([x, ones]), np.hstack([x[:, columns], ones])
    return columns if exact_rank(whole) == exact_rank(part) == part.shape[1] else None


def independent_columns(x: FloatArray) -> NDArray[np.int64]:
    """As many columns as the numerical rank, found by pivoting, in increasing order."""
    _, triangle, order = qr(x, mode="economic", pivoting=True)
    diagonal = np.abs(np.diag(triangle))
    columns: NDArray[np.int64] = np.sort(order[: np.count_nonzero(diagonal > 1e-10 * diagonal[0])])
    return columns


def rational_rank(rows: list[list[Fraction]]) -> int:
    """The rank of a rational matrix."""
    integers = []
    for row in rows:
        common = math.lcm(*(x.denominator for x in row))
        integers.append([int(x * common) for x in row])
    return int(flint.fmpz_mat(integers).rank())


def exact_rank(x: FloatArray) -> int:
    """The rank of a matrix of floats, read as exact rationals."""
    mantissas, exponents = np.frexp(x)
    # Exact: a float is a 53-bit integer times a power of two. Rows may be scaled one by one.
    integers = np.ldexp(mantissas, 53).astype(np.int64)
    lowest = np.where(x != 0, exponents, np.iinfo(np.int32).max).min(axis=1)
    rows = [
        [m << (e - low) if m else 0 for m, e in zip(ms, es, strict=True)]
        for ms, es, low in zip(integers.tolist(), exponents.tolist(), lowest.tolist(), strict=True)
    ]
    return int(flint.fmpz_mat(rows).rank())


def norm_above(x: FloatArray) -> float:
    """Upper bound of the Euclidean norm of the entries."""
    return float(np.linalg.norm(x)) * (1.0 + gamma(x.size + 4)) + TINY
