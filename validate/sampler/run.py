"""Sample the solution space of one instance with several chains."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from replica.errors import InvalidInput
from validate.problems import Problem
from validate.problems.base import check_count
from validate.sampler.cone import Cone, ExplicitCone, cone_of
from validate.sampler.diagnostics import r_hat, rank_effective_sample_size
from validate.sampler.dynamics import Motion
from validate.sampler.starts import normals, scattered_starts
from validate.solvers.exact import solve
from validate.solvers.solution import SEPARABLE
from validate.solvers.threads import threads_for

FloatArray = NDArray[np.float64]
Tensor = torch.Tensor
Progress = Callable[[int, int], None]
PROBES = 8
MOST_SHOTS = 400
_PROBE_STREAM = 2**32 - 1
"""Chains use the streams (*seed, 0), (*seed, 1), ...; this one draws the probe directions."""


@dataclass(frozen=True)
class Sample:
    """Points of the cone {A w > 0}, w ~ N(0, I) given the cone, float64.

    `points` (chains, samples, N): N = dim_out dim_in, row by row; `starts` (chains, N);
    `bounces` (chains, samples): reflections on the way to each point; `drift`: largest error of a
    margin propagated over one trajectory, |error| / (|a_i| |w|), at most 1e-9 by construction;
    `least_margin`: least a_i . w / (|a_i| |w|) over all points, recomputed from w; `seed`.
    """

    points: FloatArray = field(repr=False)
    starts: FloatArray = field(repr=False)
    bounces: NDArray[np.int64] = field(repr=False)
    margins: FloatArray = field(repr=False)
    drift: float
    seed: tuple[int, ...]

    @property
    def least_margin(self) -> float:
        """Least normalised margin over all points."""
        return float(self.margins.min())

    @property
    def directions(self) -> FloatArray:
        """w / |w|, uniform on the directions of the cone; shape (chains, samples, N)."""
        unit: FloatArray = self.points / np.linalg.norm(self.points, axis=-1, keepdims=True)
        return unit

    def functionals(self) -> dict[str, FloatArray]:
        """Scalars (chains, samples) on which convergence is judged.

        The norm, the least margin, the projection on the mean start, and on 8 random directions.
        """
        generator = np.random.default_rng(np.random.SeedSequence((*self.seed, _PROBE_STREAM)))
        probes = generator.standard_normal((PROBES, self.points.shape[-1]))
        unit = self.directions
        found = {
            "norm": np.linalg.norm(self.points, axis=-1),
            "least margin": self.margins,
            "start": unit @ self.starts.mean(axis=0),
        }
        found |= {f"probe {k}": unit @ probe for k, probe in enumerate(probes)}
        return found

    @property
    def r_hat(self) -> float:
        """Largest rank-normalised split R-hat of the functionals."""
        return max(r_hat(values) for values in self.functionals().values())

    @property
    def effective_size(self) -> float:
        """Least effective sample size of the functionals, over all chains."""
        return min(rank_effective_sample_size(values) for values in self.functionals().values())


def sample(
    problem: Problem,
    *,
    chains: int = 8,
    samples: int = 100,
    warmup: int = 20,
    seed: int | tuple[int, ...],
    duration: float = math.pi / 2,
    start: Tensor | None = None,
    progress: Progress | None = None,
) -> Sample:
    """Sample W ~ N(0, I) given that W recalls every fact: W/|W| is uniform on the solution space.

    Arguments: `chains` from starts of their own, each with `warmup` discarded and `samples` kept
    points; `seed` (root or tuple) of the streams `SeedSequence((*seed, chain))`; `duration` of a
    trajectory in (0, pi), the period being 2 pi; `start`, a W (dim_out, dim_in) that recalls every
    fact, else the exact solver finds one; `progress(done, total)` in points.

    Raises `InvalidInput` if no such W exists or `start` is none, and for sizes out of range;
    `SamplerDrift` (never seen) if rounding spoils a trajectory. Source: Pakman and Paninski (2014).

    >>> from validate.problems import make_problem
    >>> problem = make_problem("original", dim=4, facts=5, seed=0)
    >>> drawn = sample(problem, chains=2, samples=10, seed=0)
    >>> drawn.points.shape, drawn.least_margin > 0
    ((2, 10, 16), True)
    """
    if start is None:
        solution = solve(problem)
        if solution.verdict != SEPARABLE or solution.weights is None:
            raise InvalidInput(
                f"the {problem.describe()} has no memory that recalls every fact "
                f"(verdict {solution.verdict}), so there is nothing to sample; take fewer facts"
            )
        start = solution.weights
    return _run(
        cone_of(problem),
        start.to(problem.device).double().flatten(),
        chains=chains,
        samples=samples,
        warmup=warmup,
        seed=seed,
        duration=duration,
        progress=progress,
    )


def sample_rows(
    matrix: FloatArray,
    *,
    start: FloatArray,
    chains: int = 8,
    samples: int = 100,
    warmup: int = 20,
    seed: int | tuple[int, ...],
    duration: float = math.pi / 2,
    progress: Progress | None = None,
) -> Sample:
    """Sample w ~ N(0, I) given A w > 0 for an explicit matrix A (n, N) and a start inside (N,).

    Other arguments and errors as `sample`.

    >>> half = sample_rows(np.eye(2), start=np.ones(2), chains=2, samples=5, seed=0)
    >>> bool((half.points > 0).all())
    True
    """
    rows = np.asarray(matrix, dtype=np.float64)
    if rows.ndim != 2 or 0 in rows.shape or not np.isfinite(rows).all():
        raise InvalidInput(
            f"the constraint matrix has shape {rows.shape} or entries that are not finite; it must "
            "be a finite table with one row a constraint; repair it"
        )
    return _run(
        ExplicitCone(torch.from_numpy(rows)),
        torch.from_numpy(np.asarray(start, dtype=np.float64)),
        chains=chains,
        samples=samples,
        warmup=warmup,
        seed=seed,
        duration=duration,
        progress=progress,
    )


def _run(
    cone: Cone,
    start: Tensor,
    *,
    chains: int,
    samples: int,
    warmup: int,
    seed: int | tuple[int, ...],
    duration: float,
    progress: Progress | None,
) -> Sample:
    check_count("chains", chains, 1)
    check_count("samples", samples, 1)
    check_count("warmup", warmup, 0)
    root = _root(seed)
    if not 0.0 < duration < math.pi:
        raise InvalidInput(
            f"the duration of a trajectory is {duration}; it must lie between 0 and pi; give pi/2"
        )
    if start.shape != (cone.size,) or not bool((cone.apply(start[None]) > 0).all()):
        raise InvalidInput(
            f"the start of shape {tuple(start.shape)} lies not inside the cone of R^{cone.size}; "
            "all its margins must be positive; give a solution"
        )
    generators = [
        np.random.default_rng(np.random.SeedSequence((*root, chain))) for chain in range(chains)
    ]
    with threads_for(cone.size):
        starts = scattered_starts(cone, start, generators, shots=min(cone.size, MOST_SHOTS))
        collected = _collect(cone, starts, generators, warmup, samples, duration, progress)
    points, bounces, margins, drift = collected
    return Sample(points, starts.numpy(force=True), bounces, margins, drift, root)


def _collect(
    cone: Cone,
    starts: Tensor,
    generators: Sequence[np.random.Generator],
    warmup: int,
    samples: int,
    duration: float,
    progress: Progress | None,
) -> tuple[FloatArray, NDArray[np.int64], FloatArray, float]:
    chains, total = len(generators), warmup + samples
    motion = Motion(cone, starts, duration)
    points = np.empty((chains, samples, cone.size))
    bounces = np.empty((chains, samples), dtype=np.int64)
    margins = np.empty((chains, samples))
    taken = [0] * chains
    waiting = list(range(chains))
    while True:
        if waiting:
            momenta = normals([generators[c] for c in waiting], cone.size, starts)
            motion.refresh(torch.tensor(waiting, device=cone.device), momenta)
        waiting = []
        moving = sum(count < total for count in taken)
        # A new momentum costs a product with A: a quarter of the chains get theirs together.
        while len(waiting) < min(moving, max(1, chains // 4)):
            waiting += motion.step().tolist()
        least = motion.settle(torch.tensor(waiting, device=cone.device)).tolist()
        for chain, margin in zip(waiting, least, strict=True):
            slot = taken[chain] - warmup
            if slot >= 0:
                points[chain, slot] = motion.w[chain].numpy(force=True)
                bounces[chain, slot] = int(motion.bounces[chain])
                margins[chain, slot] = margin
            taken[chain] += 1
        if progress is not None:
            progress(sum(taken), chains * total)
        waiting = [chain for chain in waiting if taken[chain] < total]
        if min(taken) == total:
            return points, bounces, margins, motion.drift


def _root(seed: int | tuple[int, ...]) -> tuple[int, ...]:
    root = (seed,) if isinstance(seed, int) else tuple(seed)
    if not root or any(isinstance(s, bool) or not isinstance(s, int) or s < 0 for s in root):
        raise InvalidInput(
            f"the seed is {seed!r}; it must be a nonnegative integer or a tuple of them; give one"
        )
    return root
