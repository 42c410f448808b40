"""Below capacity: E log Z, overlap and free entropy against quadrature and root finding."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp
from scipy.optimize import brentq
from scipy.special import digamma, log_ndtr, loggamma, logsumexp, polygamma

from replica.below_capacity import ALPHA, free_entropy, in_alpha, overlap
from replica.errors import InvalidInput
from replica.log_gamma import log_integral
from replica.logseries import LogSeries

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def location(log_m: float) -> float:
    """b with M phi(b) = b, by bisection of its logarithm."""
    return float(
        brentq(
            lambda b: log_m - b * b / 2 - math.log(2 * math.pi) / 2 - math.log(b),
            1e-3,
            math.sqrt(2 * log_m) + 1,
            xtol=1e-14,
        )
    )


def log_partition(log_m: float, q: float, points: int = 60001) -> float:
    """E over omega_0 of log int dy N(y; omega_0, V) e^{-M Q(y)}, by sums: no expansion."""
    k = 1 / (1 - q)
    b = location(log_m)
    s = np.linspace(-40, 40 * k + 40, points)
    y = b + s / b
    tail = np.exp(log_m + log_ndtr(-y))
    total = 0.0
    for node, weight in zip(NODES, WEIGHTS, strict=True):
        exponent = -k * (y - math.sqrt(q) * node) ** 2 / 2 - tail
        total += weight * (logsumexp(exponent) + math.log((s[1] - s[0]) / b))
    return total + math.log(k / (2 * math.pi)) / 2


def corrections(q: float, terms: int) -> list[float]:
    ring, polynomials = log_integral(terms)
    k = 1 / (1 - q)
    values = {"a": k, "k": k, "q": q} | {
        f"psi_{i}": float(polygamma(i, k)) for i in range(ring.count)
    }
    return [float(f.as_expr().subs(values)) for f in polynomials]


@pytest.mark.parametrize("q", [0.2, 0.5, 0.8])
def test_log_partition_expansion(q: float) -> None:
    """Each further term in 1/b^2 shrinks the error to the next term's size."""
    log_m = 100 * math.log(10)
    b, v = location(log_m), 1 - q
    known = -(b * b + q) / (2 * v) - math.log(b) - math.log(2 * math.pi * v) / 2 + loggamma(1 / v)
    exact = log_partition(log_m, q)
    terms = corrections(q, 4)
    for n, value in enumerate(terms):
        error = (exact - known) * b ** (2 * n + 2)
        following = terms[n + 1] / b**2 if n + 1 < len(terms) else 0.3 * value
        if n < 3:  # further on the float sum is no longer accurate enough
            assert error == pytest.approx(value, abs=1.5 * abs(following) + 1e-4)
        known += value * b ** (-2 * n - 2)


def saddle(alpha: float, log_p: float) -> float:
    """q stationary for the free entropy with E log Z known through 1/b^4, by root finding."""
    b = location(log_p)

    def action(q: float) -> float:
        v = 1 - q
        value = -(b * b + q) / (2 * v) - math.log(b) - math.log(2 * math.pi * v) / 2
        value += loggamma(1 / v)
        value += sum(f * b ** (-2 * n - 2) for n, f in enumerate(corrections(q, 2)))
        return math.log(v) / 2 + q / (2 * v) + alpha / log_p * value

    step = 1e-5
    return float(brentq(lambda q: action(q + step) - action(q - step), 0.05, 0.9, xtol=1e-11))


def at(series: LogSeries, alpha: float, log_p: float) -> float:
    expression = in_alpha(series.as_expr()).subs(ALPHA, sp.Float(alpha, 30))
    point = {series.ring.symbol: log_p, series.ring.log_symbol: math.log(log_p)}
    return float(expression.subs(point).evalf(20))


@pytest.mark.parametrize("alpha", [0.1, 0.3])
def test_overlap_series_approaches_the_saddle_point(alpha: float) -> None:
    log_p = 5000.0
    exact = saddle(alpha, log_p)
    errors = [abs(at(overlap(n), alpha, log_p) - exact) for n in range(3)]
    scale = math.log(log_p) / log_p
    assert errors[0] < 3 * scale
    assert errors[1] < 5 * scale**2
    assert errors[2] < 30 * scale**3


