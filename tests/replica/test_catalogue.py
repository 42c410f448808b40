"""Every (prior, criterion) pair of the catalogue passes the same tests; then special cases."""

from __future__ import annotations

import re
import time
from functools import lru_cache
from typing import Any

import latex2mathml.converter
import mpmath
import numpy as np
import pytest
import sympy as sp

from replica import catalogue
from replica.catalogue import CRITERIA, PRIORS, model
from replica.code import to_python
from replica.errors import InvalidInput
from replica.free_entropy import FreeEntropy
from replica.gaussian import Phi, plain
from replica.printing import sympifiable
from replica.symbols import V, alpha, gamma, margin, q, r, rank_ratio

PAIRS = [(p, c) for p in PRIORS for c in CRITERIA]
# Reading back the triple integrals of list_wise takes SymPy's parser long.
READ_BACK = [
    pytest.param(p, c, marks=[pytest.mark.long] if c == "list_wise" else []) for p, c in PAIRS
]
KEYS = ["free_entropy", "saddle_point", "stability", "capacity_equation", "critical_load"]
# A finite model of every criterion, small enough for a grid: every score an explicit variable.
FINITE: dict[str, dict[str, Any]] = {
    "top_one": {"competitors": 1},
    "list_wise": {"competitors": 2, "list_size": 2},
    "halfspace": {},
    "tail_average": {"r": sp.Rational(1, 3)},
}


