"""Populations of score fields z: the averages over omega = sqrt(Q) z of the fixed point.

Randomised quasi-Monte Carlo: the target and the top competitors of a fact are driven by a
scrambled Sobol sequence (they decide almost everything), the others are random below them. The
same fields serve every Q and V (common random numbers), independent scramblings give the error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from scipy import special
from scipy.stats import qmc

from numerics.trained.losses.base import Array, Loss

REPLICATES = 16
_TOP = 7  # competitors driven by the Sobol sequence
_CHUNK = 1 << 14  # numbers held at once: fits the cache of a core


@dataclass(frozen=True)
class Averages:
    """Means over a population, one entry a replicate (R,)."""

    squared_step: Array  # E |x - omega|^2
    trace: Array  # E tr H (I + V H)^{-1}
    loss: Array  # E l(x)
    recalled: Array  # P(x_0 > max x_rho)


class Ensemble(Protocol):
    """Anything that averages over omega ~ N(0, Q I_{M+1})."""

    @property
    def competitors(self) -> int:
        """M."""

    def averages(self, loss: Loss, norm_squared: float, order_v: float) -> Averages:
        """Means at Q = `norm_squared` and V = `order_v`."""


@dataclass
class Population:
    """`fields` (R, n, M+1): standard normal scores, target first; R independent replicates."""

    fields: Array
    _roots: dict[tuple[object, ...], Array] = field(default_factory=dict, repr=False)
    _last: dict[tuple[object, float, float], Averages] = field(default_factory=dict, repr=False)

    @property
    def competitors(self) -> int:
        """M."""
        return self.fields.shape[2] - 1

    @property
    def size(self) -> int:
        """Facts in all, R n."""
        return self.fields.shape[0] * self.fields.shape[1]

    def averages(self, loss: Loss, norm_squared: float, order_v: float) -> Averages:
        """Means over each replicate at Q = `norm_squared`, V = `order_v`."""
        key = (loss.key, norm_squared, order_v)
        if key not in self._last:
            if len(self._last) > 8:
                self._last.clear()
            self._last[key] = self._average(loss, norm_squared, order_v)
        return self._last[key]

    def _average(self, loss: Loss, norm_squared: float, order_v: float) -> Averages:
        replicates, facts, width = self.fields.shape
        rows = self.fields.reshape(-1, width)
        guess = self._roots.get(loss.key)
        roots = np.empty(len(rows))
        table = np.empty((4, len(rows)))
        scale = np.sqrt(norm_squared)
        chunk = max(1, _CHUNK // width)
        for start in range(0, len(rows), chunk):
            part = slice(start, start + chunk)
            omega = scale * rows[part]
            found = loss.proximal(omega, order_v, None if guess is None else guess[part])
            table[0, part] = found.squared_step
            table[1, part] = (
                found.trace if loss.is_smooth else found.stein_trace(omega, norm_squared, order_v)
            )
            table[2, part] = found.loss
            table[3, part] = loss.recalled(omega, found, norm_squared, order_v)
            roots[part] = found.root
        self._roots[loss.key] = roots
        return Averages(*table.reshape(4, replicates, facts).mean(axis=2))


def draw_population(
    competitors: int, facts: int, seed: int, replicates: int = REPLICATES
) -> Population:
    """`facts` facts (a power of two) in each of `replicates` independent scramblings.

    Competitors come as order statistics: log U_(1) = log(v_1)/M, and
    log U_(j+1) = log U_(j) + log(v_{j+1})/(M - j) with independent uniforms v; the rest are uniform
    below the last. Column 0 is the target, columns 1.. the competitors in descending order.

    >>> draw_population(20, 8, seed=0, replicates=2).fields.shape
    (2, 8, 21)
    """
    top = min(competitors, _TOP)
    seeds = np.random.SeedSequence((seed, competitors, 8)).spawn(replicates)
    fields = np.empty((replicates, facts, competitors + 1))
    for replicate, child in enumerate(seeds):
        rng = np.random.default_rng(child)
        sobol = qmc.Sobol(top + 1, scramble=True, **_generator(rng))
        uniform = np.clip(sobol.random(facts), 1e-16, 1.0 - 1e-16)
        block = fields[replicate]
        block[:, 0] = special.ndtri(uniform[:, 0])
        log_u = np.zeros(facts)
        for j in range(top):
            log_u += np.log(uniform[:, j + 1]) / (competitors - j)
            block[:, j + 1] = -special.ndtri(-np.expm1(log_u))
        if competitors > top:
            below = rng.random((facts, competitors - top)) * np.exp(log_u)[:, None]
            rest = special.ndtri(np.maximum(below, 1e-300))
            # in descending order: the proximal maps find the competitors that matter in front
            block[:, top + 1 :] = -np.sort(-rest, axis=1)
    return Population(fields)


def _generator(rng: np.random.Generator) -> dict[str, Any]:
    """SciPy renamed the argument `seed` to `rng` in 1.15."""
    import inspect

    known = inspect.signature(qmc.Sobol).parameters
    return {"rng" if "rng" in known else "seed": rng}
