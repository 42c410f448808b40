"""Tail-average recall: the target exceeds the average of the best r M competitors (listwise)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import sympy as sp

from replica import symbols as s
from replica.criteria.halfspace import Halfspace
from replica.derivation import Derivation
from replica.errors import InvalidInput
from replica.gaussian import GaussianAverage, Phi, PhiInverse, phi, plain


@dataclass(frozen=True)
class TailAverage(Halfspace):
    """C = { y : y_0 >= mean of the r M largest competitors + margin }, M -> infinity.

    The competitors' empirical law concentrates on N(0, q + V) = N(0, 1), whatever the overlap, so
    their tail average is the number kappa_r = phi(Phi^{-1}(1-r))/r and C acts as Gardner's
    halfspace with margin kappa_r + margin (source: listwise retrieval, Barnfield et al. 2026).

    >>> TailAverage(r=1, margin=0).mean_distance_squared()
    1/2
    """

    r: Any = s.r

    name = "tail_average"
    title = "tail average, y_0 >= mean of the best r M competitors + margin, M -> infinity"
    parameters: ClassVar[tuple[Any, ...]] = (s.margin, s.r)

    def __post_init__(self) -> None:
        value = sp.sympify(self.r)
        if value.is_number and not (value.is_real and 0 < value <= 1):
            raise InvalidInput(f"r is {self.r}; the averaged fraction must lie in (0, 1]")

    @property
    def tail_mean(self) -> Any:
        """kappa_r = E[z | z above its upper r-quantile]."""
        return _tail_average(-PhiInverse(sp.sympify(self.r))) if self.r != 1 else sp.S.Zero

    @property
    def threshold(self) -> Any:
        return self.tail_mean + sp.sympify(self.margin)

    def add_probability_steps(self, derivation: Derivation) -> Any:
        cut = sp.Symbol("cut", real=True)
        derivation.add(
            "Tail average of the competitors above a cut",
            sp.Eq(_tail_integral(cut) / (1 - Phi(cut)), _tail_average(cut), evaluate=False),
            "scores omega_rho + sqrt(V) x_rho have variance q + V = 1 and their empirical law "
            "concentrates as M -> infinity: the overlap drops out",
        )
        derivation.add(
            "Effective margin",
            self.threshold,
            "the cut leaves the fraction r above it: cut = -PhiInverse(r)",
        )
        return super().add_probability_steps(derivation)

    def add_scaling_steps(self, derivation: Derivation) -> Any:
        for title, expression, reason in small_r_steps():
            derivation.add(title, expression, reason)
        derivation.results["small_r_limit"] = small_r_steps()[-1][1]
        return None


def _tail_integral(cut: Any) -> Any:
    return GaussianAverage(s.z, (s.z, 1, cut, sp.oo))


def _tail_average(cut: Any) -> Any:
    """E[z 1(z > cut)] / P(z > cut), with P(z > cut) = Phi(-cut)."""
    tail = Phi(-cut)
    if isinstance(cut, sp.Mul) and isinstance(-cut, PhiInverse):
        tail = (-cut).args[0]
    return _tail_integral(cut).doit() / tail


@lru_cache(maxsize=1)
def small_r_steps() -> list[tuple[str, Any, str]]:
    """r -> 0: gamma_c * 2 log(1/r) -> 1, so that r = 1/n gives d^2 = 2 n log n.

    In terms of the cut t: r = Phi(-t), kappa = phi(t)/Phi(-t), t -> infinity.

    >>> small_r_steps()[-1][1]
    Eq(d**2, 2*n*log(n))
    """
    t, kappa = sp.symbols("t kappa", positive=True)
    mean = phi(t) / Phi(-t)
    over_cut = sp.limit(plain(mean / t), t, sp.oo)
    # l'Hopital: both log(1/r) and t^2/2 diverge, the ratio of their derivatives is kappa/t.
    slopes = (-sp.log(Phi(-t))).diff(t) / (t**2 / 2).diff(t)
    if sp.cancel(slopes - mean / t) != 0:
        raise ArithmeticError("log(1/r) and t^2/2 do not have the ratio kappa/t of derivatives")
    # delta / kappa^2 -> 1 for Gardner's delta at large margin.
    delta = Halfspace(margin=kappa).mean_distance_squared()
    growth = sp.limit(plain(delta / kappa**2), kappa, sp.oo)
    n, d = sp.symbols("n d", positive=True)
    # delta = growth kappa^2, kappa = over_cut t, t^2/2 = log(1/r) / over_cut.
    leading = sp.powdenest(growth * over_cut**2 * 2 * sp.log(n) / over_cut)
    return [
        (
            "Tail average over its cut, t -> infinity",
            sp.Eq(sp.Limit(mean / t, t, sp.oo), over_cut),
            "r -> 0 sends the cut t to infinity; asymptotic series of the normal tail",
        ),
        (
            "log(1/r) over t^2/2",
            sp.Eq(sp.Limit(-2 * sp.log(Phi(-t)) / t**2, t, sp.oo), over_cut),
            "l'Hopital: the ratio of the derivatives is the ratio of the step before",
        ),
        (
            "Mean squared distance at a large margin",
            sp.Eq(sp.Limit(delta / kappa**2, kappa, sp.oo), growth),
            "Gardner's distance grows as the squared margin",
        ),
        (
            "Dimension needed for n facts, r = 1/n",
            sp.Eq(d**2, n * leading),
            "d^2 = n delta at margin kappa_r, zero extra margin, leading order in log n",
        ),
    ]
