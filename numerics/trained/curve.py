"""Accuracy against load: trained memory, Hebbian memory, pseudo-inverse."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from numerics.trained.catalogue import loss_by_name
from numerics.trained.predict import check_point, check_without_ridge
from numerics.trained.prediction import Predicted
from numerics.trained.recall import recall_by_lead
from numerics.trained.solution import solve_point
from replica.errors import InvalidInput


@dataclass(frozen=True)
class CurvePoint:
    """Accuracy at one load alpha = p log p/N: trained, Hebbian and pseudo-inverse memory."""

    facts: int
    load: float
    trained: Predicted
    hebbian: float
    pseudo_inverse: float


def accuracy_curve(
    facts: int,
    loads: Sequence[float],
    ridge: float,
    loss: str = "cross_entropy",
    accuracy: float = 0.003,
    seed: int = 0,
) -> list[CurvePoint]:
    """Accuracy against load alpha = p log p/N at fixed p = `facts`, M = p - 1; any N > 0.

    Beside the memory trained at `ridge`: the Hebbian memory, E Phi(1/sigma + z)^M with sigma^2 =
    p/N, and the pseudo-inverse, the squared loss without ridge.

    >>> (point,) = accuracy_curve(2, [0.5], 0.1)
    >>> point.hebbian < point.trained.value
    True
    """
    kind = loss_by_name(loss)
    if facts < 2 or not loads or min(loads) <= 0.0:
        raise InvalidInput(
            f"facts is {facts} and the loads are {list(loads)}; give at least 2 facts and positive "
            "loads, such as 0.5"
        )
    points, start = [], None
    rivals = facts - 1
    for load in loads:
        gamma = load / math.log(facts)
        check_point(kind, 1, facts, rivals, ridge or 1.0, accuracy, seed)
        if ridge == 0:
            check_without_ridge(kind, Fraction(gamma), rivals, seed)
        found = solve_point(kind, gamma, rivals, ridge, accuracy, seed, start=start)
        start = found.state
        points.append(
            CurvePoint(
                facts,
                load,
                found.found["accuracy"],
                recall_by_lead(rivals, 1.0 / math.sqrt(gamma)),
                pseudo_inverse_recall(gamma, rivals),
            )
        )
    return points


def pseudo_inverse_recall(gamma: float, competitors: int) -> float:
    """Accuracy of the least-norm solution of <G_mu, W> = 1: the squared loss as lambda -> 0.

    gamma < 1: x_0 = 1, Q = gamma/(1 - gamma); gamma > 1: V = 1/(gamma - 1), Q = 1/(gamma - 1).
    Near gamma = 1 the norm diverges and with it every advantage of the target.

    >>> round(pseudo_inverse_recall(0.5, 1), 6)  # Phi(1), Q = 1
    0.841345
    """
    if gamma <= 0.0:
        raise InvalidInput(f"gamma is {gamma}; the facts per parameter are positive; give 0.1")
    if gamma < 1.0:
        lead, spread = math.sqrt((1.0 - gamma) / gamma), 0.0
    else:
        # V/(1 + V) = 1/gamma and 1/(1 + V) = 1 - 1/gamma
        lead, spread = math.sqrt(gamma - 1.0) / gamma, 1.0 - 1.0 / gamma
    return recall_by_lead(competitors, lead, spread)
