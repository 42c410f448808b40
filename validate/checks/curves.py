"""Success curves: agreement with an exact curve, and the 50 % point with its interval.

At load point i, s_i of n_i instances are separable. The hypothesis gives P_i exactly, so s_i is
Binomial(n_i, P_i) with nothing fitted. Departures that matter are a shifted threshold and a wrong
width; the test looks for these two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special

from replica.errors import InvalidInput
from validate.checks.statistics import generator, monte_carlo_p_value
from validate.checks.undecided import least_square, proportional

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CurveTest:
    """Result of `curve_test`: the statistic, its p-value and the sorted null sample."""

    statistic: float
    p_value: float
    null_sample: Floats

    def critical_value(self, level: float) -> float:
        """Smallest statistic rejected at `level`; infinite if the null sample is too small."""
        rank = int(np.floor(level * (1 + self.null_sample.size)))
        return float(self.null_sample[-rank]) if rank >= 1 else float("inf")


def score_statistic(successes: ArrayLike, trials: ArrayLike, probabilities: ArrayLike) -> Floats:
    """Rao's score statistic of P_i against Phi(a + b Phi^{-1}(P_i)) at (a, b) = (0, 1).

    S = U^T I^{-1} U, with U the derivative of the log likelihood in (a, b) and I its exact
    covariance. `successes` may carry leading axes; the last one runs over the load points.
    Source: Rao 1948.
    """
    n, p = np.asarray(trials, dtype=float), np.asarray(probabilities, dtype=float)
    design, covariance = _directions(n, p)
    score = (np.asarray(successes, dtype=float) - n * p) @ design.T
    return np.asarray(np.einsum("...i,ij,...j->...", score, covariance, score))


def _directions(trials: Floats, probabilities: Floats) -> tuple[Floats, Floats]:
    """dU/ds of shape (2, I), and I^{-1}, of shape (2, 2)."""
    p = probabilities
    x = special.ndtri(p)
    weight = np.exp(-x * x / 2.0) / np.sqrt(2.0 * np.pi) / (p * (1.0 - p))
    design = weight * np.stack([np.ones_like(x), x])
    # The pseudo-inverse covers a single load point, where shift and width are one direction.
    return design, np.linalg.pinv((design * (trials * p * (1.0 - p))) @ design.T)


def curve_test(
    successes: ArrayLike,
    trials: ArrayLike,
    probabilities: ArrayLike,
    *,
    seed: int,
    samples: int = 20_000,
    undecided: ArrayLike | None = None,
) -> CurveTest:
    """Is s_i ~ Binomial(n_i, P_i)? Score test for shift and width; exact null by simulation.

    Arguments: integer arrays `successes`, `trials` and exact `probabilities` (all of length I, each
    probability strictly inside (0, 1)), `seed`, number of null `samples`; `undecided` trials of
    each load that may be successes or not (they are among `trials`, not among `successes`). The
    p-value is then the largest over all ways of deciding them: the statistic S is a convex
    quadratic form of the counts, minimised over the box. It is valid at every sample size, for no
    asymptotics enter. Raises `InvalidInput` on impossible counts.

    >>> curve_test([95, 52, 4], [100, 100, 100], [0.95, 0.5, 0.05], seed=0).p_value > 0.5
    True
    >>> curve_test([95, 72, 14], [100, 100, 100], [0.95, 0.5, 0.05], seed=0).p_value < 1e-3
    True
    """
    s, n, p = _counts(successes, trials, probabilities)
    u = _undecided(undecided, s, n)
    if u.any():
        design, covariance = _directions(n, p)
        values, vectors = np.linalg.eigh(covariance)
        root = np.sqrt(np.maximum(values, 0.0))[:, None] * (vectors.T @ design)
        s = least_square(s, u, n * p, root)
    null = simulate_statistic(n, p, p, seed=seed, samples=samples)
    statistic = float(score_statistic(s, n, p))
    return CurveTest(statistic, monte_carlo_p_value(statistic, null), np.sort(null))


def simulate_statistic(
    trials: ArrayLike, truth: ArrayLike, hypothesis: ArrayLike, *, seed: int, samples: int
) -> Floats:
    """Draws of the score statistic of `hypothesis` when the counts come from `truth`."""
    n = np.asarray(trials, dtype=np.int64)
    draws = generator(seed, 71).binomial(n, np.asarray(truth, dtype=float), (samples, n.size))
    return score_statistic(draws, n, hypothesis)


def curve_power(
    test: CurveTest,
    trials: ArrayLike,
    hypothesis: ArrayLike,
    alternative: ArrayLike,
    *,
    level: float,
    seed: int,
    samples: int = 4_000,
) -> float:
    """P(the test at `level` rejects `hypothesis`) when the probabilities are `alternative`."""
    drawn = simulate_statistic(trials, alternative, hypothesis, seed=seed, samples=samples)
    return float(np.mean(drawn >= test.critical_value(level) * (1.0 - 1e-9)))


@dataclass(frozen=True)
class HalfPoint:
    """The abscissa where half of the instances succeed: estimate, width, likelihood interval."""

    value: float
    width: float
    low: float
    high: float


def half_point(
    abscissa: ArrayLike,
    successes: ArrayLike,
    trials: ArrayLike,
    *,
    confidence: float = 0.95,
    undecided: ArrayLike | None = None,
) -> HalfPoint:
    """Fit P = Phi((c - x)/w) by maximum likelihood; profile-likelihood interval for c.

    Arguments: `abscissa` (number of facts, increasing), `successes`, `trials` (length I);
    `undecided` trials of each load (among `trials`, not among `successes`). The interval is
    {c : 2 (l_max - l(c)) <= chi^2 quantile}; with undecided trials it reaches from the lower end
    with all of them failures to the upper end with all successes (open, 0 or infinity, where that
    does not bracket one half), around the value with them split like the decided ones. Raises
    `InvalidInput` when the counts do not bracket one half, for then c is not determined.

    >>> fit = half_point([80, 85, 90, 95], [98, 70, 27, 4], [100] * 4)
    >>> 86 < fit.low < fit.value < fit.high < 89
    True
    """
    x = np.asarray(abscissa, dtype=float)
    s, n, _ = _counts(successes, trials, None)
    u = _undecided(undecided, s, n)
    if u.any():
        return _half_band(x, s, n, u, confidence)
    rate = s / n
    if x.size < 2 or not (rate.max() > 0.5 > rate.min()):
        raise InvalidInput(
            "the success rates do not lie on both sides of 1/2, so the 50 % point is not "
            "determined; add load points or instances"
        )
    scale = float(np.ptp(x))
    c_grid = np.linspace(x.min(), x.max(), 121)
    for last in (False, False, True):  # one smooth maximum: refine around the best node
        values = profile_log_likelihood(c_grid, x, s, n)[0]
        best = int(np.argmax(values))
        step = c_grid[1] - c_grid[0]
        if not last:
            c_grid = np.linspace(c_grid[best] - step, c_grid[best] + step, 41)
    c_hat, peak = float(c_grid[best]), float(values[best])
    allowed = float(special.chdtri(1, 1.0 - confidence)) / 2.0

    def excess(c: float) -> float:
        return peak - float(profile_log_likelihood(np.array([c]), x, s, n)[0][0]) - allowed

    width = float(profile_log_likelihood(np.array([c_hat]), x, s, n)[1][0])
    reach = 0.02 * scale
    return HalfPoint(
        c_hat, width, _crossing(excess, c_hat, -reach), _crossing(excess, c_hat, reach)
    )


def _half_band(x: Floats, s: Floats, n: Floats, u: Floats, confidence: float) -> HalfPoint:
    middle = half_point(x, proportional(s, u, n), n, confidence=confidence)
    low, high = 0.0, float("inf")
    if (s / n).max() > 0.5:
        low = half_point(x, s, n, confidence=confidence).low
    if ((s + u) / n).min() < 0.5:
        high = half_point(x, s + u, n, confidence=confidence).high
    return HalfPoint(middle.value, middle.width, min(low, middle.low), max(high, middle.high))


def profile_log_likelihood(
    c: Floats, x: Floats, successes: Floats, trials: Floats
) -> tuple[Floats, Floats]:
    """max over w of the log likelihood of P = Phi((c - x)/w), and the best w, for each c.

    A grid in log w is refined twice; completely separated data have no best width, and take the
    least one of the grid, e^-8 of the range of x (where the likelihood is flat).
    """
    scale = float(np.ptp(x))
    centre = np.full(c.shape, -2.0)
    half = 6.0
    for nodes in (49, 17, 17):
        log_w = centre[:, None] + np.linspace(-half, half, nodes)
        u = (c[:, None, None] - x) / (scale * np.exp(log_w))[:, :, None]
        value = (successes * special.log_ndtr(u) + (trials - successes) * special.log_ndtr(-u)).sum(
            -1
        )
        best = value.argmax(axis=1)
        rows = np.arange(c.size)
        centre = log_w[rows, best]
        half = 2.0 * half / (nodes - 1)
    return value[rows, best], scale * np.exp(centre)


def ratio_interval(top: HalfPoint, bottom: HalfPoint) -> tuple[float, float, float]:
    """Ratio of two independent 50 % points and its interval, by the MOVER rule on logarithms.

    With l = log c and its limits (L, U): log ratio - sqrt((l_1 - L_1)^2 + (U_2 - l_2)^2), and the
    mirror image. Keeps the asymmetry of the two intervals. Source: Zou and Donner 2008.

    >>> point = HalfPoint(100.0, 5.0, 99.0, 101.0)
    >>> [round(v, 4) for v in ratio_interval(point, point)]
    [1.0, 0.986, 1.0142]
    """
    with np.errstate(divide="ignore"):  # an open interval begins at 0
        l1, low1, high1 = np.log([top.value, top.low, top.high])
        l2, low2, high2 = np.log([bottom.value, bottom.low, bottom.high])
    middle = l1 - l2
    low = middle - np.hypot(l1 - low1, high2 - l2)
    high = middle + np.hypot(high1 - l1, l2 - low2)
    return float(np.exp(middle)), float(np.exp(low)), float(np.exp(high))


def _crossing(excess: Callable[[float], float], start: float, step: float) -> float:
    """First sign change of `excess` outward from `start`."""
    reach = step
    for _ in range(60):
        if excess(start + reach) > 0.0:
            return float(optimize.brentq(excess, start, start + reach, xtol=1e-6))
        reach *= 1.5
    raise InvalidInput(
        "the counts do not bound the 50 % point on one side; add load points or instances there"
    )


def _undecided(undecided: ArrayLike | None, successes: Floats, trials: Floats) -> Floats:
    u = np.zeros_like(successes) if undecided is None else np.asarray(undecided, dtype=float)
    if u.shape != successes.shape or not ((u >= 0) & (successes + u <= trials)).all():
        raise InvalidInput(
            "undecided trials must be a list as long as the trials, each count between 0 and "
            "trials - successes; give the counts of the same loads"
        )
    return u


def _counts(
    successes: ArrayLike, trials: ArrayLike, probabilities: ArrayLike | None
) -> tuple[Floats, Floats, Floats]:
    s, n = np.asarray(successes, dtype=float), np.asarray(trials, dtype=float)
    p = np.full(s.shape, 0.5) if probabilities is None else np.asarray(probabilities, dtype=float)
    if s.ndim != 1 or s.shape != n.shape or s.shape != p.shape or s.size == 0:
        raise InvalidInput(
            "successes, trials and probabilities must be lists of one equal, positive length; "
            f"got shapes {s.shape}, {n.shape}, {p.shape}"
        )
    if not ((n >= 1) & (s >= 0) & (s <= n)).all():
        raise InvalidInput("each count of successes must lie between 0 and its number of trials")
    if not ((p > 0.0) & (p < 1.0)).all():
        raise InvalidInput(
            "a hypothesised probability is not strictly between 0 and 1; leave that load point out"
        )
    return s, n, p
