"""The trained memory, symbolic: every step checked against something computed another way."""

from __future__ import annotations

from typing import Any

import mpmath as mp
import pytest
import sympy as sp

from replica import symbols as s
from replica.criteria.tail_average import TailAverage as TailAverageCriterion
from replica.criteria.top_one import TopOne
from replica.errors import InvalidInput
from replica.gaussian import GaussianAverage
from replica.trained import LOSSES, theory
from replica.trained.envelope import Envelope
from replica.trained.limits import HebbianLimit, RidgelessLimit, kappa
from replica.trained.losses.base import explicit_scores
from replica.trained.losses.cross_entropy import S1, S2, CrossEntropy, softmax_hessian, u
from replica.trained.losses.squared import Squared
from replica.trained.losses.star import h, k, star_eigenvalues, star_laplacian, star_trace
from replica.trained.losses.tail_average import TailAverage
from replica.trained.symbols import Q, beta, ridge


@pytest.mark.parametrize("name", list(LOSSES))
def test_every_loss_has_a_complete_derivation(name: str) -> None:
    derivation = theory(name).derivation
    results = derivation.results
    assert {"free_entropy", "energy", "norm_equation", "response_equation", "trace"} <= set(results)
    assert len(derivation.steps) >= 17
    assert "Moreau" in derivation.to_text()
    assert r"\begin{enumerate}" in derivation.to_latex()
    assert derivation.to_json()["norm_equation"]


def test_unknown_loss() -> None:
    with pytest.raises(InvalidInput, match="unknown loss 'banana'"):
        theory("banana")


def test_the_two_equations() -> None:
    """Q = gamma E|x - omega|^2 and 1/V = lambda + gamma E tr, as THEORY section 8 states them."""
    t = theory("cross_entropy")
    scores = (s.omega0, s.omega1)
    average = [(w, Q) for w in scores]
    step = sp.Function("step", nonnegative=True)(*scores, s.V)
    trace = sp.Function("trace", nonnegative=True)(*scores, s.V)
    assert t.norm_equation == sp.Eq(Q, s.gamma * GaussianAverage(step**2, *average))
    expected = sp.Eq(1 / s.V, ridge + s.gamma * GaussianAverage(trace, *average))
    assert t.response_equation == expected


def test_prior_terms_from_explicit_matrices() -> None:
    """(1/2) log det Q - (beta lambda/2) tr Q of explicit n x n matrices, continued to n = 0.

    det = a^(n-1) (a + n q) with a = V/beta, by explicit determinants at n = 1, 2, 3.
    """
    matrix = theory("hinge").overlap_matrix
    for n in (1, 2, 3):
        explicit = matrix.explicit(n).det()
        gap = s.V / beta
        assert sp.simplify(explicit - gap ** (n - 1) * (gap + n * s.q)) == 0
    expected = (
        sp.log(s.V / beta) / 2 + beta * s.q / (2 * s.V) - beta * ridge * (s.q + s.V / beta) / 2
    )
    assert sp.simplify(theory("hinge").prior_terms - expected) == 0


def test_laplace_step_exactly_for_the_squared_loss() -> None:
    """-(1/beta) log E_x e^{-beta l(omega + sqrt(V/beta) x)} in closed form; its limit is M_V."""
    x = sp.Symbol("x", real=True)
    exponent = -beta * (s.omega0 + sp.sqrt(s.V / beta) * x - 1) ** 2 / 2 - x**2 / 2
    integral = sp.integrate(sp.exp(sp.expand(exponent)), (x, -sp.oo, sp.oo)) / sp.sqrt(2 * sp.pi)
    value = sp.expand_log(sp.log(sp.simplify(integral)), force=True)
    limit = sp.limit(sp.expand(-value / beta), beta, sp.oo)
    loss = Squared()
    point = loss.proximal_point
    envelope = loss.value([point]) + (point - s.omega0) ** 2 / (2 * s.V)
    assert sp.simplify(limit - envelope) == 0


def test_stationarity_of_an_explicit_energy() -> None:
    """The energy of the squared loss written out and differentiated by hand of SymPy."""
    loss = Squared()
    point = loss.proximal_point
    envelope = sp.expand(loss.value([point]) + (point - s.omega0) ** 2 / (2 * s.V))
    mean = GaussianAverage(envelope, (s.omega0, Q)).doit()
    energy = theory("squared").prior_energy + s.gamma * mean
    solved = {Q: loss.norm, ridge: 1 / s.V - s.gamma * loss.trace}
    assert sp.simplify(energy.diff(s.V).subs(solved)) == 0
    assert sp.simplify(energy.diff(Q).subs(solved)) == 0


