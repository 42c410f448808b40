"""Units of work of a report: small, seeded, independent of each other, with plain JSON answers.

A unit names a function by its import path and its arguments as JSON; that pair says everything
about the answer, so it can run in any process, in any order, and be kept in a store.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from replica.errors import InvalidInput

if TYPE_CHECKING:
    from validate.store import Store


@dataclass(frozen=True)
class Unit:
    """`task(**arguments)`, with `task` written "package.module:function" inside `validate`.

    `arguments` and the answer are JSON data (lists, not tuples; seeds included; no NaN, and no
    timings: equal units must have equal answers); `work` is a rough number of seconds, for progress
    only.

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

    @property
    def config(self) -> dict[str, Any]:
        """What identifies the unit in a store, with the code version of its task."""
        return {"task": self.task, "arguments": dict(self.arguments)}

    def run(self) -> Any:
        """The answer, as JSON data (what a store would give back)."""
        module, _, function = self.task.partition(":")
        answer = getattr(import_module(module), function)(**self.arguments)
        try:
            return json.loads(json.dumps(answer, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise InvalidInput(
                f"the unit {self.task} {dict(self.arguments)} gave an answer that is no JSON "
                f"({error}); let the task return finite numbers, texts, lists and dictionaries"
            ) from None


def run_units(
    units: Sequence[Unit],
    *,
    workers: int = 1,
    store: Store | None = None,
    progress: Callable[[float], None] | None = None,
) -> list[Any]:
    """The answers of all units, in their order, whatever the number of worker processes.

    With a `store` every answer is kept as soon as it is there, and none is computed twice.
    `progress(work)` is told of every finished unit (equal units count once);
    `unit_pool.measure` also gives times.

    >>> unit = Unit("validate.checks.statistics:clopper_pearson", {"successes": 0, "trials": 4})
    >>> answers = run_units([unit, unit])
    >>> answers[0] == answers[1] == unit.run()
    True
    """
    from validate.checks.unit_pool import measure

    done = 0.0

    def tell(status: Any) -> None:
        nonlocal done
        if progress is not None and status.work_done > done:
            progress(status.work_done - done)
            done = status.work_done

    return measure(units, workers=workers, store=store, progress=tell).answers
