"""What a retrieval criterion supplies: a set C of score vectors and a few averages over it.

A fact is recalled when its scores y lie in C. With omega ~ N(0, q) the part that solutions share,
Z(omega, V) = P(omega + sqrt(V) x in C), x ~ N(0, I). `FreeEntropy` derives the rest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import sympy as sp

from replica import symbols as s
from replica.derivation import Derivation
from replica.gaussian import GaussianAverage


class Criterion(ABC):
    """A set C of score vectors.

    Subclasses with a fixed, finite number of scores need only `scores`, `probability` and
    `mean_distance_squared`; gradients, Hessians and averages follow by differentiation.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    #: C convex: the replica-symmetric result is exact for a convex set of weights.
    is_convex: ClassVar[bool] = True
    #: alpha = gamma * load_scale: log p for criteria with many competitors, else 1.
    load_scale: ClassVar[Any] = sp.S.One
    parameters: ClassVar[tuple[Any, ...]] = ()
    #: Empty, or the sentence that says in which sense the capacity is a bound.
    caveat: ClassVar[str] = ""

    @property
    @abstractmethod
    def scores(self) -> tuple[tuple[Any, Any], ...]:
        """Pairs (representative score, how many scores behave like it)."""

    @abstractmethod
    def probability(self, variance: Any = s.V) -> Any:
        """Z(omega, V) as an explicit expression in the scores."""

    @abstractmethod
    def mean_distance_squared(self) -> Any:
        """delta = E dist^2(z, C), z ~ N(0, I); for a cone, statistical dimension of its polar."""

    def average(self, body: Any, variance: Any = s.q, field: str = "omega") -> Any:
        """E over the scores, independent N(0, variance); `field` names them (omega or eta)."""
        scores = [self._named(symbol, field) for symbol, _ in self.scores]
        return GaussianAverage(body, *[(symbol, variance) for symbol in scores])

    def increment(self, expression: Any) -> Any:
        """The expression with every score omega_i replaced by omega_i + eta_i."""
        moved = {v: v + self._named(v, "eta") for v, _ in self.scores}
        return expression.subs(moved, simultaneous=True)

    @staticmethod
    def _named(score: Any, field: str) -> Any:
        return sp.Symbol(score.name.replace("omega", field), **score.assumptions0)

    def log_probability(self, variance: Any = s.V) -> Any:
        """log Z(omega, V)."""
        return sp.log(self.probability(variance))

    def gradient(self, variance: Any = s.V) -> list[tuple[Any, Any]]:
        """Pairs (d log Z / d score, how many scores have a derivative of this form)."""
        log_z = self.log_probability(variance)
        return [(log_z.diff(symbol), count) for symbol, count in self.scores]

    def squared_gradient(self, variance: Any = s.V) -> Any:
        """|grad_omega log Z|^2, a sum over all scores."""
        return sp.Add(*[count * entry**2 for entry, count in self.gradient(variance)])

    def squared_hessian(self, variance: Any = s.V) -> Any:
        """||Hess_omega log Z||_F^2."""
        log_z = self.log_probability(variance)
        symbols = [symbol for symbol, _ in self.scores]
        return sp.Add(*[log_z.diff(a, b) ** 2 for a in symbols for b in symbols])

    def add_probability_steps(self, derivation: Derivation) -> Any:
        """Append the steps that lead to Z; returns Z."""
        return derivation.add("Probability of recall given the shared scores", self.probability())

    def add_distance_steps(self, derivation: Derivation) -> Any:
        """Append the steps that lead to delta; returns delta."""
        return derivation.add("Mean squared distance to C", self.mean_distance_squared())

    def scaling_cost(self) -> Any:
        """c with delta / L -> 2 c and E log Z / L -> -c/V as p -> infinity (margin in sqrt(2L)).

        None where the capacity does not scale with log p.
        """
        return None

    def add_scaling_steps(self, derivation: Derivation) -> Any:
        """Append the steps that lead to `scaling_cost`; returns it."""
        return self.scaling_cost()
