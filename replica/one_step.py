"""One step of replica symmetry breaking for any prior and criterion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy as sp

from replica import symbols as s
from replica.criteria.base import Criterion
from replica.derivation import Derivation
from replica.overlap import OverlapMatrix
from replica.priors.base import Prior
from replica.stein import inner_overlap_derivative


@dataclass(frozen=True)
class OneStep:
    """phi(q0, q1, x) = S_1 + (gamma/x) E_omega log E_eta Z(omega + eta, 1 - q1)^x.

    omega ~ N(0, q0), eta ~ N(0, q1 - q0); x is the symbol `block`, the size of a block of replicas
    as n -> 0, in (0, 1). At q0 = q1 it is the replica-symmetric free entropy.

    >>> from replica.criteria.halfspace import Halfspace
    >>> from replica.priors.spherical import Spherical
    >>> from replica.symbols import q0, q1
    >>> OneStep(Spherical(), Halfspace()).entropy.subs(q1, q0)
    q0/(2 - 2*q0) + log(1 - q0)/2
    """

    prior: Prior
    criterion: Criterion

    @property
    def entropy(self) -> Any:
        """Entropic term S_1(q0, q1, block)."""
        return self.prior.entropy_one_step()

    @property
    def _inner(self) -> Any:
        """Y = E_eta Z^x, the inner average."""
        z_value = self.criterion.increment(self.criterion.probability(1 - s.q1))
        return self._inner_average(z_value**s.block)

    def _inner_average(self, body: Any) -> Any:
        return self.criterion.average(body, s.q1 - s.q0, "eta")

    @property
    def free_entropy(self) -> Any:
        """phi(q0, q1, block)."""
        energy = self.criterion.average(sp.log(self._inner), s.q0)
        return self.entropy + s.gamma / s.block * energy

    @property
    def saddle_point_equations(self) -> tuple[Any, ...]:
        """Stationarity in q0, q1 and block, averages by Stein's lemma and the heat equation.

        q0:    dS/dq0 = (gamma/(2x)) E |grad log Y|^2
        q1:    dS/dq1 = (gamma (1-x)/2) E < |grad log Z|^2 >
        block: dS/dx  = (gamma/x^2) E [ log Y - x < log Z > ],  < . > weighted by Z^x
        """
        x, entropy = s.block, self.entropy
        z_value = self.criterion.increment(self.criterion.probability(1 - s.q1))
        weight, inner = z_value**x, self._inner
        gradient = [
            (self.criterion.increment(entry), count)
            for entry, count in self.criterion.gradient(1 - s.q1)
        ]
        outer = sp.Add(
            *[
                count * (x * self._inner_average(weight * entry) / inner) ** 2
                for entry, count in gradient
            ]
        )
        squared = sp.Add(*[count * entry**2 for entry, count in gradient])
        tilted = self._inner_average(weight * squared) / inner
        tilted_log = self._inner_average(weight * sp.log(z_value)) / inner

        def outer_average(body: Any) -> Any:
            return self.criterion.average(body, s.q0)

        return (
            sp.Eq(entropy.diff(s.q0), s.gamma / (2 * x) * outer_average(outer), evaluate=False),
            sp.Eq(
                entropy.diff(s.q1), s.gamma * (1 - x) / 2 * outer_average(tilted), evaluate=False
            ),
            sp.Eq(
                entropy.diff(x),
                s.gamma / x**2 * outer_average(sp.log(inner) - x * tilted_log),
                evaluate=False,
            ),
        )

    def add_steps(self, d: Derivation) -> None:
        """Append the one-step derivation and its results."""
        d.add(
            "One-step overlap matrix: eigenvalues and multiplicities",
            sp.Tuple(*[sp.Tuple(*pair) for pair in OverlapMatrix.one_step().eigenvalues()]),
            "q1 inside blocks of the given size, q0 between them",
        )
        d.add("One-step entropic term", self.entropy, "(1/2) log det Q per replica as n -> 0")
        change, expected = inner_overlap_derivative()
        d.add(
            "Change of the inner average with q1, one score",
            sp.Eq(change, expected, evaluate=False),
            "Stein's lemma for the increment, heat equation for V = 1 - q1",
        )
        d.results["free_entropy_1rsb"] = d.add(
            "One-step free entropy",
            self.free_entropy,
            "E log of the block average: d/dn at n = 0 of E (E Z^block)^(n/block)",
        )
        d.results["saddle_point_1rsb"] = list(self.saddle_point_equations)
