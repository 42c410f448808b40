"""The trained memory: fixed point, errors, limits, against computations that share no code.

False alarms: comparisons of sampled numbers allow 4.5 standard errors (below 10^-5 each, fixed
seeds), so that the file as a whole stays below 10^-3.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate, optimize, special, stats

from numerics.cone.volumes import statistical_dimension
from numerics.hebbian import hebbian_recall
from numerics.scores import CapacityScores, largest_margin
from numerics.trained import (
    accuracy_curve,
    best_ridge,
    load_path,
    predict,
    pseudo_inverse_recall,
    ridge_path,
    score_laws,
)
from numerics.trained.catalogue import loss_by_name
from numerics.trained.convolution import Convolution
from numerics.trained.fixed_point import Equations, newton, solve
from numerics.trained.line import Line
from numerics.trained.losses.squared import Squared
from numerics.trained.losses.tail_average import TailAverage
from numerics.trained.population import draw_population
from numerics.trained.prediction import QUANTITIES, Predicted
from numerics.trained.recall import recall_by_lead
from replica.errors import InvalidInput

SIGMAS = 4.5


def _close(predicted: Predicted, value: float, error: float = 0.0, slack: float = 0.0) -> bool:
    return abs(predicted.value - value) <= SIGMAS * math.hypot(predicted.stderr, error) + slack


# -- the equations, by plain Monte Carlo that shares no code ---------------------------------------
@pytest.mark.parametrize(
    ("facts", "ridge"),
    [
        (40, 0.01),
        pytest.param(90, 0.01, marks=pytest.mark.long),
        pytest.param(100, 0.1, marks=pytest.mark.long),
    ],
)
def test_fixed_point_by_plain_monte_carlo(facts: int, ridge: float) -> None:
    """Both equations, loss and accuracy at the predicted (Q, V): Lambert W, dense matrices."""
    memory = predict(256, facts, facts - 1, ridge)
    q, v, gamma = memory.norm_squared.value, memory.order_parameter_V.value, facts / 256
    rng = np.random.default_rng(11)
    moved, trace, loss, won = [], [], [], []
    for _ in range(800):
        omega = math.sqrt(q) * rng.standard_normal(facts)
        a = omega.copy()
        a[0] += v

        def shares(c: float, a: Any = a) -> Any:
            return special.lambertw(v * np.exp(a - c)).real

        level = optimize.brentq(
            lambda c, shares=shares: float(shares(c).sum()) - v,
            a.max() - v - 1e-9,
            special.logsumexp(a) + 1e-9,
            xtol=1e-12,
        )
        x = a - shares(level)
        pi = special.softmax(x)
        moved.append(np.sum((x - omega) ** 2))
        loss.append(-math.log(pi[0]))
        won.append(x[0] > x[1:].max())
        if len(trace) < 150:
            hessian = np.diag(pi) - np.outer(pi, pi)
            trace.append(np.trace(hessian @ np.linalg.inv(np.eye(facts) + v * hessian)))

    def mean(values: list[Any]) -> tuple[float, float]:
        return float(np.mean(values)), float(np.std(values)) / math.sqrt(len(values))

    for values, expected, factor in ((moved, q, gamma), (trace, 1 / v - ridge, gamma)):
        average, error = mean(values)
        assert abs(factor * average - expected) < SIGMAS * factor * error
    assert _close(memory.loss, *mean(loss))
    average, error = mean(won)
    assert _close(memory.accuracy, average, max(error, 1e-3))


@pytest.mark.long
def test_table_of_theory_section_8() -> None:
    """Q, accuracy, loss at d = 16. The printed digits come from small populations: 5 % are allowed;

    the measured values of the Gaussian problem (five instances, finite d) lie as near.
    """
    rows = [
        (40, 0.01, (11.76, 1.000, 0.269), (11.64, 1.000, 0.268)),
        (90, 0.01, (4.28, 0.264, 3.015), (4.19, 0.276, 3.002)),
        (100, 0.1, (1.79, 0.228, 3.326), (1.85, 0.226, 3.322)),
    ]
    for facts, ridge, *columns in rows:
        memory = predict(256, facts, facts - 1, ridge, accuracy=0.005)
        found = (memory.norm_squared.value, memory.accuracy.value, memory.loss.value)
        for column in columns:
            assert np.allclose(found, column, rtol=0.05)


@pytest.mark.parametrize(
    ("loss", "facts", "competitors", "ridge"),
    [
        ("cross_entropy", 120, 6, 0.05),
        ("cross_entropy", 320, 3, 0.02),
        ("squared_hinge", 240, 4, 0.1),
    ],
)
def test_brute_force_minimisation(loss: str, facts: int, competitors: int, ridge: float) -> None:
    """Direct minimisation (L-BFGS) on Gaussian problems of N = 200; deviations O(1/N) allowed."""
    size, instances = 200, 8
    rng = np.random.default_rng(12)
    found = []
    for _ in range(instances):
        table = rng.standard_normal((facts, competitors + 1, size))
        flat = table.reshape(-1, size)

        def objective(w: Any, flat: Any = flat) -> tuple[float, Any]:
            scores = (flat @ w).reshape(facts, -1)
            if loss == "cross_entropy":
                value = np.sum(special.logsumexp(scores, axis=1) - scores[:, 0])
                slope = special.softmax(scores, axis=1)
                slope[:, 0] -= 1
            else:
                lack = np.maximum(0, 1 - scores[:, :1] + scores[:, 1:])
                value = 0.5 * np.sum(lack**2)
                slope = np.column_stack([-lack.sum(axis=1), lack])
            total = value + 0.5 * ridge * size * w @ w
            return float(total), slope.ravel() @ flat + ridge * size * w

        done = optimize.minimize(
            objective,
            np.zeros(size),
            jac=True,
            method="L-BFGS-B",
            options={"gtol": 1e-6, "ftol": 0},
        )
        w = done.x
        scores = (flat @ w).reshape(facts, -1)
        won = np.mean(scores[:, 0] > scores[:, 1:].max(axis=1))
        fit = (done.fun - 0.5 * ridge * size * w @ w) / facts
        found.append((w @ w, won, fit))
    mean = np.mean(found, axis=0)
    error = np.std(found, axis=0, ddof=1) / math.sqrt(instances)
    memory = predict(size, facts, competitors, ridge, loss, accuracy=0.005)
    for predicted, value, spread in zip(
        (memory.norm_squared, memory.accuracy, memory.loss), mean, error, strict=True
    ):
        # eight instances: Student's quantile with 7 degrees of freedom at 4.5 sigma is about 10
        assert _close(predicted, value, 2 * spread, 4 / size * abs(value))
        assert abs(predicted.value / value - 1) < 0.1


# -- errors --------------------------------------------------------------------------------------
@pytest.mark.long
def test_standard_errors_are_honest() -> None:
    """16 seeds at fixed size: the spread of every quantity over its stated error, chi^2 test.

    (sum of squares)/(stated variance) has 15 degrees of freedom up to the 18 % error of the stated
    one; bounds 3 and 60 leave less than 10^-3 on each side for each of three quantities.
    """
    runs = [
        predict(100, 60, 29, 0.05, accuracy=0.02, seed=seed, method="population")
        for seed in range(16)
    ]
    for name in ("loss", "norm_squared", "order_parameter_V"):
        values = np.array([getattr(run, name).value for run in runs])
        stated = np.sqrt(np.mean([getattr(run, name).stderr ** 2 for run in runs]))
        assert 3 < np.sum((values - values.mean()) ** 2) / stated**2 < 60
        # their mean against the convolution, which samples nothing
        exact = getattr(predict(100, 60, 29, 0.05), name)
        assert abs(values.mean() - exact.value) < SIGMAS * stated / 4 + 3 * exact.stderr
    assert all(run.residual < 1e-9 for run in runs)
    assert all(run.order_parameter_V.stderr < 0.02 * run.order_parameter_V.value for run in runs)


@pytest.mark.long
def test_accuracy_decides_the_population() -> None:
    rough, fine = (
        predict(256, 90, 89, 0.01, accuracy=a, method="population") for a in (0.05, 0.005)
    )
    assert fine.facts_drawn > rough.facts_drawn
    for name in QUANTITIES:
        value = getattr(fine, name)
        assert value.stderr <= 0.005 * value.value
        assert _close(value, getattr(rough, name).value, getattr(rough, name).stderr)


def test_reproducible_and_seeds_differ() -> None:
    first, second, other = (
        predict(100, 30, 5, 0.1, accuracy=0.02, seed=s, method="population") for s in (3, 3, 4)
    )
    assert first == second
    assert first.loss.value != other.loss.value


# -- convolution ---------------------------------------------------------------------------------
@pytest.mark.parametrize(("q", "v"), [(0.3, 0.2), (2.8, 1.7), (12.0, 30.0)])
def test_convolution_of_one_competitor_is_the_line(q: float, v: float) -> None:
    """M = 1: the integral over the level against the quadrature over omega_0 - omega_1."""
    loss = loss_by_name("cross_entropy")
    line, level = Line().averages(loss, q, v), Convolution(1, 512, 90, 1100).averages(loss, q, v)
    for name in ("squared_step", "trace", "loss", "recalled"):
        assert getattr(level, name)[0] == pytest.approx(getattr(line, name)[0], rel=3e-6)


@pytest.mark.parametrize(
    ("competitors", "q", "v"), [(2, 0.5, 1.0), (29, 14.7, 455.0), (89, 4.2, 3.7), (600, 0.1, 0.5)]
)
def test_convolution_against_proximal_maps(competitors: int, q: float, v: float) -> None:
    """The population uses the proximal point of every fact, the convolution none of them."""
    loss = loss_by_name("cross_entropy")
    grid = 4096 if v > 100 else 1024
    exact = Convolution(competitors, grid).averages(loss, q, v)
    sampled = draw_population(competitors, 256 if competitors < 100 else 32, 5).averages(loss, q, v)
    for name in ("squared_step", "trace", "loss"):
        values = getattr(sampled, name)
        # 16 replicates: Student's law, 15 degrees of freedom, 8 standard errors are below 10^-6
        error = np.std(values, ddof=1) / 4
        assert abs(values.mean() - getattr(exact, name)[0]) < 8 * error + 1e-6 * values.mean()


def test_convolution_error_estimate() -> None:
    """`stderr` covers the distance to a much finer grid."""
    memory = predict(256, 90, 89, 0.01)
    assert memory.facts_drawn == 0
    finer = Equations(Convolution(89, 1024, 130), loss_by_name("cross_entropy"), 90 / 256, 0.01)
    point = np.log([memory.norm_squared.value, memory.order_parameter_V.value])
    fine = newton(finer, point, 1e-8)
    assert fine is not None
    assert abs(memory.norm_squared.value - fine.norm_squared) < 3 * memory.norm_squared.stderr
    assert abs(memory.order_parameter_V.value - fine.order_v) < 3 * memory.order_parameter_V.stderr
    assert memory.norm_squared.stderr < 1e-4 * memory.norm_squared.value
    with pytest.raises(InvalidInput, match="unknown method 'magic'"):
        predict(256, 90, 89, 0.01, method="magic")


def test_a_million_competitors() -> None:
    """Large ridge, M = 10^6: Hebb's accuracy; no population of that size is drawn."""
    memory = predict(10**8, 10**6, 10**6, 100.0)
    expected = recall_by_lead(10**6, math.sqrt((1 + 1e-6) / 0.01))
    assert memory.accuracy.value == pytest.approx(expected, rel=1e-4)
    assert memory.facts_drawn == 0


