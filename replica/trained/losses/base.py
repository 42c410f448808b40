"""What a loss supplies to the theory: its formula, proximal point and response trace."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import sympy as sp

from replica import symbols as s
from replica.derivation import Derivation


class TrainedLoss(ABC):
    """A convex loss l(s_0, ..., s_M) of one fact, symmetric in the competitors s_1 ... s_M."""

    name: ClassVar[str]
    title: ClassVar[str]

    @abstractmethod
    def value(self, scores: Sequence[Any]) -> Any:
        """l at explicit scores, the target first."""

    @abstractmethod
    def add_steps(self, derivation: Derivation) -> None:
        """Append the proximal equation and the trace tr H (1 + V H)^-1 at the proximal point."""

    @property
    @abstractmethod
    def hebbian_gradient(self) -> tuple[Any, Any]:
        """(dl/ds_0, dl/ds_1) at s = 0 for symbolic M: the direction of the first training step."""

    def gradient(self, scores: Sequence[Any]) -> list[Any]:
        """dl/ds_i at explicit symbols."""
        value = self.value(scores)
        return [value.diff(score) for score in scores]

    def hessian(self, scores: Sequence[Any]) -> Any:
        """The matrix of second derivatives at explicit symbols."""
        return sp.hessian(self.value(scores), list(scores))

    def stationarity(self, scores: Sequence[Any], fields: Sequence[Any]) -> list[Any]:
        """x_i - omega_i + V dl/dx_i, which vanish at the proximal point (explicit symbols)."""
        pairs = zip(scores, fields, self.gradient(scores), strict=True)
        return [x - omega + s.V * slope for x, omega, slope in pairs]


def explicit_scores(competitors: int, name: str = "x") -> list[Any]:
    """Symbols name_0 ... name_M.

    >>> explicit_scores(2)
    [x_0, x_1, x_2]
    """
    return list(sp.symbols(f"{name}_0:{competitors + 1}", real=True))
