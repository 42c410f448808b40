"""SymPy -> Arb: turns an expression into a straight-line program over complex balls.

Every ball that comes out encloses the exact value for *all* points of the balls that went in.
The `analytic` flag of `acb.integral` is honoured at every node: where a function has a branch
cut (or is not holomorphic at all) and the argument may touch it, the node answers with a
non-finite ball, as Arb's integrator demands. Ignoring the flag gives tight, wrong integrals.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import sympy as sp
from flint import acb, arb, fmpq

from numerics.tails import to_phi
from replica.errors import InvalidInput
from replica.gaussian import Phi, phi

Scope = Mapping[sp.Symbol, Any]
Operation = Callable[[Sequence[Any], bool], Any]

MAX_SUM_TERMS = 1_000_000
MAX_FLOAT_EXPONENT = 1_000_000  # of 2; SymPy's floats may have exponents of hundreds of digits


class CannotEvaluate(InvalidInput):
    """The expression contains something that has no rigorous evaluation here."""


def undefined() -> Any:
    """The answer of a node that cannot vouch for its value: a ball without bounds."""
    return acb(arb.nan(), arb.nan())


@dataclass(frozen=True)
class Node:
    """One instruction: apply `operation` to the results of the instructions in `inputs`."""

    operation: Operation | None
    inputs: tuple[int, ...] = ()
    symbol: sp.Symbol | None = None


@dataclass
class Program:
    """An expression as a list of instructions without repeated subexpressions.

    Call it with a scope {symbol: acb}; `analytic` asks every node to prove that it is
    holomorphic on its arguments.

    >>> import sympy as sp
    >>> from flint import acb
    >>> x = sp.Symbol("x")
    >>> compile_program(sp.sqrt(x) + sp.sqrt(x) * x)({x: acb(4)})
    10.0000000000000
    """

    nodes: list[Node] = field(default_factory=list)

    def __call__(self, scope: Scope, analytic: bool = False) -> Any:
        values: list[Any] = []
        for node in self.nodes:
            if node.symbol is not None:
                values.append(_lookup(scope, node.symbol))
            else:
                assert node.operation is not None
                values.append(node.operation([values[i] for i in node.inputs], analytic))
        return values[-1]


def _lookup(scope: Scope, symbol: sp.Symbol) -> Any:
    try:
        return scope[symbol]
    except KeyError:
        raise CannotEvaluate(
            f"the symbol {symbol} has no value; every free symbol needs one; "
            f"pass values={{{symbol}: ...}}"
        ) from None


@lru_cache(maxsize=512)
def compile_program(expression: Any) -> Program:
    """Compile a SymPy expression once; raises `CannotEvaluate` for what has no enclosure here."""
    builder = _Builder()
    builder.add(to_phi(sp.sympify(expression)))
    return builder.program


class _Builder:
    def __init__(self) -> None:
        self.program = Program()
        self.index: dict[Any, int] = {}

    def add(self, expression: Any) -> int:
        if expression in self.index:
            return self.index[expression]
        position = self._emit(expression)
        self.index[expression] = position
        return position

    def push(self, node: Node) -> int:
        self.program.nodes.append(node)
        return len(self.program.nodes) - 1

    def apply(self, operation: Operation, *arguments: Any) -> int:
        inputs = tuple(self.add(argument) for argument in arguments)
        return self.push(Node(operation, inputs))

    def _emit(self, e: Any) -> int:
        if isinstance(e, sp.Symbol):
            return self.push(Node(None, symbol=e))
        if e.is_Number or e.is_NumberSymbol or e is sp.I:
            return self.push(Node(_constant(e)))
        if isinstance(e, sp.Add):
            return self.apply(_add, *e.args)
        if isinstance(e, sp.Mul):
            return self.apply(_multiply, *e.args)
        if isinstance(e, sp.exp):
            return self.apply(lambda a, _: a[0].exp(), e.args[0])
        if isinstance(e, sp.Pow):
            return self._power(e.base, e.exp)
        if isinstance(e, sp.Sum | sp.Product):
            return self._reduce(e)
        if isinstance(e, sp.Integral):
            return self._integral(e)
        if isinstance(e, sp.Piecewise):
            raise CannotEvaluate(
                "a Piecewise has no enclosure on a ball that straddles its condition; "
                "choose the branch first"
            )
        if isinstance(e, sp.polygamma):
            return self._polygamma(e)
        if isinstance(e, sp.LambertW):
            return self._lambert(e)
        operation = FUNCTIONS.get(e.func)
        if operation is not None:
            return self.apply(operation, *e.args)
        return self.add(self._unfold(e))

    def _unfold(self, e: Any) -> Any:
        """Objects defined through others (Gaussian averages, ...) say so by `plain` or rewrite."""
        plain = getattr(e, "plain", None)
        steps = [plain] if plain is not None else []
        steps += [lambda: e.rewrite(sp.Integral), lambda: e.rewrite(sp.erfc), lambda: e.doit()]
        for step in steps:
            unfolded = to_phi(step())
            if unfolded != e:
                return unfolded
        raise CannotEvaluate(
            f"{e.func.__name__} has no rigorous evaluation; rewrite the expression with "
            f"elementary functions, {', '.join(sorted(f.__name__ for f in FUNCTIONS))}, "
            "finite sums or integrals"
        )

    def _power(self, base: Any, exponent: Any) -> int:
        if base is sp.E:
            return self.apply(lambda a, _: a[0].exp(), exponent)
        if isinstance(base, Phi):
            return self.apply(_power_of_cdf, base.args[0], exponent)
        if isinstance(exponent, sp.Integer):
            n = int(exponent)
            return self.apply(lambda a, _: a[0] ** n, base)
        if isinstance(exponent, sp.Rational) and exponent.q == 2:
            n = int(exponent.p)
            if n < 0:
                return self.apply(lambda a, analytic: _rsqrt(a[0], analytic) ** (-n), base)
            return self.apply(lambda a, analytic: a[0].sqrt(analytic=analytic) ** n, base)
        return self.apply(lambda a, analytic: a[0].pow(a[1], analytic=analytic), base, exponent)

    def _polygamma(self, e: Any) -> int:
        order, argument = e.args
        if order == 0:
            return self.apply(lambda a, _: a[0].digamma(), argument)
        return self.apply(lambda a, _: a[0].polygamma(a[1]), order, argument)

    def _lambert(self, e: Any) -> int:
        branch = e.args[1] if len(e.args) > 1 else sp.Integer(0)
        if not isinstance(branch, sp.Integer):
            raise CannotEvaluate("the branch of LambertW must be an integer")
        n = int(branch)
        return self.apply(lambda a, analytic: _lambert_w(a[0], n, analytic), e.args[0])

    def _reduce(self, e: Any) -> int:
        (index, low, high), *outer = e.limits
        if outer:
            raise CannotEvaluate(
                f"a {e.func.__name__} over several indices at once is not supported; nest it as "
                "the summand of another one over another letter"
            )
        body = compile_program(e.function)
        names = sorted((e.function.free_symbols - {index}), key=str)
        is_sum = isinstance(e, sp.Sum)

        def operation(a: Sequence[Any], analytic: bool) -> Any:
            first, last = _exact_integer(a[0], low), _exact_integer(a[1], high)
            if last - first >= MAX_SUM_TERMS:
                raise CannotEvaluate(
                    f"the {'sum' if is_sum else 'product'} over {index} has {last - first + 1} "
                    f"terms; at most {MAX_SUM_TERMS} are added one by one"
                )
            scope = dict(zip(names, a[2:], strict=True))
            total = acb(0) if is_sum else acb(1)
            for k in range(first, last + 1):
                scope[index] = acb(k)
                term = body(scope, analytic)
                total = total + term if is_sum else total * term
            return total

        return self.apply(operation, low, high, *names)

    def _integral(self, e: Any) -> int:
        from numerics.integrals import IntegralNode

        *inner, limit = e.limits
        if len(limit) != 3:
            raise CannotEvaluate(f"the integral over {limit[0]} has no limits; give both ends")
        integrand = sp.Integral(e.function, *inner) if inner else e.function
        node = IntegralNode.build(integrand, *limit)
        return self.apply(node, *node.ends(), *node.names)


def _exact_integer(value: Any, source: Any) -> int:
    number = value.unique_fmpz() if value.imag.is_zero() else None
    if number is None or not (value - acb(number)).is_zero():
        raise CannotEvaluate(f"the limit {source} of a sum or product must be an exact integer")
    return int(number)


def _constant(e: Any) -> Operation:
    if isinstance(e, sp.Rational):
        fraction = fmpq(int(e.p), int(e.q))
        return lambda _a, _f: acb(arb(fraction))
    if isinstance(e, sp.Float):
        # A binary float is an exact dyadic rational; it stands for itself, not for a decimal.
        sign, mantissa, exponent, _ = e._mpf_
        if abs(int(exponent)) > MAX_FLOAT_EXPONENT:
            raise CannotEvaluate(
                f"a float in the expression has a binary exponent of {len(str(abs(exponent)))} "
                f"digits; at most {MAX_FLOAT_EXPONENT} in size is allowed; write exact numbers"
            )
        whole = -int(mantissa) if sign else int(mantissa)
        return lambda _a, _f: acb(arb((whole, int(exponent))))
    named: dict[Any, Operation] = {
        sp.pi: lambda _a, _f: acb(arb.pi()),
        sp.E: lambda _a, _f: acb(arb.const_e()),
        sp.EulerGamma: lambda _a, _f: acb(arb.const_euler()),
        sp.Catalan: lambda _a, _f: acb(arb.const_catalan()),
        sp.GoldenRatio: lambda _a, _f: acb((1 + arb(5).sqrt()) / 2),
        sp.I: lambda _a, _f: acb(0, 1),
    }
    if e not in named:
        raise CannotEvaluate(f"the constant {e} is not a finite number; only integrals may use oo")
    return named[e]


def _add(a: Sequence[Any], _analytic: bool) -> Any:
    total = a[0]
    for term in a[1:]:
        total = total + term
    return total


def _cdf(z: Any) -> Any:
    return (-z / arb(2).sqrt()).erfc() / 2


def _power_of_cdf(a: Sequence[Any], analytic: bool) -> Any:
    """Phi(x)^n = exp(n log1p(-Q(x))): with n as large as a googol no digit of Q may be lost."""
    x, n = a
    if x.real > 0:
        upper = _cdf(-x)
        if upper.abs_upper() < 1:
            return (n * (-upper).log1p()).exp()
    return _cdf(x).pow(n, analytic=analytic)


def _multiply(a: Sequence[Any], _analytic: bool) -> Any:
    total = a[0]
    for factor in a[1:]:
        total = total * factor
    return total


def _rsqrt(z: Any, analytic: bool) -> Any:
    return z.rsqrt(analytic=analytic)


def _touches_cut(z: Any, right_end: Any) -> bool:
    """May the ball z meet the cut (-oo, right_end] on the real axis?"""
    return bool(z.imag.contains(0)) and not bool(z.real > right_end)


def _lambert_w(z: Any, branch: int, analytic: bool) -> Any:
    if analytic:
        right_end = -(arb(-1).exp()) if branch == 0 else arb(0)
        if _touches_cut(z, right_end):
            return undefined()
    return z.lambertw(branch)


def _lgamma(a: Sequence[Any], analytic: bool) -> Any:
    if analytic and _touches_cut(a[0], arb(0)):
        return undefined()
    return a[0].lgamma()


def _real_only(name: str) -> Operation:
    """A function that Arb knows on the real axis only: complex or non-real input is refused."""

    def operation(a: Sequence[Any], analytic: bool) -> Any:
        if analytic or not a[0].imag.is_zero():
            return undefined()
        return acb(getattr(a[0].real, name)())

    return operation


def _not_holomorphic(function: Callable[[Any], Any]) -> Operation:
    """re, im, conjugate: fine as values, never analytic."""
    return lambda a, analytic: undefined() if analytic else function(a[0])


def _binomial(a: Sequence[Any], _analytic: bool) -> Any:
    n, k = a
    number = k.unique_fmpz() if k.imag.is_zero() else None
    if number is not None and (k - acb(number)).is_zero() and 0 <= number <= 10_000:
        return (n - k + 1).rising(k) * (k + 1).rgamma()
    return (n + 1).gamma() * (k + 1).rgamma() * (n - k + 1).rgamma()


def _extreme(name: str) -> Operation:
    def operation(a: Sequence[Any], analytic: bool) -> Any:
        result = a[0]
        for other in a[1:]:
            result = getattr(result, name)(other, analytic=analytic)
        return result

    return operation


FUNCTIONS: dict[Any, Operation] = {
    sp.log: lambda a, f: a[0].log(analytic=f) if len(a) == 1 else undefined(),
    sp.sin: lambda a, _: a[0].sin(),
    sp.cos: lambda a, _: a[0].cos(),
    sp.tan: lambda a, _: a[0].tan(),
    sp.sinh: lambda a, _: a[0].sinh(),
    sp.cosh: lambda a, _: a[0].cosh(),
    sp.tanh: lambda a, _: a[0].tanh(),
    Phi: lambda a, _: _cdf(a[0]),
    phi: lambda a, _: (-(a[0] ** 2) / 2).exp() / (2 * arb.pi()).sqrt(),
    sp.erfinv: _real_only("erfinv"),
    sp.erfcinv: _real_only("erfcinv"),
    sp.gamma: lambda a, _: a[0].gamma(),
    sp.loggamma: _lgamma,
    sp.digamma: lambda a, _: a[0].digamma(),
    sp.factorial: lambda a, _: (a[0] + 1).gamma(),
    sp.binomial: _binomial,
    sp.Abs: lambda a, f: a[0].real_abs(analytic=f) if a[0].imag.is_zero() or f else _modulus(a[0]),
    sp.Max: _extreme("real_max"),
    sp.Min: _extreme("real_min"),
    sp.re: _not_holomorphic(lambda z: acb(z.real)),
    sp.im: _not_holomorphic(lambda z: acb(z.imag)),
    sp.conjugate: _not_holomorphic(lambda z: z.conjugate()),
}
for _name in ("asin", "acos", "atan", "asinh", "acosh", "atanh"):
    # Their cuts are not checked, so they are values only, never part of an analytic integrand.
    FUNCTIONS[getattr(sp, _name)] = _not_holomorphic(operator.methodcaller(_name))


def _modulus(z: Any) -> Any:
    return acb((z.real**2 + z.imag**2).sqrt())
