"""Squared loss l(s) = (s_0 - 1)^2/2 of the target score: ridge regression, the pseudo-inverse.

The limit of no ridge is the least-norm minimiser of sum_mu (<G_mu, W> - 1)^2 over target matrices.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from numerics.trained.losses.base import Array, Loss, Proximal
from numerics.trained.recall import recall_by_lead


class Squared(Loss):
    """l(s) = (s_0 - 1)^2/2; the competitors' scores do not enter.

    >>> Squared().proximal(np.zeros((1, 2)), 1.0).step.tolist()
    [[-0.5, 0.0]]
    """

    name: ClassVar[str] = "squared"
    title: ClassVar[str] = "squared, (s_0 - 1)^2/2 (ridge regression, pseudo-inverse)"

    def proximal(self, omega: Array, order_v: float, guess: Array | None = None) -> Proximal:
        lack = (1.0 - omega[:, 0]) / (1.0 + order_v)
        step = np.zeros_like(omega)
        step[:, 0] = -order_v * lack
        trace = np.full(len(omega), 1.0 / (1.0 + order_v))
        return Proximal(step, trace, 0.5 * lack**2, lack)

    def recall(self, competitors: int, norm_squared: float, order_v: float) -> float:
        # x_0 = (omega_0 + V)/(1 + V) against untouched competitors
        lead = order_v / (1.0 + order_v) / math.sqrt(norm_squared)
        return recall_by_lead(competitors, lead, 1.0 / (1.0 + order_v))

    def fixed_point(self, gamma: float, ridge: float) -> tuple[float, float]:
        """(Q, V) in closed form (`replica.trained.squared` solves the equations).

        >>> q, v = Squared().fixed_point(0.5, 1e-9)  # no ridge: Q = gamma/(1 - gamma)
        >>> abs(q - 1) < 1e-6
        True
        """
        half = 0.5 * (1.0 - ridge - gamma)
        root = math.hypot(half, math.sqrt(ridge))
        v = (half + root) / ridge if half > 0.0 else 1.0 / (root - half)
        share = (v / (1.0 + v)) ** 2 * gamma
        return share / (1.0 - share), v
