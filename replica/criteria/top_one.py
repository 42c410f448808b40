"""Top-one recall: the target score exceeds every one of M competitors by a margin."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import sympy as sp

from replica import cone
from replica import symbols as s
from replica.criteria.base import Criterion
from replica.derivation import Derivation
from replica.errors import InvalidInput
from replica.gaussian import GaussianAverage, ScoreAverage, eta, heat_kernel, omega


@dataclass(frozen=True)
class TopOne(Criterion):
    """C = { y in R^(M+1) : y_0 >= max_rho y_rho + margin }.

    `competitors` is the symbol M (averages stay symbolic in the number of scores) or a positive
    integer (every score is an explicit variable).

    >>> TopOne(competitors=1, margin=0).mean_distance_squared().doit()
    1/2
    """

    competitors: Any = s.M
    margin: Any = s.margin

    name = "top_one"
    title = "top-one recall, y_0 >= max of M competitors + margin"
    load_scale = s.L
    parameters: ClassVar[tuple[Any, ...]] = (s.M, s.margin)

    def __post_init__(self) -> None:
        number = sp.sympify(self.competitors)
        if number.is_number and not (number.is_Integer and number >= 1):
            raise InvalidInput(
                f"competitors is {self.competitors}; it must be a positive integer or the symbol M"
            )

    @property
    def is_explicit(self) -> bool:
        """True when the number of competitors is an integer."""
        return bool(sp.sympify(self.competitors).is_Integer)

    @property
    def scores(self) -> tuple[tuple[Any, Any], ...]:
        if not self.is_explicit:
            return ((s.omega0, sp.S.One), (s.omega1, self.competitors))
        number = int(self.competitors)
        return tuple((sp.Symbol(f"omega_{i}", real=True), sp.S.One) for i in range(number + 1))

    def average(self, body: Any, variance: Any = s.q, field: str = "omega") -> Any:
        if self.is_explicit:
            return super().average(body, variance, field)
        return ScoreAverage(body, sp.Symbol(field), variance, self.competitors + 1)

    def increment(self, expression: Any) -> Any:
        if self.is_explicit:
            return super().increment(expression)
        return expression.replace(omega, lambda index: omega(index) + eta(index))

    # -- Z and its derivatives -------------------------------------------------------------------
    def _below(self, score: Any, variance: Any) -> Any:
        """P(score + sqrt(V) x + margin <= y), one competitor."""
        upper = (s.y - self.margin - score) / sp.sqrt(variance)
        return GaussianAverage(sp.S.One, (s.x, 1, -sp.oo, upper)).doit()

    #: Factor of the integrand of Z that depends on no competitor, and variables beside y.
    _prefactor: ClassVar[Any] = sp.S.One
    _extra_limits: ClassVar[tuple[Any, ...]] = ()

    def _weight(self, variance: Any) -> Any:
        """Integrand of Z over the target score y."""
        if self.is_explicit:
            (target, _), *others = self.scores
            factors = [self._below(symbol, variance) for symbol, _ in others]
            return self._prefactor * heat_kernel(s.y, target, variance) * sp.Mul(*factors)
        product = sp.Product(self._below(omega(s.rho), variance), (s.rho, 1, self.competitors))
        return self._prefactor * heat_kernel(s.y, omega(0), variance) * product

    def probability(self, variance: Any = s.V) -> Any:
        return sp.Integral(self._weight(variance), *self._extra_limits, (s.y, -sp.oo, sp.oo))

    def _tilted(self, body: Any, variance: Any) -> Any:
        """Average over y with the weight of Z."""
        top = sp.Integral(self._weight(variance) * body, *self._extra_limits, (s.y, -sp.oo, sp.oo))
        return top / self.probability(variance)

    def _score_functions(self, variance: Any) -> tuple[tuple[Any, Any], ...]:
        """(d log weight, d^2 log weight) for the target and for one competitor."""
        return _score_functions(self._below(s.omega1, variance), variance)

    def gradient(self, variance: Any = s.V) -> list[tuple[Any, Any]]:
        if self.is_explicit:
            return super().gradient(variance)
        (first, _), (other, _) = self._score_functions(variance)
        target = self._tilted(first.subs(s.omega0, omega(0)), variance)
        rival = self._tilted(other.subs(s.omega1, omega(1)), variance)
        return [(target, sp.S.One), (rival, self.competitors)]

    def squared_hessian(self, variance: Any = s.V) -> Any:
        if self.is_explicit:
            return super().squared_hessian(variance)
        (first, first2), (other, other2) = self._score_functions(variance)
        target = (first.subs(s.omega0, omega(0)), first2.subs(s.omega0, omega(0)))
        rival = [(other.subs(s.omega1, omega(i)), other2.subs(s.omega1, omega(i))) for i in (1, 2)]

        def entry(a: tuple[Any, Any], b: tuple[Any, Any], same: bool) -> Any:
            second = a[0] * b[0] + (a[1] if same else 0)
            return self._tilted(second, variance) - self._tilted(a[0], variance) * self._tilted(
                b[0], variance
            )

        number = self.competitors
        return (
            entry(target, target, True) ** 2
            + 2 * number * entry(target, rival[0], False) ** 2
            + number * entry(rival[0], rival[0], True) ** 2
            + number * (number - 1) * entry(rival[0], rival[1], False) ** 2
        )

    def add_probability_steps(self, derivation: Derivation) -> Any:
        derivation.add(
            "One competitor stays below y - margin",
            self._below(s.omega1, s.V),
            "P(omega_1 + sqrt(V) x <= y - margin)",
        )
        return derivation.add(
            "Probability of recall given the shared scores",
            self.probability(),
            "condition on the target score y = omega_0 + sqrt(V) x_0; competitors are independent",
        )

    # -- distance and scaling --------------------------------------------------------------------
    def mean_distance_squared(self) -> Any:
        return cone.mean_distance_squared(self.competitors, self.margin)

    def add_distance_steps(self, derivation: Derivation) -> Any:
        return cone.add_distance_steps(derivation, self.competitors, self.margin)

    def scaling_cost(self) -> Any:
        return (1 + sp.sympify(self.margin)) ** 2

    def add_scaling_steps(self, derivation: Derivation) -> Any:
        from replica.scaling import add_extreme_value_steps

        return add_extreme_value_steps(derivation, sp.sympify(self.margin))


@lru_cache(maxsize=64)
def _score_functions(factor: Any, variance: Any) -> tuple[tuple[Any, Any], ...]:
    target = -((s.y - s.omega0) ** 2) / (2 * variance)
    first = factor.diff(s.omega1) / factor
    return (
        (target.diff(s.omega0), target.diff(s.omega0, 2)),
        (first, factor.diff(s.omega1, 2) / factor - first**2),
    )
