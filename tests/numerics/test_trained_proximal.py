"""Proximal maps of the trained memory against their definition, dense matrices and minimisers."""

from __future__ import annotations

from collections.abc import Callable

import mpmath as mp
import numpy as np
import pytest
import sympy as sp
from scipy import optimize, special

from numerics.trained.catalogue import LOSSES, loss_by_name
from numerics.trained.losses.base import Array, Loss
from numerics.trained.losses.clipped import clipped_level
from numerics.trained.losses.cross_entropy import CrossEntropy
from numerics.trained.losses.hinge import Hinge
from numerics.trained.losses.tail_average import TailAverage
from numerics.trained.wright import SERIES, wright_omega, wright_omega_series
from replica.errors import InvalidInput
from replica.trained import LOSSES as FORMULAS
from replica.trained.losses.base import TrainedLoss, explicit_scores

M = 12
SMOOTH = ("cross_entropy", "squared_hinge", "squared")


def _loss(name: str) -> Loss:
    return TailAverage(0.25) if name == "tail_average" else loss_by_name(name)


def _formula(name: str) -> TrainedLoss:
    return FORMULAS[name]()


def _width(name: str) -> int:
    return 2 if name == "logistic" else M + 1


def _fields(name: str, rows: int = 40, scale: float = 2.0) -> Array:
    return scale * np.random.default_rng(3).standard_normal((rows, _width(name)))


# -- Wright's omega ------------------------------------------------------------------------------
def test_wright_omega_against_mpmath() -> None:
    y = np.concatenate(
        [np.linspace(-45, 12, 301), -np.geomspace(40, 700, 30), np.geomspace(12, 1e6, 40)]
    )
    with mp.workdps(40):
        exact = [mp.lambertw(mp.exp(mp.mpf(float(value)))).real for value in y]
        pairs = zip(map(float, wright_omega(y)), exact, strict=True)
        error = [abs(float(mp.mpf(w) / w_exact - 1)) for w, w_exact in pairs]
    # at large -y the input's own rounding, |y| eps, is the error of e^y
    assert max(error) < 5e-15
    ordinary = special.wrightomega(np.linspace(-30, 30, 500))
    assert np.allclose(wright_omega(np.linspace(-30, 30, 500)), ordinary, rtol=1e-13, atol=0)


def test_wright_omega_series_coefficients() -> None:
    """(-k)^(k-1)/k!, from SymPy's own expansion of Lambert's function."""
    x = sp.Symbol("x")
    series = sp.series(sp.LambertW(x), x, 0, len(SERIES) + 1).removeO()
    assert [float(series.coeff(x, k + 1)) for k in range(len(SERIES))] == pytest.approx(SERIES)
    e = np.exp(np.linspace(-40, -5, 200))
    assert np.allclose(wright_omega_series(e), wright_omega(np.log(e)), rtol=5e-12, atol=0)


# -- definition ----------------------------------------------------------------------------------
@pytest.mark.parametrize("order_v", [1e-6, 1e-3, 1.0, 37.0, 1e3, 1e6])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
def test_cross_entropy_stationarity_in_wide_ranges(order_v: float, scale: float) -> None:
    """x - omega = V (e_0 - softmax(x)), at 30 digits, for the scores that float64 returns."""
    loss = CrossEntropy()
    omega = _fields("cross_entropy", 6, scale)
    found = loss.proximal(omega, order_v)
    with mp.workdps(60):
        for row, step, value in zip(omega, found.step, found.loss, strict=True):
            x = [mp.mpf(float(w)) - mp.mpf(float(m)) for w, m in zip(row, step, strict=True)]
            top = max(x)
            total = sum(mp.exp(y - top) for y in x)
            pi = [mp.exp(y - top) / total for y in x]
            gradient = [p - (i == 0) for i, p in enumerate(pi)]
            size = max(abs(g) for g in gradient)
            for m, g in zip(step, gradient, strict=True):
                # a rounding error eps |x| of a score changes pi by that relative amount
                slack = 1e-13 * (1 + float(max(abs(y) for y in x))) * float(size)
                assert abs(float(mp.mpf(float(m)) / order_v - g)) < slack
            exact = -mp.log1p(-sum(pi[1:]))
            assert float(abs(value / exact - 1)) < 1e-9


