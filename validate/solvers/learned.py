"""What a learning rule returns, and how accuracy and history are kept."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch


@dataclass(frozen=True)
class Snapshot:
    """State of training after `step` updates: `loss` (NaN if the rule has none), `accuracy`."""

    step: int
    loss: float
    accuracy: float


@dataclass(frozen=True)
class Learned:
    """A learned memory.

    `weights` W (dim_out, dim_in); `accuracy`: share of facts recalled, top-1 over all outputs with
    ties lost; `history`: snapshots, the last one is the final state; `stop_reason`: a sentence;
    `factors`: (Q, R) with W = Q R^T for low-rank memories.
    """

    weights: torch.Tensor
    accuracy: float
    history: list[Snapshot]
    stop_reason: str
    factors: tuple[torch.Tensor, torch.Tensor] | None = field(default=None)
