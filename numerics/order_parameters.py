"""Overlap, free entropy and replicon at finite p, below capacity, from the saddle point.

    q/(1-q)^2 = gamma E|grad log Z|^2,   omega ~ N(0, q),  V = 1 - q,  gamma = p/(d_in d_out)

One score (halfspace, tail average): certified, by quadrature in ball arithmetic of the expressions
of `replica`. Top-one recall with M competitors: Monte Carlo over omega with exact control variates,
a different type. There f(q) = q - gamma (1-q)^2 E|grad log Z|^2 is followed: f(0) < 0 and
f(1) = 1 - gamma delta > 0 below capacity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp
from flint import arb, fmpz
from scipy import optimize, special

from numerics.balls import Certified, bits_for, working_precision
from numerics.certify import certify
from numerics.cone.volumes import check_digits, check_margin, statistical_dimension
from numerics.counts import parse_count
from numerics.estimate import (
    Controlled,
    MonteCarloEstimate,
    QuadratureEstimate,
    check_seed,
    controlled_mean,
    samples_for,
    standard_error,
)
from numerics.fields import Array, Fields, cone_distance, draw_fields, largest_moments
from numerics.halfspace import HalfspaceAverages
from numerics.posterior import Local, local_quantities
from numerics.roots import certified_root
from numerics.tail_average import exact_number, tail_margin
from replica import symbols as s
from replica.catalogue import model
from replica.errors import InvalidInput
from replica.priors.spherical import Spherical

PILOT = 256
MOST_SAMPLES = 4_000_000
_GAMMA = "facts per parameter, a number > 0"


# -- one score: certified ----------------------------------------------------------------------


@dataclass(frozen=True)
class CertifiedOrderParameters:
    """`overlap` q, `free_entropy` phi per weight, `replicon` (stable while > 0): enclosures.

    The overlap is proved to be a root of the saddle-point equation: opposite signs at both ends.
    """

    overlap: Certified
    free_entropy: Certified
    replicon: Certified


def halfspace_order_parameters(
    facts_per_parameter: Any, *, margin: Any = 0, digits: int = 12
) -> CertifiedOrderParameters:
    """Gardner's perceptron below capacity: q, phi and the replicon, certified.

    Arguments: `facts_per_parameter` gamma, exact (int, Fraction, decimal text), below
    1/[(1 + m^2) Phi(m) + m phi(m)]; `margin` m, an exact number or a `Certified`, in standard
    deviations of a score; `digits`. Raises `InvalidInput` at or above capacity.
    Source: Gardner 1988; the expressions are those of `replica`, compiled.

    >>> result = halfspace_order_parameters(1, digits=8)
    >>> print(result.overlap.to_string(8))
    0.58531185
    """
    gamma = exact_number(facts_per_parameter, "facts_per_parameter", _GAMMA)
    digits = check_digits(digits)
    lead = margin if isinstance(margin, Certified) else exact_number(margin, "margin", "a number")
    gardner = model("spherical", "halfspace", margin=s.margin)
    capacity = certify(gardner.capacity, 15, {s.margin: lead}, real=True)
    if gamma <= 0 or not capacity > gamma:
        raise InvalidInput(
            f"facts_per_parameter is {facts_per_parameter}; solutions exist for 0 < p/d^2 < "
            f"{capacity.to_string(8)} at this margin; give a number in that range"
        )
    guess = _float_overlap(float(gamma), _as_float(lead))
    width = Fraction(min(guess, 1 - guess)) / 2
    low, high = Fraction(guess) - width, Fraction(guess) + width

    @lru_cache(maxsize=8)
    def condition(q: Fraction, wanted: int) -> Any:
        with working_precision(bits_for(wanted)):
            point = _exact_ball(q)
            at = HalfspaceAverages(point, _exact_ball(lead))
            return point - _exact_ball(gamma) * (1 - point) ** 2 * at.squared_gradient()

    for extra in (4, 10, 20, 40):
        overlap = certified_root(condition, low, high, digits + extra, guess=guess)
        with working_precision(bits_for(digits + extra + 4)):
            q, ratio = overlap.ball, _exact_ball(gamma)
            at = HalfspaceAverages(q, _exact_ball(lead))
            entropy = (1 - q).log() / 2 + q / (2 * (1 - q)) + ratio * at.log_probability()
            replicon = 1 - ratio * (1 - q) ** 2 * at.squared_hessian()
        result = CertifiedOrderParameters(overlap, Certified(entropy), Certified(replicon))
        if min(overlap.digits, result.free_entropy.digits, result.replicon.digits) >= digits:
            return result
    raise ArithmeticError(f"{digits} digits were not reached; the load is too close to an end")


def _exact_ball(number: Certified | Fraction) -> Any:
    """A ball around the number at the current precision."""
    if isinstance(number, Certified):
        return number.ball
    return arb(fmpz(number.numerator)) / arb(fmpz(number.denominator))


def tail_average_order_parameters(
    facts_per_parameter: Any, r: Any, *, margin: Any = 0, digits: int = 12
) -> CertifiedOrderParameters:
    """The same for the tail average of the best fraction `r` of M -> infinity competitors.

    The competitors' tail average concentrates on kappa_r whatever the overlap, so this is the
    halfspace at the margin kappa_r + margin.

    >>> tail = tail_average_order_parameters("0.3", "0.5", digits=6)
    >>> print(tail.overlap.to_string(6))
    0.517711
    """
    extra = exact_number(margin, "margin", "a number")
    lead = tail_margin(r, check_digits(digits) + 50) + extra
    return halfspace_order_parameters(facts_per_parameter, margin=lead, digits=digits)


def _as_float(number: Certified | Fraction) -> float:
    return number.to_float_lossy() if isinstance(number, Certified) else float(number)


def _float_overlap(gamma: float, margin: float) -> float:
    """The halfspace saddle point in floats: a starting point, nothing rests on it."""
    z = np.linspace(-9.0, 9.0, 1501)
    weight = np.exp(-0.5 * z * z) * (z[1] - z[0]) / math.sqrt(2.0 * math.pi)

    def condition(logit: float) -> float:
        q = special.expit(logit)
        x = (math.sqrt(q) * z - margin) / math.sqrt(special.expit(-logit))
        hazard = np.exp(-0.5 * x * x - special.log_ndtr(x)) / math.sqrt(2.0 * math.pi)
        return float(q - gamma * special.expit(-logit) * np.sum(weight * hazard**2))

    return float(special.expit(optimize.brentq(condition, -20.0, 20.0, xtol=1e-13)))


# -- top-one recall: Monte Carlo ---------------------------------------------------------------


@dataclass(frozen=True)
class TopOneOrderParameters:
    """Monte Carlo estimates at the saddle point, with what they cost and hide.

    `variance_ratio`: variance of |grad log Z|^2 over what the control variates leave of it.
    `rest_variance`: variance of log Z, given the competitors drawn one by one, that the average
    over the others hides (0 up to M = 256), an estimate; the standard errors allow for a bias of
    that size.
    """

    overlap: MonteCarloEstimate
    free_entropy: MonteCarloEstimate
    replicon: MonteCarloEstimate
    facts_per_parameter: float
    competitors: int
    margin: float
    variance_ratio: float
    rest_variance: float

    @property
    def is_stable(self) -> bool:
        """Whether the replicon is positive beyond 4 standard errors (convex problem: always)."""
        return self.replicon.value > 4.0 * self.replicon.stderr


@dataclass(frozen=True)
class _Sample:
    """Fields with the controls that do not depend on q."""

    fields: Fields
    controls: Array
    margin: float

    @classmethod
    def draw(cls, competitors: int, samples: int, seed: int, margin: float) -> _Sample:
        fields = draw_fields(competitors, samples, seed)
        return cls(fields, fixed_controls(fields, competitors), margin)

    def head(self, count: int) -> _Sample:
        return _Sample(self.fields[:count], self.controls[:count], self.margin)


@lru_cache(maxsize=64)
def _known_means(competitors: int) -> tuple[float, float, float]:
    """E max, E max^2 and E dist^2 to the recall cone, none of them by sampling."""
    mean, square = largest_moments(competitors)
    return mean, square, statistical_dimension(competitors, 15).to_float_lossy()


def fixed_controls(fields: Fields, competitors: int) -> Array:
    """Functions of the fields whose mean is exactly 0 (n, 7): see the source for the list."""
    mean, square, distance = _known_means(competitors)
    target, largest = fields.target, fields.top[:, 0]
    columns = [
        target,
        target**2 - 1.0,
        largest - mean,
        largest**2 - square,
        target * (largest - mean),
        (target**2 - 1.0) * (largest - mean),
        cone_distance(fields) - distance,
    ]
    return np.stack(columns, axis=1)


def stein_controls(fields: Fields, local: Local, q: float) -> Array:
    """Stein's identity E[omega g - q dg/domega] = 0 for four functions g (n, 4)."""
    omega = math.sqrt(q) * fields.target
    columns = [
        omega * local.target_gradient - q * local.target_curvature,
        local.rival_work - q * local.rival_curvature,
        omega * local.log_z - q * local.target_gradient,
        omega * local.gradient - q * local.gradient_change,
    ]
    return np.stack(columns, axis=1)


