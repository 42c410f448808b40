"""The limit p -> infinity of E log Z for many competitors: large deviations at scale sqrt(2 L)."""

from __future__ import annotations

from typing import Any

import sympy as sp

from replica import symbols as s
from replica.derivation import Derivation
from replica.errors import InvalidInput


def add_extreme_value_steps(derivation: Derivation, margin: Any) -> Any:
    """Derive c in E log Z -> -c L/(1-q) with scores in units of sqrt(2 L); returns c.

    With target score y = sqrt(2L) u, the weight of Z is N(y; omega_0, V) times the product over
    p = e^L competitors. A competitor with shared score sqrt(2L) v (frequency e^{-L v^2/q}) exceeds
    level sqrt(2L) a with probability e^{-L (a-v)^2/V}; the best v gives the exponent below.

    Raises InvalidInput for a margin of -1 or less: the target then has nothing to climb, E log Z
    is o(L) and no critical load exists at this scale.
    """
    if margin.is_number and (margin + 1).is_nonpositive:
        raise InvalidInput(
            f"margin is {margin}; in the scaling limit it counts in units of sqrt(2 log p) and "
            "must be greater than -1, where the critical load diverges; give a greater one"
        )
    level, shared = sp.symbols("a v", positive=True)
    rate = shared**2 / s.q + (level - shared) ** 2 / s.V
    derivation.add(
        "Large-deviation cost of one competitor above sqrt(2 L) a",
        rate,
        "Gaussian tails at scale sqrt(2 L): shared score sqrt(2 L) v costs v^2/q, the fluctuation "
        "from v to a costs (a - v)^2/V, in units of L",
    )
    (best,) = sp.solve(rate.diff(shared), shared)
    least = sp.factor(rate.subs(shared, best)).subs(s.V, 1 - s.q)
    least = sp.cancel(least)
    derivation.add(
        "Least cost over the shared score",
        sp.Eq(sp.Symbol("cost", positive=True), least),
        "minimised over v and V = 1 - q: the overlap drops out",
    )
    # Expected log-cost of M = e^L competitors: -M e^{-L a^2}: 0 above a = 1, -infinity below.
    (threshold,) = [root for root in sp.solve(sp.Eq(1 - least, 0), level) if root.is_positive]
    derivation.add(
        "Lowest level that p competitors leave free",
        sp.Eq(level, threshold),
        "extreme-value concentration, max score / sqrt(2 L) -> 1: the expected number of "
        "competitors above, e^{L (1 - a^2)}, vanishes for a > 1 and diverges for a < 1",
    )
    target = threshold + margin
    cost = target**2
    derivation.add(
        "Limit of E log Z / L",
        -cost / (1 - s.q),
        "the target must reach 1 + margin (margin in units of sqrt(2 L) from here on) from "
        "omega_0 = O(1): log N(y; omega_0, V) / L -> -y^2/V; Laplace's method, leading order in L; "
        "self-averaging over the competitors is the (replica) assumption, the rest is algebra",
    )
    return cost
