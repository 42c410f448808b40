"""Hebbian recall in the Gaussian problem, typical fact and all facts: exact finite-(d, p) laws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import special, stats

from replica.errors import InvalidInput
from validate.checks.base import Check, Record
from validate.checks.curves import curve_power, curve_test, half_point
from validate.checks.finite_size import Cell, cell_of, squares_test, summarise
from validate.checks.statistics import clopper_pearson
from validate.plotting import label_axes, new_figure, simulation_points, theory_line


def hebbian_recall(parameters: int, facts: int, competitors: int) -> float:
    """P(a fact is recalled by W = sum_mu G_mu,0) in the Gaussian problem, exactly.

    With N = `parameters` and W ~ N(0, p I_N): given W, the target G_mu,0 is N(W/p, (1 - 1/p) I), so
    the target score over |W| is |W|/p + sqrt(1 - 1/p) z, and each of the M competing scores over
    |W| is standard normal. Hence

        P = E Phi( chi_N / sqrt(p) + sqrt(1 - 1/p) z )^M ,   z ~ N(0, 1),

    which tends to the large-d law int Dz Phi(1/sigma + z)^M, sigma^2 = p/N. Evaluated by the
    trapezoidal rule in z and in chi_N, to about 1e-10. Raises `InvalidInput` for sizes below 1.

    >>> round(hebbian_recall(100, 1, 1), 12)
    1.0
    """
    return noisy_recall(parameters, facts, competitors, 1.0)


@lru_cache(maxsize=4096)
def noisy_recall(parameters: int, facts: int, competitors: int, noise: float) -> float:
    """`hebbian_recall` if sigma were `noise` times as large: an alternative, wrong on purpose."""
    _check_sizes(parameters=parameters, facts=facts, competitors=competitors)
    norm, weight = _norms(parameters, 161)
    gain = norm / np.sqrt(facts) / noise
    return float(weight @ _typical(gain, 1.0 - 1.0 / facts, competitors))


@lru_cache(maxsize=4096)
def hebbian_every_recall(
    parameters: int, facts: int, competitors: int, *, noise: float = 1.0
) -> float:
    """P(all p facts are recalled by W = sum_mu G_mu,0) in the Gaussian problem, exactly.

    Given |W| the p target scores are a + z_mu, a = |W|/p, with independent z_mu of sum 0 (their
    total is fixed). Writing the condition as a Fourier integral factorises it:

        P = E_chi sqrt(p/(2 pi)) int dl psi(l)^p,   psi(l) = E Phi(a + z)^M e^{i l z},

    a = chi_N/sqrt(p); |psi| <= 1, so nothing cancels beyond rounding (absolute accuracy about
    1e-7). `noise` multiplies sigma: 1 is the truth, others are alternatives. Raises `InvalidInput`
    for sizes below 1.

    >>> round(hebbian_every_recall(100, 1, 1), 9)
    1.0
    """
    _check_sizes(parameters=parameters, facts=facts, competitors=competitors)
    norm, weight = _norms(parameters, 49)
    z = np.linspace(-9.0, 9.0, 241)
    dz = np.exp(-z * z / 2.0) * (z[1] - z[0]) / np.sqrt(2.0 * np.pi)
    step = 0.15 / np.sqrt(facts)
    wave = step * np.arange(200)
    gain = norm / np.sqrt(facts) / noise
    single = np.exp(competitors * special.log_ndtr(gain[:, None] + z)) * dz
    power = np.real((single @ np.exp(1j * np.outer(z, wave))) ** facts)
    integral = step * (2.0 * power.sum(axis=1) - power[:, 0])
    return max(0.0, float(weight @ integral) * float(np.sqrt(facts / (2.0 * np.pi))))


def _norms(parameters: int, nodes: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes and weights of the trapezoidal rule for chi_N, weights of sum 1."""
    law = stats.chi(parameters)
    centre, spread = float(law.mean()), float(law.std())
    norm = np.linspace(max(1e-9, centre - 9.0 * spread), centre + 9.0 * spread, nodes)
    weight = law.pdf(norm) * (norm[1] - norm[0])
    return norm, weight


