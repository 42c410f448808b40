"""The losses by name, and the theory of each."""

from __future__ import annotations

from functools import lru_cache

from replica.errors import InvalidInput
from replica.trained.free_entropy import TrainedTheory
from replica.trained.losses.base import TrainedLoss
from replica.trained.losses.cross_entropy import CrossEntropy
from replica.trained.losses.hinge import Hinge
from replica.trained.losses.logistic import Logistic
from replica.trained.losses.squared import Squared
from replica.trained.losses.squared_hinge import SquaredHinge
from replica.trained.losses.tail_average import TailAverage

LOSSES: dict[str, type[TrainedLoss]] = {
    kind.name: kind for kind in (CrossEntropy, Logistic, Hinge, SquaredHinge, TailAverage, Squared)
}


@lru_cache(maxsize=16)
def theory(loss: str = "cross_entropy") -> TrainedTheory:
    """The theory of the memory trained with this loss; raises `InvalidInput` for another name.

    >>> theory("hinge").loss.title
    'hinge, sum of (1 - s_0 + s_rho)_+ over the competitors'
    """
    if loss not in LOSSES:
        raise InvalidInput(f"unknown loss {loss!r}; the known ones are: {', '.join(LOSSES)}")
    return TrainedTheory(LOSSES[loss]())
