"""Convex losses of the M + 1 scores of a fact, by name: what ridge training minimises."""

from __future__ import annotations

from collections.abc import Callable

import torch

from replica.errors import InvalidInput

Tensor = torch.Tensor
Loss = Callable[[Tensor], Tensor]


def cross_entropy(scores: Tensor) -> Tensor:
    """log sum_rho e^{s_rho} - s_0 of every fact, scores (..., M + 1) with the target first.

    >>> round(float(cross_entropy(torch.zeros(4)).exp()), 4)
    4.0
    """
    return torch.logsumexp(scores, dim=-1) - scores[..., 0]


def squared_hinge(scores: Tensor) -> Tensor:
    """1/2 sum_{rho >= 1} (1 - s_0 + s_rho)_+^2 of every fact.

    >>> squared_hinge(torch.tensor([[0.0, 0.0, -2.0]]))
    tensor([0.5000])
    """
    lack = torch.relu(1.0 - scores[..., :1] + scores[..., 1:])
    return 0.5 * lack.square().sum(dim=-1)


def squared(scores: Tensor) -> Tensor:
    """(s_0 - 1)^2/2 of every fact: ridge regression, the pseudo-inverse as the ridge vanishes.

    >>> squared(torch.tensor([[3.0, 0.0]]))
    tensor([2.])
    """
    return 0.5 * (scores[..., 0] - 1.0).square()


LOSSES: dict[str, Loss] = {
    "cross_entropy": cross_entropy,
    "squared_hinge": squared_hinge,
    "squared": squared,
}


def loss_by_name(name: str) -> Loss:
    """The loss of this name; raises `InvalidInput` for an unknown one.

    >>> loss_by_name("squared") is squared
    True
    """
    if name not in LOSSES:
        raise InvalidInput(
            f"the loss is {name!r}; it must be one of {', '.join(LOSSES)}; choose one"
        )
    return LOSSES[name]
