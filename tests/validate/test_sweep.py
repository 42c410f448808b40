"""Sweeps: same bytes for any number of jobs, after any number of kills, from several processes."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numerics.cone import critical_facts
from replica.errors import InvalidInput
from tests.validate.sweep_workers import plan_of, sweep_process
from validate.checks.statistics import clopper_pearson
from validate.store import Store, key_of
from validate.sweep import (
    Plan,
    Status,
    code_version,
    export,
    make_plan,
    parse_counts,
    parse_loads,
    results_frame,
    run,
)
from validate.sweep import cell as cell_module
from validate.sweep.cell import Cell, compute
from validate.sweep.plan import facts_of_load
from validate.sweep.summary import summary

MIXED: dict[str, Any] = dict(
    problem="original", dims=[4, 5], facts=[6, 9], method="exact", seeds=4, root=3
)
EASY_LOW_RANK: dict[str, Any] = dict(
    problem="decoupled", dims=[5], facts=[2, 3], method="adam", rank_ratio=0.6, seeds=2, root=5
)
MANY: dict[str, Any] = dict(
    problem="decoupled", dims=[4], facts=[5, 6, 7], method="hebbian", seeds=100, root=1
)


@pytest.fixture(scope="module")
def context() -> Any:
    """Processes that fork from a server which has imported everything but started no thread."""
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(["validate.sweep", "validate.simulate", "torch", "sqlite3"])
    return found


def exported(path: Path, plan: Plan, suffix: str = ".csv") -> bytes:
    with Store.open(path) as store:
        return export(results_frame(store, plan), Path(f"x{suffix}"))


def fresh(path: Path, plan: Plan, **options: Any) -> bytes:
    """Exported bytes of an uninterrupted run."""
    with Store.open(path) as store:
        run(plan, store, **options)
    return exported(path, plan)


# --- the plan ------------------------------------------------------------------------------------


@given(load=st.fractions(Fraction(1, 100), 4), scale=st.integers(4, 10**6))
def test_facts_of_a_load_are_the_nearest(load: Fraction, scale: int) -> None:
    p = facts_of_load(load, "plogp", scale)

    def distance(q: int) -> float:
        return abs(q * math.log(q) - float(load) * scale)

    assert p >= 2
    assert distance(p) <= distance(p + 1) * (1 + 1e-12)
    assert p == 2 or distance(p) <= distance(p - 1) * (1 + 1e-12)
    ratio = facts_of_load(load, "ratio", scale)
    assert ratio == 2 or abs(ratio - load * scale) <= Fraction(1, 2)


def test_loads_in_units_of_the_threshold() -> None:
    plan = make_plan("gaussian", dims=[10], loads=[1], seeds=1, load_unit="critical")
    assert plan.sizes == [(10, critical_facts(10))]


def test_ranges_include_their_end_exactly() -> None:
    assert parse_loads("0.6:1.2:0.05")[-1] == Fraction(6, 5)
    assert len(parse_loads("0.6:1.2:0.05")) == 13
    assert parse_loads("0.5,0.6:0.8:0.1") == [Fraction(n, 10) for n in (5, 6, 7, 8)]


@pytest.mark.parametrize("text", ["", "a", "1:2", "2:1:0.1", "1:2:0", "1:2:-1", "0:1e9:1e-9"])
def test_bad_loads_are_one_sentence(text: str) -> None:
    with pytest.raises(InvalidInput, match="load") as caught:
        parse_loads(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"problem": "ising"}, "the problem is 'ising'"),
        ({"method": "magic"}, "the method is 'magic'"),
        ({"load_unit": "bits"}, "the load unit is 'bits'"),
        ({"dims": [0]}, "dim is 0"),
        ({"facts": [1]}, "facts is 1"),
        ({"facts": None}, "either the loads or"),
        ({"loads": [0.5]}, "either the loads or"),
        ({"facts": None, "loads": [-1.0]}, "the load is -1"),
        ({"facts": None, "loads": [math.nan]}, "the load is nan"),
        ({"seeds": 0}, "seeds is 0"),
        ({"seeds": 10**9}, "cells"),
        ({"root": -1}, "seed is -1"),
        ({"threads": 0}, "threads is 0"),
        ({"ensemble": "cauchy"}, "the ensemble is 'cauchy'"),
        ({"rank_ratio": 0.5}, "only adam"),
        ({"method": "adam", "rank_ratio": 2.0}, "rank ratio is 2.0"),
        ({"time_limit": 0.0}, "time limit is 0.0"),
        ({"time_limit": math.inf}, "time limit is inf"),
        ({"samples": 10}, "only the method sample"),
        ({"dims": []}, "0 cells"),
    ],
)
def test_bad_plans_are_one_sentence(change: dict[str, Any], match: str) -> None:
    with pytest.raises(InvalidInput, match=match) as caught:
        make_plan(**{**MIXED, **change})
    assert "\n" not in str(caught.value)


def test_counts() -> None:
    assert parse_counts("10,20", "dims") == [10, 20]
    with pytest.raises(InvalidInput, match="dims is '1,x'"):
        parse_counts("1,x", "dims")


# --- random streams ------------------------------------------------------------------------------


def streams_of(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> set[bytes]:
    """Initial states of all random streams that computing the cell opens."""
    states: set[bytes] = set()
    original = np.random.SeedSequence

    def recording(entropy: Any) -> Any:
        sequence = original(entropy)
        states.add(sequence.generate_state(8).tobytes())
        return sequence

    with monkeypatch.context() as patch:
        patch.setattr(np.random, "SeedSequence", recording)
        compute(cell, code_version())
    return states


def test_no_two_cells_share_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """CASES 15. Every stream of the original, decoupled and sparse ensembles and of low rank."""
    settings: list[dict[str, Any]] = [
        {"problem": "gaussian"},
        {"problem": "original"},
        {"problem": "original", "ensemble": "sparse:0.5"},
        {"problem": "decoupled", "ensemble": "rademacher"},
        {"problem": "decoupled", "competitors": 3},
        {"problem": "original", "root": 4},
        {"problem": "original", "dim_out": 3},
    ]
    cells: list[Cell] = []
    for setting in settings:
        common = {**MIXED, "method": "hebbian", "seeds": 3, **setting}
        cells += make_plan(**common).cells
    cells += make_plan(**EASY_LOW_RANK).cells
    cells += make_plan(
        "decoupled", dims=[3], facts=[2], method="sample", seeds=2, root=6, samples=8
    ).cells
    seen: dict[bytes, Cell] = {}
    for cell in cells:
        mine = streams_of(cell, monkeypatch)
        assert mine
        for state in mine:
            assert state not in seen, f"{cell} and {seen[state]} share a stream"
            seen[state] = cell


def test_methods_face_the_same_instance(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = (make_plan(**{**MIXED, "method": m}).cells[0] for m in ("exact", "hebbian"))
    assert streams_of(a, monkeypatch) == streams_of(b, monkeypatch)
    low = make_plan(**EASY_LOW_RANK).cells[0]
    full = make_plan(**{**EASY_LOW_RANK, "method": "hebbian", "rank_ratio": None}).cells[0]
    assert streams_of(full, monkeypatch) < streams_of(low, monkeypatch)


def test_another_code_version_is_refused() -> None:
    with pytest.raises(InvalidInput, match="code version"):
        compute(make_plan(**MIXED).cells[0], "0123456789abcdef")


# --- results -------------------------------------------------------------------------------------


def test_results_agree_with_the_instances(tmp_path: Path) -> None:
    """The frame says what deciding each instance by hand says."""
    from validate.decide import decide
    from validate.problems import make_problem

    plan = make_plan(**MIXED)
    with Store.open(tmp_path / "s.sqlite") as store:
        run(plan, store)
        frame = results_frame(store, plan)
    assert list(zip(frame["dim"], frame["facts"], frame["index"], strict=True)) == [
        (d, p, i) for d in (4, 5) for p in (6, 9) for i in range(4)
    ]
    for cell, verdict in zip(plan.cells, frame["verdict"], strict=True):
        instance = make_problem("original", dim=cell.dim, facts=cell.facts, seed=cell.instance_seed)
        assert decide(instance).verdict == verdict
    assert np.allclose(frame["load"], frame["facts"] * np.log(frame["facts"]) / frame["dim"] ** 2)
    rows = summary(frame)
    assert [row["instances"] for row in rows] == [4] * 4
    assert sum(row["separable"] for row in rows) == (frame["verdict"] == "separable").sum()


def test_the_interval_of_a_rule_counts_its_failures(tmp_path: Path) -> None:
    plan = make_plan(**{**MIXED, "method": "hebbian", "dims": [4], "facts": [12], "seeds": 10})
    with Store.open(tmp_path / "s.sqlite") as store:
        run(plan, store)
        (row,) = summary(results_frame(store, plan))
    assert (row["separable"], row["undecided"]) == (0, 10)
    assert (row["low"], row["high"]) == clopper_pearson(0, 10)
    assert 0 < row["accuracy"] < 1


def test_exports_read_back(tmp_path: Path) -> None:
    plan = make_plan(**MIXED)
    fresh(tmp_path / "s.sqlite", plan)
    with Store.open(tmp_path / "s.sqlite") as store:
        frame = results_frame(store, plan)
        whole = results_frame(store)
    for suffix, read in ((".csv", pd.read_csv), (".parquet", pd.read_parquet)):
        file = tmp_path / f"r{suffix}"
        file.write_bytes(export(frame, file))
        again = read(file)
        pd.testing.assert_frame_equal(again, frame, check_dtype=suffix == ".parquet")
    assert len(whole) == len(frame)
    with pytest.raises(InvalidInput, match="must end in"):
        export(frame, Path("r.xlsx"))


def test_the_bytes_hold_no_time(tmp_path: Path) -> None:
    """Two runs at different times, in opposite order of cells, export the same."""
    plan = make_plan(**MIXED)
    first = fresh(tmp_path / "a.sqlite", plan)
    backwards = Plan(plan.cells[::-1])
    fresh(tmp_path / "b.sqlite", backwards)
    assert exported(tmp_path / "b.sqlite", plan) == first
    assert exported(tmp_path / "b.sqlite", plan, ".parquet") == exported(
        tmp_path / "a.sqlite", plan, ".parquet"
    )


def test_a_second_run_computes_nothing_and_a_larger_one_the_rest(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.sqlite") as store:
        assert run(make_plan(**MIXED), store).here == 16
        again = run(make_plan(**MIXED), store)
        assert (again.here, again.resumed, again.finished) == (0, 16, 16)
        more = run(make_plan(**{**MIXED, "seeds": 5}), store)
        assert (more.here, more.resumed) == (4, 16)


def test_progress_counts_up_to_the_end(tmp_path: Path) -> None:
    told: list[Status] = []
    with Store.open(tmp_path / "s.sqlite") as store:
        run(make_plan(**MIXED), store, progress=told.append)
    assert [status.finished for status in told] == list(range(17))
    assert told[0].seconds_left is None
    assert told[-1].seconds_left == 0.0
    assert all(status.rate > 0 for status in told[1:])
    assert told[8].seconds_left == pytest.approx(
        told[8].seconds * told[8].work_left / told[8].work_done
    )


def test_samples_of_the_solution_space(tmp_path: Path) -> None:
    """The method sample: overlaps between 0 and 1 where a memory exists, else nothing."""
    plan = make_plan("original", dims=[4], facts=[4, 30], method="sample", seeds=2, samples=8)
    with Store.open(tmp_path / "s.sqlite") as store:
        run(plan, store)
        frame = results_frame(store, plan)
    there = frame["facts"] == 4
    assert (frame.loc[there, "verdict"] == "separable").all()
    assert frame.loc[there, "overlap"].between(0.0, 1.0).all()
    assert (frame.loc[~there, "verdict"] == "not_separable").all()
    assert frame.loc[~there, "overlap"].isna().all()
    assert exported(tmp_path / "s.sqlite", plan) == fresh(tmp_path / "t.sqlite", plan)


def test_an_error_in_a_cell_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan(**MIXED)
    honest = cell_module._decided
    with Store.open(tmp_path / "s.sqlite") as store:

        def failing(cell: Cell) -> dict[str, Any]:
            if cell == plan.cells[5]:
                raise MemoryError
            return honest(cell)

        with monkeypatch.context() as patch:
            patch.setattr(cell_module, "_decided", failing)
            with pytest.raises(MemoryError):
                run(plan, store)
        assert len(store.rows()) == 5
    with Store.open(tmp_path / "s.sqlite") as store:
        assert run(plan, store).here == 11


# --- jobs ----------------------------------------------------------------------------------------


@contextmanager
def dask_cluster() -> Iterator[str]:
    """A real scheduler with two worker processes."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        protocol="tcp",
    ) as cluster:
        yield cluster.scheduler_address


