"""The star of k active competitors around the target: eigenvalues of its Laplacian.

Losses of the leads s_0 - s_rho have Hessian h sum_rho (e_0 - e_rho)(e_0 - e_rho)^T over the k
competitors with curvature h: h times the graph Laplacian of a star.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from replica import symbols as s

k = sp.Symbol("k", positive=True, integer=True)
h = sp.Symbol("h", positive=True)


def star_laplacian(leaves: int) -> Any:
    """The (leaves + 1)-square matrix sum_rho (e_0 - e_rho)(e_0 - e_rho)^T.

    >>> star_laplacian(2)
    Matrix([
    [ 2, -1, -1],
    [-1,  1,  0],
    [-1,  0,  1]])
    """
    total = sp.zeros(leaves + 1, leaves + 1)
    for leaf in range(1, leaves + 1):
        edge = sp.zeros(leaves + 1, 1)
        edge[0], edge[leaf] = 1, -1
        total += edge * edge.T
    return total


def star_eigenvalues() -> tuple[tuple[Any, Any], ...]:
    """Pairs (eigenvalue, multiplicity) for k leaves: (0, 1), (1, k - 1), (k + 1, 1).

    The Laplacian sends a vector with value b_0 at the centre and b_rho at the leaves to
    k b_0 - sum b_rho at the centre and b_rho - b_0 at the leaves. Leaves summing to zero, b_0 = 0:
    eigenvalue 1. Equal leaves b: the 2 x 2 matrix ((k, -k), (-1, 1)).
    """
    symmetric = sp.Matrix([[k, -k], [-1, 1]])
    pairs = [(sp.factor(value), sp.S.One) for value in symmetric.eigenvals()]
    return (*pairs, (sp.S.One, k - 1))


def star_trace(curvature: Any = h) -> Any:
    """tr H (1 + V H)^-1 for H = curvature times the star Laplacian of k leaves.

    >>> star_trace()
    h*(k - 1)/(V*h + 1) + h*(k + 1)/(V*h*(k + 1) + 1)
    """
    terms = [
        multiplicity * curvature * value / (1 + s.V * curvature * value)
        for value, multiplicity in star_eigenvalues()
        if value != 0
    ]
    return sp.Add(*terms)
