"""The trained memory: a convex loss with a ridge penalty, by the replica method."""

from __future__ import annotations

from replica.trained.catalogue import LOSSES, theory
from replica.trained.free_entropy import TrainedTheory

__all__ = ["LOSSES", "TrainedTheory", "theory"]
