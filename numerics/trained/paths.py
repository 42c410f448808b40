"""Paths with warm starts: along the ridge and along the load."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from numerics.trained.catalogue import loss_by_name
from numerics.trained.fixed_point import State
from numerics.trained.predict import check_point
from numerics.trained.prediction import TrainedMemory
from numerics.trained.solution import solve_point


def ridge_path(
    parameters: int,
    facts: int,
    competitors: int,
    ridges: Sequence[float],
    loss: str = "cross_entropy",
    accuracy: float = 0.003,
    seed: int = 0,
    *,
    fraction: float | None = None,
) -> list[TrainedMemory]:
    """`predict` at every ridge, in the order given, each solution starting the next.

    >>> path = ridge_path(100, 150, 1, [1.0, 0.1])
    >>> path[0].norm_squared.value < path[1].norm_squared.value
    True
    """
    points = [(facts, competitors, ridge) for ridge in ridges]
    return list(_path(parameters, points, loss, accuracy, seed, fraction))


def load_path(
    parameters: int,
    facts: Sequence[int],
    ridge: float,
    competitors: int | None = None,
    loss: str = "cross_entropy",
    accuracy: float = 0.003,
    seed: int = 0,
    *,
    fraction: float | None = None,
) -> list[TrainedMemory]:
    """`predict` at every number of facts, M = `competitors` (p - 1 if None), warm starts.

    >>> path = load_path(100, [50, 150], 0.1, competitors=1)
    >>> path[0].accuracy.value > path[1].accuracy.value
    True
    """
    points = [(p, p - 1 if competitors is None else competitors, ridge) for p in facts]
    return list(_path(parameters, points, loss, accuracy, seed, fraction))


def _path(
    parameters: int,
    points: Sequence[tuple[int, int, float]],
    loss: str,
    accuracy: float,
    seed: int,
    fraction: float | None,
) -> Iterator[TrainedMemory]:
    kind = loss_by_name(loss, fraction)
    for facts, competitors, ridge in points:
        check_point(kind, parameters, facts, competitors, ridge, accuracy, seed)
    start: State | None = None
    for facts, competitors, ridge in points:
        gamma = facts / parameters
        found = solve_point(kind, gamma, competitors, ridge, accuracy, seed, start=start)
        start = found.state
        yield TrainedMemory(
            parameters,
            facts,
            competitors,
            float(ridge),
            kind.name,
            **found.found,
            residual=found.state.residual,
            facts_drawn=found.facts_drawn,
            seed=seed,
            method=found.method,
        )
