"""Weights uniform on the sphere ||W||_F^2 = d_in d_out (square or rectangular)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sympy as sp

from replica import symbols as s
from replica.derivation import Derivation
from replica.overlap import OverlapMatrix, replica_limit
from replica.priors.base import Prior


@dataclass(frozen=True)
class Spherical(Prior):
    """Uniform measure on the sphere of N = d_in d_out weights.

    Only N matters, so a rectangular memory differs from a square one through gamma = p / N alone.

    >>> from replica.symbols import q
    >>> Spherical().entropy(q)
    q/(2*(1 - q)) + log(1 - q)/2
    """

    name = "spherical"
    title = "spherical weights, W in R^(d_out x d_in) with ||W||^2 = d_in d_out"
    is_exact = True
    is_convex = True

    @property
    def width_squared(self) -> Any:
        return sp.S.One

    @property
    def tangent_fraction(self) -> Any:
        return sp.S.One

    def entropy(self, q: Any = s.q) -> Any:
        return _entropy_steps()[-1][1].subs(s.q, q)

    def entropy_one_step(self, q0: Any = s.q0, q1: Any = s.q1, block: Any = s.block) -> Any:
        log_det = OverlapMatrix.one_step(q0, q1, block).log_det()
        return sp.expand(replica_limit(log_det) / 2)

    def add_entropy_steps(self, derivation: Derivation) -> Any:
        value = None
        for title, expression, reason in _entropy_steps():
            value = derivation.add(title, expression, reason)
        return value


@lru_cache(maxsize=1)
def _entropy_steps() -> list[tuple[str, Any, str]]:
    """The entropic term with its conjugate eliminated, one operation a step."""
    steps: list[tuple[str, Any, str]] = []

    def step(title: str, expression: Any, reason: str) -> None:
        steps.append((title, expression, reason))

    overlap = OverlapMatrix.replica_symmetric()
    step(
        "Replica-symmetric overlap matrix: eigenvalues and multiplicities",
        sp.Tuple(*[sp.Tuple(*pair) for pair in overlap.eigenvalues()]),
        "Q_ab = q + (1 - q) delta_ab at symbolic n: the uniform vector and its complement",
    )
    gap, off = sp.symbols("r_hat q_hat", positive=True)
    conjugate = OverlapMatrix.replica_symmetric(-off, gap - off)
    step(
        "log det of the conjugate matrix",
        conjugate.log_det(),
        "Gaussian integral over the weights of n replicas; the conjugate matrix has diagonal "
        "r_hat - q_hat and off-diagonal elements -q_hat",
    )
    action = (overlap * conjugate).trace() / 2 - conjugate.log_det() / 2 - s.n / 2
    action = sp.expand(replica_limit(sp.expand(action)))
    step(
        "Entropic term before the conjugate is eliminated",
        action,
        "(Tr Q Q_hat - log det Q_hat - n)/2 per replica as n -> 0; -n/2 sets S(q = 0) = 0",
    )
    conditions = [action.diff(off), action.diff(gap)]
    step(
        "Conjugate saddle point",
        sp.Tuple(*[sp.Eq(sp.factor(c), 0) for c in conditions]),
        "derivatives with respect to q_hat and r_hat",
    )
    (gap_value,) = sp.solve(conditions[0], gap)
    (off_value,) = sp.solve(conditions[1].subs(gap, gap_value), off)
    solution = {gap: sp.factor(gap_value), off: sp.factor(off_value)}
    step(
        "Conjugate order parameters",
        sp.Tuple(*[sp.Eq(key, value) for key, value in solution.items()]),
        "solved one after the other: the n -> 0 limit of Q_hat = Q^-1",
    )
    # In V = 1 - q > 0 the logarithm splits by itself; then back to q.
    in_gap = sp.expand(_in_gap(action, solution))
    logarithm = in_gap.coeff(sp.log(s.V)) * sp.log(1 - s.q)
    rational = sp.together(in_gap.subs(sp.log(s.V), 0)).subs(s.V, 1 - s.q)
    step("Entropic term", logarithm + rational, "conjugate inserted")
    return steps


def _in_gap(action: Any, solution: dict[Any, Any]) -> Any:
    values = {key: sp.factor(value.subs(s.q, 1 - s.V)) for key, value in solution.items()}
    return action.subs(s.q, 1 - s.V).subs(values)