def hebbian_recall_limit(noise: float, competitors: int) -> float:
    """int Dz Phi(1/sigma + z)^M with sigma = `noise`: the large-d law of Hebbian recall.

    Source: arXiv:2605.10795, Hebbian rule. Raises `InvalidInput` unless noise > 0.

    >>> round(hebbian_recall_limit(1e9, 1), 6)
    0.5
    """
    if noise <= 0.0:
        raise InvalidInput(f"the noise sigma is {noise}; it must be positive; give sqrt(p)/d")
    return float(_typical(np.array([1.0 / noise]), 1.0, competitors)[0])


def _typical(gain: NDArray[np.float64], variance: float, competitors: int) -> NDArray[np.float64]:
    """int Dz Phi(gain + sqrt(variance) z)^M for each gain."""
    z = np.linspace(-9.0, 9.0, 721)
    dz = np.exp(-z * z / 2.0) * (z[1] - z[0]) / np.sqrt(2.0 * np.pi)
    logs = special.log_ndtr(gain[:, None] + np.sqrt(variance) * z)
    return np.asarray(np.exp(competitors * logs) @ dz)


def measure_hebbian(dim: int, facts: int, count: int, seed: Sequence[int]) -> dict[str, Any]:
    """`summarise` of (share of facts recalled, all recalled) over `count` Gaussian instances.

    Instance i has seed (*seed, i) and M = p - 1.
    """
    from validate.problems import make_problem

    rows = []
    for i in range(count):
        problem = make_problem("gaussian", dim=dim, facts=facts, seed=(*seed, i))
        share = problem.accuracy(problem.hebbian_memory())
        rows.append([share, float(share == 1.0)])
    return summarise(rows)


def check_hebbian(
    dim: int,
    loads: Sequence[int],
    instances: int,
    *,
    seed: int,
    nulls: int = 20_000,
    noise: float = 2.0,
    progress: Callable[[], None] | None = None,
) -> Check:
    """Measure `instances` a load, then `check_typical_recall`."""
    _check_sizes(dim=dim, instances=instances - 1)
    cells = []
    for p in loads:
        rows = []
        for number in range(instances):
            rows.append(measure_hebbian(dim, p, 1, (seed, 21, p, number)))
            if progress is not None:
                progress()
        cells.append((p, cell_of(dim * dim, rows)))
    return check_typical_recall(dim, cells, seed=seed, nulls=nulls, noise=noise)


