"""Source code of derived results: NumPy and Mathematica."""

from __future__ import annotations

import re
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.printing.mathematica import MCodePrinter
from sympy.printing.numpy import NumPyPrinter

from replica.gaussian import Phi, phi

PRELUDE = '''\
"""{title}

Generated from the symbolic derivation. Equations are residuals (left minus right side),
inequalities the side that must be positive. Averages and integrals use NODES Gauss-Legendre
points within REACH standard deviations (raise NODES as q -> 1); averages over a whole vector of
scores use SAMPLES seeded draws.
"""
import contextlib
import functools

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

NODES, REACH, SAMPLES, SEED = 400, 12.0, 2000, 0
_depth = 0


@contextlib.contextmanager
def _axis():
    global _depth
    _depth += 1
    try:
        yield _depth - 1
    finally:
        _depth -= 1


@functools.lru_cache(maxsize=8)
def _rule(count):
    """Gauss-Legendre on [-1, 1]: one panel up to 64 points, panels of 20 beyond."""
    panels = 1 if count <= 64 else -(-count // 20)
    nodes, weights = np.polynomial.legendre.leggauss(count if panels == 1 else 20)
    centres = (2 * np.arange(panels)[:, None] + 1) / panels - 1
    return (centres + nodes / panels).ravel(), np.tile(weights / panels, panels)


def _integral(function, lower, upper):
    """Integral on a new leading axis; infinite ends are cut at +-REACH."""
    lower, upper = np.maximum(lower, -REACH), np.minimum(upper, REACH)
    nodes, weights = _rule(NODES)
    with _axis() as depth:
        shape = (-1,) + (1,) * depth
        nodes, weights = nodes.reshape(shape), weights.reshape(shape)
        half = np.maximum(upper - lower, 0) / 2
        values = function(lower + half * (nodes + 1)) * half
        return np.sum(weights * values, axis=0)


def _average(function, variance, lower, upper):
    """E function(v), v ~ N(0, variance), weight cut to (lower, upper)."""
    scale = np.sqrt(variance)
    return _integral(lambda v: function(scale * v) * _phi(v), lower / scale, upper / scale)


def _score_average(function, variance, size):
    """E function(field) over `size` independent N(0, variance), seeded Monte Carlo."""
    with _axis() as depth:
        generator = np.random.default_rng((SEED, depth))
        draws = np.sqrt(variance) * generator.standard_normal((int(size), SAMPLES))
        return np.mean(function(draws.reshape(draws.shape + (1,) * depth)), axis=0)


def _sum(function, lower, upper):
    return sum(function(i) for i in range(int(lower), int(upper) + 1))


def _product(function, lower, upper):
    result = 1.0
    for i in range(int(lower), int(upper) + 1):
        result = result * function(i)
    return result


def _phi(x):
    return np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)


def _hazard(x):
    """phi(x)/Phi(x), without underflow in the lower tail."""
    return np.exp(-(x**2) / 2 - log_ndtr(x)) / np.sqrt(2 * np.pi)


def _spectral_angle(rank_ratio, aspect_ratio):
    """theta in [0, pi] where the mass of squared singular values above reaches rank_ratio."""
    low, high, c = 0.0, np.pi, aspect_ratio
    for _ in range(200):
        theta = (low + high) / 2
        half = (1 - np.sqrt(c)) / (1 + np.sqrt(c)) * np.tan(theta / 2)
        mass = (1 + c) * theta - 2 * np.sqrt(c) * np.sin(theta) - 2 * (1 - c) * np.arctan(half)
        low, high = (theta, high) if mass < 2 * np.pi * c * rank_ratio else (low, theta)
    return (low + high) / 2


def _spectral_weight(rank_ratio, aspect_ratio):
    theta = _spectral_angle(rank_ratio, aspect_ratio)
    return (theta - np.sin(theta) * np.cos(theta)) / np.pi
'''


VECTORS = {"omega", "eta"}
"""Functions of an index that stand for vectors of fields."""