# -- one competitor --------------------------------------------------------------------------------
def test_logistic_regression_without_ridge() -> None:
    """The system of Sur and Candes (2019) for the unregularised logistic MLE without signal:

        kappa s^2 = E (t - prox)^2,   1 - kappa = E 1/(1 + b rho''(prox)),   t = s z,

    kappa = N/p, rho = log(1 + e^t), features of variance 2 here (a difference): s^2 = 2Q, b = 2V.
    """
    gamma = 3.0

    def prox(t: float, b: float) -> float:
        return optimize.brentq(
            lambda x: x - t - b * special.expit(-x), t - 1e-12, t + b + 1e-12, xtol=1e-14
        )

    def mean(function: Any, s: float) -> float:
        value, _ = integrate.quad(
            lambda z: function(s * z) * stats.norm.pdf(z), -9, 9, epsabs=1e-11, limit=200
        )
        return float(value)

    def system(unknown: Any) -> list[float]:
        s, b = np.exp(unknown)

        def curvature(t: float) -> float:
            x = prox(t, b)
            return 1 / (1 + b * special.expit(x) * special.expit(-x))

        return [
            mean(lambda t: (t - prox(t, b)) ** 2, s) - s**2 / gamma,
            mean(curvature, s) - 1 + 1 / gamma,
        ]

    s, b = np.exp(optimize.fsolve(system, np.log([2.2, 3.2]), xtol=1e-12))
    memory = predict(100, 300, 1, 0, "logistic")
    assert memory.norm_squared.value == pytest.approx(s**2 / 2, rel=1e-8)
    assert memory.order_parameter_V.value == pytest.approx(b / 2, rel=1e-8)
    # SciPy's quadrature of the loss and the closed form of the accuracy
    loss = mean(lambda t: np.log1p(np.exp(-prox(t, b))), s)
    assert memory.loss.value == pytest.approx(loss, rel=1e-8)
    assert memory.accuracy.value == pytest.approx(stats.norm.cdf(b / 2 / s), rel=1e-8)


