"""Singular values of memories against the quarter circle, and against where training started.

Statistic of one matrix: the Wasserstein-1 distance of its singular values (unit mean square) to the
law, mean_i |s_(i) - Q((i - 1/2)/m)| over the m largest. A finite matrix is never at distance 0; the
yardstick are Gaussian matrices of the same size, treated in the same way. In the Gaussian problem
the maximum-margin memory has a uniform direction (the problem is invariant under rotations of
R^N), so its distances and those of Gaussian matrices have one law at every d: a rank test is exact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from replica.errors import InvalidInput
from validate.checks.base import Check, Record
from validate.checks.statistics import generator, mean_interval
from validate.plotting import (
    MUTED,
    label_axes,
    new_figure,
    simulation_points,
    theory_line,
)

if TYPE_CHECKING:
    import torch

    from validate.problems import Problem

Floats = NDArray[np.float64]
METHODS = ("maximum_margin", "adam", "low_rank")
NAMES = {"maximum_margin": "maximum margin", "adam": "Adam", "low_rank": "low rank"}
KIND_NAMES = {"gaussian": "Gaussian", "decoupled": "decoupled", "original": "original"}
SHARPNESS = (3.0, 10.0, 30.0, 100.0)


# -- the law and the distance ------------------------------------------------------------------


@lru_cache(maxsize=64)
def law_quantiles(dim: int, rank: int) -> tuple[float, ...]:
    """Q((i - 1/2)/m), i = 1..m = `rank`, of the (truncated) quarter circle of unit mean square.

    Certified quantiles of `numerics.spectrum`, rank_ratio = rank/dim.

    >>> [round(s, 4) for s in law_quantiles(3, 3)]
    [0.2626, 0.8079, 1.448]
    """
    from numerics.spectrum import SingularValueLaw

    law = SingularValueLaw(rank_ratio=Fraction(rank, dim))
    root = math.sqrt(law.moment(2, 10).to_float_lossy())
    levels = [Fraction(2 * i + 1, 2 * rank) for i in range(rank)]
    return tuple(law.quantile(u, 10).to_float_lossy() / root for u in levels)


def closed_form_quantiles(dim: int, rank: int) -> Floats:
    """The same by inverting the closed form of the distribution function in floats.

    F(s) = (s sqrt(4 - s^2)/2 + 2 asin(s/2))/pi on [0, 2]; shares no code with `law_quantiles`.

    >>> bool(np.allclose(closed_form_quantiles(5, 3), law_quantiles(5, 3), atol=1e-7))
    True
    """
    angle = np.linspace(0.0, np.pi / 2.0, 40_001)  # s = 2 sin(angle)
    mass = (2.0 * angle + np.sin(2.0 * angle)) / np.pi
    below = 1.0 - rank / dim
    u = below + rank / dim * (np.arange(rank) + 0.5) / rank
    fine = below + rank / dim * (np.arange(20_000) + 0.5) / 20_000
    square = np.mean((2.0 * np.sin(np.interp(fine, mass, angle))) ** 2)
    return np.asarray(2.0 * np.sin(np.interp(u, mass, angle)) / np.sqrt(square))


def distances(singular_values: ArrayLike, quantiles: ArrayLike) -> Floats:
    """mean_i |s_(i) - Q_i| of each row (n, m) after scaling it to unit mean square.

    >>> float(distances([[1.0, 1.0]], [0.5, 1.5])[0])
    0.5
    """
    s = np.sort(np.atleast_2d(np.asarray(singular_values, dtype=float)), axis=1)
    s = s / np.sqrt(np.mean(s**2, axis=1, keepdims=True))
    return np.asarray(np.abs(s - np.asarray(quantiles, dtype=float)).mean(axis=1))


def gaussian_spectra(
    dim: int, rank: int, count: int, seed: Sequence[int], columns: int | None = None
) -> Floats:
    """The `rank` largest singular values of `count` Gaussian matrices dim x columns (dim)."""
    rng = generator(*seed)
    shape = (count, dim, dim if columns is None else columns)
    return np.asarray(np.linalg.svd(rng.standard_normal(shape), compute_uv=False)[:, :rank])


# -- memories ----------------------------------------------------------------------------------


def measure_spectra(
    kind: str, method: str, dim: int, facts: int, rank: int, count: int, seed: Sequence[int]
) -> dict[str, Any]:
    """The `rank` largest singular values, largest first, of `count` memories of unit norm.

    Instance i has seed (*seed, i) and M = p - 1. `method`: "maximum_margin", "adam" (cross-entropy
    from W = 0 until all is recalled), "low_rank" (margin ascent at that rank). `missed` counts the
    instances not recalled perfectly, which are left out of `values`, `margins` of the memories.
    """
    from validate.problems import make_problem
    from validate.solvers.adam import adam
    from validate.solvers.exact import solve

    if method not in METHODS:
        raise InvalidInput(
            f"the method is {method!r}; it must be one of {', '.join(METHODS)}; choose one"
        )
    values, margins, missed = [], [], 0
    for i in range(count):
        problem = make_problem(kind, dim=dim, facts=facts, seed=(*seed, i))
        if method == "maximum_margin":
            weights = solve(problem, maximum_margin=True).weights
        elif method == "adam":
            weights = adam(problem).weights
        else:
            weights = low_rank_margin(problem, rank)
        if weights is None or problem.accuracy(weights) < 1.0:
            missed += 1
            continue
        weights = weights / weights.norm()
        spectrum = np.linalg.svd(weights.numpy(force=True), compute_uv=False)
        values.append([float(s) for s in spectrum[:rank]])
        margins.append(float(problem.margins(weights).min()))
    return {"values": values, "margins": margins, "missed": missed}


def low_rank_margin(problem: Problem, rank: int, *, steps: int = 250) -> torch.Tensor:
    """A memory of unit norm and rank at most `rank` with a large least margin (not convex).

    Minimises mean_mu log sum_rho exp(beta (s_rho - s_0)) over W = Q R^T/|Q R^T| by Adam, `steps`
    each at growing beta: a smooth form of the least margin. Starts at the truncated Hebbian memory.
    """
    import torch

    from validate.solvers.adam import cross_entropy
    from validate.solvers.threads import threads_for

    if not 1 <= rank <= min(problem.dim_in, problem.dim_out):
        raise InvalidInput(
            f"the rank is {rank}; it must be from 1 to the smaller dimension of the memory; give "
            "such a number"
        )
    with threads_for(problem.parameters):
        start = problem.hebbian_memory()
        U, S, V = torch.linalg.svd(start * (math.sqrt(problem.parameters) / start.norm()))
        half = S[:rank].sqrt()
        Q, R = ((X * half).clone().requires_grad_() for X in (U[:, :rank], V[:rank].T))
        for beta in SHARPNESS:
            rate = 0.09 / (math.sqrt(beta) + 2.0)
            optimiser = torch.optim.Adam([Q, R], lr=rate)
            for _ in range(steps):
                W = Q @ R.T
                loss = cross_entropy(problem.scores(W / W.norm()) * beta)
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
        W = (Q @ R.T).detach()
    return W / W.norm()


def measure_start(
    kind: str, dim: int, facts: int, count: int, seed: Sequence[int], start: str, scale: float
) -> list[dict[str, Any]]:
    """Adam from a start W_0 that is not zero: what is left of it at the end.

    `start`: "gaussian" (i.i.d. entries) or "flat" (random orthogonal: all singular values equal);
    |W_0| = `scale`, so that its scores have standard deviation `scale`. For each instance: `cosine`
    of W and W_0; `subspace` |U_k^T U_0k|_F^2 / k of the k = d/2 leading left singular vectors;
    `ratio` |W_0|/|W|; singular values `first` and `last` of unit norm; `accuracy`.
    """
    import torch

    from validate.problems import make_problem

    if start not in ("gaussian", "flat"):
        raise InvalidInput(f"the start is {start!r}; it must be gaussian or flat; choose one")
    found = []
    for i in range(count):
        problem = make_problem(kind, dim=dim, facts=facts, seed=(*seed, i))
        first = generator(*seed, i, 5).standard_normal((dim, dim))
        if start == "flat":
            q, r = np.linalg.qr(first)
            first = q * np.sign(np.diag(r))
        first *= scale / np.linalg.norm(first)
        last = trained_from(problem, first)
        sizes = np.linalg.norm(first), np.linalg.norm(last)
        k = dim // 2
        (u0, s0, _), (u1, s1, _) = np.linalg.svd(first), np.linalg.svd(last)
        found.append(
            {
                "cosine": float(
                    (first * last).sum() / np.linalg.norm(first) / np.linalg.norm(last)
                ),
                "subspace": float(np.linalg.norm(u0[:, :k].T @ u1[:, :k]) ** 2 / k),
                "ratio": float(sizes[0] / sizes[1]),
                "first": (s0 / sizes[0]).tolist(),
                "last": (s1 / sizes[1]).tolist(),
                "accuracy": problem.accuracy(torch.from_numpy(last)),
            }
        )
    return found


def trained_from(problem: Problem, start: Floats, *, steps: int = 800, rate: float = 0.2) -> Floats:
    """Full-batch Adam on the cross-entropy from W_0 = `start`, the rate falling as a cosine to 0.

    In the scaling of `validate.solvers.adam`: the weights moved are sqrt(N) W. Training goes on
    after all facts are recalled, towards the memory of maximum margin.
    """
    import torch

    from validate.solvers.adam import cross_entropy
    from validate.solvers.threads import threads_for

    scale = 1.0 / math.sqrt(problem.parameters)
    W = (torch.from_numpy(start) / scale).clone().requires_grad_()
    optimiser = torch.optim.Adam([W], lr=rate)
    with threads_for(problem.parameters):
        for step in range(steps):
            for group in optimiser.param_groups:
                group["lr"] = rate * 0.5 * (1.0 + math.cos(math.pi * step / steps))
            loss = cross_entropy(problem.scores(W * scale))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return np.asarray((W * scale).detach().numpy(force=True))


# -- checks ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spectra:
    """Singular values (n, rank) of `n` memories of one problem, method and size."""

    kind: str
    method: str
    dim: int
    facts: int
    values: Floats
    missed: int

    @property
    def rank(self) -> int:
        """Number of singular values."""
        return int(self.values.shape[1])

    @property
    def name(self) -> str:
        """For tables and legends."""
        return f"{KIND_NAMES[self.kind]}, {NAMES[self.method]}"

    def distances(self, quantiles: ArrayLike | None = None) -> Floats:
        """Distances to the law, or to other `quantiles`."""
        law = law_quantiles(self.dim, self.rank) if quantiles is None else quantiles
        return distances(self.values, law)


def spectra_of(
    kind: str, method: str, dim: int, facts: int, answers: Sequence[Mapping[str, Any]]
) -> Spectra:
    """Pool answers of `measure_spectra`. Raises `InvalidInput` below two perfect memories."""
    values = [row for answer in answers for row in answer["values"]]
    if len(values) < 2:
        raise InvalidInput(
            f"{len(values)} memories of the {kind} problem ({method}, d = {dim}, p = {facts}) "
            "recall everything; a spectrum with an error needs 2; take fewer facts"
        )
    missed = sum(int(answer["missed"]) for answer in answers)
    return Spectra(kind, method, dim, facts, np.array(values), missed)


def rank_score(sample: ArrayLike, null: ArrayLike) -> float:
    """Standardised Mann-Whitney statistic: N(0, 1) for one continuous law, > 0 if sample is larger.

    z = (U - n m/2) / sqrt(n m (n + m + 1)/12). Source: Mann and Whitney 1947.

    >>> rank_score([3.0, 4.0], [1.0, 2.0]) > 0
    True
    """
    x, y = np.asarray(sample, dtype=float), np.asarray(null, dtype=float)
    u = stats.rankdata(np.concatenate([x, y]))[: x.size].sum() - x.size * (x.size + 1) / 2
    spread = math.sqrt(x.size * y.size * (x.size + y.size + 1) / 12)
    return float((u - x.size * y.size / 2) / spread)


def check_quarter_circle(
    spectra: Sequence[Spectra],
    *,
    seed: int,
    nulls: int = 4000,
    aspect: float = 0.8,
    quantiles: Mapping[int, ArrayLike] | None = None,
) -> Check:
    """Hypothesis: the distances to the quarter circle are those of Gaussian matrices, at every d.

    Mann-Whitney z of each size against `nulls` Gaussian matrices, whose distances are taken to the
    closed form of the law; sum z^2 ~ chi^2. Two-sided: a spectrum closer to the law than a random
    one counts as well. Named alternative: a Marchenko-Pastur law of that aspect ratio. `quantiles`
    by d replaces the certified law (for planted errors).
    """
    if any(s.kind != "gaussian" or s.rank != s.dim for s in spectra):
        raise InvalidInput(
            "the rank test is exact for full-rank memories of the Gaussian problem only; give those"
        )
    table: list[Record] = []
    scores: list[float] = []
    cases: list[tuple[int, int, Floats]] = []
    for s in spectra:
        null = distances(
            gaussian_spectra(s.dim, s.dim, nulls, (seed, 51, s.dim)),
            closed_form_quantiles(s.dim, s.dim),
        )
        law = law_quantiles(s.dim, s.dim) if quantiles is None else quantiles[s.dim]
        found = s.distances(law)
        scores.append(rank_score(found, null))
        cases.append((s.dim, len(found), null))
        mean, low, high = mean_interval(found)
        table += [
            {"source": "theory", "dim": s.dim, "distance": float(null.mean())},
            {
                "source": "simulation",
                "dim": s.dim,
                "distance": mean,
                "low": low,
                "high": high,
                "z": scores[-1],
                "instances": len(found),
            },
        ]
    last = max(range(len(spectra)), key=lambda i: spectra[i].dim)
    theory, simulation = table[2 * last], table[2 * last + 1]
    freedom = len(scores)

    @lru_cache(maxsize=1)
    def moved() -> Floats:
        return _moved_statistics(cases, aspect, seed)

    return Check(
        name="quarter_circle_gaussian",
        claim="Gaussian problem: the singular values of the maximum-margin memory follow the "
        "quarter circle, up to the fluctuations of Gaussian matrices of the same size.",
        source="optimal memory proportional to a Gaussian matrix; quarter-circle law",
        quantity=f"Wasserstein-1 distance to the quarter circle at d = {spectra[last].dim}",
        predicted=f"{theory['distance']:.4f}",
        measured=f"{simulation['distance']:.4f}",
        interval=f"[{simulation['low']:.4f}, {simulation['high']:.4f}]",
        sample_size=f"{sum(len(s.values) for s in spectra)} memories at d = "
        f"{', '.join(str(s.dim) for s in spectra)}; {nulls} Gaussian matrices each",
        hypothesis="at every d the distances have the law of those of Gaussian matrices "
        "(Mann-Whitney, two-sided)",
        p_value=float(stats.chi2.sf(float(np.sum(np.square(scores))), freedom)),
        alternative=f"Marchenko-Pastur law of aspect ratio {aspect:g}",
        power_at=lambda level: float(np.mean(moved() >= stats.chi2.isf(level, freedom))),
        undecided=sum(s.missed for s in spectra),
        remark="Rotation invariance alone makes this true at every d: Gaussian scores have no "
        "preferred direction in the space of matrices, so the memory, divided by its norm, is a "
        "Gaussian matrix divided by its norm. The test can convict the solver or the law of "
        "Gaussian matrices; about facts that are vectors it says nothing.",
        table=table,
        settings={"seed": seed, "facts": [s.facts for s in spectra]},
    )


def _moved_statistics(
    cases: Sequence[tuple[int, int, Floats]], aspect: float, seed: int, repeats: int = 400
) -> Floats:
    """sum z^2 of repeated samples whose matrices are d x (d/aspect): the named alternative."""
    rng = generator(seed, 53)
    total = np.zeros(repeats)
    for dim, size, null in cases:
        other = gaussian_spectra(dim, dim, 2000, (seed, 52, dim), round(dim / aspect))
        pool = distances(other, law_quantiles(dim, dim))
        total += [rank_score(rng.choice(pool, size), null) ** 2 for _ in range(repeats)]
    return total


def check_spectra(spectra: Sequence[Spectra], *, seed: int, nulls: int = 2000) -> Check:
    """Measured distances of any memories over those of Gaussian matrices of that size and rank.

    No test: only the maximum-margin memory of the Gaussian problem is exactly a uniform direction;
    for the others the law is a statement about d -> infinity.
    """
    table: list[Record] = []
    for s in spectra:
        null = distances(
            gaussian_spectra(s.dim, s.rank, nulls, (seed, 54, s.dim, s.rank)),
            law_quantiles(s.dim, s.rank),
        )
        mean, low, high = mean_interval(s.distances())
        centre = float(null.mean())
        key = {"kind": s.kind, "method": s.method, "dim": s.dim, "rank": s.rank}
        table += [
            {"source": "theory", **key, "distance": centre},
            {
                "source": "simulation",
                **key,
                "distance": mean,
                "low": low,
                "high": high,
                "ratio": mean / centre,
                "facts": s.facts,
                "instances": len(s.values),
                "missed": s.missed,
                "other law": float(s.distances(law_quantiles(s.dim, s.dim)[-s.rank :]).mean())
                if s.rank < s.dim
                else None,
            },
        ]
    last = max(range(len(spectra)), key=lambda i: (spectra[i].kind == "original", spectra[i].dim))
    theory, simulation = table[2 * last], table[2 * last + 1]
    shown = spectra[last]
    low_rank = all(s.rank < s.dim for s in spectra)
    law = "truncated quarter circle" if low_rank else "quarter circle"
    kinds = dict.fromkeys("Gaussian" if s.kind == "gaussian" else s.kind for s in spectra)
    dims = sorted({s.dim for s in spectra})
    sizes = f"d = {dims[0]}" + (f" to {dims[-1]}" if len(dims) > 1 else "")
    return Check(
        name=f"spectra_{'low_rank' if low_rank else 'full_rank'}",
        claim=f"How far the singular values of {'low-rank ' * low_rank}memories are from the "
        f"{law}, to which they should tend as d → ∞ ({' and '.join(kinds)} problem, {sizes}).",
        source="best approximation of bounded rank; equivalence hypothesis",
        quantity=f"Wasserstein-1 distance to the {law} ({shown.name}, d = {shown.dim})",
        predicted=f"{theory['distance']:.4f} as d grows (Gaussian matrices of this size)",
        measured=f"{simulation['distance']:.4f}",
        interval=f"[{simulation['low']:.4f}, {simulation['high']:.4f}]",
        sample_size=f"{sum(len(s.values) for s in spectra)} memories of {len(spectra)} kinds and "
        "sizes",
        undecided=sum(s.missed for s in spectra),
        remark="No test: without the rotation invariance of Gaussian scores at full rank the law "
        "is claimed in the limit d → ∞ only, and no theory says how far from it a memory of finite "
        "size is; any verdict would rest on an assumed rate.",
        table=table,
        settings={"seed": seed},
    )


def check_start(
    cells: Sequence[tuple[str, float, Sequence[Mapping[str, Any]]]], dim: int, facts: int
) -> Check:
    """What Adam keeps of its start: cells are (start, scale, answers of `measure_start`).

    Measured: the cosine of final and initial memory, the overlap of their leading singular
    subspaces (1/2 for independent ones), and the distances of both spectra to the quarter circle.
    """
    if not cells:
        raise InvalidInput("no trained memories were given; train from at least one start")
    law = law_quantiles(dim, dim)
    table: list[Record] = []
    for start, scale, answers in cells:
        rows = list(answers)
        # In Fisher's variable, so that the interval stays between -1 and 1.
        cosine, low, high = np.tanh(mean_interval(np.arctanh([r["cosine"] for r in rows]))).tolist()
        table.append(
            {
                "source": "simulation",
                "start": start,
                "scale": scale,
                "cosine": cosine,
                "low": low,
                "high": high,
                "subspace": float(np.mean([r["subspace"] for r in rows])),
                "ratio": float(np.mean([r["ratio"] for r in rows])),
                "first distance": float(distances([r["first"] for r in rows], law).mean()),
                "last distance": float(distances([r["last"] for r in rows], law).mean()),
                "accuracy": float(np.mean([r["accuracy"] for r in rows])),
                "instances": len(rows),
            }
        )
    table.insert(0, {"source": "theory", "cosine": 0.0, "subspace": (dim // 2) / dim})
    shown = next((r for r in table[1:] if r["start"] == "flat"), table[1])
    return Check(
        name=f"start_d{dim}",
        claim=f"Original problem, d = {dim}, p = {facts}: the spectrum of a trained memory is made "
        "by the facts, not left over from the start.",
        source="the cross-entropy is convex, and its minimising direction does not depend on W₀",
        quantity=f"cosine of final and initial memory ({shown['start']} start, score scale "
        f"{shown['scale']:g})",
        predicted="0 for a start that is forgotten",
        measured=f"{shown['cosine']:.3f}",
        interval=f"[{shown['low']:.3f}, {shown['high']:.3f}]",
        sample_size=f"{sum(r['instances'] for r in table[1:])} trained memories",
        remark=f"Distance to the quarter circle from {shown['first distance']:.3f} at the start to "
        f"{shown['last distance']:.3f} at the end. A start of norm |W₀| leaves a trace of about "
        "|W₀|/|W|, which only longer training removes.",
        table=table,
        settings={"dim": dim, "facts": facts},
    )


# -- figures -----------------------------------------------------------------------------------


def plot_spectrum(groups: Sequence[Spectra], *, bins: int = 0, title: str = "") -> Figure:
    """Density of the singular values: law as a line, memories as points with bars over instances.

    Values are in units where the full-rank law ends at 2; all `groups` share d and rank.
    """
    from numerics.spectrum import SingularValueLaw

    dim, rank = groups[0].dim, groups[0].rank
    law = SingularValueLaw(rank_ratio=Fraction(rank, dim))
    root = math.sqrt(law.moment(2, 10).to_float_lossy())
    low, high = (end.to_float_lossy() for end in law.support(8))
    figure, axes = new_figure()
    # Support and density in closed form on a grid that holds both ends.
    s = np.linspace(low, high, 200)
    density = np.sqrt(np.maximum(4.0 - s**2, 0.0)) / np.pi * dim / rank
    curve = (np.concatenate([[low], s]), np.concatenate([[0.0], density]))
    name = "quarter circle" if rank == dim else f"quarter circle above $a={low:.2f}$"
    theory_line(axes, curve[0].tolist(), curve[1].tolist(), series=0, label=name)
    number = bins or int(np.clip(len(groups[0].values) * rank // 24, 6, 16))
    edges = np.linspace(max(0.0, low - 0.4) if rank < dim else 0.0, high * 1.12, number + 1)
    middle = 0.5 * (edges[1:] + edges[:-1])
    width = edges[1] - edges[0]
    for series, group in enumerate(groups, 1):
        scaled = group.values / np.sqrt(np.mean(group.values**2, axis=1, keepdims=True)) * root
        counts = np.array([np.histogram(row, edges)[0] for row in scaled]) / (rank * width)
        mean = counts.mean(axis=0)
        error = 1.96 * counts.std(axis=0, ddof=1) / math.sqrt(len(counts))
        shift = 0.2 * width * (series - (len(groups) + 1) / 2)
        simulation_points(
            axes,
            (middle + shift).tolist(),
            mean.tolist(),
            (mean - error).tolist(),
            (mean + error).tolist(),
            series=series,
            label=group.name,
        )
    axes.set_ylim(0, 1.9 * float(density.max()))
    axes.set_xlim(edges[0] - 0.02, edges[-1])
    label_axes(
        axes,
        "singular value $s$",
        r"density $\rho(s)$",
        title=title or f"$d={dim}$" + (f", rank {rank}" if rank < dim else ""),
        legend="upper right",
    )
    return figure


def plot_distances(check: Check) -> Figure:
    """Distance to the law against 1/d: Gaussian matrices as a line, memories as points."""
    figure, axes = new_figure()
    theory = {r["dim"]: r["distance"] for r in check.select("theory")}
    dims = sorted(theory, reverse=True)
    theory_line(
        axes,
        [0.0, *(1.0 / d for d in dims)],
        [0.0, *(theory[d] for d in dims)],
        series=0,
        label="Gaussian matrices",
    )
    names = list(dict.fromkeys((r["kind"], r["method"]) for r in check.select("simulation")))
    for series, (kind, method) in enumerate(names, 1):
        rows = check.select("simulation", kind=kind, method=method)
        simulation_points(
            axes,
            [(1.0 + 0.012 * (series - 2)) / r["dim"] for r in rows],
            [r["distance"] for r in rows],
            [r["low"] for r in rows],
            [r["high"] for r in rows],
            series=series,
            label=f"{KIND_NAMES[kind]}, {NAMES[method]}",
        )
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    label_axes(axes, "$1/d$", "Wasserstein-1 distance to the law", title="", legend="upper left")
    return figure


def plot_start(check: Check) -> Figure:
    """Cosine of final and initial memory against |W_0|/|W|: 0 is a forgotten start."""
    figure, axes = new_figure()
    rows = check.select("simulation")
    end = 1.1 * max(r["ratio"] for r in rows)
    kept = [0.0, min(1.0, end), *([end] if end > 1.0 else [])]
    theory_line(
        axes,
        kept,
        [min(1.0, x) for x in kept],
        series=0,
        label=r"start kept, rest added: $\min(1, |W_0|/|W|)$",
    )
    for series, start in enumerate(dict.fromkeys(r["start"] for r in rows), 1):
        at = [r for r in rows if r["start"] == start]
        simulation_points(
            axes,
            [r["ratio"] for r in at],
            [r["cosine"] for r in at],
            [r["low"] for r in at],
            [r["high"] for r in at],
            series=series,
            label=f"{start} start",
        )
    axes.axhline(0.0, color=MUTED, linewidth=1.0, linestyle=(0, (2, 2)), zorder=1)
    axes.annotate(
        "start forgotten",
        (0.98, 0.0),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3),
        textcoords="offset points",
        ha="right",
        fontsize=8.5,
        color=MUTED,
    )
    axes.set_ylim(-0.3, 1.25)
    axes.set_xlim(left=0)
    label_axes(axes, "$|W_0|/|W|$", "cosine of $W$ and $W_0$", legend="upper left")
    return figure
