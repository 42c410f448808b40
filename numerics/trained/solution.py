"""One point (gamma, M, lambda) solved to a wanted accuracy, by the method that fits the case."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from numerics.trained.convolution import Convolution
from numerics.trained.fixed_point import Array, Equations, State, solve
from numerics.trained.line import Line
from numerics.trained.losses.base import Loss
from numerics.trained.losses.cross_entropy import CrossEntropy
from numerics.trained.losses.squared import Squared
from numerics.trained.population import REPLICATES, Ensemble, Population, draw_population
from numerics.trained.prediction import (
    QUANTITIES,
    Predicted,
    observable_slopes,
    observe,
    observed,
)
from numerics.trained.vanishing import vanishes
from replica.errors import InvalidInput

MOST_NUMBERS = 1 << 28  # 2 GiB of fields
LEAST_LOSS = 0.01  # a smaller loss per fact is wanted to the accuracy times this
METHODS = ("auto", "population")
NO_MEMORY = "the minimiser is W = 0: every score is zero, a tie recalls nothing"
#: (grid, levels, fields) of `Convolution`, coarse to fine, for V up to `_RESOLVED_V`.
GRIDS = ((256, 64, 800), (512, 90, 1100), (1024, 130, 1600), (4096, 130, 1600))
_ROUGH = (256, 40, 500)  # for the path to the neighbourhood of the solution
_PILOT_COMPETITORS = 200  # up to here a pilot population costs less than that path
_RESOLVED_V = 128.0
_MOST_SCALE = 4.0  # beyond, V/`grid` is too coarse for the shares and the population serves
_CONVOLUTION_ACCURACY = 1e-4  # costs no more than less
_PILOT = 32  # facts a replicate in the first population

Tick = Callable[[str], None]


@dataclass(frozen=True)
class Solution:
    """The fixed point `state`, the four quantities `found`, and what they were computed on.

    `equations` holds the population (None for the closed form); `facts_drawn` is 0 without one.
    `method`: how the averages were taken, in words.
    """

    state: State
    found: dict[str, Predicted]
    equations: Equations | None
    facts_drawn: int
    method: str


def sampled_numbers(loss: Loss, competitors: int) -> int:
    """Random numbers of the smallest population; 0 where none is needed to begin with."""
    if competitors == 1 or isinstance(loss, Squared | CrossEntropy):
        return 0
    return _PILOT * REPLICATES * (competitors + 1)


def most_competitors() -> int:
    """The largest M whose smallest population fits."""
    return MOST_NUMBERS // (_PILOT * REPLICATES) - 1


def solve_point(
    loss: Loss,
    gamma: float,
    competitors: int,
    ridge: float,
    accuracy: float,
    seed: int,
    *,
    method: str = "auto",
    tick: Tick | None = None,
    start: State | None = None,
) -> Solution:
    """Fixed point and predictions at load `gamma`, with relative standard errors below `accuracy`.

    M = 1 by quadrature, the squared loss in closed form, cross-entropy by convolution (method
    "auto"); the rest, and what a convolution cannot resolve, on populations that grow. `start` is a
    solution nearby (warm start). Raises `InvalidInput` if too many random numbers are needed or the
    equations are not solved.
    """
    if vanishes(loss, gamma, competitors, seed):
        return _no_memory()
    if start is not None and start.norm_squared == 0.0:
        start = None
    try:
        return _solved(loss, gamma, competitors, ridge, accuracy, seed, method, tick, start)
    except (ArithmeticError, np.linalg.LinAlgError) as reason:
        raise InvalidInput(
            f"the equations of the {loss.name} loss at {gamma:.6g} facts per parameter, "
            f"{competitors} competitors and ridge {ridge:g} were not solved: {reason}; try a "
            "larger ridge or another number of facts"
        ) from reason


def _solved(
    loss: Loss,
    gamma: float,
    competitors: int,
    ridge: float,
    accuracy: float,
    seed: int,
    method: str,
    tick: Tick | None,
    start: State | None,
) -> Solution:
    """`solve_point` where the minimiser is not W = 0; `ArithmeticError` where nothing converges."""
    if isinstance(loss, Squared):
        return _closed_form(loss, gamma, ridge, competitors)
    if competitors == 1:
        return _refined([Line(nodes) for nodes in (16, 24)], loss, gamma, ridge, start, 1e-12)[0]
    how = "population"
    if isinstance(loss, CrossEntropy) and method == "auto":
        if competitors <= _PILOT_COMPETITORS:
            equations = Equations(draw_population(competitors, _PILOT, seed), loss, gamma, ridge)
            start = solve(equations, start)
            values = observe(equations, start, observable_slopes(equations, start))
            if _worst(loss, values) <= accuracy:  # enough already
                return Solution(start, values, equations, _PILOT * REPLICATES, how)
        found = _convolution(loss, gamma, competitors, ridge, accuracy, tick, start)
        if not isinstance(found, str):
            return found
        if competitors > most_competitors():
            raise InvalidInput(
                f"the averages over {competitors:.3g} competitors at ridge {ridge:g} were not "
                f"found: {found}, and populations are sampled up to {most_competitors()} "
                "competitors; give fewer competitors or a larger ridge"
            )
        how = f"population ({found})"
    return _sampled(loss, gamma, competitors, ridge, accuracy, seed, how, tick, start)


def _no_memory() -> Solution:
    """W = 0 (`vanishing`): no response (V = 0), l(0) = 1, and ties, which recall nothing."""
    values = [Predicted(x, 0.0) for x in (0.0, 1.0, 0.0, 0.0)]
    found = dict(zip(QUANTITIES, values, strict=True))
    return Solution(State(0.0, 0.0, 0.0, np.eye(2)), found, None, 0, NO_MEMORY)


def _sampled(
    loss: Loss,
    gamma: float,
    competitors: int,
    ridge: float,
    accuracy: float,
    seed: int,
    how: str,
    tick: Tick | None,
    start: State | None,
) -> Solution:
    """Populations that grow until every relative standard error is below `accuracy`."""
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
        worst = _worst(loss, found)
        if worst <= accuracy:
            return Solution(state, found, equations, population.size, how)
        size <<= _doublings(worst / accuracy)


def _convolution(
    loss: Loss,
    gamma: float,
    competitors: int,
    ridge: float,
    accuracy: float,
    tick: Tick | None,
    start: State | None,
) -> Solution | str:
    """Cross-entropy by convolution, or in words why it does not reach the accuracy."""
    if tick is not None:
        tick("convolution")
    try:
        if start is None:
            start = solve(
                Equations(Convolution(competitors, *_ROUGH), loss, gamma, ridge), None, 1e-6
            )
        scale = max(1.0, start.order_v / _RESOLVED_V)
        if scale > _MOST_SCALE:
            return f"V = {start.order_v:.3g} is too large for the convolution"
        factor = 1 << math.ceil(math.log2(scale))
        grids = [Convolution(competitors, factor * g, n, z) for g, n, z in GRIDS]
        wanted = min(accuracy, _CONVOLUTION_ACCURACY)
        found, worst = _refined(grids, loss, gamma, ridge, start, 1e-9, wanted)
    except ArithmeticError as reason:
        return f"the convolution failed: {reason}"
    return found if worst <= accuracy else f"the convolution is good to {worst:.1g} only"


def _refined(
    ensembles: Sequence[Ensemble],
    loss: Loss,
    gamma: float,
    ridge: float,
    start: State | None,
    tolerance: float,
    wanted: float = 0.0,
) -> tuple[Solution, float]:
    """Deterministic averages of growing resolution: the finest, its change as the error.

    Stops where the largest relative error is below `wanted`; returns that error too.
    """
    state, before = start, None
    for ensemble in ensembles:
        equations = Equations(ensemble, loss, gamma, ridge)
        state = solve(equations, state, tolerance)
        values = observed(ensemble, loss, state)
        if before is None:
            before = values
            continue
        left = state.residual * float(np.linalg.norm(np.linalg.inv(state.jacobian), np.inf))
        found = {
            name: Predicted(value, abs(value - before[name]) + left * abs(value))
            for name, value in values.items()
        }
        worst, before = _worst(loss, found), values
        if worst <= wanted:
            break
    assert state is not None  # there is at least one ensemble
    how = "convolution" if isinstance(ensembles[0], Convolution) else "quadrature"
    return Solution(state, found, equations, 0, how), worst


def _worst(loss: Loss, found: dict[str, Predicted]) -> float:
    """The largest relative standard error."""
    return max(found[name].stderr / _scale(loss, name, found[name]) for name in QUANTITIES)


def _closed_form(loss: Squared, gamma: float, ridge: float, competitors: int) -> Solution:
    """The squared loss: the equations are quadratic; no sampling and no iteration."""
    q, v = loss.fixed_point(gamma, ridge)
    accuracy = loss.recall(competitors, q, v)
    exact = [Predicted(x, 0.0) for x in (accuracy, 0.5 * (1.0 + q) / (1.0 + v) ** 2, q, v)]
    state = State(q, v, 0.0, np.eye(2))
    return Solution(state, dict(zip(QUANTITIES, exact, strict=True)), None, 0, "closed form")


def _doublings(excess: float) -> int:
    """Doublings of a population whose error is `excess` times too large, 1 to 6.

    Errors fall at least like 1/sqrt(n); 30 % on top, as the error of 16 replicates is uncertain;
    powers of two keep the Sobol points balanced.
    """
    return min(max(math.ceil(math.log2(1.3 * excess**2)), 1), 6)


def _scale(loss: Loss, name: str, predicted: Predicted) -> float:
    """What the accuracy is relative to: the value; for rare errors and tiny losses a constant."""
    least = {"accuracy": loss.recall_scale, "loss": LEAST_LOSS}.get(name, 1e-300)
    return max(abs(predicted.value), least)


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
