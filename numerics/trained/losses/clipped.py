"""The scalar equation of piecewise linear losses: clipped excesses above a level, summed."""

from __future__ import annotations

from typing import Any

import numpy as np

from numerics.trained.losses.base import Array

_MOST_STEPS = 200


def clipped_level(
    rows: Array, cap: Any, slope: float, offset: Array, guess: Array | None = None
) -> Array:
    """The t of every row with sum_rho clip(w_rho - t, 0, cap) = slope t + offset.

    `rows` (n, M) holds w; `cap` is a number or (n,), infinity allowed; slope >= 0; `offset` (n,).
    The left side falls and the right side does not: Newton's method, exact once the set of
    unclipped terms is right, and bisection where a step leaves the bracket. For slope = 0 the
    offset must lie in [0, M cap].

    >>> clipped_level(np.array([[1.0, 0.0, -5.0]]), 10.0, 1.0, np.array([0.0])).tolist()
    [0.5]
    """
    top = np.max(rows, axis=1)
    caps = np.broadcast_to(np.asarray(cap, dtype=np.float64), top.shape)
    if slope > 0.0:
        high = np.maximum(top, -offset / slope)
        low = np.minimum(-offset / slope, high)
    else:
        high = top.copy()
        low = np.min(rows, axis=1) - caps
    level = np.clip(high if guess is None else guess, low, high)
    active = np.arange(len(rows))
    part, limit = rows, caps
    for count in range(_MOST_STEPS):
        t = level[active]
        excess = part - t[:, None]
        inside = (excess > 0.0) & (excess < limit[:, None])
        total = np.sum(np.clip(excess, 0.0, limit[:, None]), axis=1)
        value = total - slope * t - offset[active]
        rate = np.count_nonzero(inside, axis=1) + slope
        low[active] = np.where(value >= 0.0, t, low[active])
        high[active] = np.where(value <= 0.0, t, high[active])
        with np.errstate(divide="ignore", invalid="ignore"):
            new = t + value / rate
        # rounding may put an exact solution just outside
        scale = 1e-14 * (1.0 + np.abs(t) + np.abs(offset[active]))
        kept = (new >= low[active] - scale) & (new <= high[active] + scale)
        kept &= count % 3 < 2  # Newton's method may go round between pieces: halve now and then
        move = np.where(kept, new, 0.5 * (low[active] + high[active]))
        level[active] = move
        done = kept & (np.abs(move - t) <= scale) | (high[active] - low[active] <= scale)
        if np.all(done):
            return level
        keep = ~done
        active, part, limit = active[keep], part[keep], limit[keep]
    raise ArithmeticError(f"the level of {len(active)} rows did not converge")
