"""Integrals as nodes of a ball program: Arb's adaptive rule inside, proved tail bounds outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp
from flint import acb, arb, ctx

from numerics.evaluator import CannotEvaluate, Program, compile_program
from numerics.majorant import bound_above
from numerics.tails import to_phi

FARTHEST_CUT = 2**40
# Enough for thousands of panels; an integrand that needs more does not converge.
EVALUATIONS_PER_BIT = 1000


def _tolerance(arguments: Sequence[Any]) -> Any:
    """The working precision, or the width of the widest argument where that is larger.

    Inside another integral the arguments are wide balls on most calls; no subdivision can then
    reach the working precision, and asking for it costs thousands of useless evaluations.
    """
    widest = arb(2) ** -ctx.prec
    for value in arguments:
        widest = widest.max(value.real.rad()).max(value.imag.rad())
    return widest.min(arb(1) / 4).mid()


@dataclass(frozen=True)
class IntegralNode:
    """The integral of `integrand` over `variable`; an end that is None is infinite.

    Called with the finite ends followed by the values of `names` (the other free symbols).
    """

    integrand: Any
    body: Program
    variable: sp.Symbol
    low: Any | None
    high: Any | None
    names: tuple[sp.Symbol, ...]

    @classmethod
    def build(cls, integrand: Any, variable: sp.Symbol, low: Any, high: Any) -> IntegralNode:
        if low is sp.oo or high is -sp.oo:
            return cls.build(-integrand, variable, high, low)
        integrand = to_phi(integrand)
        names = tuple(sorted(integrand.free_symbols - {variable}, key=str))
        return cls(
            integrand,
            compile_program(integrand),
            variable,
            None if low is -sp.oo else low,
            None if high is sp.oo else high,
            names,
        )

    def ends(self) -> list[Any]:
        return [end for end in (self.low, self.high) if end is not None]

    def __call__(self, a: Sequence[Any], analytic: bool) -> Any:
        finite = list(a[: len(self.ends())])
        scope = dict(zip(self.names, a[len(finite) :], strict=True))
        error = arb(0)
        low = finite.pop(0) if self.low is not None else None
        high = finite.pop(0) if self.high is not None else None
        if high is None:
            cut, tail = self._cut(self.integrand, scope, low)
            high, error = acb(cut), error + tail
        if low is None:
            mirrored = self.integrand.subs(self.variable, -self.variable)
            cut, tail = self._cut(mirrored, scope, -high)
            low, error = acb(-cut), error + tail

        def integrand(z: Any, inner: bool) -> Any:
            return self.body({**scope, self.variable: z}, inner or analytic)

        tolerance = _tolerance([*a])
        value = acb.integral(
            integrand,
            low,
            high,
            rel_tol=tolerance,
            abs_tol=tolerance,
            eval_limit=EVALUATIONS_PER_BIT * ctx.prec,
        )
        spread = arb(0, error.upper())
        return value + acb(spread, spread)

    def _cut(self, integrand: Any, scope: dict[sp.Symbol, Any], other: Any) -> tuple[Any, Any]:
        """Where to cut the infinite end, and a bound of what lies beyond.

        The cut must lie beyond the other end, and the tail below the working precision.
        """

        def evaluate(e: Any) -> Any:
            return compile_program(e)(scope)

        wanted = -(arb(2).log()) * (ctx.prec + 4)
        nearest = None if other is None else other.real.upper()
        position = arb(2)
        while position < FARTHEST_CUT:
            if nearest is None or position > nearest:
                majorant = bound_above(integrand, self.variable, position, evaluate)
                log_tail = majorant.log_tail(position)
                if log_tail is not None and log_tail < wanted:
                    return position, log_tail.exp()
            position = (position * 5 / 4).mid()
        raise CannotEvaluate(
            f"the integral of {self.integrand} over {self.variable} does not provably converge "
            "fast enough for a tail bound; give finite limits"
        )
