"""The store: whole rows or none, claims that die with their process, refusal of other files."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sqlite3
import threading
from pathlib import Path

import numpy as np
import pytest

from replica.errors import InvalidInput
from tests.validate.sweep_workers import claim_forever
from validate.owner import Owner
from validate.store import MAGIC, Store, canonical, key_of

CODE = "test"


def fill(path: Path, count: int) -> list[str]:
    """A closed store with `count` rows; returns their keys."""
    keys = []
    with Store.open(path) as store:
        for k in range(count):
            config = {"cell": k, "padding": "x" * 200}
            store.finish(config, CODE, {"verdict": "separable", "k": k}, seconds=0.5)
            keys.append(key_of(config, CODE))
    return keys


def content(folder: Path) -> dict[str, bytes]:
    """All files of a folder."""
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def test_rows_survive_closing(tmp_path: Path) -> None:
    keys = fill(tmp_path / "s.sqlite", 5)
    with Store.open(tmp_path / "s.sqlite") as store:
        assert [row.result["k"] for row in store.rows(keys)] == [0, 1, 2, 3, 4]
        assert store.finished([*keys, "other"]) == set(keys)
        assert set(store.run_counts().values()) == {1}
        assert set(store.seconds().values()) == {0.5}
    assert sorted(content(tmp_path)) == ["s.sqlite"]


def test_key_depends_on_every_part() -> None:
    base = {"dim": 3, "facts": 4}
    others = [key_of({"dim": 3, "facts": 5}, CODE), key_of(base, "other"), key_of({"dim": 3}, CODE)]
    assert len({key_of(base, CODE), *others}) == 4
    assert key_of({"facts": 4, "dim": 3}, CODE) == key_of(base, CODE)


def test_canonical_refuses_nan() -> None:
    with pytest.raises(ValueError, match="JSON"):
        canonical({"x": float("nan")})


def test_two_stores_never_share_a_claim(tmp_path: Path) -> None:
    keys = [f"key {k}" for k in range(200)]
    taken: dict[int, list[str]] = {0: [], 1: []}
    barrier = threading.Barrier(2)

    def grab(who: int) -> None:
        with Store.open(tmp_path / "s.sqlite") as store:
            barrier.wait()
            while found := store.claim(keys, most=3):
                taken[who] += found
            barrier.wait()  # keep the claims until the other is done

    threads = [threading.Thread(target=grab, args=(who,)) for who in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken[0] + taken[1]) == sorted(keys)


def test_closing_gives_claims_back(tmp_path: Path) -> None:
    first = Store.open(tmp_path / "s.sqlite")
    with Store.open(tmp_path / "s.sqlite") as second:
        assert first.claim(["a", "b"]) == ["a", "b"]
        assert second.claim(["a", "b", "c"]) == ["c"]
        first.close()
        assert second.claim(["a", "b"]) == ["a", "b"]


def test_claims_of_a_killed_process_are_taken_over(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=claim_forever, args=(tmp_path / "s.sqlite", ["a"], there))
    process.start()
    assert here.recv() == ["a"]
    with Store.open(tmp_path / "s.sqlite") as store:
        assert store.claim(["a"]) == []
        process.kill()
        process.join()
        assert store.claim(["a"]) == ["a"]


def test_leases_of_other_hosts_run_out() -> None:
    stranger = Owner("another host", os.getpid(), "1", "t")
    assert stranger.alive(expires=2e10)
    assert not stranger.alive(expires=0.0)


def test_a_reused_pid_is_another_process() -> None:
    me = Owner.current()
    if not me.started:
        pytest.skip("this system does not tell when a process started")
    assert me.alive(expires=0.0)
    assert not Owner(me.host, me.pid, str(int(me.started) - 1), me.token).alive(expires=2e10)


def test_a_contradicting_result_is_refused_and_the_first_kept(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.sqlite") as store:
        store.finish({"a": 1}, CODE, {"verdict": "separable"}, seconds=0.1)
        store.finish({"a": 1}, CODE, {"verdict": "separable"}, seconds=0.2)
        with pytest.raises(InvalidInput, match="finished twice with different results"):
            store.finish({"a": 1}, CODE, {"verdict": "undecided"}, seconds=0.3)
        assert [row.result for row in store.rows()] == [{"verdict": "separable"}]
        assert list(store.run_counts().values()) == [2]


def refused(path: Path, match: str) -> None:
    """Opening `path` raises one sentence and leaves every file of its folder as it was."""
    before = content(path.parent)
    with pytest.raises(InvalidInput, match=match) as caught:
        Store.open(path)
    assert "\n" not in str(caught.value)
    assert content(path.parent) == before


@pytest.mark.parametrize(
    "bytes_",
    [b"", b"\x00" * 5000, b"dim,facts\n10,20\n", b"PAR1" * 100, MAGIC[:9] + b"?" * 200],
    ids=["empty", "zeros", "csv", "parquet", "nearly"],
)
def test_foreign_files_are_refused_untouched(tmp_path: Path, bytes_: bytes) -> None:
    (tmp_path / "s.sqlite").write_bytes(bytes_)
    refused(tmp_path / "s.sqlite", "is not a factcap store")


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_another_programs_database_is_refused_untouched(tmp_path: Path, journal: str) -> None:
    connection = sqlite3.connect(tmp_path / "s.sqlite")
    connection.execute(f"PRAGMA journal_mode = {journal}")
    connection.execute("CREATE TABLE results (key TEXT)")
    connection.commit()
    connection.close()
    refused(tmp_path / "s.sqlite", "another program's SQLite database")


def test_another_format_is_refused_untouched(tmp_path: Path) -> None:
    fill(tmp_path / "s.sqlite", 1)
    connection = sqlite3.connect(tmp_path / "s.sqlite")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    refused(tmp_path / "s.sqlite", "has format 99")


def test_a_database_without_our_tables_is_refused_untouched(tmp_path: Path) -> None:
    fill(tmp_path / "s.sqlite", 1)
    connection = sqlite3.connect(tmp_path / "s.sqlite")
    connection.execute("DROP TABLE runs")
    connection.close()
    refused(tmp_path / "s.sqlite", "has no table runs")


@pytest.mark.parametrize("share", [0.999, 0.9, 0.5, 0.1, 0.01, 0.0005])
def test_truncated_stores_are_refused_untouched(tmp_path: Path, share: float) -> None:
    path = tmp_path / "s.sqlite"
    fill(path, 80)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    refused(path, "truncated or damaged")


def test_overwritten_pages_are_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    fill(path, 80)
    whole = bytearray(path.read_bytes())
    whole[4096:] = np.random.default_rng(0).bytes(len(whole) - 4096)
    path.write_bytes(bytes(whole))
    refused(path, "truncated or damaged")


def test_a_changed_letter_of_a_result_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    fill(path, 3)
    path.write_bytes(path.read_bytes().replace(b'"k":1', b'"k":7'))
    with Store.open(path) as store, pytest.raises(InvalidInput, match="checksum"):
        store.rows()


def killed_copy(tmp_path: Path, rows: int) -> Path:
    """A store as a kill leaves it: the log has not been copied into the main file."""
    live = tmp_path / "live"
    live.mkdir()
    fill(live / "s.sqlite", rows)
    dead = tmp_path / "dead"
    dead.mkdir()
    with Store.open(live / "s.sqlite") as store:
        store.finish({"late": 1}, CODE, {"verdict": "undecided"}, seconds=0.1)
        for name in ("s.sqlite", "s.sqlite-wal"):
            shutil.copy(live / name, dead / name)
    return dead / "s.sqlite"


def test_a_store_with_a_log_left_by_a_kill_is_whole(tmp_path: Path) -> None:
    path = killed_copy(tmp_path, 80)
    assert Path(f"{path}-wal").stat().st_size > 0
    with Store.open(path) as store:
        assert len(store.rows()) == 81


def test_a_truncated_store_with_a_log_is_refused_untouched(tmp_path: Path) -> None:
    path = killed_copy(tmp_path, 80)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    before = {name: data for name, data in content(path.parent).items() if "shm" not in name}
    with pytest.raises(InvalidInput, match="truncated or damaged"):
        Store.open(path)
    after = {name: data for name, data in content(path.parent).items() if "shm" not in name}
    assert after == before


def test_a_torn_last_commit_is_not_counted(tmp_path: Path) -> None:
    path = killed_copy(tmp_path, 80)
    log = Path(f"{path}-wal")
    log.write_bytes(log.read_bytes()[:-1])
    with Store.open(path) as store:
        assert len(store.rows()) == 80


def test_impossible_paths_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is a folder"):
        Store.open(tmp_path)
    with pytest.raises(InvalidInput, match="folder that does not exist"):
        Store.open(tmp_path / "no" / "s.sqlite")


def test_a_name_with_odd_letters_works(tmp_path: Path) -> None:
    path = tmp_path / "a b%20?#ü.sqlite"
    fill(path, 2)
    with Store.open(path) as store:
        assert len(store.rows()) == 2
    assert sorted(content(tmp_path)) == [path.name]


def test_a_pipe_is_no_store(tmp_path: Path) -> None:
    # Opening a pipe to look at it would wait for ever.
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidInput, match="pipe"):
        Store.open(tmp_path / "pipe")
