"""Tail-average hinge l(s) = (1 - s_0 + TA_r(s))_+, TA_r the mean of the best r M competitors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, ClassVar

import sympy as sp

from replica import symbols as s
from replica.derivation import Derivation
from replica.errors import InvalidInput
from replica.trained.losses.base import TrainedLoss
from replica.trained.symbols import x1

g = sp.Symbol("g", positive=True)
tau = sp.Symbol("tau", real=True)
ties = sp.Symbol("k", positive=True, integer=True)


class TailAverage(TrainedLoss):
    """l(s) = (1 - s_0 + TA_r(s))_+, TA_r = max of w . s over weights 0 <= w <= 1/(r M), sum w = 1.

    >>> TailAverage().competitor_step
    Min(V*g/(M*r), Max(0, omega_1 - tau))
    """

    name: ClassVar[str] = "tail_average"
    title: ClassVar[str] = "tail average, (1 - s_0 + mean of the best r M competitors)_+"

    def __init__(self, list_size: int = 1) -> None:
        """`list_size` = r M, used by `value` at explicit scores."""
        if list_size < 1:
            raise InvalidInput(f"list_size is {list_size}; it must be at least 1; give 1 or more")
        self.list_size = list_size

    def value(self, scores: Sequence[Any]) -> Any:
        target, *rivals = scores
        sums = [sp.Add(*chosen) for chosen in combinations(rivals, self.list_size)]
        best = sp.Max(*sums) / self.list_size
        return sp.Max(0, 1 - target + best)

    @property
    def hebbian_gradient(self) -> tuple[Any, Any]:
        # at s = 0 all competitors tie: the subgradient symmetric in them
        return sp.Integer(-1), 1 / s.M

    @property
    def competitor_step(self) -> Any:
        """omega_1 - x_1 = clip(omega_1 - tau, 0, V g/(r M)).

        At multiplier g of the outer hinge the competitors minimise g TA_r(x) + |x - omega|^2/(2V);
        by duality the weights maximise w . omega - V g w^2/2, score by score with a multiplier
        tau of sum w = 1, clipped to 0 <= w <= 1/(r M).
        """
        w = sp.Symbol("w", real=True)
        dual = w * s.omega1 - s.V * g * w**2 / 2 - w * tau
        (free,) = sp.solve(dual.diff(w), w)
        step = sp.expand(s.V * g * free)
        cap = s.V * g / (s.r * s.M)
        return sp.Min(cap, sp.Max(0, step))

    @property
    def trace(self) -> Any:
        """(k - 1)/V at g = 1, k/V where the lead is exactly 1 (0 < g < 1), k scores tied at tau.

        Polyhedral loss: the proximal point moves within a face, H (1 + V H)^-1 = P/V with P the
        projection on its normal space, of dimension k - 1 for k tied scores, one more for the lead.
        """
        return sp.Piecewise(((ties - 1) / s.V, sp.Ge(g, 1)), (ties / s.V, True))

    def add_steps(self, derivation: Derivation) -> None:
        derivation.add(
            "Move of one competitor",
            sp.Eq(s.omega1 - x1, self.competitor_step, evaluate=False),
            "dual weights of the tail average, multiplier tau of their sum, clipped to the box",
        )
        rho = sp.Symbol("rho", integer=True, positive=True)
        field = sp.Indexed("omega", rho)
        moves = self.competitor_step.subs(s.omega1, field)
        derivation.results["proximal_equation"] = derivation.add(
            "Scalar equation of tau",
            sp.Eq(s.V * g, sp.Sum(moves, (rho, 1, s.M)), evaluate=False),
            "the weights sum to 1; the target rises by V g; g in [0, 1] makes the lead 1, or is 1 "
            "where that is out of reach, 0 where nothing is missing",
        )
        derivation.results["trace"] = derivation.add(
            "tr H (1 + V H)^-1", self.trace, "codimension of the face over V"
        )
