"""Results of sweeps in one SQLite file: a finished cell is one committed row, or it is not there.

Tables
    results   key -> configuration, code version, result, checksum; never changed once written
    runs      one row for every cell that a process computed to its end: seconds, time, process
    claims    key -> the process that is computing it now

Everything that can differ between two runs of the same sweep (timings, who computed it) is in
`runs` and `claims`; the rows of `results` do not depend on it. The journal is SQLite's write-ahead
log with synchronous commits, so a kill or a power cut leaves whole rows only.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

from replica.errors import InvalidInput
from validate.owner import LEASE_SECONDS, Owner

APPLICATION_ID = 0x46434150  # "FCAP"
SCHEMA_VERSION = 1
MAGIC = b"SQLite format 3\x00"
BUSY_SECONDS = 60.0
SCHEMA = """
CREATE TABLE results (
    key TEXT PRIMARY KEY, config TEXT NOT NULL, code TEXT NOT NULL,
    result TEXT NOT NULL, digest TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE runs (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL, seconds REAL NOT NULL, finished REAL NOT NULL,
    host TEXT NOT NULL, pid INTEGER NOT NULL
);
CREATE TABLE claims (
    key TEXT PRIMARY KEY, host TEXT NOT NULL, pid INTEGER NOT NULL, started TEXT NOT NULL,
    token TEXT NOT NULL, expires REAL NOT NULL
) WITHOUT ROWID;
"""


def canonical(data: dict[str, Any]) -> str:
    """JSON with sorted keys and no spaces; equal data give equal text. NaN is refused.

    >>> canonical({"b": 1, "a": None})
    '{"a":null,"b":1}'
    """
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


def key_of(config: dict[str, Any], code: str) -> str:
    """SHA-256 of the whole configuration and the code version, as hexadecimal text."""
    return _sha(canonical({"config": config, "code": code}))


@dataclass(frozen=True)
class Row:
    """One finished cell."""

    key: str
    config: dict[str, Any]
    code: str
    result: dict[str, Any]


class Store:
    """An open store; close it, or use it in a `with` statement.

    `open` creates the file if there is none. A file that is not a store of this version, or is
    damaged, raises `InvalidInput` and is not touched: it is looked at without write access first.

    >>> folder = tempfile.TemporaryDirectory()
    >>> with Store.open(Path(folder.name) / "s.sqlite") as store:
    ...     config = {"dim": 3}
    ...     key = key_of(config, "v1")
    ...     store.claim([key]) == [key]
    ...     store.finish(config, "v1", {"verdict": "separable"}, seconds=0.1)
    ...     [row.result for row in store.rows()]
    True
    [{'verdict': 'separable'}]
    >>> folder.cleanup()
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self.owner = Owner.current()
        self._connection = connection
        # joblib asks for the next cell from a thread of its own.
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._heart: threading.Thread | None = None

    @classmethod
    def open(cls, path: Path | str) -> Store:
        """The store at `path`, created if there is no such file."""
        path = Path(path)
        if path.is_dir():
            raise InvalidInput(f"the store {str(path)!r} is a folder; give the name of a file")
        if path.exists() and not path.is_file():
            raise InvalidInput(
                f"the store {str(path)!r} is a device, pipe or socket; give the name of a file"
            )
        if not path.parent.is_dir():
            raise InvalidInput(
                f"the store {str(path)!r} lies in a folder that does not exist; create "
                f"{str(path.parent)!r} or give another path"
            )
        with _sentences(path):
            if not path.exists():
                _create(path)
            _inspect(path)
            if not os.access(path, os.W_OK):
                raise InvalidInput(
                    f"the store {str(path)!r} is read-only; make it writable or give another path"
                )
            connection = sqlite3.connect(
                f"file:{quote(str(path))}?mode=rw",
                uri=True,
                timeout=BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
            )
        return cls(path, connection)

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the claims back and close the file."""
        self._stop.set()
        if self._heart is not None:
            self._heart.join()
        with self._lock:
            try:
                with self._transaction() as db:
                    db.execute("DELETE FROM claims WHERE token = ?", (self.owner.token,))
            finally:
                self._connection.close()

    def finished(self, keys: Sequence[str]) -> set[str]:
        """Which of the keys have a row."""
        with self._reading() as db:
            found = {key for (key,) in db.execute("SELECT key FROM results")}
        return found.intersection(keys)

    def claim(self, keys: Sequence[str], most: int | None = None) -> list[str]:
        """Claim up to `most` of the keys, in order, that are neither finished nor being computed.

        One transaction: two processes never get the same key. Claims of processes that have died
        are taken over. The claims of this store are renewed until `close`.
        """
        taken: list[str] = []
        with self._transaction(durable=False) as db:
            for key in keys:
                if most is not None and len(taken) >= most:
                    break
                if db.execute("SELECT 1 FROM results WHERE key = ?", (key,)).fetchone():
                    continue
                held = db.execute(
                    "SELECT host, pid, started, token, expires FROM claims WHERE key = ?", (key,)
                ).fetchone()
                if held is not None and Owner(*held[:4]).alive(held[4]):
                    continue
                me = self.owner
                db.execute(
                    "INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?, ?, ?)",
                    (key, me.host, me.pid, me.started, me.token, time.time() + LEASE_SECONDS),
                )
                taken.append(key)
        if taken:
            self._start_heart()
        return taken

    def finish(
        self, config: dict[str, Any], code: str, result: dict[str, Any], *, seconds: float
    ) -> None:
        """Commit the result of one cell, its timing and the end of its claim, all or nothing.

        If another process finished the cell meanwhile (its lease had run out), its row stays;
        `InvalidInput` if that row says something else, which reproducible cells never do.
        """
        key, text = key_of(config, code), canonical(result)
        setting = canonical(config)
        me = self.owner
        with self._transaction() as db:
            before = db.execute("SELECT result FROM results WHERE key = ?", (key,)).fetchone()
            if before is not None and before[0] != text:
                raise InvalidInput(
                    f"the cell {setting} was finished twice with different results, {before[0]} "
                    f"and {text}; it depends on the machine "
                    "or on a time limit; the first one is kept"
                )
            if before is None:
                db.execute(
                    "INSERT INTO results VALUES (?, ?, ?, ?, ?)",
                    (key, setting, code, text, _digest(key, setting, code, text)),
                )
            db.execute(
                "INSERT INTO runs (key, seconds, finished, host, pid) VALUES (?, ?, ?, ?, ?)",
                (key, seconds, time.time(), me.host, me.pid),
            )
            db.execute("DELETE FROM claims WHERE key = ?", (key,))

    def count(self) -> int:
        """Number of finished cells, of all sweeps and code versions."""
        with self._reading() as db:
            return int(db.execute("SELECT count(*) FROM results").fetchone()[0])

    def rows(self, keys: Sequence[str] | None = None) -> list[Row]:
        """Finished cells: those of `keys` in that order, or all, ordered by key.

        Raises `InvalidInput` if a row does not agree with its checksum.
        """
        with self._reading() as db:
            found = db.execute("SELECT key, config, code, result, digest FROM results ORDER BY key")
            table = {row[0]: row for row in found}
        chosen = table.values() if keys is None else [table[k] for k in keys if k in table]
        result = []
        for key, config, code, text, digest in chosen:
            if _digest(key, config, code, text) != digest:
                raise InvalidInput(
                    f"the store {str(self.path)!r} is damaged: the row {key[:12]} does not agree "
                    "with its checksum; restore the file from a copy"
                )
            result.append(Row(key, json.loads(config), code, json.loads(text)))
        return result

    def run_counts(self) -> dict[str, int]:
        """How often each cell was computed to its end: 1 unless a lease ran out."""
        with self._reading() as db:
            return dict(db.execute("SELECT key, count(*) FROM runs GROUP BY key"))

    def seconds(self) -> dict[str, float]:
        """Wall time of each finished cell in its last run."""
        with self._reading() as db:
            return dict(db.execute("SELECT key, seconds FROM runs ORDER BY id"))

    def _start_heart(self) -> None:
        if self._heart is None:
            self._heart = threading.Thread(target=self._beat, name="store lease", daemon=True)
            self._heart.start()

    def _beat(self) -> None:
        while not self._stop.wait(LEASE_SECONDS / 4):
            # A missed beat is made up by the next one; three in a row cost the claims, not results.
            with suppress(InvalidInput), self._transaction() as db:
                db.execute(
                    "UPDATE claims SET expires = ? WHERE token = ?",
                    (time.time() + LEASE_SECONDS, self.owner.token),
                )

    @contextmanager
    def _transaction(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """All or nothing; `durable` waits for the disk, so that a power cut cannot undo it."""
        with self._lock, _sentences(self.path):
            db = self._connection
            db.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except BaseException:
                db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock, _sentences(self.path):
            yield self._connection


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _digest(*parts: str) -> str:
    return _sha("\n".join(parts))[:32]


@contextmanager
def _sentences(path: Path) -> Iterator[None]:
    """SQLite's complaints as one sentence."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise InvalidInput(
            f"the store {str(path)!r} cannot be used ({error}); check that the disk has room, that "
            "the folder is writable and local, and that no other program locks it"
        ) from None
    except sqlite3.DatabaseError as error:
        raise InvalidInput(_damaged(path, str(error))) from None


