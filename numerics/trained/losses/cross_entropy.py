"""Cross-entropy l(s) = log sum_rho e^{s_rho} - s_0; with one competitor the logistic loss.

Stationarity of the Moreau envelope reads u_rho + log u_rho = log V + a_rho - c with
u = V softmax(x), a = omega + V e_0 and c = log sum e^x, so that u_rho = W_0(V e^{a_rho - c}) and
sum_rho u_rho = V fixes the scalar c (`replica.trained` derives both).
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from scipy import special

from numerics.trained.losses.base import Array, Loss, Proximal
from numerics.trained.recall import recall_by_lead
from numerics.trained.wright import (
    SERIES,
    SERIES_LIMIT,
    wright_omega,
    wright_omega_series,
)

_MOST_STEPS = 200
_LARGE_V = 1e3  # above, omega_0 + V loses digits of omega_0
_SLACK = 0.5  # by how much the level may sink below the guess before the series is refused


class CrossEntropy(Loss):
    """l(s) = log sum_rho e^{s_rho} - s_0.

    >>> p = CrossEntropy().proximal(np.zeros((1, 3)), 1e-6)  # V -> 0: x - omega = V (e_0 - 1/3)
    >>> np.round(p.step / 1e-6, 5).tolist()
    [[-0.66667, 0.33333, 0.33333]]
    """

    name: ClassVar[str] = "cross_entropy"
    title: ClassVar[str] = "cross-entropy, log sum exp(s) - s_0"

    def proximal(self, omega: Array, order_v: float, guess: Array | None = None) -> Proximal:
        shifted = omega.copy()
        shifted[:, 0] += order_v
        shifted += math.log(order_v)
        u, root = _solve_level(shifted, order_v, guess)
        if order_v > _LARGE_V:
            root = _polished(omega[:, 0], u, root, order_v)
            u = wright_omega(shifted - root[:, None])
        rivals = np.sum(u[:, 1:], axis=1)
        # -log pi_0 = -log(1 - rivals/V) = c - a_0 + u_0, by the form that does not cancel
        share = np.minimum(rivals / order_v, 1.0)
        far = root - shifted[:, 0] + math.log(order_v) + u[:, 0]
        loss = np.where(share < 0.5, -np.log1p(-np.minimum(share, 0.5)), far)
        trace = _trace(u / (1.0 + u)) / order_v
        step = u
        step[:, 0] = -rivals
        return Proximal(step, trace, loss, root)

    def recall(self, competitors: int, norm_squared: float, order_v: float) -> float | None:
        # u is increasing in a: the target wins if and only if omega_0 + V > max omega_rho
        return recall_by_lead(competitors, order_v / math.sqrt(norm_squared))

    def breakpoints(self, order_v: float) -> tuple[float, ...]:
        return (-2.0 * order_v, -order_v, 0.0)


def _polished(target: Array, u: Array, level: Array, order_v: float) -> Array:
    """One Newton step on c = omega_0 + s - log(1 - s/V), s the sum of the competitors' shares.

    The same condition without the sum omega_0 + V, whose rounding hides omega_0 at large V. Only
    rows with s < V/2 need it.
    """
    rivals = np.sum(u[:, 1:], axis=1)
    rate = np.sum(u[:, 1:] / (1.0 + u[:, 1:]), axis=1)
    share = np.minimum(rivals / order_v, 0.5)
    excess = target + rivals - np.log1p(-share) - level
    step = excess / (1.0 + rate * (1.0 + 1.0 / (order_v * (1.0 - share))))
    return np.where(rivals < 0.5 * order_v, level + step, level)


def _trace(ratio: Array) -> Array:
    """V tr H (I + V H)^{-1} = sum_i r_i - sum_i r_i^2 / sum_i r_i with r = u/(1 + u).

    Sherman-Morrison for H = diag(pi) - pi pi^T. Written as sum_i r_i (S - r_i)/S, where S - r_i is
    summed without the largest r, so that it does not cancel when one score dominates.
    """
    largest = np.argmax(ratio, axis=1)
    rows = np.arange(len(ratio))
    top = ratio[rows, largest]
    ratio[rows, largest] = 0.0
    rest = np.sum(ratio, axis=1)
    squares = np.einsum("ij,ij->i", ratio, ratio)
    total = top + rest
    with np.errstate(invalid="ignore"):
        value = (2.0 * top * rest + rest * rest - squares) / total
    return np.where(total > 0.0, value, 0.0)


def _solve_level(shifted: Array, order_v: float, guess: Array | None) -> tuple[Array, Array]:
    """(u, c) of every row: u = W_0(e^{y - c}), sum_rho u_rho = V, y = `shifted` = log V + a.

    max a - V <= c <= log sum e^a brackets the level. Where a level nearby is known, the competitors
    at the end of the row whose u is small enough for the series enter by their power sums.
    """
    log_v = math.log(order_v)
    top = np.max(shifted, axis=1)
    low = top - log_v - order_v
    width = shifted.shape[1]
    if guess is None:
        high = special.logsumexp(shifted, axis=1) - log_v
        level = _newton(shifted, None, order_v, high.copy(), low, high)
        return wright_omega(shifted - level[:, None]), level
    high = top + math.log(width) - log_v
    start = np.clip(guess, low, high)
    head = _head(shifted, start)
    tail, sums = None, None
    if width - head > 8:
        tail = np.exp(shifted[:, head:] - start[:, None])
        sums = np.empty((len(SERIES), len(tail)))
        power = tail.copy()
        for k in range(len(SERIES)):
            sums[k] = SERIES[k] * np.sum(power, axis=1)
            power *= tail
    rows = shifted if tail is None else np.ascontiguousarray(shifted[:, :head])
    level = _newton(rows, None if sums is None else (start, sums), order_v, start.copy(), low, high)
    if tail is None:
        return wright_omega(shifted - level[:, None]), level
    moved = start - level
    if np.max(moved) > _SLACK:  # the guess was too far for the series: solve without it
        return _solve_level(shifted, order_v, None)
    tail *= np.exp(moved)[:, None]
    u = np.empty_like(shifted)
    u[:, :head] = wright_omega(rows - level[:, None])
    u[:, head:] = wright_omega_series(tail)
    return u, level


def _head(shifted: Array, level: Array) -> int:
    """Columns before the first after which every y - c stays below the limit of the series."""
    large = np.nonzero(np.max(shifted - level[:, None], axis=0) > SERIES_LIMIT - _SLACK)[0]
    return int(large[-1]) + 1 if len(large) else 1


def _newton(
    rows: Array,
    series: tuple[Array, Array] | None,
    order_v: float,
    root: Array,
    low: Array,
    high: Array,
) -> Array:
    """The level of every row, from `root` in [low, high].

    Newton's method for (sum u)^p - V^p with p taken from the local slope: p = 1 where u is linear
    in c, p -> 0 (logarithm) where it is exponential. A step that leaves the bracket is replaced by
    bisection. `series` = (start, sums): power sums of the small terms at c = start.
    """
    low, high = low.copy(), high.copy()
    active = np.arange(len(rows))
    powers = np.arange(1, len(SERIES) + 1)
    for _ in range(_MOST_STEPS):
        c = root[active]
        u = wright_omega(rows - c[:, None])
        total = np.sum(u, axis=1)
        u /= 1.0 + u
        slope = np.sum(u, axis=1)
        if series is not None:
            start, sums = series
            terms = sums[:, active] * np.exp(
                np.minimum(start[active] - c, _SLACK)[None, :] * powers[:, None]
            )
            total += np.sum(terms, axis=0)
            slope += powers @ terms
        above = total > order_v  # the root lies to the right
        low[active] = np.where(above, c, low[active])
        high[active] = np.where(above, high[active], c)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            log_ratio = np.log(total / order_v)
            power = np.maximum(1.0 - slope / total, 1e-12)
            new = c - total * np.expm1(-power * log_ratio) / (power * slope)
        inside = (new > low[active]) & (new < high[active])
        move = np.where(inside, new, 0.5 * (low[active] + high[active]))
        move = np.where(total == order_v, c, move)
        size = np.abs(move - c)
        root[active] = move
        scale = 1.0 + np.abs(c)
        # quadratic convergence: the error after a small step is below rounding
        done = (inside & (size < 1e-8 * scale)) | (high[active] - low[active] < 4e-16 * scale)
        done |= total == order_v
        if np.all(done):
            return root
        active = active[~done]
        rows = rows[~done]
    raise ArithmeticError(f"the proximal map of {len(active)} rows did not converge")
