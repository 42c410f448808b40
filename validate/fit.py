"""Can a linear memory recall the user's own facts, and how many components does it need?"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numerics.cone import least_dimension, statistical_dimension
from replica.errors import InvalidInput
from validate.decide import Decision, decide
from validate.problems.files import Embeddings

CONFLICTS_SHOWN = 5
Progress = Callable[[str], None]


@dataclass(frozen=True)
class LeastComponents:
    """Search for the least number of leading components that recall every fact.

    `components`: least number proved to suffice (None if none does); `exact`: whether one fewer
    was proved not to suffice; `decisions`: verdict by number of components tried.
    """

    components: int | None
    exact: bool
    decisions: dict[int, str]


@dataclass(frozen=True)
class Fit:
    """The answer of `fit`.

    `decision`: verdict and certificate with `components` leading components; `least`: the search
    on the true pairing; `shuffled`: the same for random pairings, one a seed; `theory`: least d
    with p delta(M) <= d min(d, M), M + 1 being the number of distinct outputs; `conflicts`: facts
    with the largest share in the proof of impossibility, with that share (empty if separable).
    """

    embeddings: Embeddings
    components: int
    competitors: int
    decision: Decision
    least: LeastComponents
    shuffled: list[LeastComponents]
    seeds: tuple[int, ...]
    theory: int
    conflicts: list[tuple[str, float]]
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        certificate = self.decision.certificate
        proof: dict[str, Any] = {"method": certificate.method}
        if certificate.verdict == "separable":
            proof["margin"] = certificate.margin
        if certificate.verdict == "not_separable":
            proof |= {"residual": certificate.residual, "correction": certificate.correction}
        if certificate.reason:
            proof["reason"] = certificate.reason
        return {
            "facts": self.embeddings.facts,
            "competitors": self.competitors,
            "dim_in": self.embeddings.inputs.shape[1],
            "dim_out": self.embeddings.outputs.shape[1],
            "components": self.components,
            "verdict": self.decision.verdict,
            "certificate": proof,
            "least_components": self.least.components,
            "least_components_proved": self.least.exact,
            "least_components_shuffled": [s.components for s in self.shuffled],
            "shuffle_seeds": list(self.seeds),
            "theory_least_dimension": self.theory,
            "conflicts": [{"fact": name, "share": share} for name, share in self.conflicts],
            "seconds": self.seconds,
        }


def fit(
    embeddings: Embeddings,
    *,
    components: int | None = None,
    shuffles: int = 5,
    seed: int = 0,
    principal: bool = False,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> Fit:
    """Decide recall of all facts with `components` leading components, and the least number.

    Components are the columns as given, or principal components of inputs and outputs (rotations
    by the right singular vectors, no centring) with `principal`. The shuffled pairings use
    `SeedSequence((seed, i))`, i < `shuffles`.

    Raises `InvalidInput` for a number of components out of range or a negative number of shuffles.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).standard_normal((12, 6))
    >>> pairs = Embeddings(x, x, ("",) * 12, ("",) * 12)
    >>> fit(pairs, shuffles=0).decision.verdict
    'separable'
    """
    start = time.monotonic()
    if principal:
        embeddings = principal_components(embeddings)
    most = embeddings.components
    used = most if components is None else components
    if isinstance(used, bool) or not isinstance(used, int) or not 1 <= used <= most:
        raise InvalidInput(
            f"components is {used!r}; the embeddings have {most}, so it must be an integer from "
            f"1 to {most}; give such a number"
        )
    if shuffles < 0:
        raise InvalidInput(f"shuffles is {shuffles}; it must be at least 0; give 0 for none")
    if seed < 0:
        raise InvalidInput(f"the seed is {seed}; it must be a nonnegative integer; give one")
    say = progress or (lambda _: None)
    problem = embeddings.problem(components=used)
    if problem.competitors < 1:
        raise InvalidInput(
            "all facts have the same output; recall needs at least 2 different outputs; add facts"
        )
    say(f"verdict with {used} components")
    decision = decide(problem, time_limit=time_limit)
    say("least number of components")
    least = least_components(embeddings, time_limit=time_limit, known={used: decision.verdict})
    shuffled = []
    for index in range(shuffles):
        say(f"shuffled pairing {index + 1} of {shuffles}")
        stream = np.random.default_rng(np.random.SeedSequence((seed, index)))
        pairing = stream.permutation(embeddings.facts)
        shuffled.append(least_components(embeddings, pairing=pairing, time_limit=time_limit))
    return Fit(
        embeddings,
        used,
        problem.competitors,
        decision,
        least,
        shuffled,
        tuple(range(shuffles)),
        theory_dimension(embeddings.facts, problem.competitors),
        conflicts(embeddings, decision),
        time.monotonic() - start,
    )


def theory_dimension(facts: int, competitors: int) -> int:
    """Least d with p delta(M) <= d min(d, M) for p random facts with M + 1 possible outputs.

    The differences of M + 1 outputs span at most M dimensions, so of the d x d entries of W only
    d min(d, M) count; with M = 1 this is Cover's p = 2 d.

    >>> theory_dimension(100, 99), theory_dimension(100, 1)
    (22, 50)
    """
    square = least_dimension(facts, competitors)
    if square <= competitors:
        return square
    # delta(1) and delta(2) are rational, so that ties happen; enclosures cannot decide those.
    rational = {1: Fraction(1, 2), 2: Fraction(5, 6)}.get(competitors)
    if rational is not None:
        return math.ceil(rational * facts / competitors)
    needed = statistical_dimension(competitors, 30) * facts
    least = max(1, math.floor(needed.to_float_lossy() / competitors) - 1)
    while needed > least * competitors:
        least += 1
    return least


def least_components(
    embeddings: Embeddings,
    *,
    pairing: NDArray[np.int64] | None = None,
    time_limit: float | None = None,
    known: dict[int, str] | None = None,
) -> LeastComponents:
    """Bisection on the number of leading components: more components never lose a memory."""
    decisions = dict(known or {})

    def verdict(k: int) -> str:
        if k not in decisions:
            problem = embeddings.problem(components=k, pairing=pairing)
            decisions[k] = decide(problem, time_limit=time_limit).verdict
        return decisions[k]

    low, high = 0, embeddings.components
    if verdict(high) != "separable":
        return LeastComponents(None, decisions[high] == "not_separable", decisions)
    while high - low > 1:
        middle = (low + high) // 2
        if verdict(middle) == "separable":
            high = middle
        else:
            low = middle
    exact = low == 0 or decisions[low] == "not_separable"
    return LeastComponents(high, exact, dict(sorted(decisions.items())))


def principal_components(embeddings: Embeddings) -> Embeddings:
    """Rotate inputs and outputs to their principal axes, in order of decreasing weight."""
    return Embeddings(
        _rotated(embeddings.inputs),
        _rotated(embeddings.outputs),
        embeddings.input_names,
        embeddings.output_names,
    )


def _rotated(x: NDArray[np.float64]) -> NDArray[np.float64]:
    axes = np.linalg.svd(x, full_matrices=True)[2]
    # Equal rows must stay equal to the last bit, else a shared output would become two.
    distinct, index = np.unique(x, axis=0, return_inverse=True)
    rotated: NDArray[np.float64] = (distinct @ axes.T)[index.reshape(-1)]
    return rotated


def conflicts(embeddings: Embeddings, decision: Decision) -> list[tuple[str, float]]:
    """The facts that carry most of the proof that no memory recalls all of them."""
    if decision.verdict != "not_separable" or decision.solution.multipliers is None:
        return []
    shares = decision.solution.multipliers.sum(1)
    order: Sequence[int] = shares.argsort(descending=True, stable=True).tolist()
    return [
        (f"{embeddings.input_names[mu]} -> {embeddings.output_names[mu]}", float(shares[mu]))
        for mu in order[:CONFLICTS_SHOWN]
    ]
