"""What a separability solver claims; `validate.certificates` decides whether it is true."""

from __future__ import annotations

from dataclasses import dataclass

import torch

SEPARABLE, NOT_SEPARABLE, UNDECIDED = "separable", "not_separable", "undecided"


@dataclass(frozen=True)
class Solution:
    """A claim about one instance.

    `verdict` is "separable" (then `weights`, dim_out x dim_in of Frobenius norm 1, has all margins
    at least `margin` > 0), "not_separable" (then `multipliers`, p x M, nonnegative with sum 1, has
    adjoint 0 up to rounding) or "undecided" (then `reason` is a sentence). `margin` is the least
    margin of the weights per unit norm, in units of the scores; NaN where there are no weights.
    Multipliers of a separable instance bound the margin of every W of unit norm by |adjoint|.
    """

    verdict: str
    weights: torch.Tensor | None
    multipliers: torch.Tensor | None
    margin: float
    iterations: int
    seconds: float
    reason: str = ""
