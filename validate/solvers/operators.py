"""Batches of instances as linear maps for the interior-point solver.

For multipliers l and weights D of shape (B, n), n = p M, and memories w of shape (B, N),
N = dim_out dim_in, an operator gives  A w,  A^T l  and the Gram matrix  A^T diag(D) A  (B, N, N),
A being the (n x N) matrix of constraint rows, which only `RowsOperator` holds explicitly.

Rows of the original and decoupled problems are (u_mu - u_rho) (x) e_mu, so their Gram matrix is
sum_mu S_mu (x) e_mu e_mu^T with S_mu = sum_rho D (u_mu - u_rho)(u_mu - u_rho)^T: one product of
the p x d_out(d_out+1)/2 matrix of the S_mu with the p x d_in(d_in+1)/2 matrix of the e_mu e_mu^T.
"""

from __future__ import annotations

import abc
import itertools
from collections.abc import Sequence

import torch

from validate.problems import DecoupledProblem, GaussianProblem, OriginalProblem, Problem

Tensor = torch.Tensor
ROW_BLOCK, COLUMN_BLOCKS = 2048, 8


class Operator(abc.ABC):
    """A batch of constraint matrices A."""

    size: int
    """Number of unknowns N."""
    rows: int
    """Number of constraints n."""

    @abc.abstractmethod
    def apply(self, w: Tensor) -> Tensor:
        """A w, shape (B, n)."""

    @abc.abstractmethod
    def adjoint(self, multipliers: Tensor) -> Tensor:
        """A^T l, shape (B, N)."""

    @abc.abstractmethod
    def gram(self, weights: Tensor) -> Tensor:
        """A^T diag(D) A, shape (B, N, N); may reuse one buffer from call to call."""

    @abc.abstractmethod
    def select(self, keep: Tensor) -> Operator:
        """The sub-batch of the instances with the indices `keep`."""

    @abc.abstractmethod
    def scale(self) -> Tensor:
        """Root mean square norm of the rows, shape (B,)."""


