"""Different starting points of the chains, though the solver gives one point only.

From the solver's point, go along a random line 95 % of the way to the wall, again and again. In
high dimension the nearest of many walls makes each move short, so the starts are closer together
than uniform points are (`Overlap.start_overlap` says how close): the overlap of the chains relaxes
to its value from above, and R-hat would show a chain that keeps its start in mind.
"""

from __future__ import annotations

import numpy as np
import torch

from validate.sampler.cone import Cone

Tensor = torch.Tensor
FRACTION = 0.95
FREE_LENGTH = 3.0
"""Length of a shot, in units of the point's norm, in a direction without a wall."""


def scattered_starts(
    cone: Cone, centre: Tensor, generators: list[np.random.Generator], shots: int
) -> Tensor:
    """One point of norm sqrt(N) per generator, shape (C, N), after `shots` shots from `centre`."""
    length = cone.size**0.5
    w = (centre / centre.norm() * length).expand(len(generators), -1).clone()
    u = cone.apply(w)
    for _ in range(shots):
        g = normals(generators, cone.size, w)
        v = cone.apply(g)
        # margins u + s v > 0 up to s = 1 / max(-v / u)
        steepest = (-v / u).amax(dim=1, keepdim=True)
        s = torch.where(steepest > 0, FRACTION / steepest, FREE_LENGTH).clamp(max=FREE_LENGTH)
        w, u = w + s * g, u + s * v
        scale = length / w.norm(dim=1, keepdim=True)
        w, u = w * scale, u * scale
    return w


def normals(generators: list[np.random.Generator], size: int, like: Tensor) -> Tensor:
    """A standard normal vector of R^size from each generator, shape (C, size)."""
    draws = np.stack([generator.standard_normal(size) for generator in generators])
    return torch.from_numpy(draws).to(like)