def test_two_jobs_give_the_same_bytes(tmp_path: Path) -> None:
    plan = make_plan(**MIXED)
    with Store.open(tmp_path / "two.sqlite") as store:
        run(plan, store, jobs=2)
        assert set(store.run_counts().values()) == {1}
    assert exported(tmp_path / "two.sqlite", plan) == fresh(tmp_path / "one.sqlite", plan)


def test_a_dask_cluster_gives_the_same_bytes(tmp_path: Path) -> None:
    plan = make_plan(**MIXED)
    with dask_cluster() as address, Store.open(tmp_path / "dask.sqlite") as store:
        status = run(plan, store, dask=address)
        assert status.here == len(plan.cells)
        assert set(store.run_counts().values()) == {1}
    assert exported(tmp_path / "dask.sqlite", plan) == fresh(tmp_path / "one.sqlite", plan)


def test_an_unreachable_scheduler_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["validate.sweep.run"], "SCHEDULER_SECONDS", 0.5)
    with (
        Store.open(tmp_path / "s.sqlite") as store,
        pytest.raises(InvalidInput, match="does not answer"),
    ):
        run(make_plan(**MIXED), store, dask="tcp://127.0.0.1:9")


def test_jobs_and_dask_together_are_refused(tmp_path: Path) -> None:
    with (
        Store.open(tmp_path / "s.sqlite") as store,
        pytest.raises(InvalidInput, match="give one of the two"),
    ):
        run(make_plan(**MIXED), store, jobs=2, dask="tcp://127.0.0.1:9")


