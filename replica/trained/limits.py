"""Limits of the trained memory: no ridge (maximum margin, capacity) and large ridge (Hebb)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import sympy as sp

from replica import symbols as s
from replica.criteria.base import Criterion
from replica.derivation import Derivation
from replica.free_entropy import FreeEntropy
from replica.hebbian import HebbianRule
from replica.hebbian import d as dimension
from replica.hebbian import p as facts
from replica.priors.spherical import Spherical
from replica.trained.losses.base import TrainedLoss
from replica.trained.symbols import Q, ridge

kappa = sp.Symbol("kappa", nonnegative=True)
distance = sp.Function("delta", positive=True)


@dataclass(frozen=True)
class RidgelessLimit:
    """lambda -> 0 for a loss that vanishes exactly on C_1 = {lead of `criterion` at least 1}.

    V -> infinity turns the proximal point into the projection on C_1, whose distance scales as
    dist^2(sqrt(Q) z, C_1) = Q dist^2(z, C_kappa) with kappa = 1/sqrt(Q), a margin of W/||W||.

    >>> from replica.criteria.top_one import TopOne
    >>> RidgelessLimit(TopOne(competitors=1)).critical_gamma
    2
    """

    criterion: Criterion

    @cached_property
    def energy(self) -> Any:
        """lambda Q/2 - Q/(2V) + gamma Q delta(kappa)/(2V): M_V -> dist^2(omega, C_1)/(2V)."""
        envelope = Q * distance(1 / sp.sqrt(Q)) / (2 * s.V)
        return ridge * Q / 2 - Q / (2 * s.V) + s.gamma * envelope

    @cached_property
    def margin_equation(self) -> Any:
        """gamma delta(kappa) = 1, from df/dV = 0."""
        stationary = self.energy.diff(s.V).subs(1 / sp.sqrt(Q), kappa)
        (value,) = sp.solve(stationary, distance(kappa))
        return sp.Eq(s.gamma * distance(kappa), sp.cancel(s.gamma * value), evaluate=False)

    @cached_property
    def order_parameter(self) -> Any:
        """lambda V = gamma kappa delta'(kappa)/2, from df/dQ = 0 on the margin equation."""
        stationary = self.energy.diff(Q).doit().subs(Q, 1 / kappa**2)
        slope = sp.Symbol("delta_prime", positive=True)
        value = sp.Symbol("delta_value", positive=True)
        plain = sp.simplify(stationary).replace(
            lambda e: isinstance(e, sp.Subs | sp.Derivative), lambda e: slope
        )
        plain = plain.subs(distance(kappa), value).subs(value, 1 / s.gamma)
        (solved,) = sp.solve(plain, s.V)
        return sp.simplify(solved * ridge).subs(slope, sp.Derivative(distance(kappa), kappa))

    @cached_property
    def distance_squared(self) -> Any:
        """delta(kappa) = E dist^2(z, C_kappa) of the criterion, derived in `replica.criteria`."""
        return self.criterion.mean_distance_squared().subs(s.margin, kappa)

    @cached_property
    def critical_gamma(self) -> Any:
        """The load at which kappa -> 0 and Q -> infinity: gamma delta(0) = 1."""
        return sp.simplify(1 / self.distance_squared.subs(kappa, 0).doit())

    @cached_property
    def derivation(self) -> Derivation:
        """The steps; the margin equation is compared with the capacity equation of the volume."""
        d = Derivation(f"Trained memory without ridge: {self.criterion.title}")
        d.add(
            "Energy as V -> infinity",
            self.energy,
            "M_V(omega) -> dist^2(omega, C_1)/(2V); dist^2(sqrt(Q) z, C_1) = Q dist^2(z, C_kappa), "
            "kappa = 1/sqrt(Q); delta = E dist^2",
        )
        d.results["margin_equation"] = d.add(
            "Margin of W/||W||", self.margin_equation, "df/dV = 0: the margin kappa is the largest"
        )
        d.results["order_parameter"] = d.add(
            "Order parameter",
            sp.Eq(ridge * s.V, self.order_parameter, evaluate=False),
            "df/dQ = 0: V diverges as 1/lambda while kappa > 0",
        )
        d.results["distance_squared"] = d.add(
            "Mean squared distance of the criterion", self.distance_squared
        )
        volume = FreeEntropy(Spherical(), self.criterion).capacity_equation
        inserted = self.margin_equation.subs(distance(kappa), self.distance_squared)
        if inserted != volume.subs(s.margin, kappa):
            raise ArithmeticError("the margin equation is not the capacity equation of the volume")
        d.results["capacity_equation"] = d.add(
            "The same from the volume of solutions with margin kappa",
            inserted,
            "capacity equation of the existing criterion; delta grows with kappa, so that a root "
            "kappa > 0 exists (V, Q = 1/kappa^2 as lambda -> 0) if and only if gamma delta(0) < 1; "
            "above that V and Q stay finite",
        )
        return d


@dataclass(frozen=True)
class HebbianLimit:
    """Large ridge: V -> 0, x - omega -> -V grad l(0), a multiple of the Hebbian memory.

    >>> from replica.trained.losses.cross_entropy import CrossEntropy
    >>> HebbianLimit(CrossEntropy()).gain  # (signal/noise)^2 over Hebb's
    (M + 1)/M
    """

    loss: TrainedLoss

    @cached_property
    def norm(self) -> Any:
        """Q = gamma V^2 |grad l(0)|^2, the norm equation at x - omega = -V grad l(0)."""
        target, rival = self.loss.hebbian_gradient
        return sp.factor(s.gamma * s.V**2 * (target**2 + self._count * rival**2))

    @cached_property
    def lead(self) -> Any:
        """Mean lead of the target over a competitor, V (dl/ds_1 - dl/ds_0)."""
        target, rival = self.loss.hebbian_gradient
        return sp.factor(s.V * (rival - target))

    @property
    def _count(self) -> Any:
        return sp.S.One if self.loss.name == "logistic" else s.M

    @cached_property
    def gain(self) -> Any:
        """lead^2/Q divided by 1/sigma^2 of the Hebbian memory: 1 up to terms 1/M."""
        crosstalk = HebbianRule().crosstalk.subs(facts, s.gamma * dimension**2)
        return sp.factor(sp.simplify(self.lead**2 / self.norm * crosstalk))

    @cached_property
    def derivation(self) -> Derivation:
        """The steps from the norm equation to the signal-to-noise ratio."""
        d = Derivation(f"Trained memory at large ridge: {self.loss.title}")
        d.add(
            "Gradient at zero scores",
            sp.Matrix(self.loss.hebbian_gradient),
            "target and one competitor; V -> 1/lambda -> 0 and Q -> 0",
        )
        d.results["lead"] = d.add("Lead of the target", self.lead, "x = omega - V grad l(0)")
        d.results["norm"] = d.add("Norm", sp.Eq(Q, self.norm, evaluate=False), "norm equation")
        d.results["gain"] = d.add(
            "(signal/noise)^2 over that of the Hebbian memory",
            self.gain,
            "Hebb: lead 1 over crosstalk sigma^2 = p/d^2",
        )
        return d