def test_envelope_theorem_against_numbers() -> None:
    """dM/dV, dM/domega and d^2M/domega^2 of the logistic envelope by numerical differentiation."""
    mp.mp.dps = 30

    def loss(x: Any) -> Any:
        return mp.log1p(mp.exp(-x))

    def prox(w: Any, v: Any) -> Any:
        return mp.findroot(lambda x: x - w - v / (1 + mp.exp(x)), w)

    def envelope(w: Any, v: Any) -> Any:
        x = prox(w, v)
        return loss(x) + (x - w) ** 2 / (2 * v)

    w, v = mp.mpf("0.7"), mp.mpf("2.5")
    x = prox(w, v)
    curvature = mp.exp(-x) / (1 + mp.exp(-x)) ** 2
    point, eigenvalue = sp.Symbol("x_0", real=True), sp.Symbol("h", nonnegative=True)
    values = {s.omega0: w, s.V: v, point: x, eigenvalue: curvature}
    formulas = Envelope()
    numbers = [
        mp.diff(lambda y: envelope(w, y), v),
        mp.diff(lambda y: envelope(y, v), w),
        mp.diff(lambda y: envelope(y, v), w, 2),
    ]
    for formula, number in zip(
        (formulas.in_variance, formulas.in_score, formulas.curvature), numbers, strict=True
    ):
        assert abs(sp.N(formula.subs(values), 25) - number) < 1e-10
    mp.mp.dps = 15


# -- losses ------------------------------------------------------------------------------------
@pytest.mark.parametrize("competitors", [1, 2, 3])
def test_cross_entropy_trace_from_the_explicit_matrix(competitors: int) -> None:
    """tr H (1 + V H)^-1 by inverting the (M+1)-square matrix at rational softmax weights."""
    weights = [sp.Rational(i + 2, sum(range(2, competitors + 3))) for i in range(competitors + 1)]
    names = sp.symbols(f"pi_0:{competitors + 1}", positive=True)
    matrix = softmax_hessian(competitors).subs(dict(zip(names, weights, strict=True)))
    explicit = (matrix * (sp.eye(competitors + 1) + s.V * matrix).inv()).trace()
    ratios = [s.V * w / (1 + s.V * w) for w in weights]
    sums = {S1: sum(ratios), S2: sum(r**2 for r in ratios)}
    assert sp.cancel(explicit - CrossEntropy().trace.subs(sums)) == 0


def test_cross_entropy_shares_solve_stationarity() -> None:
    """x = a - u with the Lambert form of u and c fixed by sum u = V, put into the raw condition."""
    loss = CrossEntropy()
    v, fields = sp.Rational(5, 2), [sp.Rational(3, 10), sp.Rational(-6, 5), sp.Rational(9, 10)]
    a = [fields[0] + v, *fields[1:]]
    symbol_a, symbol_c = sp.symbols("a c", real=True)

    def shares(level: Any) -> list[Any]:
        values = {symbol_a: 0, symbol_c: level, s.V: v}
        return [sp.N(loss.proximal_share.subs({**values, symbol_a: x}), 30) for x in a]

    level = sp.nsolve(
        sum(loss.proximal_share.subs({symbol_a: x, s.V: v}) for x in a) - v, symbol_c, 2, prec=30
    )
    point = [x - share for x, share in zip(a, shares(level), strict=True)]
    x = explicit_scores(2)
    w = explicit_scores(2, "w")
    values = dict(zip(x, point, strict=True)) | dict(zip(w, fields, strict=True)) | {s.V: v}
    for condition in loss.stationarity(x, w):
        assert abs(sp.N(condition.subs(values), 25)) < 1e-24
    assert sp.sympify(u).is_positive


@pytest.mark.parametrize("leaves", [1, 2, 3, 4])
def test_star_from_the_explicit_matrix(leaves: int) -> None:
    explicit: dict[Any, Any] = star_laplacian(leaves).eigenvals()
    general: dict[Any, Any] = {}
    for value, multiplicity in star_eigenvalues():
        key, count = value.subs(k, leaves), sp.sympify(multiplicity).subs(k, leaves)
        if count:
            general[key] = general.get(key, 0) + count
    assert explicit == general
    matrix = h * star_laplacian(leaves)
    trace = (matrix * (sp.eye(leaves + 1) + s.V * matrix).inv()).trace()
    assert sp.cancel(trace - star_trace(h).subs(k, leaves)) == 0


