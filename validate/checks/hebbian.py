"""Hebbian recall of a typical fact in the Gaussian problem: an exact finite-(d, p) law."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import special, stats

from replica.errors import InvalidInput
from validate.checks.base import Check, Record
from validate.checks.statistics import generator, mean_interval, monte_carlo_p_value
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
    _check_sizes(parameters=parameters, facts=facts, competitors=competitors)
    law = stats.chi(parameters)
    reach = 9.0
    centre, spread = float(law.mean()), float(law.std())
    norm = np.linspace(max(1e-9, centre - reach * spread), centre + reach * spread, 161)
    weight = law.pdf(norm) * (norm[1] - norm[0])
    return float(weight @ _typical(norm / np.sqrt(facts), 1.0 - 1.0 / facts, competitors))


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


def check_hebbian(
    dim: int,
    loads: Sequence[int],
    instances: int,
    *,
    seed: int,
    nulls: int = 20_000,
    progress: Callable[[], None] | None = None,
) -> Check:
    """Measured share of facts that the Hebbian memory recalls against the exact law.

    Facts of one instance share W, so the instance is the unit: at load i, t_i is the Student
    statistic of the instance shares against the exact mean; sum t_i^2 is compared with simulated
    sums of independent Student variables. The shares are averages over many facts, so the Student
    law holds well.
    """
    from validate.problems import make_problem

    _check_sizes(dim=dim, instances=instances - 1)
    table: list[Record] = []
    scores, shifts = [], []
    for p in loads:
        shares = np.empty(instances)
        for number in range(instances):
            problem = make_problem("gaussian", dim=dim, facts=p, seed=(seed, 21, p, number))
            shares[number] = problem.accuracy(problem.hebbian_memory())
            if progress is not None:
                progress()
        exact = hebbian_recall(dim * dim, p, p - 1)
        limit = hebbian_recall_limit(float(np.sqrt(p)) / dim, p - 1)
        wrong = hebbian_recall_limit(2.0 * float(np.sqrt(p)) / dim, p - 1)
        mean, low, high = mean_interval(shares)
        error = float(shares.std(ddof=1)) / np.sqrt(instances)
        if error == 0.0:
            raise InvalidInput(
                f"all {instances} instances at p = {p} recall the same share of facts, which "
                "leaves no error estimate; choose loads where recall is neither full nor nil"
            )
        scores.append((mean - exact) / error)
        shifts.append((wrong - exact) / error)
        table += [
            {"source": "theory", "facts": p, "accuracy": exact, "limit": limit, "dim": dim},
            {
                "source": "simulation",
                "facts": p,
                "accuracy": mean,
                "low": low,
                "high": high,
                "instances": instances,
                "dim": dim,
            },
        ]
    rng = generator(seed, 22)
    shape = (nulls, len(scores))
    student = rng.standard_t(instances - 1, shape)
    null = np.sort((student**2).sum(axis=1))
    drawn = ((rng.standard_t(instances - 1, shape) + np.asarray(shifts)) ** 2).sum(axis=1)

    def power_at(level: float) -> float:
        rank = int(np.floor(level * (1 + nulls)))
        return float(np.mean(drawn >= null[-rank])) if rank else 0.0

    middle = len(loads) // 2
    theory, simulation = table[2 * middle], table[2 * middle + 1]
    return Check(
        name=f"hebbian_d{dim}",
        claim=f"Gaussian problem, d = {dim}: the Hebbian memory recalls a typical fact with "
        "probability E Φ(χ_N/√p + √(1−1/p) z)^M, N = d².",
        source="arXiv:2605.10795, Hebbian rule; finite-d law as derived in the code",
        quantity=f"share of facts recalled at p = {loads[middle]}",
        predicted=f"{theory['accuracy']:.4f}",
        measured=f"{simulation['accuracy']:.4f}",
        interval=f"[{simulation['low']:.4f}, {simulation['high']:.4f}]",
        sample_size=f"{instances} instances at each of {len(loads)} loads",
        hypothesis="the expected share of recalled facts is the exact one at every load",
        p_value=monte_carlo_p_value(float(np.sum(np.square(scores))), null),
        alternative="noise twice as large (the all-facts threshold 1/8 in place of 1/2)",
        power_at=power_at,
        table=table,
        settings={"dim": dim, "facts": list(loads), "instances": instances, "seed": seed},
    )


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


def _check_sizes(**sizes: int) -> None:
    for name, value in sizes.items():
        if value < 1:
            raise InvalidInput(f"{name} is {value}; it must be at least 1; give a larger number")
