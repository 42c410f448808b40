"""Low-rank memories W = Q R^T, trained from several starts."""

from __future__ import annotations

import math

import numpy as np
import torch

from replica.errors import InvalidInput
from validate.problems import Problem
from validate.problems.base import check_count
from validate.solvers.adam import Watch, check_training, cross_entropy
from validate.solvers.learned import Learned
from validate.solvers.newton import newton_cg
from validate.solvers.threads import threads_for

METHODS = ("adam", "newton")


def rank_of(rank_ratio: float, dim_in: int, dim_out: int) -> int:
    """The rank m = round(rank_ratio min(dim_in, dim_out)), at least 1.

    >>> rank_of(0.5, 20, 20)
    10
    """
    if not (math.isfinite(rank_ratio) and 0 < rank_ratio <= 1):
        raise InvalidInput(
            f"the rank ratio is {rank_ratio}; it must lie in (0, 1]; give such a number"
        )
    return max(1, round(rank_ratio * min(dim_in, dim_out)))


def low_rank(
    problem: Problem,
    *,
    rank: int,
    method: str = "adam",
    starts: int = 3,
    seed: int = 0,
    learning_rate: float = 0.02,
    maximum_steps: int = 3000,
    check_every: int = 25,
) -> Learned:
    """The best of several trained memories W = Q R^T, Q (dim_out, rank), R (dim_in, rank).

    Minimises the cross-entropy over (Q, R) from random starts, by full-batch Adam or by a
    trust-region Newton method (conjugate gradients on Hessian products); stops at the first start
    that recalls everything. The problem is not convex: failure proves nothing.

    Raises `InvalidInput` for a rank, method or setting out of range.

    >>> from validate.problems import make_problem
    >>> low_rank(make_problem("original", dim=8, facts=6, seed=0), rank=5).accuracy
    1.0
    """
    check_training(learning_rate, maximum_steps, check_every)
    check_count("starts", starts, 1)
    check_count("rank", rank, 1)
    if rank > min(problem.dim_in, problem.dim_out):
        raise InvalidInput(
            f"the rank is {rank}; a {problem.dim_out} x {problem.dim_in} memory has rank at most "
            f"{min(problem.dim_in, problem.dim_out)}; give such a number"
        )
    if method not in METHODS:
        raise InvalidInput(
            f"the method is {method!r}; it must be one of {', '.join(METHODS)}; choose one"
        )
    best: Learned | None = None
    with threads_for(problem.parameters):
        for start in range(starts):
            factors = _start(problem, rank, seed, start)
            if method == "adam":
                found = _adam(problem, factors, learning_rate, maximum_steps, check_every)
            else:
                found = _newton(problem, factors)
            if best is None or found.accuracy > best.accuracy:
                best = found
            if best.accuracy == 1.0:
                break
    assert best is not None
    return best


def _start(problem: Problem, rank: int, seed: int, start: int) -> tuple[torch.Tensor, torch.Tensor]:
    stream = np.random.default_rng(np.random.SeedSequence((seed, start, rank)))
    scale = rank**-0.25
    Q = torch.from_numpy(stream.standard_normal((problem.dim_out, rank)) * scale)
    R = torch.from_numpy(stream.standard_normal((problem.dim_in, rank)) * scale)
    return Q.to(problem.device), R.to(problem.device)


def _adam(
    problem: Problem,
    factors: tuple[torch.Tensor, torch.Tensor],
    learning_rate: float,
    maximum_steps: int,
    check_every: int,
) -> Learned:
    Q, R = (x.clone().requires_grad_() for x in factors)
    scale = problem.parameters**-0.5
    optimiser = torch.optim.Adam([Q, R], lr=learning_rate)
    watch = Watch(stop_when_perfect=True)
    reason = ""
    for step in range(maximum_steps + 1):
        scores = problem.scores(Q @ R.T * scale)
        loss = cross_entropy(scores)
        if step % check_every == 0 or step == maximum_steps:
            reason = watch.record(step, loss, scores)
            if reason or step == maximum_steps:
                break
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    reason = reason or f"the limit of {maximum_steps} steps was reached"
    return _learned(problem, Q.detach() * scale, R.detach(), watch, reason)


def _newton(problem: Problem, factors: tuple[torch.Tensor, torch.Tensor]) -> Learned:
    Q, R = factors
    scale = problem.parameters**-0.5
    watch = Watch(stop_when_perfect=True)

    def unpack(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x[: Q.numel()].view_as(Q), x[Q.numel() :].view_as(R)

    def scores(x: torch.Tensor) -> torch.Tensor:
        left, right = unpack(x)
        return problem.scores(left @ right.T * scale)

    def record(step: int, x: torch.Tensor, loss: torch.Tensor) -> str:
        return watch.record(step, loss, scores(x))

    x, reason = newton_cg(
        lambda x: cross_entropy(scores(x)), torch.cat([Q.flatten(), R.flatten()]), record
    )
    left, right = unpack(x)
    return _learned(problem, left * scale, right, watch, reason)


def _learned(
    problem: Problem, Q: torch.Tensor, R: torch.Tensor, watch: Watch, reason: str
) -> Learned:
    W = Q @ R.T
    return Learned(W, problem.accuracy(W), watch.history, reason, (Q, R))