def test_existence_threshold_of_the_logistic_mle() -> None:
    """gamma = 2: no minimum without ridge at or below; Q diverges as gamma falls to 2."""
    for facts in (150, 200):
        with pytest.raises(InvalidInput, match="below the capacity"):
            predict(100, facts, 1, 0, "logistic")
    norms = [predict(1000, facts, 1, 0).norm_squared.value for facts in (2400, 2200, 2100, 2050)]
    ratios = np.array(norms[1:]) / norms[:-1]  # gamma - 2 is halved each time
    assert np.all(ratios > 2)
    # from below, a small ridge: Q grows without limit as lambda falls, above it saturates
    below = ridge_path(1000, 1900, 1, [1e-3, 1e-5, 1e-7])
    above = ridge_path(1000, 2100, 1, [1e-3, 1e-5, 1e-7])
    assert below[2].norm_squared.value > 10 * below[1].norm_squared.value / 5
    growth = [above[i + 1].norm_squared.value / above[i].norm_squared.value for i in (0, 1)]
    assert growth[1] < 1.05
    assert below[2].accuracy.value > 1 - 1e-9


@pytest.mark.parametrize("name", ["hinge", "squared_hinge", "tail_average", "logistic"])
@pytest.mark.parametrize(("q", "v"), [(0.3, 0.2), (2.0, 1.5), (40.0, 30.0)])
def test_quadrature_against_scipy(name: str, q: float, v: float) -> None:
    """Averages over t = omega_0 - omega_1 with adaptive quadrature of one-dimensional proxes."""
    loss = TailAverage(1.0) if name == "tail_average" else loss_by_name(name)
    means = Line().averages(loss, q, v)
    width = math.sqrt(2 * q)

    def lead(t: float) -> float:  # the prox of the lead: x_0 - x_1
        if name == "logistic":
            return float(optimize.brentq(lambda x: x - t - 2 * v * special.expit(-x), t, t + 2 * v))
        if name == "squared_hinge":
            return t if t > 1 else (t + 2 * v) / (1 + 2 * v)
        return min(max(t, min(t + 2 * v, 1.0)), t + 2 * v)

    def value(x: float) -> float:
        if name == "logistic":
            return math.log1p(math.exp(-x))
        lack = max(0.0, 1 - x)
        return 0.5 * lack**2 if name == "squared_hinge" else lack

    def mean(function: Any) -> float:
        cuts = sorted({c / width for c in (1.0, 1 - 2 * v, -2 * v, 0.0) if abs(c) < 9 * width})
        total = 0.0
        for low, high in zip([-9.0, *cuts], [*cuts, 9.0], strict=True):
            total += integrate.quad(
                lambda z: function(width * z) * stats.norm.pdf(z), low, high, epsabs=1e-12
            )[0]
        return total

    assert means.squared_step[0] == pytest.approx(mean(lambda t: (lead(t) - t) ** 2 / 2), rel=1e-9)
    assert means.loss[0] == pytest.approx(mean(lambda t: value(lead(t))), rel=1e-8, abs=1e-11)
    # the trace by Stein's lemma: E t (x - t)/(-2 Q V) for the lead
    stein = mean(lambda t: t * (t - lead(t))) / (2 * q * v)
    assert means.trace[0] == pytest.approx(stein, rel=1e-8)
    won = mean(lambda t: float(lead(t) > 1e-12))
    assert means.recalled[0] == pytest.approx(won, abs=3e-6)  # a jump at x = 0 inside a piece


