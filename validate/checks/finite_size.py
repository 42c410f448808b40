"""Laws of large N tested at finite N: means over instances, extrapolated in 1/N, then compared.

The mean of an observable over instances with N weights is its law + c/N + O(1/N^2). With cells at
several N, the combination sum_i a_i mean_i with sum a_i = 1, sum a_i/N_i = 0 removes c. Instances
are independent, scores within one are not: instances are the unit of every error estimate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from replica.errors import InvalidInput
from validate.checks.statistics import generator, monte_carlo_p_value

Floats = NDArray[np.float64]


def summarise(rows: ArrayLike) -> dict[str, Any]:
    """Number, sum and sum of outer products of the rows (n, k): what a unit of work returns.

    >>> summarise([[1.0, 2.0], [3.0, 4.0]])["outer"]
    [[10.0, 14.0], [14.0, 20.0]]
    """
    table = np.atleast_2d(np.asarray(rows, dtype=float))
    return {
        "count": len(table),
        "sum": table.sum(axis=0).tolist(),
        "outer": (table.T @ table).tolist(),
    }


@dataclass(frozen=True)
class Cell:
    """`count` independent instances of one `size`: mean (k,) and covariance (k, k) of them."""

    size: float
    count: int
    mean: Floats
    covariance: Floats

    @property
    def error(self) -> Floats:
        """Standard errors of the means (k,)."""
        return np.asarray(np.sqrt(np.diag(self.covariance) / self.count))

    def part(self, columns: Sequence[int]) -> Cell:
        """The same with these observables only."""
        pick = list(columns)
        return Cell(self.size, self.count, self.mean[pick], self.covariance[np.ix_(pick, pick)])


def cell_of(size: float, answers: Sequence[Mapping[str, Any]]) -> Cell:
    """Pool answers of `summarise` into one cell. Raises `InvalidInput` below two instances.

    >>> cell = cell_of(9, [summarise([[1.0]]), summarise([[3.0], [5.0]])])
    >>> cell.count, float(cell.mean[0]), float(cell.covariance[0, 0])
    (3, 3.0, 4.0)
    """
    count = sum(int(answer["count"]) for answer in answers)
    if count < 2:
        raise InvalidInput(
            f"{count} instances were given at size {size}; an error estimate needs at least 2; "
            "measure more"
        )
    mean = np.sum([answer["sum"] for answer in answers], axis=0) / count
    outer = np.sum([answer["outer"] for answer in answers], axis=0)
    covariance = (outer - count * np.outer(mean, mean)) / (count - 1)
    return Cell(float(size), count, mean, covariance)


@dataclass(frozen=True)
class Limit:
    """Extrapolated `value` (k,) with `covariance` (k, k) and its degrees of freedom.

    `coefficients` a_i of the cells; `slope` (k,) the estimated c of c/N, for show only.
    """

    value: Floats
    covariance: Floats
    degrees: float
    coefficients: Floats
    slope: Floats

    @property
    def error(self) -> Floats:
        """Standard errors (k,)."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    def interval(self, index: int, confidence: float = 0.95) -> tuple[float, float]:
        """Student interval of one component."""
        half = float(stats.t.ppf(0.5 + confidence / 2, self.degrees)) * float(self.error[index])
        return float(self.value[index]) - half, float(self.value[index]) + half


def extrapolate(cells: Sequence[Cell], theory: ArrayLike | None = None) -> Limit:
    """Intercept in 1/N of cell means, minus `theory` (cells, k) if given.

    The coefficients are those of least squares for variances proportional to 1/(count N); they
    depend on the design alone, so that the intercept is unbiased whatever the variances, which
    enter the error cell by cell. `degrees` is the least Satterthwaite number over the components.
    Raises `InvalidInput` for fewer than two sizes.

    >>> cells = [Cell(n, 50, np.array([2 + 3 / n]), np.array([[1 / n]])) for n in (10, 20, 40)]
    >>> round(float(extrapolate(cells).value[0]), 12), round(float(extrapolate(cells).slope[0]), 9)
    (2.0, 3.0)
    """
    sizes = np.array([cell.size for cell in cells])
    if len(set(sizes.tolist())) < 2:
        raise InvalidInput(
            f"cells at {len(set(sizes.tolist()))} sizes were given; a limit needs at least 2 "
            "sizes; measure another"
        )
    means = np.array([cell.mean for cell in cells])
    if theory is not None:
        means = means - np.asarray(theory, dtype=float)
    weight = np.array([cell.count for cell in cells]) * sizes
    design = np.stack([np.ones_like(sizes), 1.0 / sizes], axis=1)
    solve = np.linalg.inv(design.T @ (design * weight[:, None])) @ (design * weight[:, None]).T
    a = solve[0]
    parts = np.array(
        [x**2 * cell.covariance / cell.count for x, cell in zip(a, cells, strict=True)]
    )
    covariance = parts.sum(axis=0)
    variances = np.array([np.diag(part) for part in parts])
    freedom = np.array([cell.count - 1 for cell in cells])
    least = np.min(variances.sum(axis=0) ** 2 / (variances**2 / freedom[:, None]).sum(axis=0))
    return Limit(a @ means, covariance, float(least), a, solve[1] @ means)


