"""The trained memory by the replica method: from the partition function to the fixed point.

    Z = int dW exp(-beta [ sum_mu l(s_mu) + (lambda N/2) ||W||^2 ]),   s_mu,rho = <G_mu,rho, W>

The norm is free: the overlap matrix is Q_ab = q + (V/beta) delta_ab, with V/beta the difference
of its diagonal and its off-diagonal part, and V of order 1 as beta -> infinity (convex l: one
minimum, replica symmetry).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import sympy as sp

from replica import symbols as s
from replica.derivation import Derivation
from replica.gaussian import GaussianAverage
from replica.overlap import OverlapMatrix, replica_limit
from replica.trained.envelope import Envelope
from replica.trained.losses.base import TrainedLoss
from replica.trained.symbols import Q, beta, ridge

#: Representative scores and how many there are: the target and M exchangeable competitors.
SCORES = ((s.omega0, sp.S.One), (s.omega1, s.M))


@dataclass(frozen=True)
class TrainedTheory:
    """The equations of the memory that minimises a convex `loss` with a ridge penalty.

    >>> from replica.trained import theory
    >>> theory("squared").norm_equation.lhs
    Q
    >>> theory("squared").response_equation.lhs
    1/V
    """

    loss: TrainedLoss

    # -- finite temperature ----------------------------------------------------------------------
    @cached_property
    def overlap_matrix(self) -> OverlapMatrix:
        """Q_ab = q + (V/beta) delta_ab at symbolic n."""
        return OverlapMatrix.replica_symmetric(s.q, diagonal=s.q + s.V / beta)

    @cached_property
    def prior_terms(self) -> Any:
        """lim (1/n) [ (1/2) log det Q - (beta lambda/2) tr Q ] as n -> 0."""
        matrix = self.overlap_matrix
        return replica_limit(matrix.log_det() / 2 - beta * ridge * matrix.trace() / 2)

    @cached_property
    def free_entropy(self) -> Any:
        """phi(q, V; beta) per weight; Z_l(omega, V/beta) is the Gibbs weight of one fact."""
        return self.prior_terms + s.gamma * replica_limit(self._log_average_power)

    @cached_property
    def _log_average_power(self) -> Any:
        weight = sp.Function("Z_l", positive=True)(*[w for w, _ in SCORES], s.V / beta)
        return sp.log(GaussianAverage(weight**s.n, *[(w, s.q) for w, _ in SCORES]))

    # -- zero temperature ------------------------------------------------------------------------
    @cached_property
    def envelope(self) -> Any:
        """M_V(omega), unspecified, in the representative scores."""
        return sp.Function("M_V", nonnegative=True)(*[w for w, _ in SCORES], s.V)

    @cached_property
    def prior_energy(self) -> Any:
        """-lim phi_prior/beta as beta -> infinity: lambda Q/2 - Q/(2V)."""
        limit = sp.limit(sp.expand(-self.prior_terms / beta), beta, sp.oo)
        return sp.expand(limit.subs(s.q, Q))

    @cached_property
    def energy(self) -> Any:
        """f(Q, V) = lambda Q/2 - Q/(2V) + gamma E M_V(omega), omega ~ N(0, Q)."""
        return self.prior_energy + s.gamma * self._average(self.envelope)

    @staticmethod
    def _average(body: Any) -> Any:
        return GaussianAverage(body, *[(w, Q) for w, _ in SCORES])

    # -- stationarity ----------------------------------------------------------------------------
    @cached_property
    def squared_step(self) -> Any:
        """|x - omega|^2 under the average, from dM/dV = -|x - omega|^2/(2V^2)."""
        return sp.Function("step", nonnegative=True)(*[w for w, _ in SCORES], s.V) ** 2

    @cached_property
    def curvature_trace(self) -> Any:
        """tr H (1 + V H)^-1, unspecified, in the representative scores."""
        return sp.Function("trace", nonnegative=True)(*[w for w, _ in SCORES], s.V)

    @cached_property
    def in_variance(self) -> Any:
        """df/dV with the envelope theorem inserted."""
        per_score = Envelope().in_variance
        # the envelope theorem for one score is linear in (omega_0 - x_0)^2: sum over the scores
        factor = sp.cancel(per_score / (s.omega0 - sp.Symbol("x_0", real=True)) ** 2)
        return self.prior_energy.diff(s.V) + s.gamma * self._average(
            factor * self.squared_step
        ).scale(1)

    @cached_property
    def norm_derivative_chain(self) -> Any:
        """dE M/dQ before Stein's lemma: omega_i = sqrt(Q) z_i, d omega_i/dQ = omega_i/(2Q)."""
        chain = sp.Add(*[n * w / (2 * Q) * self.envelope.diff(w) for w, n in SCORES])
        return self._average(chain)

    @cached_property
    def norm_derivative(self) -> Any:
        """The same after Stein's lemma: half the averaged Laplacian of M_V."""
        result = self.norm_derivative_chain
        body = sp.S.Zero
        for (symbol, _), term in zip(SCORES, sp.Add.make_args(sp.expand(result.body)), strict=True):
            by_parts = GaussianAverage(term, *result.limits).stein(symbol)
            for piece in sp.Add.make_args(by_parts):
                (average,) = piece.atoms(GaussianAverage)
                body += piece / average * average.body
        return self._average(sp.expand(body))

    @cached_property
    def laplacian(self) -> Any:
        """Laplacian of M_V over all scores, competitors counted M times."""
        return sp.Add(*[n * self.envelope.diff(w, 2) for w, n in SCORES])

    @cached_property
    def in_norm(self) -> Any:
        """df/dQ with Stein's lemma and tr Hess M = tr H (1 + V H)^-1 inserted."""
        half = sp.cancel(self.norm_derivative.body / self.laplacian)
        if half != sp.Rational(1, 2):
            raise ArithmeticError("Stein's lemma did not give half the Laplacian")
        trace = self._average(half * self.curvature_trace)
        return self.prior_energy.diff(Q) + s.gamma * trace

    @cached_property
    def norm_equation(self) -> Any:
        """Q = gamma E |x - omega|^2, from df/dV = 0."""
        (average,) = self.in_variance.atoms(GaussianAverage)
        (solved,) = sp.solve(self.in_variance, Q)
        return sp.Eq(Q, s.gamma * _inside(solved / s.gamma, average), evaluate=False)

    @cached_property
    def response_equation(self) -> Any:
        """1/V = lambda + gamma E tr H (1 + V H)^-1, from df/dQ = 0."""
        (average,) = self.in_norm.atoms(GaussianAverage)
        rest, coupling = ridge, sp.expand(2 * self.in_norm + 1 / s.V - ridge)
        right = rest + s.gamma * _inside(coupling / s.gamma, average)
        return sp.Eq(1 / s.V, right, evaluate=False)

    # -- derivation ------------------------------------------------------------------------------
    @cached_property
    def derivation(self) -> Derivation:
        """Every step from the replicated partition function to the equations of this loss."""
        d = Derivation(f"Trained memory: {self.loss.title}")
        self._add_finite_temperature(d)
        self._add_zero_temperature(d)
        self._add_stationarity(d)
        self.loss.add_steps(d)
        return d

    def _add_finite_temperature(self, d: Derivation) -> None:
        matrix = self.overlap_matrix
        d.add(
            "Replicated action per weight",
            matrix.log_det() / 2
            - beta * ridge * matrix.trace() / 2
            + s.gamma * self._log_average_power,
            "E Z^n by Laplace's method over Q_ab = <W_a, W_b>, the norm not fixed; replica "
            "symmetry: Q_ab = q + (V/beta) delta_ab; scores omega + sqrt(V/beta) x_a with shared "
            "omega ~ N(0, q); Z_l = E_x exp(-beta l(omega + sqrt(V/beta) x))",
        )
        d.add(
            "Entropy and penalty as n -> 0",
            self.prior_terms,
            "log det from the eigenvalues of the overlap matrix, d/dn at n = 0",
        )
        d.results["free_entropy"] = d.add(
            "Free entropy at temperature 1/beta",
            self.free_entropy,
            "d/dn at n = 0 of log E Z_l^n, the derivative taken under the average",
        )

    def _add_zero_temperature(self, d: Derivation) -> None:
        d.add(
            "Entropy and penalty, -1/beta times, beta -> infinity",
            self.prior_energy,
            "q -> Q = ||W||^2 as V/beta -> 0; the logarithm is beyond the order 1/beta",
        )
        Envelope().add_steps(d)
        d.results["energy"] = d.add(
            "Energy f(Q, V)",
            self.energy,
            "Laplace's method: -(1/beta) log Z_l -> min over x of l(x) + |x - omega|^2/(2V)",
        )

    def _add_stationarity(self, d: Derivation) -> None:
        d.add(
            "df/dV",
            self.in_variance,
            "envelope theorem under the average, step = |x - omega|",
        )
        d.results["norm_equation"] = d.add("Norm", self.norm_equation, "df/dV = 0, solved for Q")
        d.add(
            "dE M/dQ by the chain rule",
            self.norm_derivative_chain,
            "omega_i = sqrt(Q) z_i; competitors are exchangeable",
        )
        d.add(
            "Stein's lemma",
            self.norm_derivative,
            "E omega g = Q E dg/domega score by score: half the Laplacian of M",
        )
        d.results["response_equation"] = d.add(
            "Response",
            self.response_equation,
            "2 df/dQ = 0 with trace = tr Hess M = tr H (1 + V H)^-1",
        )


def _inside(expression: Any, average: Any) -> Any:
    """c E[body] with the factor c, free of averaged variables, moved under the average."""
    return average.scale(sp.cancel(expression / average))
