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
from numerics.trained.wright import wright_omega

_MOST_STEPS = 200


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
        root = _solve_level(shifted, order_v, guess)
        u = wright_omega(math.log(order_v) + shifted - root[:, None])
        rivals = np.sum(u[:, 1:], axis=1)
        # log pi_0 = log(1 - rivals/V), by whichever form does not cancel
        share = np.minimum(rivals / order_v, 1.0)
        own = u[:, 0] / order_v
        with np.errstate(divide="ignore"):
            loss = np.where(share < 0.5, -np.log1p(-share), -np.log(own))
        ratio = u / (1.0 + u)
        total = np.sum(ratio, axis=1)
        trace = _trace(ratio, total) / order_v
        step = u
        step[:, 0] = -rivals
        return Proximal(step, trace, loss, root)

    def recall(self, competitors: int, norm_squared: float, order_v: float) -> float | None:
        # u is increasing in a: the target wins if and only if omega_0 + V > max omega_rho
        return recall_by_lead(competitors, order_v / math.sqrt(norm_squared))

    def breakpoints(self, order_v: float) -> tuple[float, ...]:
        return (-2.0 * order_v, -order_v, 0.0)


def _trace(ratio: Array, total: Array) -> Array:
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
    with np.errstate(invalid="ignore"):
        value = (2.0 * top * rest + rest * rest - squares) / total
    return np.where(total > 0.0, value, 0.0)


def _solve_level(shifted: Array, order_v: float, guess: Array | None) -> Array:
    """The c of every row with sum_rho wright_omega(log V + a_rho - c) = V.

    max a - V <= c <= log sum e^a brackets it. Newton's method for (sum u)^p - V^p, the power p
    taken from the local slope: p = 1 where u is linear in c, p -> 0 (logarithm) where it is
    exponential; a step that leaves the bracket is replaced by bisection.
    """
    top = np.max(shifted, axis=1)
    low = top - order_v
    # sum_rho u_rho <= sum e^{...}, and if all u equal V/(M+1): c = log-sum-exp minus at most that
    high = special.logsumexp(shifted, axis=1)
    log_v = math.log(order_v)
    start = high if guess is None else guess
    root = np.clip(start, low, high)
    active = np.arange(len(shifted))
    rows = shifted
    for _ in range(_MOST_STEPS):
        c = root[active]
        u = wright_omega(log_v + rows - c[:, None])
        total = np.sum(u, axis=1)
        slope = np.sum(u / (1.0 + u), axis=1)
        above = total > order_v  # the root lies to the right
        low[active] = np.where(above, c, low[active])
        high[active] = np.where(above, high[active], c)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            log_ratio = np.log(total / order_v)
            power = 1.0 - slope / total
            factor = np.where(
                np.abs(power * log_ratio) > 1e-8,
                -np.expm1(-power * log_ratio) / power,
                log_ratio,
            )
            new = c + total * factor / slope
        inside = (new > low[active]) & (new < high[active])
        bisected = 0.5 * (low[active] + high[active])
        move = np.where(inside, new, bisected)
        size = np.abs(move - c)
        root[active] = move
        scale = 1.0 + np.abs(c)
        # quadratic convergence: the step after a small one is below rounding
        done = (inside & (size < 1e-8 * scale)) | (high[active] - low[active] < 4e-16 * scale)
        done |= total == order_v
        root[active] = np.where(total == order_v, c, root[active])
        if np.all(done):
            return root
        active = active[~done]
        rows = shifted[active]
    raise ArithmeticError(f"the proximal map of {len(active)} rows did not converge")
