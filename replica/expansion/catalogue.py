"""The expansions by name: what `factcap derive --expansion NAME --order N` prints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import sympy as sp

from replica.errors import InvalidInput
from replica.expansion import capacity as cap
from replica.expansion import cone, hebbian
from replica.expansion.below import (
    LARGEST_ORDER,
    derive_below,
    derive_log_partition,
    derive_maximum,
    finish,
)
from replica.expansion.level import resummed_level
from replica.expansion.result import (
    ExpansionDerivation,
    check_order,
    rational,
    remainder_text,
    series_expression,
    series_terms,
)
from replica.expansion.steps import (
    LEVEL_T,
    REGIME,
    add_normalisation,
    add_representation,
    as_strings,
    level_equation,
    smallest_term_levels,
)
from replica.logseries import LogSeries


@dataclass(frozen=True)
class Entry:
    """One expansion: its function, the largest order offered, and what `order` counts."""

    derive: Callable[[int], ExpansionDerivation]
    largest: int
    meaning: str
    default: int = 6


def derive_expansion(name: str, order: int | None = None) -> ExpansionDerivation:
    """Derive the expansion `name` to the given order (default 6, or less where that takes long).

    The order counts powers of 1/T^2 beyond the leading term for expansions in the level T, and
    powers of 1/L, L = log p, for expansions in L (`expansion_names` says which). Raises
    InvalidInput for an unknown name or an order that is not offered.

    >>> derive_expansion("statistical_dimension", 3).to_json()["coefficients"]
    ['1', '3', '-9', '113/2']
    >>> derive_expansion("capacity", 1).to_json()["terms"][0]
    {'power_of_L': 0, 'power_of_ell': 0, 'coefficient': '1/2'}
    """
    if name not in CATALOGUE:
        raise InvalidInput(
            f"the expansion {name!r} is not known; choose one of {', '.join(sorted(CATALOGUE))}"
        )
    entry = CATALOGUE[name]
    order = min(entry.default, entry.largest) if order is None else order
    check_order(order, entry.largest, name)
    derivation = entry.derive(order)
    derivation.extra.update({"name": name, "order": order, "order_counts": entry.meaning})
    return derivation


def expansion_names() -> dict[str, str]:
    """{name: what the order counts} of every expansion that can be derived."""
    return {name: entry.meaning for name, entry in CATALOGUE.items()}


def _level_series(
    title: str, observable: str, coefficients: list[Fraction], leading: int
) -> ExpansionDerivation:
    """An expansion in 1/T^2 with its steps."""
    derivation = ExpansionDerivation(title)
    add_representation(derivation, observable)
    add_normalisation(derivation, len(coefficients))
    result = derivation.add(
        title,
        cone.in_level(coefficients, leading),
        f"Wick averages <u^a v^a> = (-1)^a a! about the saddle; asymptotic; {REGIME}",
    )
    derivation.add(
        "Level as a function of the number of competitors",
        level_equation(len(coefficients)),
        "logarithm of the definition of T, margin 0",
    )
    levels = smallest_term_levels(coefficients)
    derivation.results["expression"] = result
    derivation.extra["coefficients"] = as_strings(coefficients)
    derivation.extra["leading_power_of_T"] = leading
    derivation.extra["optimal_truncation"] = [None if v is None else str(v) for v in levels]
    return derivation


def _statistical_dimension(order: int) -> ExpansionDerivation:
    coefficients = cone.statistical_dimension(order + 1)
    return _level_series("Statistical dimension delta = E K at capacity", "active", coefficients, 2)


def _distance(order: int) -> ExpansionDerivation:
    coefficients = cone.distance_square(order + 1)
    return _level_series("Mean squared distance to the cone", "distance_square", coefficients, 2)


def _variance(order: int) -> ExpansionDerivation:
    coefficients = cone.variance_of_active(order + 1)
    derivation = _level_series(
        "Variance of the number K of active competitors", "active_square", coefficients, 2
    )
    square = cone.statistical_dimension(order + 1)
    width = cone.divide(coefficients, cone.multiply(square, square))
    derivation.add(
        "Squared relative width of the transition, times p: Var K / delta^2",
        cone.in_level(width, -2),
        "K_tot is a sum of p independent copies of K and the transition is at p delta = d^2",
    )
    derivation.extra["width_coefficients"] = as_strings(width)
    return derivation


def _target_score(order: int) -> ExpansionDerivation:
    mean, variance = cone.level_moments(order + 1)
    derivation = _level_series("Mean score of a recalled fact at capacity", "level", mean, 1)
    derivation.add(
        "Variance of that score",
        cone.in_level(variance, -4),
        "average of t^2 minus the square of the average of t: the width is sqrt(3) / T^2",
    )
    derivation.extra["variance_coefficients"] = as_strings(variance)
    return derivation


def _dimension_with_margin(order: int) -> ExpansionDerivation:
    rows = cone.distance_square_with_margin(order + 1)
    sigma = sp.Symbol("sigma", positive=True)
    derivation = ExpansionDerivation("Statistical dimension with a margin")
    add_representation(derivation, "distance_square")
    polynomials = [sp.Add(*(rational(c) * sigma**k for k, c in row.items())) for row in rows]
    expression = sp.Add(*(f * LEVEL_T ** (2 - 2 * i) for i, f in enumerate(polynomials)))
    derivation.add(
        "delta_m in T and sigma = 1 + margin / T",
        expression,
        f"Wick averages with sigma kept as a symbol; {REGIME}",
    )
    derivation.results["expression"] = expression
    derivation.extra["coefficients"] = [sp.sstr(f) for f in polynomials]
    derivation.extra["leading_power_of_T"] = 2
    return derivation


def _log_series(title: str, series: LogSeries, reason: str) -> ExpansionDerivation:
    derivation = ExpansionDerivation(title)
    derivation.series = series
    derivation.extra["terms"] = series_terms(series)
    derivation.extra["remainder"] = remainder_text(series)
    derivation.results["expression"] = series_expression(series)
    derivation.extra["latex"] = series.latex()
    return derivation


def _add_capacity_steps(derivation: ExpansionDerivation, order: int) -> None:
    add_representation(derivation, "active")
    add_normalisation(derivation, order + 1)
    coefficients = cone.statistical_dimension(order + 2)
    derivation.add(
        "Statistical dimension in the level T",
        cone.in_level(coefficients),
        f"Wick averages; {REGIME}",
    )
    derivation.add("Equation for T", level_equation(order + 1), "logarithm of its definition")


def _capacity(order: int) -> ExpansionDerivation:
    series = cap.capacity(order)
    derivation = _log_series("Storage capacity alpha_c(p) in L = log p", series, "")
    _add_capacity_steps(derivation, order)
    derivation.add(
        "alpha_c = L / delta, remainder " + remainder_text(series),
        derivation.results["expression"],
        "contracting iteration for T^2, inserted in L / delta; log M = log(p - 1) and log p have "
        "the same expansion: they differ beyond every power of 1/L",
    )
    return derivation


def _capacity_resummed(order: int) -> ExpansionDerivation:
    derivation = ExpansionDerivation("Storage capacity with Lambert's function resummed")
    _add_capacity_steps(derivation, order)
    lambert, size = sp.Symbol("X_W", positive=True), sp.Symbol("L", positive=True)
    level = resummed_level(order + 1)
    derivation.add(
        "X_W",
        sp.Eq(lambert, 3 * sp.LambertW(sp.exp((2 * size - sp.log(2 * sp.pi)) / 3) / 3)),
        "solves X + 3 log X = 2 log M - log 2 pi",
    )
    terms = [rational(c) * lambert ** (1 - i) for i, c in enumerate(level)]
    derivation.add("T^2 in X_W", sp.Add(*terms), "no logarithm is left: rational coefficients")
    dimension = cap.resummed_dimension(order + 1)
    total = sp.Add(*(rational(c) * lambert ** (1 - i) for i, c in enumerate(dimension)))
    derivation.add("Statistical dimension in X_W", total, "insertion")
    derivation.results["expression"] = derivation.add("alpha_c = L / delta", size / total)
    derivation.extra["coefficients"] = as_strings(dimension)
    derivation.extra["level_coefficients"] = as_strings(level)
    return derivation


def _capacity_variant(
    title: str, function: Callable[[int], LogSeries], reason: str
) -> Callable[[int], ExpansionDerivation]:
    def derive(order: int) -> ExpansionDerivation:
        series = function(order)
        derivation = _log_series(title, series, reason)
        observable = "distance_square" if "margin" in title else "active"
        add_representation(derivation, observable)
        derivation.add(
            "alpha_c, remainder " + remainder_text(series),
            derivation.results["expression"],
            reason,
        )
        return derivation

    return derive


def _capacity_low_rank(order: int) -> ExpansionDerivation:
    derivation = _capacity(order)
    derivation.title = "Storage capacity of a rank-constrained memory"
    theta, ratio, share = sp.symbols("theta rank_ratio share", positive=True)
    two_over_pi = 2 / sp.pi
    derivation.add(
        "Rank ratio",
        sp.Eq(ratio, 1 - two_over_pi * (theta + sp.sin(2 * theta) / 2)),
        "mass of the quarter-circle law above the cut 2 sin(theta)",
    )
    derivation.add(
        "Share of the squared norm",
        sp.Eq(share, 1 - two_over_pi * (theta - sp.sin(4 * theta) / 4)),
        "second moment of that part; p delta = d^2 share",
    )
    expression = share * derivation.results["expression"]
    derivation.results["expression"] = derivation.add(
        "alpha_c = share * L / delta", expression, "Gordon's inequality makes it an upper bound"
    )
    for term in derivation.extra["terms"]:
        term["coefficient"] = sp.sstr(sp.expand(share * sp.sympify(term["coefficient"])))
    return derivation


def _hebbian(which: str) -> Callable[[int], ExpansionDerivation]:
    def derive(order: int) -> ExpansionDerivation:
        single = which == "typical"
        name = "a typical fact" if single else "every fact"
        derivation = ExpansionDerivation(f"Hebbian memory: load at which {name} is recalled")
        u, b, x, y = sp.symbols("u b x y", positive=True)
        facts, z = sp.symbols("p z", positive=True)
        cdf = sp.erfc(-y / sp.sqrt(2)) / 2
        density = sp.exp(-(z**2) / 2) / sp.sqrt(2 * sp.pi)
        recalled = sp.Integral(density * (cdf ** (facts - 1)).subs(y, u + z), (z, -sp.oo, sp.oo))
        derivation.add(
            "Probability that a fact is recalled, u = 1/sigma = d/sqrt(p)",
            recalled,
            "score 1 + sigma z against the largest of p - 1 scores sigma z_rho",
        )
        threshold = hebbian.typical_threshold if single else hebbian.all_facts_threshold
        condition = recalled if single else recalled**facts
        derivation.add("Threshold", sp.Eq(condition, sp.Rational(1, 2)), "even odds of success")
        moment = hebbian.maximum_moments(2, 2)[1]
        derivation.add(
            "Mean of x, the maximum being b + x/b with p phi(b) = b",
            hebbian.in_constants(moment[0] + moment[1] / b**2),
            "Gumbel law with its corrections; higher moments likewise",
        )
        root = threshold(2 * order + 1)
        plain = {root.ring.symbol: b, root.ring.log_symbol: sp.log(b)}
        derivation.add(
            f"u in b, remainder {remainder_text(root)}",
            hebbian.in_constants(root.as_expr().subs(plain)),
            "contracting iteration in the ring of series in 1/b and log b",
        )
        del x
        load = hebbian.typical_load if single else hebbian.all_facts_load
        finish(
            derivation,
            load(order),
            "alpha = L / u^2 with b^2 = W(p^2/(2 pi)) inserted",
            hebbian.in_constants,
        )
        return derivation

    return derive


_IN_T = "powers of 1/T^2 beyond the leading term"
_IN_L = "powers of 1/L, L = log p: every term down to L^(-order) is given"

CATALOGUE: dict[str, Entry] = {
    "statistical_dimension": Entry(_statistical_dimension, 24, _IN_T),
    "distance_square": Entry(_distance, 16, _IN_T),
    "variance": Entry(_variance, 20, _IN_T),
    "target_score": Entry(_target_score, 16, _IN_T),
    "statistical_dimension_margin": Entry(_dimension_with_margin, 10, _IN_T),
    "capacity": Entry(_capacity, 16, _IN_L),
    "capacity_resummed": Entry(_capacity_resummed, 20, "powers of 1/X_W, X_W about 2 log p"),
    "capacity_low_rank": Entry(_capacity_low_rank, 16, _IN_L),
    "capacity_competitors": Entry(
        _capacity_variant(
            "Storage capacity for M = c p^b competitors",
            cap.capacity_for_competitors,
            "log M = b L + log c inserted in the expansion of delta",
        ),
        6,
        _IN_L,
    ),
    "capacity_margin": Entry(
        _capacity_variant(
            "Storage capacity with a fixed margin",
            cap.capacity_with_margin,
            "sigma = 1 + margin / T expands in half-integer powers of 1/L",
        ),
        5,
        _IN_L,
    ),
    "capacity_large_margin": Entry(
        _capacity_variant(
            "Storage capacity with the margin mu sqrt(2 log p)",
            cap.capacity_with_large_margin,
            "sigma = 1 + mu sqrt(2 L) / T and T are solved together",
        ),
        3,
        _IN_L,
    ),
    "log_partition": Entry(
        derive_log_partition, 4, "powers of 1/b^2, b^2 = W(M^2/(2 pi)), in E log Z at fixed q < 1"
    ),
    "overlap": Entry(lambda order: derive_below("overlap", order), LARGEST_ORDER, _IN_L, default=2),
    "free_entropy": Entry(
        lambda order: derive_below("free_entropy", order), LARGEST_ORDER, _IN_L, default=2
    ),
    "gaussian_maximum": Entry(derive_maximum, 8, _IN_L),
    "hebbian_typical": Entry(_hebbian("typical"), 3, _IN_L),
    "hebbian_all": Entry(_hebbian("all"), 2, _IN_L, default=1),
}
