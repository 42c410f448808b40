"""The Hebbian memory W = sum_mu u_mu e_mu^T: recall of a typical fact and of every fact."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import sympy as sp

from replica import symbols as s
from replica.derivation import Derivation
from replica.gaussian import GaussianAverage, Phi

sigma = sp.Symbol("sigma", positive=True)
p = sp.Symbol("p", positive=True)
d = sp.Symbol("d", positive=True)


@dataclass(frozen=True)
class HebbianRule:
    """Scores of a Hebbian memory, embeddings with entries N(0, 1/d): target 1 + sigma z_0 against
    competitors sigma z_rho, sigma^2 = p/d^2 (leading order in d).

    >>> rule = HebbianRule()
    >>> rule.typical_threshold, rule.every_fact_threshold
    (1/2, 1/8)
    """

    competitors: Any = s.M

    @cached_property
    def crosstalk(self) -> Any:
        """sigma^2 = p E(u.u')^2 E(e.e')^2, each overlap d E(a b)^2 over two N(0, 1/d) entries."""
        a, b = sp.symbols("a b", real=True)
        overlap = d * GaussianAverage(a**2 * b**2, (a, 1 / d), (b, 1 / d)).doit()
        return p * overlap**2

    @property
    def typical_recall(self) -> Any:
        """P(a given fact is recalled) = E Phi(1/sigma + z)^M: the target beats each of M rivals."""
        return GaussianAverage(Phi(1 / sigma + s.z) ** self.competitors, s.z)

    @cached_property
    def finite_size_variances(self) -> tuple[Any, Any]:
        """Variances of the target and of a rival score with the terms of order 1/d kept.

        Target: crosstalk plus the fluctuation of |u|^2 |e|^2 about 1. Rival rho: crosstalk plus the
        two terms nu = mu and nu = rho, one overlap each. (Gaussian embeddings.)
        """
        a, b = sp.symbols("a b", real=True)
        norm = d * (GaussianAverage(a**4, (a, 1 / d)) - GaussianAverage(a**2, (a, 1 / d)) ** 2)
        overlap = d * GaussianAverage(a**2 * b**2, (a, 1 / d), (b, 1 / d)).doit()
        # 1 + f_u + f_e to first order in the two independent fluctuations of the squared norms
        return self.crosstalk + 2 * norm.doit(), self.crosstalk + 2 * overlap

    @property
    def finite_size_recall(self) -> Any:
        """E Phi((1 + s_target z)/s_rival)^M with `finite_size_variances`: corrected by O(d/p)."""
        target, rival = self.finite_size_variances
        lead = (1 + sp.sqrt(target) * s.z) / sp.sqrt(rival)
        return GaussianAverage(Phi(lead) ** self.competitors, s.z)

    @cached_property
    def pair_error(self) -> Any:
        """P(one given rival beats the target) = Phi(-1/(sigma sqrt 2)), by the convolution rule."""
        return GaussianAverage(Phi(-1 / sigma - s.z), s.z).doit()

    @property
    def expected_errors(self) -> Any:
        """p M pair_error: bounds 1 - P(every fact is recalled) from above (union bound)."""
        return p * self.competitors * self.pair_error

    @property
    def every_fact_recall(self) -> Any:
        """(typical recall)^p: recall of every fact when facts fail independently."""
        return self.typical_recall**p

    @cached_property
    def typical_threshold(self) -> Any:
        """alpha at which a typical fact is lost as p -> infinity."""
        return self._thresholds[0]

    @cached_property
    def every_fact_threshold(self) -> Any:
        """alpha at which the first of p facts is lost as p -> infinity."""
        return self._thresholds[1]

    @cached_property
    def _thresholds(self) -> tuple[Any, Any]:
        results = self.derivation.results
        return results["critical_load"], results["critical_load_every_fact"]

    @cached_property
    def derivation(self) -> Derivation:
        """From the crosstalk to both thresholds, by extreme-value balance at scale sqrt(2 L)."""
        out = Derivation("Hebbian memory, W = sum of u_mu e_mu^T")
        out.add(
            "Variance of the crosstalk",
            sp.Eq(sigma**2, self.crosstalk),
            "score of u_rho at fact mu: sum over nu of (u_rho . u_nu)(e_nu . e_mu); each overlap "
            "has variance 1/d; nu = mu gives the signal 1 to the target; terms nu = rho are less "
            "by d/p. Assumed: the sum of p - 1 terms is Gaussian",
        )
        out.results["recall_typical"] = out.add(
            "Recall of a given fact",
            self.typical_recall,
            "P(1 + sigma z > sigma z_rho for every rho), conditioned on z",
        )
        out.add("One rival wins", self.pair_error, "E Phi(a z + b) = Phi(b/sqrt(1 + a^2))")
        out.results["expected_errors"] = out.add(
            "Expected number of winning rivals over all facts",
            self.expected_errors,
            "bounds the probability that some fact is lost",
        )
        lead, fall, rise = sp.symbols("lead fall rise", positive=True)
        out.add(
            "Signal in units of the extreme crosstalk",
            sp.Eq(lead, 1 / (sigma * sp.sqrt(2 * s.L))),
            "scores divided by sigma sqrt(2 L); a crosstalk a sqrt(2 L) has exponent -a^2 in p",
        )
        load = sp.Eq(s.alpha, s.L * sigma**2)
        sigma_of_lead = sp.solve(sp.Eq(lead, 1 / (sigma * sp.sqrt(2 * s.L))), sigma)[0]
        alpha_of_lead = sp.cancel(load.rhs.subs(sigma, sigma_of_lead))
        out.add("Load", sp.Eq(s.alpha, alpha_of_lead), "alpha = p L/d^2 = sigma^2 L")
        # A typical target does not move; p rivals reach rise with number p^(1 - rise^2).
        (typical,) = [r for r in sp.solve(1 - lead**2, lead) if r.is_positive]
        out.results["critical_load"] = out.add(
            "Typical fact: critical load",
            alpha_of_lead.subs(lead, typical),
            "the best of p rivals, p^(1 - lead^2) = 1, reaches an unmoved target",
        )
        cost = fall**2 + rise**2
        along = cost.subs(rise, lead - fall)
        (best,) = sp.solve(along.diff(fall), fall)
        least = sp.factor(along.subs(fall, best))
        out.add(
            "Cheapest way to lose a fact",
            sp.Eq(sp.Symbol("exponent"), 2 - least),
            "p facts and p rivals each: p^(2 - fall^2 - rise^2) events with fall + rise = lead; "
            "minimised over the split",
        )
        (every,) = [r for r in sp.solve(2 - least, lead) if r.is_positive]
        critical = alpha_of_lead.subs(lead, every)
        out.results["critical_load_every_fact"] = out.add(
            "Every fact: critical load",
            critical,
            "exponent 0: fall = rise = 1, worst target and best rival at their extreme values",
        )
        out.results["dimension_every_fact"] = out.add(
            "Dimension for every one of p facts",
            sp.Eq(d**2, p * sp.log(p) / critical),
            "alpha = p log p / d^2",
        )
        return out
