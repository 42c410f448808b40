"""The decoupled problem: every fact has competitors of its own, drawn anew."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import torch

from validate.problems.base import Problem, Tensor, check_prefix


@dataclass(frozen=True, eq=False)
class DecoupledProblem(Problem):
    """Scores u . W e_mu for the target u_mu and for M fresh vectors u_rho^(mu).

    `inputs` (p, dim_in), `outputs` (p, dim_out), `rivals` (p, M, dim_out).
    """

    inputs: Tensor
    outputs: Tensor
    rivals: Tensor
    seed: tuple[int, ...] | None = None
    kind: str = "decoupled"

    @property
    def dim_in(self) -> int:
        return self.inputs.shape[1]

    @property
    def dim_out(self) -> int:
        return self.outputs.shape[1]

    @property
    def facts(self) -> int:
        return self.inputs.shape[0]

    @property
    def competitors(self) -> int:
        return self.rivals.shape[1]

    @property
    def device(self) -> torch.device:
        return self.inputs.device

    def scores(self, W: Tensor) -> Tensor:
        answers = self.inputs @ W.mT
        target = (answers * self.outputs).sum(-1, keepdim=True)
        rivals = (self.rivals @ answers[..., None]).squeeze(-1)
        return torch.cat([target, rivals], dim=-1)

    def adjoint(self, multipliers: Tensor) -> Tensor:
        pull = multipliers.sum(-1, keepdim=True) * self.outputs
        pull = pull - (multipliers[..., None, :] @ self.rivals).squeeze(-2)
        return pull.mT @ self.inputs

    def hebbian_memory(self) -> Tensor:
        return self.outputs.T @ self.inputs

    def prefix(self, facts: int, competitors: int | None = None) -> Self:
        facts, M = check_prefix(facts, competitors, (self.facts, self.competitors))
        return replace(
            self,
            inputs=self.inputs[:facts],
            outputs=self.outputs[:facts],
            rivals=self.rivals[:facts, :M],
        )

    def subset(self, facts: Tensor) -> Self:
        return replace(
            self,
            inputs=self.inputs[facts],
            outputs=self.outputs[facts],
            rivals=self.rivals[facts],
        )

    def to(self, device: torch.device | str) -> Self:
        return replace(
            self,
            inputs=self.inputs.to(device),
            outputs=self.outputs.to(device),
            rivals=self.rivals.to(device),
        )