@lru_cache(maxsize=32)
def numpy_functions(prior: str, criterion: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {}
    entry = model(prior, criterion, **FINITE[criterion])
    results = {
        "free_entropy": entry.free_entropy,
        "saddle_point": entry.saddle_point_equations[0],
    }
    exec(to_python(results), namespace)
    return namespace


@pytest.mark.parametrize(("prior", "criterion"), PAIRS)
def test_derivation_from_scratch_within_five_seconds(prior: str, criterion: str) -> None:
    entry = FreeEntropy(PRIORS[prior](), CRITERIA[criterion]())  # not the cached model
    start = time.process_time()
    derivation = entry.derivation
    assert time.process_time() - start < 5
    assert [key for key in KEYS if key not in derivation.results] == []
    assert model(prior, criterion) is model(prior, criterion)


@pytest.mark.parametrize(("prior", "criterion"), READ_BACK)
def test_every_string_is_read_back_as_the_same_expression(prior: str, criterion: str) -> None:
    derivation = model(prior, criterion).derivation
    data = derivation.to_json()
    allowed = {"q", "q0", "q1", "block", "alpha", "gamma", "M", "L", "margin", "rank_ratio", "r"}
    allowed |= {"list_size", "n", "d"}
    for key, value in derivation.results.items():
        texts = data[key] if isinstance(data[key], list) else [data[key]]
        values = value if isinstance(value, list) else [value]
        for text, expression in zip(texts, values, strict=True):
            if len(text) > 20_000:  # one-step formulas of list_wise: parsing takes minutes
                continue
            read = sp.sympify(text)
            names = {symbol.name for symbol in read.free_symbols}
            if key == "critical_load_parametric":
                names -= {"theta"}  # the parameter of the curve
            assert names <= allowed
            if len(text) > 3000:
                continue
            again = sp.sympify(sympifiable(read))
            assert again == read  # nothing is lost on the way
            assert same_value(read, plain(expression))
    for step in data["steps"]:
        sp.sympify(step["sympy"])


def same_value(read: Any, expression: Any) -> bool:
    """Equal at a point, where no integral or unknown function is in the way; else same heads."""
    if read.has(sp.Integral, sp.Sum, sp.core.function.AppliedUndef):
        heads = [{f.func.__name__ for f in e.atoms(sp.Function)} for e in (read, expression)]
        averages = {"ScoreAverage", "IncrementAverage"}  # our class, an unknown function once read
        return heads[0] - averages == heads[1] - averages
    sides = [getattr(e, "lhs", e) - getattr(e, "rhs", 0) for e in (read, expression)]
    names = sorted({s.name for side in sides for s in side.free_symbols})
    values = {name: sp.Rational(3 + 2 * i, 17) for i, name in enumerate(names)}
    numbers = [
        sp.N(side.subs({s: values[s.name] for s in side.free_symbols}), 20) for side in sides
    ]
    return bool(abs(numbers[0] - numbers[1]) < 1e-15)


@pytest.mark.parametrize(("prior", "criterion"), PAIRS)
def test_latex_of_every_step_converts(prior: str, criterion: str) -> None:
    for step in model(prior, criterion).derivation:
        markup = latex2mathml.converter.convert(step.latex)
        assert "<math" in markup
        assert "merror" not in markup
        assert r"\\" not in markup.replace(r"\\(", "")


@pytest.mark.parametrize(("prior", "criterion"), PAIRS)
def test_words_of_the_latex_document_are_escaped(prior: str, criterion: str) -> None:
    """Outside formulas no character is left that stops LaTeX (_, ^, &, #, %, a lone $ or brace)."""
    source = model(prior, criterion).derivation.to_latex()
    words = re.sub(r"\\\[.*?\\\]|\$[^$\n]*\$", "", source, flags=re.DOTALL)
    words = re.sub(r"\\text[a-z]+\{\}|\\item|\\[_#$%&{}]", "", words)
    words = re.sub(r"\\(?:section\*|begin|end)\{([^{}]*)\}", r"\1", words)
    assert not set(words) & set("\\_^&#%$~{}<>|"), words
    assert words.isascii()


@pytest.mark.parametrize(("prior", "criterion"), PAIRS)
def test_derivative_of_the_free_entropy_is_the_saddle_point_residual(
    prior: str, criterion: str
) -> None:
    if criterion == "list_wise":
        pytest.skip("five nested integrals: the gradient is compared score by score below")
    functions = numpy_functions(prior, criterion)
    grid = (44, 6.5) if criterion == "top_one" else (300, 12.0)
    functions["NODES"], functions["REACH"] = grid
    rng = np.random.default_rng(len(prior) * 100 + len(criterion))
    for _ in range(2):
        point = {"gamma": rng.uniform(0.3, 1.2), "margin": rng.uniform(-0.3, 0.5)}
        if prior == "low_rank":
            point["rank_ratio"] = rng.uniform(0.2, 0.9)
        overlap, step = rng.uniform(0.2, 0.45), 1e-3
        ends = [functions["free_entropy"](q=overlap + s, **point) for s in (step, -step)]
        derivative = (ends[0] - ends[1]).real / (2 * step)
        residual = np.real(functions["saddle_point"](q=overlap, **point))
        tolerance = 1e-3 if criterion == "top_one" else 1e-5
        # the equation is written as 2 S' = gamma E |grad log Z|^2
        assert residual == pytest.approx(2 * derivative, abs=tolerance)


@pytest.mark.parametrize("criterion", list(CRITERIA))
def test_gradient_hessian_and_heat_equation_at_random_scores(criterion: str) -> None:
    """The explicit derivatives of log Z against differences of Z; Z obeys the heat equation."""
    finite = {**FINITE, "top_one": {"competitors": 2}}[criterion]
    explicit = CRITERIA[criterion](margin=sp.Rational(1, 5), **finite)
    names = [str(symbol) for symbol, _ in explicit.scores]
    functions: dict[str, Any] = {}
    exec(
        to_python(
            {
                "z": explicit.probability(),
                "gradient": explicit.squared_gradient(),
                "hessian": explicit.squared_hessian(),
            }
        ),
        functions,
    )
    functions["NODES"] = 64 if criterion == "list_wise" else 150
    functions["REACH"] = 9.0
    scores = np.random.default_rng(4).normal(size=len(names)) * 0.7

    def z(shift: np.ndarray, v: float = 0.6) -> float:
        at = dict(zip(names, scores + shift, strict=True))
        return float(np.real(functions["z"](V=v, **at)))

    h, unit = 2e-3, np.eye(len(names))
    log = np.log
    slopes = [(log(z(h * e)) - log(z(-h * e))) / (2 * h) for e in unit]
    at = dict(zip(names, scores, strict=True))
    assert np.real(functions["gradient"](V=0.6, **at)) == pytest.approx(
        np.sum(np.square(slopes)), rel=1e-4
    )
    second = [
        [
            (log(z(h * (a + b))) - log(z(h * (a - b))) - log(z(h * (b - a))) + log(z(-h * (a + b))))
            / (4 * h * h)
            for a in unit
        ]
        for b in unit
    ]
    assert np.real(functions["hessian"](V=0.6, **at)) == pytest.approx(
        np.sum(np.square(second)), rel=1e-3
    )
    centre = z(0 * unit[0])
    laplacian = sum((z(h * e) - 2 * centre + z(-h * e)) / h**2 for e in unit)
    in_time = (z(0 * unit[0], 0.6 + h) - z(0 * unit[0], 0.6 - h)) / (2 * h)
    assert in_time == pytest.approx(laplacian / 2, rel=1e-3)


@pytest.mark.parametrize("criterion", ["top_one", "list_wise"])
def test_symbolic_competitors_give_the_same_derivatives(criterion: str) -> None:
    """The representative-score formulas at M = 2 against the explicit two-competitor model."""
    extra = {"list_size": 2} if criterion == "list_wise" else {}
    symbolic, explicit = CRITERIA[criterion](**extra), CRITERIA[criterion](competitors=2, **extra)
    results: list[dict[str, Any]] = []
    for entry in (symbolic, explicit):
        space: dict[str, Any] = {}
        exec(to_python({"z": entry.probability(), "h": entry.squared_hessian()}), space)
        space["NODES"], space["REACH"] = 64, 9.0
        results.append(space)
    scores = np.array([0.3, -0.4, 0.8])
    named = {f"omega_{i}": scores[i] for i in range(3)}
    for name in ("z", "h"):
        # exchangeable scores: average the representative formula over the order of competitors
        orders = [scores, scores[[0, 2, 1]]]
        values = []
        for order in orders:
            results[0]["omega"] = order  # outside an average the scores are plain numbers
            values.append(np.real(results[0][name](M=2, V=0.7, margin=0.1)))
        direct = np.real(results[1][name](V=0.7, margin=0.1, **named))
        assert np.mean(values) == pytest.approx(direct, rel=1e-8)


@pytest.mark.parametrize("criterion", list(CRITERIA))
def test_small_variance_limit_is_the_squared_distance(criterion: str) -> None:
    """V log Z(omega, V) -> -dist^2(omega, C)/2 at fixed scores, dist by direct minimisation."""
    options = {"top_one": {"competitors": 3}, "list_wise": {"competitors": 3, "list_size": 2}}
    entry = CRITERIA[criterion](margin=0, **options.get(criterion, FINITE[criterion]))
    symbols = [symbol for symbol, _ in entry.scores]
    rng = np.random.default_rng(9)
    names = [str(s) for s in symbols]
    namespace: dict[str, Any] = {}
    exec(to_python({"z": entry.probability()}), namespace)
    namespace["NODES"], namespace["REACH"] = 900, 6.0
    for _ in range(3):
        scores = rng.normal(size=len(symbols))
        scores[0] -= 1.0  # outside C
        values = dict(zip(names, scores, strict=True))
        # the Fourier sum of list_wise cancels to 1e-16: keep Z above that
        variances = (0.2, 0.1) if criterion == "list_wise" else (0.04, 0.02)
        slopes = []
        for v in variances:
            slopes.append(-2 * v * np.log(np.real(namespace["z"](V=v, **values))))
        # -2 V log Z = dist^2 - c V log V + O(V): differences against the exact distance shrink
        exact = direct_distance(criterion, scores, entry)
        errors = [abs(s - exact) for s in slopes]
        assert errors[1] < 0.75 * errors[0]
        assert errors[1] < 1.5 * variances[1] * (4 + len(symbols) * np.log(1 / variances[1]))


def direct_distance(criterion: str, scores: np.ndarray, entry: Any) -> float:
    if len(scores) == 1:
        return max(float(sp.N(entry.threshold)) - scores[0], 0.0) ** 2
    skipped = 1 if criterion == "list_wise" else 0
    rivals = np.sort(scores[1:])[::-1][skipped:]
    t = np.linspace(-6, 6, 1_200_001)
    cost = np.maximum(t - scores[0], 0) ** 2
    for rival in rivals:
        cost = cost + np.maximum(rival - t, 0) ** 2
    return float(cost.min())


@pytest.mark.parametrize("criterion", ["halfspace", "tail_average"])
@pytest.mark.parametrize("prior", list(PRIORS))
def test_capacity_equation_is_the_limit_of_the_saddle_point(prior: str, criterion: str) -> None:
    entry = model(prior, criterion, **FINITE[criterion])
    equation = entry.saddle_point_equations[0]
    namespace: dict[str, Any] = {}
    exec(to_python({"residual": equation, "capacity": entry.capacity_equation}), namespace)
    namespace["NODES"] = 6000
    point = {"gamma": 0.8, "margin": 0.3}
    if prior == "low_rank":
        point["rank_ratio"] = 0.4
    limit = -namespace["capacity"](**point)
    scaled = [(1 - x) ** 2 * namespace["residual"](q=x, **point) for x in (0.99, 0.995, 0.9975)]
    errors = [abs(value - limit) for value in scaled]
    assert errors[2] < 0.02
    assert errors[2] < 0.6 * errors[1] < 0.4 * errors[0]


def test_known_special_cases() -> None:
    assert model("spherical", "halfspace", margin=0).capacity == 2
    general = model("spherical", "halfspace").capacity
    gardner = 1 / (
        (1 + margin**2) * Phi(margin) + margin * sp.exp(-(margin**2) / 2) / sp.sqrt(2 * sp.pi)
    )
    assert sp.cancel(1 / plain(general) - plain(1 / gardner)).expand() == 0
    # M = 1 is the perceptron without margin; with one its halfspace is that of y_0 - y_1 ~ N(0, 2)
    assert model("spherical", "top_one", competitors=1, margin=0).capacity.doit() == 2
    top = model("spherical", "top_one", competitors=1, margin=1)
    half = model("spherical", "halfspace", margin=1 / sp.sqrt(2))
    assert float(sp.re(sp.N(top.capacity))) == pytest.approx(float(half.capacity), rel=1e-10)
    loads = {
        ("spherical", "top_one"): 1 / (2 * (1 + margin) ** 2),
        ("spherical", "list_wise"): 1 / (2 * (1 + margin) ** 2),
    }
    for pair, value in loads.items():
        assert sp.cancel(model(*pair).critical_load - value) == 0
    low = model("low_rank", "top_one").critical_load
    assert float(low.subs({rank_ratio: sp.Rational(1, 2), margin: 0}).evalf()) == pytest.approx(
        0.893730793878 / 2
    )
    assert low.subs(rank_ratio, 1) == 1 / (2 * (1 + margin) ** 2)


def test_scaling_limit_of_the_main_job() -> None:
    results = model("spherical", "top_one").derivation.results
    assert results["overlap"].subs(margin, 0) == sp.Eq(q, 2 * alpha)
    phi = results["free_entropy_at_saddle"].subs(margin, 0)
    assert sp.expand(phi - sp.log(1 - 2 * alpha) / 2) == 0
    assert results["critical_load"].subs(margin, 0) == sp.Rational(1, 2)


@pytest.mark.parametrize(
    ("fraction", "expected"),
    [
        ("1", "2"),
        ("1/2", "0.65771272794427184"),
        ("1/10", "0.24579858679165682"),
        ("1/100", "0.12341589446294176"),
    ],
)
def test_tail_average_reference_values(fraction: str, expected: str) -> None:
    capacity = model("spherical", "tail_average", margin=0, r=sp.Rational(fraction)).capacity
    assert abs(sp.N(capacity, 25) - sp.Float(expected, 25)) < 1e-16


def test_tail_average_short_lists_need_2_n_log_n() -> None:
    result = model("spherical", "tail_average").derivation.results["small_r_limit"]
    n, d = (sp.Symbol(name, positive=True) for name in "nd")
    assert result == sp.Eq(d**2, 2 * n * sp.log(n))
    # numerically: gamma_c 2 log(1/r) approaches 1 from far away, monotonically
    capacity = model("spherical", "tail_average", margin=0).capacity
    ratios = [
        float(sp.N(capacity.subs(r, sp.Rational(1, 10**e)) * 2 * sp.log(10**e), 20))
        for e in (4, 40, 400)
    ]
    gaps = [abs(1 - value) for value in ratios]
    assert gaps[2] < gaps[1] < gaps[0]
    assert gaps[2] < 0.02


def test_thirty_digits_symbolic_equals_numeric() -> None:
    third = sp.Rational(1, 3)
    with mpmath.workdps(40):
        m = mpmath.mpf(1) / 3
        by_quadrature = 1 / mpmath.quad(
            lambda z: (m - z) ** 2 * mpmath.npdf(z), [-20, -10, -5, -2, 0, m]
        )
        symbolic = sp.N(model("spherical", "halfspace", margin=third).capacity, 35)
        assert abs(mpmath.mpf(str(symbolic)) - by_quadrature) < mpmath.mpf(10) ** -30
        kappa = mpmath.quad(lambda z: z * mpmath.npdf(z), [0, 2, 5, 10, 20]) * 2
        delta = mpmath.quad(
            lambda z: (kappa - z) ** 2 * mpmath.npdf(z), [-20, -10, -5, -2, 0, kappa]
        )
        tail = model("spherical", "tail_average", margin=0, r=sp.Rational(1, 2)).capacity
        assert abs(mpmath.mpf(str(sp.N(tail, 35))) - 1 / delta) < mpmath.mpf(10) ** -30
        three = model("spherical", "top_one", competitors=3, margin=0).capacity
        # delta(3) = sum k v_k by bivariate orthants, written out by hand
        half = mpmath.mpf(1) / 2
        v1 = 3 * half * (mpmath.mpf(1) / 4 + mpmath.asin(mpmath.mpf(1) / 3) / (2 * mpmath.pi))
        v2 = 3 * half / 6
        v3 = half - v1  # odd volumes sum to 1/2
        assert abs(mpmath.mpf(str(sp.N(three, 35))) - 1 / (v1 + 2 * v2 + 3 * v3)) < 1e-30


def test_replicon_is_positive_below_capacity_and_reaches_zero_at_it() -> None:
    namespace: dict[str, Any] = {}
    exec(to_python({"stability": model("spherical", "halfspace", margin=0).stability}), namespace)
    exec(
        to_python({"saddle": model("spherical", "halfspace", margin=0).saddle_point_equations[0]}),
        saddle := {},
    )
    namespace["NODES"] = saddle["NODES"] = 3000
    values = []
    for overlap in (0.3, 0.9, 0.99):
        # gamma at which this overlap solves the (linear in gamma) saddle point
        at = [saddle["saddle"](gamma=g, q=overlap) for g in (0.0, 1.0)]
        load = at[0] / (at[0] - at[1])
        values.append(namespace["stability"](gamma=load, q=overlap))
    assert values[0] > values[1] > values[2] > 0
    assert values[2] < 0.1


def test_score_average_code_agrees_with_explicit_quadrature() -> None:
    # symbolic number of competitors (Monte Carlo over scores) against the explicit model, M = 1;
    # 20000 draws: standard error about 0.01, test at 5 of them
    symbolic: dict[str, Any] = {}
    explicit: dict[str, Any] = {}
    exec(to_python({"phi": model("spherical", "top_one").free_entropy}), symbolic)
    exec(to_python({"phi": model("spherical", "top_one", competitors=1).free_entropy}), explicit)
    symbolic["SAMPLES"], symbolic["NODES"] = 20_000, 80
    explicit["NODES"], explicit["REACH"] = 60, 8.0
    point = {"q": 0.35, "gamma": 1.0, "margin": 0.2}
    assert symbolic["phi"](M=1, **point) == pytest.approx(explicit["phi"](**point), abs=0.05)


def test_unknown_names_and_parameters_are_refused() -> None:
    with pytest.raises(InvalidInput, match="unknown prior 'cubic'; the known ones are: spherical"):
        model("cubic")
    with pytest.raises(InvalidInput, match="unknown criterion"):
        model("spherical", "best")
    with pytest.raises(InvalidInput, match="no parameter 'rank_ratio'"):
        model("spherical", "top_one", rank_ratio=1)
    with pytest.raises(InvalidInput, match="competitors is 0"):
        model("spherical", "top_one", competitors=0)
    with pytest.raises(InvalidInput, match="list_size is 4 with 3"):
        model("spherical", "list_wise", competitors=3, list_size=4)
    with pytest.raises(InvalidInput, match="r is 2"):
        model("spherical", "tail_average", r=2)
    assert catalogue.PRIORS
    assert V.is_positive
    assert gamma.is_positive