def test_overlap_first_order_is_the_known_one() -> None:
    """q = 2 alpha - (alpha/L)[log(4 pi L) - 2 alpha + 2 psi(1/(1-2 alpha))], THEORY section 5."""
    alpha, log_p = 0.2, 1e6
    shape = 1 / (1 - 2 * alpha)
    bracket = math.log(4 * math.pi * log_p) - 2 * alpha + 2 * digamma(shape)
    assert at(overlap(1), alpha, log_p) == pytest.approx(
        2 * alpha - alpha / log_p * bracket, rel=1e-13
    )


def test_free_entropy_series() -> None:
    """phi at the saddle point against direct evaluation at the numerical saddle point."""
    alpha, log_p = 0.25, 5000.0
    q = saddle(alpha, log_p)
    exact = math.log(1 - q) / 2 + q / (2 * (1 - q)) + alpha / log_p * log_partition(log_p, q)
    errors = [abs(at(free_entropy(n), alpha, log_p) - exact) for n in range(3)]
    assert errors[0] > 50 * errors[1] > 500 * errors[2]
    assert errors[2] < 1e-7


def test_replicas_meet_rarely_below_capacity() -> None:
    """M P(both replicas exceed b) falls as M^{-(1-q)/(1+q)}: the regime's neglected part."""
    q = 0.4
    rates = []
    for exponent in (20, 40):
        log_m = exponent * math.log(10)
        b = location(log_m)
        x = np.linspace(b, b + 12, 20001)
        # P(z_2 > b | z_1 = x) for correlation q
        inner = log_ndtr((q * x - b) / math.sqrt(1 - q * q))
        both = logsumexp(-(x**2) / 2 + inner) + math.log((x[1] - x[0]) / math.sqrt(2 * math.pi))
        rates.append(both + log_m)
    slope = (rates[1] - rates[0]) / (20 * math.log(10))
    assert slope == pytest.approx(-(1 - q) / (1 + q), abs=0.03)


@pytest.mark.parametrize(("q", "bias"), [(0.2, 0.01), (0.5, 0.1)])
def test_monte_carlo_with_finitely_many_competitors(q: float, bias: float) -> None:
    """log Z from its definition at M = 2000 against the integral with e^{-M Q(y)}.

    Z = P(omega + sqrt(V) x in C), 600 draws, fixed seed. Both sides see the same omega_0, so only
    the competitors fluctuate. The band is 4.5 standard errors (false-alarm rate 7e-6) plus `bias`,
    M^{-(1-q)/(1+q)} up to its prefactor: the neglected meetings of replicas, seen with either sign.
    """
    m, v = 2000, 1 - q
    rng = np.random.default_rng(20)
    grid = np.linspace(-0.5, 6.5, 141)
    lowest = 0.5  # competitors below it enter through their exact mean
    far = np.linspace(-5 * math.sqrt(q), lowest, 121)
    weight = np.exp(-(far**2) / (2 * q)) / math.sqrt(2 * math.pi * q) * (far[1] - far[0])
    weight[[0, -1]] /= 2
    mean_far = m * (weight * log_ndtr((grid[:, None] - far[None, :]) / math.sqrt(v))).sum(axis=1)
    concentrated = -m * np.exp(log_ndtr(-grid))
    differences = []
    for _ in range(600):
        omega0 = math.sqrt(q) * rng.standard_normal()
        omega = math.sqrt(q) * rng.standard_normal(m)
        near = omega[omega > lowest]
        product = log_ndtr((grid[:, None] - near[None, :]) / math.sqrt(v)).sum(axis=1) + mean_far
        target = -((grid - omega0) ** 2) / (2 * v)
        differences.append(logsumexp(target + product) - logsumexp(target + concentrated))
    mean = float(np.mean(differences))
    error = float(np.std(differences) / math.sqrt(len(differences)))
    assert abs(mean) < 4.5 * error + bias
    # power: a missing factor Gamma(1/V) or a threshold off by 10 % would show
    assert 4.5 * error + bias < 0.3


def test_orders_not_offered_are_refused() -> None:
    for order in (-1, 99):
        with pytest.raises(InvalidInput, match="order"):
            overlap(order)
        with pytest.raises(InvalidInput, match="order"):
            free_entropy(order)
