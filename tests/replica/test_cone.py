"""The recall cone: exact small cases, reference digits, direct minimisation, Cover's formula."""

from __future__ import annotations

from itertools import pairwise
from math import comb, sqrt

import numpy as np
import pytest
import sympy as sp
from scipy.special import erfc as real_erfc
from scipy.special import wofz

from replica import cone
from replica.code import to_python
from replica.criteria.list_wise import ListWise
from replica.derivation import Derivation
from replica.errors import InvalidInput
from replica.symbols import M, margin


def numpy_function(name: str, expression: object) -> object:
    namespace: dict[str, object] = {}
    exec(to_python({name: expression}), namespace)
    return namespace[name]


def nearest_point(z: np.ndarray, shift: float) -> tuple[np.ndarray, np.ndarray]:
    """(dist^2, number of active competitors) by sorting: no formula of the package enters."""
    target, rivals = z[:, 0], -np.sort(-z[:, 1:], axis=1)
    best = np.zeros(len(z))
    active = np.zeros(len(z), dtype=int)
    # with k active: t + shift - z_0 = sum_{i<=k} (z_i - t)
    sums = np.cumsum(rivals, axis=1)
    for k in range(1, rivals.shape[1] + 1):
        level = (target - shift + sums[:, k - 1]) / (k + 1)
        later = rivals[:, k] if k < rivals.shape[1] else np.full(len(z), -np.inf)
        fits = (rivals[:, k - 1] > level) & (later <= level)
        excess = np.maximum(rivals - level[:, None], 0)
        value = (level + shift - target) ** 2 + np.sum(excess**2, axis=1)
        best = np.where(fits, value, best)
        active = np.where(fits, k, active)
    return best, active


def test_small_cases_are_exact() -> None:
    assert cone.mean_distance_squared(1).doit() == sp.Rational(1, 2)
    assert cone.mean_distance_squared(2).doit() == sp.Rational(5, 6)
    for number in (1, 2, 3):
        volumes = [cone.intrinsic_volume(k, number).doit() for k in range(number + 1)]
        assert volumes[0] == sp.Rational(1, number + 1)
        assert sp.expand(sum(volumes)) == 1
        # alternating sum: Gauss-Bonnet, the even and odd volumes each sum to 1/2
        assert sp.expand(sum((-1) ** k * v for k, v in enumerate(volumes))) == 0


def test_reference_digits() -> None:
    # delta(M) to the digits of an independent 40-digit evaluation
    references = {2: "0.83333333333333333", 3: "1.08773982804591", 10: "2.09392892798232790"}
    for number, text in references.items():
        value = sp.N(cone.mean_distance_squared(number), 20)
        assert abs(value - sp.Float(text, 25)) < 2 * sp.Float(10) ** -(len(text) - 2)


def test_double_integral_agrees_with_the_sum() -> None:
    # second route: trapezoidal rule on the (l, t) plane, Mills ratio from the Faddeeva function
    number = 5
    integral = cone.double_integral()
    l, t = np.meshgrid(np.linspace(-12, 12, 601), np.linspace(-8, 9, 601), indexing="ij")
    a = real_erfc(-t / sqrt(2)) / 2
    w = t + 1j * l
    b = np.exp(-t * t / 2) * wofz(1j * w / sqrt(2)) / 2
    counted = 2 * number * b * (a + b) ** (number - 1)
    counted += number * (number - 1) * b**2 * (a + b) ** (number - 2)
    values = np.exp(-l * l / 2 + 1j * l * t) * counted / (2 * np.pi)
    by_hand = np.sum(values).real * (24 / 600) * (17 / 600)
    by_sum = float(sp.N(cone.mean_distance_squared(number), 15))
    assert by_hand == pytest.approx(by_sum, rel=1e-7)
    # the symbolic integrand is that same function
    point = {cone.frequency: 0.7, sp.Symbol("t", real=True): 0.4, M: number}
    value = complex(sp.N(integral.function.subs(point)))
    index = np.argmin((l - 0.7) ** 2 + (t - 0.4) ** 2)
    a0, w0 = real_erfc(-0.4 / sqrt(2)) / 2, 0.4 + 0.7j
    b0 = np.exp(-0.08) * wofz(1j * w0 / sqrt(2)) / 2
    expected = np.exp(-0.245 + 0.28j) / (2 * np.pi)
    expected *= 10 * b0 * (a0 + b0) ** 4 + 20 * b0**2 * (a0 + b0) ** 3
    assert value == pytest.approx(expected, rel=1e-10)
    assert index >= 0