@dataclass(frozen=True)
class WaldTest:
    """Hotelling's T^2 of k components; T^2 (nu-k+1)/(nu k) ~ F(k, nu-k+1) when all are 0."""

    statistic: float
    components: int
    degrees: float

    @property
    def _second(self) -> float:
        return self.degrees - self.components + 1.0

    @property
    def _scale(self) -> float:
        return self._second / (self.degrees * self.components)

    @property
    def p_value(self) -> float:
        """P(at least this statistic) under the hypothesis."""
        return float(stats.f.sf(self.statistic * self._scale, self.components, self._second))

    def power(self, noncentrality: float, level: float) -> float:
        """P(reject at `level`) when the true difference D has D^T C^-1 D = `noncentrality`."""
        critical = stats.f.isf(level, self.components, self._second)
        return float(stats.ncf.sf(critical, self.components, self._second, noncentrality))


def wald_test(limit: Limit, extra: ArrayLike | None = None) -> WaldTest:
    """Are all components of `limit.value` 0? `extra` (k,): standard errors of the prediction.

    Linear in the means, hence normal for many instances; the number of degrees of freedom is the
    least over the components, which is conservative. Source: Hotelling 1931.

    >>> cells = [Cell(n, 60, np.zeros(2), np.eye(2) / n) for n in (50, 100)]
    >>> wald_test(extrapolate(cells)).p_value
    1.0
    """
    components = len(limit.value)
    if limit.degrees < components + 4:
        raise InvalidInput(
            f"{limit.degrees:.0f} degrees of freedom do not carry a test of {components} "
            "components; measure more instances"
        )
    statistic = distance(limit, limit.value, extra)
    return WaldTest(statistic, components, limit.degrees)


def distance(limit: Limit, difference: ArrayLike, extra: ArrayLike | None = None) -> float:
    """D^T C^-1 D of a difference D (k,), C the covariance of the limit."""
    d = np.asarray(difference, dtype=float)
    covariance = limit.covariance
    if extra is not None:
        covariance = covariance + np.diag(np.asarray(extra, dtype=float) ** 2)
    return float(d @ np.linalg.solve(covariance, d))


@dataclass(frozen=True)
class SquaresTest:
    """Sum of squares of independent Student variables, its null and alternative sample (sorted)."""

    p_value: float
    null: Floats
    moved: Floats

    def power(self, level: float) -> float:
        """P(reject at `level`) under the alternative."""
        rank = int(np.floor(level * (1 + self.null.size)))
        return float(np.mean(self.moved >= self.null[-rank])) if rank else 0.0


def squares_test(
    statistics: ArrayLike,
    shifts: ArrayLike,
    degrees: ArrayLike,
    *,
    seed: Sequence[int],
    samples: int = 200_000,
) -> SquaresTest:
    """Are independent Student statistics t_i, `degrees` nu_i, all centred? sum t_i^2, simulated.

    `shifts`: means of the t_i under the named alternative, in standard errors. The p-value counts
    simulated sums, so it is valid at every number of degrees of freedom.

    >>> squares_test([0.1, -0.2], [9.0, 9.0], [30, 30], seed=[0], samples=2000).p_value > 0.9
    True
    """
    t, move = np.asarray(statistics, dtype=float), np.asarray(shifts, dtype=float)
    draws = generator(*seed).standard_t(np.asarray(degrees, dtype=float), (samples, t.size))
    null = np.sort((draws**2).sum(axis=1))
    moved = np.sort(((draws + move) ** 2).sum(axis=1))
    return SquaresTest(monte_carlo_p_value(float((t**2).sum()), null), null, moved)