def check_typical_recall(
    dim: int,
    cells: Sequence[tuple[int, Cell]],
    *,
    seed: int,
    nulls: int = 100_000,
    noise: float = 1.05,
) -> Check:
    """Measured share of facts that the Hebbian memory recalls against the exact law.

    `cells`: number of facts and pooled answers of `measure_hebbian`. Facts of one instance share W,
    so the instance is the unit: at load i, t_i is the Student statistic of the instance shares
    against the exact mean; sum t_i^2 is compared with simulated sums of independent Student
    variables. The shares are averages over many facts, so the Student law holds well. Named
    alternative: sigma times `noise`.
    """
    table: list[Record] = []
    scores, shifts = [], []
    for p, cell in cells:
        exact = hebbian_recall(dim * dim, p, p - 1)
        wrong = noisy_recall(dim * dim, p, p - 1, noise)
        mean, error = float(cell.mean[0]), float(cell.error[0])
        if error == 0.0:
            raise InvalidInput(
                f"all {cell.count} instances at p = {p} recall the same share of facts, which "
                "leaves no error estimate; choose loads where recall is neither full nor nil"
            )
        half = float(stats.t.ppf(0.975, cell.count - 1)) * error
        scores.append((mean - exact) / error)
        shifts.append((wrong - exact) / error)
        table += [
            {
                "source": "theory",
                "facts": p,
                "accuracy": exact,
                "limit": hebbian_recall_limit(float(np.sqrt(p)) / dim, p - 1),
                "dim": dim,
            },
            {
                "source": "simulation",
                "facts": p,
                "accuracy": mean,
                "low": mean - half,
                "high": mean + half,
                "instances": cell.count,
                "dim": dim,
            },
        ]
    freedom = [cell.count - 1 for _, cell in cells]
    test = squares_test(scores, shifts, freedom, seed=(seed, 22), samples=nulls)
    middle = len(cells) // 2
    theory, simulation = table[2 * middle], table[2 * middle + 1]
    return Check(
        name=f"hebbian_d{dim}",
        claim=f"Gaussian problem, d = {dim}: the Hebbian memory recalls a typical fact with "
        "probability E Φ(χ_N/√p + √(1−1/p) z)^M, N = d².",
        source="arXiv:2605.10795, Hebbian rule; finite-d law as derived in the code",
        quantity=f"share of facts recalled at p = {cells[middle][0]}",
        predicted=f"{theory['accuracy']:.4f}",
        measured=f"{simulation['accuracy']:.4f}",
        interval=f"[{simulation['low']:.4f}, {simulation['high']:.4f}]",
        sample_size=f"{' + '.join(str(cell.count) for _, cell in cells)} instances at "
        f"{len(cells)} loads",
        hypothesis="the expected share of recalled facts is the exact one at every load",
        p_value=test.p_value,
        alternative="noise twice as large (the all-facts threshold 1/8 in place of 1/2)"
        if noise == 2.0
        else f"noise σ {100 * (noise - 1):.0f} % larger",
        power_at=test.power,
        table=table,
        settings={"dim": dim, "facts": [p for p, _ in cells], "seed": seed},
    )


def check_every_recall(
    dim: int,
    cells: Sequence[tuple[int, Cell]],
    *,
    seed: int,
    noise: float = 1.05,
    samples: int = 100_000,
) -> Check:
    """Number of instances in which the Hebbian memory recalls all facts: binomial, exact P.

    Score test for shift and width of the curve with its exact simulated null. Named alternative:
    sigma times `noise`.
    """
    facts = [p for p, _ in cells]
    trials = [cell.count for _, cell in cells]
    counts = [round(float(cell.mean[1]) * cell.count) for _, cell in cells]
    exact = [hebbian_every_recall(dim * dim, p, p - 1) for p in facts]
    wrong = [hebbian_every_recall(dim * dim, p, p - 1, noise=noise) for p in facts]
    test = curve_test(counts, trials, exact, seed=seed, samples=samples)
    table: list[Record] = []
    for p, n, s, value in zip(facts, trials, counts, exact, strict=True):
        low, high = clopper_pearson(s, n)
        table += [
            {"source": "theory", "facts": p, "probability": value, "dim": dim},
            {
                "source": "simulation",
                "facts": p,
                "probability": s / n,
                "low": low,
                "high": high,
                "instances": n,
                "dim": dim,
            },
        ]
    middle = len(facts) // 2
    shown = table[2 * middle + 1]
    return Check(
        name=f"hebbian_every_d{dim}",
        claim=f"Gaussian problem, d = {dim}: the Hebbian memory recalls every fact with the exact "
        "probability E F((χ_N + i g)/√p)^p, F(b) = E Φ(b + z)^M.",
        source="Hebbian rule; finite-d law as derived in the code",
        quantity=f"P(all facts recalled) at p = {facts[middle]}",
        predicted=f"{exact[middle]:.4f}",
        measured=f"{shown['probability']:.4f}",
        interval=f"[{shown['low']:.4f}, {shown['high']:.4f}]",
        sample_size=f"{sum(trials)} instances at {len(facts)} loads",
        hypothesis="the number of instances recalled in full is binomial with the exact "
        "probability at every load",
        p_value=test.p_value,
        alternative=f"noise σ {100 * (noise - 1):.0f} % larger",
        power_at=lambda level: curve_power(test, trials, exact, wrong, level=level, seed=seed + 1),
        table=table,
        settings={"dim": dim, "facts": facts, "instances": trials, "seed": seed},
    )


