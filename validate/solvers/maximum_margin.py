"""From separating weights to the memory of maximum margin.

    minimise w^T R w / 2   subject to   A w >= 1,      R diagonal, nonnegative,

has optimum w / |w|_R of margin 1 / |w|_R and multipliers l >= 0 with A^T l = R w. Unlike the hull
form this one has no normalisation to eliminate, which would cost the last digits. Entries with
R = 0 are free (an intercept).
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch

from validate.solvers.interior_point import LEAST_PRODUCT, STEP_TO_BOUNDARY, longest, solve
from validate.solvers.operators import Operator, Tensor

MAXIMUM_ITERATIONS = 60


@dataclass(frozen=True)
class MarginResult:
    """Weights with least row product 1, multipliers, and the relative gap that remains."""

    weights: Tensor
    multipliers: Tensor
    gap: float
    iterations: int


@dataclass(frozen=True)
class _Newton:
    """The linear system of one iteration, factorised."""

    operator: Operator
    scale: Tensor
    factor: Tensor
    D: Tensor
    s: Tensor
    r_primal: Tensor
    r_dual: Tensor

    def direction(self, target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """dl, dw, ds with  s dl + l ds = target  and both residuals removed."""
        fixed = target / self.s - self.D * self.r_primal
        right = self.operator.adjoint(fixed) / self.scale + self.r_dual
        dw = solve(self.factor, right)
        rise = self.operator.apply(dw) / self.scale
        return fixed - self.D * rise, dw, rise + self.r_primal


def maximum_margin(
    operator: Operator,
    start: Tensor,
    multipliers: Tensor,
    *,
    norm: Tensor | None = None,
    tolerance: float = 1e-9,
    deadline: float | None = None,
) -> MarginResult:
    """Improve `start` (1, N), which must separate, for a batch of one instance.

    `multipliers` (1, n), positive, are a guess; `norm` (N,) is the diagonal of R, ones by default.
    Ends when the duality gap is below `tolerance` of w^T R w, or no longer falls.
    """
    scale = operator.scale().clamp_min(1e-300)[:, None]
    R = torch.ones_like(start) if norm is None else norm.expand_as(start)
    first = operator.apply(start) / scale
    w = start * (2.0 / first.amin())
    m = operator.apply(w) / scale
    s = m - 1.0
    # A positive multiple of the guess, of the size that A^T l = R w asks for.
    pull = operator.adjoint(multipliers) / scale
    l = multipliers * ((R * w).norm() / pull.norm().clamp_min(1e-300))
    best = MarginResult(w, l, float("inf"), 0)
    stalled = 0
    for iteration in range(1, MAXIMUM_ITERATIONS + 1):
        D = l / s
        gram = operator.gram(D / scale.square())
        gram.diagonal(dim1=1, dim2=2).add_(R)
        factor, info = torch.linalg.cholesky_ex(gram)
        if int(info.max()) != 0:
            break
        r_dual = operator.adjoint(l) / scale - R * w
        r_primal = m - 1.0 - s

        product = l * s
        newton = _Newton(operator, scale, factor, D, s, r_primal, r_dual)
        dl, _, ds = newton.direction(-product)
        step = torch.minimum(longest(l, dl), longest(s, ds))[:, None]
        gap = product.mean()
        sigma = (((l + step * dl) * (s + step * ds)).mean() / gap).clamp(0.0, 1.0) ** 3
        dl, dw, ds = newton.direction(sigma * gap - product - dl * ds)
        step = (STEP_TO_BOUNDARY * torch.minimum(longest(l, dl), longest(s, ds))).clamp_max(1.0)
        l, w, s = l + step * dl, w + step * dw, s + step * ds
        s = torch.maximum(s, LEAST_PRODUCT * (l * s).mean() / l)
        m = operator.apply(w) / scale
        best, stalled = _better(best, stalled, operator, w, l, m, R, scale, iteration)
        if best.gap <= tolerance or stalled >= 5 or _late(deadline):
            break
    return best


def _better(
    best: MarginResult,
    stalled: int,
    operator: Operator,
    w: Tensor,
    l: Tensor,
    m: Tensor,
    R: Tensor,
    scale: Tensor,
    iteration: int,
) -> tuple[MarginResult, int]:
    """Keep the iterate with the least relative distance between the two bounds of the margin."""
    least = float(m.amin())
    norm = float((R * w.square()).sum().sqrt())
    pull = operator.adjoint(l) / scale
    # margin^2 <= (A^T l)^T R^-1 (A^T l) / (sum l)^2 for l >= 0 with A^T l = 0 on the free entries.
    counted = R > 0
    inverse = counted / torch.where(counted, R, 1.0)
    upper = float((inverse * pull.square()).sum().sqrt() / l.sum())
    # Until then margin <= upper + |A^T l on free| |w on free| / norm: counted twice, the gap of
    # an l that is no proof yet cannot cancel against what its bound is short of.
    free = float((~counted * pull).norm() * (~counted * w).norm() / (norm * l.sum()))
    gap = 1.0 - least / norm / upper + 2.0 * free / upper if least > 0 else float("inf")
    if gap < 0.9 * best.gap:
        return MarginResult(w / least, l / l.sum(), max(gap, 0.0), iteration), 0
    return best, stalled + 1


def _late(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() > deadline
