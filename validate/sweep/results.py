"""Results as a pandas frame, and files of it that are the same bytes for the same results."""

from __future__ import annotations

import io
from itertools import takewhile
from pathlib import Path
from typing import Any

from replica.errors import InvalidInput
from validate.checks.ladder import LadderPoint, tally_point
from validate.store import Store, key_of
from validate.sweep.cell import Cell
from validate.sweep.code import code_version
from validate.sweep.plan import Plan

SUFFIXES = (".csv", ".parquet")
RESULT_COLUMNS = ("verdict", "accuracy")
SAMPLE_COLUMNS = (
    "overlap",
    "overlap_stderr",
    "start_overlap",
    "effective_size",
    "r_hat",
    "bounces",
)


def results_frame(store: Store, plan: Plan | None = None) -> Any:
    """Finished cells as a pandas frame, one row a cell: configuration, load, result, code version.

    With a plan: its cells of the current code version, in the plan's order. Without: all rows of
    the store, ordered by key. No timing is in it; those are in `store.seconds()`.

    >>> import tempfile
    >>> from validate.sweep import make_plan, run
    >>> plan = make_plan("original", dims=[4], facts=[5], method="hebbian", seeds=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Store.open(Path(folder) / "s.sqlite") as store:
    ...         status = run(plan, store)
    ...         frame = results_frame(store, plan)
    >>> len(frame), status.here
    (2, 2)
    """
    import pandas as pd

    keys = None
    if plan is not None:
        code = code_version()
        keys = [key_of(cell.config, code) for cell in plan.cells]
    records = []
    for row in store.rows(keys):
        if "method" not in row.config:
            continue  # a unit of a report that shares the store
        record: dict[str, Any] = {**row.config, "load": Cell(**row.config).load}
        wanted = SAMPLE_COLUMNS if row.config["method"] == "sample" else RESULT_COLUMNS[1:]
        record["verdict"] = row.result["verdict"]
        record |= {name: row.result.get(name) for name in wanted}
        record["code"] = row.code
        records.append(record)
    frame = pd.DataFrame.from_records(records)
    for name in ("rank_ratio", "time_limit", "accuracy", *SAMPLE_COLUMNS):
        if name in frame:
            frame[name] = frame[name].astype("float64")
    if "samples" in frame:
        frame["samples"] = frame["samples"].astype("Int64")
    return frame


def ladder_counts(store: Store) -> list[LadderPoint]:
    """Certified counts of exact verdicts on square memories with Gaussian embeddings, M = p - 1.

    Only the current code version counts. Of every size and root the instances 0, 1, ... up to the
    first one that is missing: a sweep that was stopped has finished its quick instances first, and
    those are not a fair sample. An instance that was decided under several settings counts once,
    with its verdict if any of them proved one.

    >>> import tempfile
    >>> from validate.sweep import make_plan, run
    >>> plan = make_plan("original", dims=[4], facts=[5], seeds=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Store.open(Path(folder) / "s.sqlite") as store:
    ...         status = run(plan, store)
    ...         [(point.facts, point.instances) for point in ladder_counts(store)]
    [(5, 2)]
    """
    code = code_version()
    verdicts: dict[tuple[str, int, int], dict[int, dict[int, str]]] = {}
    for row in store.rows():
        if row.code != code or "method" not in row.config:
            continue
        cell = Cell(**row.config)
        if (
            cell.method != "exact"
            or cell.rank_ratio is not None
            or cell.dim != cell.dim_out
            or cell.competitors != cell.facts - 1
            or cell.ensemble != "gaussian"
        ):
            continue
        size = (cell.problem, cell.dim, cell.facts)
        of_root = verdicts.setdefault(size, {}).setdefault(cell.root, {})
        if of_root.get(cell.index, "undecided") == "undecided":
            of_root[cell.index] = row.result["verdict"]
    points = []
    for size, roots in sorted(verdicts.items()):
        found = [
            of_root[index]
            for of_root in roots.values()
            for index in takewhile(of_root.__contains__, range(len(of_root)))
        ]
        if found:
            points.append(tally_point(*size, found, 0.0))
    return points


def check_export(path: Path) -> None:
    """Refuse, before long work, an export file of an unknown kind."""
    if path.suffix.lower() not in SUFFIXES:
        raise InvalidInput(
            f"the export file {str(path)!r} ends in {path.suffix or 'nothing'!r}; it must end in "
            f"{' or '.join(SUFFIXES)}; give such a name"
        )


def export(frame: Any, path: Path) -> bytes:
    """The frame as the bytes of a CSV or Parquet file, by the suffix of `path`.

    Equal frames give equal bytes (Parquet: with equal versions of pandas and pyarrow). Floats are
    written with all their digits.
    """
    check_export(path)
    buffer = io.BytesIO()
    if path.suffix.lower() == ".csv":
        frame.to_csv(buffer, index=False, lineterminator="\n")
    else:
        frame.to_parquet(buffer, index=False, engine="pyarrow")
    return buffer.getvalue()
