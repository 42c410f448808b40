"""Steps and entries of the expansions below capacity and of the Gaussian maximum."""

from __future__ import annotations

import sympy as sp

from replica.below_capacity import LARGEST_ORDER, free_entropy, in_alpha, on_shell, overlap
from replica.expansion.result import (
    ExpansionDerivation,
    remainder_text,
    series_expression,
    series_terms,
)
from replica.log_gamma import tail_corrections
from replica.logseries import LogSeries, LogSeriesRing

_B, _Q, _X, _M, _Y, _OMEGA = sp.symbols("b q x M y omega_0", positive=True)
_VARIANCE = 1 - _Q
REGIME = (
    "valid for fixed alpha < 1/2 as p -> infinity; two replicas share a competitor above b with "
    "probability M^(-(1-q)/(1+q)), beyond every power of 1/log p, so V log M must be large"
)

CROSSOVER = (
    "average over omega_0; the competitors' mean log-probability replaces -M Q(y). Measured at "
    "M = 10^50, the log-Gamma form is within 0.1 per cent of it for V T^2 >= 5 and more than 1 per "
    "cent off below V T^2 = 0.1; for V -> 0 it gives -delta/(2 V) up to relative order T^(-4)"
)

__all__ = ["LARGEST_ORDER", "derive_below", "derive_log_partition", "derive_maximum"]


def _add_integral_steps(derivation: ExpansionDerivation, terms: int) -> sp.Expr:
    """From Z at given fields to E log Z; returns E log Z without its tail corrections."""
    tail = sp.erfc(_Y / sp.sqrt(2)) / 2
    density = sp.exp(-((_Y - _OMEGA) ** 2) / (2 * _VARIANCE)) / sp.sqrt(2 * sp.pi * _VARIANCE)
    derivation.add(
        "Partition function given the target's field",
        sp.Integral(density * sp.exp(-_M * tail), (_Y, -sp.oo, sp.oo)),
        f"the competitors' product concentrates on exp(-M Q(y)); {REGIME}",
    )
    level = _M * sp.exp(-(_B**2) / 2) / sp.sqrt(2 * sp.pi)
    derivation.add("Definition of b", sp.Eq(level, _B), "the maximum of M Gaussians is near b")
    corrections = [r.as_expr() * _B ** (-2 * n) for n, r in enumerate(tail_corrections(terms + 1))]
    derivation.add(
        "M Q(b + x/b) times e^x",
        sp.Add(*corrections),
        "Gaussian and Mills series about b; G = e^{-x} is Gamma(1/V) distributed at leading order",
    )
    derivation.add(
        "Law of the target score",
        sp.Eq(_Y, _B - sp.log(sp.Symbol("G", positive=True)) / _B),
        "so y - b is -log(G)/b with G of shape 1/V: a log-Gamma law",
    )
    shape = 1 / _VARIANCE
    value = (
        -(_B**2 + _Q) / (2 * _VARIANCE)
        - sp.log(_B)
        - sp.log(2 * sp.pi * _VARIANCE) / 2
        + sp.loggamma(shape)
    )
    source, on_line = on_shell(max(terms, 1))
    for n, f in enumerate(on_line[:terms], 1):
        value = value + source.to_sympy(f, shape) * _B ** (-2 * n)
    return derivation.add(
        "E log Z",
        value,
        "completing the square and averaging over omega_0 ~ N(0, q); the corrections are cumulants "
        "of the log-Gamma law, polynomials in 1/V and polygamma functions of 1/V",
    )