@dataclass(frozen=True)
class Averages:
    """Controlled means at one q: E log Z, E|grad log Z|^2, E||Hess log Z||^2."""

    log_z: Controlled
    gradient: Controlled
    hessian: Controlled
    rest_variance: float


def averages(sample: _Sample, q: float) -> Averages:
    """Monte Carlo averages over the shared scores at overlap q, common random numbers across q."""
    local = local_quantities(sample.fields, q, sample.margin)
    controls = np.concatenate([sample.controls, stein_controls(sample.fields, local, q)], axis=1)
    return Averages(
        controlled_mean(local.log_z, controls),
        controlled_mean(local.gradient, controls),
        controlled_mean(local.hessian, controls),
        float(np.mean(local.rest_variance)),
    )


def mean_log_probability(
    competitors: int | str, q: float, *, margin: float = 0.0, samples: int = 4096, seed: int = 0
) -> MonteCarloEstimate:
    """E log Z(omega, 1-q) over omega ~ N(0, q I_{M+1}), top-one recall with M competitors.

    >>> estimate = mean_log_probability(1, 0.5, samples=512)
    >>> low, high = estimate.interval(0.9999)
    >>> low < -1.0 < high, estimate.stderr < 1e-3
    (True, True)
    """
    number = parse_count(competitors, "competitors")
    if not 0.0 < q < 1.0:
        raise InvalidInput(f"q is {q}; an overlap below capacity lies strictly between 0 and 1")
    sample = _Sample.draw(number, _check_samples(samples), check_seed(seed), _check(margin))
    result = averages(sample, q)
    error = math.hypot(result.log_z.stderr, result.rest_variance)
    return MonteCarloEstimate(result.log_z.value, error, samples, seed)