class _NumPy(NumPyPrinter):
    """NumPy expressions with the helpers of `PRELUDE` for averages, integrals and products."""

    def __init__(self) -> None:
        super().__init__({"fully_qualified_modules": False, "allow_unknown_functions": True})

    def _module_format(self, fqn: str, register: bool = True) -> str:
        return "np." + fqn.split(".", 1)[1] if fqn.startswith("numpy.") else fqn

    def _lambda(self, variables: list[Any], body: Any) -> str:
        names = ", ".join(self._print(v) for v in variables)
        return f"lambda {names}: {self._print(body)}"

    def _print_Phi(self, expr: Any) -> str:
        return f"ndtr({self._print(expr.args[0])})"

    def _print_phi(self, expr: Any) -> str:
        return f"_phi({self._print(expr.args[0])})"

    def _print_log(self, expr: Any) -> str:
        # Phi underflows, or rounds to 1, long before its logarithm is out of range.
        argument = expr.args[0]
        if argument.is_Add and len(argument.args) == 2 and isinstance(1 - argument, Phi):
            argument = Phi(-(1 - argument).args[0])
        factors = [f.as_base_exp() for f in sp.Mul.make_args(argument)]
        tails = [(base.args[0], n) for base, n in factors if isinstance(base, Phi)]
        rest = sp.Mul(*(base**n for base, n in factors if not isinstance(base, Phi)))
        terms = [] if tails and rest == 1 else [f"np.log({self._print(rest)})"]
        for x, n in tails:
            weight = "" if n == 1 else f"({self._print(n)})*"
            terms.append(f"{weight}log_ndtr({self._print(x)})")
        simple = len(terms) == 1 and "*log_ndtr" not in terms[0]
        return terms[0] if simple else f"({' + '.join(terms)})"

    def _print__Hazard(self, expr: Any) -> str:
        return f"_hazard({self._print(expr.args[0])})"

    def _print_PhiInverse(self, expr: Any) -> str:
        return f"ndtri({self._print(expr.args[0])})"

    def _print_SpectralWeight(self, expr: Any) -> str:
        return f"_spectral_weight({', '.join(self._print(a) for a in expr.args)})"

    def _print_SpectralAngle(self, expr: Any) -> str:
        return f"_spectral_angle({', '.join(self._print(a) for a in expr.args)})"

    def _print_GaussianAverage(self, expr: Any) -> str:
        text = self._print(expr.body)
        for v, variance, lower, upper in expr.limits:
            ends = ", ".join(self._print(e) for e in (variance, lower, upper))
            text = f"_average(lambda {self._print(v)}: {text}, {ends})"
        return text

    def _print_ScoreAverage(self, expr: Any) -> str:
        body, field, variance, size = expr.args
        ends = f"{self._print(variance)}, {self._print(size)}"
        return f"_score_average({self._lambda([field], body)}, {ends})"

    def _ranged(self, name: str, expr: Any) -> str:
        text = self._print(expr.function)
        for v, lower, upper in expr.limits:
            ends = f"{self._print(lower)}, {self._print(upper)}"
            text = f"{name}(lambda {self._print(v)}: {text}, {ends})"
        return text

    def _print_Integral(self, expr: Any) -> str:
        return self._ranged("_integral", expr)

    def _print_Sum(self, expr: Any) -> str:
        return self._ranged("_sum", expr)

    def _print_Product(self, expr: Any) -> str:
        return self._ranged("_product", expr)

    def _print_Function(self, expr: Any) -> str:
        name = expr.func.__name__
        if name in VECTORS:
            return f"{name}[{self._print(expr.args[0])}]"
        return str(super()._print_Function(expr))

    def _print_binomial(self, expr: Any) -> str:
        top, low = (self._print(a) for a in expr.args)
        return f"_product(lambda _i: ({top} - ({low}) + _i) / _i, 1, {low})"

    def _print_factorial(self, expr: Any) -> str:
        return f"_product(lambda _i: _i, 1, {self._print(expr.args[0])})"


class _Hazard(sp.Function):
    """phi(x)/Phi(x), introduced just before printing."""

    nargs = 1


def _with_hazard(expression: Any) -> Any:
    """phi(u)/Phi(u) inside products as one function: both underflow where the ratio is about -u."""

    def rewrite(product: Any) -> Any:
        for factor in product.args:
            base, exponent = factor.as_base_exp()
            if isinstance(base, Phi) and exponent.is_Integer and exponent < 0:
                argument = base.args[0]
                product = product.subs(phi(argument), _Hazard(argument) * base)
        return product

    return expression.replace(lambda e: isinstance(e, sp.Mul), rewrite)


def _side(expression: Any) -> Any:
    """Equations as residuals, inequalities as the side that must be positive."""
    if isinstance(expression, sp.core.relational.Relational):
        return expression.lhs - expression.rhs
    return expression


def _parameters(expression: Any, printer: _NumPy) -> list[str]:
    """Names of the symbols, and of the functions that the derivation leaves unspecified."""
    symbols = {x for x in expression.free_symbols if isinstance(x, sp.Symbol)}
    functions = {f.func.__name__ for f in expression.atoms(AppliedUndef)} - VECTORS
    return sorted({printer.doprint(x) for x in symbols} | functions)


def to_python(results: dict[str, Any], title: str = "Results") -> str:
    """NumPy source with one function a named result; arguments are the symbols it contains,
    and the functions that it leaves unspecified.

    A list of results gives functions numbered from 1.

    >>> from replica.gaussian import Phi
    >>> from replica.symbols import margin
    >>> namespace = {}
    >>> exec(to_python({"success": Phi(margin)}), namespace)
    >>> float(namespace["success"](margin=0.0))
    0.5
    """
    printer = _NumPy()
    blocks = [PRELUDE.format(title=title)]
    for name, value in _flattened(results):
        side = _side(value)
        arguments = ", ".join(_parameters(side, printer))
        blocks.append(
            f"def {name}({arguments}):\n    return {printer.doprint(_with_hazard(side))}\n"
        )
    return "\n\n".join(blocks)


