"""Theory beside the experiments: each value a second way, and none where there is no law."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from validate.predictions import predictions
from validate.simulate import simulate


def of(quantity: str, *names: str, **sizes: int) -> float:
    (value,) = [p.value for p in predictions(*names, **sizes) if p.quantity == quantity]
    return value


def test_exact_values_are_those_of_cover_with_one_competitor() -> None:
    """Cover 1965: 2^(1-p) sum_{i<N} binom(p-1, i), N = 9 weights, p = 20 facts."""
    cover = sum(math.comb(19, i) for i in range(9)) / 2.0**19
    found = of("separable", "gaussian", "exact", dim=3, facts=20, competitors=1)
    assert found == pytest.approx(cover, rel=1e-9)


@pytest.mark.parametrize(
    ("problem", "method"),
    [("gaussian", "hebbian"), ("gaussian", "pseudo_inverse"), ("decoupled", "hebbian")],
)
def test_rules_reach_what_is_predicted(problem: str, method: str) -> None:
    """Mean accuracy and share of full recall over 200 instances, each within 4.5 errors.

    False alarms: about 7e-6 a comparison, 3e-5 in all.
    """
    sizes = {"dim": 8, "facts": 10}
    cell = simulate(problem, method=method, seeds=200, seed=11, **sizes)
    accuracies = np.array(cell.accuracies)
    error = accuracies.std(ddof=1) / math.sqrt(accuracies.size)
    predicted = of("accuracy", problem, method, **sizes)
    assert abs(accuracies.mean() - predicted) < 4.5 * error
    if (problem, method) == ("gaussian", "hebbian"):
        every = of("separable", problem, method, **sizes)
        shares = cell.count("separable") / 200
        assert abs(shares - every) < 4.5 * math.sqrt(every * (1.0 - every) / 200)


def test_overlaps_are_those_of_the_saddle_point() -> None:
    """0.4345 at gamma = 0.1, M = 39: a Monte Carlo saddle point computed elsewhere, to 0.01."""
    assert of("overlap", "gaussian", "sample", dim=20, facts=40) == pytest.approx(0.4345, abs=0.01)


@pytest.mark.parametrize(("dim", "facts"), [(5, 30), (4, 12), (40, 300)])
def test_no_saddle_point_is_no_error(dim: int, facts: int) -> None:
    """Above capacity, and where it would take minutes, only P(separable) is left."""
    found = predictions("gaussian", "sample", dim=dim, facts=facts)
    assert [p.quantity for p in found] == ["separable"]


@pytest.mark.parametrize(
    ("rule", "dim", "facts"),
    [("pseudo_inverse", 6, 7), ("pseudo_inverse", 20, 21), ("hebbian", 4, 2), ("hebbian", 1, 3)],
)
def test_laws_whose_density_is_singular(rule: str, dim: int, facts: int) -> None:
    """h ~ Beta with an exponent 1/2: by quantiles, 100,000 of them, and chi on a grid."""
    other = (facts - 1) / 2 if rule == "hebbian" else (facts - dim) / 2
    u = (np.arange(100_000) + 0.5) / 100_000
    h = stats.beta(dim / 2, other).ppf(u)
    rng = np.random.default_rng(7)
    chi = stats.chi(dim).ppf(rng.permutation(u))
    node, weight = special.roots_hermitenorm(40)
    z, mass = node, weight / weight.sum()
    lead = np.sqrt(h)[:, None] * chi[:, None] + np.sqrt(1.0 - h)[:, None] * z
    values = special.ndtr(lead) ** (facts - 1) @ mass
    error = values.std() / math.sqrt(values.size)  # of the pairing; the margins are stratified
    found = of("accuracy", "decoupled", rule, dim=dim, facts=facts)
    assert abs(found - values.mean()) < 4.5 * error + 1e-4


@pytest.mark.parametrize(
    ("problem", "method", "sizes"),
    [
        ("original", "adam", {"dim": 8, "facts": 10}),
        ("original", "newton", {"dim": 8, "facts": 10}),
        ("gaussian", "pseudo_inverse", {"dim": 3, "facts": 10}),
        ("decoupled", "hebbian", {"dim": 8, "facts": 10, "dim_out": 6}),
        ("original", "exact", {"dim": 4, "facts": 1}),
    ],
)
def test_no_law_gives_no_number(problem: str, method: str, sizes: dict[str, int]) -> None:
    assert predictions(problem, method, **sizes) == ()


def test_other_embeddings_have_no_law_for_rules() -> None:
    sizes = {"dim": 8, "facts": 10}
    assert predictions("decoupled", "hebbian", ensemble="sphere", **sizes) == ()
    assert predictions("gaussian", "hebbian", ensemble="sphere", **sizes) != ()
    assert predictions("decoupled", "exact", ensemble="correlated", **sizes) == ()
