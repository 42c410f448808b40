"""Is the limit of large N the predicted one? Means at several N, a 1/N correction, one test.

At fixed gamma = p/N, M and lambda the mean of the three quantities over instances is

    E y_N = a + b/N + O(1/N^2),         a = theory,

with an unknown b of its own for every quantity: fluctuations of a trained memory are of order
N^{-1/2}, so that averages of smooth functions of them correct the limit by 1/N. The fit is
generalised least squares with the measured covariance S_N/n_N of every mean;

    T = (a - theory)^T (V_a + 3 D)^{-1} (a - theory),    D = diag(standard errors of theory)^2,

where 3 D exceeds any covariance with the diagonal D. Its null law is simulated: means and
covariance matrices (Wishart) of Gaussian samples, theory errors of covariance 3 D, refitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from replica.errors import InvalidInput
from validate.checks.statistics import generator, monte_carlo_p_value
from validate.checks.trained_measure import QUANTITIES, Floats, Sample, Theory

_WIDTH = len(QUANTITIES)


@dataclass(frozen=True)
class Limit:
    """Samples of one (gamma, M, lambda) at two or more N, and the theory of their limit.

    Raises `InvalidInput` for fewer than two sizes, different loads, or a quantity that does not
    vary (all facts recalled on every instance, say).
    """

    samples: Sequence[Sample]
    theory: Theory

    def __post_init__(self) -> None:
        settings = [s.setting for s in self.samples]
        if len({s.parameters for s in settings}) < 2:
            raise InvalidInput(
                "the limit of large N needs samples at two sizes N at least; measure at another N"
            )
        if len({(s.gamma, s.competitors, s.ridge) for s in settings}) != 1:
            raise InvalidInput(
                "the samples differ in facts per parameter, competitors or ridge; only N may vary"
            )
        if any((np.diag(s.covariance) <= 0.0).any() for s in self.samples):
            raise InvalidInput(
                f"a quantity at load {settings[0].gamma} has the same value on every instance, "
                "which leaves no error estimate; choose loads where recall is neither full nor nil"
            )

    @property
    def inverse_sizes(self) -> Floats:
        """1/N of every sample."""
        return np.array([1.0 / s.setting.parameters for s in self.samples])

    @cached_property
    def fit(self) -> tuple[Floats, Floats, Floats]:
        """a (3,), b (3,) and the covariance of a (3, 3)."""
        means = np.stack([s.mean for s in self.samples])
        covariances = np.stack([s.covariance / s.size for s in self.samples])
        theta, spread = _least_squares(self.inverse_sizes, means, covariances)
        return theta[:_WIDTH], theta[_WIDTH:], spread[:_WIDTH, :_WIDTH]

    @property
    def statistic(self) -> float:
        """T."""
        limit, _, spread = self.fit
        return float(_distance(limit - self.theory.value, spread, self.theory))

    @property
    def misfit(self) -> tuple[float, int]:
        """Chi-square of a + b/N against the means, and its degrees of freedom."""
        limit, slope, _ = self.fit
        total = 0.0
        for x, s in zip(self.inverse_sizes, self.samples, strict=True):
            away = s.mean - limit - slope * x
            total += float(away @ np.linalg.solve(s.covariance / s.size, away))
        return total, _WIDTH * (len(self.samples) - 2)

    def simulate(self, rng: np.random.Generator, draws: int, shift: Floats) -> Floats:
        """`draws` values of T if the limit were theory + `shift`; the slope does not matter."""
        means, covariances = [], []
        for s in self.samples:
            factor = np.asarray(np.linalg.cholesky(s.covariance), dtype=np.float64)
            z = rng.standard_normal((draws, _WIDTH)) @ factor.T / np.sqrt(s.size)
            means.append(z + shift)
            covariances.append(_wishart(rng, factor, s.size - 1, draws) / s.size)
        theta, spread = _least_squares(
            self.inverse_sizes, np.stack(means, axis=-2), np.stack(covariances, axis=-3)
        )
        guess = np.sqrt(3.0) * self.theory.stderr * rng.standard_normal((draws, _WIDTH))
        return _distance(theta[..., :_WIDTH] - guess, spread[..., :_WIDTH, :_WIDTH], self.theory)


@dataclass(frozen=True)
class LimitTest:
    """Sum of T over points against its simulated null law."""

    limits: Sequence[Limit]
    statistic: float
    null: Floats
    seed: int

    @property
    def p_value(self) -> float:
        """(1 + null values at least as large)/(1 + their number)."""
        return monte_carlo_p_value(self.statistic, self.null)

    def power(self, relative_shift: Floats, level: float) -> float:
        """P(rejection at `level`) if every limit were theory (1 + `relative_shift`), shape (3,)."""
        rank = int(np.floor(level * (1 + self.null.size)))
        if rank < 1:
            return 0.0
        rng = generator(self.seed, 84)
        drawn = sum(
            limit.simulate(rng, 4000, limit.theory.value * relative_shift) for limit in self.limits
        )
        return float(np.mean(drawn >= np.sort(self.null)[-rank]))


def limit_test(limits: Sequence[Limit], *, seed: int, draws: int = 40_000) -> LimitTest:
    """Test that every limit is the predicted one; p-values down to 1/(1 + `draws`)."""
    rng = generator(seed, 83)
    null = sum(limit.simulate(rng, draws, np.zeros(_WIDTH)) for limit in limits)
    return LimitTest(limits, sum(limit.statistic for limit in limits), np.asarray(null), seed)


def _least_squares(x: Floats, means: Floats, covariances: Floats) -> tuple[Floats, Floats]:
    """theta = (a, b) and its covariance; means (..., I, 3), covariances (..., I, 3, 3)."""
    weights = np.linalg.inv(covariances)
    powers = np.stack([np.ones_like(x), x])
    information = np.einsum("ki,li,...iqr->...kqlr", powers, powers, weights)
    lead = information.shape[:-4]
    information = information.reshape(*lead, 2 * _WIDTH, 2 * _WIDTH)
    pull = np.einsum("ki,...iqr,...ir->...kq", powers, weights, means)
    spread = np.linalg.inv(information)
    theta = (spread @ pull.reshape(*lead, 2 * _WIDTH, 1))[..., 0]
    return theta, spread


def _distance(away: Floats, spread: Floats, theory: Theory) -> Floats:
    whole = spread + 3.0 * np.diag(theory.stderr**2)
    return np.asarray(
        np.einsum("...q,...q->...", away, np.linalg.solve(whole, away[..., None])[..., 0])
    )


def _wishart(rng: np.random.Generator, factor: Floats, degrees: int, draws: int) -> Floats:
    """Sample covariance matrices of `degrees` + 1 Gaussian vectors, by Bartlett's decomposition."""
    lower = np.zeros((draws, _WIDTH, _WIDTH))
    for i in range(_WIDTH):
        lower[:, i, i] = np.sqrt(rng.chisquare(degrees - i, draws))
        for j in range(i):
            lower[:, i, j] = rng.standard_normal(draws)
    half = factor @ lower
    return np.asarray(half @ half.mT) / degrees
