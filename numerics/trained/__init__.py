"""The trained memory: accuracy, norm and score laws at every load (theory of the minimiser)."""

from __future__ import annotations

from numerics.trained.predict import predict
from numerics.trained.prediction import Predicted, TrainedMemory

__all__ = ["Predicted", "TrainedMemory", "predict"]
