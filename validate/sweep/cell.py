"""One cell of a sweep: its configuration, its random streams, its result.

A cell is one instance and one method. Its instance has the seed
(root, facts, competitors, ensemble digest, index), to which `make_problem` adds the kind and the
dimensions; so two cells share an instance only if they differ in nothing but the method, which then
face the same instance on purpose. What a method draws itself (starts of low-rank training, chains
of the sampler) comes from a stream keyed by the whole configuration.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from replica.errors import InvalidInput
from validate.store import canonical

METHODS = ("exact", "adam", "newton", "hebbian", "pseudo_inverse", "sample")
CHAINS = 8


@dataclass(frozen=True)
class Cell:
    """Configuration of one cell; all of it, with the code version, is the key of its row.

    `threads` belongs to it because sums in floating point depend on the number of threads;
    `samples` (points per chain) is None except for the method "sample".
    """

    problem: str
    dim: int
    dim_out: int
    facts: int
    competitors: int
    method: str
    index: int
    root: int = 0
    ensemble: str = "gaussian"
    rank_ratio: float | None = None
    time_limit: float | None = None
    samples: int | None = None
    threads: int = 1

    @property
    def load(self) -> float:
        """p log p / (d_in d_out)."""
        return self.facts * math.log(self.facts) / (self.dim * self.dim_out)

    @property
    def config(self) -> dict[str, Any]:
        """Plain data of the configuration."""
        return asdict(self)

    @property
    def instance_seed(self) -> tuple[int, ...]:
        """Seed for `make_problem`."""
        return (self.root, self.facts, self.competitors, _word(self.ensemble), self.index)

    @property
    def method_seed(self) -> int:
        """Seed of what the method draws itself: 64 bits of the digest of the configuration."""
        return int(hashlib.sha256(canonical(self.config).encode()).hexdigest()[:16], 16)

    @property
    def work(self) -> float:
        """Rough cost in arbitrary units, for the time left."""
        unknowns = self.dim * self.dim_out
        rows = self.facts * self.competitors
        if self.method in ("exact", "sample"):
            return 1e5 + self.facts * unknowns**2 + unknowns**3 / 3 + rows * self.dim_out**2
        return 1e5 + rows * (self.dim_out + self.dim)


@dataclass(frozen=True)
class Outcome:
    """Result of a cell (plain data that does not depend on time or machine) and its wall time."""

    result: dict[str, Any]
    seconds: float


def compute(cell: Cell, code: str) -> Outcome:
    """Run one cell; `code` is the code version of the process that asked for it.

    The result has `verdict` (separable, not_separable or undecided: what was proved) and `accuracy`
    (share of facts that the method's memory recalls, null without a memory); the method "sample"
    gives the overlap of uniform solutions instead of an accuracy.

    Raises `InvalidInput` if this process has other code than the one that asked.
    """
    from validate.sweep.code import code_version

    here = code_version()
    if here != code:
        raise InvalidInput(
            f"a worker has code version {here} but the sweep was started with {code}; install the "
            "same factcap, NumPy, SciPy and torch everywhere"
        )
    start = time.perf_counter()
    with threads(cell.threads):
        result = _sampled(cell) if cell.method == "sample" else _decided(cell)
    return Outcome(result, time.perf_counter() - start)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Run torch with `count` threads.

    The number belongs to the process: where it is right already nothing is set or restored, so that
    cells in several threads of one Dask worker do not undo each other's.
    """
    import torch

    before = torch.get_num_threads()
    if before == count:
        yield
        return
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _instance(cell: Cell) -> Any:
    from validate.problems import make_problem

    return make_problem(
        cell.problem,
        dim=cell.dim,
        dim_out=cell.dim_out,
        facts=cell.facts,
        competitors=cell.competitors,
        ensemble=cell.ensemble,
        seed=cell.instance_seed,
    )


def _decided(cell: Cell) -> dict[str, Any]:
    from validate.simulate import run_one
    from validate.solvers.low_rank import rank_of

    rank = None if cell.rank_ratio is None else rank_of(cell.rank_ratio, cell.dim, cell.dim_out)
    outcome = run_one(
        _instance(cell),
        cell.method,
        rank=rank,
        time_limit=cell.time_limit,
        seed=cell.method_seed,
    )
    return {"verdict": outcome.verdict, "accuracy": outcome.accuracy}


def _sampled(cell: Cell) -> dict[str, Any]:
    from validate.decide import decide
    from validate.sampler import measure_overlap, sample

    instance = _instance(cell)
    decision = decide(instance, time_limit=cell.time_limit)
    if decision.verdict != "separable" or cell.samples is None:
        return {"verdict": decision.verdict}
    drawn = sample(
        instance,
        chains=CHAINS,
        samples=cell.samples,
        warmup=max(4, cell.samples // 4),
        seed=(cell.root, cell.method_seed),
        start=decision.solution.weights,
    )
    q = measure_overlap(drawn)
    return {
        "verdict": decision.verdict,
        "overlap": q.value,
        "overlap_stderr": q.stderr,
        "start_overlap": q.start_overlap,
        "effective_size": _finite(q.effective_size),
        "r_hat": _finite(q.r_hat),
        "bounces": float(drawn.bounces.mean()),
    }


def _finite(value: float) -> float | None:
    """JSON has no NaN: a diagnostic that is undefined is null."""
    return value if math.isfinite(value) else None


def _word(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)
