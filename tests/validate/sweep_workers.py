"""What the sweep tests run in other processes: module-level, so that they can be sent there."""

from __future__ import annotations

from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

FEW = 5


def plan_of(arguments: dict[str, Any]) -> Any:
    """The plan of `make_plan` arguments."""
    from validate.sweep import make_plan

    return make_plan(**arguments)


def sweep_process(path: Path, arguments: dict[str, Any], jobs: int, ready: Connection) -> None:
    """Say that the process is up, run the sweep, and say when it has finished a few cells."""
    from validate.store import Store
    from validate.sweep import run

    def tell(status: Any) -> None:
        if status.here == FEW:
            ready.send("at work")

    plan = plan_of(arguments)
    ready.send("up")
    with Store.open(path) as store:
        run(plan, store, jobs=jobs, progress=tell)


def claim_forever(path: Path, keys: list[str], ready: Connection) -> None:
    """Claim keys, say which, and wait to be killed."""
    import time

    from validate.store import Store

    with Store.open(path) as store:
        ready.send(store.claim(keys))
        time.sleep(600)