@pytest.mark.parametrize(("number", "shift"), [(3, 0.5), (4, 1.2)])
def test_mean_distance_by_direct_minimisation(number: int, shift: float) -> None:
    # two-sided test at |z| < 4.9: false alarm 1e-6 a case
    samples = 100_000
    z = np.random.default_rng((11, number)).standard_normal((samples, number + 1))
    distances, active = nearest_point(z, shift)
    function = numpy_function("delta", cone.mean_distance_squared(M, margin))
    predicted = complex(function(M=number, margin=shift)).real
    error = distances.std() / sqrt(samples)
    assert abs(distances.mean() - predicted) < 4.9 * error
    for k in range(number + 1):
        volume = numpy_function("v", cone.intrinsic_volume(k, number, sp.Rational(str(shift))))
        probability = complex(volume()).real
        spread = sqrt(probability * (1 - probability) / samples)
        assert abs(np.mean(active == k) - probability) < 5.3 * spread  # 1e-7 a bin


def test_margin_zero_recovers_the_intrinsic_volumes() -> None:
    for k in (1, 3):
        function = numpy_function("d", cone.distance_factor(k, 0))
        plain_factor = numpy_function("a", k * cone.active_factor(k))
        assert complex(function()).real == pytest.approx(complex(plain_factor()).real, rel=1e-9)


def test_success_probability_is_cover_at_one_competitor() -> None:
    for dimension, facts in [(3, 5), (4, 8), (6, 7), (5, 4)]:
        cover = sp.Rational(sum(comb(facts - 1, i) for i in range(dimension)), 2 ** (facts - 1))
        assert cone.success_probability(dimension, facts, 1) == cover


def test_success_probability_decreases_with_facts_and_is_one_when_trivial() -> None:
    values = [cone.success_probability(4, facts, 2) for facts in (2, 3, 4, 5, 6)]
    assert values[0] == 1  # 4 constraints in 4 dimensions
    assert all(a > b for a, b in pairwise(values))
    assert cone.success_probability(9, 4, 2) == 1
    with pytest.raises(InvalidInput, match="dimension is 0"):
        cone.success_probability(0, 3, 1)


def test_derivation_factorises() -> None:
    derivation = Derivation("cone")
    delta = cone.add_distance_steps(derivation, M, 0)
    titles = [step.title for step in derivation]
    assert "Exponent of the term with K = k" in titles
    assert delta.subs(M, 2).doit().doit() == sp.Rational(5, 6)


@pytest.mark.parametrize(("number", "size", "shift"), [(3, 2, 0.3)])
def test_list_wise_distance_by_direct_minimisation(number: int, size: int, shift: float) -> None:
    # the size - 1 best competitors are dropped; two-sided at 4.9 standard errors: 1e-6 a case
    samples = 100_000
    z = np.random.default_rng((12, number)).standard_normal((samples, number + 1))
    kept = -np.sort(-z[:, 1:], axis=1)[:, size - 1 :]
    distances, _ = nearest_point(np.column_stack([z[:, 0], kept]), shift)
    criterion = ListWise(competitors=number, list_size=size, margin=sp.Rational(str(shift)))
    namespace: dict[str, object] = {}
    exec(to_python({"delta": criterion.mean_distance_squared()}), namespace)
    namespace["NODES"], namespace["REACH"] = 100, 5.5  # exp(i l (2 t - u)) oscillates
    predicted = complex(namespace["delta"]()).real  # type: ignore[operator]
    assert abs(distances.mean() - predicted) < 4.9 * distances.std() / sqrt(samples)


def test_a_list_of_one_is_top_one() -> None:
    criterion = ListWise(competitors=2, list_size=1, margin=0)
    namespace: dict[str, object] = {}
    exec(to_python({"delta": criterion.mean_distance_squared()}), namespace)
    namespace["NODES"], namespace["REACH"] = 100, 5.5  # exp(i l (2 t - u)) oscillates
    value = complex(namespace["delta"]()).real  # type: ignore[operator]
    assert value == pytest.approx(5 / 6, rel=1e-5)
