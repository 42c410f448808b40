"""Squared hinge l(s) = 1/2 sum_rho (1 - s_0 + s_rho)_+^2 over the competitors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import sympy as sp

from replica import symbols as s
from replica.derivation import Derivation
from replica.trained.losses.base import TrainedLoss
from replica.trained.losses.star import star_trace
from replica.trained.symbols import x1

t = sp.Symbol("t", real=True)


class SquaredHinge(TrainedLoss):
    """l(s) = 1/2 sum_rho (1 - s_0 + s_rho)_+^2; t = x_0 - 1 is its one scalar unknown.

    >>> SquaredHinge().competitor_step
    V*Max(0, omega_1 - t)/(V + 1)
    """

    name: ClassVar[str] = "squared_hinge"
    title: ClassVar[str] = "squared hinge, half the sum of (1 - s_0 + s_rho)_+^2 over competitors"

    def value(self, scores: Sequence[Any]) -> Any:
        target, *rivals = scores
        return sp.Add(*[sp.Max(0, 1 - target + rival) ** 2 / 2 for rival in rivals])

    @property
    def hebbian_gradient(self) -> tuple[Any, Any]:
        # near s = 0 every lead is short of 1
        z0, z1 = sp.symbols("a b", real=True)
        one = (1 - z0 + z1) ** 2 / 2
        zero = {z0: 0, z1: 0}
        return s.M * one.diff(z0).subs(zero), one.diff(z1).subs(zero)

    @property
    def competitor_step(self) -> Any:
        """omega_1 - x_1 = V/(1+V) (omega_1 - t)_+: x_1 - omega_1 + V (x_1 - t) = 0 for x_1 > t."""
        objective = (x1 - t) ** 2 / 2 + (x1 - s.omega1) ** 2 / (2 * s.V)
        (point,) = sp.solve(objective.diff(x1), x1)
        moved = sp.factor(s.omega1 - point)
        excess = s.omega1 - t
        # the solution lies above t if and only if omega_1 does: the same positive factor
        factor = sp.cancel((point - t) / excess)
        if factor.is_positive is not True:
            raise ArithmeticError("active competitors are not those above t")
        return sp.cancel(moved / excess) * sp.Max(0, excess)

    @property
    def trace(self) -> Any:
        """tr H (1 + V H)^-1 for k active competitors: the star Laplacian with curvature 1."""
        return star_trace(sp.S.One)

    def add_steps(self, derivation: Derivation) -> None:
        derivation.add(
            "Move of one competitor",
            sp.Eq(s.omega1 - x1, self.competitor_step, evaluate=False),
            "stationarity in x_1 at fixed t = x_0 - 1",
        )
        rho = sp.Symbol("rho", integer=True, positive=True)
        field = sp.Indexed("omega", rho)
        derivation.results["proximal_equation"] = derivation.add(
            "Scalar equation of the target",
            sp.Eq(
                t + 1 - s.omega0,
                sp.Sum(self.competitor_step.subs(s.omega1, field), (rho, 1, s.M)),
                evaluate=False,
            ),
            "the gradients sum to zero, so the target rises by what the competitors sink",
        )
        derivation.results["trace"] = derivation.add(
            "tr H (1 + V H)^-1", self.trace, "k competitors above t: star Laplacian"
        )
