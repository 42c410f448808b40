"""Hebbian sum, Adam and the exact solver on the same instances of the original problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.figure import Figure

from replica.errors import InvalidInput
from validate.checks.base import Check, Record
from validate.checks.hebbian import hebbian_recall_limit
from validate.checks.statistics import clopper_pearson
from validate.plotting import label_axes, new_figure, note, simulation_points, theory_line

RULES = ("hebbian", "adam")
Outcome = tuple[int, str, dict[str, float]]


def learn_one(dim: int, facts: int, seed: tuple[int, ...], one_thread: bool = False) -> Outcome:
    """Facts, certified verdict and accuracy of every rule on one instance."""
    import torch

    from validate.checks.ladder import certified_verdicts
    from validate.problems import make_problem
    from validate.solvers.adam import adam
    from validate.solvers.hebbian import hebbian

    if one_thread:
        torch.set_num_threads(1)
    problem = make_problem("original", dim=dim, facts=facts, seed=seed)
    return (
        facts,
        certified_verdicts("original", dim, facts, [seed])[0],
        {"hebbian": hebbian(problem).accuracy, "adam": adam(problem).accuracy},
    )


def learn(
    dim: int,
    loads: Sequence[int],
    instances: int,
    *,
    seed: int,
    workers: int = 1,
    progress: Callable[[int], None] | None = None,
) -> list[Outcome]:
    """`learn_one` on `instances` instances at each load; instance i has seed (seed, 31, p, i)."""
    import joblib

    run = joblib.Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)
    outcomes = []
    for outcome in run(
        joblib.delayed(learn_one)(dim, p, (seed, 31, p, i), workers > 1)
        for p in sorted(loads, reverse=True)
        for i in range(instances)
    ):
        outcomes.append(outcome)
        if progress is not None:
            progress(outcome[0])
    return sorted(outcomes, key=lambda o: (o[0], o[1], sorted(o[2].items())))


def check_learning(dim: int, outcomes: Sequence[Outcome], critical_facts: float) -> Check:
    """Does Adam find the perfect memories that exist, and none that cannot?

    Cross-entropy is convex and falls to zero exactly along perfect memories, so gradient descent
    finds one wherever it exists, given time; recalling every fact of an instance that is proved
    not separable would refute the certificate. Measured: the share of provably separable instances
    that Adam learned perfectly within its step limit, with the exact 95 % interval.
    """
    if not outcomes:
        raise InvalidInput("no outcomes were given; train on at least one instance")
    table: list[Record] = []
    for p in sorted({o[0] for o in outcomes}):
        at = [o for o in outcomes if o[0] == p]
        verdicts = [o[1] for o in at]
        table.append(
            {
                "source": "theory",
                "rule": "hebbian",
                "facts": p,
                "accuracy": hebbian_recall_limit(float(np.sqrt(p)) / dim, p - 1),
            }
        )
        for rule in RULES:
            shares = [o[2][rule] for o in at]
            table.append(
                {
                    "source": "simulation",
                    "rule": rule,
                    "facts": p,
                    "accuracy": float(np.mean(shares)),
                    "low": min(shares),
                    "high": max(shares),
                    "perfect": sum(share == 1.0 for share in shares),
                    "separable": verdicts.count("separable"),
                    "undecided": verdicts.count("undecided"),
                    "instances": len(at),
                }
            )
    possible = [o for o in outcomes if o[1] == "separable"]
    found = sum(o[2]["adam"] == 1.0 for o in possible)
    impossible = [o for o in outcomes if o[1] == "not_separable"]
    contradictions = sum(max(o[2].values()) == 1.0 for o in impossible)
    low, high = clopper_pearson(found, len(possible)) if possible else (0.0, 1.0)
    return Check(
        name=f"adam_d{dim}",
        claim=f"Original problem, d = {dim}: gradient descent (Adam on cross-entropy) finds a "
        "perfect memory where one exists, and never where none does.",
        source="convexity of the cross-entropy; certificates of the exact solver",
        quantity="share of provably separable instances learned perfectly",
        predicted="1, given enough steps",
        measured=f"{found} of {len(possible)}",
        interval=f"[{low:.3f}, {high:.3f}]",
        sample_size=f"{len(outcomes)} instances, {len(possible)} proved separable, "
        f"{len(impossible)} proved not separable",
        undecided=sum(o[1] == "undecided" for o in outcomes),
        remark=f"On the {len(impossible)} instances proved not separable, a rule recalled every "
        f"fact {contradictions} times (any such case would refute the certificate).",
        refuted=contradictions > 0,
        table=table,
        settings={"dim": dim, "critical facts": round(critical_facts, 2)},
    )


def plot_learning(check: Check) -> Figure:
    """Accuracy against p: means of Adam and Hebb with their range over instances, law of Hebb."""
    figure, axes = new_figure()
    dim = int(check.settings["dim"])
    measured = check.select("simulation")
    facts = [r["facts"] for r in measured]
    grid = np.linspace(min(facts), max(facts), 80)
    law = [hebbian_recall_limit(float(np.sqrt(p)) / dim, round(p) - 1) for p in grid]
    theory_line(axes, grid.tolist(), law, series=1, label="Hebb, large-$d$ law")
    for rule, series, name in (("adam", 2, "Adam, measured"), ("hebbian", 1, "Hebb, measured")):
        rows = check.select("simulation", rule=rule)
        simulation_points(
            axes,
            [r["facts"] for r in rows],
            [r["accuracy"] for r in rows],
            [r["low"] for r in rows],
            [r["high"] for r in rows],
            series=series,
            label=name,
        )
    note(axes, float(check.settings["critical facts"]), r"$p\,\delta=d^2$", height=1.0)
    axes.set_ylim(0, 1.06)
    label_axes(
        axes, "facts $p$", "share of facts recalled", title=f"$d={dim}$", legend="lower left"
    )
    return figure
