"""FreeEntropy(prior, criterion): the replica calculation from the action to the critical load."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import sympy as sp

from replica import symbols as s
from replica.criteria.base import Criterion
from replica.derivation import Derivation
from replica.gaussian import GaussianAverage
from replica.overlap import replica_limit
from replica.priors.base import Prior
from replica.stein import abstract_probability, add_overlap_derivative


@dataclass(frozen=True)
class FreeEntropy:
    """Free entropy per weight of the memories that recall p = gamma N facts:

        phi(q) = S(q) + gamma E log Z(omega, 1 - q),   omega ~ N(0, q).

    `prior` gives S, `criterion` gives Z; everything else is derived.

    >>> from replica.priors.spherical import Spherical
    >>> from replica.criteria.halfspace import Halfspace
    >>> FreeEntropy(Spherical(), Halfspace(margin=0)).capacity
    2
    """

    prior: Prior
    criterion: Criterion

    # -- replica symmetric -----------------------------------------------------------------------
    @property
    def free_entropy(self) -> Any:
        """phi(q) in q, gamma and the parameters of the model."""
        energy = self.criterion.average(self.criterion.log_probability(1 - s.q))
        return self.prior.entropy() + s.gamma * energy

    @property
    def saddle_point_equations(self) -> tuple[Any, ...]:
        """(S'(q) = (gamma/2) E |grad log Z|^2,): stationarity of phi after Stein's lemma."""
        left = 2 * self.prior.entropy_derivative()
        right = s.gamma * self.criterion.average(self.criterion.squared_gradient(1 - s.q))
        return (sp.Eq(left, right),)

    @property
    def stability(self) -> Any:
        """Replicon condition: 1 - gamma chi E ||Hess log Z||_F^2 > 0, chi = (1-q)^2/tangent_fraction."""
        hessian = self.criterion.average(self.criterion.squared_hessian(1 - s.q))
        return sp.StrictGreaterThan(
            1 - s.gamma * (1 - s.q) ** 2 / self.prior.tangent_fraction * hessian, 0
        )

    @property
    def capacity_equation(self) -> Any:
        """gamma delta = width_squared, the q -> 1 limit of the saddle point."""
        return sp.Eq(s.gamma * self.criterion.mean_distance_squared(), self.prior.width_squared)

    @property
    def capacity(self) -> Any:
        """gamma_c = width_squared / delta, facts per weight."""
        return self.prior.width_squared / self.criterion.mean_distance_squared()

    # -- derivation ------------------------------------------------------------------------------
    @cached_property
    def derivation(self) -> Derivation:
        """Every step from the replicated action to the critical load."""
        d = Derivation(f"{self.prior.title}; {self.criterion.title}")
        self._add_action(d)
        entropy = self.prior.add_entropy_steps(d)
        energy = self._add_energy(d, entropy)
        self._add_saddle_point(d)
        self._add_capacity(d)
        self._add_limit(d)
        del energy
        return d

    def _add_action(self, d: Derivation) -> None:
        z_function = abstract_probability(self.criterion.scores)
        limits = [(symbol, s.q) for symbol, _ in self.criterion.scores]
        replicated = s.gamma * sp.log(GaussianAverage(z_function**s.n, *limits))
        entropy = sp.Function("S_n")(s.n, s.q)
        d.add(
            "Replicated action per weight",
            entropy + replicated,
            "E volume^n by Laplace's method at Q_ab = q + (1-q) delta_ab; the scores of replica a are "
            "y_a = omega + sqrt(V) x_a, V = 1 - q, with omega shared: covariance q + (1-q) delta_ab. "
            "Assumed: replica symmetry and analytic continuation in n; the rest is algebra",
        )

    def _add_energy(self, d: Derivation, entropy: Any) -> Any:
        z_function = abstract_probability(self.criterion.scores)
        limits = [(symbol, s.q) for symbol, _ in self.criterion.scores]
        energy = replica_limit(sp.log(GaussianAverage(z_function**s.n, *limits)))
        d.add(
            "Energetic term as n -> 0",
            energy,
            "d/dn at n = 0 of log E Z^n, the derivative taken under the average",
        )
        self.criterion.add_probability_steps(d)
        d.add(
            "Free entropy", entropy + s.gamma * energy, "entropic plus gamma times energetic term"
        )
        d.results["free_entropy"] = self.free_entropy
        return energy

    def _add_saddle_point(self, d: Derivation) -> None:
        derivative = add_overlap_derivative(d, self.criterion.scores)
        d.add(
            "Saddle-point equation",
            sp.Eq(2 * self.prior.entropy_derivative(), -2 * s.gamma * derivative),
            "d phi/dq = 0",
        )
        d.results["saddle_point"] = list(self.saddle_point_equations)
        z_function = abstract_probability(self.criterion.scores)
        symbols = [symbol for symbol, _ in self.criterion.scores]
        hessian = sp.Add(*[sp.log(z_function).diff(a, b) ** 2 for a in symbols for b in symbols])
        del hessian
        d.results["stability"] = self.stability

    def _add_capacity(self, d: Derivation) -> None:
        distance = sp.Function("dist", nonnegative=True)(*[v for v, _ in self.criterion.scores])
        limits = [(v, s.q) for v, _ in self.criterion.scores]
        d.add(
            "Limit V -> 0 of V log Z",
            -(distance**2) / 2,
            "Laplace's method: Z is a Gaussian of variance V around omega integrated over C",
        )
        scaled = sp.expand((1 - s.q) ** 2 * 2 * self.prior.entropy_derivative())
        limit = sp.factor(scaled).subs(s.q, 1)
        d.add(
            "Saddle-point equation times (1-q)^2 as q -> 1",
            sp.Eq(limit, s.gamma * GaussianAverage(distance**2, *[(v, 1) for v, _ in limits])),
            "V^2 |grad log Z|^2 -> |grad dist^2/2|^2 = dist^2 (the gradient of dist has length 1)",
        )
        self.criterion.add_distance_steps(d)
        equation = d.add("Capacity", self.capacity_equation, self.criterion.caveat)
        d.results["capacity_equation"] = equation

    def _add_limit(self, d: Derivation) -> None:
        cost = self.criterion.add_scaling_steps(d)
        if cost is None:
            d.results["critical_load"] = d.add(
                "Critical load", self.capacity, "alpha = gamma: no logarithm enters"
            )
            return
        phi = self.prior.entropy() - s.alpha * cost / (1 - s.q)
        d.results["scaling_free_entropy"] = d.add(
            "Free entropy in the scaling limit",
            phi,
            "p -> infinity at fixed alpha = gamma L, L = log p",
        )
        stationary = sp.factor(sp.together(phi.diff(s.q)))
        d.results["scaling_saddle_point"] = d.add(
            "Saddle point in the scaling limit", sp.Eq(stationary, 0), "d phi/dq = 0"
        )
        (overlap,) = sp.solve(sp.numer(stationary), s.q)
        overlap = sp.factor(overlap)
        d.results["overlap"] = d.add("Overlap", sp.Eq(s.q, overlap), "solved for q")
        value = sp.expand(phi.subs(s.q, overlap))
        at_saddle = sp.log(sp.factor(1 - overlap)) * sp.expand(phi).coeff(sp.log(1 - s.q))
        rest = sp.factor(
            sp.cancel(
                (phi - sp.expand(phi).coeff(sp.log(1 - s.q)) * sp.log(1 - s.q)).subs(s.q, overlap)
            )
        )
        del value
        d.results["free_entropy_at_saddle"] = d.add(
            "Free entropy at the saddle point", at_saddle + rest, "overlap inserted"
        )
        (critical,) = sp.solve(sp.Eq(overlap, 1), s.alpha)
        d.results["critical_load"] = d.add(
            "Critical load", sp.factor(critical), "q -> 1: the solution space shrinks to a point"
        )
