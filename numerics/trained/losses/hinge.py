"""Multi-class hinge loss l(s) = sum_rho (1 - s_0 + s_rho)_+, summed over the competitors.

With t = x_0 - 1 the competitors move by omega_rho - x_rho = clip(omega_rho - t, 0, V) and the
target by as much in all: x_0 = omega_0 + sum_rho clip(omega_rho - t, 0, V).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from numerics.trained.losses.base import Array, Loss, Proximal
from numerics.trained.losses.clipped import clipped_level

LEAD = 1.0  # the lead over every competitor that costs nothing


class Hinge(Loss):
    """l(s) = sum_{rho >= 1} (1 - s_0 + s_rho)_+ (Weston and Watkins).

    >>> p = Hinge().proximal(np.array([[0.0, 0.0]]), 10.0)  # to the edge of the lead
    >>> p.scores(np.array([[0.0, 0.0]])).tolist(), p.loss.tolist()
    ([[0.5, -0.5]], [0.0])
    """

    name: ClassVar[str] = "hinge"
    title: ClassVar[str] = "hinge, sum of (1 - s_0 + s_rho)_+ over the competitors"
    is_smooth: ClassVar[bool] = False

    def proximal(self, omega: Array, order_v: float, guess: Array | None = None) -> Proximal:
        rivals = omega[:, 1:]
        level = clipped_level(rivals, order_v, 1.0, LEAD - omega[:, 0], guess)
        excess = rivals - level[:, None]
        step = np.empty_like(omega)
        np.clip(excess, 0.0, order_v, out=step[:, 1:])
        step[:, 0] = -np.sum(step[:, 1:], axis=1)
        # on the face where k competitors lie exactly at t the prox is a projection of codimension k
        faces = np.count_nonzero((excess > 0.0) & (excess < order_v), axis=1)
        loss = np.sum(np.maximum(excess - order_v, 0.0), axis=1)
        return Proximal(step, faces / order_v, loss, level)

    def threshold(self, rivals: Array, order_v: float) -> Array:
        # at the edge the best competitor, lowered by V, equals x_0
        edge = np.max(rivals, axis=1) - order_v
        moved = np.clip(rivals - edge[:, None] + LEAD, 0.0, order_v)
        return edge - np.sum(moved, axis=1)

    def breakpoints(self, order_v: float) -> tuple[float, ...]:
        return (LEAD - 2.0 * order_v, LEAD)
