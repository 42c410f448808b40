"""Hebb, pseudo-inverse, Adam and the exact solver on the same instances: accuracy against load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from replica.errors import InvalidInput
from validate.checks.base import Check, Record
from validate.checks.rule_laws import NAMES, RULES, rule_recall
from validate.checks.statistics import clopper_pearson, mean_interval
from validate.plotting import label_axes, new_figure, note, simulation_points, theory_line

Outcome = tuple[int, str, dict[str, float]]


def learn_one(kind: str, dim: int, facts: int, seed: tuple[int, ...]) -> Outcome:
    """Facts, certified verdict and accuracy of every rule on one instance, M = p - 1."""
    from validate.checks.ladder import certified_verdicts
    from validate.problems import make_problem
    from validate.solvers.adam import adam
    from validate.solvers.hebbian import hebbian
    from validate.solvers.pseudo_inverse import pseudo_inverse

    problem = make_problem(kind, dim=dim, facts=facts, seed=seed)
    return (
        facts,
        certified_verdicts(kind, dim, facts, [seed])[0],
        {
            "hebbian": hebbian(problem).accuracy,
            "pseudo_inverse": pseudo_inverse(problem).accuracy,
            "adam": adam(problem).accuracy,
        },
    )


def measure_learning(
    kind: str, dim: int, facts: int, count: int, seed: Sequence[int]
) -> list[list[Any]]:
    """[verdict, accuracy of Hebb, pseudo-inverse, Adam] of instances with seeds (*seed, i)."""
    found = []
    for i in range(count):
        _, verdict, shares = learn_one(kind, dim, facts, (*seed, i))
        found.append([verdict, *(shares[rule] for rule in (*RULES, "adam"))])
    return found


def outcomes_of(facts: int, answers: Sequence[Sequence[Any]]) -> list[Outcome]:
    """The answers of `measure_learning` at one load as outcomes.

    >>> outcomes_of(5, [[["separable", 0.5, 0.75, 1.0]]])
    [(5, 'separable', {'hebbian': 0.5, 'pseudo_inverse': 0.75, 'adam': 1.0})]
    """
    rules = (*RULES, "adam")
    return [
        (facts, str(row[0]), dict(zip(rules, map(float, row[1:]), strict=True)))
        for answer in answers
        for row in answer
    ]


def check_learning(
    dim: int, outcomes: Sequence[Outcome], critical_facts: float, *, kind: str = "original"
) -> Check:
    """Does Adam find the perfect memories that exist, and none that cannot?

    Cross-entropy is convex and falls to zero exactly along perfect memories, so gradient descent
    finds one wherever it exists, given time; recalling every fact of an instance that is proved
    not separable would refute the certificate. Measured: the share of provably separable instances
    that Adam learned perfectly within its step limit, with the exact 95 % interval. The table holds
    the accuracy of every rule with the 95 % interval of its mean; the laws of Hebb and
    pseudo-inverse are exact in the Gaussian and the decoupled problem (shown for the original one
    as the decoupled law).
    """
    if not outcomes:
        raise InvalidInput("no outcomes were given; train on at least one instance")
    rules = [rule for rule in (*RULES, "adam") if rule in outcomes[0][2]]
    table: list[Record] = []
    for p in sorted({o[0] for o in outcomes}):
        at = [o for o in outcomes if o[0] == p]
        verdicts = [o[1] for o in at]
        for rule in rules:
            if rule in RULES:
                law = _law(kind, rule, dim, p)
                table.append({"source": "theory", "rule": rule, "facts": p, "accuracy": law})
            shares = [o[2][rule] for o in at]
            mean, low, high = (
                mean_interval(shares) if len(shares) > 1 else (shares[0], shares[0], shares[0])
            )
            table.append(
                {
                    "source": "simulation",
                    "rule": rule,
                    "facts": p,
                    "accuracy": mean,
                    "low": max(0.0, low),
                    "high": min(1.0, high),
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
        name=f"adam_d{dim}" if kind == "original" else f"adam_{kind}_d{dim}",
        claim=f"{kind.capitalize()} problem, d = {dim}: gradient descent (Adam on cross-entropy) "
        "finds a perfect memory where one exists, and never where none does.",
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
        settings={"dim": dim, "kind": kind, "critical facts": round(critical_facts, 2)},
    )


def _law(kind: str, rule: str, dim: int, facts: int) -> float:
    """The exact law; the decoupled one stands in for the original problem."""
    known = "gaussian" if kind == "gaussian" else "decoupled"
    if known == "gaussian" and rule == "pseudo_inverse" and facts > dim * dim:
        return 0.0
    return rule_recall(known, rule, dim, facts, facts - 1)


def plot_learning(check: Check, adam_law: Mapping[int, float] | None = None) -> Figure:
    """Accuracy against p: laws of Hebb and pseudo-inverse as lines, means of all rules as points.

    `adam_law` (facts -> accuracy) draws a prediction for the trained memory where one is known.
    """
    figure, axes = new_figure()
    dim, kind = int(check.settings["dim"]), str(check.settings.get("kind", "original"))
    measured = check.select("simulation")
    facts = [r["facts"] for r in measured]
    grid = np.unique(np.linspace(min(facts), max(facts), 24).round().astype(int)).tolist()
    rules = list(dict.fromkeys(r["rule"] for r in measured))
    series = {"adam": 2, "hebbian": 1, "pseudo_inverse": 0}
    note_law = "decoupled law" if kind == "original" else "exact law"
    for rule in rules:
        if rule in RULES:
            theory_line(
                axes,
                grid,
                [_law(kind, rule, dim, p) for p in grid],
                series=series[rule],
                label=f"{NAMES[rule]}, {note_law}",
            )
    if adam_law is not None:
        theory_line(
            axes,
            sorted(adam_law),
            [adam_law[p] for p in sorted(adam_law)],
            series=series["adam"],
            label="Adam, trained-memory theory",
        )
    for rule in reversed(rules):
        rows = check.select("simulation", rule=rule)
        simulation_points(
            axes,
            [r["facts"] for r in rows],
            [r["accuracy"] for r in rows],
            [r["low"] for r in rows],
            [r["high"] for r in rows],
            series=series[rule],
            label=f"{NAMES[rule]}, measured",
        )
    note(axes, float(check.settings["critical facts"]), r"$p\,\delta=d^2$", height=0.62)
    axes.set_ylim(0, 1.06)
    title = f"$d={dim}$, {kind} problem"
    label_axes(axes, "facts $p$", "share of facts recalled", title=title, legend="upper right")
    return figure
