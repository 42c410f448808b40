"""The Wick engine against a direct two-dimensional quadrature and against exact identities."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.special import wofz

from numerics.cone.gauss import float_level
from replica.expansion import cone
from replica.expansion.representation import observables
from replica.plane import Plane, triangle
from replica.wick import ACTIVE, average, average_with_margin, odd_factorials, saddle


def quadrature(log_m: float) -> dict[str, float]:
    """<P> for the observables, by trapezoidal sums over t and lambda (Poisson limit).

    Shares nothing with the engine: Mills' ratio at complex argument by the Faddeeva function.
    """
    big_t = float_level(log_m)
    tau = np.linspace(-14, 14, 1401) / big_t**2
    lam = np.linspace(-7, 7, 1401)
    t = big_t + tau[:, None]
    w = t + 1j * lam[None, :]

    def mills(z: np.ndarray) -> np.ndarray:
        return np.sqrt(np.pi / 2) * wofz(1j * z / np.sqrt(2))

    height = np.exp(log_m - t**2 / 2) / np.sqrt(2 * np.pi)
    b = height * mills(w)
    b1 = height * (w * mills(w) - 1)
    b2 = height * (mills(w) + w * (w * mills(w) - 1))
    exponent = -(lam[None, :] ** 2) / 2 + 1j * lam[None, :] * t - height * mills(t + 0j) + b
    weight = np.exp(exponent) * (tau[1] - tau[0]) * (lam[1] - lam[0]) / (2 * np.pi)
    result = {
        "normalisation": (weight * (1 + b)).sum(),
        "active": (weight * (2 * b + b**2)).sum(),
        "active_square": (weight * (2 * b + 4 * b**2 + b**3)).sum(),
        "distance_square": (weight * (4 * b2 + 3 * b1**2 + (2 * b2 + b1**2) * b)).sum(),
        "level": (weight * (1 + b) * tau[:, None]).sum(),
        "level_square": (weight * (1 + b) * tau[:, None] ** 2).sum(),
    }
    assert all(abs(value.imag) < 1e-6 * (1 + abs(value)) for value in result.values())
    return {"T": big_t, **{name: float(value.real) for name, value in result.items()}}


@pytest.fixture(scope="module")
def direct() -> dict[str, float]:
    return quadrature(50 * np.log(10))


def in_powers(coefficients: list[Fraction], big_t: float, leading: int) -> float:
    return sum(float(c) * big_t ** (leading - 2 * i) for i, c in enumerate(coefficients))


def test_moments_agree_with_quadrature(direct: dict[str, float]) -> None:
    big_t = direct["T"]
    assert abs(direct["normalisation"] - 1) < 1e-8
    delta = in_powers(cone.statistical_dimension(7), big_t, 2)
    assert abs(direct["active"] - delta) < 1e-6
    assert abs(direct["distance_square"] - delta) < 1e-6
    variance = direct["active_square"] - direct["active"] ** 2
    assert abs(variance - in_powers(cone.variance_of_active(7), big_t, 2)) < 1e-4


def test_level_law_agrees_with_quadrature(direct: dict[str, float]) -> None:
    """The score at capacity: mean T (1 + 1/(2 T^4) - ...), standard deviation sqrt(3)/T^2."""
    big_t = direct["T"]
    mean, variance = cone.level_moments(6)
    assert abs(big_t + direct["level"] - in_powers(mean, big_t, 1)) < 5e-9
    measured = direct["level_square"] - direct["level"] ** 2
    assert measured == pytest.approx(in_powers(variance, big_t, -4), rel=1e-6)
    assert variance[0] == 3


def test_normalisation_is_one_to_every_order() -> None:
    assert cone.normalisation(13) == [Fraction(1)] + [Fraction(0)] * 12


def test_distance_equals_count_of_active() -> None:
    """Conic Steiner formula: E dist^2 = E K, by two different integrands."""
    assert cone.distance_square(10) == cone.statistical_dimension(10)


def test_published_series() -> None:
    """THEORY section 5, as a check of what the engine finds."""
    values = [str(c) for c in cone.statistical_dimension(6)]
    assert values == ["1", "3", "-9", "113/2", "-1015/2", "23295/4"]


def test_margin_reduces_to_no_margin_and_stays_normalised() -> None:
    rows = average_with_margin(observables()["normalisation"], 6)
    assert rows[0] == {0: Fraction(1)}
    assert all(rows[i] == {} for i in range(1, 6))
    summed = [sum(row.values()) for row in cone.distance_square_with_margin(6)]
    assert summed == cone.statistical_dimension(6)
    summed = [sum(row.values()) for row in cone.active_with_margin(6)]
    assert summed == cone.statistical_dimension(6)


def test_more_terms_do_not_change_the_first_ones() -> None:
    """Truncation by weight: what was computed with less room is unchanged with more."""
    assert cone.statistical_dimension(5) == cone.statistical_dimension(9)[:5]
    assert cone.variance_of_active(4) == cone.variance_of_active(8)[:4]


def test_wrong_integrand_is_noticed() -> None:
    """The normalisation check has power: a Jacobian 1 instead of 1 + K fails it."""
    assert average(ACTIVE, 3)[0] == 1
    assert average(ACTIVE, 3)[1] != 0


def test_odd_powers_of_the_slope_are_refused() -> None:
    from replica.wick import ACTIVE_1

    with pytest.raises(ArithmeticError, match="even powers"):
        saddle(1).average(ACTIVE_1)


def test_plane_product_against_plain_multiplication() -> None:
    rng = np.random.default_rng(3)
    shape = triangle(8)

    def draw() -> dict[tuple[int, int], Fraction]:
        return {
            (a, b): Fraction(int(rng.integers(-9, 9)), int(rng.integers(1, 7)))
            for b, width in enumerate(shape)
            for a in range(width)
        }

    first, second = draw(), draw()
    expected: dict[tuple[int, int], Fraction] = {}
    for (a, b), u in first.items():
        for (c, d), v in second.items():
            if a + c + 2 * (b + d) <= 8:
                key = (a + c, b + d)
                expected[key] = expected.get(key, Fraction(0)) + u * v
    product = Plane.from_terms(shape, first).times(Plane.from_terms(shape, second), shape)
    assert product.terms() == {k: v for k, v in expected.items() if v}
    with pytest.raises(ArithmeticError):
        Plane.from_terms(shape, {(0, 0): Fraction(2)}).inverse(shape)
    with pytest.raises(ArithmeticError):
        Plane.from_terms(shape, {(0, 0): Fraction(2)}).divided_by_x()


def test_mills_coefficients() -> None:
    assert odd_factorials(6) == [1, -1, 3, -15, 105, -945]
