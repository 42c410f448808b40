"""The Gaussian problem: every score is Tr(W^T G) with a fresh Gaussian matrix G."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import torch

from validate.problems.base import Problem, Tensor, check_prefix


@dataclass(frozen=True, eq=False)
class GaussianProblem(Problem):
    """Scores <G_mu,rho, W>, rho = 0 the target; `matrices` (p, M + 1, dim_out, dim_in)."""

    matrices: Tensor
    seed: tuple[int, ...] | None = None
    kind: str = "gaussian"

    @property
    def dim_in(self) -> int:
        return self.matrices.shape[3]

    @property
    def dim_out(self) -> int:
        return self.matrices.shape[2]

    @property
    def facts(self) -> int:
        return self.matrices.shape[0]

    @property
    def competitors(self) -> int:
        return self.matrices.shape[1] - 1

    @property
    def device(self) -> torch.device:
        return self.matrices.device

    def scores(self, W: Tensor) -> Tensor:
        rows = self.matrices.flatten(2)
        return (rows @ W.flatten(-2)[..., None, :, None]).squeeze(-1)

    def adjoint(self, multipliers: Tensor) -> Tensor:
        weights = torch.cat([multipliers.sum(-1, keepdim=True), -multipliers], dim=-1)
        return (weights.flatten(-2) @ self.matrices.flatten(2).flatten(0, 1)).unflatten(
            -1, (self.dim_out, self.dim_in)
        )

    def hebbian_memory(self) -> Tensor:
        return self.matrices[:, 0].sum(0)

    def prefix(self, facts: int, competitors: int | None = None) -> Self:
        facts, M = check_prefix(facts, competitors, (self.facts, self.competitors))
        return replace(self, matrices=self.matrices[:facts, : M + 1])

    def subset(self, facts: Tensor) -> Self:
        return replace(self, matrices=self.matrices[facts])

    def to(self, device: torch.device | str) -> Self:
        return replace(self, matrices=self.matrices.to(device))