def _check(margin: Any) -> float:
    return float(check_margin(margin))


def _check_samples(samples: Any) -> int:
    if (
        isinstance(samples, bool)
        or not isinstance(samples, int)
        or not PILOT <= samples <= MOST_SAMPLES
    ):
        raise InvalidInput(
            f"samples is {samples}; a whole number from {PILOT} to {MOST_SAMPLES} is allowed"
        )
    return samples


def top_one_order_parameters(
    facts_per_parameter: float | Fraction,
    competitors: int | str,
    *,
    margin: float = 0.0,
    samples: int = 4096,
    accuracy: float | None = None,
    seed: int = 0,
) -> TopOneOrderParameters:
    """q, phi(q) and the replicon for top-one recall with M competitors, by Monte Carlo.

    Arguments: `facts_per_parameter` gamma = p/(d_in d_out), in (0, 1/delta(M, margin));
    `competitors` M from 1 to 10^300; `margin` >= 0 in standard deviations of a score; `samples`
    >= 256 draws of the shared scores, or, if `accuracy` is given, as many as bring the standard
    error of q down to it; `seed`. Raises `InvalidInput` at or above capacity. Source:
    replica-symmetric saddle point; control variates with exactly known mean (Stein identities,
    target and largest competitor, squared distance to the recall cone).

    >>> result = top_one_order_parameters(0.1, 39, samples=512)  # d = 20, p = 40
    >>> abs(result.overlap.value - 0.434) < 0.01
    True
    """
    gamma = float(facts_per_parameter)
    number = parse_count(competitors, "competitors")
    exact_margin = check_margin(margin)
    delta = statistical_dimension(number, 15, margin=exact_margin).to_float_lossy()
    if not 0.0 < gamma < 1.0 / delta:
        raise InvalidInput(
            f"facts_per_parameter is {facts_per_parameter}; solutions exist for 0 < p/d^2 < "
            f"{1.0 / delta:.8g} with {competitors} competitors and this margin; "
            "give a number in that range"
        )
    seed, samples = check_seed(seed), _check_samples(samples)
    lead = float(exact_margin)
    result = _solve(gamma, number, lead, samples, seed)
    if accuracy is not None:
        wanted = samples_for(result.overlap, accuracy, MOST_SAMPLES)
        if wanted > samples:
            result = _solve(gamma, number, lead, wanted, seed)
    return result