def half_load(dim: int, *, every: bool) -> float:
    """Number of facts (interpolated) with exact finite-d recall probability 1/2, M = p - 1.

    >>> half_load(10, every=True) < half_load(10, every=False)
    True
    """
    law = hebbian_every_recall if every else hebbian_recall

    @lru_cache(maxsize=64)
    def excess(p: int) -> float:
        return law(dim * dim, p, p - 1) - 0.5

    low, high = 2, 4
    while excess(high) > 0:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return low + excess(low) / (excess(low) - excess(high))


def check_thresholds(
    dim: int, typical: Sequence[tuple[int, Cell]], every: Sequence[tuple[int, Cell]]
) -> Check:
    """Loads of half recall, typical and of every fact, in all their forms; measured.

    Measured points: the exact curve stretched to fit the shares for a typical fact, maximum
    likelihood with its profile interval for every fact. Beside them the exact finite-d values, the
    certified finite-p ones for large d (`numerics.hebbian_threshold`) and the limits 1/2 and 1/8.
    """
    from numerics.hebbian_threshold import threshold

    table: list[Record] = []
    lines = []
    for name, limit in (("typical", 0.5), ("every", 0.125)):
        exact = half_load(dim, every=name == "every")
        if name == "typical":
            value, low, high = _half_by_stretch(dim, typical, exact)
        else:
            fit = half_point(
                [p for p, _ in every],
                [round(float(cell.mean[1]) * cell.count) for _, cell in every],
                [cell.count for _, cell in every],
            )
            value, low, high = fit.value, fit.low, fit.high
        u = threshold(round(exact), every=name == "every", digits=6).to_float_lossy()
        load = {
            "exact at this d": _load(exact, dim),
            "finite p, large d": float(np.log(round(exact)) / u**2),
            "limit": limit,
        }
        table += [
            {"source": "theory", "recall": name, "form": form, "load": x}
            for form, x in load.items()
        ]
        table.append(
            {
                "source": "simulation",
                "recall": name,
                "facts": value,
                "load": _load(value, dim),
                "low": _load(low, dim),
                "high": _load(high, dim),
            }
        )
        lines.append((load, table[-1]))
    (one, one_measured), (every_one, every_measured) = lines
    return Check(
        name=f"hebbian_thresholds_d{dim}",
        claim="Half of the facts are lost by the Hebbian memory at the load α = 1/2, the first one "
        "at α = 1/8, both in the limit p → ∞; at finite p the loads are far from these.",
        source="arXiv:2605.10795 (1/2); arXiv:2605.05189, d² = 8 n log n (1/8); finite-p forms",
        quantity=f"load α = p log p/d² of half recall at d = {dim}: typical fact; every fact",
        predicted=f"{one['exact at this d']:.3f}; {every_one['exact at this d']:.3f}",
        measured=f"{one_measured['load']:.3f}; {every_measured['load']:.3f}",
        interval=f"[{one_measured['low']:.3f}, {one_measured['high']:.3f}]; "
        f"[{every_measured['low']:.3f}, {every_measured['high']:.3f}]",
        sample_size=f"{sum(c.count for _, c in [*typical, *every])} instances",
        remark=f"Finite-p values for large d: {one['finite p, large d']:.3f} and "
        f"{every_one['finite p, large d']:.3f}; limits 1/2 and 1/8.",
        table=table,
        settings={"dim": dim},
    )


def _load(facts: float, dim: int) -> float:
    return float(facts * np.log(facts) / dim**2)


