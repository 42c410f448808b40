"""Units of a report: kept one by one, never repeated, invalid as soon as their sources change."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from replica.errors import InvalidInput
from validate.checks import unit_code, unit_pool
from validate.checks.unit_code import closure, code_of_task
from validate.checks.unit_pool import measure
from validate.checks.units import Unit, run_units
from validate.store import Store, key_of
from validate.sweep.pool import Status

ROOT = Path(__file__).parents[2]
INTERVAL = "validate.checks.statistics:clopper_pearson"


def interval(successes: int, work: float = 1.0) -> Unit:
    return Unit(INTERVAL, {"successes": successes, "trials": 9}, work)


def test_answers_are_in_order_whatever_the_workers_and_the_store(tmp_path: Path) -> None:
    units = [interval(k, work=float(k % 4)) for k in (3, 1, 9, 3, 0)]
    direct = [unit.run() for unit in units]
    told: list[float] = []
    assert run_units(units, progress=told.append) == direct
    assert sum(told) == 3 + 1 + 1 + 0  # equal units run once
    with Store.open(tmp_path / "a.sqlite") as store:
        assert run_units(units, workers=2, store=store) == direct
        first = store.run_counts()
        seen: list[Status] = []
        again = measure(units, store=store, progress=seen.append)
        assert again.answers == direct
        assert again.resumed == [True] * 5
        assert store.run_counts() == first
        assert [(s.total, s.resumed, s.finished) for s in seen] == [(4, 4, 4)]


def test_only_what_is_new_is_computed(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.sqlite") as store:
        run_units([interval(1), interval(2)], store=store)
        found = measure([interval(2), interval(4)], store=store)
        assert found.resumed == [True, False]
        assert Counter(store.run_counts().values()) == {1: 3}


def test_bad_units_are_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for task in ("os:system", "validate.checks.statistics", "validate.checks:a b"):
        with pytest.raises(InvalidInput, match=r"validate\.module:function"):
            Unit(task)
    with pytest.raises(InvalidInput, match="workers is 0"):
        run_units([interval(1)], workers=0)
    import validate.checks.statistics as module

    monkeypatch.setattr(module, "clopper_pearson", lambda successes, trials: float("nan"))
    with pytest.raises(InvalidInput, match="no JSON"):
        interval(1).run()


def test_a_code_version_covers_what_a_task_imports_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """On a small copy of a project: each file's effect on the version is looked at one by one."""
    files = {
        "replica/__init__.py": "",
        "replica/errors.py": "x = 1",
        "validate/__init__.py": "",
        "validate/plotting.py": "import replica.far",
        "replica/far.py": "",
        "validate/checks/__init__.py": "from .deep import tools",
        "validate/checks/deep/__init__.py": "",
        "validate/checks/deep/tools.py": "",
        "validate/checks/task.py": "import numpy\nfrom validate import plotting\n"
        "def f():\n    from replica import errors\n",
        "validate/checks/other.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(unit_code, "ROOT", tmp_path)

    def version() -> str:
        for function in (code_of_task, closure, unit_code._imports):
            function.cache_clear()
        return code_of_task("validate.checks.task:f")

    try:
        start = version()
        changing = []
        for name, text in files.items():
            (tmp_path / name).write_text(text + "\n# changed\n")
            if version() != start:
                changing.append(name)
            (tmp_path / name).write_text(text)
        assert version() == start
    finally:
        monkeypatch.undo()
        version()
    assert set(files) - set(changing) == {
        "validate/plotting.py",
        "replica/far.py",
        "validate/checks/other.py",
    }


def test_the_verdicts_of_instances_depend_on_solver_and_certificates() -> None:
    modules = closure("validate.checks.ladder")
    assert {"validate.certificates", "validate.solvers.exact", "validate.problems.make"} <= modules
    assert not any(name.startswith(("validate.report", "validate.cli")) for name in modules)


def test_other_code_gives_other_keys_and_a_change_while_running_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert key_of(interval(1).config, "a") != key_of(interval(1).config, "b")
    versions = iter("ab")
    monkeypatch.setattr(unit_pool, "code_of_task", lambda task: next(versions))
    with (
        Store.open(tmp_path / "a.sqlite") as store,
        pytest.raises(InvalidInput, match="do not edit the sources"),
    ):
        run_units([interval(1)], store=store)


def test_a_sweep_in_the_store_joins_the_ladder_and_shares_the_file(tmp_path: Path) -> None:
    """Counts of the sweep are added to the report's own; both read only their rows."""
    from tests.validate.small_report import SMALL
    from validate.report.presets import EXAMPLE, Preset
    from validate.report.run import run as report
    from validate.sweep import make_plan, results_frame, run

    plan = make_plan("decoupled", dims=[5], facts=[11, 13], seeds=6, root=3)
    other = make_plan("decoupled", dims=[5], facts=[11], seeds=2, ensemble="sphere")
    preset = Preset("ladder", {"ladder": SMALL.sizes["ladder"]})
    with Store.open(tmp_path / "both.sqlite") as store:
        run(plan, store)
        run(other, store)
        joined = report(preset, workers=1, embeddings=EXAMPLE, store=store)
        frame = results_frame(store)
        assert len(frame) == 14
        assert store.count() > 14
    alone = report(preset, workers=1, embeddings=EXAMPLE)

    def counts(result: Any) -> dict[int, tuple[int, int]]:
        check = next(c for c in result.checks if c.name == "success_decoupled_d5")
        rows = check.select("simulation", problem="decoupled")
        return {r["facts"]: (r["separable"], r["instances"]) for r in rows}

    found = frame[frame["ensemble"] == "gaussian"].groupby("facts")["verdict"]
    for p, verdicts in found:
        yes, n = counts(alone).get(p, (0, 0))
        swept = (int((verdicts == "separable").sum()), len(verdicts))
        assert counts(joined)[p] == (yes + swept[0], n + swept[1])
    assert "12 further instances at 2 loads" in joined.sections[0].introduction
    assert "further instances" not in alone.sections[0].introduction


def test_only_the_first_finished_cells_of_a_stopped_sweep_count(tmp_path: Path) -> None:
    """A hard instance that is still missing must not leave the easy ones behind it in."""
    from validate.sweep import code_version, make_plan
    from validate.sweep.results import ladder_counts

    plan = make_plan("original", dims=[4], facts=[5], seeds=6)
    with Store.open(tmp_path / "a.sqlite") as store:
        for cell in plan.cells:
            if cell.index != 2:
                store.claim([key_of(cell.config, code_version())])
                store.finish(cell.config, code_version(), {"verdict": "separable"}, seconds=0.0)
        assert [point.instances for point in ladder_counts(store)] == [2]


# A report that takes its time: every unit sleeps a little, so that a kill hits it at work.
SLOW_REPORT = """
import sys, time
from pathlib import Path
from dataclasses import replace
from tests.validate.small_report import SMALL
from validate.report.presets import Preset
from validate.report.run import run
from validate.report.render import render
from validate.store import Store
store, out, facts, slow = map(str, sys.argv[1:5])
sizes = replace(SMALL.sizes["ladder"], ladder=((5, (40, 40, 40)),))
preset = Preset("small", {"ladder": sizes, "embeddings": SMALL.sizes["embeddings"]})
if slow == "slow":
    import validate.checks.unit_pool as pool
    real = pool._run
    def lazy(*arguments):
        time.sleep(0.15)
        return real(*arguments)
    pool._run = lazy
with Store.open(Path(store)) as opened:
    report = run(preset, workers=2, store=opened, embeddings=Path(facts))
Path(out).write_text(render(report, "json"))
"""


def start_report(store: Path, out: Path, facts: Path, pace: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", SLOW_REPORT, str(store), str(out), str(facts), pace],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def finished(store: Path) -> int:
    if not store.exists():
        return 0
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as db:
        count = int(db.execute("SELECT count(*) FROM results").fetchone()[0])
    db.close()
    return count


def without_times(out: Path) -> dict[str, Any]:
    import json

    data: dict[str, Any] = json.loads(out.read_text())
    for name in ("seconds", "costs", "created", "settings"):
        del data[name]
    return data


@pytest.mark.long
def test_a_killed_report_goes_on_and_ends_with_the_same_verdicts(tmp_path: Path) -> None:
    """SIGKILL at work, then the end: no unit ran twice to its end, no verdict differs."""
    from tests.validate.small_report import write_facts

    facts = write_facts(tmp_path / "facts.npz")
    store, out = tmp_path / "killed.sqlite", tmp_path / "killed.json"
    process = start_report(store, out, facts, "slow")
    give_up = time.monotonic() + 120
    while finished(store) < 8 and process.poll() is None:
        assert time.monotonic() < give_up, "the report does not get on"
        time.sleep(0.02)
    assert process.poll() is None, "the report ended before it was killed; make it slower"
    process.send_signal(signal.SIGKILL)
    process.wait()
    if process.stderr:
        process.stderr.close()
    assert not out.exists()
    before = finished(store)
    process = start_report(store, out, facts, "plain")
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors.decode()
    with Store.open(store) as opened:
        assert set(opened.run_counts().values()) == {1}
        assert opened.count() > before >= 8
    whole = tmp_path / "whole.json"
    process = start_report(tmp_path / "whole.sqlite", whole, facts, "plain")
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors.decode()
    assert without_times(out) == without_times(whole)
