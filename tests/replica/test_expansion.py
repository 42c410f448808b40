"""The catalogue of expansions, and each of them against a second route."""

from __future__ import annotations

import json

import mpmath as mp
import pytest
import sympy as sp

from numerics.cone import statistical_dimension as certified_dimension
from numerics.cone.gauss import float_level
from replica.errors import InvalidInput
from replica.expansion import capacity, cone, derive_expansion, expansion_names, hebbian
from replica.expansion.gaussian_tail import erfc_at_infinity
from replica.expansion.level import level_in_double_log, resummed_level
from replica.logseries import LogSeries


def value_of(
    series: LogSeries, log_p: float, values: dict[sp.Symbol, object] | None = None
) -> float:
    """A series in L at log p, as a float."""
    expression = hebbian.in_constants(series.as_expr()).subs(values or {})
    point = {series.ring.symbol: log_p, series.ring.log_symbol: sp.log(sp.Float(log_p, 30))}
    return float(expression.subs(point).evalf(20))


@pytest.mark.parametrize("name", sorted(expansion_names()))
def test_every_expansion_prints_and_serialises(name: str) -> None:
    derivation = derive_expansion(name, 1)
    data = json.loads(json.dumps(derivation.to_json()))
    assert data["order"] == 1
    assert data["name"] == name
    assert len(data["steps"]) >= 2
    assert "coefficients" in data or "terms" in data
    for step in data["steps"]:
        assert step["title"]
        assert step["latex"]
    assert derivation.to_text()
    assert derivation.to_latex()
    sp.sympify(data["expression"])
    for term in data.get("terms", []):
        assert set(term) == {"power_of_L", "power_of_ell", "coefficient"}
        sp.sympify(term["coefficient"])


@pytest.mark.parametrize(
    ("name", "order"),
    [
        ("no_such_thing", 2),
        ("capacity", -1),
        ("capacity", 10**6),
        ("statistical_dimension", True),
        ("", 0),
    ],
)
def test_bad_requests_get_one_sentence(name: str, order: int) -> None:
    with pytest.raises(InvalidInput) as caught:
        derive_expansion(name, order)
    assert "\n" not in str(caught.value)


def test_the_default_order_is_one_that_is_offered() -> None:
    assert derive_expansion("statistical_dimension").extra["order"] == 6
    assert derive_expansion("hebbian_typical").extra["order"] == 3


def test_statistical_dimension_coefficients() -> None:
    data = derive_expansion("statistical_dimension", 6).to_json()
    assert len(data["coefficients"]) == 7
    assert data["coefficients"][:3] == ["1", "3", "-9"]
    assert all(sp.Rational(c) for c in data["coefficients"])


def test_capacity_terms_rebuild_the_expression() -> None:
    data = derive_expansion("capacity", 3).to_json()
    size = sp.Symbol("L")
    rebuilt = sp.Add(
        *(
            size ** sp.Rational(t["power_of_L"])
            * sp.log(size) ** t["power_of_ell"]
            * sp.sympify(t["coefficient"])
            for t in data["terms"]
        )
    )
    assert sp.expand(rebuilt - sp.sympify(data["expression"])) == 0


def test_first_correction_of_the_capacity() -> None:
    """1/2 + (3 log 2L + log 2 pi - 3)/(4 L), THEORY section 5."""
    size = sp.Symbol("L", positive=True)
    found = sp.sympify(derive_expansion("capacity", 1).to_json()["expression"], {"L": size})
    known = sp.Rational(1, 2) + (3 * sp.log(2 * size) + sp.log(2 * sp.pi) - 3) / (4 * size)
    assert sp.expand(sp.expand_log(known - found, force=True)) == 0


def test_level_solves_its_equation() -> None:
    """T^2 from the series in 2 log M, against bisection of M psi_1(T) = T."""
    log_m = 2000.0
    series = level_in_double_log(6)
    values = {sp.Symbol("log_2pi"): sp.log(2 * sp.pi)}
    found = value_of(series, 2 * log_m, values)
    assert found == pytest.approx(float_level(log_m) ** 2, abs=1e-8)
    resummed = resummed_level(8)
    with mp.workdps(30):
        x = 3 * mp.lambertw(mp.exp((2 * mp.mpf(log_m) - mp.log(2 * mp.pi)) / 3) / 3).real
        total = sum(
            mp.mpf(c.numerator) / c.denominator * x ** (1 - i) for i, c in enumerate(resummed)
        )
    assert float(total) == pytest.approx(float_level(log_m) ** 2, rel=1e-11)


@pytest.mark.parametrize(("margin", "exponent"), [("1/2", 50), ("2", 50)])
def test_margin_expansion_against_certified_values(margin: str, exponent: int) -> None:
    m = sp.Rational(margin)
    exact = certified_dimension(10**exponent, 20, margin=sp.nsimplify(m).p / sp.nsimplify(m).q)
    big_t = float_level(exponent * float(mp.log(10)), float(m))
    sigma = 1 + float(m) / big_t
    total = 0.0
    for i, row in enumerate(cone.distance_square_with_margin(7)):
        total += big_t ** (2 - 2 * i) * sum(float(c) * sigma**k for k, c in row.items())
    assert total == pytest.approx(exact.to_float_lossy(), rel=1e-8)


