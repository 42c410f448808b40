"""A progress bar on standard error for commands that take a while; silent when not a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Counter:
    """Call it with (done, total) to move the bar; `say` puts words in front of it."""

    def __init__(self, move: Callable[[int, int], None], say: Callable[[str], None]) -> None:
        self._move, self.say = move, say

    def __call__(self, done: int, total: int) -> None:
        self._move(done, total)


@contextmanager
def counter(label: str, *, quiet: bool = False) -> Iterator[Counter]:
    """A bar that shows rate and time left, moved by the counter it yields."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=quiet or not console.is_terminal,
    ) as bar:
        task = bar.add_task(label, total=None)

        yield Counter(
            lambda done, total: bar.update(task, completed=done, total=total),
            lambda words: bar.update(task, description=f"{label} ({words})"),
        )
