"""E log Z at every V = 1 - q: the form that joins the two regimes, and where each holds.

The competitors enter through the mean of their log-probability,

    E log Z = E_omega_0 log int dy N(y; omega_0, V) exp(M E_omega log Phi((y - omega)/sqrt(V))),

omega_0, omega ~ N(0, q). At fixed V the exponent is -M Q(y) up to M^{-(1-q)/(1+q)} (the log-Gamma
regime). For V ~ 1/T^2 about T^2 competitors contribute and their sum is self-averaging; as V -> 0
it becomes -(1/2V) min_t [(t - z_0)^2 + M psi_2(t)], E dist^2 without the fluctuations of the
competitors, whose effect is of relative order T^{-4}: T^2 + 3 is kept and the next term is not.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, logsumexp

from replica.errors import InvalidInput

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(48)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


def mean_log_probability(y: np.ndarray, log_m: float, q: float) -> np.ndarray:
    """M E log Phi((y - omega)/sqrt(V)), omega ~ N(0, q), by trapezoidal sums in logarithms."""
    v = 1 - q
    # the integrand in omega is a Gaussian tail times |log Phi|: it peaks between 0 and y
    omega = np.linspace(-10 * math.sqrt(q), float(y.max()) + 10 * math.sqrt(v) + 4, 3001)
    log_density = log_m - omega**2 / (2 * q) - math.log(2 * math.pi * q) / 2
    step = math.log(omega[1] - omega[0])
    z = (y[:, None] - omega[None, :]) / math.sqrt(v)
    # log |log Phi|: |log Phi| is Q to double accuracy beyond 9
    inner = np.where(z < 9, np.log(-log_ndtr(np.minimum(z, 9.0))), log_ndtr(-z))
    return -np.exp(np.minimum(logsumexp(log_density[None, :] + inner, axis=1) + step, 700.0))


def uniform_log_partition(log_m: float, q: float, points: int = 400) -> float:
    """E log Z of the module's formula, in floating point.

    Arguments: log of the number of competitors (natural logarithm, at least log 2), overlap
    0 < q < 1. Raises InvalidInput outside.

    >>> float(round(uniform_log_partition(23.0, 0.5), 2))
    -43.36
    """
    if not 0 < q < 1:
        raise InvalidInput(f"the overlap is {q}; it must lie strictly between 0 and 1")
    if not log_m >= math.log(2):
        raise InvalidInput(f"log_m is {log_m}; it must be at least log 2, two competitors")
    v = 1 - q
    top = math.sqrt(2 * log_m) + 6
    # a coarse scan finds where the weight sits for the extreme omega_0, then a fine grid
    coarse = np.linspace(-2.0, top, 240)
    exponent = mean_log_probability(coarse, log_m, q)
    reach = math.sqrt(q) * 5.5
    kept: list[float] = []
    for omega0 in (-reach, 0.0, reach):
        total = exponent - (coarse - omega0) ** 2 / (2 * v)
        kept += [float(x) for x in coarse[total > total.max() - 45]]
    spacing = coarse[1] - coarse[0]
    y = np.linspace(min(kept) - spacing, max(kept) + spacing, points)
    exponent = mean_log_probability(y, log_m, q)
    result = 0.0
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        total = exponent - (y - math.sqrt(q) * node) ** 2 / (2 * v)
        result += weight * float(logsumexp(total))
    return result + math.log((y[1] - y[0]) / math.sqrt(2 * math.pi * v))


def log_gamma_partition(log_m: float, q: float) -> float:
    """The log-Gamma form of E log Z, without its corrections in 1/b^2."""
    v = 1 - q
    b = brentq(
        lambda x: log_m - x * x / 2 - math.log(2 * math.pi) / 2 - math.log(x),
        1e-6,
        math.sqrt(2 * log_m) + 1,
    )
    value = -(b * b + q) / (2 * v) - math.log(b) - math.log(2 * math.pi * v) / 2
    return value + math.lgamma(1 / v)
