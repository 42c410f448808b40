"""Random instances with explicit seeds, nested when facts or competitors are added."""

from __future__ import annotations

import os

import numpy as np
import torch

from replica.errors import InvalidInput
from validate.embeddings import Ensemble, parse_ensemble
from validate.problems.base import Problem, check_count
from validate.problems.decoupled import DecoupledProblem
from validate.problems.gaussian import GaussianProblem
from validate.problems.original import OriginalProblem

KINDS = ("gaussian", "decoupled", "original")
_INPUTS, _OUTPUTS, _RIVALS = 0, 1, 2


def make_problem(
    kind: str,
    *,
    dim: int,
    facts: int,
    competitors: int | None = None,
    dim_out: int | None = None,
    ensemble: str | Ensemble = "gaussian",
    seed: int | tuple[int, ...],
    device: torch.device | str = "cpu",
) -> Problem:
    """A random instance: p = `facts`, M = `competitors` (p - 1 by default), W of `dim_out` x `dim`.

    Streams are `SeedSequence((*seed, kind, dim, dim_out, role[, fact]))`, one for the inputs, one
    for the outputs, one a fact for its own competitors; hence the instance with more facts or
    competitors keeps every vector of the smaller one. For the original problem M + 1 is the number
    of outputs, and fact mu has output mu modulo M + 1.

    Raises `InvalidInput` for an unknown kind, a size below 1 (2 facts if M = p - 1), an instance
    larger than the memory of the machine, a negative seed, or an ensemble other than gaussian for
    the Gaussian problem.

    >>> small = make_problem("original", dim=4, facts=5, seed=0)
    >>> large = make_problem("original", dim=4, facts=9, seed=0)
    >>> bool((large.prefix(5).inputs == small.inputs).all())
    True
    """
    if kind not in KINDS:
        raise InvalidInput(
            f"the problem is {kind!r}; it must be one of {', '.join(KINDS)}; choose one"
        )
    check_count("dim", dim, 1)
    d_out = check_count("dim_out", dim if dim_out is None else dim_out, 1)
    check_count("facts", facts, 2 if competitors is None else 1)
    M = check_count("competitors", facts - 1 if competitors is None else competitors, 1)
    _check_memory(kind, dim, d_out, facts, M)
    law = parse_ensemble(ensemble)
    root = _root(seed)
    key = (*root, KINDS.index(kind), dim, d_out)
    if kind == "gaussian":
        if law.name != "gaussian":
            raise InvalidInput(
                f"the ensemble {law.name!r} was asked for the gaussian problem, whose scores are "
                "Gaussian by definition; leave the ensemble out or take another problem"
            )
        blocks = np.empty((facts, M + 1, d_out, dim))
        for mu in range(facts):
            stream = np.random.default_rng(np.random.SeedSequence((*key, _RIVALS, mu)))
            stream.standard_normal(out=blocks[mu])
        return GaussianProblem(torch.from_numpy(blocks).to(device), seed=root)
    inputs = torch.from_numpy(law.draw((*key, _INPUTS), rows=facts, dim=dim))
    if kind == "original":
        outputs = torch.from_numpy(law.draw((*key, _OUTPUTS), rows=M + 1, dim=d_out))
        targets = torch.arange(facts) % (M + 1)
        return OriginalProblem(inputs, outputs, targets, seed=root).to(device)
    outputs = torch.from_numpy(law.draw((*key, _OUTPUTS), rows=facts, dim=d_out))
    rivals = np.empty((facts, M, d_out))
    for mu in range(facts):
        rivals[mu] = law.draw((*key, _RIVALS, mu), rows=M, dim=d_out)
    return DecoupledProblem(inputs, outputs, torch.from_numpy(rivals), seed=root).to(device)


def _check_memory(kind: str, dim: int, dim_out: int, facts: int, competitors: int) -> None:
    """Refuse an instance whose numbers alone fill the memory of the machine."""
    numbers = {
        "gaussian": facts * (competitors + 1) * dim * dim_out,
        "decoupled": facts * dim + facts * (competitors + 1) * dim_out,
        "original": facts * dim + (competitors + 1) * dim_out,
    }[kind]
    have = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if 8 * numbers > have:
        raise InvalidInput(
            f"the {kind} problem with d_in = {dim}, d_out = {dim_out}, p = {facts}, "
            f"M = {competitors} needs {8 * numbers / 2**30:.3g} GiB and this machine has "
            f"{have / 2**30:.3g} GiB; take fewer facts or a smaller dim"
        )


def _root(seed: int | tuple[int, ...]) -> tuple[int, ...]:
    root = (seed,) if isinstance(seed, int) else tuple(seed)
    if not root or any(isinstance(s, bool) or not isinstance(s, int) or s < 0 for s in root):
        raise InvalidInput(
            f"the seed is {seed!r}; it must be a nonnegative integer or a tuple of them; give one"
        )
    return root
