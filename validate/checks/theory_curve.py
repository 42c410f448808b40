"""The exact success curve of the Gaussian problem at one dimension, ready to be tested against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special

from replica.errors import InvalidInput

Floats = NDArray[np.float64]
_TINY = 1e-12


@dataclass(frozen=True)
class TheoryCurve:
    """P(separable) and delta on the integers `facts`, M = p - 1 competitors, p growing.

    `probability` and `delta` are the certified values rounded to doubles. Between and beyond the
    integers, Phi^{-1}(P) and log(p delta) are linear in p, which only the alternatives and the
    drawn line use; the hypothesis is evaluated at listed integers.
    """

    dim: int
    facts: NDArray[np.int64]
    probability: Floats
    delta: Floats

    def __post_init__(self) -> None:
        if self.facts.size < 2 or (np.diff(self.facts) <= 0).any():
            raise InvalidInput("a theory curve needs at least two numbers of facts, increasing")
        if (np.diff(self.probability) > 0).any():
            raise InvalidInput("the success probability must not rise with the number of facts")

    @classmethod
    def at(cls, dim: int) -> TheoryCurve:
        """Certified curve around p_c = largest p with p delta(p-1) <= d^2, from `numerics.cone`.

        Computed once a process, or not at all if it was handed over with `remember`.
        """
        if dim not in _KNOWN:
            _KNOWN[dim] = cls._computed(dim)
        return _KNOWN[dim]

    @classmethod
    def _computed(cls, dim: int, spread: float = 0.35) -> TheoryCurve:
        from numerics import cone

        centre = int(cone.critical_facts(dim))
        facts, probability, delta = [], [], []
        for p in range(max(2, round(centre * (1 - spread))), round(centre * (1 + spread)) + 2):
            value = float(cone.success_probability(dim, p, digits=15).to_float_lossy())
            if _TINY < value < 1.0 - _TINY:
                facts.append(p)
                probability.append(value)
                delta.append(float(cone.statistical_dimension(p - 1, 15).to_float_lossy()))
        return cls(dim, np.asarray(facts), np.asarray(probability), np.asarray(delta))

    def exact(self, facts: Sequence[int]) -> Floats:
        """P at listed numbers of facts; refuses any other."""
        index = np.searchsorted(self.facts, facts)
        inside = index < self.facts.size
        if not inside.all() or (self.facts[index] != np.asarray(facts)).any():
            raise InvalidInput(
                f"facts {list(facts)} are not all on the curve from {self.facts[0]} to "
                f"{self.facts[-1]}; choose load points with `loads`"
            )
        return self.probability[index]

    def loads(self, targets: Sequence[float]) -> list[int]:
        """Numbers of facts whose P comes closest to each of the `targets`, distinct, increasing."""
        picks = {int(self.facts[np.argmin(np.abs(self.probability - t))]) for t in targets}
        return sorted(picks)

    def interpolated(self, facts: ArrayLike) -> Floats:
        """P at real p, clipped to [1e-12, 1 - 1e-12]."""
        x = _extrapolate(
            np.asarray(facts, dtype=float), self.facts, special.ndtri(self.probability)
        )
        return np.clip(special.ndtr(x), _TINY, 1.0 - _TINY)

    @property
    def half(self) -> float:
        """Real p at which P = 1/2."""
        low, high = float(self.facts[0]), float(self.facts[-1])
        return float(optimize.brentq(lambda p: self.interpolated(p) - 0.5, low, high))

    @property
    def delta_at_half(self) -> float:
        """delta where P = 1/2."""
        return float(np.interp(self.half, self.facts, self.delta))

    @property
    def leading_order_half(self) -> float:
        """Where alpha_c = 1/2 would put the 50 % point: p log p = d^2 / 2."""
        return leading_order_facts(self.dim)

    def if_half(self, facts: ArrayLike) -> Floats:
        """P if alpha_c = 1/2 held at this d: the curve moved (in ratio) to that 50 % point."""
        stretch = self.half / self.leading_order_half
        return self.interpolated(np.asarray(facts, dtype=float) * stretch)

    def if_delta(self, factor: float, facts: ArrayLike) -> Floats:
        """P if every delta were `factor` times what it is: p delta = d^2 moves accordingly."""
        p = np.asarray(facts, dtype=float)
        demand = np.log(self.facts * self.delta)
        wanted = _extrapolate(p, self.facts, demand) + np.log(factor)
        return self.interpolated(_extrapolate(wanted, demand, self.facts.astype(float)))


_KNOWN: dict[int, TheoryCurve] = {}


def known() -> dict[int, TheoryCurve]:
    """The curves that this process has, by dimension, to be handed to another with `remember`."""
    return dict(_KNOWN)


def remember(curves: Mapping[int, TheoryCurve]) -> None:
    """Take over curves that another process computed.

    >>> remember({5: TheoryCurve.at(5)})
    >>> 5 in known()
    True
    """
    _KNOWN.update(curves)


def leading_order_facts(dim: int) -> float:
    """The real p >= 1 with p log p = d^2 / 2.

    >>> round(leading_order_facts(20), 1)
    50.9
    """
    if dim < 1:
        raise InvalidInput(f"dim is {dim}; it must be at least 1; give a positive dimension")
    return float(np.exp(special.lambertw(dim * dim / 2.0).real))


def _extrapolate(x: Floats, nodes: ArrayLike, values: ArrayLike) -> Floats:
    """Piecewise linear interpolation, continued linearly with the end slopes."""
    n, v = np.asarray(nodes, dtype=float), np.asarray(values, dtype=float)
    inner = np.interp(x, n, v)
    left = v[0] + (x - n[0]) * (v[1] - v[0]) / (n[1] - n[0])
    right = v[-1] + (x - n[-1]) * (v[-1] - v[-2]) / (n[-1] - n[-2])
    return np.asarray(np.where(x < n[0], left, np.where(x > n[-1], right, inner)))
