"""The losses that numerics knows, by name."""

from __future__ import annotations

from numerics.trained.losses.base import Loss
from numerics.trained.losses.cross_entropy import CrossEntropy
from numerics.trained.losses.hinge import Hinge
from numerics.trained.losses.logistic import Logistic
from numerics.trained.losses.squared import Squared
from numerics.trained.losses.squared_hinge import SquaredHinge
from numerics.trained.losses.tail_average import TailAverage
from replica.errors import InvalidInput

LOSSES: dict[str, type[Loss]] = {
    kind.name: kind for kind in (CrossEntropy, Logistic, Hinge, SquaredHinge, TailAverage, Squared)
}


def loss_by_name(name: str, fraction: float | None = None) -> Loss:
    """The loss of this name; `fraction` (of competitors averaged) belongs to tail_average alone.

    Raises `InvalidInput` for an unknown name and a fraction that has no place.

    >>> loss_by_name("cross_entropy").title
    'cross-entropy, log sum exp(s) - s_0'
    """
    if name not in LOSSES:
        raise InvalidInput(f"unknown loss {name!r}; the known ones are: {', '.join(LOSSES)}")
    if fraction is None:
        return LOSSES[name]()
    if name != TailAverage.name:
        raise InvalidInput(
            f"fraction is {fraction} with the loss {name}; only tail_average averages a fraction "
            "of the competitors; leave it out"
        )
    return TailAverage(fraction)
