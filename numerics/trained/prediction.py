"""What the fixed point predicts: accuracy, loss, norm, order parameter, with standard errors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from numerics.trained.fixed_point import Array, Equations, State
from numerics.trained.losses.base import Loss
from numerics.trained.population import Ensemble

QUANTITIES = ("accuracy", "loss", "norm_squared", "order_parameter_V")


@dataclass(frozen=True)
class Predicted:
    """A predicted number `value` with its standard error `stderr` (sampling of the averages)."""

    value: float
    stderr: float

    def to_json(self) -> dict[str, float]:
        """`value` and `stderr`."""
        return {"value": self.value, "stderr": self.stderr}

    def __str__(self) -> str:
        return f"{self.value:.6g} +- {self.stderr:.1g}"


@dataclass(frozen=True)
class TrainedMemory:
    """The memory that minimises sum_mu l(s_mu) + (ridge N/2) ||W||^2, N parameters.

    `accuracy` = P(target score above all competitors), `loss` = E l per fact,
    `norm_squared` = ||W||^2 = Q (scores of unit-variance examples have variance Q),
    `order_parameter_V`; `residual` of the self-consistent equations (relative); `facts_drawn`, size
    of the population (0: deterministic quadrature, `stderr` is then its error estimate); `method`,
    how the averages were taken and why not otherwise.
    """

    parameters: int
    facts: int
    competitors: int
    ridge: float
    loss_name: str
    accuracy: Predicted
    loss: Predicted
    norm_squared: Predicted
    order_parameter_V: Predicted
    residual: float
    facts_drawn: int
    seed: int
    method: str

    @property
    def gamma(self) -> float:
        """Facts per parameter."""
        return self.facts / self.parameters

    def to_json(self) -> dict[str, Any]:
        """The inputs, and every quantity as {value, stderr}."""
        return {
            "parameters": self.parameters,
            "facts": self.facts,
            "competitors": self.competitors,
            "ridge": self.ridge,
            "loss_function": self.loss_name,
            **{name: getattr(self, name).to_json() for name in QUANTITIES},
            "residual": self.residual,
            "facts_drawn": self.facts_drawn,
            "seed": self.seed,
            "method": self.method,
        }


def observe(equations: Equations, state: State, slopes: Array) -> dict[str, Predicted]:
    """The four quantities with standard errors over replicates, root error included.

    theta = (log Q, log V) solves mean r(theta) = 0; replicate k moves it by -J^{-1} r_k, and an
    observable O by O_k - O + dO/dtheta . dtheta_k (delta method). `slopes` is dO/dtheta, (2, 2), of
    `observable_slopes`.
    """
    residuals = equations.per_replicate(state.point)
    observables = _observables(equations.ensemble, equations.loss, state.point)
    shift = -np.linalg.solve(state.jacobian, residuals.T).T  # (R, 2)
    influence = observables + shift @ slopes
    results = {}
    for column, name in enumerate(("accuracy", "loss")):
        value = float(observables[:, column].mean())
        results[name] = Predicted(value, _stderr(influence[:, column]))
    for column, (name, value) in enumerate(
        (("norm_squared", state.norm_squared), ("order_parameter_V", state.order_v))
    ):
        results[name] = Predicted(value, value * _stderr(shift[:, column]))
    return results


def observable_slopes(equations: Equations, state: State, step: float = 1e-3) -> Array:
    """d (accuracy, loss)/d (log Q, log V), row by row, by central differences."""
    rows = []
    for axis in range(2):
        move = np.zeros(2)
        move[axis] = step
        up = _observables(equations.ensemble, equations.loss, state.point + move)
        down = _observables(equations.ensemble, equations.loss, state.point - move)
        rows.append((up.mean(axis=0) - down.mean(axis=0)) / (2.0 * step))
    return np.array(rows)


def observed(ensemble: Ensemble, loss: Loss, state: State) -> dict[str, float]:
    """The four quantities at a solution, without errors."""
    accuracy, value = _observables(ensemble, loss, state.point).mean(axis=0)
    values = (float(accuracy), float(value), state.norm_squared, state.order_v)
    return dict(zip(QUANTITIES, values, strict=True))


def _stderr(influence: Any) -> float:
    return float(np.std(influence, ddof=1)) / math.sqrt(len(influence))


def _observables(ensemble: Ensemble, loss: Loss, point: Array) -> Array:
    """(R, 2): accuracy and loss of every replicate."""
    q, v = (float(x) for x in np.exp(point))
    means = ensemble.averages(loss, q, v)
    known = loss.recall(ensemble.competitors, q, v)
    recalled = means.recalled if known is None else np.full_like(means.recalled, known)
    return np.column_stack([recalled, means.loss])
