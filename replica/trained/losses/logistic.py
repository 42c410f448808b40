"""Logistic loss log(1 + e^{s_1 - s_0}): cross-entropy with one competitor, one scalar unknown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import sympy as sp

from replica import symbols as s
from replica.derivation import Derivation
from replica.trained.losses.base import TrainedLoss

t, tau, h = sp.symbols("t tau h", real=True)


class Logistic(TrainedLoss):
    """l(s) = log(1 + e^{s_1 - s_0}), M = 1; everything depends on the lead tau = x_0 - x_1.

    >>> Logistic().lead_equation
    Eq(2*V/(exp(tau) + 1) + t, tau)
    """

    name: ClassVar[str] = "logistic"
    title: ClassVar[str] = "logistic, log(1 + exp(s_1 - s_0)), one competitor"

    def value(self, scores: Sequence[Any]) -> Any:
        target, rival = scores
        return sp.log(1 + sp.exp(rival - target))

    @property
    def hebbian_gradient(self) -> tuple[Any, Any]:
        target, rival = self.gradient(sp.symbols("a b", real=True))
        zero = dict.fromkeys(sp.symbols("a b", real=True), 0)
        return target.subs(zero), rival.subs(zero)

    @property
    def scalar_loss(self) -> Any:
        """The loss as a function of the lead."""
        return self.value((tau, sp.S.Zero))

    @property
    def lead_equation(self) -> Any:
        """t - 2 V l'(tau) = tau, t = omega_0 - omega_1: the two stationarity conditions subtracted.

        Their sum says that x_0 + x_1 = omega_0 + omega_1.
        """
        x, w = sp.symbols("x_0 x_1", real=True), (s.omega0, s.omega1)
        first, second = self.stationarity(x, w)
        if sp.simplify(first + second - sum(x) + sum(w)) != 0:
            raise ArithmeticError("the sum of the scores is not kept")
        stationary = (first - second).subs({x[0]: tau + x[1], s.omega0: t + s.omega1})
        slope = sp.Symbol("slope", real=True)  # of the scalar loss, by the chain rule -2 V l'
        if sp.simplify(stationary - (tau - t + 2 * s.V * self.scalar_loss.diff(tau))) != 0:
            raise ArithmeticError("the conditions do not reduce to the lead")
        (lead,) = sp.solve(sp.Eq(tau - t + 2 * s.V * slope, 0), tau)
        return sp.Eq(lead.subs(slope, sp.simplify(self.scalar_loss.diff(tau))), tau, evaluate=False)

    @property
    def trace(self) -> Any:
        """tr H (1 + V H)^-1 = 2 l''/(1 + 2 V l''): H = l'' (1, -1)(1, -1)^T."""
        direction = sp.Matrix([1, -1])
        matrix = h * direction * direction.T
        response = matrix * (sp.eye(2) + s.V * matrix).inv()
        return sp.factor(sp.cancel(response.trace()))

    def add_steps(self, derivation: Derivation) -> None:
        derivation.add("Loss of the lead", self.scalar_loss, "tau = x_0 - x_1")
        derivation.results["proximal_equation"] = derivation.add(
            "Proximal equation of the lead",
            self.lead_equation,
            "t = omega_0 - omega_1 ~ N(0, 2Q); the conditions for the two scores subtracted",
        )
        derivation.add(
            "Second derivative",
            sp.Eq(h, sp.factor(sp.simplify(self.scalar_loss.diff(tau, 2))), evaluate=False),
        )
        derivation.results["trace"] = derivation.add(
            "tr H (1 + V H)^-1", self.trace, "H = h (1, -1)(1, -1)^T inverted"
        )