@pytest.mark.parametrize("name", ["cross_entropy", "hinge", "squared_hinge", "tail_average"])
def test_hebbian_gradient_from_explicit_scores(name: str) -> None:
    """The gradient at s = 0 with three competitors; averaged over ties for the tail average."""
    loss = TailAverage(2) if name == "tail_average" else LOSSES[name]()
    scores = explicit_scores(3)
    # the derivative along a direction at a point of non-ties near zero, averaged over orders
    from itertools import permutations

    total = sp.zeros(4, 1)
    orders = list(permutations(range(1, 4)))
    tiny = sp.Rational(1, 10**9)
    for order in orders:
        values = {scores[0]: 0} | {scores[i]: tiny * rank for rank, i in enumerate(order, 1)}
        total += sp.Matrix([part.subs(values).doit() for part in loss.gradient(scores)])
    target, rival = (sp.sympify(x).subs(s.M, 3) for x in loss.hebbian_gradient)
    average = total / len(orders)
    assert abs(sp.N(average[0] - target)) < 1e-7
    for i in range(1, 4):
        assert abs(sp.N(average[i] - rival)) < 1e-7


@pytest.mark.parametrize("name", list(LOSSES))
def test_gradients_of_lead_losses_sum_to_zero(name: str) -> None:
    if name == "squared":
        return  # depends on the target alone
    target, rival = LOSSES[name]().hebbian_gradient
    number = 1 if name == "logistic" else s.M
    assert sp.simplify(target + number * rival) == 0


# -- limits --------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", list(LOSSES))
def test_large_ridge_is_hebb_up_to_one_over_m(name: str) -> None:
    gain = HebbianLimit(LOSSES[name]()).gain
    assert sp.limit(gain, s.M, sp.oo) == (2 if name == "logistic" else 1)
    # M = 1 is the logistic case of the general formula
    if name == "cross_entropy":
        assert gain.subs(s.M, 1) == HebbianLimit(LOSSES["logistic"]()).gain


def test_no_ridge_recovers_the_capacity_equation() -> None:
    limit = RidgelessLimit(TopOne())
    assert limit.derivation.results["capacity_equation"].rhs == 1
    tail = RidgelessLimit(TailAverageCriterion(r=sp.Rational(1, 10)))
    gamma = tail.critical_gamma
    assert abs(float(gamma.evalf(15)) - 0.2457985867916568) < 1e-14  # THEORY section 7


def test_no_ridge_one_competitor_in_closed_form() -> None:
    """delta = E (kappa/sqrt 2 - g)_+^2 for M = 1; V lambda = gamma kappa delta'/2."""
    limit = RidgelessLimit(TopOne(competitors=1))
    assert limit.critical_gamma == 2
    g = sp.Symbol("g", real=True)
    direct = GaussianAverage((kappa / sp.sqrt(2) - g) ** 2, (g, 1, -sp.oo, kappa / sp.sqrt(2)))
    for value in (sp.Rational(1, 10), sp.Rational(7, 5)):
        with_formula = limit.distance_squared.subs(kappa, value).doit()
        assert (
            abs(sp.N(sp.re(with_formula) - direct.doit().subs(kappa, value).evalf(20), 15)) < 1e-12
        )
    name = sp.Function("delta", positive=True)(kappa)
    assert sp.simplify(limit.order_parameter - s.gamma * kappa * name.diff(kappa) / 2) == 0


def test_pseudo_inverse_without_ridge() -> None:
    """Interpolation: W = sum of p nearly orthonormal rows scaled: Q = gamma/(1 - gamma)."""
    below, above = Squared().without_ridge()
    assert sp.simplify(below - s.gamma / (1 - s.gamma)) == 0
    assert sp.simplify(above - 1 / (s.gamma - 1)) == 0
    # the general root at a small ridge tends to both
    for gamma, expected in ((sp.Rational(1, 2), below), (3, above)):
        loss = Squared()
        order = loss.order_parameter.subs({s.gamma: gamma, ridge: sp.Rational(1, 10**9)})
        value = loss.norm.subs(s.gamma, gamma).subs(s.V, order)
        assert abs(sp.N(value - expected.subs(s.gamma, gamma), 20)) < 1e-7


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_code_of_every_loss_compiles(name: str) -> None:
    """Unspecified functions (envelope, step, trace) become arguments; `lambda` is renamed."""
    derivation = theory(name).derivation
    namespace: dict[str, Any] = {}
    exec(derivation.to_python(), namespace)
    value = namespace["norm_equation"](Q=2.0, V=0.5, gamma=0.3, step=lambda a, b, V: 1.0 + 0 * a)
    # Q - gamma E step^2 with step = 1
    assert float(value) == pytest.approx(1.7, rel=1e-9)
    value = namespace["response_equation"](
        Q=2.0, V=0.5, gamma=0.3, lambda_=0.1, trace=lambda a, b, V: 2.0 + 0 * a
    )
    assert float(value) == pytest.approx(1 / 0.5 - 0.1 - 0.3 * 2.0, rel=1e-9)
    source = derivation.to_mathematica()
    assert "normEquation" in source
    assert "Indexed" not in source
