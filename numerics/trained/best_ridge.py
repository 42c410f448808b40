"""The ridge that recalls most facts at a load."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize

from numerics.trained.catalogue import loss_by_name
from numerics.trained.fixed_point import Equations, State, solve
from numerics.trained.losses.base import Array, Loss
from numerics.trained.losses.squared import Squared
from numerics.trained.predict import check_point
from numerics.trained.prediction import Predicted
from numerics.trained.solution import NO_MEMORY, Solution, solve_point
from replica.errors import InvalidInput

_FLAT = 1e-9  # differences of the accuracy below this are none


@dataclass(frozen=True)
class BestRidge:
    """The `ridge` with the highest predicted accuracy, and that `accuracy`.

    `at_edge`: no ridge inside the range recalls more than `ridge`, which is an end of it.
    """

    ridge: Predicted
    accuracy: Predicted
    at_edge: bool


def best_ridge(
    parameters: int,
    facts: int,
    competitors: int,
    loss: str = "cross_entropy",
    accuracy: float = 0.003,
    seed: int = 0,
    *,
    bounds: tuple[float, float] = (1e-4, 100.0),
    fraction: float | None = None,
) -> BestRidge:
    """argmax over lambda of P(target above all competitors), searched in log lambda.

    Common fields make the accuracy a smooth function of lambda; the error of the maximiser comes
    from the parabola through three points about it, replicate by replicate. Arguments as for
    `predict`, `bounds` on lambda. Raises `InvalidInput`.

    >>> best_ridge(100, 300, 1, bounds=(0.01, 10)).at_edge  # the less ridge the better here
    True
    """
    low, high = bounds
    if not 0.0 < low < high < math.inf:
        raise InvalidInput(
            f"bounds are {bounds}; give two positive numbers, the smaller first, such as 1e-4, 100"
        )
    kind = loss_by_name(loss, fraction)
    for end in bounds:
        check_point(kind, parameters, facts, competitors, end, accuracy, seed)
    gamma = facts / parameters
    middle = solve_point(kind, gamma, competitors, math.sqrt(low * high), accuracy, seed)
    if middle.method == NO_MEMORY:
        raise InvalidInput(
            f"at {gamma:.6g} facts per parameter {NO_MEMORY}, whatever the ridge; give fewer facts"
        )
    try:
        return _searched(_Search(kind, gamma, competitors, middle), low, high)
    except ArithmeticError as reason:
        raise InvalidInput(
            f"no best ridge was found between {low:g} and {high:g}: {reason}; give a smaller "
            "accuracy or narrower bounds"
        ) from reason


def _searched(search: _Search, low: float, high: float) -> BestRidge:
    """The maximum inside, or an end that is as good."""
    log_best = _maximise(search, math.log(low), math.log(high))
    replicates = search.at(log_best)
    centre = float(np.mean(replicates))
    for end in (low, high):  # a plateau or a maximum at the end: the end is as good
        value = search.at(math.log(end))
        if float(np.mean(value)) >= centre - _FLAT:
            recalled = Predicted(float(np.mean(value)), _error(value))
            return BestRidge(Predicted(end, 0.0), recalled, True)
    error = _error(replicates)
    step = 0.3
    sides = [search.at(log_best + sign * step) for sign in (-1, 1)]
    slope = (sides[1] - sides[0]) / (2.0 * step)
    bend = float(np.mean(sides[0] + sides[1] - 2.0 * replicates)) / step**2
    if bend >= 0.0:
        raise ArithmeticError("the accuracy has no maximum in the ridge at this population size")
    spread = math.exp(log_best) * _error(slope / abs(bend))
    return BestRidge(Predicted(math.exp(log_best), spread), Predicted(centre, error), False)


class _Search:
    """Accuracy as a function of log lambda on fixed fields, with the root's error by replicate."""

    def __init__(self, loss: Loss, gamma: float, competitors: int, middle: Solution) -> None:
        self.loss, self.gamma, self.competitors = loss, gamma, competitors
        self.equations = middle.equations
        self.last: State = middle.state

    def at(self, log_ridge: float) -> Array:
        """(R,): accuracy of every replicate."""
        ridge = math.exp(log_ridge)
        if self.equations is None:
            if not isinstance(self.loss, Squared):
                raise ArithmeticError(f"the loss {self.loss.name} has no closed form")
            q, v = self.loss.fixed_point(self.gamma, ridge)
            return np.array([self.loss.recall(self.competitors, q, v)])
        equations = Equations(self.equations.ensemble, self.loss, self.gamma, ridge)
        self.last = solve(equations, self.last)
        point = self.last.point
        moves = -np.linalg.solve(self.last.jacobian, equations.per_replicate(point).T).T
        values = self._recalled(equations, point)
        for axis in range(2):
            step = np.zeros(2)
            step[axis] = 1e-3
            up, down = (self._recalled(equations, point + sign * step).mean() for sign in (1, -1))
            values = values + moves[:, axis] * (up - down) / 2e-3
        return values

    def mean(self, log_ridge: float) -> float:
        """Accuracy over all replicates."""
        return float(np.mean(self.at(log_ridge)))

    @staticmethod
    def _recalled(equations: Equations, point: Array) -> Array:
        q, v = (float(x) for x in np.exp(point))
        recalled = equations.ensemble.averages(equations.loss, q, v).recalled
        known = equations.loss.recall(equations.ensemble.competitors, q, v)
        return recalled if known is None else np.full_like(recalled, known)


def _error(values: Array) -> float:
    return 0.0 if len(values) == 1 else float(np.std(values, ddof=1)) / math.sqrt(len(values))


def _maximise(search: _Search, low: float, high: float) -> float:
    found = optimize.minimize_scalar(
        lambda x: -search.mean(x), bounds=(low, high), method="bounded", options={"xatol": 1e-3}
    )
    return float(found.x)
