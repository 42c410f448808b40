"""Where 50 % points go as d grows: a common fit of success curves, and the test of its limit.

At dimension d the theory predicts the curve P = Phi(U_d(log p)). The data are fitted by

    P = Phi( s_d U_d(log p - log r_d) ),     r_d = 1 + a + sum_j b_j x_{j,d},

with a width s_d of its own at every d: the 50 % point lies at r_d times the predicted one, and
1 + a is its limit when the corrections x_{j,d} (1/d, delta/d) have died out. Free corrections and
widths would fit any data, so a hypothesis states the `Box` they lie in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from replica.errors import InvalidInput
from validate.checks.statistics import generator, monte_carlo_p_value
from validate.checks.theory_curve import TheoryCurve

Floats = NDArray[np.float64]
STEPS = 40
QUICK_STEPS = 10
HALVINGS = 20
STIFFNESS = 1e3
"""Hardness of the walls of a box against the push of the data; they yield by 1/1000 of a misfit."""
MOST_SHIFT, MOST_WIDENING, WIDEST = 0.1, 0.5, 2.5
_LEAST_INFORMATION = 1e-9
TINY_INFORMATION = 1e-12
"""Where every success is certain the counts say nothing: the step is then 0, not undefined."""


Curve = tuple[Floats, Floats]
"""Nodes of log p, increasing, and U = Phi^{-1}(P) there; linear between and beyond them."""


def theory_probit(theory: TheoryCurve, half: float | None = None) -> Curve:
    """The exact curve, with its 50 % point moved (in ratio) to `half` if given."""
    move = 0.0 if half is None else float(np.log(half / theory.half))
    log_facts = np.log(theory.facts.astype(float)) + move
    return log_facts, np.asarray(special.ndtri(theory.probability))


def straight_probit(half: float, width: float) -> Curve:
    """U = -(log p - log half)/width, for a threshold whose curve is not known otherwise."""
    if not (half > 0.0 and width > 0.0):
        raise InvalidInput(f"half is {half} and width {width}; both must be positive")
    log_half = float(np.log(half))
    return np.array([log_half - width, log_half + width]), np.array([1.0, -1.0])


@dataclass(frozen=True)
class DimensionCounts:
    """Counts at one dimension, the predicted curve, and the corrections x_j that may shift it.

    `facts`, `successes`, `trials`: lists of one length, at least two loads; `curve`: the
    prediction; `corrections`: the x_j.
    """

    curve: Curve
    facts: Sequence[int]
    successes: Sequence[int]
    trials: Sequence[int]
    corrections: tuple[float, ...]


@dataclass(frozen=True)
class Box:
    """What a finite size may do: low <= sum_j b_j x_{j,d} <= high at every d, s_d within `width`.

    `shift`: (low, high), shares of the predicted 50 % point; `width`: positive factors. Raises
    `InvalidInput` for an empty box or one without the predicted curve (shift 0, width 1).

    >>> Box((-0.08, 0.08)).width
    (0.5, 2.0)
    """

    shift: tuple[float, float]
    width: tuple[float, float] = (0.5, 2.0)

    def __post_init__(self) -> None:
        if not (self.shift[0] <= 0.0 <= self.shift[1] and self.shift[0] < self.shift[1]):
            raise InvalidInput(f"the shifts {self.shift} of a box must increase and enclose 0")
        if not (0.0 < self.width[0] <= 1.0 <= self.width[1] and self.width[0] < self.width[1]):
            raise InvalidInput(f"the widths {self.width} of a box must increase and enclose 1")


class ShiftModel:
    """The common fit. Parameters theta = (a, b_1, ..., b_J, log s_d of every dimension).

    With a `box` every fit keeps corrections and widths in it (stiff quadratic walls, so that the
    score test stays a score test: a direction that a wall holds counts as known). Raises
    `InvalidInput` for counts that do not fit together or for fewer dimensions than parameters of
    the shift.
    """

    def __init__(self, data: Sequence[DimensionCounts], box: Box | None = None) -> None:
        sizes = {len(d.corrections) for d in data}
        if len(sizes) != 1:
            raise InvalidInput("every dimension needs the same number of corrections to the limit")
        self.corrections = sizes.pop()
        if len(data) < self.corrections + 1:
            raise InvalidInput(
                f"{len(data)} dimensions cannot determine a limit and {self.corrections} "
                "corrections; measure at more dimensions"
            )
        if any(
            not (len(d.facts) == len(d.successes) == len(d.trials)) or min(d.trials, default=0) < 1
            for d in data
        ):
            raise InvalidInput("facts, successes and trials must be lists of one length; n >= 1")
        if any(len(d.facts) < 2 for d in data):
            raise InvalidInput("a 50 % point needs at least two loads at every dimension; add some")
        self.data = list(data)
        self.group = np.repeat(np.arange(len(data)), [len(d.facts) for d in data])
        self.log_facts = np.log(np.concatenate([np.asarray(d.facts, dtype=float) for d in data]))
        self.trials = np.concatenate([np.asarray(d.trials, dtype=np.int64) for d in data])
        self.successes = np.concatenate([np.asarray(d.successes, dtype=np.int64) for d in data])
        x = np.array([d.corrections for d in data], dtype=float).reshape(len(data), -1)
        self.design = np.hstack([np.ones((len(data), 1)), x])
        self.size = self.design.shape[1] + len(data)
        self.box = box
        # 2/pi is the most that one trial can tell about eta, and phi^2/P(1-P) eta^2 is below 1.
        steep = np.array(
            [np.median(np.abs(np.diff(d.curve[1]) / np.diff(d.curve[0]))) for d in data]
        )
        most = self.trials * (2.0 / np.pi) * steep[self.group] ** 2
        self._walls = STIFFNESS * float(most.sum()), STIFFNESS * float(self.trials.sum())

    def _curve(self, u: Floats) -> tuple[Floats, Floats]:
        """U and dU/d(log p) at log p = u, shape (..., I), continued linearly beyond the nodes."""
        value, slope = np.empty_like(u), np.empty_like(u)
        for g, d in enumerate(self.data):
            x, y = d.curve
            columns = self.group == g
            at = u[..., columns]
            left = np.clip(np.searchsorted(x, at) - 1, 0, x.size - 2)
            s = (y[left + 1] - y[left]) / (x[left + 1] - x[left])
            value[..., columns] = y[left] + s * (at - x[left])
            slope[..., columns] = s
        return value, slope

    def ratios(self, theta: Floats) -> Floats:
        """r_d of every dimension, shape (..., D)."""
        shift = theta[..., : self.design.shape[1]] @ self.design.T
        return np.asarray(np.maximum(1.0 + shift, 0.05))

    def probit(self, theta: Floats) -> tuple[Floats, Floats]:
        """Phi^{-1}(P) at every load and its derivatives, shapes (..., I) and (..., I, P)."""
        ratio = self.ratios(theta)[..., self.group]
        scale = np.exp(theta[..., self.design.shape[1] :])[..., self.group]
        value, slope = self._curve(self.log_facts - np.log(ratio))
        eta = scale * value
        shift = (-scale * slope / ratio)[..., None] * self.design[self.group]
        width = eta[..., None] * (self.group[:, None] == np.arange(len(self.data)))
        return eta, np.concatenate([shift, width], axis=-1)

    def probabilities(self, theta: Floats) -> Floats:
        """P at every load."""
        return np.clip(special.ndtr(self.probit(theta)[0]), 1e-12, 1.0 - 1e-12)

    def log_likelihood(self, theta: Floats, successes: ArrayLike) -> Floats:
        """Log likelihood without its constant."""
        s, eta = np.asarray(successes), self.probit(theta)[0]
        value = s * special.log_ndtr(eta) + (self.trials - s) * special.log_ndtr(-eta)
        return np.asarray(value.sum(axis=-1))

    def _beyond(self, theta: Floats) -> tuple[Floats, Floats]:
        """How far corrections (..., D) and log widths (..., D) lie outside the box."""
        columns = self.design.shape[1]
        shift = theta[..., 1:columns] @ self.design[:, 1:].T
        log_width = theta[..., columns:]
        if self.box is None:
            return np.zeros_like(shift), np.zeros_like(log_width)
        low, high = np.log(self.box.width)
        return shift - np.clip(shift, *self.box.shift), log_width - np.clip(log_width, low, high)

    def objective(self, theta: Floats, successes: ArrayLike) -> Floats:
        """Log likelihood minus the energy of the walls: what a fit maximises."""
        shift, width = self._beyond(theta)
        walls = self._walls[0] * (shift**2).sum(axis=-1) + self._walls[1] * (width**2).sum(axis=-1)
        return np.asarray(self.log_likelihood(theta, successes) - walls / 2.0)

    def deviance(self, theta: Floats, successes: ArrayLike) -> Floats:
        """2 (l of one free rate a load - l(theta)): 0 for a fit that meets every count."""
        s, n = np.asarray(successes, dtype=float), self.trials
        best = (special.xlogy(s, s / n) + special.xlogy(n - s, 1.0 - s / n)).sum(axis=-1)
        return np.asarray(2.0 * (best - self.log_likelihood(theta, s)))

    def score(self, theta: Floats, successes: ArrayLike) -> tuple[Floats, Floats]:
        """Gradient of the objective and Fisher information, (..., P) and (..., P, P)."""
        eta, jacobian = self.probit(theta)
        p = np.clip(special.ndtr(eta), 1e-12, 1.0 - 1e-12)
        density = np.exp(-eta * eta / 2.0) / np.sqrt(2.0 * np.pi)
        weight = density / (p * (1.0 - p))
        gradient = np.einsum("...i,...ip->...p", weight * (successes - self.trials * p), jacobian)
        weighted = (self.trials * density * weight)[..., None] * jacobian
        information = np.swapaxes(jacobian, -1, -2) @ weighted
        if self.box is not None:
            columns, x = self.design.shape[1], self.design[:, 1:]
            shift, width = self._beyond(theta)
            gradient[..., 1:columns] -= self._walls[0] * shift @ x
            gradient[..., columns:] -= self._walls[1] * width
            information[..., 1:columns, 1:columns] += self._walls[0] * np.einsum(
                "...d,dp,dq->...pq", shift != 0.0, x, x
            )
            at = np.arange(columns, self.size)
            information[..., at, at] += self._walls[1] * (width != 0.0)
        return gradient, information

    def fit(
        self,
        successes: ArrayLike,
        *,
        fixed: dict[int, ArrayLike] | None = None,
        start: Floats | None = None,
        steps: int = STEPS,
        careful: bool = True,
    ) -> Floats:
        """Maximum likelihood for every row of `successes` (..., I); `fixed` holds parameters.

        Fisher scoring with bounded steps from `start` (default a = b = 0, s = 1); `careful` also
        halves steps that lower the likelihood. `fixed` maps a position in theta to its value.
        """
        s = np.asarray(successes, dtype=float)
        fixed = fixed or {}
        shapes = [np.shape(v) for v in fixed.values()]
        lead = np.broadcast_shapes(s.shape[:-1], *shapes)
        theta = np.zeros((*lead, self.size))
        if start is not None:
            theta += start
        free = [k for k in range(self.size) if k not in fixed]
        for k, number in fixed.items():
            theta[..., k] = number
        columns = self.design.shape[1]
        value = self.objective(theta, s)
        for _ in range(steps):
            gradient, information = self.score(theta, s)
            sub = information[..., free, :][..., free]
            size = np.einsum("...pp->...p", sub)
            ridge = _LEAST_INFORMATION * (size + size.max(axis=-1, keepdims=True))
            sub = sub + (ridge + TINY_INFORMATION)[..., None] * np.eye(len(free))
            move = np.zeros_like(theta)
            move[..., free] = np.linalg.solve(sub, gradient[..., free, None])[..., 0]
            # The whole step is shortened, never its direction: corrections are nearly collinear.
            far = np.maximum(
                np.abs(move[..., :columns] @ self.design.T).max(axis=-1) / MOST_SHIFT,
                np.abs(move[..., columns:]).max(axis=-1) / MOST_WIDENING,
            )
            move /= np.maximum(far, 1.0)[..., None]
            if not careful:
                theta = self._inside(theta + move, fixed)
                if far.max() < 1e-6:
                    break
                continue
            for _ in range(HALVINGS):
                trial = self._inside(theta + move, fixed)
                reached = self.objective(trial, s)
                worse = reached < value - 1e-12 * np.abs(value)
                if not worse.any():
                    break
                move = np.where(worse[..., None], 0.5 * move, move)
            theta = np.where(worse[..., None], theta, trial)
            value = np.maximum(value, reached)
            if far.max() < 1e-6:
                break
        return theta

    def _inside(self, theta: Floats, fixed: dict[int, ArrayLike]) -> Floats:
        """Widths kept between e^-2.5 and e^2.5 of the predicted ones: separated data have none."""
        held = theta.copy()
        columns = self.design.shape[1]
        held[..., columns:] = np.clip(held[..., columns:], -WIDEST, WIDEST)
        for k, value in fixed.items():
            held[..., k] = value
        return held

    def deviation(self, theta: Floats, successes: ArrayLike, position: int) -> Floats:
        """Standardised score of parameter `position` at a fit that holds it: z ~ N(0, 1) if true.

        z = U_k / sqrt(I_kk - I_kr I_rr^{-1} I_rk), r the other parameters. Source: Rao 1948.
        """
        gradient, information = self.score(theta, successes)
        rest = [k for k in range(self.size) if k != position]
        inner = information[..., rest, :][..., rest]
        size = np.einsum("...pp->...", inner)[..., None, None]
        inner = inner + (_LEAST_INFORMATION * size + TINY_INFORMATION) * np.eye(len(rest))
        cross = information[..., rest, position]
        left = np.linalg.solve(inner, cross[..., None])[..., 0]
        variance = information[..., position, position] - (cross * left).sum(axis=-1)
        # At a fit the other gradients vanish; what rounding left of them is projected out.
        score = gradient[..., position] - (left * gradient[..., rest]).sum(axis=-1)
        return np.asarray(score / np.sqrt(np.maximum(variance, 1e-300)))


@dataclass(frozen=True)
class LimitTest:
    """Test of a = `limit`: p-value, fits with and without it, intervals, power.

    `p_score`: of |z|, the score for a; `p_fit`: of the deviance of the fit that holds a. The
    p-value is min(1, 2 min(p_score, p_fit)) for a model with a box, p_score for one without.
    """

    model: ShiftModel
    limit: float
    statistic: float
    p_value: float
    null: Floats
    held: Floats
    free: Floats
    p_score: float
    p_fit: float
    deviance_null: Floats

    def critical_value(self, level: float) -> float:
        """Least |z| rejected at `level`; infinite if the null sample is too small."""
        return _critical(self.null, level)

    def rejects(self, counts: NDArray[np.int64], level: float) -> NDArray[np.bool_]:
        """Which rows of `counts` the test rejects at `level`, by this null sample."""
        z, deviance = _statistics(self.model, counts, self.limit, self.held)
        slack = 1.0 - 1e-9
        if self.model.box is None:
            return np.asarray(z >= self.critical_value(level) * slack)
        return np.asarray(
            (z >= _critical(self.null, level / 2.0) * slack)
            | (deviance >= _critical(self.deviance_null, level / 2.0) * slack)
        )

    def interval(self, position: int, confidence: float = 0.95) -> tuple[float, float]:
        """All values of parameter `position` that the likelihood ratio does not reject."""
        return profile_interval(self.model, self.free, position, confidence)

    def power(self, alternative: float, level: float, *, seed: int, samples: int = 2000) -> float:
        """P(rejection at `level`) if a were `alternative`, corrections and widths as fitted."""
        theta = self.held.copy()
        theta[0] = alternative
        counts = draw(self.model, theta, seed=seed, samples=samples)
        return float(np.mean(self.rejects(counts, level)))

    def lack_of_fit(self) -> tuple[float, int]:
        """Deviance of the free fit from one rate a load, and its degrees of freedom."""
        s = self.model.successes
        return float(self.model.deviance(self.free, s)), s.size - self.model.size


def _critical(null: Floats, level: float) -> float:
    rank = int(np.floor(level * (1 + null.size)))
    return float(null[-rank]) if rank >= 1 else float("inf")


def limit_test(
    model: ShiftModel, limit: float = 0.0, *, seed: int, samples: int = 20_000
) -> LimitTest:
    """Is a = `limit`? Score test, and with a box lack of fit too; nulls simulated at the held fit.

    The null sample is drawn with corrections and widths as fitted under the hypothesis and refits
    them every time (parametric bootstrap), so the p-value accounts for what was fitted. The score
    alone is blind to data that no curve in the box meets, for its slope vanishes there; the
    deviance sees them. The two share the level (Bonferroni).
    """
    held = model.fit(model.successes, fixed={0: limit})
    counts = draw(model, held, seed=seed, samples=samples)
    z_null, deviance_null = _statistics(model, counts, limit, held)
    # The same short fit for the data as for the sample.
    z, deviance = _statistics(model, model.successes[None, :], limit, held)
    p_score = monte_carlo_p_value(float(z[0]), z_null)
    p_fit = monte_carlo_p_value(float(deviance[0]), deviance_null)
    return LimitTest(
        model,
        limit,
        float(z[0]),
        p_score if model.box is None else min(1.0, 2.0 * min(p_score, p_fit)),
        np.sort(z_null),
        held,
        model.fit(model.successes),
        p_score,
        p_fit,
        np.sort(deviance_null),
    )


def draw(model: ShiftModel, theta: Floats, *, seed: int, samples: int) -> NDArray[np.int64]:
    """Counts of success drawn from the model, shape (samples, I)."""
    p = model.probabilities(theta)
    return generator(seed, 72).binomial(model.trials, p, (samples, model.trials.size))


def deviations(model: ShiftModel, counts: NDArray[np.int64], limit: float, start: Floats) -> Floats:
    """Standardised scores of a = `limit`, every row refitted from `start`; in blocks of rows."""
    return _refitted(model, counts, limit, start)[0]


def _statistics(
    model: ShiftModel, counts: NDArray[np.int64], limit: float, start: Floats
) -> tuple[Floats, Floats]:
    """|z| and the deviance of every row."""
    z, deviance = _refitted(model, counts, limit, start)
    return np.abs(z), deviance


def _refitted(
    model: ShiftModel, counts: NDArray[np.int64], limit: float, start: Floats
) -> tuple[Floats, Floats]:
    scores, deviances = [], []
    for first in range(0, len(counts), 2000):
        block = counts[first : first + 2000]
        fits = model.fit(block, fixed={0: limit}, start=start, steps=QUICK_STEPS, careful=False)
        scores.append(model.deviation(fits, block, 0))
        deviances.append(model.deviance(fits, block))
    return np.concatenate(scores), np.concatenate(deviances)


def profile_interval(
    model: ShiftModel, best: Floats, position: int, confidence: float = 0.95
) -> tuple[float, float]:
    """{v : 2 (l_max - max over the rest of l at theta_position = v) <= chi^2 quantile}."""
    peak = float(model.objective(best, model.successes))
    allowed = float(special.chdtri(1, 1.0 - confidence)) / 2.0
    information = model.score(best, model.successes)[1]
    # Only a scale for the grid; separated counts carry no information at their best fit.
    width = float(np.sqrt(max(0.0, np.linalg.pinv(information)[position, position])))
    width = min(max(width, 0.003), 0.3)
    ends = []
    for side in (-1.0, 1.0):
        for reach in (3.0, 9.0, 30.0, 100.0):
            grid = best[position] + side * np.linspace(0.0, reach * width, 25)
            fits = model.fit(
                np.broadcast_to(model.successes, (grid.size, model.successes.size)),
                fixed={position: grid},
                start=best,
            )
            excess = peak - model.objective(fits, model.successes) - allowed
            beyond = np.flatnonzero(excess > 0.0)
            if beyond.size:
                at = max(1, int(beyond[0]))
                share = -excess[at - 1] / (excess[at] - excess[at - 1])
                ends.append(float(grid[at - 1] + share * (grid[at] - grid[at - 1])))
                break
        else:
            ends.append(side * float("inf"))
    return ends[0], ends[1]


def single_shift(counts: DimensionCounts, confidence: float = 0.95) -> tuple[float, float, float]:
    """r_d of one dimension alone, with its likelihood interval: (ratio, low, high)."""
    model = ShiftModel([replace(counts, corrections=())])
    best = model.fit(model.successes)
    low, high = profile_interval(model, best, 0, confidence)
    return 1.0 + float(best[0]), 1.0 + low, 1.0 + high


def focus(rows: Sequence[tuple[float, float, float]], reference: float) -> tuple[float, float]:
    """Limits of an axis for (value, low, high): a few hopelessly wide intervals are cut off.

    Three times the median half-width around all values and the `reference`.

    >>> focus([(1.0, 0.9, 1.1), (1.2, 1.1, 1.3), (1.1, 0.0, 9.0)], 1.0)
    (0.7, 1.5)
    """
    half = float(np.median([(high - low) / 2.0 for _, low, high in rows]))
    values = [value for value, _, _ in rows] + [reference]
    return round(min(values) - 3.0 * half, 12), round(max(values) + 3.0 * half, 12)
