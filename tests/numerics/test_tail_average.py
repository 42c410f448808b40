"""Tail-average thresholds: reference digits, mpmath, and a simulation of the criterion itself."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest

from numerics.tail_average import least_averaged_fraction, tail_average_capacity, tail_margin
from replica.errors import InvalidInput

REFERENCE = {
    "1": "2",
    "0.5": "0.65771272794427184",
    "0.1": "0.24579858679165682",
    "0.01": "0.12341589446294176",
}


@pytest.mark.parametrize(("r", "value"), REFERENCE.items())
def test_reference_values(r: str, value: str) -> None:
    capacity = tail_average_capacity(r, 25)
    assert abs(Fraction(capacity.value) - Fraction(value)) < Fraction(2, 10**17)


@pytest.mark.parametrize(
    ("r", "margin"), [("0.3", "0"), ("0.02", "0.5"), ("1e-30", "0"), ("1", "1")]
)
def test_against_mpmath(r: str, margin: str) -> None:
    with mpmath.workdps(50):
        share = mpmath.mpf(r)
        cut = (
            mpmath.findroot(lambda t: mpmath.log(mpmath.ncdf(-t) / share), 1) if share < 1 else None
        )
        kappa = mpmath.npdf(cut) / share if cut is not None else mpmath.mpf(0)
        k = kappa + mpmath.mpf(margin)
        # E (k - z)^2 over z < k by quadrature, not by the closed form
        delta = mpmath.quad(lambda z: (k - z) ** 2 * mpmath.npdf(z), [-mpmath.inf, -5, 0, k])
        value = tail_average_capacity(r, 25, margin=margin)
        assert abs(mpmath.mpf(value.value) * delta - 1) < mpmath.mpf(10) ** -24
        if cut is not None:
            assert abs(mpmath.mpf(tail_margin(r, 25).value) - kappa) < mpmath.mpf(10) ** -24


def test_finite_number_of_competitors_approaches_the_halfspace() -> None:
    """dist^2 to {y_0 >= tail mean} with M competitors, M -> infinity: the tail mean stays put.

    With M competitors the set is {y_0 >= mean of the best rM}; moving all of them costs 1/(rM) of
    moving y_0, so the distance tends to (kappa - z_0)_+^2. Bias O(1/(rM)), 5 standard errors.
    """
    rng = np.random.default_rng(5)
    number, r, repetitions = 2000, 0.1, 6000
    best = int(r * number)
    squares = np.empty(repetitions)
    for i in range(repetitions):
        top = np.partition(rng.standard_normal(number), number - best)[number - best :]
        lack = max(0.0, top.mean() - rng.standard_normal())
        squares[i] = lack**2 / (1.0 + 1.0 / best)
    delta = 1.0 / tail_average_capacity("0.1").to_float_lossy()
    error = squares.std() / np.sqrt(repetitions)
    assert abs(squares.mean() - delta) < 5 * error + delta * 4.0 / best
    # the bound is sharp enough to tell r = 0.1 from r = 0.2
    other = 1.0 / tail_average_capacity("0.2").to_float_lossy()
    assert abs(squares.mean() - other) > 5 * error + delta * 4.0 / best


@pytest.mark.parametrize("gamma", ["0.01", "0.3", "1.5", "1.999"])
def test_least_fraction_inverts_the_capacity(gamma: str) -> None:
    r = least_averaged_fraction(gamma, 20)
    low, high = r.bounds
    assert tail_average_capacity(low, 25) < Fraction(gamma) + Fraction(1, 10**15)
    assert tail_average_capacity(high, 25) > Fraction(gamma) - Fraction(1, 10**15)


def test_capacity_grows_with_the_fraction() -> None:
    values = [tail_average_capacity(r, 12) for r in ("0.001", "0.01", "0.1", "0.5", "0.9", "1")]
    assert all(a < b for a, b in pairwise(values))


def test_bad_input() -> None:
    for r in (0, "-0.1", "1.1"):
        with pytest.raises(InvalidInput, match=r"lies in \(0, 1\]"):
            tail_average_capacity(r)
    with pytest.raises(InvalidInput, match="exact"):
        tail_average_capacity(0.1)
    with pytest.raises(InvalidInput, match=">= 0"):
        tail_average_capacity("0.1", margin=-1)
    with pytest.raises(InvalidInput, match="0 < p/d"):
        least_averaged_fraction(2)
    with pytest.raises(InvalidInput, match="digits"):
        tail_margin("0.1", 0)