def _half_by_stretch(
    dim: int, cells: Sequence[tuple[int, Cell]], exact: float
) -> tuple[float, float, float]:
    """p of half recall and its 95 % interval: share(p) = law(p/c) with c fitted, half at c `exact`.

    Weighted least squares around c = 1, one Gauss-Newton step from a grid's best c.
    """
    size = dim * dim
    share = np.array([float(cell.mean[0]) for _, cell in cells])
    error = np.array([float(cell.error[0]) for _, cell in cells])
    facts = np.array([float(p) for p, _ in cells])
    if not (error > 0.0).all():
        raise InvalidInput(
            "all instances of a load recall the same share of facts, so the half point has no "
            "error; choose loads where recall is neither full nor nil"
        )

    def law(c: float) -> NDArray[np.float64]:
        # At p/c facts with the competitors of p: the noise is what is stretched.
        return np.array([noisy_recall(size, int(p), int(p) - 1, c**-0.5) for p in facts])

    grid = np.linspace(0.7, 1.4, 29)
    best = float(grid[np.argmin([(((share - law(c)) / error) ** 2).sum() for c in grid])])
    slope = (law(best + 0.01) - law(best - 0.01)) / 0.02
    information = float(((slope / error) ** 2).sum())
    c = best + float((slope * (share - law(best)) / error**2).sum()) / information
    half = 1.96 / np.sqrt(information)
    return c * exact, (c - half) * exact, (c + half) * exact


def plot_hebbian(check: Check) -> Figure:
    """Share of recalled facts against p: exact law and large-d limit as lines, points on top."""
    figure, axes = new_figure()
    measured = check.select("simulation")
    dim = int(check.settings["dim"])
    first, last = measured[0]["facts"], measured[-1]["facts"]
    grid = np.unique(np.linspace(max(2, 0.6 * first), 1.1 * last, 60).astype(int)).tolist()
    exact = [hebbian_recall(dim * dim, p, p - 1) for p in grid]
    limit = [hebbian_recall_limit(float(np.sqrt(p)) / dim, p - 1) for p in grid]
    theory_line(axes, grid, exact, series=0, label="exact at finite $d$, $p$")
    theory_line(axes, grid, limit, series=5, label=r"large-$d$ law $\int Dz\,\Phi(1/\sigma+z)^M$")
    simulation_points(
        axes,
        [r["facts"] for r in measured],
        [r["accuracy"] for r in measured],
        [r["low"] for r in measured],
        [r["high"] for r in measured],
        series=0,
        label="Gaussian problem, measured",
    )
    axes.set_ylim(0, 1.03)
    label_axes(
        axes, "facts $p$", "share of facts recalled", title=f"$d={dim}$", legend="upper right"
    )
    return figure


def plot_every(check: Check, typical: Check | None = None) -> Figure:
    """P(all facts recalled) against p: exact law and points; the typical law beside it."""
    figure, axes = new_figure()
    dim = int(check.settings["dim"])
    measured = check.select("simulation")
    last = max(r["facts"] for r in measured)
    grid = np.unique(np.linspace(2, 1.25 * last, 24).round().astype(int)).tolist()
    every = [hebbian_every_recall(dim * dim, p, p - 1) for p in grid]
    theory_line(axes, grid, every, series=0, label="every fact, exact")
    simulation_points(
        axes,
        [r["facts"] for r in measured],
        [r["probability"] for r in measured],
        [r["low"] for r in measured],
        [r["high"] for r in measured],
        series=0,
        label="every fact, measured",
    )
    if typical is not None:
        rows = typical.select("simulation")
        end = max(r["facts"] for r in rows)
        wide = np.unique(np.linspace(2, 1.05 * end, 60).astype(int)).tolist()
        theory_line(
            axes,
            wide,
            [hebbian_recall(dim * dim, p, p - 1) for p in wide],
            series=1,
            label="typical fact, exact",
        )
        simulation_points(
            axes,
            [r["facts"] for r in rows],
            [r["accuracy"] for r in rows],
            [r["low"] for r in rows],
            [r["high"] for r in rows],
            series=1,
            label="typical fact, measured",
        )
    axes.set_ylim(-0.03, 1.03)
    label_axes(axes, "facts $p$", "recall", title=f"$d={dim}$, Hebb", legend="upper right")
    return figure


def _check_sizes(**sizes: int) -> None:
    for name, value in sizes.items():
        if value < 1:
            raise InvalidInput(f"{name} is {value}; it must be at least 1; give a larger number")
