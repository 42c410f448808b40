"""The phase W = 0 of the tail-average loss.

Near s = 0 the loss is 1 + max_{w in C} (w . s) - s_0, C the weights of the tail average: it has a
kink there and falls along no direction of W once the facts are many. W = 0 is a minimiser, whatever
the ridge, if and only if sum_mu,rho u_mu,rho G_mu,rho = 0 for some u_mu in {w - e_0}. By Gordon's
comparison this is possible at N -> infinity if max_u (h . u - sqrt(N) |u|) >= 0, h standard normal;
with |u| = min_s (|u|^2/s + s)/2,

    gamma F >= 1,   F = max_{a >= 0} E max_{w in C} [2 a h . w - a^2 (1 + |w|^2)].

The maximiser obeys 1 = gamma a^2 E|u|^2, the equation of Q in the scale-free limit Q, V -> 0 with
a = V/sqrt(Q); at gamma F = 1 that of V holds there too (lambda V = 0). F = 0 where nothing can be
chosen (r = 1, or one competitor): no such phase.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import optimize

from numerics.trained.losses.base import Array, Loss
from numerics.trained.losses.tail_average import TailAverage
from numerics.trained.population import Population, draw_population
from replica.errors import InvalidInput

_FIRST = 64  # facts a replicate, to begin with
_MOST = 1 << 25  # random numbers
_SURE = 5.0  # standard errors


def vanishes(loss: Loss, gamma: float, competitors: int, seed: int) -> bool:
    """Whether W = 0 minimises the objective at `gamma` facts per parameter and any ridge.

    Raises `InvalidInput` where the sampled border is too close to tell.

    >>> [vanishes(TailAverage(0.1), gamma, 99, 0) for gamma in (0.2, 0.5)]
    [False, True]
    """
    if not isinstance(loss, TailAverage) or loss.fraction == 1.0 or competitors == 1:
        return False
    # E |u|^2 > 1 and E max h < sqrt(2 log M) bound F
    if gamma * 2.0 * math.log(competitors) < 1.0:
        return False
    size = _FIRST
    while True:
        values = gamma * kink_share(loss, draw_population(competitors, size, seed))
        mean, error = float(np.mean(values)), _stderr(values)
        if abs(mean - 1.0) > _SURE * error:
            return mean >= 1.0
        size *= 4
        if size * len(values) * (competitors + 1) > _MOST:
            raise too_close(gamma, gamma / mean, "load above which the minimiser is W = 0")


def too_close(gamma: float, border: float, name: str) -> InvalidInput:
    """The error of a load that sampling cannot tell from a border."""
    return InvalidInput(
        f"{gamma:.6g} facts per parameter lie within the sampling error of {border:.6g}, the "
        f"{name} for the tail_average loss; move the number of facts by a per cent"
    )


def kink_share(loss: TailAverage, population: Population) -> Array:
    """(R,): F of every replicate, at the common maximiser a."""
    competitors = population.competitors

    def negative(a: float) -> float:
        return -float(np.mean(_values(loss, population, a)))

    # a = E h.w / E|u|^2 < E max h; the maximum of a jointly concave function of (a, a w)
    most = math.sqrt(2.0 * math.log(competitors + 1.0))
    found = optimize.minimize_scalar(
        negative, bounds=(0.0, most), method="bounded", options={"xatol": 1e-4}
    )
    return _values(loss, population, float(found.x))


def _values(loss: TailAverage, population: Population, a: float) -> Array:
    """(R,): E max_w [2 a h . w - a^2 (1 + |w|^2)] by replicate."""
    replicates, facts, width = population.fields.shape
    rivals = population.fields[:, :, 1:].reshape(-1, width - 1)
    weights = loss.weights(rivals / a)
    value = 2.0 * a * np.einsum("ij,ij->i", rivals, weights)
    value -= a * a * (1.0 + np.einsum("ij,ij->i", weights, weights))
    return np.asarray(value.reshape(replicates, facts).mean(axis=1))


def check_ridgeless(loss: TailAverage, gamma: float, competitors: int, seed: int) -> None:
    """Raise `InvalidInput` below the capacity of the tail average, where there is no minimum.

    gamma delta > 1 is needed, delta = E |projection of h on the cone of {w - e_0}|^2, that is of
    h minus its projection on {x_0 >= TA(x)}: the proximal map at V -> infinity and large fields.
    """
    size = _FIRST
    scale = 1e6  # of the fields, against the margin 1: its effect is of relative order 1/scale
    while True:
        population = draw_population(competitors, size, seed)
        means = population.averages(loss, scale**2, 1e4 * scale * competitors)
        values = gamma * means.squared_step / scale**2
        mean, error = float(np.mean(values)), _stderr(values)
        if mean - 1.0 > _SURE * error + 1e-5:
            return
        if 1.0 - mean > _SURE * error + 1e-5:
            raise InvalidInput(
                f"ridge is 0 at {gamma:.6g} facts per parameter, below the capacity "
                f"{gamma / mean:.4g} of the tail_average loss, where the order parameter V "
                "diverges; give a small ridge, such as 1e-6, or more facts"
            )
        size *= 4
        if size * len(values) * (competitors + 1) > _MOST:
            raise too_close(gamma, gamma / mean, "capacity")


def _stderr(values: Array) -> float:
    return float(np.std(values, ddof=1)) / math.sqrt(len(values))