@pytest.mark.parametrize("order_v", [1e-6, 1.0, 1e6])
def test_cross_entropy_at_scores_of_seven_hundred(order_v: float) -> None:
    """No overflow, no NaN; the shares sum to V and the target's is V - sum of the others."""
    rng = np.random.default_rng(0)
    omega = rng.uniform(-700, 700, (50, M + 1))
    omega[0] = 700.0
    omega[1] = -700.0
    omega[2], omega[2, 0] = 700.0, -700.0
    omega[3], omega[3, 0] = -700.0, 700.0
    found = CrossEntropy().proximal(omega, order_v)
    for part in (found.step, found.trace, found.loss):
        assert np.all(np.isfinite(part))
    assert np.all(found.loss >= 0)
    assert np.all(found.trace >= 0)
    scores = found.scores(omega)
    pi = special.softmax(scores, axis=1)
    assert np.allclose(found.step[:, 1:] / order_v, pi[:, 1:], rtol=1e-6, atol=1e-9)
    again = CrossEntropy().proximal(omega * (1 + 1e-9), order_v, found.root)
    assert np.allclose(again.step, found.step, rtol=1e-5, atol=1e-5 * order_v)


@pytest.mark.parametrize("name", [*SMOOTH, "logistic"])
@pytest.mark.parametrize("order_v", [0.05, 1.0, 30.0])
def test_smooth_losses_solve_the_symbolic_stationarity(name: str, order_v: float) -> None:
    """x + V grad l(x) = omega with the gradient of `replica`, compiled at explicit scores."""
    omega = _fields(name)
    found = _loss(name).proximal(omega, order_v)
    x = explicit_scores(omega.shape[1] - 1)
    formula = _formula(name)
    gradient = sp.lambdify(x, formula.gradient(x), "numpy")
    value = sp.lambdify(x, formula.value(x), "numpy")
    columns = found.scores(omega).T
    slopes = np.array([np.broadcast_to(g, len(omega)) for g in gradient(*columns)]).T
    assert np.allclose(order_v * slopes, found.step, rtol=1e-9, atol=1e-11)
    assert np.allclose(value(*columns), found.loss, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["hinge", "tail_average", "squared_hinge"])
@pytest.mark.parametrize("order_v", [0.05, 1.0, 30.0])
def test_piecewise_losses_minimise_the_envelope(name: str, order_v: float) -> None:
    """l(x) + |x - omega|^2/(2V), strongly convex of modulus 1/V, grows at least quadratically from

    its minimum: checked at 200 points around the proximal point, l by its definition.
    """
    rng = np.random.default_rng(4)
    omega = _fields(name, 10)
    found = _loss(name).proximal(omega, order_v)
    value: Callable[..., Array]
    if name == "tail_average":

        def value(target: Array, *rivals: Array) -> Array:  # three of twelve
            best = np.sort(np.array(rivals), axis=0)[-3:].mean(axis=0)
            return np.maximum(0, 1 - target + best)

    else:
        x = explicit_scores(M)
        value = sp.lambdify(x, _formula(name).value(x), "numpy")

    def objective(points: Array) -> Array:
        gap = np.sum((points - omega[:, None]) ** 2, axis=2) / (2 * order_v)
        return np.asarray(value(*np.moveaxis(points, 2, 0)) + gap)

    best = found.scores(omega)
    lowest = objective(best[:, None])
    assert np.allclose(value(*best.T), found.loss, rtol=1e-9, atol=1e-10)
    for size in (1e-3, 0.1, 2.0):
        moves = size * rng.standard_normal((10, 200, M + 1))
        growth = objective(best[:, None] + moves) - lowest
        quadratic = np.sum(moves**2, axis=2) / (2 * order_v)
        assert np.all(growth >= quadratic - 1e-9 * (1 + np.abs(lowest)))


@pytest.mark.parametrize("name", list(LOSSES))
@pytest.mark.parametrize("order_v", [0.05, 1.0, 30.0])
def test_trace_is_the_divergence(name: str, order_v: float) -> None:
    """V tr H (1 + V H)^-1 = div (omega - x), by central differences of the proximal map."""
    loss = _loss(name)
    omega = _fields(name)
    found = loss.proximal(omega, order_v)
    divergence = np.zeros(len(omega))
    width = 1e-5
    for i in range(omega.shape[1]):
        move = np.zeros(omega.shape[1])
        move[i] = width
        up, down = loss.proximal(omega + move, order_v), loss.proximal(omega - move, order_v)
        divergence += (up.step[:, i] - down.step[:, i]) / (2 * width)
    assert np.allclose(divergence / order_v, found.trace, rtol=1e-5, atol=1e-5)


def test_cross_entropy_trace_from_dense_matrices() -> None:
    omega, order_v = _fields("cross_entropy", 20, 4.0), 3.0
    found = CrossEntropy().proximal(omega, order_v)
    for row, trace in zip(found.scores(omega), found.trace, strict=True):
        pi = special.softmax(row)
        hessian = np.diag(pi) - np.outer(pi, pi)
        dense = np.trace(hessian @ np.linalg.inv(np.eye(M + 1) + order_v * hessian))
        assert trace == pytest.approx(dense, rel=1e-10)


