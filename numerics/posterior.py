"""Z(omega, V) for top-one recall and its derivatives, vectorised over samples of omega.

    Z = int dy N(y; omega_0, V) prod_rho Phi((y - margin - omega_rho)/sqrt V)

is the integral of a log-concave function of the target score y: Newton finds its top, and the
trapezoidal rule in a variable that follows its width on either side converges geometrically. The
gradient and the Hessian of log Z are moments over y with that weight. The hand-tuned twin of
`replica.criteria.top_one`, which the tests compare it with.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray
from scipy import special

from numerics.fields import Array, Fields

LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
NODES = 40
REST_NODES = 32
BATCH_ELEMENTS = 1_500_000


@dataclass(frozen=True)
class Local:
    """Per sample: log Z, |grad|^2, ||Hess||_F^2 and what the Stein identities need.

    `target_gradient` = d_0 log Z, `target_curvature` = d_0^2 log Z, `rival_work` = sum over the
    competitors of omega d log Z, `rival_curvature` = sum of d^2 log Z, `gradient_change` =
    d_0 |grad log Z|^2, `rest_variance` = variance of log Z caused by the competitors that are
    averaged over (an estimate, second order in their fluctuation).
    """

    log_z: Array
    gradient: Array
    hessian: Array
    target_gradient: Array
    target_curvature: Array
    rival_work: Array
    rival_curvature: Array
    gradient_change: Array
    rest_variance: Array


@dataclass(frozen=True)
class Scores:
    """Shared scores of a batch: `target` (n,), rivals and their multiplicities (n, k)."""

    target: Array
    rivals: Array
    weights: Array
    individual: int  # so many of the rivals are single competitors; the others stand for many


def scores_at(sample: Fields, q: float, margin: float) -> Scores:
    """omega = sqrt(q) z, the rest of the competitors as quadrature nodes with their numbers."""
    root = math.sqrt(q)
    target, top = root * sample.target, root * sample.top
    if sample.rest == 0.0:
        return Scores(target, top, np.ones_like(top), top.shape[1])
    # seen from y, log Phi times the density of the rest is a Gaussian of width sqrt(V) around
    # z = sqrt(q)(y - margin); y is about the extreme level of M scores, or the target if larger
    width, number = math.sqrt(1.0 - q), sample.rest + sample.top.shape[1]
    level = math.sqrt(2.0 * math.log(number))
    highest = np.maximum(level, target - margin) + 3.0 * width
    edge = sample.top[:, -1]
    end = np.minimum(edge, root * highest + 8.5 * width)
    start = np.minimum(end, root * (level - 1.5)) - 8.5 * width
    x, w = np.polynomial.legendre.leggauss(REST_NODES)
    half = 0.5 * (end - start)
    z = start[:, None] + half[:, None] * (x + 1.0)
    log_density = -0.5 * z**2 - LOG_SQRT_2PI - special.log_ndtr(edge)[:, None]
    density = sample.rest * half[:, None] * w * np.exp(log_density)
    return Scores(
        target,
        np.concatenate([top, root * z], axis=1),
        np.concatenate([np.ones_like(top), density], axis=1),
        top.shape[1],
    )


def _hazard(x: Array, log_cdf: Array) -> Array:
    """phi(x)/Phi(x), positive and falling, from log Phi(x)."""
    return np.exp(-0.5 * x * x - LOG_SQRT_2PI - log_cdf)


def _top_of_weight(scores: Scores, variance: float, margin: float) -> tuple[Array, Array]:
    """Maximiser of the weight of y, and the second derivative of its logarithm there.

    The first derivative falls and is convex in y, so Newton's method from omega_0, where it is
    positive, climbs to the root without passing it. For very many competitors that climb is long:
    start where about 100 log M of them are still expected above.
    """
    root = math.sqrt(variance)
    y = scores.target.copy()
    number = float(np.mean(np.sum(scores.weights, axis=1)))
    if number > 1e4:
        crowded = 100.0 * math.log(number) / number
        y = np.maximum(y, margin - float(special.ndtri(min(0.5, crowded))))
    curvature = np.zeros_like(y)
    for _ in range(500):
        x = (y[:, None] - margin - scores.rivals) / root
        hazard = _hazard(x, special.log_ndtr(x))
        slope = np.sum(scores.weights * hazard, axis=1) / root - (y - scores.target) / variance
        bend = np.sum(scores.weights * hazard * (hazard + x), axis=1)
        curvature = -(1.0 + bend) / variance
        step = -slope / curvature
        y = y + step
        if np.all(np.abs(step) < 1e-3 * root):
            return y, curvature
    raise ArithmeticError("the top of the weight of the target score was not found in 500 steps")


def nodes_around(top: Array, curvature: Array, variance: float, count: int) -> tuple[Array, Array]:
    """Nodes y (n, count) and weights for integrals over y.

    y = top + s(u) on equidistant u: s' goes from the width at the top, which bounds the fall on the
    left, to sqrt(V), the width of the Gaussian on the right.
    """
    left, right = -7.5, 9.0
    u = np.linspace(left, right, count)
    narrow = 1.0 / np.sqrt(-curvature)
    wide = math.sqrt(variance) - narrow
    blend = 0.5 * (u - 1.0 + np.logaddexp(u - 1.0, 1.0 - u)) - 0.5 * (
        -1.0 + np.logaddexp(-1.0, 1.0)
    )
    slope = 0.5 * (1.0 + np.tanh(u - 1.0))
    y = top[:, None] + narrow[:, None] * u + wide[:, None] * blend
    return y, (narrow[:, None] + wide[:, None] * slope) * (u[1] - u[0])


def log_weight(
    scores: Scores, y: Array, variance: float, margin: float
) -> tuple[Array, Array, Array]:
    """log of the integrand of Z at y (n, m), with x and log Phi(x) (n, k, m)."""
    x = (y[:, None, :] - margin - scores.rivals[:, :, None]) / math.sqrt(variance)
    log_cdf = special.log_ndtr(x)
    density = -0.5 * (y - scores.target[:, None]) ** 2 / variance - 0.5 * math.log(variance)
    total = density - LOG_SQRT_2PI + np.einsum("nk,nkm->nm", scores.weights, log_cdf)
    return total, x, log_cdf


def local_quantities(sample: Fields, q: float, margin: float = 0.0, nodes: int = NODES) -> Local:
    """All fields of `Local` for every sample, omega = sqrt(q) z, V = 1 - q.

    >>> from numerics.fields import Fields
    >>> import numpy as np
    >>> local = local_quantities(Fields(np.zeros(1), np.zeros((1, 1)), 0.0), 0.5)
    >>> bool(abs(local.log_z[0] - np.log(0.5)) < 1e-9)  # one competitor, equal scores
    True
    """
    columns = sample.top.shape[1] + (REST_NODES if sample.rest else 0)
    size = max(1, BATCH_ELEMENTS // (columns * nodes))
    parts = [_local(batch, q, margin, nodes) for batch in sample.batches(size)]
    return Local(
        *(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Local))
    )


def _local(sample: Fields, q: float, margin: float, nodes: int) -> Local:
    variance = 1.0 - q
    scores = scores_at(sample, q, margin)
    top, curvature = _top_of_weight(scores, variance, margin)
    y, dy = nodes_around(top, curvature, variance, nodes)
    total, x, log_cdf = log_weight(scores, y, variance, margin)
    log_terms = total + np.log(dy)
    log_z = special.logsumexp(log_terms, axis=1)
    p = np.exp(log_terms - log_z[:, None])

    rival = _hazard(x, log_cdf)  # becomes d log weight / d omega_rho
    second = -np.einsum("nkm,nm->nk", rival * (rival + x), p) / variance
    rival /= -math.sqrt(variance)
    rival_mean = np.einsum("nkm,nm->nk", rival, p)
    target = (y - scores.target[:, None]) / variance
    target_mean = np.sum(target * p, axis=1)

    rival -= rival_mean[:, :, None]
    target -= target_mean[:, None]
    rival_variance = np.einsum("nkm,nkm,nm->nk", rival, rival, p)
    target_variance = np.sum(target**2 * p, axis=1)
    cross = np.einsum("nkm,nm->nk", rival, target * p)
    target_curvature = target_variance - 1.0 / variance
    w = scores.weights
    rival_curvature = rival_variance + second
    pairs = _sum_of_squared_covariances(rival, w, p)
    single = scores.individual
    # diagonal: single competitors replace C_ii^2 by (C_ii + <d^2>)^2; a node that stands for many
    # keeps its pairs of different competitors and adds the diagonal of each
    hessian = target_curvature**2 + 2.0 * np.sum(w * cross**2, axis=1) + pairs
    hessian += np.sum(w * rival_curvature**2, axis=1)
    hessian -= np.sum(rival_variance[:, :single] ** 2, axis=1)
    change = 2.0 * (target_mean * target_curvature + np.sum(w * rival_mean * cross, axis=1))
    rest = np.einsum("nk,nkm,nm->n", w[:, single:], log_cdf[:, single:] ** 2, p)
    return Local(
        log_z,
        target_mean**2 + np.sum(w * rival_mean**2, axis=1),
        hessian,
        target_mean,
        target_curvature,
        np.sum(w * scores.rivals * rival_mean, axis=1),
        np.sum(w * rival_curvature, axis=1),
        change,
        rest,
    )


def _sum_of_squared_covariances(rival: NDArray[np.float64], weights: Array, p: Array) -> Array:
    """sum_ij w_i w_j C_ij^2, C_ij = sum_y p r_i r_j, through the smaller Gram matrix."""
    scaled = rival * np.sqrt(weights)[:, :, None] * np.sqrt(p)[:, None, :]
    if scaled.shape[1] < scaled.shape[2]:
        gram = scaled @ scaled.transpose(0, 2, 1)
    else:
        gram = scaled.transpose(0, 2, 1) @ scaled
    return np.einsum("nij,nij->n", gram, gram)