class RowsOperator(Operator):
    """Explicit rows, shape (B, n, N)."""

    def __init__(self, matrix: Tensor) -> None:
        self.matrix = matrix
        self.rows, self.size = matrix.shape[1:]
        self._squares: Tensor | None = None

    def squares(self) -> Tensor:
        """Squared norms of the rows, shape (B, n), computed once."""
        if self._squares is None:
            # One pass without a temporary of the size of the matrix.
            self._squares = torch.linalg.vector_norm(self.matrix, dim=2).square()
        return self._squares

    def apply(self, w: Tensor) -> Tensor:
        return (self.matrix @ w[..., None]).squeeze(-1)

    def adjoint(self, multipliers: Tensor) -> Tensor:
        return (multipliers[:, None, :] @ self.matrix).squeeze(1)

    def gram(self, weights: Tensor) -> Tensor:
        # Blocks of rows keep the scaled copy small; of the columns only the lower triangle of
        # blocks is multiplied.
        N = self.size
        out = self.matrix.new_zeros(self.matrix.shape[0], N, N)
        edges = [*range(0, N, max(64, -(-N // COLUMN_BLOCKS))), N]
        for start in range(0, self.rows, ROW_BLOCK):
            block = self.matrix[:, start : start + ROW_BLOCK]
            scaled = block * weights[:, start : start + ROW_BLOCK, None]
            for left, right in itertools.pairwise(edges):
                out[:, left:, left:right].baddbmm_(block[:, :, left:].mT, scaled[:, :, left:right])
        for left, right in itertools.pairwise(edges):
            out[:, left:right, right:] = out[:, right:, left:right].mT
        return out

    def select(self, keep: Tensor) -> RowsOperator:
        return RowsOperator(self.matrix[keep])

    def scale(self) -> Tensor:
        return self.squares().mean(1).sqrt()


class KroneckerOperator(Operator):
    """Rows (target output - rival) (x) input, kept as factors."""

    def __init__(self, inputs: Tensor) -> None:
        self.inputs = inputs
        self.facts, self.dim_in = inputs.shape[1:]
        self._input_products = symmetric_products(inputs)

    dim_out: int

    @abc.abstractmethod
    def _output_products(self, weights: Tensor) -> Tensor:
        """The distinct entries of every S_mu, shape (B, p, dim_out (dim_out + 1) / 2)."""

    def gram(self, weights: Tensor) -> Tensor:
        packed = self._output_products(weights).mT @ self._input_products
        d, e = self.dim_out, self.dim_in
        rows, columns = symmetric_index(d, weights.device), symmetric_index(e, weights.device)
        out = packed.new_empty(packed.shape[0], d, e, d, e)
        for o in range(d):
            # packed[:, (o, o'), (i, i')] -> out[:, o, i, o', i'], one o at a time to bound memory.
            block = packed[:, rows[o]][:, :, columns.flatten()]
            out[:, o] = block.unflatten(-1, (e, e)).transpose(1, 2)
        return out.view(-1, d * e, d * e)


class OriginalOperator(KroneckerOperator):
    """All facts share the outputs (B, M + 1, dim_out); `targets` (B, p)."""

    def __init__(self, inputs: Tensor, outputs: Tensor, targets: Tensor) -> None:
        super().__init__(inputs)
        # Margins see differences of outputs only; centring removes a cancellation.
        self.outputs = outputs - outputs.mean(1, keepdim=True)
        self.targets = targets
        self.dim_out = outputs.shape[2]
        self.size = self.dim_in * self.dim_out
        self.rivals = outputs.shape[1] - 1
        self.rows = self.facts * self.rivals
        rho = torch.arange(self.rivals, device=inputs.device)
        self._rivals = rho + (rho >= targets[..., None])
        self._products = symmetric_products(self.outputs)
        self._target_outputs = gather_rows(self.outputs, targets)

    def apply(self, w: Tensor) -> Tensor:
        W = w.unflatten(-1, (self.dim_out, self.dim_in))
        table = self.inputs @ W.mT @ self.outputs.mT
        target = table.gather(-1, self.targets[..., None])
        return (target - table.gather(-1, self._rivals)).flatten(1)

    def _table(self, multipliers: Tensor) -> tuple[Tensor, Tensor]:
        values = multipliers.unflatten(-1, (self.facts, self.rivals))
        table = values.new_zeros(*values.shape[:-1], self.rivals + 1)
        table.scatter_(-1, self._rivals, values)
        return table, values.sum(-1, keepdim=True)

    def adjoint(self, multipliers: Tensor) -> Tensor:
        table, total = self._table(multipliers)
        pull = total * self._target_outputs - table @ self.outputs
        return (pull.mT @ self.inputs).flatten(1)

    def _output_products(self, weights: Tensor) -> Tensor:
        table, total = self._table(weights)
        target = self._target_outputs
        # sum D (t - u)(t - u)^T = sum D u u^T - v t^T - t v^T + (sum D) t t^T,  v = sum D u
        mixed = total * target - 2.0 * (table @ self.outputs)
        return table @ self._products + symmetric_products(mixed, target)

    def select(self, keep: Tensor) -> OriginalOperator:
        return OriginalOperator(self.inputs[keep], self.outputs[keep], self.targets[keep])

    def scale(self) -> Tensor:
        one = self.inputs.new_ones(self.inputs.shape[0], self.rows)
        table, total = self._table(one)
        norms = self.outputs.square().sum(-1)
        target = self._target_outputs
        distances = (
            (table @ norms[..., None]).squeeze(-1)
            - 2.0 * ((table @ self.outputs) * target).sum(-1)
            + total.squeeze(-1) * target.square().sum(-1)
        )
        return (distances * self.inputs.square().sum(-1)).sum(1).clamp_min(0).div(self.rows).sqrt()


class DecoupledOperator(KroneckerOperator):
    """Differences target output - rival, shape (B, p, M, dim_out)."""

    def __init__(self, inputs: Tensor, differences: Tensor) -> None:
        super().__init__(inputs)
        self.differences = differences
        self.rivals, self.dim_out = differences.shape[2:]
        self.size = self.dim_in * self.dim_out
        self.rows = self.facts * self.rivals

    def apply(self, w: Tensor) -> Tensor:
        W = w.unflatten(-1, (self.dim_out, self.dim_in))
        answers = self.inputs @ W.mT
        return (self.differences @ answers[..., None]).squeeze(-1).flatten(1)

    def adjoint(self, multipliers: Tensor) -> Tensor:
        values = multipliers.unflatten(-1, (self.facts, self.rivals))
        pull = (values[..., None, :] @ self.differences).squeeze(-2)
        return (pull.mT @ self.inputs).flatten(1)

    def _output_products(self, weights: Tensor) -> Tensor:
        values = weights.unflatten(-1, (self.facts, self.rivals))
        products = (self.differences * values[..., None]).mT @ self.differences
        o = torch.tril_indices(self.dim_out, self.dim_out, device=weights.device)
        return products[..., o[0], o[1]]

    def select(self, keep: Tensor) -> DecoupledOperator:
        return DecoupledOperator(self.inputs[keep], self.differences[keep])

    def scale(self) -> Tensor:
        squares = self.differences.square().sum((2, 3)) * self.inputs.square().sum(-1)
        return squares.sum(1).div(self.rows).sqrt()


def operator_of(problems: Sequence[Problem]) -> Operator:
    """The operator of a batch of problems of one kind and one shape."""
    first = problems[0]
    if isinstance(first, OriginalProblem):
        same = [p for p in problems if isinstance(p, OriginalProblem)]
        return OriginalOperator(
            torch.stack([p.inputs for p in same]),
            torch.stack([p.outputs for p in same]),
            torch.stack([p.targets for p in same]),
        )
    if isinstance(first, DecoupledProblem):
        fresh = [p for p in problems if isinstance(p, DecoupledProblem)]
        return DecoupledOperator(
            torch.stack([p.inputs for p in fresh]),
            torch.stack([p.outputs[:, None] - p.rivals for p in fresh]),
        )
    if isinstance(first, GaussianProblem):
        blocks = [p.matrices for p in problems if isinstance(p, GaussianProblem)]
        rows = [(b[:, :1] - b[:, 1:]).flatten(0, 1).flatten(1) for b in blocks]
        # One large instance is not copied again.
        return RowsOperator(rows[0][None] if len(rows) == 1 else torch.stack(rows))
    raise TypeError(f"no operator for {type(first).__name__}")


def gather_rows(table: Tensor, index: Tensor) -> Tensor:
    """table[b, index[b, i]], shape (B, p, d)."""
    return table.gather(1, index[..., None].expand(-1, -1, table.shape[-1]))


def symmetric_products(x: Tensor, y: Tensor | None = None) -> Tensor:
    """Lower triangle of (x y^T + y x^T) / 2 for every vector, shape (..., d (d + 1) / 2)."""
    d = x.shape[-1]
    i, j = torch.tril_indices(d, d, device=x.device)
    if y is None:
        return x[..., i] * x[..., j]
    return 0.5 * (x[..., i] * y[..., j] + x[..., j] * y[..., i])


def symmetric_index(d: int, device: torch.device) -> Tensor:
    """Position of entry (i, j) in the lower triangle that `symmetric_products` returns, (d, d)."""
    i, j = torch.tril_indices(d, d, device=device)
    index = torch.zeros(d, d, dtype=torch.int64, device=device)
    index[i, j] = index[j, i] = torch.arange(i.numel(), device=device)
    return index