def test_a_killed_worker_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def deadly(*_: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(sys.modules["validate.sweep.run"], "_worker", deadly)
    with (
        Store.open(tmp_path / "s.sqlite") as store,
        pytest.raises(InvalidInput, match="a worker process was killed"),
    ):
        run(make_plan(**MIXED), store, jobs=2)


def test_two_processes_share_one_store(tmp_path: Path, context: Any) -> None:
    path, plan = tmp_path / "s.sqlite", plan_of(MANY)
    processes = []
    for _ in range(2):
        here, there = context.Pipe()
        process = context.Process(target=sweep_process, args=(path, MANY, 1, there))
        process.start()
        assert here.recv() == "up"
        processes.append((process, here))
    for process, _ in processes:
        process.join(60)
        assert process.exitcode == 0
    with Store.open(path) as store:
        counts = store.run_counts()
        workers = {pid for (pid,) in store._connection.execute("SELECT DISTINCT pid FROM runs")}
    assert len(counts) == len(plan.cells)
    assert set(counts.values()) == {1}
    assert len(workers) == 2
    assert exported(path, plan) == fresh(tmp_path / "alone.sqlite", plan)


def test_two_threads_share_one_store(tmp_path: Path) -> None:
    plan = plan_of({**MANY, "seeds": 20})
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with Store.open(tmp_path / "s.sqlite") as store:
                run(plan, store)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    with Store.open(tmp_path / "s.sqlite") as store:
        assert set(store.run_counts().values()) == {1}
        assert len(store.rows()) == len(plan.cells)


# --- kills ---------------------------------------------------------------------------------------


def descendants(pid: int) -> list[Any]:
    """The processes that a process has started, and theirs."""
    psutil = pytest.importorskip("psutil")
    return list(psutil.Process(pid).children(recursive=True))


def all_end(processes: list[Any], seconds: float = 30.0) -> bool:
    """Whether all these processes end soon."""
    if not processes:
        return True
    return not pytest.importorskip("psutil").wait_procs(processes, timeout=seconds)[1]


def kill_and_resume(
    path: Path, arguments: dict[str, Any], context: Any, *, kills: int, jobs: int = 1
) -> int:
    """Kill the sweep `kills` times at random moments, then let it end; checks every step.

    The moments are uniform from the start of the process to 1.5 times what it takes to finish a few
    cells, so that they fall on opening, claiming, computing and committing on any machine. Returns
    how many kills hit a sweep at work: some new rows were there, but not all.
    """
    plan = plan_of(arguments)
    code = code_version()
    keys = [key_of(cell.config, code) for cell in plan.cells]
    generator = np.random.default_rng(20)
    usual: float | None = None
    before: dict[str, dict[str, Any]] = {}
    hits = 0
    for _ in range(kills):
        here, there = context.Pipe()
        process = context.Process(target=sweep_process, args=(path, arguments, jobs, there))
        process.start()
        assert here.recv() == "up"
        up = time.monotonic()
        if usual is None:
            assert here.recv() == "at work"
            usual = time.monotonic() - up
        else:
            time.sleep(generator.uniform(0.0, 1.5 * usual))
        family = descendants(process.pid) if jobs > 1 else []
        process.kill()
        process.join()
        assert all_end(family), "workers outlive their sweep"
        if not path.exists():
            continue
        with Store.open(path) as store:
            now = {row.key: row.result for row in store.rows(keys)}
        assert before.items() <= now.items()
        hits += len(before) < len(now) < len(keys)
        before = now
    with Store.open(path) as store:
        status = run(plan, store)
        assert status.resumed == len(before)
        counts = store.run_counts()
    assert sorted(counts) == sorted(keys)
    assert set(counts.values()) == {1}
    return hits


def test_killed_ten_times_it_ends_with_the_same_bytes(tmp_path: Path, context: Any) -> None:
    hits = kill_and_resume(tmp_path / "s.sqlite", MANY, context, kills=10)
    assert hits >= 2
    plan = plan_of(MANY)
    assert exported(tmp_path / "s.sqlite", plan) == fresh(tmp_path / "alone.sqlite", plan)


@pytest.mark.long
def test_killed_a_hundred_times_it_ends_with_the_same_bytes(tmp_path: Path, context: Any) -> None:
    arguments = {**MANY, "seeds": 600}
    hits = kill_and_resume(tmp_path / "s.sqlite", arguments, context, kills=100)
    assert hits >= 20
    plan = plan_of(arguments)
    assert exported(tmp_path / "s.sqlite", plan) == fresh(tmp_path / "alone.sqlite", plan)
    assert exported(tmp_path / "s.sqlite", plan, ".parquet") == exported(
        tmp_path / "alone.sqlite", plan, ".parquet"
    )


@pytest.mark.long
def test_killed_with_two_workers_it_ends_with_the_same_bytes(tmp_path: Path, context: Any) -> None:
    """The workers of a killed sweep end too and spoil nothing."""
    arguments = {**MANY, "seeds": 300}
    hits = kill_and_resume(tmp_path / "s.sqlite", arguments, context, kills=6, jobs=2)
    assert hits >= 1
    plan = plan_of(arguments)
    assert exported(tmp_path / "s.sqlite", plan) == fresh(tmp_path / "alone.sqlite", plan)
