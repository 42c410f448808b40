"""`predict`: one point (N, p, M, lambda) of the theory of the trained memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from numerics.counts import parse_count
from numerics.estimate import check_seed
from numerics.trained.catalogue import loss_by_name
from numerics.trained.fixed_point import Equations, solve
from numerics.trained.line import Line
from numerics.trained.losses.base import Loss
from numerics.trained.losses.squared import Squared
from numerics.trained.population import REPLICATES, draw_population
from numerics.trained.prediction import (
    QUANTITIES,
    Predicted,
    TrainedMemory,
    observable_slopes,
    observe,
    observed,
)
from replica.errors import InvalidInput

MOST_NUMBERS = 1 << 28  # 2 GiB of fields
_PILOT = 32  # facts a replicate in the first population
LEAST_ACCURACY = 1e-5

Tick = Callable[[str], None]


def predict(
    parameters: int,
    facts: int,
    competitors: int,
    ridge: float,
    loss: str = "cross_entropy",
    accuracy: float = 0.003,
    seed: int = 0,
    *,
    fraction: float | None = None,
    tick: Tick | None = None,
) -> TrainedMemory:
    """Training accuracy, loss, ||W||^2 and V of the minimiser of

        sum_mu l(s_mu) + (ridge N/2) ||W||^2,   s_mu,rho = <G_mu,rho, W>, unit-variance entries,

    in the limit of large N at fixed p/N and M. Arguments: N = `parameters` (d^2), p = `facts`, M =
    `competitors` >= 1, `ridge` > 0, the name of the `loss`, the relative standard error wanted
    (`accuracy`; it fixes the size of the population; M = 1 and the squared loss need none), the
    `seed`, the `fraction` of competitors of the loss tail_average, and `tick`, called with a
    sentence at every stage. Raises `InvalidInput`. Source: zero-temperature limit of the replica
    calculation (THEORY section 8; `replica.trained` derives the equations).

    >>> memory = predict(parameters=256, facts=100, competitors=99, ridge=0.1, accuracy=0.01)
    >>> print(f"{memory.norm_squared.value:.2f} {memory.accuracy.value:.3f}")
    1.79 0.222
    """
    kind = loss_by_name(loss, fraction)
    _check(parameters, facts, competitors, ridge, accuracy)
    check_seed(seed)
    kind.check_competitors(competitors)
    gamma = facts / parameters
    given = (parameters, facts, competitors, ridge, kind.name)
    if isinstance(kind, Squared):
        return TrainedMemory(*given, **_closed_form(kind, gamma, ridge, competitors), seed=seed)
    if competitors == 1:
        return TrainedMemory(*given, **_quadrature(kind, gamma, ridge), seed=seed)
    size, state, slopes = _PILOT, None, None
    while True:
        if size * REPLICATES * (competitors + 1) > MOST_NUMBERS:
            raise InvalidInput(
                f"the accuracy {accuracy} with {competitors} competitors needs more than "
                f"{MOST_NUMBERS} random numbers; ask for a larger accuracy, such as "
                f"{2 * accuracy:.2g}"
            )
        if tick is not None:
            tick(f"{size * REPLICATES} facts drawn")
        population = draw_population(competitors, size, seed)
        equations = Equations(population, kind, gamma, ridge)
        state = solve(equations, state)
        if slopes is None:
            slopes = observable_slopes(equations, state)
        found = observe(equations, state, slopes)
        worst = max(found[name].stderr / _scale(kind, name, found[name]) for name in QUANTITIES)
        if worst <= accuracy:
            drawn: dict[str, Any] = {"residual": state.residual, "facts_drawn": population.size}
            return TrainedMemory(*given, **{**found, **drawn}, seed=seed)
        size <<= _doublings(worst / accuracy)


def _quadrature(loss: Loss, gamma: float, ridge: float) -> dict[str, Any]:
    """M = 1: two resolutions, the finer values; their difference and the residual as the error."""
    coarse, fine = (solve(Equations(Line(n), loss, gamma, ridge), None, 1e-12) for n in (16, 24))
    first, second = observed(Line(16), loss, coarse), observed(Line(24), loss, fine)
    left = fine.residual * float(np.linalg.norm(np.linalg.inv(fine.jacobian), np.inf))
    values = {
        name: Predicted(second[name], abs(second[name] - first[name]) + left * abs(second[name]))
        for name in QUANTITIES
    }
    return {**values, "residual": fine.residual, "facts_drawn": 0}


def _closed_form(loss: Squared, gamma: float, ridge: float, competitors: int) -> dict[str, Any]:
    """The squared loss: the equations are quadratic; no sampling and no iteration."""
    q, v = loss.fixed_point(gamma, ridge)
    accuracy = loss.recall(competitors, q, v)
    value = 0.5 * (1.0 + q) / (1.0 + v) ** 2
    exact = [Predicted(x, 0.0) for x in (accuracy, value, q, v)]
    return {**dict(zip(QUANTITIES, exact, strict=True)), "residual": 0.0, "facts_drawn": 0}


def _doublings(excess: float) -> int:
    """Doublings of a population whose error is `excess` times too large, 1 to 6.

    Errors fall at least like 1/sqrt(n); 30 % on top, as the error of 16 replicates is uncertain;
    powers of two keep the Sobol points balanced.
    """
    return min(max(math.ceil(math.log2(1.3 * excess**2)), 1), 6)


def _scale(loss: Loss, name: str, predicted: Predicted) -> float:
    """What the accuracy is relative to: the value, for small recall probabilities a constant."""
    return max(abs(predicted.value), loss.recall_scale if name == "accuracy" else 1e-300)


def _check(parameters: int, facts: int, competitors: int, ridge: float, accuracy: float) -> None:
    for name, count in (
        ("parameters", parameters),
        ("facts", facts),
        ("competitors", competitors),
    ):
        parse_count(count, name)
    if not (isinstance(ridge, int | float | np.floating) and math.isfinite(ridge) and ridge > 0):
        raise InvalidInput(
            f"ridge is {ridge!r}; it must be a positive number; for the limit of no ridge give a "
            "small one, such as 1e-6"
        )
    if not (math.isfinite(accuracy) and LEAST_ACCURACY <= accuracy < 1.0):
        raise InvalidInput(
            f"accuracy is {accuracy!r}; it must lie between {LEAST_ACCURACY} and 1 (a relative "
            "standard error); give for example 0.003"
        )
