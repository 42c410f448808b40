"""The trained memory: accuracy, norm and score laws at every load (theory of the minimiser)."""

from __future__ import annotations

from numerics.trained.best_ridge import BestRidge, best_ridge
from numerics.trained.catalogue import LOSSES
from numerics.trained.curve import CurvePoint, accuracy_curve, pseudo_inverse_recall
from numerics.trained.laws import ScoreLaw, ScoreLaws, score_laws
from numerics.trained.paths import load_path, ridge_path
from numerics.trained.predict import predict
from numerics.trained.prediction import Predicted, TrainedMemory

__all__ = [
    "LOSSES",
    "BestRidge",
    "CurvePoint",
    "Predicted",
    "ScoreLaw",
    "ScoreLaws",
    "TrainedMemory",
    "accuracy_curve",
    "best_ridge",
    "load_path",
    "predict",
    "pseudo_inverse_recall",
    "ridge_path",
    "score_laws",
]
