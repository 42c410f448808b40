"""A retrieval criterion of one's own: the target must beat its rival and be accepted at all.

C = { y_0 >= y_1 and y_0 >= 0 }, a wedge of 135 degrees. Stating C, Z and E dist^2 is enough: free
entropy, saddle point, stability and capacity follow. The capacity is then met by experiment, and
the whole success curve by the law that holds for any cone, P = 2 sum_{j odd} P(K_tot = N - j).
Run: python examples/new_criterion.py
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp
from scipy.optimize import linprog

from replica.catalogue import model, register
from replica.criteria.base import Criterion
from replica.gaussian import GaussianAverage, Phi, heat_kernel
from replica.symbols import V, omega0, omega1, y, z
from validate.checks.statistics import clopper_pearson

WEIGHTS, INSTANCES = 30, 60
FACTS = (32, 36, 40, 44, 48)


@register
@dataclass(frozen=True)
class AcceptedAndFirst(Criterion):
    """C = { y_0 >= y_1, y_0 >= 0 }; its edges leave the apex along (1, 1) and (0, -1)."""

    name = "accepted_and_first"
    title = "the target beats its rival and is positive"
    scores = ((omega0, 1), (omega1, 1))

    def probability(self, variance: Any = V) -> Any:
        rival_below = Phi((y - omega1) / sp.sqrt(variance))
        return sp.Integral(heat_kernel(y, omega0, variance) * rival_below, (y, 0, sp.oo))

    def mean_distance_squared(self) -> Any:
        # Nearest point on an edge: before it along the edge, beyond it across; two such edges.
        edge = GaussianAverage(sp.S.One, (z, 1, 0, sp.oo)) * GaussianAverage(
            z**2, (z, 1, -sp.oo, 0)
        )
        # Nearest point the apex: the polar wedge between the outward normals of the two edges.
        normals = sp.Matrix([-1, 1]).normalized(), sp.Matrix([-1, 0])
        share = sp.acos(normals[0].dot(normals[1])) / (2 * sp.pi)
        return (2 * edge + share * 2 * GaussianAverage(z**2, (z, 1))).doit()


def intrinsic_volumes() -> list[sp.Rational]:
    """v_0, v_1, v_2 of the polar wedge: P(no, one, both constraints of a fact are active)."""
    delta = model("spherical", "accepted_and_first").criterion.mean_distance_squared()
    # In the plane v_1 = 1/2 always, sum v_k = 1 and sum k v_k = delta.
    both = (delta - sp.Rational(1, 2)) / 2
    return [sp.Rational(1, 2) - both, sp.Rational(1, 2), both]


def success_probability(weights: int, facts: int) -> float:
    """P(some memory of `weights` weights recalls `facts` facts), exactly."""
    law = np.array([1.0])
    for _ in range(facts):
        law = np.convolve(law, [float(v) for v in intrinsic_volumes()])
    return 2.0 * float(law[weights - 1 :: -2].sum())


def recalled(facts: int, weights: int, rng: np.random.Generator) -> bool:
    """Is there a memory for Gaussian facts? A linear program over all of its weights."""
    a, b = rng.standard_normal((2, facts, weights))
    rows = np.vstack([a, a - b])  # all of rows @ w must be positive
    done = linprog(np.zeros(weights), A_ub=-rows, b_ub=-np.ones(2 * facts), bounds=(None, None))
    return bool(done.status == 0)


def main() -> None:
    """Print what was derived, then law against experiment."""
    entry = model("spherical", "accepted_and_first")
    print("free entropy:", entry.derivation.results["free_entropy"])
    print("capacity:", entry.capacity, "facts per weight; v_k =", intrinsic_volumes())
    print(f"\n{WEIGHTS} weights, {INSTANCES} instances a line")
    print("facts  exact P  measured  95 % interval")
    rng = np.random.default_rng(0)
    for facts in FACTS:
        count = sum(recalled(facts, WEIGHTS, rng) for _ in range(INSTANCES))
        low, high = clopper_pearson(count, INSTANCES)
        exact = success_probability(WEIGHTS, facts)
        print(f"{facts:5d}  {exact:7.4f}  {count / INSTANCES:8.3f}  [{low:.3f}, {high:.3f}]")


if __name__ == "__main__":
    main()
