"""A small calculus of averages over Gaussian variables.

Objects: `phi` and `Phi` (density and distribution function), `PhiInverse`, and
`GaussianAverage(body, (variable, variance, lower, upper), ...)`, an unevaluated integral that keeps
its measure. Rules (each returns a new expression): `stein`, `standardise` (scaling), `shift`,
`heat_kernel`, and `doit`, which applies the convolution rules until a closed form is reached.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import sympy as sp
from sympy.core.evalf import prec_to_dps

from replica.errors import InvalidInput


class phi(sp.Function):
    """Standard normal density, phi(x) = exp(-x^2/2) / sqrt(2 pi).

    >>> import sympy as sp
    >>> x = sp.Symbol("x")
    >>> phi(x).diff(x), phi(-x)
    (-x*phi(x), phi(x))
    """

    nargs = 1
    is_real = None

    @classmethod
    def eval(cls, x: Any) -> Any:
        if x in (sp.oo, -sp.oo):
            return sp.S.Zero
        if x.could_extract_minus_sign():
            return cls(-x)
        return None

    def fdiff(self, argindex: int = 1) -> Any:
        return -self.args[0] * self

    def plain(self) -> Any:
        """The density written with `exp`."""
        return sp.exp(-(self.args[0] ** 2) / 2) / sp.sqrt(2 * sp.pi)

    def _eval_evalf(self, prec: int) -> Any:
        return self.plain()._eval_evalf(prec)

    def _eval_is_positive(self) -> bool | None:
        return True if self.args[0].is_extended_real else None

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        return _latex_call(r"\varphi", self.args[0], printer, exp)


class Phi(sp.Function):
    """Standard normal distribution function, Phi(x) = P(z < x) for z ~ N(0, 1).

    >>> import sympy as sp
    >>> x = sp.Symbol("x")
    >>> Phi(x).diff(x), Phi(sp.oo), Phi(0)
    (phi(x), 1, 1/2)
    """

    nargs = 1

    @classmethod
    def eval(cls, x: Any) -> Any:
        if x is sp.oo:
            return sp.S.One
        if x is -sp.oo:
            return sp.S.Zero
        if x.is_zero:
            return sp.S.Half
        return None

    def fdiff(self, argindex: int = 1) -> Any:
        return phi(self.args[0])

    def plain(self) -> Any:
        """The distribution function written with `erfc`."""
        return sp.erfc(-self.args[0] / sp.sqrt(2)) / 2

    def _eval_evalf(self, prec: int) -> Any:
        return self.plain()._eval_evalf(prec)

    def _eval_is_positive(self) -> bool | None:
        return True if self.args[0].is_real else None

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        return _latex_call(r"\Phi", self.args[0], printer, exp)


class PhiInverse(sp.Function):
    """Quantile of the standard normal law: Phi(PhiInverse(u)) = u, 0 < u < 1.

    Deep in the lower tail it keeps its digits (`PhiInverse(10**-21)` evaluates to full precision);
    for the upper tail use the symmetry PhiInverse(1 - u) = -PhiInverse(u).

    >>> import sympy as sp
    >>> PhiInverse(sp.Rational(1, 2)), Phi(PhiInverse(sp.Symbol("u")))
    (0, Phi(PhiInverse(u)))
    >>> (-PhiInverse(sp.Float("6.3342483999973e-21", 30) / 2) / sp.sqrt(2)).evalf(14)
    6.6356942300132
    """

    nargs = 1

    @classmethod
    def eval(cls, u: Any) -> Any:
        if u == sp.S.Half:
            return sp.S.Zero
        if u.is_Number and not 0 < u < 1:
            raise InvalidInput(
                f"PhiInverse of {u}: a probability strictly between 0 and 1 is allowed"
            )
        if u.is_Rational and u > sp.S.Half:
            return -cls(1 - u)  # the lower tail keeps its digits
        return None

    def fdiff(self, argindex: int = 1) -> Any:
        return 1 / phi(self)

    def plain(self) -> Any:
        """The quantile written with `erfinv` (the form that `sympify` and `evalf` know)."""
        return sp.sqrt(2) * sp.erfinv(2 * self.args[0] - 1)

    def _eval_evalf(self, prec: int) -> Any:
        import mpmath

        value = self.args[0]._eval_evalf(prec)
        if value is None or not value.is_Number or not 0 < value < 1:
            return None
        # Newton on log Phi, which is concave: converges from the left in either tail.
        with mpmath.workprec(prec + 20):
            u = value._to_mpmath(prec + 20)
            if u > 0.5:
                return -PhiInverse(1 - value)._eval_evalf(prec)
            target = mpmath.log(u)
            point = -mpmath.sqrt(-2 * target)
            for _ in range(200):
                cdf = mpmath.erfc(-point / mpmath.sqrt(2)) / 2
                step = (mpmath.log(cdf) - target) * cdf / mpmath.npdf(point)
                point -= step
                if abs(step) <= mpmath.ldexp(1 + abs(point), -prec - 5):
                    return sp.Float._new(point._mpf_, prec)
        return None

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        return _latex_call(r"\Phi^{-1}", self.args[0], printer, exp)


def _latex_call(head: str, argument: Any, printer: Any, exp: str | None) -> str:
    body = rf"{head}\left({printer._print(argument)}\right)"
    return body if exp is None else rf"{{{body}}}^{{{exp}}}"


class GaussianAverage(sp.Expr):
    """E[body] over independent v ~ N(0, variance) (weight kept, unevaluated):

        E[body] = integral_lower^upper body(v) exp(-v^2/(2 s)) / sqrt(2 pi s) dv,  s = variance.

    Each limit is `v`, `(v, variance)` or `(v, variance, lower, upper)`; the range defaults to the
    real line (a finite range keeps the full Gaussian weight: it is E[body 1(lower < v < upper)]).

    >>> import sympy as sp
    >>> x, a, b = sp.symbols("x a b", real=True)
    >>> GaussianAverage(Phi(a * x + b), x).doit()
    Phi(b/sqrt(a**2 + 1))
    >>> GaussianAverage(x**4, x).doit()
    3
    """

    def __new__(cls, body: Any, *limits: Any) -> Any:
        if not limits:
            raise InvalidInput("GaussianAverage needs at least one variable to average over")
        ranges = []
        for limit in limits:
            entries = list(limit) if isinstance(limit, tuple | sp.Tuple) else [limit]
            entries += [sp.S.One, -sp.oo, sp.oo][len(entries) - 1 :]
            if not isinstance(entries[0], sp.Symbol) or len(entries) != 4:
                raise InvalidInput(
                    f"the limit {limit} of a GaussianAverage must be a symbol, (symbol, variance) "
                    "or (symbol, variance, lower, upper)"
                )
            ranges.append(sp.Tuple(*[sp.sympify(entry) for entry in entries]))
        body = sp.sympify(body)
        whole_line = all(entry[2:] == (-sp.oo, sp.oo) for entry in ranges)
        if body == 0 or (body == 1 and whole_line):
            return body  # the measure is normalised
        return sp.Expr.__new__(cls, body, *ranges)

    is_commutative = True

    @property
    def body(self) -> Any:
        """The averaged expression."""
        return self.args[0]

    @property
    def limits(self) -> tuple[Any, ...]:
        """Tuples (variable, variance, lower, upper)."""
        return self.args[1:]

    @property
    def bound_symbols(self) -> list[Any]:
        """The variables averaged over."""
        return [limit[0] for limit in self.limits]

    @property
    def free_symbols(self) -> set[Any]:
        outer: set[Any] = set().union(*(e.free_symbols for lim in self.limits for e in lim[1:]))
        return (self.body.free_symbols - set(self.bound_symbols)) | outer

    def _eval_subs(self, old: Any, new: Any) -> Any:
        average = self
        incoming = sp.sympify(new).free_symbols & set(self.bound_symbols)
        if incoming:
            average = self._rename({s: sp.Dummy(s.name, **s.assumptions0) for s in incoming})
        limits = [(lim[0], *[entry._subs(old, new) for entry in lim[1:]]) for lim in average.limits]
        hidden = old.free_symbols & set(average.bound_symbols)
        body = average.body if hidden else average.body._subs(old, new)
        return GaussianAverage(body, *limits)

    def _rename(self, names: dict[Any, Any]) -> Any:
        limits = [(names.get(lim[0], lim[0]), *lim[1:]) for lim in self.limits]
        return GaussianAverage(self.body.xreplace(names), *limits)

    def _eval_derivative(self, symbol: Any) -> Any:
        for _, variance, lower, upper in self.limits:
            if variance.has(symbol):
                return self.standardise().diff(symbol)
            if lower.has(symbol) or upper.has(symbol):
                return self.as_integral().diff(symbol)
        derivative = self.body.diff(symbol)
        return derivative if derivative == 0 else GaussianAverage(derivative, *self.limits)

    # -- rules ---------------------------------------------------------------------------------
    def standardise(self) -> Any:
        """Scaling rule: v = sqrt(s) z with z ~ N(0, 1), for every variable.

        >>> import sympy as sp
        >>> x, s = sp.Symbol("x"), sp.Symbol("s", positive=True)
        >>> GaussianAverage(x**2, (x, s)).standardise()
        GaussianAverage(s*x**2, x)
        """
        scale = {v: sp.sqrt(s) * v for v, s, _, _ in self.limits if s != 1}
        limits = [(v, 1, a / sp.sqrt(s), b / sp.sqrt(s)) for v, s, a, b in self.limits]
        return GaussianAverage(self.body.subs(scale, simultaneous=True), *limits)

    def shift(self, variable: Any, amount: Any) -> Any:
        """Shift rule (Cameron-Martin): E f(v) = E exp(-c v/s - c^2/(2s)) f(v + c)."""
        limits = []
        body = self.body
        for v, s, a, b in self.limits:
            if v == variable:
                tilt = sp.exp(-amount * v / s - amount**2 / (2 * s))
                body = tilt * body.subs(v, v + amount)
                limits.append((v, s, a - amount, b - amount))
            else:
                limits.append((v, s, a, b))
        return GaussianAverage(body, *limits)

    def stein(self, variable: Any) -> Any:
        """Stein's lemma: E v g(v) = s E g'(v), in every term that carries a factor `variable`.

        >>> import sympy as sp
        >>> x, s = sp.symbols("x s")
        >>> GaussianAverage(x * sp.sin(x), (x, s)).stein(x)
        s*GaussianAverage(cos(x), (x, s))
        """
        (limit,) = [lim for lim in self.limits if lim[0] == variable]
        if limit[2:] != (-sp.oo, sp.oo):
            raise InvalidInput("Stein's lemma is applied on the whole line only; the range is cut")
        total = sp.S.Zero
        for term in sp.Add.make_args(_expand(self.body)):
            rest = term / variable
            if variable in sp.Mul.make_args(term) or _has_power(term, variable):
                term = limit[1] * rest.diff(variable)
            average = GaussianAverage(_expand(term), *self.limits)
            total += average.pull_out() if isinstance(average, GaussianAverage) else average
        return total

    def pull_out(self) -> Any:
        """Linearity: sums split, factors without averaged variables move outside."""
        total = sp.S.Zero
        for term in sp.Add.make_args(self.body):
            outside, inside = term.as_independent(*self.bound_symbols, as_Add=False)
            if outside != 0:
                total += outside * GaussianAverage(inside, *self.limits)
        return total

    def scale(self, factor: Any) -> Any:
        """E[factor * body] for a factor without averaged variables: stays one average."""
        return GaussianAverage(_expand(factor * self.body), *self.limits)

    def as_integral(self) -> Any:
        """The average as a plain `sympy.Integral` with its Gaussian weight written out."""
        weight = sp.S.One
        for v, s, _, _ in self.limits:
            weight *= sp.exp(-(v**2) / (2 * s)) / sp.sqrt(2 * sp.pi * s)
        return sp.Integral(weight * self.body, *[(v, a, b) for v, _, a, b in self.limits])

    plain = as_integral

    def doit(self, **hints: Any) -> Any:
        """Closed form by the convolution rules, variable by variable; the rest stays an average.

        >>> import sympy as sp
        >>> x, a = sp.symbols("x a", real=True)
        >>> GaussianAverage(Phi(x - a), x).doit()
        Phi(-sqrt(2)*a/2)
        >>> GaussianAverage((a - x) ** 2, (x, 1, -sp.oo, a)).doit()
        a**2*Phi(a) + a*phi(a) + Phi(a)
        """
        body = self.body.doit(**hints) if hints.get("deep", True) else self.body
        average = GaussianAverage(body, *self.limits).standardise()
        result, remaining = average.body, []
        for v, _, lower, upper in reversed(average.limits):
            value = _closed_form(result, v, lower, upper)
            if value is None:
                remaining.append((v, 1, lower, upper))
            else:
                result = value
        return GaussianAverage(result, *reversed(remaining)) if remaining else result

    def _eval_evalf(self, prec: int) -> Any:
        closed = self.doit()
        if not isinstance(closed, GaussianAverage):
            return plain(closed).evalf(prec_to_dps(prec))
        if len(closed.limits) > 1 or closed.free_symbols or closed.body.has(GaussianAverage):
            return None  # several variables are left to `numerics`
        return _quadrature(closed, prec)

    def _sympystr(self, printer: Any) -> str:
        return f"GaussianAverage({', '.join(printer._print(a) for a in self._short_args())})"

    def _short_args(self) -> list[Any]:
        short = []
        for v, s, a, b in self.limits:
            whole = (a, b) == (-sp.oo, sp.oo)
            short.append((v, s, a, b) if not whole else v if s == 1 else (v, s))
        return [self.body, *[sp.Tuple(*e) if isinstance(e, tuple) else e for e in short]]

    def _latex(self, printer: Any) -> str:
        names = []
        for v, s, a, b in self.limits:
            name = rf"{printer._print(v)} \sim N(0, {printer._print(s)})"
            if (a, b) != (-sp.oo, sp.oo):
                name += rf",\, {printer._print(a)} < {printer._print(v)} < {printer._print(b)}"
            names.append(name)
        return rf"\mathbb{{E}}_{{{', '.join(names)}}}\left[{printer._print(self.body)}\right]"


def _quadrature(average: GaussianAverage, prec: int) -> Any:
    """One average over a standardised variable to `prec` bits, pieces of unit length, tails cut.

    The cut is where the weighted body falls below 2^-prec of its largest value seen, which also
    serves bodies that grow almost as fast as the weight decays.
    """
    import mpmath

    (v, _, lower, upper) = average.limits[0]
    with mpmath.workprec(prec + 30):
        body = sp.lambdify(v, plain(average.body), "mpmath")

        def weighted(z: Any) -> Any:
            return body(z) * mpmath.npdf(z)

        def end(limit: Any, sign: int) -> Any:
            if limit not in (sp.oo, -sp.oo):
                return mpmath.mpf(sp.Float(limit, prec_to_dps(prec + 30))._mpf_)
            reach, largest = mpmath.mpf(0), mpmath.mpf(0)
            while True:
                size = abs(weighted(sign * reach))
                largest = max(largest, size)
                if reach > 4 and size * mpmath.ldexp(1, prec + 10) < largest:
                    return sign * reach
                reach += 1

        low, high = end(lower, -1), end(upper, 1)
        if (lower, upper) == (-sp.oo, sp.oo):
            value = _trapezoid(weighted, low, high, prec)
        else:
            pieces = max(1, int(mpmath.ceil(high - low)))
            nodes = [low + (high - low) * i / pieces for i in range(pieces + 1)]
            value = mpmath.mpmathify(mpmath.quad(weighted, nodes, method="gauss-legendre"))
    if isinstance(value, mpmath.mpc) and abs(value.imag) > mpmath.ldexp(abs(value), -prec):
        imaginary = sp.Float._new(value.imag._mpf_, prec)
        return sp.Float._new(value.real._mpf_, prec) + sp.I * imaginary
    return sp.Float._new(mpmath.re(value)._mpf_, prec)


def _trapezoid(function: Any, low: Any, high: Any, prec: int) -> Any:
    """Trapezoidal rule, step halved until two results agree: exponential for analytic functions."""
    import mpmath

    step = (high - low) / 32
    total = mpmath.fsum(function(low + i * step) for i in range(33))
    value = total * step
    for _ in range(12):
        step /= 2
        total += mpmath.fsum(
            function(low + (2 * i + 1) * step)
            for i in range(int(mpmath.nint((high - low) / step)) // 2)
        )
        previous, value = value, mpmath.mpmathify(total * step)
        if abs(value - previous) <= mpmath.ldexp(abs(value), -prec - 4):
            return value
    raise ArithmeticError("the average does not converge to the precision asked for")


def _expand(expression: Any) -> Any:
    """Products and powers of sums multiplied out, functions left alone."""
    return sp.expand_multinomial(sp.expand_mul(expression))


def _has_power(term: Any, variable: Any) -> bool:
    """True when a positive power of `variable` is a factor of `term`."""
    factors = sp.Mul.make_args(term)
    return any(f.is_Pow and f.base == variable and f.exp.is_positive for f in factors)


def _closed_form(body: Any, v: Any, lower: Any, upper: Any) -> Any:
    """E[body 1(lower < v < upper)], v ~ N(0, 1), or None where the rules do not reach."""
    total = sp.S.Zero
    for term in sp.Add.make_args(_expand(body)):
        outside, inside = term.as_independent(v, as_Add=False)
        if outside == 0:
            continue
        value = _closed_form_of_product(inside, v, lower, upper)
        if value is None:
            return None
        total += outside * value
    return total


def _closed_form_of_product(term: Any, v: Any, lower: Any, upper: Any) -> Any:
    if term == 1:
        return Phi(upper) - Phi(lower)
    for factor in sp.Mul.make_args(term):
        base, exponent = factor.as_base_exp()
        if isinstance(base, phi) and exponent.is_Integer and exponent > 0:
            line = _affine(base.args[0], v)
            if line is None:
                return None
            # phi(v) phi(a v + b) = phi(b/c) phi(c v + a b/c), c^2 = 1 + a^2.
            a, b = line
            c = sp.sqrt(1 + a**2)
            rest = (term / base).subs(v, v / c - a * b / c**2)
            inner = _closed_form(
                rest, v, _moved(c * lower, a * b / c), _moved(c * upper, a * b / c)
            )
            return None if inner is None else phi(b / c) / c * inner
    for factor in sp.Mul.make_args(term):
        if isinstance(factor, sp.exp):
            line = _affine(sp.expand(factor.args[0]), v)
            if line is None:
                return None
            a, b = line
            others = sp.Mul(*[f for f in sp.Mul.make_args(term) if f is not factor])
            inner = _closed_form(others.subs(v, v + a), v, _moved(lower, -a), _moved(upper, -a))
            return None if inner is None else sp.exp(b + a**2 / 2) * inner
    # Powers last: by parts against phi(v) they would otherwise grow back from phi or exp factors.
    for factor in sp.Mul.make_args(term):
        base, exponent = factor.as_base_exp()
        if base == v and exponent.is_Integer and exponent > 0:
            # Integration by parts, boundary terms kept (they vanish at infinity).
            rest = term / v
            edges = _edge(rest, v, lower) - _edge(rest, v, upper)
            inner = _closed_form(rest.diff(v), v, lower, upper)
            return None if inner is None else edges + inner
    if (lower, upper) == (-sp.oo, sp.oo):
        return _product_of_cdfs(term, v)
    return None


def _product_of_cdfs(term: Any, v: Any) -> Any:
    """E Phi(a v + b); E Phi(a v) Phi(c v) and E Phi(a v)^3 by the bivariate orthant formula."""
    lines = []
    for factor in sp.Mul.make_args(term):
        base, power = factor.as_base_exp()
        line = _affine(base.args[0], v) if isinstance(base, Phi) else None
        if line is None or power not in (1, 2, 3):
            return None
        lines += [line] * int(power)
    if len(lines) == 1:
        a, b = lines[0]
        return Phi(b / sp.sqrt(1 + a**2))
    if len(lines) > 3 or any(b != 0 for _, b in lines):
        return None

    def odd_parts(a: Any, c: Any) -> Any:
        # E (Phi(a v) - 1/2)(Phi(c v) - 1/2)
        return sp.asin(a * c / (sp.sqrt(1 + a**2) * sp.sqrt(1 + c**2))) / (2 * sp.pi)

    slopes = [a for a, _ in lines]
    pairs = [odd_parts(a, c) for i, a in enumerate(slopes) for c in slopes[i + 1 :]]
    # Phi = 1/2 + odd: the mean of an odd product vanishes.
    return sp.Rational(1, 2 ** len(slopes)) + sp.Rational(1, 2 ** (len(slopes) - 2)) * sp.Add(
        *pairs
    )


def _moved(end: Any, amount: Any) -> Any:
    return end if end in (sp.oo, -sp.oo) else end + amount


def _edge(rest: Any, v: Any, end: Any) -> Any:
    return sp.S.Zero if end in (sp.oo, -sp.oo) else rest.subs(v, end) * phi(end)


def _affine(argument: Any, v: Any) -> tuple[Any, Any] | None:
    """(a, b) with argument = a v + b, or None."""
    if not argument.is_polynomial(v):
        return None
    polynomial = sp.Poly(argument, v)
    if polynomial.degree() != 1:
        return None
    return polynomial.coeff_monomial(v), polynomial.coeff_monomial(1)


omega = sp.Function("omega", real=True)
eta = sp.Function("eta", real=True)


class ScoreAverage(sp.Expr):
    """E[body] over a vector field(0), ..., field(size - 1) of independent N(0, variance) scores.

    For a symbolic number of scores, where no finite list of variables exists. `field(i)` in the
    body is the i-th score; the object stays unevaluated. In strings an average over the increments
    eta(i) is called IncrementAverage.

    >>> import sympy as sp
    >>> ScoreAverage(omega(0), omega, sp.Symbol("q"), sp.Symbol("M") + 1)
    ScoreAverage(omega(0), q, M + 1)
    """

    def __new__(cls, body: Any, field: Any, variance: Any, size: Any) -> Any:
        name = field if isinstance(field, sp.Symbol) else sp.Symbol(field.__name__)
        return sp.Expr.__new__(cls, sp.sympify(body), name, sp.sympify(variance), sp.sympify(size))

    is_commutative = True

    @property
    def free_symbols(self) -> set[Any]:
        body, _, variance, size = self.args
        return body.free_symbols | variance.free_symbols | size.free_symbols

    def _sympystr(self, printer: Any) -> str:
        # The field is bound: it is named by the head, so that no free symbol appears in strings.
        body, field, variance, size = self.args
        head = "ScoreAverage" if field.name == "omega" else "IncrementAverage"
        return f"{head}({', '.join(printer._print(a) for a in (body, variance, size))})"

    def _latex(self, printer: Any) -> str:
        body, field, variance, size = (printer._print(a) for a in self.args)
        law = rf"{field} \sim N(0, ({variance}) I_{{{size}}})"
        return rf"\mathbb{{E}}_{{{law}}}\left[{body}\right]"


def heat_kernel(end: Any, start: Any, time: Any) -> Any:
    """N(end; start, time), the Gaussian density that solves d/dtime = (1/2) d^2/dstart^2.

    >>> import sympy as sp
    >>> a, b, v = sp.symbols("a b v", positive=True)
    >>> kernel = heat_kernel(a, b, v)
    >>> sp.simplify(kernel.diff(v) - kernel.diff(b, 2) / 2)
    0
    """
    return sp.exp(-((end - start) ** 2) / (2 * time)) / sp.sqrt(2 * sp.pi * time)


def plain(expression: Any) -> Any:
    """Every object of this package rewritten with functions that `sympy.sympify` knows.

    >>> import sympy as sp
    >>> x = sp.Symbol("x")
    >>> plain(Phi(x)), plain(phi(x))
    (1 - erfc(sqrt(2)*x/2)/2, sqrt(2)*exp(-x**2/2)/(2*sqrt(pi)))
    """
    if isinstance(expression, list | tuple):
        return type(expression)(plain(item) for item in expression)
    return _plain(expression) if isinstance(expression, sp.Basic) else expression


@lru_cache(maxsize=20_000)
def _plain(expression: Any) -> Any:
    if not expression.args:
        return expression
    arguments = [_plain(argument) for argument in expression.args]
    if any(new is not old for new, old in zip(arguments, expression.args, strict=True)):
        expression = expression.func(*arguments)
    rewrite = getattr(expression, "plain", None)
    return _plain(rewrite()) if callable(rewrite) else expression
