"""Gardner's perceptron: one score, at least the margin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import sympy as sp

from replica import symbols as s
from replica.criteria.base import Criterion
from replica.derivation import Derivation
from replica.gaussian import GaussianAverage, Phi


@dataclass(frozen=True)
class Halfspace(Criterion):
    """C = { y : y >= margin }; gamma is Gardner's alpha (Gardner 1988).

    >>> from replica.symbols import margin
    >>> Halfspace().mean_distance_squared()
    margin*phi(margin) + (margin**2 + 1)*Phi(margin)
    >>> 1 / Halfspace(margin=0).mean_distance_squared()
    2
    """

    margin: Any = s.margin

    name = "halfspace"
    title = "halfspace, y >= margin"
    parameters: ClassVar[tuple[Any, ...]] = (s.margin,)

    @property
    def threshold(self) -> Any:
        """The least score that counts as recall."""
        return sp.sympify(self.margin)

    @property
    def scores(self) -> tuple[tuple[Any, Any], ...]:
        return ((s.omega0, sp.S.One),)

    def probability(self, variance: Any = s.V) -> Any:
        # P(omega + sqrt(V) x >= threshold), x -> -x
        upper = (s.omega0 - self.threshold) / sp.sqrt(variance)
        return GaussianAverage(sp.S.One, (s.x, 1, -sp.oo, upper)).doit()

    def mean_distance_squared(self) -> Any:
        # The threshold as one symbol: (1 + m^2) Phi(m) + m phi(m), whatever stands for m.
        return sp.collect(_distance().doit(), Phi(s.margin)).subs(s.margin, self.threshold)

    def add_probability_steps(self, derivation: Derivation) -> Any:
        return derivation.add(
            "Probability of recall given the shared score",
            self.probability(),
            "Z = P(omega_0 + sqrt(V) x >= threshold)",
        )

    def add_distance_steps(self, derivation: Derivation) -> Any:
        derivation.add(
            "Mean squared distance to the halfspace",
            _distance().subs(s.margin, self.threshold),
            "the nearest point of C to z is max(z, threshold)",
        )
        return derivation.add(
            "Mean squared distance in closed form",
            self.mean_distance_squared(),
            "integration by parts against the Gaussian weight",
        )


def _distance() -> Any:
    return GaussianAverage((s.margin - s.z) ** 2, (s.z, 1, -sp.oo, s.margin))