def derive_log_partition(order: int) -> ExpansionDerivation:
    """E log Z below capacity with corrections through b^(-2 order)."""
    derivation = ExpansionDerivation("E log Z below capacity")
    value = _add_integral_steps(derivation, order)
    derivation.results["expression"] = value
    field = sp.Symbol("omega", real=True)
    spread = sp.exp(-(field**2) / (2 * _Q)) / sp.sqrt(2 * sp.pi * _Q)
    argument = (_Y - field) / sp.sqrt(_VARIANCE)
    log_cdf = sp.log(sp.erfc(-argument / sp.sqrt(2), evaluate=False) / 2)
    mean_log = _M * sp.Integral(spread * log_cdf, (field, -sp.oo, sp.oo))
    target = sp.exp(-((_Y - _OMEGA) ** 2) / (2 * _VARIANCE)) / sp.sqrt(2 * sp.pi * _VARIANCE)
    derivation.add(
        "Form that also covers the crossover V T^2 = O(1)",
        sp.log(sp.Integral(target * sp.exp(mean_log), (_Y, -sp.oo, sp.oo))),
        CROSSOVER,
    )
    derivation.extra["range"] = CROSSOVER
    source, on_line = on_shell(max(order, 1))
    derivation.extra["coefficients"] = [
        sp.sstr(source.to_sympy(f, 1 / _VARIANCE)) for f in on_line[:order]
    ]
    return derivation


def derive_below(name: str, order: int) -> ExpansionDerivation:
    """Overlap or free entropy per d^2 as a series in 1/log p at fixed load."""
    title = {
        "overlap": "Overlap q(alpha, p) below capacity",
        "free_entropy": "Free entropy phi(alpha, p) per d^2 below capacity",
    }[name]
    derivation = ExpansionDerivation(title)
    value = _add_integral_steps(derivation, max(order - 1, 0))
    gamma = sp.Symbol("gamma", positive=True)
    action = sp.log(1 - _Q) / 2 + _Q / (2 * (1 - _Q)) + gamma * value
    derivation.add("Free entropy with gamma = alpha / log p", action, "entropic term plus E log Z")
    saddle = sp.Eq(sp.diff(action, _Q), 0)
    derivation.add("Saddle point in q", saddle, "derivative with respect to q; b does not vary")
    series = overlap(order) if name == "overlap" else free_entropy(order)
    finish(derivation, series, "contracting iteration in the ring of series", in_alpha)
    return derivation


def finish(
    derivation: ExpansionDerivation,
    series: LogSeries,
    reason: str,
    meaning: object = None,
) -> None:
    """Add the final series, its terms and its remainder; `meaning` rewrites coefficients."""
    translate = meaning if callable(meaning) else lambda expression: expression
    terms = series_terms(series)
    for term in terms:
        term["coefficient"] = sp.sstr(translate(sp.sympify(term["coefficient"], _locals(series))))
    expression = translate(series_expression(series))
    derivation.series = series
    derivation.extra["terms"] = terms
    derivation.extra["remainder"] = remainder_text(series)
    derivation.results["expression"] = derivation.add(
        f"Series in L = log p, remainder {remainder_text(series)}", expression, reason
    )


def _locals(series: LogSeries) -> dict[str, sp.Symbol]:
    """The series' own symbols by name, so that reading a coefficient back keeps assumptions."""
    return {s.name: s for _, _, c in series.items() for s in c.free_symbols}


def derive_maximum(order: int) -> ExpansionDerivation:
    """b_M with M phi(b_M) = b_M, the location of the maximum of M = p Gaussians."""
    derivation = ExpansionDerivation("Location b of the maximum of p Gaussians")
    log_2, log_pi = sp.log(2), sp.log(sp.pi)
    ring = LogSeriesRing(order, [log_2, log_pi], [sp.sqrt(2)])
    square = ring.lambert_w(2 * ring.L - log_2 - log_pi)
    size = sp.Symbol("L", positive=True)
    lambert = sp.LambertW(sp.exp(2 * size) / (2 * sp.pi))
    derivation.add("b^2", sp.Eq(_B**2, lambert), "square of M phi(b) = b")
    finish(derivation, square.power(sp.Rational(1, 2)), "square root of the series of Lambert's W")
    return derivation
