"""One line a size: how many instances were separable, what the methods recalled."""

from __future__ import annotations

import math
from typing import Any

from validate.checks.statistics import clopper_pearson
from validate.embeddings import parse_ensemble
from validate.predictions import predictions
from validate.sampler.overlap import R_HAT_ALLOWED


def summary(frame: Any) -> list[dict[str, Any]]:
    """Counts of each (dim, facts) of a frame of one problem and method.

    `low`, `high`: exact 95 % interval of the probability that an instance is separable (for a
    learning rule: that the rule recalls every fact), with unproved instances counted both ways;
    `accuracy` and `overlap`: means over the instances that have one, `overlap_stderr` the standard
    error of that mean over instances; `unconverged` counts the instances whose chains disagree
    (R-hat above 1.05). `theory`: what `validate.predictions` says of this size, value by quantity,
    and `law`: for which problem.
    """
    rows = []
    for (dim, facts), group in frame.groupby(["dim", "facts"], sort=False):
        count = {v: int((group["verdict"] == v).sum()) for v in ("separable", "not_separable")}
        n, yes = len(group), count["separable"]
        undecided = doubtful = n - sum(count.values())
        if group["method"].iloc[0] not in ("exact", "sample"):
            # A rule that fails proves nothing about the instance, but it has failed.
            doubtful = int(((group["verdict"] == "undecided") & (group["accuracy"] == 1.0)).sum())
        row: dict[str, Any] = {
            "dim": int(dim),
            "facts": int(facts),
            "load": float(group["load"].iloc[0]),
            "instances": n,
            **count,
            "undecided": undecided,
            "low": clopper_pearson(yes, n)[0],
            "high": clopper_pearson(yes + doubtful, n)[1],
        }
        for name in ("accuracy", "overlap"):
            if name in group:
                values = group[name].dropna().tolist()
                row[name] = math.fsum(values) / len(values) if values else None
        if "r_hat" in group:
            row["unconverged"] = int((group["r_hat"] > R_HAT_ALLOWED).sum())
        if "overlap" in group and group["overlap"].count() > 1:
            row["overlap_stderr"] = float(group["overlap"].sem())
        found = predictions(
            str(group["problem"].iloc[0]),
            str(group["method"].iloc[0]),
            dim=int(dim),
            facts=int(facts),
            competitors=int(group["competitors"].iloc[0]),
            dim_out=int(group["dim_out"].iloc[0]),
            ensemble=parse_ensemble(str(group["ensemble"].iloc[0])).name,
        )
        row["theory"] = {p.quantity: p.value for p in found}
        row["law"] = "; ".join(dict.fromkeys(p.law for p in found)) or None
        rows.append(row)
    return rows
