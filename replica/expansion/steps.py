"""The steps that every expansion at capacity shares, as SymPy objects."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import sympy as sp

from replica.expansion.cone import in_level, normalisation
from replica.expansion.level import loss_tail_coefficients
from replica.expansion.representation import (
    COMPETITORS,
    MARGIN,
    competitor_weight,
    integrand_exponent,
    normal_density,
    observables,
    stationarity,
)
from replica.expansion.result import ExpansionDerivation, rational

LEVEL_T = sp.Symbol("T", positive=True)
REGIME = (
    "valid at capacity, where about T^2 competitors are active; M -> infinity, the Poisson limit "
    "costs O(T^4/M), beyond every power of 1/log M"
)


def add_representation(derivation: ExpansionDerivation, observable: str) -> None:
    """From the distance to the cone to the integrand that is expanded."""
    condition, jacobian = stationarity()
    derivation.add(
        "Stationarity of the distance in the level t, K competitors active",
        sp.Eq(condition, 0),
        "t-derivative of (t + margin - z_0)^2 + sum over active (z_rho - t)^2; Z sums the active z",
    )
    derivation.add(
        "Jacobian of the root t",
        jacobian,
        "delta function of the condition turns the root into an integral over t",
    )
    left, right = competitor_weight()
    derivation.add(
        "Weight b of one active competitor, v = i lambda",
        sp.Eq(left, right, evaluate=False),
        "z_0 is integrated by its Fourier transform, each competitor then factorises",
    )
    derivation.add(
        "Exponent of the integrand over t and lambda",
        integrand_exponent(),
        "Poisson limit of (a + s b)^M at s = 1; m is Mills' ratio, B = M phi(t) m(t + v)",
    )
    derivation.add(
        f"Integrand of the quantity wanted ({observable.replace('_', ' ')})",
        observables()[observable],
        "(1 + s d/ds) on the generating function, divided by e^{s B} at s = 1; B_1, B_2 are its "
        "first two derivatives in t + v",
    )
    level_equation = COMPETITORS * (
        normal_density(LEVEL_T) - LEVEL_T * sp.erfc(LEVEL_T / sp.sqrt(2)) / 2
    )
    derivation.add(
        "Definition of the level T",
        sp.Eq(level_equation, LEVEL_T + MARGIN),
        "the exponent is stationary at v = 0, t = T",
    )


def add_normalisation(derivation: ExpansionDerivation, terms: int) -> None:
    """The check sum_k v_k = 1, computed by the same engine."""
    derivation.add(
        "Check: sum of all intrinsic volumes",
        in_level(normalisation(terms), leading=0),
        "the same expansion of the integrand B + 1 must give 1, 0, 0, ...",
    )


def level_equation(terms: int) -> sp.Eq:
    """2 log M - log 2 pi = T^2 + 3 log T^2 + 2 log(sigma) - 2 log(1 - 3/T^2 + ...)."""
    size = sp.Symbol("log_M", positive=True)
    tail = sp.Add(
        *(c * LEVEL_T ** (-2 * i) for i, c in enumerate(loss_tail_coefficients(terms + 1)))
    )
    left = 2 * size - sp.log(2 * sp.pi)
    return sp.Eq(left, LEVEL_T**2 + 6 * sp.log(LEVEL_T) - 2 * sp.log(tail))


def as_strings(coefficients: list[Fraction] | tuple[Fraction, ...]) -> list[str]:
    """Exact rationals as strings such as "113/2"."""
    return [str(c) for c in coefficients]


def smallest_term_levels(coefficients: list[Fraction]) -> list[sp.Rational | None]:
    """The T^2 above which the (i+1)-th term is smaller than the i-th: |c_{i+1} / c_i|.

    Optimal truncation at a given T keeps the terms up to the first i with T^2 below the entry.

    >>> smallest_term_levels([Fraction(1), Fraction(3), Fraction(-9)])
    [3, 3]
    """
    return [
        rational(abs(after / before)) if before else None
        for before, after in pairwise(coefficients)
    ]