def test_fixed_margin_capacity_in_log_p() -> None:
    log_p = 400 * float(mp.log(10))
    exact = log_p / certified_dimension(10**400, 15, margin=1).to_float_lossy()
    values = {sp.Symbol("margin", real=True): 1}
    errors = [
        abs(value_of(capacity.capacity_with_margin(n), log_p, values) - exact) for n in (0, 1, 2)
    ]
    assert errors[0] > 30 * errors[1] > 100 * errors[2]
    assert errors[2] < 2e-5


def test_large_margin_capacity() -> None:
    """alpha_c (1 + mu)^2 = 1/2 at leading order; next orders against certified values."""
    mu = sp.Symbol("mu", positive=True)
    leading = capacity.capacity_with_large_margin(0).coefficient(0)
    assert sp.simplify(leading * (1 + mu) ** 2) == sp.Rational(1, 2)
    log_p = 200 * float(mp.log(10))
    from fractions import Fraction

    margin = Fraction(float((2 * log_p) ** 0.5) / 2)  # mu = 1/2, as an exact binary fraction
    exact = log_p / certified_dimension(10**200, 15, margin=margin).to_float_lossy()
    errors = [
        abs(
            value_of(capacity.capacity_with_large_margin(n), log_p, {mu: sp.Rational(1, 2)}) - exact
        )
        for n in (0, 1, 2)
    ]
    assert errors[0] > 10 * errors[1] > 50 * errors[2]
    assert errors[2] < 1e-5


def test_other_numbers_of_competitors() -> None:
    """M = 7 p^(3/2): load log p / delta(M) at p = 10^100."""
    b, c = sp.symbols("b c", positive=True)
    log_p = 100 * float(mp.log(10))
    exact = log_p / certified_dimension(7 * 10**150, 15).to_float_lossy()
    found = value_of(capacity.capacity_for_competitors(4), log_p, {b: sp.Rational(3, 2), c: 7})
    assert found == pytest.approx(exact, abs=3e-6)
    # b = c = 1 is the ordinary capacity
    plain = capacity.capacity_for_competitors(3).as_expr().subs({b: 1, c: 1})
    assert sp.expand(plain - capacity.capacity(3).as_expr()) == 0


def test_gaussian_maximum_is_the_classical_expansion() -> None:
    """b = sqrt(2L) - (log L + log 4 pi) / (2 sqrt(2L)) + ... (extreme-value theory)."""
    derivation = derive_expansion("gaussian_maximum", 1)
    size = sp.Symbol("L", positive=True)
    found = sp.sympify(derivation.to_json()["expression"], {"L": size})
    root = sp.sqrt(2 * size)
    classical = root - (sp.log(size) + sp.log(4 * sp.pi)) / (2 * root)
    assert sp.expand(sp.expand_log(found - classical, force=True)) == 0


def test_low_rank_is_the_capacity_times_the_share() -> None:
    share = sp.Symbol("share", positive=True)
    data = derive_expansion("capacity_low_rank", 2).to_json()
    plain = derive_expansion("capacity", 2).to_json()
    found = sp.sympify(data["expression"], {"share": share})
    assert sp.expand(found - share * sp.sympify(plain["expression"])) == 0


def test_case_2_gaussian_tails_at_infinity() -> None:
    """CASES 2: erfc(x), erfc(x)/2 and 2 erf(x) = 2 - 2 e^{-x^2}/(x sqrt(pi)) (1 + O(x^-2))."""
    x = sp.Symbol("x", positive=True)
    leading = erfc_at_infinity(x, 0).complement().scaled(2).expression
    assert sp.expand(leading - (2 - 2 * sp.exp(-(x**2)) / (x * sp.sqrt(sp.pi)))) == 0
    with mp.workdps(60):
        point = mp.mpf(8)
        for order in (0, 1, 4, 9):
            series = erfc_at_infinity(x, order)
            value = mp.mpf(str(series.expression.subs(x, 8).evalf(50)))
            half = mp.mpf(str(series.scaled(sp.Rational(1, 2)).expression.subs(x, 8).evalf(50)))
            doubled = series.complement().scaled(2).expression.subs(x, 8).evalf(50)
            after = erfc_at_infinity(x, order + 1)
            omitted = abs(mp.mpf(str((after.expression - series.expression).subs(x, 8).evalf(50))))
            assert 0 < abs(mp.erfc(point) - value) < omitted
            assert 0 < abs(mp.erfc(point) / 2 - half) < omitted / 2
            assert abs(2 * mp.erf(point) - mp.mpf(str(doubled))) < 2 * omitted
    with pytest.raises(InvalidInput):
        erfc_at_infinity(x, -1)