@pytest.mark.parametrize("name", list(LOSSES))
def test_a_guess_changes_nothing(name: str) -> None:
    """The power sums of the warm start equal the full sums: wide rows, several scales."""
    rng = np.random.default_rng(5)
    width = 2 if name == "logistic" else 301
    rivals = -np.sort(-rng.standard_normal((30, width - 1)), axis=1)
    loss = _loss(name)
    for scale, order_v in ((0.1, 0.3), (2.0, 3.7), (4.0, 40.0)):
        omega = scale * np.column_stack([rng.standard_normal(30), rivals])
        cold = loss.proximal(omega, order_v)
        for shift in (0.97, 1.0, 1.2):
            near = loss.proximal(omega, order_v * shift, cold.root)
            plain = loss.proximal(omega, order_v * shift)
            assert np.allclose(near.step, plain.step, rtol=1e-8, atol=1e-11)
            assert np.allclose(near.trace, plain.trace, rtol=1e-8, atol=1e-11)
            assert np.allclose(near.loss, plain.loss, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("name", ["hinge", "squared_hinge"])
def test_recall_threshold(name: str) -> None:
    """Given the competitors, the target wins exactly when omega_0 exceeds the threshold."""
    loss = _loss(name)
    for order_v in (0.01, 0.6, 5.0):
        omega = _fields(name, 300)
        scores = loss.proximal(omega, order_v).scores(omega)
        won = scores[:, 0] > np.max(scores[:, 1:], axis=1)
        edge = loss.threshold(omega[:, 1:], order_v)
        assert edge is not None
        assert np.array_equal(won, omega[:, 0] > edge)
        if order_v < 0.1:  # both happen
            assert 0 < np.mean(won) < 1


def test_cross_entropy_wins_if_the_raised_target_leads() -> None:
    """x_0 > max x_rho if and only if omega_0 + V > max omega_rho."""
    for order_v in (0.1, 2.0, 9.0):
        omega = _fields("cross_entropy", 300)
        scores = CrossEntropy().proximal(omega, order_v).scores(omega)
        won = scores[:, 0] > np.max(scores[:, 1:], axis=1)
        assert np.array_equal(won, omega[:, 0] + order_v > np.max(omega[:, 1:], axis=1))


def test_clipped_level_against_brent() -> None:
    rng = np.random.default_rng(6)
    rows = rng.standard_normal((50, 20))
    for slope in (0.0, 1.0, 1.4):
        cap = rng.uniform(0.1, 2.0, 50)
        offset = rng.uniform(0.2, 0.8, 50) * 20 * cap if slope == 0 else rng.standard_normal(50)
        level = clipped_level(rows, cap, slope, offset)
        for row, c, o, t in zip(rows, cap, offset, level, strict=True):
            brent = optimize.brentq(
                lambda y, r=row, c=c, o=o, s=slope: np.sum(np.clip(r - y, 0, c)) - s * y - o,
                -60,
                60,
                xtol=1e-13,
            )
            assert t == pytest.approx(brent, abs=1e-10)


def test_the_crammer_singer_hinge_and_one_competitor() -> None:
    """fraction 1/M moves ties of the best competitor only; with M = 1 it is the hinge."""
    rng = np.random.default_rng(7)
    pair = rng.standard_normal((30, 2))
    hinge, tail = Hinge().proximal(pair, 0.7), TailAverage(1.0).proximal(pair, 0.7)
    assert np.allclose(hinge.step, tail.step, atol=1e-12)
    assert np.allclose(hinge.trace, tail.trace)
    omega = rng.standard_normal((30, M + 1))
    found = TailAverage(1.0 / M).proximal(omega, 0.3)
    moved = found.step[:, 1:] > 0
    level = np.max(found.scores(omega)[:, 1:], axis=1)
    assert np.all(omega[:, 1:][moved] > np.repeat(level, moved.sum(axis=1)) - 1e-12)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: loss_by_name("banana"), "unknown loss 'banana'"),
        (lambda: loss_by_name("hinge", 0.5), "only tail_average"),
        (lambda: TailAverage(0.0), "fraction is 0.0"),
        (lambda: TailAverage(0.1).check_competitors(5), "less than one"),
        (lambda: loss_by_name("logistic").check_competitors(3), "competitors is 3"),
    ],
)
def test_bad_input(call: object, words: str) -> None:
    assert callable(call)
    with pytest.raises(InvalidInput, match=words):
        call()
