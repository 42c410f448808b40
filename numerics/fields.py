"""Random shared scores of one fact: the target's and the competitors', for any number of them.

Only the largest of very many competitors matter one by one. Their joint law is exact: the upper
tail probabilities of the order statistics are Gamma_1, Gamma_2, ... over Gamma_{M+1}, partial sums
of independent exponentials. Given the last one drawn, the rest are independent Gaussians below it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from replica.errors import InvalidInput

Array = NDArray[np.float64]

ALL_UP_TO = 256  # so many competitors are drawn one by one; above, `TOP` of them
TOP = 96
MOST_COMPETITORS = 10**300


@dataclass(frozen=True)
class Fields:
    """Standard Gaussian scores: `target` (n,), `top` (n, k) falling along k, `rest` = M - k others.

    The rest are independent given that they lie below `top[:, -1]`.
    """

    target: Array
    top: Array
    rest: float

    def __len__(self) -> int:
        return len(self.target)

    def __getitem__(self, index: slice) -> Fields:
        return Fields(self.target[index], self.top[index], self.rest)

    def batches(self, size: int) -> Iterator[Fields]:
        """Consecutive pieces of at most `size` samples."""
        for start in range(0, len(self), size):
            yield self[start : start + size]


def draw_fields(competitors: int, samples: int, seed: int, *, top: int | None = None) -> Fields:
    """`samples` independent draws of M + 1 standard Gaussian scores, the competitors sorted.

    Arguments: `competitors` M from 1 to 10^300; `seed`, a non-negative integer; `top`, how many of
    the largest competitors are drawn one by one (all of them up to M = 256, else 96 or, from about
    M = 10^10 on, well above the 2 log M that are active at capacity).
    Raises `InvalidInput`. Source: Renyi's representation of order statistics.

    >>> fields = draw_fields(10**10, 4, seed=0)
    >>> fields.top.shape, fields.rest
    ((4, 110), 9999999890.0)
    """
    if not 1 <= competitors <= MOST_COMPETITORS:
        raise InvalidInput(
            f"competitors is {competitors}; random scores are drawn for 1 to 10^300 of them"
        )
    if top is None:
        top = competitors if competitors <= ALL_UP_TO else _enough(competitors)
    top = min(top, competitors)
    generator = np.random.default_rng(np.random.SeedSequence((seed, 0)))
    target = generator.standard_normal(samples)
    if top == competitors:
        scores = -np.sort(-generator.standard_normal((samples, top)), axis=1)
        return Fields(target, scores, 0.0)
    partial = np.cumsum(generator.standard_exponential((samples, top)), axis=1)
    rest = float(competitors - top)
    total = partial[:, -1] + generator.standard_gamma(rest + 1.0, samples)
    return Fields(target, -special.ndtri(partial / total[:, None]), rest)


def _enough(competitors: int) -> int:
    """About 2 log M competitors are active at capacity, with a spread of that order's root."""
    return max(TOP, math.ceil(2.6 * math.log(competitors)) + 50)


def largest_moments(competitors: int) -> tuple[float, float]:
    """E z_(1) and E z_(1)^2 of the largest of M Gaussians, by quadrature of the exact density.

    z = -Phi^{-1}(U), U = 1 - exp(-x/M) with x exponential: the integrand is smooth in log x.

    >>> mean, square = largest_moments(2)
    >>> abs(mean - np.pi**-0.5) < 1e-10, abs(square - 1) < 1e-10
    (True, True)
    """
    number = float(competitors)
    # log x = u - exp(-u) is a double-exponential substitution at the left end
    u = np.linspace(-4.2, 4.2, 2001)
    log_x = u - np.exp(-u)
    x = np.exp(log_x)
    weight = x * np.exp(-x) * (1.0 + np.exp(-u)) * (u[1] - u[0])
    scores = largest_from_exponential(x, number)
    return float(np.sum(weight * scores)), float(np.sum(weight * scores**2))


def largest_from_exponential(x: Array, number: float) -> Array:
    """The score whose probability of exceeding all others is e^{-x}: Phi(z)^M = e^{-x}."""
    upper = -np.expm1(-x / number)
    lower = np.exp(-x / number)
    with np.errstate(divide="ignore"):
        return np.where(upper < 0.5, -special.ndtri(upper), special.ndtri(lower))


def cone_distance(fields: Fields) -> Array:
    """dist^2(z, C), C = {z_0 >= max_rho z_rho}, exactly: the mean of the active scores.

    The k largest competitors are active where their mean with z_0 lies below the k-th of them.
    """
    sums = np.cumsum(fields.top, axis=1)
    squares = np.cumsum(fields.top**2, axis=1)
    counts = np.arange(1, fields.top.shape[1] + 1)
    means = (fields.target[:, None] + sums) / (counts + 1)
    active = np.count_nonzero(means < fields.top, axis=1)
    if np.any(active == fields.top.shape[1]) and fields.rest > 0:
        raise ArithmeticError("more competitors are active than were drawn one by one")
    rows = np.arange(len(fields))
    last = np.maximum(active - 1, 0)
    total = fields.target + sums[rows, last]
    square = fields.target**2 + squares[rows, last]
    distance = square - total**2 / (active + 1)
    return np.where(active > 0, np.maximum(distance, 0.0), 0.0)
