"""The statistical dimension and the number of active competitors, against direct projection.

The theory integrates over contours; here Gaussian points are projected on the cone
C = {y : y_0 >= max_rho y_rho} by sorting, so the two routes share no formula.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import special

from replica.errors import InvalidInput
from validate.checks.base import Check, Record
from validate.checks.statistics import generator, monte_carlo_p_value
from validate.plotting import label_axes, new_figure, simulation_points, theory_line


def project(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Squared distance to C and number of active competitors, for rows (z_0, z_1, ..., z_M).

    With competitors in descending order and m_k the mean of z_0 and the k largest, K is the first
    k with z_(k+1) <= m_k, and dist^2 = sum of squares of those k+1 values minus (k+1) m_K^2.

    >>> distance, active = project(np.array([[0.0, 2.0, -1.0], [3.0, 1.0, 2.0]]))
    >>> distance.tolist(), active.tolist()
    ([2.0, 0.0], [1, 0])
    """
    target, rivals = points[:, :1], -np.sort(-points[:, 1:], axis=1)
    chain = np.concatenate([target, rivals], axis=1)
    size = np.arange(1, chain.shape[1] + 1)
    means = np.cumsum(chain, axis=1) / size
    stops = np.concatenate([rivals, np.full_like(target, -np.inf)], axis=1) <= means
    active = np.argmax(stops, axis=1)
    rows = np.arange(len(points))
    squares = np.cumsum(chain**2, axis=1)[rows, active]
    distance = squares - (active + 1) * means[rows, active] ** 2
    return np.where(active == 0, 0.0, distance), active


def measure_projection(
    competitors: int, seed: int, batch: int, samples: int, rows: int = 5_000
) -> dict[str, Any]:
    """`samples` projected Gaussian points with M = `competitors`, from stream (seed, 11, M, batch).

    The answer holds the number of samples, sum and sum of squares of dist^2 and the counts of
    K = 0, 1, ... as far as they go. At most `rows` points are held at once.

    >>> answer = measure_projection(1, seed=0, batch=0, samples=1000)
    >>> sum(answer["counts"]), abs(answer["sum"] / 1000 - 0.5) < 0.2
    (1000, True)
    """
    rng = generator(seed, 11, competitors, batch)
    total = squares = 0.0
    counts = np.zeros(competitors + 1, dtype=np.int64)
    for start in range(0, samples, rows):
        points = rng.standard_normal((min(rows, samples - start), competitors + 1))
        distance, active = project(points)
        total += float(distance.sum())
        squares += float(distance @ distance)
        counts += np.bincount(active, minlength=competitors + 1)
    last = int(np.flatnonzero(counts)[-1])
    return {
        "samples": samples,
        "sum": total,
        "squares": squares,
        "counts": counts[: last + 1].tolist(),
    }


Answers = Sequence[Mapping[str, Any]]


