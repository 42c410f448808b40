"""A first-order start for the interior point: accelerated descent on the log-sum-exp of margins.

    F(w) = log sum_i exp(-(A w)_i),      -grad F = A^T q,   q = softmax(-A w).

The norm of w grows along the way, so that q concentrates on the rows of small margin: the steps
aim at the maximum margin (dual acceleration, Ji, Srebro and Telgarsky 2021). A step costs two
products with A, the interior point a factorisation; the start saves half of its iterations. Nothing
is claimed here: q is a starting point, and w is kept only if it separates.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from validate.solvers.operators import Operator, Tensor

STEPS = 40
STEP = 0.1
"""Length of a step, in units of one over the mean square of the entries of A."""
LEAST_SHARE = 1e-3
"""Multipliers are kept above this share of the largest, so that no row starts at the boundary."""


@dataclass(frozen=True)
class Start:
    """Memories `weights` (B, N), their `margins` (B, n), positive `multipliers` q (B, n)."""

    weights: Tensor
    margins: Tensor
    multipliers: Tensor


def accelerated_start(
    operator: Operator, *, steps: int = STEPS, weights: Tensor | None = None
) -> Start:
    """`steps` accelerated steps for every instance of the batch, from `weights` or from zero.

    Where the objective rises the momentum is dropped, and where a step without momentum raises it
    the step is halved, so that rows far from isotropic do no harm. Ends early once all separate.
    """
    scale = operator.scale().clamp_min(1e-300)
    length = STEP * operator.size / scale.square()[:, None]
    w = torch.zeros(scale.shape[0], operator.size, dtype=scale.dtype, device=scale.device)
    if weights is not None:
        w = weights
    momentum, age = torch.zeros_like(w), torch.zeros_like(length)
    m = operator.apply(w)
    height = torch.logsumexp(-m, 1, keepdim=True)
    for _ in range(steps):
        if bool((m.amin(1) > 0).all()):
            break
        pull = operator.adjoint(torch.softmax(-m, 1))
        carried = age / (age + 1) * (momentum + pull)
        ahead = w + length * (carried + pull)
        m_ahead = operator.apply(ahead)
        height_ahead = torch.logsumexp(-m_ahead, 1, keepdim=True)
        fell = height_ahead <= height
        w, m = torch.where(fell, ahead, w), torch.where(fell, m_ahead, m)
        height = torch.where(fell, height_ahead, height)
        momentum = torch.where(fell, carried, 0.0)
        length = torch.where(~fell & (age == 0), 0.5 * length, length)
        age = torch.where(fell, age + 1, 0.0)
    q = torch.softmax(-m, 1)
    return Start(w, m, torch.maximum(q, LEAST_SHARE * q.amax(1, keepdim=True)))
