"""One competitor: the averages are integrals over one Gaussian, done by quadrature.

With M = 1 the proximal map changes t = omega_0 - omega_1 ~ N(0, 2 Q) alone and leaves the sum as it
is. Gauss-Legendre panels, graded towards the points at which the map bends (`Loss.breakpoints`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from numerics.trained.losses.base import Array, Loss
from numerics.trained.population import Averages

_REACH = 13.0  # standard deviations: the mass outside is below 10^-37
_FINEST = 0.25  # distance, in units of t, of the first panel from a bend


@dataclass(frozen=True)
class Line:
    """Averages for M = 1 with `nodes` Gauss-Legendre nodes a panel; one replicate."""

    nodes: int = 20

    @property
    def competitors(self) -> int:
        """M = 1."""
        return 1

    def averages(self, loss: Loss, norm_squared: float, order_v: float) -> Averages:
        """Means at Q = `norm_squared`, V = `order_v`; arrays of length 1."""
        width = np.sqrt(2.0 * norm_squared)
        z, weight = _panels(np.array(loss.breakpoints(order_v)) / width, width, self.nodes)
        omega = 0.5 * width * np.column_stack([z, -z])
        found = loss.proximal(omega, order_v)
        recalled = loss.recall(1, norm_squared, order_v)
        if recalled is None:
            edge = loss.threshold(np.zeros((1, 1)), order_v)
            if edge is None:
                raise ArithmeticError(f"the loss {loss.name} states no threshold of recall")
            recalled = float(special.ndtr(-edge[0] / width))
        means = [weight @ found.squared_step, weight @ found.trace, weight @ found.loss, recalled]
        return Averages(*(np.array([x]) for x in means))


def _panels(bends: Array, width: float, nodes: int) -> tuple[Array, Array]:
    """Nodes z and weights of the standard Gaussian measure, panels at most 1 long."""
    edges = [np.arange(-_REACH, _REACH + 0.5)]
    for bend in bends:
        if abs(bend) < _REACH:
            steps = _FINEST / width * 2.0 ** np.arange(60)
            steps = steps[steps < 1.0]
            edges.append(np.concatenate([[bend], bend + steps, bend - steps]))
    cuts = np.unique(np.clip(np.concatenate(edges), -_REACH, _REACH))
    cuts = cuts[np.concatenate([[True], np.diff(cuts) > 1e-14])]
    x, w = np.polynomial.legendre.leggauss(nodes)
    half = 0.5 * np.diff(cuts)[:, None]
    z = (0.5 * (cuts[1:] + cuts[:-1])[:, None] + half * x).ravel()
    weight = (half * w).ravel() * np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    return z, weight
