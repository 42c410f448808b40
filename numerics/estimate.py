"""Numbers that are *not* proved: Monte Carlo estimates and quadratures with an error estimate.

They never mix with `Certified`: arithmetic on an estimate is refused, so that a proved
number and a measured one cannot be added by accident.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import special

from replica.errors import InvalidInput

Array = NDArray[np.float64]


def check_seed(seed: Any) -> int:
    """`seed` if it is a non-negative integer (0 is a seed), else `InvalidInput`."""
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InvalidInput(f"seed is {seed!r}; it must be a whole number >= 0; give for example 0")
    return seed


def check_level(level: float) -> float:
    """`level` if it is a probability strictly between 0 and 1, else `InvalidInput`."""
    if not 0.0 < level < 1.0:
        raise InvalidInput(
            f"level is {level}; a confidence level lies strictly between 0 and 1; "
            "give for example 0.95"
        )
    return level


@dataclass(frozen=True)
class MonteCarloEstimate:
    """A mean over random samples: `value` with standard error `stderr`, from `samples` draws.

    The confidence interval of a level c is value -+ t stderr with t the quantile (1 + c)/2 of
    Student's law with samples - 1 degrees of freedom. Dimensionless unless the producer says
    otherwise. `scaled` is the only arithmetic; with `Certified` every operation is refused.

    >>> x = MonteCarloEstimate(0.434, 0.002, samples=4096, seed=0)
    >>> print(x)
    0.434 +- 0.002 (Monte Carlo, 4096 samples, seed 0)
    >>> low, high = x.interval(0.95)
    >>> f"{low:.4f} {high:.4f}"
    '0.4301 0.4379'
    >>> x.scaled(10).value
    4.34
    >>> from numerics.balls import Certified
    >>> Certified(1) + x
    Traceback (most recent call last):
        ...
    TypeError: a Monte Carlo estimate does not enter arithmetic: use .value with .stderr, or .scaled
    """

    value: float
    stderr: float
    samples: int
    seed: int

    def __post_init__(self) -> None:
        if not (math.isfinite(self.value) and math.isfinite(self.stderr) and self.stderr >= 0.0):
            raise InvalidInput(
                f"an estimate {self.value} +- {self.stderr} is not finite; take more samples"
            )
        if self.samples < 2:
            raise InvalidInput(
                f"samples is {self.samples}; a standard error needs at least 2; take more samples"
            )

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of this level."""
        quantile = float(special.stdtrit(self.samples - 1, 0.5 + 0.5 * check_level(level)))
        return self.value - quantile * self.stderr, self.value + quantile * self.stderr

    def scaled(self, factor: float) -> MonteCarloEstimate:
        """The estimate of `factor` times the quantity."""
        return MonteCarloEstimate(
            factor * self.value, abs(factor) * self.stderr, self.samples, self.seed
        )

    def deviation(self, truth: float) -> float:
        """(value - truth) / stderr, standard normal for many samples if `truth` is true."""
        return (self.value - truth) / self.stderr

    def to_json(self) -> dict[str, float | int]:
        """`value`, `stderr`, `samples`, `seed`."""
        return {
            "value": self.value,
            "stderr": self.stderr,
            "samples": self.samples,
            "seed": self.seed,
        }

    def __str__(self) -> str:
        digits = 2 if self.stderr == 0.0 else max(0, 1 - math.floor(math.log10(self.stderr)))
        return (
            f"{round(self.value, digits)} +- {round(self.stderr, digits)} "
            f"(Monte Carlo, {self.samples} samples, seed {self.seed})"
        )

    def _refuse(self, other: object) -> NoReturn:
        raise TypeError(
            "a Monte Carlo estimate does not enter arithmetic: use .value with .stderr, or .scaled"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = _refuse

    def __float__(self) -> float:
        raise TypeError("a Monte Carlo estimate does not become a float silently: use .value")


@dataclass(frozen=True)
class MonteCarloCurve:
    """A function measured at `points`: arrays `values` and `stderr` of the same shape.

    >>> import numpy as np
    >>> curve = MonteCarloCurve(np.array([0.0]), np.array([0.4]), np.array([0.01]), 100, 0)
    >>> curve[0].value
    0.4
    """

    points: Array
    values: Array
    stderr: Array
    samples: int
    seed: int

    def __getitem__(self, index: int) -> MonteCarloEstimate:
        return MonteCarloEstimate(
            float(self.values[index]), float(self.stderr[index]), self.samples, self.seed
        )

    def __len__(self) -> int:
        return len(self.points)


@dataclass(frozen=True)
class Controlled:
    """A controlled mean: `value`, `stderr`, and variance_ratio = plain variance / what is left.

    `influence` (n,): what each sample adds to the error, stderr = sqrt(sum influence^2) / n; the
    influences of several means over the same samples combine linearly.
    """

    value: float
    stderr: float
    variance_ratio: float
    influence: Array


def standard_error(influence: Array) -> float:
    """sqrt(sum influence^2) / n."""
    return float(np.sqrt(np.sum(influence**2))) / len(influence)


def controlled_mean(samples: Array, controls: Array) -> Controlled:
    """Mean of `samples` (n,) with control variates `controls` (n, k) whose means are exactly 0.

    value = mean(f) - b . mean(c), b the least-squares coefficients of f on c: the intercept of the
    regression. Its standard error is the jackknife one, sqrt(sum (a_i e_i/(1-h_i))^2), residuals
    e, leverages h and the intercept's weights a: right also where residuals are larger far out.
    The bias from fitting b on the same samples is of relative order k/n (asked: n > 10 k).

    >>> rng = np.random.default_rng(0)
    >>> z = rng.standard_normal(1000)
    >>> result = controlled_mean(z**2 + z, np.stack([z, z**2 - 1], axis=1))
    >>> round(result.value, 12), result.variance_ratio > 1e6
    (1.0, True)
    """
    count, width = controls.shape
    if count <= 10 * width:
        raise InvalidInput(
            f"{count} samples are too few for {width} control variates; "
            f"take more than {10 * width} samples"
        )
    scale = np.sqrt(np.mean(controls**2, axis=0))
    usable = controls[:, scale > 0] / scale[scale > 0]
    design = np.concatenate([np.ones((count, 1)), usable], axis=1)
    left, values, right = np.linalg.svd(design, full_matrices=False)
    kept = values > 1e-10 * values[0]
    left, values, right = left[:, kept], values[kept], right[kept]
    coefficients = right.T @ ((left.T @ samples) / values)
    residuals = samples - design @ coefficients
    leverage = np.minimum(np.sum(left**2, axis=1), 1.0 - 1e-9)
    influence = count * (left @ (right[:, 0] / values)) * residuals / (1.0 - leverage)
    error = standard_error(influence)
    plain = float(np.var(samples, ddof=1))
    ratio = plain / (count * error**2) if error > 0 else math.inf
    return Controlled(float(coefficients[0]), error, ratio, influence)


def samples_for(pilot: MonteCarloEstimate, accuracy: float, most: int) -> int:
    """Samples for a standard error `accuracy`, from a pilot: n (stderr/accuracy)^2 + 10 %.

    Raises `InvalidInput` when that is more than `most`.

    >>> samples_for(MonteCarloEstimate(1.0, 0.02, 100, 0), 0.01, 10**6)
    441
    """
    if not (math.isfinite(accuracy) and accuracy > 0.0):
        raise InvalidInput(f"accuracy is {accuracy}; it must be a positive number, such as 0.001")
    needed = math.ceil(1.1 * pilot.samples * (pilot.stderr / accuracy) ** 2)
    if needed > most:
        raise InvalidInput(
            f"the accuracy {accuracy} needs about {needed} samples and at most {most} are drawn; "
            f"ask for {pilot.stderr * math.sqrt(1.1 * pilot.samples / most):.2g} or more"
        )
    return max(needed, pilot.samples)


@dataclass(frozen=True)
class QuadratureEstimate:
    """A float quadrature: `value`, and `error`, the difference of two resolutions (not a bound)."""

    value: float
    error: float

    @classmethod
    def from_two(cls, evaluate: Callable[[int], float], resolution: int) -> QuadratureEstimate:
        """Evaluate at `resolution` and at twice that, report the finer value.

        >>> QuadratureEstimate.from_two(lambda n: 1 + 2.0**-n, 30).error < 1e-8
        True
        """
        coarse, fine = evaluate(resolution), evaluate(2 * resolution)
        return cls(fine, abs(fine - coarse))
