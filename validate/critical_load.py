"""The critical load of one instance: add facts one at a time until no memory recalls them all."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from numerics.cone import critical_facts, success_probability
from replica.errors import InvalidInput
from validate.certificates import check
from validate.decide import decide
from validate.embeddings import Ensemble
from validate.problems import Problem, make_problem
from validate.problems.base import check_count
from validate.solvers.solution import NOT_SEPARABLE, SEPARABLE, Solution

Progress = Callable[[int, str], None]


@dataclass(frozen=True)
class CriticalLoad:
    """Where one nested instance stops being separable.

    `facts`: largest p for which the first p facts are proved to be recallable; `exact`: whether
    p + 1 facts are proved not to be; `carried`: facts that the memory of fewer facts recalled
    without a new solution; `decisions`: exact solutions computed; `weights`: W for `facts` facts.
    """

    facts: int
    exact: bool
    carried: int
    decisions: int
    weights: torch.Tensor
    seconds: float


def critical_load(
    kind: str,
    *,
    dim: int,
    seed: int | tuple[int, ...],
    dim_out: int | None = None,
    competitors: int | None = None,
    ensemble: str | Ensemble = "gaussian",
    start: int | None = None,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> CriticalLoad:
    """Grow the nested instance with this seed fact by fact until recall fails, with proof.

    With M = p - 1 every new fact brings a competitor for all others. The memory found for p facts
    is tried on p + 1 first (proved by its margins); if it fails a new one is solved for, starting
    from its multipliers. `start` is where to begin (default:
    70 % of the theory's threshold, fewer if that is not separable): since removing facts keeps
    separability, the prefixes below need no work.

    Raises `InvalidInput` as `make_problem` does, and if even 2 facts (1 with given `competitors`)
    cannot be recalled.

    >>> critical_load("original", dim=3, seed=0).exact
    True
    """
    begin = time.monotonic()
    check_count("dim", dim, 1)
    least = 2 if competitors is None else 1
    threshold = critical_facts(dim, dim_out=dim_out, competitors=competitors)
    facts = (
        max(least, int(0.7 * threshold)) if start is None else check_count("start", start, least)
    )
    say = progress or (lambda _p, _verdict: None)
    room = max(facts, 2 * threshold + 4)

    def grown(size: int) -> Problem:
        return make_problem(
            kind,
            dim=dim,
            dim_out=dim_out,
            facts=size,
            competitors=competitors,
            ensemble=ensemble,
            seed=seed,
        )

    whole = grown(room)

    def prefix(size: int) -> Problem:
        nonlocal whole, room
        if size > room:
            room = 2 * size
            whole = grown(room)
        return whole.prefix(size, competitors)

    decisions = carried = 0
    while True:
        decision = decide(prefix(facts), time_limit=time_limit)
        decisions += 1
        say(facts, decision.verdict)
        if decision.verdict == SEPARABLE:
            break
        if facts == least:
            verdict = decision.verdict.replace("_", " ")
            raise InvalidInput(
                f"the {kind} instance with seed {seed} is {verdict} with only {facts} facts; a "
                "critical load needs a start that works; take a larger dim"
            )
        facts = max(least, int(0.8 * facts))
    solution = decision.solution
    weights = solution.weights
    assert weights is not None
    while True:
        larger = prefix(facts + 1)
        claim = Solution(SEPARABLE, weights, None, float("nan"), 0, 0.0)
        if larger.accuracy(weights) == 1.0 and check(larger, claim).verdict == SEPARABLE:
            carried += 1
        else:
            decision = decide(larger, time_limit=time_limit, warm=solution)
            decisions += 1
            if decision.verdict != SEPARABLE:
                say(facts + 1, decision.verdict)
                exact = decision.verdict == NOT_SEPARABLE
                spent = time.monotonic() - begin
                return CriticalLoad(facts, exact, carried, decisions, weights, spent)
            solution = decision.solution
            assert solution.weights is not None
            weights = solution.weights
        facts += 1
        say(facts, SEPARABLE)


@dataclass(frozen=True)
class Survey:
    """Critical loads of many instances of one size; `loads` in the order of their seeds."""

    problem: str
    dim: int
    dim_out: int
    competitors: int | None
    loads: list[CriticalLoad]
    theory: int
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Plain data; `curve` compares P(p_c >= p) with the exact success probability at p.

        The curve runs over every p from the least to one above the largest load found.
        """
        facts = [load.facts for load in self.loads]
        curve = []
        for p in range(min(facts), max(facts) + 2):
            count = sum(value >= p for value in facts)
            exact = success_probability(self.dim, p, self.competitors, dim_out=self.dim_out)
            curve.append(
                {
                    "facts": p,
                    "count": count,
                    "share": count / len(facts),
                    "success_probability": exact.to_float_lossy(),
                }
            )
        return {
            "problem": self.problem,
            "dim": self.dim,
            "dim_out": self.dim_out,
            "competitors": self.competitors,
            "seeds": len(facts),
            "loads": facts,
            "undecided": sum(not load.exact for load in self.loads),
            "median": statistics.median(facts),
            "theory": self.theory,
            "curve": curve,
            "seconds": self.seconds,
        }


def survey(
    kind: str,
    *,
    dim: int,
    seeds: int,
    seed: int = 0,
    dim_out: int | None = None,
    competitors: int | None = None,
    ensemble: str | Ensemble = "gaussian",
    time_limit: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    facts_tried: Progress | None = None,
) -> Survey:
    """`critical_load` of `seeds` instances; instance i has the seed (`seed`, i).

    `progress(done, seeds)` is told of finished instances, `facts_tried` of every p within one.

    >>> survey("original", dim=3, seeds=2).to_json()["seeds"]
    2
    """
    check_count("seeds", seeds, 1)
    check_count("seed", seed, 0)
    begin = time.monotonic()
    loads = []
    for index in range(seeds):
        loads.append(
            critical_load(
                kind,
                dim=dim,
                seed=(seed, index),
                dim_out=dim_out,
                competitors=competitors,
                ensemble=ensemble,
                time_limit=time_limit,
                progress=facts_tried,
            )
        )
        if progress is not None:
            progress(index + 1, seeds)
    theory = int(critical_facts(dim, dim_out=dim_out, competitors=competitors))
    spent = time.monotonic() - begin
    return Survey(kind, dim, dim_out or dim, competitors, loads, theory, spent)