# -- limits --------------------------------------------------------------------------------------
@pytest.mark.parametrize("competitors", [1, 9, 60])
def test_large_ridge_is_hebb(competitors: int) -> None:
    """V -> 1/lambda, Q -> gamma V^2 M/(M+1); accuracy -> Hebb's with 1/sigma^2 (M+1)/M."""
    gamma, ridge = 0.25, 1e4
    memory = predict(400, 100, competitors, ridge, accuracy=0.005)
    assert memory.order_parameter_V.value == pytest.approx(1 / ridge, rel=1e-4)
    norm = gamma / ridge**2 * competitors / (competitors + 1)
    assert memory.norm_squared.value == pytest.approx(norm, rel=1e-3)
    # Hebb with p M/(M+1) facts, certified, where that is a whole number
    expected = recall_by_lead(competitors, math.sqrt((competitors + 1) / (competitors * gamma)))
    assert memory.accuracy.value == pytest.approx(expected, rel=1e-3)
    if competitors == 9:
        hebb = hebbian_recall(20, 90, 9).typical  # sigma^2 = 90/400 = gamma 9/10
        assert expected == pytest.approx(float(hebb.to_string(15)), rel=1e-12)


@pytest.mark.parametrize(("dim", "facts", "competitors"), [(10, 60, 3), (12, 60, 8)])
def test_no_ridge_below_capacity_is_the_maximum_margin(
    dim: int, facts: int, competitors: int
) -> None:
    """Hinge, lambda -> 0: 1/sqrt(Q) is the largest margin of section 6, scores its laws,

    lambda V = gamma m delta'(m)/2, no loss, every fact recalled.
    """
    size = dim * dim
    margin = float(largest_margin(dim, facts, competitors).to_string(15))
    ridge = 1e-7
    memory = predict(size, facts, competitors, ridge, "hinge", accuracy=0.002)
    assert memory.accuracy.value == pytest.approx(1, abs=1e-12)
    assert memory.loss.value < 1e-6
    assert _close(memory.norm_squared, margin**-2, slack=1e-4 / margin**2)
    up, down = (
        float(statistical_dimension(competitors, 20, margin=f"{margin + e:.15f}").to_string(18))
        for e in (1e-4, -1e-4)
    )
    expected = facts / size * margin * (up - down) / 2e-4 / 2 / ridge
    assert _close(memory.order_parameter_V, expected, slack=1e-3 * expected)
    laws = score_laws(size, facts, competitors, ridge, "hinge", accuracy=0.002)
    exact = CapacityScores(competitors, f"{margin:.12f}")
    target = float(exact.target_mean(8).to_string(8))
    norm = math.sqrt(memory.norm_squared.value)
    assert laws.target.mean.value / norm == pytest.approx(target, rel=0.01)
    assert laws.target.std.value / norm == pytest.approx(
        float(exact.target_std(8).to_string(8)), rel=0.02
    )
    assert laws.best.mean.value / norm == pytest.approx(
        float(exact.best_mean(8).to_string(8)), abs=0.01
    )
    assert laws.gap.quantiles[0].value == pytest.approx(1, abs=1e-6)  # the lead that costs nothing


