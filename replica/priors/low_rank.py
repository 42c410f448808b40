"""Memories of bounded rank, W = Q R^T with rank_ratio * d_out columns (the two-layer memory)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import sympy as sp

from replica import symbols as s
from replica.derivation import Derivation
from replica.errors import InvalidInput
from replica.priors.base import Prior
from replica.priors.spectrum import SpectralWeight, add_spectrum_steps


@dataclass(frozen=True)
class LowRank(Prior):
    """W in R^(d_out x d_in) of rank at most rank_ratio * d_out, ||W||^2 = N, d_out <= d_in.

    The entropic term is the leading form as q -> 1 (Laplace's method around the truncated singular
    value decomposition), S = D/2 log(1-q) + I q/(2(1-q)), with D the dimension of the set of such
    matrices over N and I its squared Gaussian width; at rank_ratio = 1 it is exact at every q.
    The set is not convex: the capacity is the replica-symmetric value, an upper bound by Gordon's
    inequality.

    >>> import sympy as sp
    >>> LowRank(rank_ratio=1).entropy()
    q/(2 - 2*q) + log(1 - q)/2
    >>> LowRank().tangent_fraction
    rank_ratio*(2 - rank_ratio)
    """

    rank_ratio: Any = s.rank_ratio
    aspect_ratio: Any = sp.S.One

    name = "low_rank"
    title = "low-rank weights, W = Q R^T with rank_ratio * d_out columns, ||W||^2 = d_in d_out"
    is_exact = False
    is_convex = False
    parameters: ClassVar[tuple[Any, ...]] = (s.rank_ratio,)

    def __post_init__(self) -> None:
        for field in ("rank_ratio", "aspect_ratio"):
            value = sp.sympify(getattr(self, field))
            if value.is_number and not (value.is_real and 0 < value <= 1):
                raise InvalidInput(f"{field} is {value}; it must lie in (0, 1]")

    @property
    def width_squared(self) -> Any:
        return SpectralWeight(sp.sympify(self.rank_ratio), sp.sympify(self.aspect_ratio))

    @property
    def tangent_fraction(self) -> Any:
        # rank m = k d_out: m (d_in + d_out - m) parameters out of d_in d_out.
        rank, aspect = sp.sympify(self.rank_ratio), sp.sympify(self.aspect_ratio)
        return rank * (1 + aspect - rank * aspect)

    def entropy(self, q: Any = s.q) -> Any:
        width = self.width_squared
        return self.tangent_fraction * sp.log(1 - q) / 2 + width * q / (2 * (1 - q))

    def entropy_one_step(self, q0: Any = s.q0, q1: Any = s.q1, block: Any = s.block) -> Any:
        raise InvalidInput(
            "one step of replica symmetry breaking is not derived for the low-rank prior, whose "
            "entropic term is known near q = 1 only; use the spherical prior"
        )

    def add_entropy_steps(self, derivation: Derivation) -> Any:
        rank, aspect = sp.sympify(self.rank_ratio), sp.sympify(self.aspect_ratio)
        width = add_spectrum_steps(derivation, rank, aspect)
        derivation.add(
            "Dimension of the set of low-rank matrices over N",
            self.tangent_fraction,
            "m (d_in + d_out - m) with m = rank_ratio d_out",
        )
        theta_hat = sp.Symbol("theta_hat", positive=True)
        exponent = sp.sqrt(width) * theta_hat
        # Shared field theta_hat G with the norm fixed: overlap 1 - V costs theta_hat^2 V/2 in the
        # replicated action; theta_hat is eliminated by stationarity.
        action = exponent - theta_hat**2 * s.V / 2
        derivation.add(
            "Leading entropic term before the field is eliminated",
            action,
            "as q -> 1 the field theta_hat G aligns W with the truncated G; -theta_hat^2 (1-q)/2 "
            "is the Legendre term conjugate to q",
        )
        (field,) = sp.solve(action.diff(theta_hat), theta_hat)
        leading = sp.factor(action.subs(theta_hat, field))
        derivation.add("Field eliminated", leading, "stationarity in theta_hat")
        if sp.expand(leading.subs(s.V, 1 - s.q) - width / (2 * (1 - s.q))) != 0:
            raise ArithmeticError("the leading entropic term is not width/(2(1-q))")
        return derivation.add(
            "Entropic term as q -> 1",
            self.entropy(),
            "plus one factor sqrt(1-q) for every dimension of the set; constant fixed by "
            "rank_ratio = 1, where the form is exact at every q",
        )
