"""Units of work of a report: small, seeded, independent of each other, with plain JSON answers.

A unit names a function by its import path and its arguments as JSON; that pair says everything
about the answer, so it can run in any process, in any order, and be kept in a store.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from replica.errors import InvalidInput


@dataclass(frozen=True)
class Unit:
    """`task(**arguments)`, with `task` written "package.module:function" inside `validate`.

    `arguments` and the answer are JSON data (lists, not tuples; seeds included); `work` is a rough
    number of seconds, for progress only.

    >>> Unit("validate.checks.statistics:clopper_pearson", {"successes": 3, "trials": 4}).run()
    [0.1941204..., 0.9936905...]
    """

    task: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    work: float = 1.0

    def __post_init__(self) -> None:
        module, _, function = self.task.partition(":")
        if not module.startswith("validate.") or not function.isidentifier():
            raise InvalidInput(
                f"the task of a unit is {self.task!r}; it must read 'validate.module:function'; "
                "name a function of that package"
            )

    def run(self) -> Any:
        """The answer, as JSON data (what a store would give back)."""
        module, _, function = self.task.partition(":")
        answer = getattr(import_module(module), function)(**self.arguments)
        return json.loads(json.dumps(answer))


def run_units(
    units: Sequence[Unit],
    *,
    workers: int = 1,
    progress: Callable[[float], None] | None = None,
) -> list[Any]:
    """The answers of all units, in their order, whatever the number of worker processes.

    `progress(work)` is told of every finished unit. The longest units start first, so that no
    worker idles at the end.
    """
    import joblib

    order = sorted(range(len(units)), key=lambda i: -units[i].work)
    run = joblib.Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)
    answers: list[Any] = [None] * len(units)
    for number, answer in run(
        joblib.delayed(_numbered)(number, units[number], workers > 1) for number in order
    ):
        answers[number] = answer
        if progress is not None:
            progress(units[number].work)
    return answers


def _numbered(number: int, unit: Unit, one_thread: bool) -> tuple[int, Any]:
    if one_thread:
        import torch

        torch.set_num_threads(1)
    return number, unit.run()
