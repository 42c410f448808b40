"""The cone {w : A w > 0} as the sampler needs it: products with A, single rows, reflections.

Chains come as batches: `w` has shape (C, N), margins A w shape (C, n). A bounce off row i changes
A p by a multiple of A a_i; for the original and decoupled problems a_i is a product
(u_mu - u_rho) (x) e_mu, so A a_i costs p (M + 1) or p M d operations and A is never formed.
"""

from __future__ import annotations

import abc

import torch

from replica.errors import InvalidInput
from validate.problems import DecoupledProblem, GaussianProblem, OriginalProblem, Problem

Tensor = torch.Tensor
GRAM_ENTRIES = 25_000_000
"""Keep A A^T in memory up to this many entries (200 MB): a bounce then only looks a row up."""


class Cone(abc.ABC):
    """Constraint rows a_1..a_n of R^N, all nonzero."""

    size: int
    rows: int
    squares: Tensor
    """|a_i|^2, shape (n,)."""

    @property
    def device(self) -> torch.device:
        """Where the tensors live."""
        return self.squares.device

    @abc.abstractmethod
    def apply(self, w: Tensor) -> Tensor:
        """A w, shape (C, n) for w of shape (C, N)."""

    @abc.abstractmethod
    def row(self, index: Tensor) -> Tensor:
        """a_i for the indices of shape (C,), shape (C, N)."""

    @abc.abstractmethod
    def response(self, index: Tensor) -> Tensor:
        """A a_i for the indices of shape (C,), shape (C, n)."""


class ExplicitCone(Cone):
    """Rows in memory, scaled to unit length."""

    def __init__(self, matrix: Tensor) -> None:
        norms = matrix.norm(dim=1, keepdim=True)
        if not bool((norms > 0).all()):
            raise InvalidInput(
                f"row {int((norms[:, 0] > 0).int().argmin())} of the constraint matrix is zero or "
                "not a number, so its margin is never positive; remove it"
            )
        self.matrix = matrix / norms
        self.rows, self.size = matrix.shape
        self.squares = self.matrix.square().sum(1)
        small = self.rows**2 <= GRAM_ENTRIES
        self._gram = self.matrix @ self.matrix.T if small else None

    def apply(self, w: Tensor) -> Tensor:
        return w @ self.matrix.T

    def row(self, index: Tensor) -> Tensor:
        return self.matrix[index]

    def response(self, index: Tensor) -> Tensor:
        if self._gram is not None:
            return self._gram[index]
        return self.matrix[index] @ self.matrix.T


class OriginalCone(Cone):
    """Rows (u_target(mu) - u_rho) (x) e_mu of an original problem; i = (mu, rho) row by row."""

    def __init__(self, problem: OriginalProblem) -> None:
        self.problem = problem
        self.rows, self.size = problem.constraints, problem.parameters
        # Margins see differences of outputs only; centring removes a cancellation.
        self.outputs = problem.outputs - problem.outputs.mean(0)
        self._inputs = problem.inputs @ problem.inputs.T
        self._outputs = self.outputs @ self.outputs.T
        self._rivals = problem.competitor_rows()
        targets = problem.targets
        norms = self._outputs.diagonal()
        cross = self._outputs[targets[:, None], self._rivals]
        distances = norms[targets][:, None] - 2.0 * cross + norms[self._rivals]
        self.squares = (distances * self._inputs.diagonal()[:, None]).flatten()

    def _margins(self, table: Tensor) -> Tensor:
        """Target minus rival, (C, p M), from scores against all outputs, (C, p, M + 1)."""
        index = self.problem.targets[:, None].expand(table.shape[0], -1, 1)
        rivals = self._rivals.expand(table.shape[0], -1, -1)
        return (table.gather(-1, index) - table.gather(-1, rivals)).flatten(1)

    def apply(self, w: Tensor) -> Tensor:
        W = w.unflatten(-1, (self.problem.dim_out, self.problem.dim_in))
        return self._margins(self.problem.inputs @ W.mT @ self.outputs.T)

    def _fact_target_rival(self, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        fact = index // self.problem.competitors
        rival = self._rivals.flatten()[index]
        return fact, self.problem.targets[fact], rival

    def row(self, index: Tensor) -> Tensor:
        fact, target, rival = self._fact_target_rival(index)
        v = self.outputs[target] - self.outputs[rival]
        return (v[:, :, None] * self.problem.inputs[fact][:, None, :]).flatten(1)

    def response(self, index: Tensor) -> Tensor:
        fact, target, rival = self._fact_target_rival(index)
        v = self._outputs[target] - self._outputs[rival]
        return self._margins(self._inputs[fact][:, :, None] * v[:, None, :])


class DecoupledCone(Cone):
    """Rows (u_mu - u_rho^(mu)) (x) e_mu of a decoupled problem; i = (mu, rho) row by row."""

    def __init__(self, problem: DecoupledProblem) -> None:
        self.problem = problem
        self.rows, self.size = problem.constraints, problem.parameters
        self.differences = problem.outputs[:, None] - problem.rivals
        self._inputs = problem.inputs @ problem.inputs.T
        self.squares = (
            self.differences.square().sum(-1) * self._inputs.diagonal()[:, None]
        ).flatten()

    def apply(self, w: Tensor) -> Tensor:
        W = w.unflatten(-1, (self.problem.dim_out, self.problem.dim_in))
        answers = self.problem.inputs @ W.mT
        return (self.differences @ answers[..., None]).squeeze(-1).flatten(1)

    def _difference(self, index: Tensor) -> Tensor:
        return self.differences.flatten(0, 1)[index]

    def row(self, index: Tensor) -> Tensor:
        e = self.problem.inputs[index // self.problem.competitors]
        return (self._difference(index)[:, :, None] * e[:, None, :]).flatten(1)

    def response(self, index: Tensor) -> Tensor:
        fact = index // self.problem.competitors
        parts = self.differences @ self._difference(index).T  # (p, M, C)
        return (parts.permute(2, 0, 1) * self._inputs[fact][:, :, None]).flatten(1)


def cone_of(problem: Problem) -> Cone:
    """The cone of the memories that recall every fact of `problem`.

    >>> from validate.problems import make_problem
    >>> cone = cone_of(make_problem("original", dim=3, facts=4, seed=0))
    >>> cone.rows, cone.size
    (12, 9)
    """
    if isinstance(problem, OriginalProblem):
        return OriginalCone(problem)
    if isinstance(problem, DecoupledProblem):
        return DecoupledCone(problem)
    if isinstance(problem, GaussianProblem):
        return ExplicitCone(
            (problem.matrices[:, :1] - problem.matrices[:, 1:]).flatten(0, 1).flatten(1)
        )
    raise TypeError(f"no cone for {type(problem).__name__}")
