"""The losses that numerics knows, by name."""

from __future__ import annotations

from numerics.trained.losses.base import Loss
from numerics.trained.losses.cross_entropy import CrossEntropy
from replica.errors import InvalidInput

LOSSES: dict[str, Loss] = {loss.name: loss for loss in (CrossEntropy(),)}


def loss_by_name(name: str) -> Loss:
    """The loss of this name; raises `InvalidInput` for an unknown one.

    >>> loss_by_name("cross_entropy").title
    'cross-entropy, log sum exp(s) - s_0'
    """
    if name not in LOSSES:
        raise InvalidInput(f"unknown loss {name!r}; the known ones are: {', '.join(LOSSES)}")
    return LOSSES[name]