def _solve(
    gamma: float, number: int, margin: float, samples: int, seed: int
) -> TopOneOrderParameters:
    sample = _Sample.draw(number, samples, seed, margin)
    pilot = sample.head(PILOT)
    q = _pilot_root(pilot, gamma)
    # slopes by common random numbers on the pilot; second-order small in the errors they enter
    step = 0.02 * q * (1.0 - q)
    sides = [averages(pilot, q - step), averages(pilot, q + step)]
    slope = (_gap(sides[1], q + step, gamma) - _gap(sides[0], q - step, gamma)) / (2 * step)
    replicon_slope = (
        _replicon(sides[1], q + step, gamma) - _replicon(sides[0], q - step, gamma)
    ) / (2 * step)
    here = averages(sample, q)
    for _ in range(12):
        gain = gamma * (1.0 - q) ** 2
        error = gain * here.gradient.stderr / slope
        change = -_gap(here, q, gamma) / slope
        if abs(change) < 0.02 * error or abs(change) < 1e-12:
            break
        if not 0.0 < q + change < 1.0:
            raise ArithmeticError("the secant left (0, 1): take more samples")
        moved = averages(sample, q + change)
        new_slope = (_gap(moved, q + change, gamma) - _gap(here, q, gamma)) / change
        slope = new_slope if new_slope > 0.2 * slope else slope
        q, here = q + change, moved
    else:
        raise ArithmeticError("the saddle point did not settle in 12 steps: take more samples")
    gain = gamma * (1.0 - q) ** 2
    allowance = here.rest_variance
    shift = gain * here.gradient.influence / slope
    replicon_shift = -gain * here.hessian.influence + replicon_slope * shift
    systematic = [
        gain * allowance * here.gradient.value / slope,
        gamma * allowance,
        2.0 * gain * allowance * here.hessian.value,
    ]
    entropy = float(sp.lambdify(s.q, Spherical().entropy(), "math")(q))
    estimates = [
        (q, standard_error(shift)),
        # stationary in q: the error of q enters in second order only
        (entropy + gamma * here.log_z.value, gamma * here.log_z.stderr),
        (1.0 - gain * here.hessian.value, standard_error(replicon_shift)),
    ]
    numbers = [
        MonteCarloEstimate(value, math.hypot(error, extra), samples, seed)
        for (value, error), extra in zip(estimates, systematic, strict=True)
    ]
    overlap, free_entropy, replicon = numbers
    ratio = here.gradient.variance_ratio
    return TopOneOrderParameters(
        overlap, free_entropy, replicon, gamma, number, margin, ratio, allowance
    )