def test_cross_entropy_without_ridge_turns_to_the_maximum_margin() -> None:
    """The least lead over the norm rises, slowly, to the largest margin as lambda falls."""
    margin = float(largest_margin(10, 60, 3).to_string(10))
    least = []
    for ridge in (1e-3, 1e-6):
        laws = score_laws(100, 60, 3, ridge, accuracy=0.01, levels=(0.001,))
        memory = predict(100, 60, 3, ridge, accuracy=0.01)
        least.append(laws.gap.quantiles[0].value / math.sqrt(memory.norm_squared.value))
    assert least[0] < least[1] < 1.02 * margin
    assert least[1] > 0.75 * margin


def test_no_ridge_above_capacity_is_finite() -> None:
    """gamma delta > 1: ridge 0 exists and small ridges tend to it; below it is refused."""
    zero = predict(100, 150, 3, 0, accuracy=0.005)
    small = predict(100, 150, 3, 1e-6, accuracy=0.005)
    assert zero.norm_squared.value == pytest.approx(small.norm_squared.value, rel=1e-3)
    gamma_c = 1 / float(statistical_dimension(3, 15).to_string(15))
    assert 0.6 < gamma_c < 1.5
    with pytest.raises(InvalidInput, match="below the capacity"):
        predict(100, 60, 3, 0)


