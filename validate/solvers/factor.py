"""Factors of I + A^T diag(D) A for the Newton steps, in double or in mixed precision.

In mixed precision the Gram matrix is built, factorised and inverted in single precision, which is
several times faster, and serves as the preconditioner of conjugate gradients on the true matrix in
double precision. It counts only while a few steps reach the tolerance; `factorise` then says so
and the caller goes on with a factor in double precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch

from validate.solvers.operators import Operator, RowsOperator, Tensor

TOLERANCE = 1e-6
"""Relative residual of a solve; Newton directions need no more, residuals are recomputed."""
MOST_STEPS = 15
WORTH_IT = 1200
"""Fewest unknowns for which single precision pays."""


class Factor(Protocol):
    """Solves (I + A^T diag(D) A) x = right for a batch, right of shape (B, N)."""

    def solve(self, right: Tensor) -> Tensor: ...

    def select(self, keep: Tensor) -> Factor: ...

    @property
    def reliable(self) -> bool: ...


@dataclass(frozen=True)
class DoubleFactor:
    """Lower Cholesky factors, shape (B, N, N)."""

    lower: Tensor
    reliable: bool = True

    def solve(self, right: Tensor) -> Tensor:
        return torch.cholesky_solve(right[..., None], self.lower).squeeze(-1)

    def select(self, keep: Tensor) -> DoubleFactor:
        return DoubleFactor(self.lower[keep])


@dataclass
class MixedFactor:
    """A single-precision inverse, for one instance; `reliable` until a solve fails."""

    operator: RowsOperator
    weights: Tensor
    inverse: Tensor
    reliable: bool = True

    def _product(self, x: Tensor) -> Tensor:
        return x + self.operator.adjoint(self.weights * self.operator.apply(x))

    def _precondition(self, x: Tensor) -> Tensor:
        size = x.abs().amax().clamp_min(1e-300)  # keeps tiny residuals inside the range of floats
        return (self.inverse @ (x / size)[0].float()).double()[None] * size

    def solve(self, right: Tensor) -> Tensor:
        goal = TOLERANCE * float(right.norm())
        x = torch.zeros_like(right)
        residual, direction, before = right, torch.zeros_like(right), 0.0
        for _ in range(MOST_STEPS):
            if float(residual.norm()) <= goal:
                return x
            z = self._precondition(residual)
            now = float((residual * z).sum())
            direction = z if before == 0.0 else z + (now / before) * direction
            image = self._product(direction)
            curvature = float((direction * image).sum())
            if not (now > 0 and curvature > 0):
                break
            x = x + (now / curvature) * direction
            residual = residual - (now / curvature) * image
            before = now
        self.reliable = self.reliable and float(residual.norm()) <= goal
        return x

    def select(self, keep: Tensor) -> MixedFactor:
        return self


def factorise(operator: Operator, weights: Tensor, *, mixed: bool) -> Factor:
    """The factor for D = `weights` (B, n); with `mixed`, in mixed precision where that works."""
    if mixed and isinstance(operator, RowsOperator) and can_mix(operator):
        single = RowsOperator(operator.matrix.float()).gram(weights.float())
        single.diagonal(dim1=1, dim2=2).add_(1.0)
        lower, info = torch.linalg.cholesky_ex(single)
        if int(info.max()) == 0:
            return MixedFactor(operator, weights, torch.cholesky_inverse(lower[0]))
    gram = operator.gram(weights)
    gram.diagonal(dim1=1, dim2=2).add_(1.0)
    lower, info = torch.linalg.cholesky_ex(gram)
    if bool((info != 0).any()):
        diagonal = gram.diagonal(dim1=1, dim2=2)
        diagonal.add_(1e-13 * diagonal.amax(1, keepdim=True))
        lower, info = torch.linalg.cholesky_ex(gram)
    return DoubleFactor(lower)


def can_mix(operator: Operator) -> bool:
    """Whether mixed precision is implemented and pays: one instance of explicit rows."""
    return (
        isinstance(operator, RowsOperator)
        and operator.matrix.shape[0] == 1
        and operator.size >= WORTH_IT
    )
