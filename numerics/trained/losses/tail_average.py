"""Tail-average hinge loss l(s) = (1 - s_0 + TA_r(s))_+, TA_r the mean of the best r M competitors.

TA_r(s) = max over weights w of w . s with 0 <= w_rho <= 1/(r M), sum w = 1 (r M need not be whole).
With multiplier g in [0, 1]: x_0 = omega_0 + V g and omega_rho - x_rho = clip(omega_rho - tau, 0,
V g/(r M)), which sum to V g; g = 0 if the lead is there already, g = 1 if it stays out of reach.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from numerics.trained.losses.base import Array, Loss, Proximal
from numerics.trained.losses.clipped import clipped_level
from numerics.trained.losses.hinge import LEAD, Hinge
from replica.errors import InvalidInput

_MOST_STEPS = 200


@dataclass(frozen=True)
class TailAverage(Loss):
    """l(s) = (1 - s_0 + mean of the best `fraction` M competitors)_+ (listwise margin).

    fraction = 1/M is the hinge on the best competitor alone (Crammer and Singer).

    >>> p = TailAverage(1.0).proximal(np.array([[0.0, 0.0, 0.0]]), 10.0)
    >>> np.round(p.scores(np.array([[0.0, 0.0, 0.0]])), 12).tolist()
    [[0.666666666667, -0.333333333333, -0.333333333333]]
    """

    fraction: float = 0.1

    name: ClassVar[str] = "tail_average"
    title: ClassVar[str] = "tail average, (1 - s_0 + mean of the best r M competitors)_+"
    is_smooth: ClassVar[bool] = False
    recall_scale: ClassVar[float] = 1.0  # an indicator: absolute accuracy

    def __post_init__(self) -> None:
        if not 0.0 < self.fraction <= 1.0:
            raise InvalidInput(
                f"fraction is {self.fraction}; the averaged fraction of the competitors lies in "
                "(0, 1]; give for example 0.1"
            )

    def check_competitors(self, competitors: int) -> None:
        if self.fraction * competitors < 1.0:
            raise InvalidInput(
                f"a fraction {self.fraction} of {competitors} competitors is less than one; give a "
                f"fraction of at least 1/{competitors}"
            )

    def threshold(self, rivals: Array, order_v: float) -> Array | None:
        # with one competitor it is the hinge; else the target's lead is not monotone in omega_0
        return Hinge().threshold(rivals, order_v) if rivals.shape[1] == 1 else None

    def breakpoints(self, order_v: float) -> tuple[float, ...]:
        return Hinge().breakpoints(order_v)

    @property
    def key(self) -> tuple[object, ...]:
        return (self.name, self.fraction)

    def weights(self, rivals: Array) -> Array:
        """The nearest weights w of the tail average, sum w = 1, 0 <= w <= 1/(r M); (n, M)."""
        cap = 1.0 / (self.fraction * rivals.shape[1])
        level = clipped_level(rivals, cap, 0.0, np.ones(len(rivals)))
        return np.clip(rivals - level[:, None], 0.0, cap)

    def proximal(self, omega: Array, order_v: float, guess: Array | None = None) -> Proximal:
        rivals = omega[:, 1:]
        size = self.fraction * rivals.shape[1]
        count = len(rivals)
        start = np.zeros(count) if guess is None else guess
        low, high = np.zeros(count), np.ones(count)
        g = np.clip(start, 0.0, 1.0)
        active = np.arange(count)
        for step in range(_MOST_STEPS):
            weight = g[active]
            lack, rate = _lack(omega[active], weight, order_v, size)
            low[active] = np.where(lack >= 0.0, weight, low[active])
            high[active] = np.where(lack <= 0.0, weight, high[active])
            new = np.clip(weight + lack / rate, 0.0, 1.0)
            kept = (new >= low[active] - 1e-14) & (new <= high[active] + 1e-14)
            kept &= step % 3 < 2  # between pieces Newton's method may go round
            move = np.where(kept, new, 0.5 * (low[active] + high[active]))
            g[active] = move
            done = kept & (np.abs(move - weight) <= 1e-13) | (high[active] - low[active] <= 1e-14)
            if np.all(done):
                break
            active = active[~done]
        else:
            raise ArithmeticError(f"the multiplier of {len(active)} rows did not converge")
        return self._at(omega, g, order_v, size)

    def _at(self, omega: Array, g: Array, order_v: float, size: float) -> Proximal:
        rivals = omega[:, 1:]
        cap = order_v * g / size
        tau = clipped_level(rivals, cap, 0.0, order_v * g)
        excess = rivals - tau[:, None]
        step = np.empty_like(omega)
        np.clip(excess, 0.0, cap[:, None], out=step[:, 1:])
        step[:, 0] = -order_v * g
        lack, _ = _lack(omega, g, order_v, size)
        # codimension of the face: ties among the partly moved, one more where the lead is exact
        ties = np.count_nonzero((excess > 0.0) & (excess < cap[:, None]), axis=1)
        codimension = np.where(g > 0.0, np.maximum(ties - 1, 0), 0) + ((g > 0.0) & (g < 1.0))
        return Proximal(step, codimension / order_v, np.where(g < 1.0, 0.0, np.maximum(lack, 0)), g)


def _lack(omega: Array, g: Array, order_v: float, size: float) -> tuple[Array, Array]:
    """1 + TA(x(g)) - x_0(g) of every row and minus its slope in g (piecewise linear)."""
    rivals = omega[:, 1:]
    cap = order_v * g / size
    tau = clipped_level(rivals, cap, 0.0, order_v * g)
    excess = rivals - tau[:, None]
    full = excess >= cap[:, None]
    partly = np.count_nonzero((excess > 0.0) & ~full, axis=1)
    # the full ones weigh 1/size each; what is left of the weight lies at tau
    most = np.minimum(np.count_nonzero(full, axis=1), size)
    average = tau + np.sum(np.where(full, excess - cap[:, None], 0.0), axis=1) / size
    still = cap < 1e-13 * (1.0 + np.abs(tau))  # nothing moves: the best ones by sorting
    if np.any(still):
        whole = int(size)
        ordered = -np.sort(-rivals[still], axis=1)
        heads = np.sum(ordered[:, :whole], axis=1)
        if whole < ordered.shape[1]:
            heads += (size - whole) * ordered[:, whole]
        average[still], most[still], partly[still] = heads / size, whole, 1
    left = np.maximum(1.0 - most / size, 0.0)
    rate = order_v * (1.0 + most / size**2 + left**2 / np.maximum(partly, 1))
    return LEAD + average - omega[:, 0] - order_v * g, rate
