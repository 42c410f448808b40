"""Probability that p facts can be recalled with N = d_in d_out weights (Gaussian problem).

With G(x) = sum_k v_k x^k the generating function of K and K_tot the sum of p independent copies,

    P(separable) = 2 sum_{j=1,3,5,...} P(K_tot = N - j)
                 = (1/2 pi i) oint_{|x|=r<1} 2 G(x)^p x^{-N} dx / (1 - x^2),
    1 - P        = (1/2 pi i) oint_{|x|=r>1} 2 G(x)^p x^{-N} dx / (x^2 - 1),

by the conic kinematic (Crofton) formula. The radius is the saddle point, so that also probabilities
like 10^-300 come with relative accuracy. On equidistant angles the only errors are the aliases,
bounded by the integrand at two neighbouring radii.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import acb, acb_poly, arb, arb_poly, fmpz, fmpz_poly

from numerics.balls import Certified, working_precision
from numerics.cone.tail import Cut
from numerics.cone.volumes import check_digits, dimension_ball, volume_balls
from numerics.counts import parse_count
from replica.errors import InvalidInput

LOG10 = math.log(10.0)
MAX_ROUNDS = 9
_MAX_LOG_RADIUS = 300.0
_MAX_SIZE = 10**300  # floats choose the contour
_ALL_NODES = 3000  # below this many angles every one is evaluated


@dataclass(frozen=True)
class _Law:
    """Law of K: v_k as balls, the cut of its tail, and the numbers p and N."""

    volumes: tuple[Any, ...]
    cut: Cut
    facts: int
    parameters: int

    def log_modulus(self, radius: Any) -> Any:
        """log of max |integrand x| on the circle of that radius."""
        value = arb_poly(list(self.volumes))(radius) + _up_to(self.cut.beyond(0, radius))
        gap = abs(1 - radius * radius)
        return (
            arb(2).log()
            + arb(fmpz(self.facts)) * value.log()
            - arb(fmpz(self.parameters - 1)) * radius.log()
            - gap.log()
        )


def _up_to(bound: Any) -> Any:
    half = bound.upper() / 2
    return half + arb(0, half.upper())


def check_dimension(dim: Any, name: str = "dim") -> int:
    """`dim` as a positive integer, else `InvalidInput`."""
    return parse_count(dim, name)


def check_problem(dim: Any, facts: Any, competitors: Any, dim_out: Any) -> tuple[int, int, int]:
    """(N, p, M) from the arguments of the public functions."""
    size = check_dimension(dim)
    other = size if dim_out is None else check_dimension(dim_out, "dim_out")
    count = parse_count(facts, "facts", least=1 if competitors is not None else 2)
    rivals = count - 1 if competitors is None else parse_count(competitors, "competitors")
    if max(size * other, count) > _MAX_SIZE:
        raise InvalidInput(
            "the success probability is computed for at most 10^300 facts and parameters; "
            "give smaller numbers (thresholds go up to 10^1000 facts)"
        )
    return size * other, count, rivals


def success_probability(
    dim: int | str,
    facts: int | str,
    competitors: int | str | None = None,
    *,
    dim_out: int | str | None = None,
    digits: int = 15,
) -> Certified:
    """P(separable) = 2 sum_{j odd} P(K_tot = d_in d_out - j): some W recalls every fact.

    Arguments: `dim` d_in, `dim_out` d_out (default d_in), `facts` p >= 2, `competitors` M (default
    p - 1), `digits` relative accuracy. Exact for the Gaussian problem; the decoupled and original
    problems follow it by universality. Raises `InvalidInput`. Source: conic kinematic formula;
    for M = 1 it is Cover's 2^{1-p} sum_{i<N} binom(p-1, i).

    >>> print(success_probability(10, 29, digits=10).to_string(4))
    0.7804
    >>> success_probability(2, 8, 1).contains("0.5")
    True
    """
    parameters, count, rivals = check_problem(dim, facts, competitors, dim_out)
    return Certified(success_ball(parameters, count, rivals, check_digits(digits)))


def failure_probability(
    dim: int | str,
    facts: int | str,
    competitors: int | str | None = None,
    *,
    dim_out: int | str | None = None,
    digits: int = 15,
) -> Certified:
    """1 - P(separable) with relative accuracy, also where it is far below 10^-digits.

    Arguments and errors as `success_probability`.

    >>> failure_probability(2, 4, 1) == 0  # Cover: up to N points are always separable
    True
    >>> failure_probability(2, 5, 1).contains("0.0625")
    True
    """
    parameters, count, rivals = check_problem(dim, facts, competitors, dim_out)
    return Certified(failure_ball(parameters, count, rivals, check_digits(digits)))


def success_ball(parameters: int, facts: int, competitors: int, digits: int) -> Any:
    """As `success_probability`, unchecked and as a ball."""
    if parameters >= facts * competitors:  # K_tot <= pM, and only the parity of N - 1 counts
        return arb(1)
    if _is_above(parameters, facts, competitors):
        # the failure is the smaller one: an absolute accuracy of it is enough
        failure = _probability(parameters, facts, competitors, digits, False, absolute=True)
        with working_precision(math.ceil(digits * math.log2(10)) + 40):
            return 1 - failure
    return _probability(parameters, facts, competitors, digits, True)


def failure_ball(parameters: int, facts: int, competitors: int, digits: int) -> Any:
    """As `failure_probability`, unchecked and as a ball."""
    if parameters >= facts * competitors:  # K_tot <= pM, and only the parity of N - 1 counts
        return arb(0)
    if _is_above(parameters, facts, competitors):
        return _probability(parameters, facts, competitors, digits, False)
    success = _probability(parameters, facts, competitors, digits, True, absolute=True)
    with working_precision(math.ceil(digits * math.log2(10)) + 40):
        return 1 - success


def exact_success(parameters: int, facts: int, competitors: int) -> Fraction:
    """P(separable) as a rational number for one or two competitors, by expanding G(x)^p.

    G = (1 + x)/2 for one competitor (Cover), (2 + 3x + x^2)/6 for two.

    >>> exact_success(4, 8, 1)
    Fraction(1, 2)
    """
    polynomial, scale = {1: (fmpz_poly([1, 1]), 2), 2: (fmpz_poly([2, 3, 1]), 6)}[competitors]
    if parameters >= facts * competitors:
        return Fraction(1)
    numbers = (polynomial**facts).coeffs()
    total = sum((int(numbers[n]) for n in range(parameters - 1, -1, -2)), 0)
    return Fraction(2 * total, scale**facts)


def _is_above(parameters: int, facts: int, competitors: int) -> bool:
    """Whether N exceeds the mean of K_tot, as far as 8 digits tell (it only picks a method)."""
    mean = dimension_ball(competitors, 8).mid() * fmpz(facts)
    return bool(arb(fmpz(parameters)) > mean)


def _probability(
    parameters: int, facts: int, competitors: int, digits: int, below: bool, absolute: bool = False
) -> Any:
    """P (below) or 1 - P (not below) by the contour integral, raising precision as needed."""
    extra = 6 + len(str(fmpz(facts)))
    tilt = 0.0
    target = arb(10) ** (-digits - 1)
    for _ in range(MAX_ROUNDS):
        found = volume_balls(competitors, digits + extra, 0, tilt)
        law = _Law(found.balls, found.cut, facts, parameters)
        with working_precision(math.ceil((digits + extra) * math.log2(10)) + 60):
            radius = _saddle(law, below)
            if not below and found.cut.generating is not None:
                needed = 1.5 * math.log(radius) + 0.02
                if not absolute and tilt < needed:
                    tilt = 1.1 * needed
                    continue
            ball = _contour(law, radius, (digits + 4) * LOG10, below)
        if ball.is_finite() and (
            ball.rel_accuracy_bits() >= digits * math.log2(10) + 1
            or (absolute and ball.rad() < target)
        ):
            return ball
        extra = 2 * extra + 4
    raise InvalidInput(
        f"the probability for {facts} facts in {parameters} weights is too small or too close to 1 "
        f"for {digits} relative digits; ask for fewer digits or a size nearer to the threshold"
    )


def _float_terms(law: _Law) -> list[tuple[int, float]]:
    return [(k, float(v.mid().log().mid())) for k, v in enumerate(law.volumes) if v.mid() > 0]


def _objective(law: _Law, below: bool) -> Callable[[float], tuple[float, float]]:
    """u = log radius -> (log of the integrand's maximum, its derivative), in floating point."""
    terms = _float_terms(law)
    facts, power = float(fmpz(law.facts)), float(fmpz(law.parameters - 1))

    def value(u: float) -> tuple[float, float]:
        if abs(u) > _MAX_LOG_RADIUS:
            return math.inf, math.inf
        exponents = [v + k * u for k, v in terms]
        top = max(exponents)
        weights = [math.exp(e - top) for e in exponents]
        norm = sum(weights)
        mean = sum(w * k for w, (k, _) in zip(weights, terms, strict=True)) / norm
        square = math.exp(2.0 * u)
        gap = -math.expm1(2.0 * u) if below else math.expm1(2.0 * u)
        slope = 2.0 * square / gap * (1.0 if below else -1.0)
        return (
            facts * (top + math.log(norm)) - power * u - math.log(gap),
            facts * mean - power + slope,
        )

    return value


def _saddle(law: _Law, below: bool) -> float:
    """Radius at which the integrand's maximum on the circle is smallest (bisection)."""
    derivative = _objective(law, below)
    near, far = 1e-12, 1e-3
    sign = -1.0 if below else 1.0
    while 2.0 * far < _MAX_LOG_RADIUS and sign * derivative(sign * far)[1] < 0.0:
        near, far = far, 2.0 * far
    for _ in range(50):
        middle = math.sqrt(near * far)
        if sign * derivative(sign * middle)[1] < 0.0:
            near = middle
        else:
            far = middle
    return math.exp(sign * math.sqrt(near * far))


def _choose_circles(law: _Law, radius: float, nats: float, below: bool) -> tuple[int, float, float]:
    """Number of angles and the radii inside and outside that bound the aliases."""
    value = _objective(law, below)
    centre = math.log(radius)
    base = value(centre)[0]
    reach = abs(centre)
    counts = []
    chosen = []
    for direction in (-1.0, 1.0):
        towards_pole = (direction > 0) == below
        best = (math.inf, 0.0)
        for i in range(1, 48):
            step = reach * (i / 48.0 if towards_pole else 1.35 ** (i - 24))
            growth = value(centre + direction * step)[0] - base
            best = min(best, ((nats + max(0.0, growth) + 1.0) / step, centre + direction * step))
        counts.append(best[0])
        chosen.append(math.exp(best[1]))
    count = 2 * math.ceil(max(counts) / 2.0) + 2
    return count, chosen[0], chosen[1]


def _contour(law: _Law, radius: float, nats: float, below: bool) -> Any:
    """The contour integral on |x| = radius with all errors in the radius of the ball."""
    # only angles up to about |log radius| matter, so the result is that much below the maximum
    nats += max(0.0, math.log(7.0 / abs(math.log(radius))))
    count, inner, outer = _choose_circles(law, radius, nats, below)
    r = arb(radius)
    peak = law.log_modulus(r)
    alias = arb(0)
    for other, log_ratio in (
        (inner, r.log() - arb(inner).log()),
        (outer, arb(outer).log() - r.log()),
    ):
        decay = (-log_ratio * count).exp()
        if not decay < 1:
            return arb("nan")
        alias += law.log_modulus(arb(other)).exp() * decay / (1 - decay)
    cutoff, neglected = _relevant_angles(law, r, count, nats)
    polynomial = acb_poly(list(law.volumes))
    slack = _up_to(law.cut.beyond(0, r))
    unknown = arb(0, slack.upper())
    total = arb(0)
    for l in range(cutoff + 1):
        angle = arb(2 * l) / count
        unit = acb(angle.cos_pi(), angle.sin_pi())
        x = r * unit
        turn = arb(2 * ((1 - law.parameters) * l % count)) / count
        phase = acb(turn.cos_pi(), turn.sin_pi())
        value = polynomial(x) + acb(unknown, unknown)
        term = (value**law.facts * phase / (1 - x * x)).real
        total += term if l == 0 or 2 * l == count else 2 * term
    scale = 2 * (arb(fmpz(1 - law.parameters)) * r.log()).exp() / count
    total = total * scale * (1 if below else -1)
    error = alias + neglected * peak.exp()
    return total + arb(0, error.upper())


def _relevant_angles(law: _Law, r: Any, count: int, nats: float) -> tuple[int, Any]:
    """Last angle index to evaluate, and a bound on the mean of |integrand|/maximum beyond it.

    |G(r e^{i theta})|/G(r) is the characteristic function of the tilted law of K. Between mesh
    points it changes by at most E|K - c| <= (E(K-c)^2)^{1/2}, and near 0 by E(K-c)^2 theta,
    c its mean.
    """
    last = count // 2
    if last <= _ALL_NODES:
        return last, arb(0)
    with working_precision(96):
        terms = [v.upper() * r**k for k, v in enumerate(law.volumes)]
        norm = sum(terms, arb(0))
        mean = (sum((k * t for k, t in enumerate(terms)), arb(0)) / norm).mid()
        second = sum(((k - mean) ** 2 * t for k, t in enumerate(terms)), arb(0)) / norm
        offset = abs(sum(((k - mean) * t for k, t in enumerate(terms)), arb(0)) / norm)
        low = arb_poly(list(law.volumes))(r)
        rest = (norm - low).upper() / low + 2 * law.cut.beyond(0, r) / low
        polynomial = acb_poly(terms)
        sigma = second.sqrt().upper()
        facts = arb(fmpz(law.facts))
        wanted = -nats - 6.0
        theta = (2 * (nats + 12.0) / (facts * second)).sqrt().mid() * arb("1.2")
        start = theta
        worst = arb(0)
        while theta < arb.pi():
            stride = min(float(theta.mid()) * 0.2, 0.1 / max(1e-3, float(sigma.mid())))
            upper = theta + arb(stride)
            middle = (theta + upper) / 2
            unit = acb(middle.cos(), middle.sin())  # the powers of r are in the terms
            modulus = abs(polynomial(unit)) / norm
            speed = min(float(sigma.upper()), float((offset + second * upper).upper()) * 1.0000001)
            modulus = (modulus + arb(speed) * arb(stride) / 2 + rest).upper()
            bound = (facts * modulus.log()).exp()
            if not facts * modulus.log() < wanted:
                return last, arb(0)
            worst = worst.max(bound.upper())
            theta = upper.mid()
        cutoff = math.ceil(float((start * count / (2 * arb.pi())).upper())) + 1
        return min(last, cutoff), worst.upper()
