"""List-wise recall: the target is among the best `list_size` scores. The distance is a bound."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import sympy as sp

from replica import cone
from replica import symbols as s
from replica.criteria.top_one import TopOne
from replica.derivation import Derivation
from replica.errors import InvalidInput
from replica.gaussian import GaussianAverage, Phi, phi

LONGEST_LIST = 1000  # its factorial is written out


@dataclass(frozen=True)
class ListWise(TopOne):
    """C = { y : at most list_size - 1 of M competitors exceed y_0 - margin }.

    C is not convex. dist^2(z, C) leaves the list_size - 1 best competitors where they are and is
    the top-one distance to the others, so gamma <= 1/E dist^2 is an upper bound on the capacity
    (Gordon's inequality), not its value. list_size = 1 is top-one recall.
    """

    list_size: Any = s.list_size

    name = "list_wise"
    title = "list-wise recall, y_0 - margin among the best list_size of M + 1 scores"
    is_convex = False
    parameters: ClassVar[tuple[Any, ...]] = (s.M, s.margin, s.list_size)
    caveat = (
        "an upper bound (Gordon's inequality): C is not convex; the list_size - 1 best competitors "
        "are left out of the distance"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        size, number = sp.sympify(self.list_size), sp.sympify(self.competitors)
        if size.is_number and not (size.is_Integer and size >= 1):
            raise InvalidInput(f"list_size is {size}; it must be a positive integer")
        if size.is_Integer and size > LONGEST_LIST:
            raise InvalidInput(
                f"list_size is {size}; explicit lists go up to {LONGEST_LIST}; leave it symbolic"
            )
        if size.is_Integer and number.is_Integer and size > number:
            raise InvalidInput(
                f"list_size is {size} with {number} competitors; it must be at most their number, "
                "else every fact is recalled"
            )

    # P(at most list_size - 1 above) is the sum of the first coefficients of the product of
    # (below + above u) over the competitors: a Fourier integral over u = exp(i psi).
    _extra_limits: ClassVar[tuple[Any, ...]] = ((s.psi, -sp.pi, sp.pi),)

    @property
    def _prefactor(self) -> Any:
        mode = sp.Symbol("j", integer=True, nonnegative=True)
        return sp.Sum(sp.exp(-sp.I * mode * s.psi), (mode, 0, self.list_size - 1)) / (2 * sp.pi)

    def _below(self, score: Any, variance: Any) -> Any:
        below = super()._below(score, variance)
        return below + (1 - below) * sp.exp(sp.I * s.psi)

    def add_probability_steps(self, derivation: Derivation) -> Any:
        derivation.add(
            "One competitor, counted by u = exp(i psi) when it exceeds y - margin",
            self._below(s.omega1, s.V),
            "the coefficients of u^0, ..., u^(list_size - 1) of the product are kept",
        )
        return derivation.add(
            "Probability of recall given the shared scores",
            self.probability(),
            "condition on the target score y; Fourier integral over psi",
        )

    def mean_distance_squared(self) -> Any:
        """E dist^2, a triple integral over u (the list_size-th best competitor), t and l.

        Given u, M - list_size competitors lie below u; the root t < u of the stationarity condition
        is selected as in `replica.cone`, with u itself active.
        """
        return _distance(self.competitors, self.margin, self.list_size)

    def add_distance_steps(self, derivation: Derivation) -> Any:
        derivation.add(
            "Law of the best competitor that counts",
            sp.factorial(self.competitors)
            / (sp.factorial(self.list_size - 1) * sp.factorial(self.competitors - self.list_size))
            * Phi(-s.u) ** (self.list_size - 1)
            * phi(s.u)
            * Phi(s.u) ** (self.competitors - self.list_size),
            "order statistics: u is the list_size-th largest competitor, those below it are free",
        )
        return derivation.add(
            "Mean squared distance, list_size - 1 best competitors left out",
            self.mean_distance_squared(),
            "1 = int dt F'(t) delta(F(t)) with the competitors below u truncated at u",
        )


@lru_cache(maxsize=64)
def _distance(number: Any, margin: Any, size: Any) -> Any:
    u, t, freq = s.u, s.t, cone.frequency
    rest = number - size
    window = GaussianAverage(sp.exp(-sp.I * freq * (s.z - t)), (s.z, 1, t, u)).doit()
    mark = sp.Symbol("mark", positive=True)
    single = Phi(t) + mark * window
    edge = mark * sp.exp(-sp.I * freq * (u - t))
    generating = edge * single**rest
    # sum of squared excesses, competitor by competitor; S^2 from the whole product.
    second = -window.diff(freq, 2)
    squares = (u - t) ** 2 * generating + edge * rest * mark * second * single ** (rest - 1)
    weight = squares - generating.diff(freq, 2)
    counted = (weight + weight.diff(mark)).subs(mark, 1)
    density = sp.factorial(number) / (sp.factorial(size - 1) * sp.factorial(rest))
    density *= Phi(-u) ** (size - 1) * phi(u)
    phase = sp.exp(-(freq**2) / 2 + sp.I * freq * (t + margin)) / (2 * sp.pi)
    return sp.Integral(
        density * phase * counted, (freq, -sp.oo, sp.oo), (t, -sp.oo, u), (u, -sp.oo, sp.oo)
    )
