"""The level T as a function of log M, exactly as a series and by Lambert's function.

M psi_1(T) = T + m with psi_1(T) = phi(T) T^(-2) (1 - 3/T^2 + 15/T^4 - ...) gives, with X = T^2,
sigma = 1 + m/T and r(1/X) = 1/(1 - 3/X + 15/X^2 - ...) the height of the density at the level,

    X + 3 log X + 2 log sigma + 2 log r(1/X) = 2 log M - log 2 pi.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import sympy as sp

from replica.logseries import LogSeries, LogSeriesRing
from replica.wick import odd_factorials


def loss_tail_coefficients(terms: int) -> list[int]:
    """psi_1(T) T^2 / phi(T) = sum_i c_i T^(-2i): psi_1 = phi - t Q and Q = phi m, so -c is the
    Mills series without its first term.

    >>> loss_tail_coefficients(4)
    [1, -3, 15, -105]
    """
    return [-c for c in odd_factorials(terms + 1)[1:]]


def normal_height(inverse_square: LogSeries, terms: int) -> LogSeries:
    """M phi(T) / ((T + m) T^2) = 1 / (1 - 3/X + 15/X^2 - ...), X = T^2, as a series."""
    total, power = inverse_square.ring.constant(1), inverse_square.ring.constant(1)
    for c in loss_tail_coefficients(terms)[1:]:
        power = power * inverse_square
        total = total + c * power
    return total.inverse()


def insert(coefficients: Sequence[Fraction], level: LogSeries) -> LogSeries:
    """sum_i c_i X^(1-i) for a series X, the first omitted power going into the O-term."""
    order = level.ring.order
    level = level.with_order(order + 1)  # X / X must be as accurate as the result
    inverse, power = level.inverse(), level
    total = level.ring.zero
    for c in coefficients:
        total = total + c * power
        power = power * inverse
    total = total + LogSeries(level.ring, {}, power.bound())
    return total.with_order(order)


@lru_cache(maxsize=32)
def resummed_level(terms: int) -> tuple[Fraction, ...]:
    """X = T^2 in terms of Lambert's X_W: X = sum_i c_i X_W^(1-i), all c_i rational.

    X_W = 3 W(exp((2 log M - log 2 pi)/3)/3) solves X_W + 3 log X_W = 2 log M - log 2 pi, so
    X + 3 log(X / X_W) + 2 log r(1/X) = X_W, in which no logarithm of a large number is left.

    >>> [str(c) for c in resummed_level(4)]
    ['1', '0', '-6', '39']
    """
    ring = LogSeriesRing(terms, name="X_W", log_name="log_X_W")
    large = ring.L

    def step(x: LogSeries) -> LogSeries:
        height = normal_height(1 / x, terms + 2)
        return large - 3 * (x / large).log() - 2 * height.log()

    solution = ring.fixed_point(step, large + ring.big_o(0))
    values = [solution.coefficient(1 - i) for i in range(terms)]
    return tuple(Fraction(int(c.p), int(c.q)) for c in values)


LOG_2PI = sp.Symbol("log_2pi")


@lru_cache(maxsize=32)
def level_in_double_log(order: int) -> LogSeries:
    """X = T^2 as a series in Lambda = 2 log M with one symbol for log(2 pi), to Lambda^(-order).

    >>> print(level_in_double_log(1))
    Lambda - 3*log_Lambda - log_2pi + 9*log_Lambda/Lambda - 6/Lambda + 3*log_2pi/Lambda
    + O(log_Lambda**2/Lambda**2)
    """
    ring = LogSeriesRing(order, [LOG_2PI], name="Lambda", log_name="log_Lambda")
    # 3 W(exp((Lambda - log 2 pi)/3)/3), as the solution of x = Lambda - log 2 pi - 3 log x
    lambert = ring.fixed_point(lambda x: ring.L - LOG_2PI - 3 * x.log(), ring.L + ring.big_o(0, 1))
    return insert(resummed_level(order + 2), lambert)