def check_statistical_dimension(
    competitors: Sequence[int],
    predicted: Sequence[float],
    *,
    seed: int,
    samples: int = 100_000,
    answers: Mapping[int, Answers] | None = None,
) -> Check:
    """delta(M) = E dist^2(z, C): certified value against projected Gaussian points.

    Arguments: numbers of `competitors`, the `predicted` delta of each, and for each M the `answers`
    of `measure_projection` (by default it is measured here with `seed` and `samples`). Statistic:
    c = the largest |mean - delta| / standard error over the m values of M; as the means of so many
    points are Gaussian, its p-value is 1 - (2 Phi(c) - 1)^m.
    """
    if len(competitors) != len(predicted) or not competitors:
        raise InvalidInput(
            "give one predicted statistical dimension for each number of competitors"
        )
    if answers is None:
        answers = {m: [measure_projection(m, seed, 0, samples)] for m in competitors}
    table: list[Record] = []
    scores, errors = [], []
    for m, delta in zip(competitors, predicted, strict=True):
        count = sum(a["samples"] for a in answers[m])
        mean = sum(a["sum"] for a in answers[m]) / count
        variance = sum(a["squares"] for a in answers[m]) / count - mean**2
        error = float(np.sqrt(variance / (count - 1)))
        scores.append((mean - delta) / error)
        errors.append(error)
        half = 1.959964 * error
        table.append({"source": "theory", "competitors": m, "delta": delta})
        table.append(
            {
                "source": "simulation",
                "competitors": m,
                "delta": mean,
                "low": mean - half,
                "high": mean + half,
                "samples": count,
            }
        )
    largest = float(np.max(np.abs(scores)))
    outside = 2.0 * special.ndtr(-largest)  # small: log1p(-outside) keeps its digits
    p_value = float(-special.expm1(len(scores) * np.log1p(-outside)))
    shift = 0.01 * np.asarray(predicted) / np.asarray(errors)

    def power_at(level: float) -> float:
        # Reject when max |score| > c with (2 Phi(c) - 1)^m = 1 - level; all deltas off by 1 %.
        c = special.ndtri((1.0 + (1.0 - level) ** (1.0 / len(scores))) / 2.0)
        return float(1.0 - np.prod(special.ndtr(c - shift) - special.ndtr(-c - shift)))

    last = table[-1]
    return Check(
        name="statistical_dimension",
        claim="The statistical dimension δ(M) of the retrieval cone is what the k-sum says.",
        source="δ = E dist²(z, C) = Σ k v_k; capacity γ_c δ = 1 (arXiv:2605.10795)",
        quantity=f"δ({competitors[-1]})",
        predicted=f"{predicted[-1]:.4f}",
        measured=f"{last['delta']:.4f}",
        interval=f"[{last['low']:.4f}, {last['high']:.4f}]",
        sample_size=f"{last['samples']} projected points at each of {len(competitors)} values of M",
        hypothesis="the mean squared distance to the cone equals δ(M) at every M listed",
        p_value=p_value,
        alternative="δ off by 1 %",
        power_at=power_at,
        table=table,
        caption="Squared distance of a Gaussian point to the retrieval cone, averaged: certified "
        "values (line) and direct projection (points; error bars are smaller than the marks).",
        settings={"competitors": list(competitors), "samples": last["samples"], "seed": seed},
    )


