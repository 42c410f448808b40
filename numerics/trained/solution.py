"""One point (gamma, M, lambda) solved to a wanted accuracy, by the method that fits the case."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from numerics.trained.fixed_point import Array, Equations, State, solve
from numerics.trained.line import Line
from numerics.trained.losses.base import Loss
from numerics.trained.losses.squared import Squared
from numerics.trained.population import REPLICATES, Population, draw_population
from numerics.trained.prediction import (
    QUANTITIES,
    Predicted,
    observable_slopes,
    observe,
    observed,
)
from replica.errors import InvalidInput

MOST_NUMBERS = 1 << 28  # 2 GiB of fields
_PILOT = 32  # facts a replicate in the first population

Tick = Callable[[str], None]


@dataclass(frozen=True)
class Solution:
    """The fixed point `state`, the four quantities `found`, and what they were computed on.

    `equations` holds the population (None for the closed form); `facts_drawn` is 0 without one.
    """

    state: State
    found: dict[str, Predicted]
    equations: Equations | None
    facts_drawn: int


def solve_point(
    loss: Loss,
    gamma: float,
    competitors: int,
    ridge: float,
    accuracy: float,
    seed: int,
    tick: Tick | None = None,
    start: State | None = None,
) -> Solution:
    """Fixed point and predictions at load `gamma`; M = 1 by quadrature, the squared loss in closed
    form, else on populations that grow until every relative standard error is below `accuracy`.

    `start` is a solution nearby (warm start). Raises `InvalidInput` if the accuracy asks for too
    many random numbers.
    """
    if isinstance(loss, Squared):
        return _closed_form(loss, gamma, ridge, competitors)
    if competitors == 1:
        return _quadrature(loss, gamma, ridge, start)
    size, state, slopes = _PILOT, start, None
    while True:
        if size * REPLICATES * (competitors + 1) > MOST_NUMBERS:
            raise InvalidInput(
                f"the accuracy {accuracy} with {competitors} competitors needs more than "
                f"{MOST_NUMBERS} random numbers; ask for a larger accuracy, such as "
                f"{2 * accuracy:.2g}, or fewer competitors"
            )
        if tick is not None:
            tick(f"{size * REPLICATES} facts drawn")
        population = draw_population(competitors, size, seed)
        equations = Equations(population, loss, gamma, ridge)
        state = solve(equations, state)
        if slopes is None:
            slopes = observable_slopes(equations, state)
        found = observe(equations, state, slopes)
        worst = max(found[name].stderr / _scale(loss, name, found[name]) for name in QUANTITIES)
        if worst <= accuracy:
            return Solution(state, found, equations, population.size)
        size <<= _doublings(worst / accuracy)


def _quadrature(loss: Loss, gamma: float, ridge: float, start: State | None) -> Solution:
    """M = 1: two resolutions, the finer values; their difference and the residual as the error."""
    rough, fine = (Equations(Line(nodes), loss, gamma, ridge) for nodes in (16, 24))
    coarse = solve(rough, start, 1e-12)
    state = solve(fine, coarse, 1e-12)
    first, second = (observed(e.ensemble, loss, x) for e, x in ((rough, coarse), (fine, state)))
    left = state.residual * float(np.linalg.norm(np.linalg.inv(state.jacobian), np.inf))
    values = {
        name: Predicted(second[name], abs(second[name] - first[name]) + left * abs(second[name]))
        for name in QUANTITIES
    }
    return Solution(state, values, fine, 0)


def _closed_form(loss: Squared, gamma: float, ridge: float, competitors: int) -> Solution:
    """The squared loss: the equations are quadratic; no sampling and no iteration."""
    q, v = loss.fixed_point(gamma, ridge)
    accuracy = loss.recall(competitors, q, v)
    exact = [Predicted(x, 0.0) for x in (accuracy, 0.5 * (1.0 + q) / (1.0 + v) ** 2, q, v)]
    state = State(q, v, 0.0, np.eye(2))
    return Solution(state, dict(zip(QUANTITIES, exact, strict=True)), None, 0)


def _doublings(excess: float) -> int:
    """Doublings of a population whose error is `excess` times too large, 1 to 6.

    Errors fall at least like 1/sqrt(n); 30 % on top, as the error of 16 replicates is uncertain;
    powers of two keep the Sobol points balanced.
    """
    return min(max(math.ceil(math.log2(1.3 * excess**2)), 1), 6)


def _scale(loss: Loss, name: str, predicted: Predicted) -> float:
    """What the accuracy is relative to: the value, for small recall probabilities a constant."""
    return max(abs(predicted.value), loss.recall_scale if name == "accuracy" else 1e-300)


def propagated(
    solution: Solution, observables: Callable[[Population, Array], Array], population: Population
) -> list[Predicted]:
    """Observables (R, k) at the fixed point with the error of the fixed point carried along.

    `observables(population, (log Q, log V))` gives one row a replicate. On the population of the
    solution the moves of its root by replicate are included; the others have an exact root.
    """
    point = solution.state.point
    values = observables(population, point)
    influence = values.copy()
    equations = solution.equations
    if equations is not None and equations.ensemble is population:
        moves = -np.linalg.solve(solution.state.jacobian, equations.per_replicate(point).T).T
        for axis in range(2):
            step = np.zeros(2)
            step[axis] = 1e-2
            up, down = (observables(population, point + sign * step) for sign in (1, -1))
            slope = (up.mean(axis=0) - down.mean(axis=0)) / 2e-2
            influence += moves[:, axis : axis + 1] * slope
    errors = np.std(influence, axis=0, ddof=1) / math.sqrt(len(values))
    means = values.mean(axis=0)
    return [Predicted(float(m), float(e)) for m, e in zip(means, errors, strict=True)]
