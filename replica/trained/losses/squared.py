"""Squared loss l(s) = (s_0 - 1)^2/2: ridge regression on the targets, the pseudo-inverse."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import sympy as sp

from replica import symbols as s
from replica.derivation import Derivation
from replica.gaussian import GaussianAverage, Phi
from replica.trained.losses.base import TrainedLoss
from replica.trained.symbols import Q, ridge, x0


class Squared(TrainedLoss):
    """l(s) = (s_0 - 1)^2/2; the fixed point is in closed form.

    >>> Squared().norm  # in V
    -V**2*gamma/(V**2*gamma - V**2 - 2*V - 1)
    >>> sp.limit(Squared().order_parameter.subs(s.gamma, 2), ridge, 0)  # above p = N
    1
    """

    name: ClassVar[str] = "squared"
    title: ClassVar[str] = "squared, (s_0 - 1)^2/2 (ridge regression, pseudo-inverse)"

    def value(self, scores: Sequence[Any]) -> Any:
        return (scores[0] - 1) ** 2 / 2

    @property
    def hebbian_gradient(self) -> tuple[Any, Any]:
        target, rival = sp.symbols("a b", real=True)
        return tuple(part.subs(target, 0) for part in self.gradient((target, rival)))

    @property
    def proximal_point(self) -> Any:
        """x_0 = (omega_0 + V)/(1 + V)."""
        (point,) = sp.solve(self.stationarity([x0], [s.omega0])[0], x0)
        return point

    @property
    def trace(self) -> Any:
        """1/(1 + V): H is 1 in the direction of the target alone."""
        curvature = self.hessian([x0])[0]
        return curvature / (1 + s.V * curvature)

    @property
    def order_parameter(self) -> Any:
        """V > 0 from 1/V = lambda + gamma/(1 + V)."""
        equation = sp.numer(sp.together(1 / s.V - ridge - s.gamma * self.trace))
        roots = sp.solve(equation, s.V)
        sample = {ridge: sp.Rational(1, 3), s.gamma: sp.Rational(3, 2)}
        (root,) = [r for r in roots if r.subs(sample) > 0]
        return root

    @cached_property
    def norm(self) -> Any:
        """Q from Q = gamma E (x_0 - omega_0)^2."""
        moved = sp.expand((self.proximal_point - s.omega0) ** 2)
        mean = sp.factor(GaussianAverage(moved, (s.omega0, Q)).doit())
        (solved,) = sp.solve(sp.Eq(Q, s.gamma * mean), Q)
        return sp.factor(solved)

    @cached_property
    def mean_loss(self) -> Any:
        """E l(x) = (1 + Q)/(2 (1 + V)^2)."""
        value = sp.expand(self.value([self.proximal_point]))
        return sp.factor(GaussianAverage(value, (s.omega0, Q)).doit())

    @property
    def accuracy(self) -> Any:
        """P(x_0 > max omega_rho) = E Phi(x_0/sqrt(Q))^M: the competitors do not move."""
        lead = self.proximal_point.subs(s.omega0, sp.sqrt(Q) * s.z) / sp.sqrt(Q)
        return GaussianAverage(Phi(sp.expand(lead)) ** s.M, s.z)

    def without_ridge(self) -> tuple[Any, Any]:
        """Q as lambda -> 0 for gamma < 1 (V -> infinity) and for gamma > 1 (V = 1/(gamma - 1)).

        >>> Squared().without_ridge()
        (-gamma/(gamma - 1), 1/(gamma - 1))
        """
        below = sp.factor(sp.limit(self.norm, s.V, sp.oo))
        (finite,) = sp.solve(1 / s.V - s.gamma * self.trace, s.V)
        return below, sp.factor(sp.cancel(self.norm.subs(s.V, finite)))

    def add_steps(self, derivation: Derivation) -> None:
        derivation.add("Proximal point", sp.Eq(x0, self.proximal_point, evaluate=False))
        derivation.results["trace"] = derivation.add("tr H (1 + V H)^-1", self.trace)
        derivation.results["order_parameter"] = derivation.add(
            "Order parameter", sp.Eq(s.V, self.order_parameter), "response equation, root V > 0"
        )
        derivation.results["norm"] = derivation.add("Norm", sp.Eq(Q, self.norm), "norm equation")
        derivation.results["mean_loss"] = derivation.add("Loss per fact", self.mean_loss)
        derivation.results["accuracy"] = derivation.add(
            "Accuracy", self.accuracy, "competitors stay N(0, Q)"
        )
        below, above = self.without_ridge()
        derivation.add("Norm without ridge, gamma < 1", below, "V -> infinity: interpolation")
        derivation.add("Norm without ridge, gamma > 1", above, "V = 1/(gamma - 1)")
