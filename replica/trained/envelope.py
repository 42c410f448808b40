"""The Moreau envelope M_V(omega) = min_x l(x) + |x - omega|^2/(2V) and its derivatives.

Everything by the chain rule at a stationary point: the derivatives of the minimiser drop out of
first derivatives (envelope theorem) and appear in the Hessian by implicit differentiation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy as sp

from replica import symbols as s
from replica.derivation import Derivation


@dataclass(frozen=True)
class Envelope:
    """Derivatives of M_V by operations on the objective, one score at a time.

    Scores separate in the quadratic term, so one representative score shows them all; the others
    enter the loss through an unspecified l.

    >>> Envelope().in_variance
    -(omega_0 - x_0)**2/(2*V**2)
    >>> Envelope().curvature  # of an eigenvalue h of the Hessian of l
    h/(V*h + 1)
    """

    @property
    def objective(self) -> Any:
        """l(x) + (x - omega)^2/(2V) in one score."""
        x = sp.Symbol("x_0", real=True)
        return sp.Function("l")(x) + (x - s.omega0) ** 2 / (2 * s.V)

    @property
    def stationarity(self) -> Any:
        """dl/dx = (omega - x)/V, from d objective/dx = 0."""
        x = sp.Symbol("x_0", real=True)
        slope = sp.Function("l")(x).diff(x)
        (solved,) = sp.solve(self.objective.diff(x), slope)
        return sp.Eq(slope, solved, evaluate=False)

    def _along(self, variable: Any) -> Any:
        """d/d variable of the objective at its minimiser x(omega, V), total derivative."""
        x = sp.Symbol("x_0", real=True)
        path = sp.Function("x")(s.omega0, s.V)
        total = self.objective.diff(variable) + self.objective.diff(x) * path.diff(variable)
        slope = self.stationarity
        return sp.factor(sp.cancel(total.subs(slope.lhs, slope.rhs)))

    @property
    def in_variance(self) -> Any:
        """dM/dV = -|x - omega|^2/(2 V^2)."""
        return self._along(s.V)

    @property
    def in_score(self) -> Any:
        """dM/d omega = (omega - x)/V."""
        return self._along(s.omega0)

    @property
    def curvature(self) -> Any:
        """Eigenvalue of Hess M_V for an eigenvalue h of H = Hess l at x: h/(1 + V h).

        x + V grad l(x) = omega is differentiated: (1 + V h) dx/d omega = 1.
        """
        h, response = sp.Symbol("h", nonnegative=True), sp.Symbol("x_prime")
        (solved,) = sp.solve(sp.Eq(response * (1 + s.V * h), 1), response)
        return sp.factor(sp.cancel((1 - solved) / s.V))

    def add_steps(self, d: Derivation) -> None:
        """Append definition, envelope theorem and Hessian."""
        d.add(
            "Moreau envelope, one score shown",
            self.objective,
            "M_V(omega) is its minimum over x; the minimiser is x = prox of V l at omega",
        )
        d.add("Stationarity of the proximal point", self.stationarity, "d/dx = 0")
        d.add(
            "dM/dV (envelope theorem)",
            self.in_variance,
            "total derivative along x(omega, V); its dx/dV multiplies the stationarity condition; "
            "summed over scores: -|x - omega|^2/(2V^2)",
        )
        d.add("dM/domega", self.in_score, "likewise")
        d.add(
            "Eigenvalues of Hess M",
            self.curvature,
            "dM/domega = (omega - x)/V with x + V grad l(x) = omega differentiated; h: eigenvalues "
            "of H = Hess l(x), so that tr Hess M = tr H (1 + V H)^-1",
        )
