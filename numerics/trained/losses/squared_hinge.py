"""Squared hinge loss l(s) = 1/2 sum_rho (1 - s_0 + s_rho)_+^2 over the competitors.

With t = x_0 - 1 the competitors above t move by V/(1+V) (omega_rho - t), the target by as much in
all: t + 1 - omega_0 = V/(1+V) sum_rho (omega_rho - t)_+.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from numerics.trained.losses.base import Array, Loss, Proximal
from numerics.trained.losses.clipped import clipped_level
from numerics.trained.losses.hinge import LEAD


class SquaredHinge(Loss):
    """l(s) = 1/2 sum_{rho >= 1} (1 - s_0 + s_rho)_+^2.

    >>> p = SquaredHinge().proximal(np.array([[0.0, 0.0]]), 1.0)
    >>> np.round(p.scores(np.array([[0.0, 0.0]])), 12).tolist()
    [[0.333333333333, -0.333333333333]]
    """

    name: ClassVar[str] = "squared_hinge"
    title: ClassVar[str] = "squared hinge, half the sum of (1 - s_0 + s_rho)_+^2 over competitors"
    is_smooth: ClassVar[bool] = False

    def proximal(self, omega: Array, order_v: float, guess: Array | None = None) -> Proximal:
        rivals = omega[:, 1:]
        stiffness = (1.0 + order_v) / order_v
        offset = stiffness * (LEAD - omega[:, 0])
        level = clipped_level(rivals, np.inf, stiffness, offset, guess)
        step = np.empty_like(omega)
        step[:, 1:] = np.maximum(rivals - level[:, None], 0.0) / stiffness
        step[:, 0] = -np.sum(step[:, 1:], axis=1)
        # H is the Laplacian of a star with k leaves: eigenvalues 1 (k - 1 times) and k + 1
        k = np.count_nonzero(step[:, 1:] > 0.0, axis=1)
        trace = np.where(k > 0, (k - 1) / (1.0 + order_v) + (k + 1) / (1.0 + order_v * (k + 1)), 0)
        loss = 0.5 * np.einsum("ij,ij->i", step[:, 1:], step[:, 1:]) / order_v**2
        return Proximal(step, trace, loss, level)

    def threshold(self, rivals: Array, order_v: float) -> Array:
        # at the edge x_0 = (omega_best + V t)/(1 + V), so x_0 = omega_best - V
        edge = np.max(rivals, axis=1) - order_v * LEAD
        moved = np.maximum(rivals - edge[:, None] + LEAD, 0.0) * (order_v / (1.0 + order_v))
        return edge - np.sum(moved, axis=1)

    def breakpoints(self, order_v: float) -> tuple[float, ...]:
        return (LEAD,)
