"""Multi-class hinge l(s) = sum_rho (1 - s_0 + s_rho)_+ over the competitors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import sympy as sp

from replica import symbols as s
from replica.derivation import Derivation
from replica.trained.losses.base import TrainedLoss
from replica.trained.losses.star import h, star_trace
from replica.trained.symbols import x1

t = sp.Symbol("t", real=True)


class Hinge(TrainedLoss):
    """l(s) = sum_rho (1 - s_0 + s_rho)_+ (Weston and Watkins); t = x_0 - 1.

    >>> Hinge().competitor_step
    Min(V, Max(0, omega_1 - t))
    >>> Hinge().trace
    k/V
    """

    name: ClassVar[str] = "hinge"
    title: ClassVar[str] = "hinge, sum of (1 - s_0 + s_rho)_+ over the competitors"

    def value(self, scores: Sequence[Any]) -> Any:
        target, *rivals = scores
        return sp.Add(*[sp.Max(0, 1 - target + rival) for rival in rivals])

    @property
    def hebbian_gradient(self) -> tuple[Any, Any]:
        z0, z1 = sp.symbols("a b", real=True)
        one = 1 - z0 + z1  # near s = 0 every lead is short of 1
        return s.M * one.diff(z0), one.diff(z1)

    @property
    def competitor_step(self) -> Any:
        """omega_1 - x_1 = clip(omega_1 - t, 0, V).

        Above t the slope is 1 and x_1 = omega_1 - V, below it is 0 and x_1 = omega_1; in between
        neither point is on its own side of t and the kink x_1 = t is the minimum.
        """
        smooth = (x1 - s.omega1) ** 2 / (2 * s.V)
        (above,) = sp.solve((x1 - t + smooth).diff(x1), x1)
        (below,) = sp.solve(smooth.diff(x1), x1)
        steps = [sp.expand(s.omega1 - point) for point in (below, t, above)]
        return sp.Min(steps[2], sp.Max(steps[0], steps[1]))

    @property
    def trace(self) -> Any:
        """k/V for k competitors at the kink: the star Laplacian with curvature h -> infinity."""
        limit = sp.limit(star_trace(h), h, sp.oo)
        return sp.factor(sp.simplify(limit))

    def add_steps(self, derivation: Derivation) -> None:
        derivation.add(
            "Move of one competitor",
            sp.Eq(s.omega1 - x1, self.competitor_step, evaluate=False),
            "the minimum over x_1 of (x_1 - t)_+ + (x_1 - omega_1)^2/(2V) at fixed t = x_0 - 1",
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
            "the (sub)gradients sum to zero: the target rises by what the competitors sink",
        )
        derivation.results["trace"] = derivation.add(
            "tr H (1 + V H)^-1",
            self.trace,
            "k competitors at the kink x_rho = t; curvature h -> infinity of the star Laplacian",
        )
