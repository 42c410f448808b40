"""The original problem: the competitors of a fact are the other outputs, shared by all facts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import torch

from validate.problems.base import Problem, Tensor, check_prefix


@dataclass(frozen=True, eq=False)
class OriginalProblem(Problem):
    """Scores u_rho . W e_mu against all outputs: target u_{targets[mu]}, M = outputs - 1.

    `inputs` (p, dim_in), `outputs` (M + 1, dim_out), `targets` (p,) row of each fact's output.
    """

    inputs: Tensor
    outputs: Tensor
    targets: Tensor
    seed: tuple[int, ...] | None = None
    kind: str = "original"

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
        return self.outputs.shape[0] - 1

    @property
    def device(self) -> torch.device:
        return self.inputs.device

    def competitor_rows(self) -> Tensor:
        """Rows of `outputs` that compete with each fact, int64 of shape (p, M)."""
        rho = torch.arange(self.competitors, device=self.device).expand(self.facts, -1)
        return rho + (rho >= self.targets[:, None])

    def scores(self, W: Tensor) -> Tensor:
        table = self.inputs @ W.mT @ self.outputs.T
        order = torch.cat([self.targets[:, None], self.competitor_rows()], dim=1)
        return table.gather(-1, order.expand(table.shape))

    def adjoint(self, multipliers: Tensor) -> Tensor:
        table = multipliers.new_zeros(*multipliers.shape[:-1], self.competitors + 1)
        rows = self.competitor_rows().expand(multipliers.shape)
        table.scatter_(-1, rows, -multipliers)
        targets = self.targets[:, None].expand(*multipliers.shape[:-1], 1)
        table.scatter_(-1, targets, multipliers.sum(-1, keepdim=True))
        return (table @ self.outputs).mT @ self.inputs

    def hebbian_memory(self) -> Tensor:
        return self.outputs[self.targets].T @ self.inputs

    def prefix(self, facts: int, competitors: int | None = None) -> Self:
        facts, M = check_prefix(facts, competitors, (self.facts, self.competitors))
        # Random instances pair fact mu with output mu modulo the number of outputs.
        shorter = torch.arange(facts, device=self.device) % (M + 1)
        same = self.competitors == M
        return replace(
            self,
            inputs=self.inputs[:facts],
            outputs=self.outputs[: M + 1],
            targets=self.targets[:facts] if same else shorter,
        )

    def subset(self, facts: Tensor) -> Self:
        return replace(self, inputs=self.inputs[facts], targets=self.targets[facts])

    def to(self, device: torch.device | str) -> Self:
        return replace(
            self,
            inputs=self.inputs.to(device),
            outputs=self.outputs.to(device),
            targets=self.targets.to(device),
        )
