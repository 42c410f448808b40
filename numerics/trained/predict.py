"""`predict`: one point (N, p, M, lambda) of the theory of the trained memory."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from numerics.cone.volumes import statistical_dimension
from numerics.counts import parse_count
from numerics.estimate import check_seed
from numerics.trained.catalogue import loss_by_name
from numerics.trained.losses.base import Loss
from numerics.trained.losses.squared import Squared
from numerics.trained.losses.tail_average import TailAverage
from numerics.trained.prediction import TrainedMemory
from numerics.trained.solution import (
    METHODS,
    MOST_NUMBERS,
    Tick,
    most_competitors,
    sampled_numbers,
    solve_point,
)
from numerics.trained.vanishing import check_ridgeless
from replica.errors import InvalidInput

LEAST_ACCURACY = 1e-5
LEAST_RIDGE = 1e-12
MOST_COUNT = 10**15
MOST_LOAD = 1e9


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
    method: str = "auto",
    tick: Tick | None = None,
) -> TrainedMemory:
    """Training accuracy, loss, ||W||^2 and V of the minimiser of

        sum_mu l(s_mu) + (ridge N/2) ||W||^2,   s_mu,rho = <G_mu,rho, W>, unit-variance entries,

    in the limit of large N at fixed p/N and M. Arguments: N = `parameters` (d^2), p = `facts`, M =
    `competitors` >= 1; `ridge` from 1e-12 to 1e12, or 0 above capacity, where the minimum exists
    without; the name of the `loss`; the relative standard error wanted (`accuracy`; a recall below
    0.05, for tail_average below 1, and a loss below 0.01 are wanted to this fraction of these); the
    `seed` of sampled averages; the `fraction` of competitors of the loss tail_average; `method`:
    "auto" (closed form, quadrature or convolution where one exists: `stderr` is then an error
    estimate of the integrals) or "population" (always sampled, if M > 1); `tick`, called with a
    sentence at every stage. Where the tail average has no direction of descent at W = 0
    (many facts) the memory is W = 0, with norm 0, V = 0, loss 1 and accuracy 0, ties being no
    recall (`method` says so).
    Raises `InvalidInput`. Source: zero-temperature limit of the replica calculation
    (THEORY section 8; `replica.trained` derives the equations).

    >>> memory = predict(parameters=256, facts=100, competitors=99, ridge=0.1, accuracy=1e-3)
    >>> print(f"{memory.norm_squared.value:.4f} {memory.accuracy.value:.4f}")
    1.7890 0.2219
    """
    kind = loss_by_name(loss, fraction)
    check_point(kind, parameters, facts, competitors, ridge, accuracy, seed)
    if method not in METHODS:
        raise InvalidInput(f"unknown method {method!r}; the known ones are: {', '.join(METHODS)}")
    found = solve_point(
        kind, facts / parameters, competitors, ridge, accuracy, seed, method=method, tick=tick
    )
    return TrainedMemory(
        parameters,
        facts,
        competitors,
        float(ridge),
        kind.name,
        **found.found,
        residual=found.state.residual,
        facts_drawn=found.facts_drawn,
        seed=seed,
        method=found.method,
    )


def check_point(
    loss: Loss,
    parameters: Any,
    facts: Any,
    competitors: Any,
    ridge: Any,
    accuracy: Any,
    seed: Any,
) -> None:
    """Raise `InvalidInput` for arguments of `predict` that cannot work."""
    for name, count in (
        ("parameters", parameters),
        ("facts", facts),
        ("competitors", competitors),
    ):
        if parse_count(count, name) > MOST_COUNT:
            raise InvalidInput(
                f"{name} is above 10^15; at most that many are taken; give a smaller number"
            )
    if not MOST_LOAD**-1 <= facts / parameters <= MOST_LOAD:
        raise InvalidInput(
            f"there are {facts / parameters:.3g} facts per parameter; the theory is evaluated "
            f"between {1 / MOST_LOAD:g} and {MOST_LOAD:g}; change facts or parameters"
        )
    if sampled_numbers(loss, competitors) > MOST_NUMBERS:
        raise InvalidInput(
            f"competitors is about {float(competitors):.3g}; averages of the {loss.name} loss are "
            f"sampled up to {most_competitors()} competitors; give fewer"
        )
    number = isinstance(ridge, int | float | np.floating) and not isinstance(ridge, bool)
    if not (number and math.isfinite(ridge) and ridge >= 0):
        raise InvalidInput(
            f"ridge is {ridge!r}; it must be a positive number, or 0 above capacity; give for "
            "example 0.01"
        )
    if ridge > 0 and not LEAST_RIDGE <= ridge <= 1.0 / LEAST_RIDGE:
        raise InvalidInput(
            f"ridge is {ridge:g}; it must be 0 or lie between {LEAST_RIDGE:g} and "
            f"{1.0 / LEAST_RIDGE:g}; give for example 0.01"
        )
    if not LEAST_ACCURACY <= accuracy < 1.0:
        raise InvalidInput(
            f"accuracy is {accuracy!r}; it must lie between {LEAST_ACCURACY} and 1 (a relative "
            "standard error); give for example 0.003"
        )
    check_seed(seed)
    loss.check_competitors(competitors)
    if ridge == 0:
        check_without_ridge(loss, Fraction(facts, parameters), competitors, seed)


def check_without_ridge(loss: Loss, gamma: Fraction, competitors: int, seed: int) -> None:
    """Raise `InvalidInput` where the fixed point does not exist at ridge 0.

    Below capacity, gamma delta(M) < 1, V diverges as lambda -> 0 (and Q too for losses that are
    never zero): the memory tends to the maximum-margin one. For the squared loss the border is
    gamma = 1, for a tail average that of its own cone, sampled with `seed`.
    """
    if isinstance(loss, TailAverage) and competitors > 1:
        check_ridgeless(loss, float(gamma), competitors, seed)
        return
    if isinstance(loss, Squared):
        exists = gamma > 1
    else:
        exists = bool(statistical_dimension(competitors, 15) * gamma > 1)
    if not exists:
        raise InvalidInput(
            f"ridge is 0 at {float(gamma):.6g} facts per parameter, below the capacity of the "
            f"{loss.name} loss, where the order parameter V diverges; give a small ridge, such as "
            "1e-6, or see the largest margin (numerics.scores.largest_margin)"
        )