# -- squared loss ----------------------------------------------------------------------------------
@pytest.mark.parametrize(("gamma", "ridge"), [(0.3, 0.01), (1.0, 0.2), (2.5, 1e-3)])
def test_closed_form_of_the_squared_loss(gamma: float, ridge: float) -> None:
    """The general solver on a population; and ridge regression by random-matrix theory."""
    loss = Squared()
    q, v = loss.fixed_point(gamma, ridge)
    population = draw_population(4, 2048, 0)
    state = solve(Equations(population, loss, gamma, ridge))
    assert state.norm_squared == pytest.approx(q, rel=0.02)
    assert state.order_v == pytest.approx(v, rel=1e-6)
    means = population.averages(loss, q, v)
    assert np.mean(means.loss) == pytest.approx(0.5 * (1 + q) / (1 + v) ** 2, rel=0.02)
    assert np.mean(means.recalled) == pytest.approx(loss.recall(4, q, v), abs=0.01)
    # V is the Stieltjes transform of the Marchenko-Pastur law of G^T G/N, ratio p/N, at -lambda
    edges = (1 - math.sqrt(gamma)) ** 2, (1 + math.sqrt(gamma)) ** 2

    def density(y: float) -> float:
        inside = max((edges[1] - y) * (y - edges[0]), 0.0)
        return math.sqrt(inside) / (2 * math.pi * y) / (y + ridge)

    transform = integrate.quad(density, *edges, limit=400)[0] + max(0.0, 1 - gamma) / ridge
    assert v == pytest.approx(transform, rel=1e-6)


@pytest.mark.parametrize("facts", [40, 160])
def test_pseudo_inverse_of_gaussian_targets(facts: int) -> None:
    """The least-norm solution of <G_mu, W> = 1 by NumPy, N = 100: norm and recall."""
    size, competitors, instances = 100, 3, 40
    rng = np.random.default_rng(13)
    won, norms = [], []
    for _ in range(instances):
        rows = rng.standard_normal((facts, size))
        w = np.linalg.pinv(rows) @ np.ones(facts)
        rivals = rng.standard_normal((facts, competitors, size)) @ w
        won.append(np.mean(rows @ w > rivals.max(axis=1)))
        norms.append(w @ w)
    gamma = facts / size
    # finite N: E Q = p/(N - p - 1) exactly below, and p -> N above
    exact = facts / (size - facts - 1) if facts < size else size / (facts - size - 1)
    assert np.mean(norms) == pytest.approx(exact, abs=SIGMAS * np.std(norms) / math.sqrt(instances))
    error = np.std(won) / math.sqrt(instances)
    assert pseudo_inverse_recall(gamma, competitors) == pytest.approx(
        np.mean(won), abs=SIGMAS * error + 1 / size
    )


# -- laws, paths, curves ---------------------------------------------------------------------------
def test_laws_of_the_squared_loss_are_gaussian() -> None:
    laws = score_laws(100, 60, 4, 0.1, "squared", levels=(0.1, 0.9))
    q, v = Squared().fixed_point(0.6, 0.1)
    assert _close(laws.target.mean, v / (1 + v), slack=1e-9)
    assert _close(laws.target.std, math.sqrt(q) / (1 + v), slack=2e-3)
    for level, quantile in zip((0.1, 0.9), laws.best.quantiles, strict=True):
        exact = math.sqrt(q) * special.ndtri(level**0.25)
        assert _close(quantile, exact, slack=5e-3)
    edges = np.linspace(-10, 10, 41)
    assert laws.gap.histogram(edges).sum() == pytest.approx(1)
    assert set(laws.gap.to_json()) == {"mean", "std", "quantiles"}


