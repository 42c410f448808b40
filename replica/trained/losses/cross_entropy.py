"""Cross-entropy l(s) = log sum_rho e^{s_rho} - s_0."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar

import sympy as sp

from replica import symbols as s
from replica.derivation import Derivation
from replica.trained.losses.base import TrainedLoss, explicit_scores

u = sp.Symbol("u", positive=True)
c, a, y = sp.symbols("c a y", real=True)
S1, S2 = sp.symbols("S_1 S_2", positive=True)


class CrossEntropy(TrainedLoss):
    """l(s) = log sum_rho e^{s_rho} - s_0.

    >>> CrossEntropy().proximal_share
    LambertW(V*exp(a - c))
    >>> CrossEntropy().trace
    (S_1 - S_2/S_1)/V
    """

    name: ClassVar[str] = "cross_entropy"
    title: ClassVar[str] = "cross-entropy, log sum exp(s) - s_0"

    def value(self, scores: Sequence[Any]) -> Any:
        return sp.log(sp.Add(*[sp.exp(x) for x in scores])) - scores[0]

    @property
    def hebbian_gradient(self) -> tuple[Any, Any]:
        # one exponential stands for each score: derivatives at s = 0 with M equal competitors
        t, w = sp.symbols("t w", real=True)
        loss = sp.log(sp.exp(t) + s.M * sp.exp(w)) - t
        return tuple(
            sp.factor(part.subs({t: 0, w: 0})) for part in (loss.diff(t), loss.diff(w) / s.M)
        )

    @property
    def share_equation(self) -> Any:
        """u + log u = log V + a - c for u = V softmax_rho(x), a = omega + V e_0, c = log sum e^x.

        Stationarity gives x = a - u; the definition of u gives log u = log V + x - c.
        """
        definition = sp.Eq(sp.log(u), sp.log(s.V) + a - u - c, evaluate=False)
        return sp.Eq(u + sp.log(u), definition.rhs + u, evaluate=False)

    @property
    def proximal_share(self) -> Any:
        """u = W_0(V e^{a - c}), the solution of the share equation."""
        (solved,) = sp.solve(sp.Eq(u + sp.log(u), y), u)
        argument = sp.powsimp(sp.expand(sp.exp(self.share_equation.rhs)))
        return solved.subs(sp.exp(y), argument)

    @property
    def trace(self) -> Any:
        """tr H (1 + V H)^-1 = (S_1 - S_2/S_1)/V, S_k = sum_rho r_rho^k, r = u/(1 + u).

        1 + V H = B - u u^T/V with B = diag(1 + u), inverted by Sherman and Morrison: the
        denominator is V - sum u^2/(1 + u) = sum (u - u^2/(1 + u)) = S_1 since sum u = V.
        """
        r = u / (1 + u)
        if sp.cancel(u - u**2 / (1 + u) - r) != 0 or sp.cancel(1 - 1 / (1 + u) - r) != 0:
            raise ArithmeticError("the Sherman-Morrison denominator is not the sum of u/(1+u)")
        # tr [1 - (1 + V H)^-1]: sum (1 - 1/(1+u)) = S_1, minus |B^-1 u|^2/S_1 = S_2/S_1
        return (S1 - S2 / S1) / s.V

    def add_steps(self, derivation: Derivation) -> None:
        x = explicit_scores(2)
        derivation.add(
            "Gradient of the loss, two competitors shown",
            sp.Matrix(self.gradient(x)),
            "softmax minus the target",
        )
        derivation.add(
            "Stationarity in the shares u = V softmax(x)",
            self.share_equation,
            "a = omega + V e_0, x = a - u, c = log sum e^x; logarithm of the definition of u",
        )
        derivation.results["proximal_share"] = derivation.add(
            "Shares",
            sp.Eq(u, self.proximal_share, evaluate=False),
            "Lambert's W_0; the one scalar c is fixed by sum u = V",
        )
        derivation.add(
            "Hessian, two competitors shown, in softmax weights",
            softmax_hessian(2),
            "H = diag(pi) - pi pi^T",
        )
        derivation.results["trace"] = derivation.add(
            "tr H (1 + V H)^-1",
            self.trace,
            "Sherman-Morrison; S_k = sum (u/(1 + u))^k",
        )


@lru_cache(maxsize=8)
def softmax_hessian(competitors: int) -> Any:
    """The Hessian by differentiation, written in pi_i = e^{x_i}/sum; raises unless it equals
    diag(pi) - pi pi^T.

    >>> softmax_hessian(1)
    Matrix([
    [-pi_0**2 + pi_0,      -pi_0*pi_1],
    [     -pi_0*pi_1, -pi_1**2 + pi_1]])
    """
    x = explicit_scores(competitors)
    weights = sp.symbols(f"pi_0:{competitors + 1}", positive=True)
    total = sp.Add(*[sp.exp(score) for score in x])
    matrix = CrossEntropy().hessian(x)
    expected = sp.diag(*weights) - sp.Matrix(weights) * sp.Matrix(weights).T
    inserted = expected.subs(
        {w: sp.exp(score) / total for w, score in zip(weights, x, strict=True)}
    )
    # polynomial identity in e^{x_i}
    exponentials = sp.symbols(f"E_0:{competitors + 1}", positive=True)
    plain = {sp.exp(score): e for score, e in zip(x, exponentials, strict=True)}
    if any(sp.cancel(entry.subs(plain)) != 0 for entry in matrix - inserted):
        raise ArithmeticError("the Hessian of log-sum-exp is not diag(pi) - pi pi^T")
    return expected
