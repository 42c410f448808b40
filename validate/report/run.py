"""Runs every part of a report and settles the verdicts."""

from __future__ import annotations

import pickle
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import import_module
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from numerics import cone
from validate.checks.base import settle
from validate.checks.parallel import available_cores
from validate.checks.theory_curve import TheoryCurve, known, leading_order_facts, remember
from validate.checks.unit_pool import measure, processes
from validate.report.catalogue import Context, curves_needed, part, prepared
from validate.report.environment import versions
from validate.report.model import Cost, Report, Section
from validate.report.presets import Preset, check_run
from validate.report.progress import Reporter, Stopwatch
from validate.report.words import grouped, settings_of
from validate.store import Store
from validate.sweep.cell import threads

TITLE = "How many facts can a linear associative memory recall?"


def run(
    preset: Preset,
    *,
    seed: int = 0,
    workers: int | None = None,
    embeddings: Path | None = None,
    store: Store | None = None,
    reporter: Reporter | None = None,
) -> Report:
    """Run the report's experiments; every verdict is settled at the preset's false-alarm rate.

    Arguments: `preset`, root `seed` (a nonnegative integer), `workers` (processes; all available
    cores by default), `embeddings` (a file for `fit`; by default the shipped example), `store`
    (finished units are read from it and new ones kept in it; exact verdicts of a sweep in it join
    the ladder), `reporter` for progress. Verdicts depend on the seed and the store's sweep alone.
    """
    data = check_run(seed, workers, embeddings).resolve()
    count = available_cores() if workers is None else workers
    watch = reporter if reporter is not None else Stopwatch()
    context = Context(data, store)
    watch.begin("planning")
    share_curves(
        [d for name, given in preset.sizes.items() for d in curves_needed(name, given)], count
    )
    sizes = {name: prepared(name, given, context) for name, given in preset.sizes.items()}
    units = {name: part(name).units(given, seed) for name, given in sizes.items()}
    watch.begin("measuring")
    measured = measure(
        [unit for group in units.values() for unit in group],
        workers=count,
        store=store,
        progress=watch.show,
    )
    watch.begin("theory, tests and figures")
    starts = [0, *accumulate(len(group) for group in units.values())]
    own = {name: slice(*ends) for name, ends in zip(units, pairwise(starts), strict=True)}
    built = in_parallel(
        [(name, sizes[name], seed, measured.answers[own[name]]) for name in units], count
    )
    sections, costs = [], []
    for name, (section, seconds) in zip(units, built, strict=True):
        section.settings = settings_of(sizes[name])
        sections.append(section)
        costs.append(
            Cost(
                section=section.title,
                units=len(units[name]),
                kept=sum(measured.resumed[own[name]]),
                unit_seconds=sum(measured.seconds[own[name]]),
                build_seconds=seconds,
            )
        )
    watch.begin("verdicts")
    settle([check for section in sections for check in section.checks], preset.false_alarm_rate)
    return Report(
        title=TITLE,
        answer=answer(),
        false_alarm_rate=preset.false_alarm_rate,
        sections=sections,
        settings={
            "preset": preset.name,
            "seed": seed,
            "worker processes": count,
            "embeddings": data.name,
            "store": "none" if store is None else store.path.name,
            "report-wide false-alarm rate": preset.false_alarm_rate,
        },
        versions=versions(),
        costs=costs,
        seconds=watch.finish(),
        created=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )


def share_curves(dims: Sequence[int], workers: int) -> None:
    """Compute the exact success curves of `dims` side by side; this process then has them."""
    import joblib

    wanted = sorted(set(dims) - set(known()), reverse=True)
    if workers == 1 or len(wanted) < 2:
        return
    with processes(workers):
        found = joblib.Parallel(batch_size=1)(joblib.delayed(curve_at)(dim) for dim in wanted)
    remember(dict(zip(wanted, found, strict=True)))


def curve_at(dim: int) -> TheoryCurve:
    """The exact curve, from a worker.

    A function of this module, so that a worker imports torch now: joblib ends workers that grow by
    300 MB after their first task.
    """
    return TheoryCurve.at(dim)


Job = tuple[str, Any, int, list[Any]]


def in_parallel(jobs: Sequence[Job], workers: int) -> list[tuple[Section, float]]:
    """The sections of all jobs (part, sizes, seed, answers), each with its processor seconds.

    Checks hold functions, and not every function can travel between processes (one with a cache
    cannot): a section that does not travel is built here.
    """
    import joblib

    if workers == 1:
        return [build(*job) for job in jobs]
    with processes(workers):
        pool = joblib.Parallel(batch_size=1)
        found = pool(joblib.delayed(_packed)(job, known()) for job in jobs)
    return [
        build(*job) if pack is None else pickle.loads(pack)
        for job, pack in zip(jobs, found, strict=True)
    ]


def build(name: str, sizes: Any, seed: int, answers: list[Any]) -> tuple[Section, float]:
    """One section, and the processor seconds it took."""
    start = time.process_time()
    with threads(1):
        section = part(name).build(sizes, seed, answers)
    return section, time.process_time() - start


def _packed(job: Job, curves: dict[int, TheoryCurve]) -> bytes | None:
    """`build` as bytes, with the `curves` known already; None if the section cannot travel."""
    remember(curves)
    try:  # joblib brings it along: as a dependency since 1.6, inside itself before
        cloudpickle = import_module("cloudpickle")
    except ImportError:
        cloudpickle = import_module("joblib.externals.cloudpickle")
    built = build(*job)
    try:
        packed: bytes = cloudpickle.dumps(built)
    except (AttributeError, TypeError, pickle.PicklingError):
        return None
    return packed


def answer(dim: int = 512) -> str:
    """The headline: the exact threshold at one size in use, beside the limit value."""
    facts, leading = int(cone.critical_facts(dim)), round(leading_order_facts(dim))
    return (
        f"A {dim} × {dim} linear memory recalls up to about {grouped(facts)} random facts: there "
        "the chance that some memory recalls all of them passes one half (exact for Gaussian "
        f"scores). The celebrated limit α_c = 1/2 would say {grouped(leading)}; at sizes in use "
        f"the exact law says {facts / leading:.2f} times that. This report derives the law, prints "
        "certified thresholds, and tests the law on instances whose verdicts are proved one by "
        "one, at the sizes that each section names."
    )
