"""The self-consistent equations of the trained memory, solved with a residual that is reported.

    Q = gamma E |x - omega|^2,      1/V = lambda + gamma E tr[H (I + V H)^{-1}]

in (log Q, log V): Newton's method with a backtracking line search on the size of the residual, from
a path in lambda that starts where the solution is known (V = 1/lambda, the Hebbian limit).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from numerics.trained.losses.base import Loss
from numerics.trained.population import Ensemble

Array = NDArray[np.float64]

_DIFFERENCE = 1e-5  # step of the finite-difference Jacobian, in logarithms
_MOST_NEWTON = 40
_MOST_PLAIN = 100


@dataclass(frozen=True)
class State:
    """Q = ||W||^2 and V of the fixed point, and the largest residual of the two logarithms."""

    norm_squared: float
    order_v: float
    residual: float
    jacobian: Array

    @property
    def point(self) -> Array:
        """(log Q, log V)."""
        return np.log([self.norm_squared, self.order_v])


@dataclass(frozen=True)
class Equations:
    """The two equations at load `gamma`, ridge `ridge` for one loss and one ensemble."""

    ensemble: Ensemble
    loss: Loss
    gamma: float
    ridge: float

    def per_replicate(self, point: Array) -> Array:
        """(R, 2): log(gamma E|x - omega|^2/Q) and log(V (lambda + gamma E tr)) by replicate,

        linearised in the averages about their mean over replicates.
        """
        q, v = np.exp(point)
        means = self.ensemble.averages(self.loss, float(q), float(v))
        return self._logs(means.squared_step, means.trace, q, v)

    def residual(self, point: Array) -> Array:
        """(2,): the two logarithms, zero at the solution."""
        return np.asarray(np.mean(self.per_replicate(point), axis=0))

    def _logs(self, squared_step: Array, trace: Array, q: float, v: float) -> Array:
        first, second = np.mean(squared_step), np.mean(trace)
        whole = self.ridge + self.gamma * second
        if not (first > 0.0 and whole > 0.0 and math.isfinite(first + whole)):
            raise ArithmeticError(f"the averages at Q = {q:.3g}, V = {v:.3g} are not positive")
        values = np.empty((len(squared_step), 2))
        values[:, 0] = np.log(self.gamma * first / q) + (squared_step - first) / first
        values[:, 1] = np.log(v * whole) + self.gamma * (trace - second) / whole
        return values

    def jacobian(self, point: Array, value: Array) -> Array:
        """d residual/d (log Q, log V) by one-sided differences on the common fields."""
        columns = []
        for axis in range(2):
            step = np.zeros(2)
            step[axis] = _DIFFERENCE
            columns.append((self.residual(point + step) - value) / _DIFFERENCE)
        return np.column_stack(columns)


def newton(
    equations: Equations,
    start: Array,
    tolerance: float = 1e-10,
    jacobian: Array | None = None,
) -> State | None:
    """Newton's method from `start`; None where no step reduces the residual.

    Between fresh Jacobians (finite differences) it is updated along the steps taken (Broyden); one
    from a smaller population may be given to begin with.
    """
    point = np.array(start, dtype=np.float64)
    value = equations.residual(point)
    size = float(np.max(np.abs(value)))
    fresh = jacobian is None
    if jacobian is None:
        jacobian = equations.jacobian(point, value)
    for _ in range(_MOST_NEWTON):
        if size <= tolerance:
            break
        try:
            step = -np.linalg.solve(jacobian, value)
        except np.linalg.LinAlgError:
            return None
        step *= min(1.0, 1.5 / float(np.max(np.abs(step))))
        factor = 1.0
        while factor > 1e-3:
            trial = point + factor * step
            try:
                new = equations.residual(trial)
            except ArithmeticError:
                factor *= 0.5
                continue
            new_size = float(np.max(np.abs(new)))
            if new_size < (1.0 - 0.1 * factor) * size:
                break
            factor *= 0.5
        else:
            if fresh:
                return None
            jacobian, fresh = equations.jacobian(point, value), True
            continue
        slow = new_size > 0.1 * size
        moved = trial - point
        # secant update (Broyden): the Jacobian along the step just taken
        jacobian = jacobian + np.outer(new - value - jacobian @ moved, moved) / (moved @ moved)
        point, value, size, fresh = trial, new, new_size, False
        if slow and size > tolerance:
            jacobian, fresh = equations.jacobian(point, value), True
    if size > tolerance:
        return None
    return State(float(np.exp(point[0])), float(np.exp(point[1])), size, jacobian)


def solve(equations: Equations, start: State | None = None, tolerance: float = 1e-10) -> State:
    """The fixed point, from the neighbouring solution `start` if given, else along a path.

    The path begins at lambda = max(ridge, 30 gamma), where V is about 1/lambda, and halves its
    (logarithmic) step where Newton's method fails. Raises `ArithmeticError` if lambda cannot be
    reached.
    """
    if start is not None:
        found = newton(equations, start.point, tolerance, start.jacobian)
        if found is not None:
            return found
    ridge = max(equations.ridge, 30.0 * equations.gamma)
    stage = Equations(equations.ensemble, equations.loss, equations.gamma, ridge)
    v = 1.0 / ridge
    means = stage.ensemble.averages(stage.loss, equations.gamma * v * v, v)
    q = max(equations.gamma * float(np.mean(means.squared_step)), 1e-300)
    point = np.log([q, v])
    found = newton(stage, point, 1e-6)
    if found is None:  # a loss with a kink at s = 0 is not linear at small fields either
        found = newton(stage, _iterated(stage, point), 1e-6)
    if found is None:
        raise ArithmeticError(f"no fixed point near the Hebbian limit at ridge {ridge}")
    log_ridge, goal = math.log(ridge), _safe_log(equations.ridge)
    step, slope = 2.3, np.zeros(2)
    while log_ridge > goal:
        target = max(log_ridge - step, goal)
        ridge = math.exp(target) if target > goal else equations.ridge
        stage = Equations(equations.ensemble, equations.loss, equations.gamma, ridge)
        guess = found.point + slope * (log_ridge - target)
        new = newton(stage, guess, 1e-6)
        if new is None:
            step *= 0.5
            slope = slope * 0.5
            if step < 1e-3:
                raise ArithmeticError(
                    f"the path in the ridge parameter stopped at {math.exp(log_ridge):.3g}"
                )
            continue
        slope = (new.point - found.point) / (log_ridge - target)
        found, log_ridge = new, target
    final = newton(equations, found.point, tolerance)
    if final is None:
        raise ArithmeticError("the residual of the fixed point stopped above its tolerance")
    return final


def _iterated(equations: Equations, point: Array) -> Array:
    """Plain iteration Q <- gamma E|x - omega|^2, V <- 1/(lambda + gamma E tr); at large ridges."""
    for _ in range(_MOST_PLAIN):
        value = equations.residual(point)
        point = point + value * np.array([1.0, -1.0])
        if np.max(np.abs(value)) < 1e-3:
            break
    return point


def _safe_log(ridge: float) -> float:
    return math.log(ridge) if ridge > 0.0 else math.log(1e-12)
