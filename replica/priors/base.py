"""What a weight prior supplies: its entropy as a function of the overlap, its Gaussian width."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import sympy as sp

from replica import symbols as s
from replica.derivation import Derivation


class Prior(ABC):
    """A measure on weights W normalised to ||W||^2 = N = d_in d_out.

    Primitives: `entropy(q)`, the entropic term S(q) of the free entropy per weight, and
    `width_squared`, lim (E sup_W <G, W>)^2 / N^2 over standard Gaussian G, which sets the capacity.
    Near q = 1, S(q) = tangent_fraction/2 log(1 - q) + width_squared/(2 (1 - q)) + O(1).
    """

    name: ClassVar[str]
    title: ClassVar[str]
    #: True when `entropy` holds at every q; False when it is the leading form as q -> 1.
    is_exact: ClassVar[bool]
    #: True when the set of weights, filled to a cone, is convex (then RS is exact for convex C).
    is_convex: ClassVar[bool]
    parameters: ClassVar[tuple[Any, ...]] = ()

    @property
    @abstractmethod
    def width_squared(self) -> Any:
        """Squared Gaussian width per weight, 1 for the whole sphere."""

    @property
    @abstractmethod
    def tangent_fraction(self) -> Any:
        """Dimension of the set of weights divided by N."""

    @abstractmethod
    def entropy(self, q: Any = s.q) -> Any:
        """Entropic term S(q), replica symmetric, per weight."""

    def entropy_derivative(self) -> Any:
        """S'(q), written over a common denominator."""
        return sp.factor(sp.together(self.entropy().diff(s.q)))

    @abstractmethod
    def entropy_one_step(self, q0: Any = s.q0, q1: Any = s.q1, block: Any = s.block) -> Any:
        """Entropic term with one step of replica symmetry breaking, per weight."""

    @abstractmethod
    def add_entropy_steps(self, derivation: Derivation) -> Any:
        """Append the steps that lead to `entropy(q)` and return it."""