def _damaged(path: Path, detail: str) -> str:
    return (
        f"the store {str(path)!r} is truncated or damaged ({detail}) and was left untouched; "
        "restore it from a copy or give another path"
    )


def _foreign(path: Path, detail: str) -> str:
    return (
        f"the file {str(path)!r} is not a factcap store ({detail}) and was left untouched; give "
        "another path"
    )


def _create(path: Path) -> None:
    """Make a whole empty store under a temporary name, then link it to `path` if still free.

    So a kill leaves either no file or a whole store, and of two processes one creates it.
    """
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".new", dir=path.parent)
    os.close(descriptor)
    temporary = Path(name)
    try:
        connection = sqlite3.connect(temporary, isolation_level=None)
        try:
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(SCHEMA)
        finally:
            connection.close()
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        _place(temporary, path)
    except OSError as error:
        raise InvalidInput(
            f"the store {str(path)!r} cannot be created ({error.strerror}); give another path"
        ) from None
    finally:
        temporary.unlink(missing_ok=True)


def _place(temporary: Path, path: Path) -> None:
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass  # another process was faster; its store is as good
    except OSError:
        # File systems without hard links: a rename would overwrite, so only where nothing is.
        if not path.exists():
            temporary.rename(path)


def _inspect(path: Path) -> None:
    """Raise `InvalidInput` unless the file is a whole store of this version; writes nothing."""
    with path.open("rb") as stream:
        header = stream.read(100)
    if not header.startswith(MAGIC[: len(header)]) or not header:
        raise InvalidInput(_foreign(path, "it is no SQLite file" if header else "it is empty"))
    if len(header) < 100:
        raise InvalidInput(_damaged(path, f"it ends after {len(header)} bytes"))
    application = int.from_bytes(header[68:72], "big")
    if application != APPLICATION_ID:
        raise InvalidInput(_foreign(path, "it is another program's SQLite database"))
    version = int.from_bytes(header[60:64], "big")
    if version != SCHEMA_VERSION:
        raise InvalidInput(
            f"the store {str(path)!r} has format {version}, this version of factcap reads format "
            f"{SCHEMA_VERSION}; it was left untouched; give another path"
        )
    page = int.from_bytes(header[16:18], "big")
    promised = int.from_bytes(header[28:32], "big") * (65536 if page == 1 else page)
    if path.stat().st_size < promised and not _has_log(path):
        raise InvalidInput(_damaged(path, f"it has {path.stat().st_size} of {promised} bytes"))
    trouble = _consult(path, _first_trouble)
    if trouble:
        raise InvalidInput(_damaged(path, trouble))


def _has_log(path: Path) -> bool:
    log = Path(f"{path}-wal")
    return log.exists() and log.stat().st_size > 0


def _consult(path: Path, question: Callable[[sqlite3.Connection], str]) -> str:
    """Ask a connection that cannot write.

    Without a log the file alone is the store and is read as such, which creates no side files. If
    another process began a log meanwhile, an answer of trouble may be stale: ask again with it.
    """
    for _ in range(3):
        log = _has_log(path)
        mode = "mode=ro" if log else "immutable=1"
        connection = sqlite3.connect(
            f"file:{quote(str(path))}?{mode}", uri=True, timeout=BUSY_SECONDS
        )
        try:
            answer = question(connection)
        finally:
            connection.close()
        if not answer or log or not _has_log(path):
            return answer
    return answer


def _first_trouble(connection: sqlite3.Connection) -> str:
    try:
        (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        names = {n for (n,) in connection.execute("SELECT name FROM sqlite_master")}
    except sqlite3.DatabaseError as error:
        return str(error)
    if answer != "ok":
        return " ".join(str(answer).split())
    missing = {"results", "runs", "claims"} - names
    return f"it has no table {', '.join(sorted(missing))}" if missing else ""