def check_active_competitors(
    competitors: int,
    volumes: Sequence[float],
    *,
    seed: int,
    samples: int = 40_000,
    answers: Answers | None = None,
    nulls: int = 20_000,
) -> Check:
    """Law of K, the number of active competitors, against the intrinsic volumes v_k.

    `volumes` is v_0, v_1, ... up to any k; what is missing from one is the probability of larger k.
    `answers` of `measure_projection` hold the counts (by default measured here with `seed` and
    `samples`). Pearson's chi^2 over classes with at least five expected counts, with a simulated
    multinomial null, so small classes do no harm.
    """
    v = np.asarray(volumes, dtype=float)
    if v.ndim != 1 or v.size < 2 or (v < -1e-12).any() or v.sum() > 1.0 + 1e-9:
        raise InvalidInput(
            "the intrinsic volumes must be at least two probabilities of sum at most 1"
        )
    if answers is None:
        answers = [measure_projection(competitors, seed, 0, samples)]
    counts = np.zeros(v.size + 1, dtype=np.int64)
    for answer in answers:
        found = np.asarray(answer["counts"], dtype=np.int64)
        places = np.minimum(np.arange(found.size), v.size)
        counts += np.bincount(places, weights=found, minlength=v.size + 1).astype(np.int64)
    samples = int(counts.sum())
    law = np.append(np.clip(v, 0.0, 1.0), max(0.0, 1.0 - float(v.sum())))
    classes = _merge(law * samples)
    expected = np.asarray(np.bincount(classes, weights=law), dtype=np.float64)

    def chi2(observed: NDArray[np.int64], against: NDArray[np.float64]) -> NDArray[np.float64]:
        mean = samples * against
        return np.asarray(((observed - mean) ** 2 / mean).sum(axis=-1))

    merged = np.bincount(classes, weights=counts).astype(np.int64)
    null_draws = generator(seed, 14).multinomial(samples, expected, nulls)
    null = np.sort(chi2(null_draws, expected))
    # Named alternative: every v_k belongs to a delta one per cent larger (exponential tilt of v).
    tilted = _tilt(law, 1.01)
    drawn = generator(seed, 15).multinomial(
        samples, np.bincount(classes, weights=tilted), max(1, nulls // 4)
    )
    alternative_sample = chi2(drawn, expected)

    def power_at(level: float) -> float:
        rank = int(np.floor(level * (1 + null.size)))
        return float(np.mean(alternative_sample >= null[-rank])) if rank else 0.0

    table: list[Record] = []
    for k in range(v.size):
        table.append({"source": "theory", "k": k, "probability": float(law[k])})
        table.append(
            {
                "source": "simulation",
                "k": k,
                "probability": float(counts[k] / samples),
                "error": float(np.sqrt(max(counts[k], 1) * (1 - counts[k] / samples)) / samples),
            }
        )
    index = np.arange(counts.size)
    mean = float(counts @ index / samples)
    error = float(np.sqrt(counts @ (index - mean) ** 2 / samples**2))
    return Check(
        name="active_competitors",
        claim="The number of active competitors of a fact follows the intrinsic volumes v_k.",
        source="conic intrinsic volumes (Amelunxen et al. 2014), v_k = C(M,k) A_k B_{k,M−k}",
        quantity=f"E K at M = {competitors}",
        predicted=f"{float(law @ index):.4f}",
        measured=f"{mean:.4f}",
        interval=f"[{mean - 1.96 * error:.4f}, {mean + 1.96 * error:.4f}]",
        sample_size=f"{samples} projected points",
        hypothesis=f"P(K = k) = v_k for M = {competitors}",
        p_value=monte_carlo_p_value(float(chi2(merged, expected)), null),
        alternative="v_k tilted to a mean 1 % larger",
        power_at=power_at,
        table=table,
        caption=f"How many of M = {competitors} competitors are pressed down to the decision "
        "level: intrinsic volumes v_k (line) and counts from direct projection (points).",
        settings={"competitors": competitors, "samples": samples, "seed": seed},
    )


def plot_statistical_dimension(check: Check, curve: Sequence[tuple[int, float]] = ()) -> Figure:
    """delta against M: certified line (through `curve` if given), projected points."""
    figure, axes = new_figure()
    measured = check.select("simulation")
    line = list(curve) or [(r["competitors"], r["delta"]) for r in check.select("theory")]
    theory_line(
        axes,
        [m for m, _ in line],
        [delta for _, delta in line],
        series=0,
        label="certified",
    )
    simulation_points(
        axes,
        [r["competitors"] for r in measured],
        [r["delta"] for r in measured],
        [r["low"] for r in measured],
        [r["high"] for r in measured],
        series=1,
        label="direct projection",
    )
    axes.set_xscale("log")
    label_axes(axes, "competitors $M$", r"statistical dimension $\delta(M)$", legend="upper left")
    return figure


def plot_active_competitors(check: Check) -> Figure:
    """Law of K: intrinsic volumes as a line, counted shares as points."""
    figure, axes = new_figure()
    theory = [r for r in check.select("theory") if r["probability"] > 1e-4]
    last = theory[-1]["k"]
    measured = [r for r in check.select("simulation") if r["k"] <= last]
    theory_line(
        axes,
        [r["k"] for r in theory],
        [r["probability"] for r in theory],
        series=0,
        label="$v_k$, certified",
    )
    simulation_points(
        axes,
        [r["k"] for r in measured],
        [r["probability"] for r in measured],
        [r["probability"] - 1.96 * r["error"] for r in measured],
        [r["probability"] + 1.96 * r["error"] for r in measured],
        series=1,
        label="direct projection",
    )
    axes.set_ylim(bottom=0)
    label_axes(axes, "active competitors $k$", "$P(K=k)$", legend="upper right")
    return figure


def _merge(expected: NDArray[np.float64], least: float = 5.0) -> NDArray[np.int64]:
    """Class of every k so that each class expects at least `least` counts."""
    classes = np.zeros(expected.size, dtype=np.int64)
    label, mass = 0, 0.0
    for k, value in enumerate(expected):
        if mass >= least and expected[k:].sum() >= least:
            label, mass = label + 1, 0.0
        classes[k] = label
        mass += value
    return classes


def _tilt(law: NDArray[np.float64], factor: float) -> NDArray[np.float64]:
    """The law e^{theta k} law_k / norm whose mean is `factor` times that of `law`."""
    index = np.arange(law.size)
    goal = factor * float(law @ index)
    theta = 0.0
    for _ in range(50):
        weight = law * np.exp(theta * index)
        weight /= weight.sum()
        mean = float(weight @ index)
        theta -= (mean - goal) / float(weight @ (index - mean) ** 2)
    return weight
