"""A fast, certified search for memories of low rank: L-BFGS from several starts.

A memory found is proved: the factors are rounded to few bits, so that the product W = Q R^T is
exact in double precision and has the rank it claims, and `validate.certificates` proves its
margins. A search that finds nothing proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import optimize

from replica.errors import InvalidInput
from validate.certificates import check_separable, rows_of
from validate.problems import DecoupledProblem, Problem
from validate.problems.base import check_count
from validate.solvers.threads import threads_for

Floats = NDArray[np.float64]
BITS = 21
"""Fractional bits kept of the factors: products of two then fit in 53 bits with sums of 1024."""


@dataclass(frozen=True)
class Found:
    """`factors` (Q, R) with W = Q R^T proved to recall everything, or None; `starts` used."""

    factors: tuple[Floats, Floats] | None
    starts: int


def search(
    problem: Problem, rank: int, *, seed: tuple[int, ...], starts: int = 6, steps: int = 200
) -> Found:
    """Minimise sum_mu log(1 + sum_rho e^{-margin}) over W = Q R^T until all margins are positive.

    Arguments: `rank` m of Q (dim_out, m) and R (dim_in, m); `seed` of the Gaussian starts; at most
    `steps` L-BFGS iterations a start. Raises `InvalidInput` for a rank out of range.
    Source: Liu and Nocedal 1989.

    >>> from validate.problems import make_problem
    >>> problem = make_problem("original", dim=8, facts=6, seed=0)
    >>> search(problem, 3, seed=(0,)).factors is not None
    True
    """
    check_count("starts", starts, 1)
    check_count("rank", rank, 1)
    if rank > min(problem.dim_in, problem.dim_out):
        raise InvalidInput(
            f"the rank is {rank}; a {problem.dim_out} x {problem.dim_in} memory has rank at most "
            f"{min(problem.dim_in, problem.dim_out)}; give such a number"
        )
    with threads_for(problem.parameters):
        for start in range(starts):
            stream = np.random.default_rng(np.random.SeedSequence((*seed, rank, start)))
            shape = (problem.dim_out + problem.dim_in, rank)
            x = stream.standard_normal(shape) * rank**-0.25 * problem.parameters**-0.25
            reached = _descend(problem, x, steps)
            if reached is not None:
                proved = certified(problem, reached[: problem.dim_out], reached[problem.dim_out :])
                if proved is not None:
                    return Found(proved, start + 1)
    return Found(None, starts)


def certified(problem: Problem, Q: Floats, R: Floats) -> tuple[Floats, Floats] | None:
    """Nearby factors whose exact product is proved to recall everything, or None."""
    Q, R = (np.round(x / np.abs(x).max() * 2.0**BITS) * 2.0**-BITS for x in (Q, R))
    if Q.shape[1] > 2 ** (53 - 2 * BITS - 1):
        return None
    # Sums of at most 1024 products of two integers below 2^21, over 2^42: no rounding happens.
    proof = check_separable(rows_of(problem), Q @ R.T)
    return (Q, R) if proof.verdict == "separable" else None


def _maps(problem: Problem) -> tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]:
    """Margins of W (p, M) and their adjoint, in NumPy, which is faster here for matrix x vector."""
    if not isinstance(problem, DecoupledProblem):
        return (
            lambda W: problem.margins(torch.from_numpy(W)).numpy(),
            lambda l: problem.adjoint(torch.from_numpy(l)).numpy(),
        )
    inputs = problem.inputs.numpy()
    differences = problem.outputs.numpy()[:, None] - problem.rivals.numpy()
    return (
        lambda W: (differences @ (inputs @ W.T)[..., None])[..., 0],
        lambda l: (l[:, None] @ differences)[:, 0].T @ inputs,
    )


class _AllPositive(Exception):
    """Ends the descent at the first point with all margins clearly positive."""

    def __init__(self, x: Floats) -> None:
        super().__init__()
        self.x = x


def _descend(problem: Problem, start: Floats, steps: int) -> Floats | None:
    split = problem.dim_out
    measure, pull = _maps(problem)

    def loss(flat: Floats) -> tuple[float, Floats]:
        x = flat.reshape(start.shape)
        Q, R = x[:split], x[split:]
        margins = measure(Q @ R.T)
        if margins.min() > 1e-5 * np.abs(margins).mean():
            raise _AllPositive(x.copy())
        # log(1 + sum e^{-margin}) without overflow, and minus its derivative in the margins
        top = np.maximum(-margins.min(axis=1, keepdims=True), 0.0)
        weight = np.exp(-margins - top)
        total = weight.sum(axis=1, keepdims=True) + np.exp(-top)
        value = float((top + np.log(total)).sum())
        G = -pull(weight / total)
        return value, np.concatenate([G @ R, G.T @ Q]).reshape(-1)

    try:
        optimize.minimize(
            loss,
            start.reshape(-1),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": steps, "maxfun": 2 * steps, "maxcor": 20, "ftol": 0, "gtol": 1e-9},
        )
    except _AllPositive as reached:
        return reached.x
    return None