def _gap(at: Averages, q: float, gamma: float) -> float:
    """f(q) = q - gamma (1-q)^2 E|grad log Z|^2."""
    return q - gamma * (1.0 - q) ** 2 * at.gradient.value


def _replicon(at: Averages, q: float, gamma: float) -> float:
    return 1.0 - gamma * (1.0 - q) ** 2 * at.hessian.value


def _pilot_root(pilot: _Sample, gamma: float) -> float:
    """Root of f on the pilot, bracketed in log(q/(1-q))."""

    def function(logit: float) -> float:
        q = float(special.expit(logit))
        return _gap(averages(pilot, q), q, gamma)

    low, high = -2.0, 2.0
    while function(low) > 0.0:
        low -= 3.0
        if low < -20.0:
            raise InvalidInput(f"facts_per_parameter is {gamma}; it is too small to resolve q")
    while function(high) < 0.0:
        high += 2.0
        if high > 16.0:
            raise InvalidInput(
                f"facts_per_parameter is {gamma}; it is too close to capacity to resolve 1 - q; "
                "give a smaller number"
            )
    return float(special.expit(optimize.brentq(function, low, high, xtol=1e-3)))


# -- few competitors: quadrature ----------------------------------------------------------------


def quadrature_averages(
    competitors: int, q: float, margin: float = 0.0, resolution: int = 20
) -> tuple[QuadratureEstimate, QuadratureEstimate, QuadratureEstimate]:
    """E log Z, E|grad|^2, E||Hess||^2 for M = 1, 2 or 3 competitors by Gauss-Hermite quadrature.

    Z does not change when all scores move together, so M dimensions are left of M + 1. Not
    certified: the error is the difference between `resolution` and twice as many nodes a dimension.

    >>> log_z, gradient, hessian = quadrature_averages(1, 0.5)
    >>> log_z.error < 1e-6, round(log_z.value, 6)
    (True, -1.0)
    """
    if competitors not in (1, 2, 3):
        raise InvalidInput(f"competitors is {competitors}; this quadrature serves 1, 2 or 3")

    def evaluate(count: int) -> list[float]:
        local, weight = _on_grid(competitors, q, margin, count)
        return [float(np.sum(weight * x)) for x in (local.log_z, local.gradient, local.hessian)]

    coarse, fine = evaluate(resolution), evaluate(2 * resolution)
    results = [QuadratureEstimate(b, abs(b - a)) for a, b in zip(coarse, fine, strict=True)]
    return results[0], results[1], results[2]


def _on_grid(competitors: int, q: float, margin: float, count: int) -> tuple[Local, Array]:
    x, w = np.polynomial.hermite_e.hermegauss(count)
    w = w / math.sqrt(2.0 * math.pi)
    axes = np.meshgrid(*[x] * competitors, indexing="ij")
    weights = np.prod(np.meshgrid(*[w] * competitors, indexing="ij"), axis=0).ravel()
    flat = np.stack([axis.ravel() for axis in axes], axis=1)
    # orthonormal basis of the scores that sum to 0
    size = competitors + 1
    basis = np.linalg.qr(np.eye(size) - np.ones((size, size)) / size)[0][:, :competitors]
    scores = flat @ basis.T
    rivals = -np.sort(-scores[:, 1:], axis=1)
    return local_quantities(Fields(scores[:, 0], rivals, 0.0), q, margin), weights
