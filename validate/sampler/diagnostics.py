"""Convergence diagnostics of several chains: effective sample size and R-hat.

Definitions of Vehtari, Gelman, Simpson, Carpenter, Buerkner (2021), Bayesian Analysis 16, 667.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

from replica.errors import InvalidInput

FloatArray = NDArray[np.float64]


def r_hat(draws: ArrayLike) -> float:
    """Rank-normalised split R-hat: max over the draws and their distances from the median.

    sqrt( ((n-1)/n W + B/n) / W ) of the half chains, W and B the within and between variances of
    the normal scores of the ranks. Near 1 if the chains sample one law; above 1.01 is suspicious.

    Arguments: `draws`, shape (chains, n), n >= 4. Raises `InvalidInput` for another shape or values
    that are not finite. NaN if all draws are equal.

    >>> r_hat(np.random.default_rng(0).standard_normal((4, 500))) < 1.01
    True
    >>> r_hat(np.random.default_rng(0).standard_normal((4, 500)) + [[0], [0], [0], [2]]) > 1.1
    True
    """
    x = _split(_checked(draws))
    folded = np.abs(x - np.median(x))
    return max(_plain_r_hat(_normal_scores(x)), _plain_r_hat(_normal_scores(folded)))


def effective_sample_size(draws: ArrayLike) -> float:
    """Number of independent draws whose mean has the same variance: C n / tau.

    tau = 1 + 2 sum_t rho_t over the half chains, with Geyer's initial monotone sequence of pair
    sums; at most C n log10(C n), since antithetic chains can beat independent draws but an estimate
    of how much is unreliable. Arguments and errors as `r_hat`; NaN if all draws are equal.

    >>> n = effective_sample_size(np.random.default_rng(0).standard_normal((4, 1000)))
    >>> 3000 < n < 5000
    True
    """
    x = _split(_checked(draws))
    chains, n = x.shape
    centred = x - x.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centred, n=2 * n, axis=1)
    covariance = np.fft.irfft(np.abs(spectrum) ** 2, axis=1)[:, :n] / n
    within = covariance[:, 0].mean() * n / (n - 1)
    total = within * (n - 1) / n + (x.mean(axis=1).var(ddof=1) if chains > 1 else 0.0)
    if not total > 0:
        return math.nan
    rho = 1.0 - (within - covariance.mean(axis=0) * n / (n - 1)) / total
    rho[0] = 1.0
    pairs = rho[: n - n % 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs < 0)
    pairs = np.minimum.accumulate(pairs[: negative[0]] if negative.size else pairs)
    tau = max(-1.0 + 2.0 * float(pairs.sum()), 1.0 / math.log10(chains * n))
    return float(chains * n / tau)


def rank_effective_sample_size(draws: ArrayLike) -> float:
    """`effective_sample_size` of the normal scores of the ranks, finite for any law (bulk ESS)."""
    x = _checked(draws)
    return effective_sample_size(_normal_scores(x))


def _plain_r_hat(x: FloatArray) -> float:
    n = x.shape[1]
    within = float(x.var(axis=1, ddof=1).mean())
    between = n * float(x.mean(axis=1).var(ddof=1))
    if not within > 0:
        return math.nan
    return math.sqrt(((n - 1) / n * within + between / n) / within)


def _split(x: FloatArray) -> FloatArray:
    half = x.shape[1] // 2
    return np.concatenate([x[:, :half], x[:, -half:]])


def _normal_scores(x: FloatArray) -> FloatArray:
    ranks = stats.rankdata(x, method="average").reshape(x.shape)
    return np.asarray(special.ndtri((ranks - 0.375) / (x.size + 0.25)))


def _checked(draws: ArrayLike) -> FloatArray:
    x = np.asarray(draws, dtype=np.float64)
    if x.ndim != 2 or x.shape[1] < 4 or x.shape[0] < 1:
        raise InvalidInput(
            f"the draws have shape {x.shape}; they must form a table (chains, n) with n >= 4; "
            "sample longer"
        )
    if not np.isfinite(x).all():
        raise InvalidInput(
            "the draws hold NaN or infinite values; all must be finite; look at the chain"
        )
    return x
