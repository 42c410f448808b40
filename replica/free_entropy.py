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
from replica.one_step import OneStep
from replica.overlap import OverlapMatrix, replica_limit
from replica.priors.base import Prior
from replica.priors.spectrum import add_parametric_load
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

    # -- results -----------------------------------------------------------------------------------
    @cached_property
    def free_entropy(self) -> Any:
        """phi(q) in q, gamma and the parameters of the model."""
        energy = self.criterion.average(self.criterion.log_probability(1 - s.q))
        return self.prior.entropy() + s.gamma * energy

    @cached_property
    def saddle_point_equations(self) -> tuple[Any, ...]:
        """(2 S'(q) = gamma E |grad log Z|^2,): stationarity of phi after Stein's lemma."""
        left = 2 * self.prior.entropy_derivative()
        right = s.gamma * self.criterion.average(self.criterion.squared_gradient(1 - s.q))
        return (sp.Eq(left, right, evaluate=False),)

    @cached_property
    def stability(self) -> Any:
        """Replicon condition 1 - gamma (1-q)^2/D E ||Hess log Z||_F^2 > 0, D the tangent fraction.

        Exact for the spherical prior (D = 1). For weights confined to a set of D N dimensions the
        squared covariance of W is at least (1-q)^2/D per weight: necessary as q -> 1.
        """
        hessian = self.criterion.average(self.criterion.squared_hessian(1 - s.q))
        return sp.StrictGreaterThan(1 - self._replicon_factor * hessian, 0)

    @property
    def _replicon_factor(self) -> Any:
        (_, _), (gap, _) = OverlapMatrix.replica_symmetric().inverse().eigenvalues()
        return s.gamma / sp.factor(gap) ** 2 / self.prior.tangent_fraction

    @cached_property
    def capacity_equation(self) -> Any:
        """gamma delta = width_squared, the q -> 1 limit of the saddle point."""
        return sp.Eq(
            s.gamma * self._mean_distance_squared, self.prior.width_squared, evaluate=False
        )

    @cached_property
    def capacity(self) -> Any:
        """gamma_c = width_squared / delta, facts per weight."""
        return self.prior.width_squared / self._mean_distance_squared

    @cached_property
    def _mean_distance_squared(self) -> Any:
        return self.criterion.mean_distance_squared()

    @cached_property
    def critical_load(self) -> Any:
        """alpha_c in the scaling limit p -> infinity (gamma_c where no logarithm enters)."""
        return self.derivation.results["critical_load"]

    @cached_property
    def one_step(self) -> OneStep:
        """The same free entropy with one step of replica symmetry breaking."""
        return OneStep(self.prior, self.criterion)

    # -- derivation --------------------------------------------------------------------------------
    @cached_property
    def derivation(self) -> Derivation:
        """Every step from the replicated action to the critical load."""
        d = Derivation(f"{self.prior.title}; {self.criterion.title}")
        d.add(
            "Replicated action per weight",
            sp.Function("S_n")(s.n, s.q) + s.gamma * self._log_average_power,
            "E volume^n by Laplace's method at Q_ab = q + (1-q) delta_ab; the scores of replica a "
            "are y_a = omega + sqrt(V) x_a, V = 1 - q, with omega ~ N(0, q) shared, which has "
            "covariance q + (1-q) delta_ab. Assumed: replica symmetry and analytic continuation in "
            "n; the rest is algebra",
        )
        entropy = self.prior.add_entropy_steps(d)
        energy = d.add(
            "Energetic term as n -> 0",
            replica_limit(self._log_average_power),
            "d/dn at n = 0 of log E Z^n, the derivative taken under the average",
        )
        self.criterion.add_probability_steps(d)
        d.add(
            "Free entropy",
            entropy + s.gamma * energy,
            "entropic plus gamma times energetic term",
            symbol=s.free_entropy,
        )
        d.results["free_entropy"] = self.free_entropy
        self._add_saddle_point(d)
        self._add_stability(d)
        self._add_capacity(d)
        self._add_limit(d)
        if self.prior.is_exact:
            self.one_step.add_steps(d)
        return d

    @cached_property
    def _log_average_power(self) -> Any:
        z_function = abstract_probability(self.criterion.scores)
        limits = [(symbol, s.q) for symbol, _ in self.criterion.scores]
        return sp.log(GaussianAverage(z_function**s.n, *limits))

    def _add_saddle_point(self, d: Derivation) -> None:
        derivative = add_overlap_derivative(d, self.criterion.scores)
        d.add(
            "Saddle-point equation",
            sp.Eq(2 * self.prior.entropy_derivative(), s.gamma * derivative.scale(-2)),
            "d phi/dq = 0",
        )
        d.results["saddle_point"] = list(self.saddle_point_equations)

    def _add_stability(self, d: Derivation) -> None:
        symbols = [symbol for symbol, _ in self.criterion.scores]
        hessian = sp.Function("hessian_norm", nonnegative=True)(*symbols, s.V)
        average = GaussianAverage(hessian**2, *[(symbol, s.q) for symbol in symbols])
        exact = "exact" if self.prior.tangent_fraction == 1 else "necessary as q -> 1"
        convex = (
            "; for a convex C and the sphere it never fails below capacity"
            if self.criterion.is_convex and self.prior.is_convex
            else "; C or the set of weights is not convex, so it has to be checked"
        )
        d.add(
            "Replicon stability",
            sp.StrictGreaterThan(1 - self._replicon_factor * average, 0),
            "hessian_norm: Frobenius norm of the Hessian of log Z in the scores; on directions"
            f" with vanishing row sums Q^-1 acts as 1/(1-q) ({exact}{convex})",
        )
        d.results["stability"] = self.stability

    def _add_capacity(self, d: Derivation) -> None:
        symbols = [symbol for symbol, _ in self.criterion.scores]
        distance = sp.Function("dist", nonnegative=True)(*symbols)
        d.add(
            "Limit V -> 0 of V log Z",
            -(distance**2) / 2,
            "Laplace's method: Z is a Gaussian of variance V around omega integrated over C",
        )
        scaled = sp.cancel((1 - s.q) ** 2 * 2 * self.prior.entropy_derivative())
        d.add(
            "Saddle-point equation times (1-q)^2 as q -> 1",
            sp.Eq(scaled.subs(s.q, 1), s.gamma * GaussianAverage(distance**2, *symbols)),
            "V^2 |grad log Z|^2 -> |grad dist^2/2|^2 = dist^2 (the gradient of dist has length 1)",
        )
        self.criterion.add_distance_steps(d)
        note = self.criterion.caveat or (
            ""
            if self.prior.is_convex
            else "the set of weights is not convex: an upper bound (Gordon's inequality)"
        )
        d.results["capacity_equation"] = d.add("Capacity", self.capacity_equation, note)

    def _add_limit(self, d: Derivation) -> None:
        cost = self.criterion.add_scaling_steps(d)
        if cost is None:
            d.results["critical_load"] = d.add(
                "Critical load",
                self.capacity,
                "alpha = gamma: no logarithm enters",
                symbol=s.alpha_c,
            )
            add_parametric_load(d)
            return
        phi = self.prior.entropy() - s.alpha * cost / (1 - s.q)
        d.results["scaling_free_entropy"] = d.add(
            "Free entropy in the scaling limit",
            phi,
            "p -> infinity at fixed alpha = gamma L, L = log p",
            symbol=s.scaling_free_entropy,
        )
        stationary = sp.together(sp.cancel(phi.diff(s.q)))
        d.results["scaling_saddle_point"] = d.add(
            "Saddle point in the scaling limit", sp.Eq(stationary, 0), "d phi/dq = 0"
        )
        (overlap,) = sp.solve(sp.numer(stationary), s.q)
        overlap = sp.factor(overlap)
        d.results["overlap"] = d.add("Overlap", sp.Eq(s.q, overlap), "solved for q")
        weight = sp.expand(phi).coeff(sp.log(1 - s.q))
        rest = sp.factor(sp.cancel((phi - weight * sp.log(1 - s.q)).subs(s.q, overlap)))
        at_saddle = sp.factor(weight) * sp.log(1 - overlap) + rest
        d.results["free_entropy_at_saddle"] = d.add(
            "Free entropy at the saddle point",
            at_saddle,
            "overlap inserted",
            symbol=s.saddle_free_entropy,
        )
        (critical,) = sp.solve(sp.Eq(overlap, 1), s.alpha)
        d.results["critical_load"] = d.add(
            "Critical load",
            sp.factor(critical),
            "q -> 1: the solution space shrinks to a point",
            symbol=s.alpha_c,
        )
        add_parametric_load(d)
