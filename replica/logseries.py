"""Exact truncated series in 1/L whose coefficients are polynomials in ell = log L.

    f = sum_{e, k} c_{e k} L^e ell^k + O(L^r ell^s),   L -> infinity,

with rational e, integer k and c_{e k} in an exact domain (rationals, algebraic numbers, symbols
such as log 2, log pi, EulerGamma, alpha). Terms are ordered by (e, k), the order in which they
dominate each other; the O-term absorbs everything at or below it, so O(L ell + L) = O(L ell).

Every operation carries the O-term along, which makes the ring prove things: if X = X_0 + O(r) and
X = G(X), then X = G(X_0 + O(r)), and when G returns a smaller O-term the iteration contracts
(`LogSeriesRing.fixed_point`). All series kept by a ring stop at L^(-order).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import lcm
from numbers import Rational
from typing import Any

import sympy as sp
from sympy.polys.domains import QQ
from sympy.polys.polyerrors import BasePolynomialError

from replica.errors import InvalidInput

Key = tuple[Fraction, int]

_CONSTANT: Key = (Fraction(0), 0)


def _plus(first: Key, second: Key) -> Key:
    return (first[0] + second[0], first[1] + second[1])


class LogSeriesRing:
    """The series whose coefficients are built from the given constants, kept to L^(-order).

    `constants` are SymPy expressions that behave as independent symbols (log(2), log(pi), alpha
    ...); `algebraic` are algebraic numbers such as sqrt(2). With `field=True` coefficients may be
    divided by polynomials in the constants.

    >>> ring = LogSeriesRing(2, constants=[sp.log(2)])
    >>> w = ring.lambert_w(ring.L)  # w + log w = L, that is W(e^L)
    >>> print(w)
    L - ell + ell/L + ell**2/(2*L**2) - ell/L**2 + O(ell**3/L**3)
    """

    def __init__(
        self,
        order: int | Fraction,
        constants: Sequence[sp.Expr] = (),
        algebraic: Sequence[sp.Expr] = (),
        *,
        field: bool = False,
        name: str = "L",
        log_name: str = "ell",
    ) -> None:
        if order < 0:
            raise InvalidInput(f"the order of a series is {order}; it must be at least 0")
        self.order = Fraction(order)
        self.symbol = sp.Symbol(name, positive=True)
        self.log_symbol = sp.Symbol(log_name, real=True)
        domain = QQ.algebraic_field(*algebraic) if algebraic else QQ
        if constants:
            domain = domain.frac_field(*constants) if field else domain.poly_ring(*constants)
        self.domain = domain

    def is_compatible(self, other: LogSeriesRing) -> bool:
        """Whether series of the two rings may be combined: same constants and names."""
        return self is other or (
            self.domain == other.domain
            and self.symbol == other.symbol
            and self.log_symbol == other.log_symbol
        )

    def _with_order(self, order: Fraction) -> LogSeriesRing:
        """A ring with the same constants and another order."""
        other = object.__new__(LogSeriesRing)
        other.__dict__.update(self.__dict__)
        other.order = order
        return other

    # -- elements -----------------------------------------------------------------------------

    def coefficient(self, value: Any) -> Any:
        """An element of the coefficient domain from a number or a SymPy expression."""
        if isinstance(value, Fraction):
            value = sp.Rational(value.numerator, value.denominator)
        expression = sp.expand_log(sp.sympify(value), force=True)
        try:
            return self.domain.from_sympy(sp.expand(expression))
        except (BasePolynomialError, NotImplementedError):
            pass
        try:
            return self.domain.from_sympy(sp.together(expression))
        except (BasePolynomialError, NotImplementedError):
            raise InvalidInput(
                f"the constant {value} is not in the coefficient domain {self.domain}; "
                "name it among the constants of the series ring"
            ) from None

    def monomial(
        self, power: Rational | int, log_power: int = 0, coefficient: Any = 1
    ) -> LogSeries:
        """coefficient L^power ell^log_power, exact."""
        key = (Fraction(power), int(log_power))
        return LogSeries(self, {key: self.coefficient(coefficient)}, None)

    def big_o(self, power: Rational | int, log_power: int = 0) -> LogSeries:
        """O(L^power ell^log_power).

        >>> ring = LogSeriesRing(3)
        >>> ring.big_o(1, 1) + ring.L == ring.big_o(1, 1)
        True
        """
        return LogSeries(self, {}, (Fraction(power), int(log_power)))

    def constant(self, value: Any) -> LogSeries:
        """A constant series."""
        return self.monomial(0, 0, value)

    @property
    def L(self) -> LogSeries:
        """The large variable."""
        return self.monomial(1)

    @property
    def ell(self) -> LogSeries:
        """The logarithm of the large variable."""
        return self.monomial(0, 1)

    @property
    def zero(self) -> LogSeries:
        """The exact zero."""
        return LogSeries(self, {}, None)

    # -- equations ----------------------------------------------------------------------------

    def fixed_point(self, step: Callable[[LogSeries], LogSeries], start: LogSeries) -> LogSeries:
        """The unique X = step(X) inside `start`, whose O-term says how well X is known.

        Each round must return a series inside the last one with a smaller O-term: that is the
        proof that `step` contracts, and it is checked. Raises InvalidInput where it does not.
        """
        current = start
        while current.remainder is not None:
            following = step(current)
            if not (following - current).is_within(current.remainder):
                raise InvalidInput(
                    f"the map sends {current} to {following}, which lies outside; "
                    "start from a series that contains the solution"
                )
            if following.remainder is not None and following.remainder >= current.remainder:
                if current.remainder[0] < -self.order:
                    return current
                raise InvalidInput(
                    f"the map does not contract at {current}; "
                    "rewrite the equation so that the unknown enters with a small derivative"
                )
            current = following
        return current

    def lambert_w(self, argument: LogSeries) -> LogSeries:
        """W(exp(argument)): the solution w of w + log w = argument -> infinity.

        >>> ring = LogSeriesRing(1, constants=[sp.log(2)])
        >>> print(ring.lambert_w(ring.L * 2))  # W(n^2) with L = log n
        2*L - ell - log(2) + ell/(2*L) + log(2)/(2*L) + O(ell**2/L**2)
        """
        power, log_power = argument.leading_key()
        if power <= 0 or log_power != 0:
            raise InvalidInput(
                f"Lambert's W is expanded at infinity; the argument {argument} must grow as a "
                "positive power of L"
            )
        lead = argument.leading_term()
        rest = (argument - lead).bound()
        slack = (Fraction(0), 1) if rest is None else max((Fraction(0), 1), rest)
        start = lead + self.big_o(*slack)
        return self.fixed_point(lambda w: argument - w.log(), start)


class LogSeries:
    """An element of a `LogSeriesRing`; immutable, hashable, exact.

    `terms` maps (power of L, power of ell) to the coefficient, `remainder` is the pair of the
    O-term or None where the series is exact.

    >>> ring = LogSeriesRing(2)
    >>> f = ring.L + ring.ell
    >>> print(f * f)
    L**2 + 2*L*ell + ell**2
    >>> print(1 / f)
    1/L - ell/L**2 + O(ell**2/L**3)
    >>> print((f / ring.L).log())
    ell/L - ell**2/(2*L**2) + O(ell**3/L**3)
    """

    __slots__ = ("remainder", "ring", "terms")

    def __init__(
        self,
        ring: LogSeriesRing,
        terms: Mapping[Key, Any],
        remainder: Key | None,
        floor: Fraction | None = None,
    ) -> None:
        floor = -ring.order if floor is None else floor
        zero = ring.domain.zero
        present = sorted((key for key, value in terms.items() if value != zero), reverse=True)
        for key in present:
            if key[0] < floor:  # too small to keep: becomes part of the O-term
                remainder = key if remainder is None else max(remainder, key)
                break
        self.ring = ring
        self.remainder = remainder
        self.terms: dict[Key, Any] = {
            key: terms[key] for key in present if remainder is None or key > remainder
        }

    # -- looking at it ------------------------------------------------------------------------

    def leading_key(self) -> Key:
        """(power of L, power of ell) of the dominating term; InvalidInput where it is unknown."""
        if not self.terms:
            raise InvalidInput(
                f"the leading term of {self} is not known; raise the order of the series ring"
            )
        return next(iter(self.terms))

    def with_order(self, order: int | Fraction) -> LogSeries:
        """The same series in a ring with the same constants that stops at L^(-order)."""
        return LogSeries(self.ring._with_order(Fraction(order)), self.terms, self.remainder)

    def leading_term(self) -> LogSeries:
        """The dominating term as an exact series."""
        key = self.leading_key()
        return LogSeries(self.ring, {key: self.terms[key]}, None)

    def bound(self) -> Key | None:
        """The key of the smallest known O-class that contains the series (None for exact 0)."""
        return next(iter(self.terms), self.remainder)

    def is_within(self, key: Key) -> bool:
        """Whether the series is O(L^key[0] ell^key[1])."""
        bound = self.bound()
        return bound is None or bound <= key

    def coefficient(self, power: Rational | int, log_power: int = 0) -> sp.Expr:
        """The coefficient of L^power ell^log_power; InvalidInput if the O-term hides it."""
        key = (Fraction(power), int(log_power))
        if self.remainder is not None and key <= self.remainder:
            raise InvalidInput(
                f"the coefficient of L^{key[0]} ell^{key[1]} lies below the remainder of {self}; "
                "raise the order of the series ring"
            )
        value = self.terms.get(key, self.ring.domain.zero)
        return self.ring.domain.to_sympy(value)

    def items(self) -> Iterator[tuple[Fraction, int, sp.Expr]]:
        """(power of L, power of ell, coefficient), the dominating term first."""
        for (power, log_power), value in self.terms.items():
            yield power, log_power, self.ring.domain.to_sympy(value)

    def as_expr(self) -> sp.Expr:
        """The sum of the known terms as a SymPy expression in L and ell."""
        return sp.Add(*(self._monomial(p, k) * c for p, k, c in self.items()))

    def _monomial(self, power: Fraction, log_power: int) -> sp.Expr:
        exponent = sp.Rational(power.numerator, power.denominator)
        return self.ring.symbol**exponent * self.ring.log_symbol**log_power

    def _pieces(self) -> list[sp.Expr]:
        pieces = []
        for power, log_power, c in self.items():
            pieces += [self._monomial(power, log_power) * part for part in sp.Add.make_args(c)]
        return pieces

    def __str__(self) -> str:
        text = ""
        for piece in self._pieces():
            part = sp.sstr(piece)
            if text:
                text += f" - {part[1:]}" if part.startswith("-") else f" + {part}"
            else:
                text = part
        if self.remainder is not None:
            order = f"O({sp.sstr(self._monomial(*self.remainder))})"
            text = f"{text} + {order}" if text else order
        return text or "0"

    __repr__ = __str__

    def latex(self) -> str:
        """LaTeX source, dominating term first, O-term last.

        >>> ring = LogSeriesRing(1)
        >>> print((1 + ring.ell / ring.L + ring.big_o(-2, 2)).latex())
        1 + \\frac{\\ell}{L} + O\\left(\\frac{\\ell^{2}}{L^{2}}\\right)
        """
        names = {self.ring.log_symbol: r"\ell"} if self.ring.log_symbol.name == "ell" else {}
        text = ""
        for piece in self._pieces():
            part = sp.latex(piece, symbol_names=names)
            if text:
                text += f" - {part[1:].lstrip()}" if part.startswith("-") else f" + {part}"
            else:
                text = part
        if self.remainder is not None:
            inner = sp.latex(self._monomial(*self.remainder), symbol_names=names)
            order = rf"O\left({inner}\right)"
            text = f"{text} + {order}" if text else order
        return text or "0"

    def _repr_latex_(self) -> str:
        return f"${self.latex()}$"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LogSeries):
            return NotImplemented
        return self.terms == other.terms and self.remainder == other.remainder

    def __hash__(self) -> int:
        return hash((frozenset(self.terms.items()), self.remainder))

    # -- ring operations ----------------------------------------------------------------------

    def _coerce(self, other: Any) -> LogSeries:
        if isinstance(other, LogSeries):
            if not self.ring.is_compatible(other.ring):
                raise InvalidInput(
                    "two series of different rings cannot be combined; build both in one ring"
                )
            return other
        return self.ring.constant(other)

    def __add__(self, other: Any) -> LogSeries:
        other = self._coerce(other)
        terms = dict(self.terms)
        zero = self.ring.domain.zero
        for key, value in other.terms.items():
            terms[key] = terms.get(key, zero) + value
        known = [r for r in (self.remainder, other.remainder) if r is not None]
        return LogSeries(self.ring, terms, max(known, default=None))

    def __neg__(self) -> LogSeries:
        return LogSeries(self.ring, {k: -v for k, v in self.terms.items()}, self.remainder)

    def __sub__(self, other: Any) -> LogSeries:
        return self + (-self._coerce(other))

    def __mul__(self, other: Any) -> LogSeries:
        return self._times(self._coerce(other), -self.ring.order)

    def _times(self, other: LogSeries, floor: Fraction) -> LogSeries:
        """The product, terms below L^floor going into the O-term."""
        remainder: Key | None = None
        for first, second in ((self, other), (other, self)):
            bound = second.bound()
            if first.remainder is not None and bound is not None:
                candidate = _plus(first.remainder, bound)
                remainder = candidate if remainder is None else max(remainder, candidate)
        terms: dict[Key, Any] = {}
        for (e, k), value in self.terms.items():
            for (f, j), factor in other.terms.items():
                key = (e + f, k + j)
                if remainder is not None and key <= remainder:
                    continue
                if key[0] < floor:
                    remainder = key
                elif key in terms:
                    terms[key] = terms[key] + value * factor
                else:
                    terms[key] = value * factor
        return LogSeries(self.ring, terms, remainder, floor)

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other: Any) -> LogSeries:
        return self._coerce(other) - self

    def __truediv__(self, other: Any) -> LogSeries:
        # the inverse is computed to the accuracy that the quotient needs
        bound = self.bound()
        floor = -self.ring.order - (bound[0] if bound is not None else 0)
        return self * self._coerce(other)._power(Fraction(-1), floor)

    def __rtruediv__(self, other: Any) -> LogSeries:
        return self._coerce(other) / self

    def __pow__(self, exponent: int | Fraction) -> LogSeries:
        return self.power(exponent)

    def inverse(self) -> LogSeries:
        """1 / f by the geometric series about the leading term."""
        return self.power(-1)

    def power(self, exponent: int | Fraction) -> LogSeries:
        """f^r for a rational r, by the binomial series about the leading term.

        >>> ring = LogSeriesRing(1, algebraic=[sp.sqrt(2)])
        >>> print((2 * ring.L - ring.ell).power(Fraction(1, 2)))
        sqrt(2)*sqrt(L) - sqrt(2)*ell/(4*sqrt(L)) + O(ell**2/L**(3/2))
        """
        return self._power(Fraction(exponent), -self.ring.order)

    def _power(self, r: Fraction, floor: Fraction) -> LogSeries:
        if r.denominator == 1 and r >= 0:
            return self._natural_power(int(r))
        lead, small = self._split()
        (power, log_power), value = next(iter(lead.terms.items()))
        if (log_power * r).denominator != 1:
            raise InvalidInput(
                f"the power {r} of {self} needs a fractional power of log L, which the ring lacks"
            )
        factor = self._coefficient_power(value, r)
        shift = (power * r, int(log_power * r))
        series = small._compose(_power_rule(r), floor - shift[0])
        outer = LogSeries(self.ring, {shift: factor}, None, min(floor, shift[0]))
        return outer._times(series, floor)

    def log(self) -> LogSeries:
        """log f = log c + a ell + log(1 + small) for f = c L^a (1 + small)."""
        lead, small = self._split()
        (power, log_power), value = next(iter(lead.terms.items()))
        if log_power != 0:
            raise InvalidInput(
                f"the logarithm of {lead} contains log log L, which the ring lacks; "
                "take logarithms of series that start with a pure power of L"
            )
        head = self.ring.monomial(0, 1, sp.Rational(power.numerator, power.denominator))
        constant = sp.log(self.ring.domain.to_sympy(value))
        head = head + self.ring.constant(sp.expand_log(constant, force=True, factor=True))
        return head + (small._compose(_log_rule, -self.ring.order) - 1)

    def exp(self) -> LogSeries:
        """exp f = L^a e^c exp(small) for f = a ell + c + small with rational a.

        >>> ring = LogSeriesRing(2)
        >>> print((ring.ell - 1 / ring.L).exp())
        L - 1 + 1/(2*L) - 1/(6*L**2) + O(L**(-3))
        """
        small_terms = {key: v for key, v in self.terms.items() if key[0] < 0}
        head = {key: v for key, v in self.terms.items() if key[0] >= 0}
        logarithm = head.pop((Fraction(0), 1), self.ring.domain.zero)
        constant = head.pop(_CONSTANT, self.ring.domain.zero)
        unknown = self.remainder is not None and self.remainder[0] >= 0
        slope = self.ring.domain.to_sympy(logarithm)
        if head or unknown or not slope.is_Rational:
            raise InvalidInput(
                f"exp({self}) is not a series in 1/L and log L; the argument must be a rational "
                "multiple of log L plus a constant plus terms that vanish"
            )
        small = LogSeries(self.ring, small_terms, self.remainder)
        factor = sp.exp(self.ring.domain.to_sympy(constant))
        power = Fraction(int(slope.p), int(slope.q))
        outer = self.ring.monomial(power, 0, sp.powsimp(factor))
        floor = -self.ring.order - power
        return outer * small._compose(_exp_rule, floor)

    def __call__(self, inner: LogSeries) -> LogSeries:
        """f(g): L is replaced by g -> infinity and ell by log g.

        >>> ring = LogSeriesRing(2, constants=[sp.log(3)])
        >>> print((ring.L + ring.ell)(3 * ring.L))
        3*L + ell + log(3)
        """
        power, log_power = inner.leading_key()
        if power <= 0 or log_power != 0:
            raise InvalidInput(
                f"the inner series {inner} must grow as a positive power of L to be inserted"
            )
        logarithm = inner.log()
        by_power: dict[Fraction, LogSeries] = {}
        powers: dict[int, LogSeries] = {}
        for e, k, c in self.items():
            if k not in powers:
                powers[k] = logarithm.power(k)
            by_power[e] = by_power.get(e, inner.ring.zero) + c * powers[k]
        result = inner.ring.zero
        for e, factor in by_power.items():
            result = result + inner.power(e) * factor
        if self.remainder is not None:
            e, k = self.remainder
            result = result + inner.ring.big_o(e * power, k)
        return result

    def reversion(self) -> LogSeries:
        """g with f(g(L)) = L, for f ~ c L^a with a > 0.

        >>> ring = LogSeriesRing(1)
        >>> print((ring.L + ring.ell).reversion())
        L - ell + ell/L + O(ell**2/L**2)
        """
        power, log_power = self.leading_key()
        if power <= 0 or log_power != 0:
            raise InvalidInput(
                f"the series {self} has no inverse function at infinity; it must grow as a "
                "positive power of L"
            )
        # a ring with room to spare: inserting g into f ~ L^a costs up to that many powers
        order = self.ring.order
        wide = self.with_order(order + max(power, 1 / power) + 1)
        lead = wide.leading_term()
        rest = wide - lead
        scale = lead.inverse() * wide.ring.monomial(power)

        def step(g: LogSeries) -> LogSeries:
            return ((wide.ring.L - rest(g)) * scale).power(1 / power)

        start = (wide.ring.L * scale).power(1 / power)
        bound = rest.bound()
        if bound is not None:
            # L^(1/a) changes by L^(1/a - 1) times the correction rest(g), of size (L^(1/a))^bound
            slack = (1 / power - 1 + bound[0] / power, bound[1])
            start = self.ring.fixed_point(step, start + wide.ring.big_o(*slack))
        return start.with_order(order)

    # -- helpers ------------------------------------------------------------------------------

    def _split(self) -> tuple[LogSeries, LogSeries]:
        """f = lead (1 + small): the exact leading term and the small series."""
        key = self.leading_key()
        value = self.terms[key]
        inverse = self._invert_coefficient(value)
        shift = (-key[0], -key[1])
        terms = {_plus(k, shift): v * inverse for k, v in self.terms.items() if k != key}
        remainder = None if self.remainder is None else _plus(self.remainder, shift)
        small = LogSeries(self.ring, terms, remainder)
        bound = small.bound()
        if bound is not None and bound[0] >= 0:
            raise InvalidInput(
                f"{self} cannot be expanded about its leading term: the next one is smaller only "
                "by a power of log L"
            )
        return LogSeries(self.ring, {key: value}, None), small

    def _invert_coefficient(self, value: Any) -> Any:
        domain = self.ring.domain
        if domain.is_Field:
            return domain.one / value
        if value.is_ground:  # a polynomial without symbols: invert the number
            return domain.convert(domain.domain.one / value.LC, domain.domain)
        raise InvalidInput(
            f"the leading coefficient {domain.to_sympy(value)} cannot be inverted in {domain}; "
            "build the series ring with field=True"
        )

    def _natural_power(self, exponent: int) -> LogSeries:
        result, base = self.ring.constant(1), self
        while exponent:
            if exponent & 1:
                result = result * base
            exponent >>= 1
            if exponent:
                base = base * base
        return result

    def _coefficient_power(self, value: Any, r: Fraction) -> Any:
        domain = self.ring.domain
        if r.denominator == 1:
            base = value
            if r < 0:
                base = self._invert_coefficient(value)
            result = domain.one
            for _ in range(abs(int(r))):
                result = result * base
            return result
        exponent = sp.Rational(r.numerator, r.denominator)
        return self.ring.coefficient(domain.to_sympy(value) ** exponent)

    def _compose(self, rule: Rule, floor: Fraction) -> LogSeries:
        """F(small) for a vanishing series, terms below L^floor going into the O-term.

        With ell held fixed this is a power series in L^(-1/d), and (1 + u)^r, log(1 + u), exp u
        satisfy linear recurrences in the grade n (differentiate with respect to log L^(1/d)).
        """
        ring = self.ring
        one = ring.domain.one
        step = lcm(*(key[0].denominator for key in self.terms), 1)
        small: dict[int, dict[int, Any]] = {}
        for (power, log_power), value in self.terms.items():
            small.setdefault(int(-power * step), {})[log_power] = value
        lowest = floor if self.remainder is None else max(floor, self.remainder[0])
        last = int(-lowest * step // 1)
        grades: list[dict[int, Any]] = [{0: one}]
        highest: list[int | None] = [0]  # largest power of ell that can occur in a grade
        remainder = self.remainder
        for n in range(1, last + 1 + max(small, default=0)):
            sources = [(k, old) for k in small if k <= n and (old := highest[n - k]) is not None]
            bounds = [max(small[k]) + old for k, old in sources]
            highest.append(max(bounds, default=None))
            if n > last:
                if bounds:  # the first grade that is not kept
                    dropped = (Fraction(-n, step), max(bounds))
                    remainder = dropped if remainder is None else max(remainder, dropped)
                    break
                continue
            grade: dict[int, Any] = {}
            for k, coefficient in rule(n, sorted(small)):
                scale = ring.domain.convert(QQ(coefficient.numerator, coefficient.denominator), QQ)
                _accumulate(grade, small[k], grades[n - k], scale, one)
            grades.append(grade)
        terms = {
            (Fraction(-n, step), k): value
            for n, grade in enumerate(grades)
            for k, value in grade.items()
        }
        return LogSeries(ring, terms, remainder, floor)


# For grade n and the grades k present in u: the pairs (k, c) of result_n = sum c u_k result_{n-k}.
Rule = Callable[[int, Sequence[int]], list[tuple[int, Fraction]]]


def _power_rule(r: Fraction) -> Rule:
    """(1 + u)^r: n p_n = sum_k (k r - (n - k)) u_k p_{n-k}."""
    return lambda n, grades: [(k, (k * r - (n - k)) / n) for k in grades if k <= n]


def _exp_rule(n: int, grades: Sequence[int]) -> list[tuple[int, Fraction]]:
    """exp u: n e_n = sum_k k u_k e_{n-k}."""
    return [(k, Fraction(k, n)) for k in grades if k <= n]


def _log_rule(n: int, grades: Sequence[int]) -> list[tuple[int, Fraction]]:
    """log(1 + u): n l_n = n u_n - sum_{k<n} (n - k) u_k l_{n-k}; l_0 stands for 1 in k = n."""
    return [(k, Fraction(1) if k == n else Fraction(k - n, n)) for k in grades if k <= n]


def _accumulate(
    into: dict[int, Any], first: dict[int, Any], second: dict[int, Any], scale: Any, one: Any
) -> None:
    """into += scale * first * second, polynomials in ell as {power: coefficient}."""
    for i, a in first.items():
        scaled = a if scale == one else scale * a
        for j, b in second.items():
            value = scaled * b
            into[i + j] = into[i + j] + value if i + j in into else value