def _flattened(results: dict[str, Any]) -> list[tuple[str, Any]]:
    flat = []
    for name, value in results.items():
        if isinstance(value, list | tuple):
            flat += [(f"{name}_{i}", item) for i, item in enumerate(value, 1)]
        else:
            flat.append((name, value))
    return [(name, value) for name, value in flat if isinstance(value, sp.Basic)]


class _Mathematica(MCodePrinter):
    """Mathematica expressions; underscores, which mean patterns there, become camel case."""

    def _print_Symbol(self, expr: Any) -> str:
        return _camel(expr.name)

    _print_Dummy = _print_Symbol

    def _print_Phi(self, expr: Any) -> str:
        return f"CDF[NormalDistribution[], {self._print(expr.args[0])}]"

    def _print_phi(self, expr: Any) -> str:
        return f"PDF[NormalDistribution[], {self._print(expr.args[0])}]"

    def _print_PhiInverse(self, expr: Any) -> str:
        return f"Quantile[NormalDistribution[], {self._print(expr.args[0])}]"

    def _print_SpectralWeight(self, expr: Any) -> str:
        return f"spectralWeight[{', '.join(self._print(a) for a in expr.args)}]"

    def _print_SpectralAngle(self, expr: Any) -> str:
        return f"spectralAngle[{', '.join(self._print(a) for a in expr.args)}]"

    def _print_GaussianAverage(self, expr: Any) -> str:
        text = self._print(expr.body)
        for v, variance, lower, upper in expr.limits:
            law = f"NormalDistribution[0, Sqrt[{self._print(variance)}]]"
            name = self._print(v)
            ends = f"{{{name}, {self._print(lower)}, {self._print(upper)}}}"
            text = f"Integrate[({text})*PDF[{law}, {name}], {ends}]"
        return text

    def _print_ScoreAverage(self, expr: Any) -> str:
        body, field, variance, size = (self._print(a) for a in expr.args)
        return f"scoreAverage[Function[{field}, {body}], {variance}, {size}]"

    def _ranged(self, name: str, expr: Any) -> str:
        ranges = [
            f"{{{', '.join(self._print(e) for e in limit)}}}" for limit in reversed(expr.limits)
        ]
        return f"{name}[{self._print(expr.function)}, {', '.join(ranges)}]"

    def _print_Piecewise(self, expr: Any) -> str:
        cases = [f"{{{self._print(value)}, {self._print(when)}}}" for value, when in expr.args]
        return f"Piecewise[{{{', '.join(cases)}}}]"

    def _print_Indexed(self, expr: Any) -> str:
        indices = ", ".join(self._print(i) for i in expr.indices)
        return f"{self._print(expr.base.label)}[[{indices}]]"

    def _print_Integral(self, expr: Any) -> str:
        return self._ranged("Integrate", expr)

    def _print_Sum(self, expr: Any) -> str:
        return self._ranged("Sum", expr)

    def _print_Product(self, expr: Any) -> str:
        return self._ranged("Product", expr)

    def _print_Function(self, expr: Any) -> str:
        name = expr.func.__name__
        if name in VECTORS:
            return f"{name}[{self._print(expr.args[0])}]"
        return str(super()._print_Function(expr))


def _camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda match: match.group(1).upper(), name)


MATHEMATICA_PRELUDE = """\
(* {title} *)
(* scoreAverage[f, variance, size]: mean of f[omega] over size independent normal scores
   omega[0], ..., omega[size - 1]; seeded Monte Carlo, {samples} draws. *)
scoreAverage[f_, variance_, size_] := BlockRandom[SeedRandom[0];
  Mean[Table[With[{{x = RandomVariate[NormalDistribution[0, Sqrt[variance]], size]}},
    f[x[[# + 1]] &]], {samples}]]];
(* angle where the mass of squared singular values above reaches k; weight above it *)
spectralAngle[k_, c_] := th /. FindRoot[(1 + c) th - 2 Sqrt[c] Sin[th]
  - 2 (1 - c) ArcTan[(1 - Sqrt[c])/(1 + Sqrt[c]) Tan[th/2]] == 2 Pi c k, {{th, Pi/2, 0, Pi}}];
spectralWeight[k_, c_] := With[{{a = spectralAngle[k, c]}}, (a - Sin[a] Cos[a])/Pi];
"""


def to_mathematica(results: dict[str, Any], title: str = "Results") -> str:
    """Mathematica source with one assignment a named result.

    >>> from replica.symbols import alpha, rank_ratio
    >>> print(to_mathematica({"critical_load": alpha / rank_ratio}).splitlines()[-1])
    criticalLoad = alpha/rankRatio;
    """
    printer = _Mathematica()
    lines = [MATHEMATICA_PRELUDE.format(title=title, samples=2000)]
    for name, value in _flattened(results):
        lines.append(f"{_camel(name)} = {printer.doprint(value)};")
    return "\n".join(lines)
