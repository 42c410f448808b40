"""`predict`: one point (N, p, M, lambda) of the theory of the trained memory."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from numerics.counts import parse_count
from numerics.estimate import check_seed
from numerics.trained.catalogue import loss_by_name
from numerics.trained.fixed_point import Equations, solve
from numerics.trained.population import REPLICATES, draw_population
from numerics.trained.prediction import (
    QUANTITIES,
    Predicted,
    TrainedMemory,
    observable_slopes,
    observe,
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
    tick: Tick | None = None,
) -> TrainedMemory:
    """Training accuracy, loss, ||W||^2 and V of the minimiser of

        sum_mu l(s_mu) + (ridge N/2) ||W||^2,   s_mu,rho = <G_mu,rho, W>, unit-variance entries,

    in the limit of large N at fixed p/N and M. Arguments: N = `parameters` (d^2), p = `facts`, M =
    `competitors` >= 1, `ridge` > 0, the name of the `loss`, the relative standard error wanted
    (`accuracy`; it fixes the size of the population), the `seed`, and `tick`, called with a
    sentence at every stage. Raises `InvalidInput`. Source: zero-temperature limit of the replica
    calculation (THEORY section 8; `replica.trained` derives the equations).

    >>> memory = predict(parameters=256, facts=90, competitors=89, ridge=0.01)
    >>> abs(memory.norm_squared.value - 4.28) < 0.05, abs(memory.accuracy.value - 0.264) < 0.005
    (True, True)
    """
    kind = loss_by_name(loss)
    _check(parameters, facts, competitors, ridge, accuracy)
    check_seed(seed)
    kind.check_competitors(competitors)
    gamma = facts / parameters
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
        worst = max(found[name].stderr / _scale(name, found[name]) for name in QUANTITIES)
        if worst <= accuracy:
            return TrainedMemory(
                parameters,
                facts,
                competitors,
                ridge,
                kind.name,
                **found,
                residual=state.residual,
                facts_drawn=size * REPLICATES,
                seed=seed,
            )
        size <<= _doublings(worst / accuracy)


def _doublings(excess: float) -> int:
    """Doublings of a population whose error is `excess` times too large, 1 to 6.

    Errors fall at least like 1/sqrt(n); 30 % on top, as the error of 16 replicates is uncertain;
    powers of two keep the Sobol points balanced.
    """
    return min(max(math.ceil(math.log2(1.3 * excess**2)), 1), 6)


def _scale(name: str, predicted: Predicted) -> float:
    """What the accuracy is relative to: the value, for the recall probability at least 0.05."""
    return max(abs(predicted.value), 0.05 if name == "accuracy" else 1e-300)


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