def test_laws_agree_with_the_accuracy() -> None:
    laws = score_laws(100, 50, 29, 0.01, accuracy=0.01)
    memory = predict(100, 50, 29, 0.01, accuracy=0.01)
    won = np.mean(laws.gap.samples > 0)
    error = math.sqrt(won * (1 - won) / len(laws.gap.samples))
    assert _close(memory.accuracy, float(won), error)


def test_paths_equal_single_points() -> None:
    path = ridge_path(100, 50, 5, [1.0, 0.1, 0.01], accuracy=0.01)
    for point in path:
        single = predict(100, 50, 5, point.ridge, accuracy=0.01)
        assert _close(point.norm_squared, single.norm_squared.value, single.norm_squared.stderr)
        assert _close(point.loss, single.loss.value, single.loss.stderr)
    loads = load_path(100, [30, 60, 120], 0.05, accuracy=0.01)
    assert [point.competitors for point in loads] == [29, 59, 119]
    assert loads[0].accuracy.value > loads[1].accuracy.value > loads[2].accuracy.value


def test_best_ridge_of_the_squared_loss() -> None:
    """Against a fine grid of the closed form; an end of the range is said to be one."""
    best = best_ridge(256, 20, 19, "squared")
    assert not best.at_edge
    grid = np.exp(np.linspace(math.log(1e-4), math.log(100), 4001))
    loss = Squared()
    values = [loss.recall(19, *loss.fixed_point(20 / 256, lam)) for lam in grid]
    assert best.ridge.value == pytest.approx(grid[int(np.argmax(values))], rel=0.02)
    assert best.accuracy.value == pytest.approx(max(values), rel=1e-9)
    edge = best_ridge(100, 60, 19, accuracy=0.02, bounds=(0.01, 1.0))
    assert edge.at_edge
    assert edge.ridge.value == 0.01


def test_accuracy_curve_beside_other_memories() -> None:
    points = accuracy_curve(100, [0.2, 0.8, 2.0], 0.01, accuracy=0.01)
    for point in points:
        gamma = point.load / math.log(100)
        g = np.random.default_rng(14).standard_normal((4000, 100))
        hebb = np.mean(1 + math.sqrt(gamma) * g[:, 0] > math.sqrt(gamma) * g[:, 1:].max(axis=1))
        assert point.hebbian == pytest.approx(hebb, abs=SIGMAS * 0.5 / math.sqrt(4000))
        assert point.trained.value > max(point.hebbian, 0)
    assert points[1].pseudo_inverse < points[1].hebbian
    assert points[0].pseudo_inverse > points[0].hebbian


# -- solver ----------------------------------------------------------------------------------------
def test_newton_gives_up_rather_than_lie() -> None:
    """From absurd starts it returns None or a true root, never a point with a residual."""
    equations = Equations(Line(), loss_by_name("logistic"), 1.5, 0.1)
    root = solve(equations)
    assert root.residual < 1e-10
    for start in ([20.0, -20.0], [-20.0, 20.0], [0.0, 0.0], [30.0, 30.0]):
        found = newton(equations, np.array(start))
        if found is not None:
            assert found.norm_squared == pytest.approx(root.norm_squared, rel=1e-8)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0, 10, 3, 0.1), "parameters is 0"),
        ((10, 0, 3, 0.1), "facts is 0"),
        ((10, 10, 0, 0.1), "competitors is 0"),
        ((10, 10, 3, -0.1), "ridge is -0.1"),
        ((10, 10, 3, math.nan), "ridge is nan"),
        ((10, 10, 3, 0.1, "banana"), "unknown loss 'banana'"),
        ((10, 10, 3, 0.1, "hinge", 0.0), "accuracy is 0.0"),
        ((10, 10, 3, 0.1, "hinge", math.nan), "accuracy is nan"),
        ((10, 10, 3, 0.1, "hinge", 0.01, -1), "seed is -1"),
        ((10, 10, 3, 0.1, "logistic"), "competitors is 3"),
        ((10**6, 10**6, 10**8, 0.1, "hinge"), "competitors is about"),
        ((10, 10**14, 3, 0.1), "facts per parameter"),
        ((10, 10, 10**101, 0.1), "above 10.15"),
    ],
)
def test_bad_input(arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        predict(*arguments)
