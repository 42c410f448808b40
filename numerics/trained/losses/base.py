"""What a loss supplies: its proximal map, with the trace of the response and the loss there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Proximal:
    """x = prox_{V l}(omega), row by row; n rows, M + 1 scores, the target first.

    `step` (n, M+1) is omega - x = V grad l(x), without cancellation; `trace` (n,) is
    tr H (I + V H)^{-1} = tr d(omega - x)/d omega / V; `loss` (n,) is l(x); `root` (n,) is the
    scalar unknown of the row, which starts the next solution at neighbouring parameters.
    """

    step: Array
    trace: Array
    loss: Array
    root: Array

    @property
    def squared_step(self) -> Array:
        """|x - omega|^2, (n,)."""
        return np.einsum("ij,ij->i", self.step, self.step)

    def scores(self, omega: Array) -> Array:
        """x, (n, M+1)."""
        return omega - self.step

    def stein_trace(self, omega: Array, norm_squared: float, order_v: float) -> Array:
        """omega . (omega - x)/(Q V), (n,): by Stein's lemma the same mean as `trace`.

        It is continuous in Q and V for every omega, also where H jumps (piecewise losses).
        """
        return np.einsum("ij,ij->i", omega, self.step) / (norm_squared * order_v)


class Loss(ABC):
    """A convex loss of the M + 1 scores of one fact (target first), symmetric in the competitors.

    A subclass defines `proximal`; fixed point, predictions and laws follow.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    #: Whether the Hessian is continuous; otherwise averages use Stein's form of the trace.
    is_smooth: ClassVar[bool] = True
    #: The recall probability wanted is relative to at least this.
    recall_scale: ClassVar[float] = 0.05

    @property
    def key(self) -> tuple[object, ...]:
        """What tells the loss from others: name and parameters."""
        return (self.name,)

    @abstractmethod
    def proximal(self, omega: Array, order_v: float, guess: Array | None = None) -> Proximal:
        """prox_{V l} of every row of `omega` (n, M+1) at V = `order_v` > 0.

        `guess` (n,), if given, is the `root` of a solution nearby.
        """

    def check_competitors(self, competitors: int) -> None:
        """Raise `InvalidInput` if the loss is not defined for so many competitors."""
        return None

    def recall(self, competitors: int, norm_squared: float, order_v: float) -> float | None:
        """P(x_0 > max x_rho) where a formula in Q and V is known, else None."""
        return None

    def threshold(self, rivals: Array, order_v: float) -> Array | None:
        """The omega_0 above which the target wins, given the competitors' omega (n, M), or None."""
        return None

    def recalled(self, omega: Array, found: Proximal, norm_squared: float, order_v: float) -> Array:
        """(n,): P(x_0 > max x_rho), given the competitors where `threshold` is known."""
        least = self.threshold(omega[:, 1:], order_v)
        if least is not None:
            return np.asarray(special.ndtr(-least / np.sqrt(norm_squared)))
        scores = found.scores(omega)
        return np.asarray(scores[:, 0] > np.max(scores[:, 1:], axis=1), dtype=np.float64)

    def breakpoints(self, order_v: float) -> tuple[float, ...]:
        """For M = 1: values of omega_0 - omega_1 around which the proximal map is not smooth."""
        return ()
