"""Laws of the trained scores: target, best competitor, gap; moments and quantiles with errors."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from numerics.trained.catalogue import loss_by_name
from numerics.trained.fixed_point import solve
from numerics.trained.losses.base import Array, Loss
from numerics.trained.population import REPLICATES, Population, draw_population
from numerics.trained.predict import check_point
from numerics.trained.prediction import Predicted
from numerics.trained.solution import (
    MOST_NUMBERS,
    NO_MEMORY,
    Solution,
    Tick,
    propagated,
    solve_point,
)
from replica.errors import InvalidInput

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
NAMES = ("target", "best", "gap")
_LEAST_FACTS = 256  # a replicate, for quantiles
_CHUNK = 1 << 14


@dataclass(frozen=True)
class ScoreLaw:
    """One law: `mean`, `std`, `quantiles` at `levels`, each with its standard error.

    `samples` (n,) is a population of the law, for histograms.
    """

    mean: Predicted
    std: Predicted
    levels: tuple[float, ...]
    quantiles: tuple[Predicted, ...]
    samples: Array

    def histogram(self, edges: Array) -> Array:
        """Fraction of the law in each bin, (len(edges) - 1,)."""
        counts, _ = np.histogram(self.samples, bins=edges)
        return np.asarray(counts / len(self.samples))

    def to_json(self) -> dict[str, Any]:
        """`mean`, `std` and `quantiles` (level: value and stderr), without the samples."""
        return {
            "mean": self.mean.to_json(),
            "std": self.std.to_json(),
            "quantiles": {
                str(level): value.to_json()
                for level, value in zip(self.levels, self.quantiles, strict=True)
            },
        }


@dataclass(frozen=True)
class ScoreLaws:
    """Laws of the trained scores x of a fact: `target` x_0, `best` max_rho x_rho, `gap` x_0 - best.

    In units of the examples: an untrained direction of unit norm has scores N(0, 1).
    """

    target: ScoreLaw
    best: ScoreLaw
    gap: ScoreLaw


def score_laws(
    parameters: int,
    facts: int,
    competitors: int,
    ridge: float,
    loss: str = "cross_entropy",
    accuracy: float = 0.003,
    seed: int = 0,
    *,
    fraction: float | None = None,
    levels: tuple[float, ...] = LEVELS,
    tick: Tick | None = None,
) -> ScoreLaws:
    """The laws of x = prox_{V l}(sqrt(Q) z) at the fixed point; arguments as for `predict`.

    `levels`: probabilities in (0, 1) of the quantiles. Raises `InvalidInput`.

    >>> laws = score_laws(256, 100, 99, 0.1, accuracy=0.02)
    >>> mean = laws.target.mean.value - laws.best.mean.value
    >>> abs(laws.gap.mean.value - mean) < 1e-9
    True
    """
    for level in levels:
        if not 0.0 < level < 1.0:
            raise InvalidInput(
                f"the level {level} of a quantile is not a probability strictly between 0 and 1; "
                "give for example 0.5"
            )
    kind = loss_by_name(loss, fraction)
    check_point(kind, parameters, facts, competitors, ridge, accuracy, seed)
    gamma = facts / parameters
    solution = solve_point(kind, gamma, competitors, ridge, accuracy, seed, tick=tick)
    if solution.method == NO_MEMORY:
        raise InvalidInput(
            f"at {gamma:.6g} facts per parameter {NO_MEMORY}; the scores have no laws; give fewer "
            "facts"
        )
    return laws_at(solution, kind, competitors, accuracy, seed, levels)


def laws_at(
    solution: Solution,
    loss: Loss,
    competitors: int,
    accuracy: float = 0.003,
    seed: int = 0,
    levels: tuple[float, ...] = LEVELS,
) -> ScoreLaws:
    """The laws at a fixed point already solved, on at least 0.25/accuracy^2 facts."""
    equations = solution.equations
    ensemble = None if equations is None else equations.ensemble
    most = max(_LEAST_FACTS, MOST_NUMBERS // (8 * REPLICATES * (competitors + 1)))
    wanted = min(max(0.25 / accuracy**2 / REPLICATES, _LEAST_FACTS), most)
    if isinstance(ensemble, Population) and ensemble.size >= REPLICATES * wanted:
        population = ensemble
    else:
        population = draw_population(competitors, 1 << math.ceil(math.log2(wanted)), seed)
        if equations is not None and isinstance(ensemble, Population):
            # too few facts for quantiles: solved again on more, so that the root's error is theirs
            equations = replace(equations, ensemble=population)
            solution = replace(
                solution, equations=equations, state=solve(equations, solution.state)
            )

    def observables(fields: Population, point: Array) -> Array:
        table = _scores(fields, loss, point)  # (3, R, n)
        columns = []
        for law in table:
            columns += [law.mean(axis=1), law.std(axis=1), *np.quantile(law, levels, axis=1)]
        return np.stack(columns, axis=1)

    values = propagated(solution, observables, population)
    samples = _scores(population, loss, solution.state.point)
    width = 2 + len(levels)
    laws = []
    for index in range(len(NAMES)):
        mean, std, *quantiles = values[index * width : (index + 1) * width]
        laws.append(ScoreLaw(mean, std, tuple(levels), tuple(quantiles), samples[index].ravel()))
    return ScoreLaws(*laws)


def _scores(population: Population, loss: Loss, point: Array) -> Array:
    """(3, R, n): target, best competitor and gap of every fact."""
    q, v = (float(x) for x in np.exp(point))
    replicates, facts, width = population.fields.shape
    rows = population.fields.reshape(-1, width)
    table = np.empty((3, len(rows)))
    chunk = max(1, _CHUNK // width)
    for start in range(0, len(rows), chunk):
        part = slice(start, start + chunk)
        omega = np.sqrt(q) * rows[part]
        scores = loss.proximal(omega, v).scores(omega)
        table[0, part] = scores[:, 0]
        table[1, part] = np.max(scores[:, 1:], axis=1)
    table[2] = table[0] - table[1]
    return table.reshape(3, replicates, facts)
