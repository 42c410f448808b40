"""Exact recall of one-step memories at finite d: Hebbian sum and pseudo-inverse.

Decoupled problem, Gaussian embeddings. The answer w = W e_mu = sum_nu H_mu,nu u_nu has i.i.d.
components, jointly Gaussian with those of u_mu. For the pseudo-inverse H is the projection on the
space of the inputs; for Hebb H_mu,nu = e_mu . e_nu, up to a factor that recall does not see. In
both cases E[u_mu | w] = (h/c) w with one number h in (0, 1], and

    target score / |w| = sqrt(h) chi_d + sqrt(1 - h) z,      competitor / |w| = standard normal,

    P(recall) = E Phi( sqrt(h) chi_d + sqrt(1 - h) z )^M,    h ~ Beta(d/2, (p - 1)/2)  for Hebb,
                                                             h ~ Beta(d/2, (p - d)/2)  for p > d,
                                                             h = 1  for p <= d (pseudo-inverse).

Gaussian problem: the pseudo-inverse gives every target the score 1 and has |W|^2 = p/chi^2_{N-p+1},
so P(recall) = E Phi(chi_{N-p+1}/sqrt(p))^M; Hebb is in `hebbian`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from replica.errors import InvalidInput
from validate.checks.base import Check, Record
from validate.checks.finite_size import Cell, squares_test, summarise
from validate.checks.hebbian import noisy_recall

RULES = ("hebbian", "pseudo_inverse")
NAMES = {"hebbian": "Hebb", "pseudo_inverse": "pseudo-inverse", "adam": "Adam"}
KIND_NAMES = {"gaussian": "Gaussian", "decoupled": "decoupled", "original": "original"}
Floats = NDArray[np.float64]


@lru_cache(maxsize=4096)
def rule_recall(
    kind: str, rule: str, dim: int, facts: int, competitors: int, *, noise: float = 1.0
) -> float:
    """P(a fact is recalled) by the exact law above; `noise` > 1 divides the target's lead.

    `kind` "gaussian" or "decoupled". For the original problem, whose competitors enter W, the
    decoupled law is an approximation. Raises `InvalidInput` for other names, sizes below 1, or a
    Gaussian pseudo-inverse with p > d^2.

    >>> round(rule_recall("decoupled", "pseudo_inverse", 12, 12, 11), 4)  # p = d: E Phi(chi_d)^11
    0.9763
    """
    if kind not in ("gaussian", "decoupled") or rule not in RULES:
        raise InvalidInput(
            f"the law of {rule!r} in the {kind!r} problem is not known exactly; it must be "
            "hebbian or pseudo_inverse in the gaussian or decoupled problem; choose such"
        )
    if min(dim, facts, competitors) < 1:
        raise InvalidInput(
            f"the sizes are d = {dim}, p = {facts}, M = {competitors}; each must be at least 1; "
            "give larger numbers"
        )
    if kind == "gaussian":
        if rule == "hebbian":
            return noisy_recall(dim * dim, facts, competitors, noise)
        freedom = dim * dim - facts + 1
        if freedom < 1:
            raise InvalidInput(
                f"facts is {facts}; the Gaussian pseudo-inverse needs p <= d^2 = {dim * dim}; "
                "give fewer facts"
            )
        chi, weight = _grid(stats.chi(freedom), 401)
        power = competitors * special.log_ndtr(chi / np.sqrt(facts) / noise)
        return float(weight @ np.exp(power))
    other = (facts - 1) / 2 if rule == "hebbian" else (facts - dim) / 2
    chi, weight = _grid(stats.chi(dim), 49)
    if other <= 0:
        return float(weight @ np.exp(competitors * special.log_ndtr(chi / noise)))
    node, mass = special.roots_legendre(40)
    level = stats.beta(dim / 2, other)
    # Gauss-Legendre over all but 1e-12 of the law of h = sin^2(angle): the density
    # sin^(d-1) cos^(2 other - 1) is smooth also where that of h is singular (other = 1/2, d = 1).
    low, high = (
        np.arctan2(np.sqrt(h), np.sqrt(1.0 - h)) for h in (level.ppf(1e-12), level.isf(1e-12))
    )
    angle = low + (high - low) * (node + 1.0) / 2.0
    h = np.sin(angle) ** 2
    log_density = (dim - 1) * np.log(np.sin(angle)) + (2 * other - 1) * np.log(np.cos(angle))
    share = np.exp(log_density - log_density.max()) * mass
    share /= share.sum()
    z = np.linspace(-8.5, 8.5, 121)
    dz = np.exp(-z * z / 2.0) * (z[1] - z[0]) / np.sqrt(2.0 * np.pi)
    total = 0.0
    for value, part in zip(h, share, strict=True):
        lead = np.sqrt(value) * chi / noise
        rest = np.sqrt(1.0 - value) * z
        total += part * float(
            weight @ (np.exp(competitors * special.log_ndtr(lead[:, None] + rest)) @ dz)
        )
    return float(total)


def _grid(law: Any, nodes: int) -> tuple[Floats, Floats]:
    """Gauss-Legendre nodes of a chi law within 9 deviations of its mean, weights of sum 1."""
    centre, spread = float(law.mean()), float(law.std())
    low, high = max(0.0, centre - 9.0 * spread), centre + 9.0 * spread
    node, mass = special.roots_legendre(nodes)
    x = low + (high - low) * (node + 1.0) / 2.0
    weight = law.pdf(x) * mass
    return x, np.asarray(weight / weight.sum())


def measure_rules(
    kind: str, dim: int, facts: int, count: int, seed: Sequence[int]
) -> dict[str, Any]:
    """`summarise` of the shares of facts recalled by `RULES` over instances with seeds (*seed, i).

    M = p - 1.
    """
    from validate.problems import make_problem
    from validate.solvers.hebbian import hebbian
    from validate.solvers.pseudo_inverse import pseudo_inverse

    rows = []
    for i in range(count):
        problem = make_problem(kind, dim=dim, facts=facts, seed=(*seed, i))
        rows.append([hebbian(problem).accuracy, pseudo_inverse(problem).accuracy])
    return summarise(rows)


def check_rule(
    kind: str,
    rule: str,
    dim: int,
    cells: Sequence[tuple[int, Cell]],
    *,
    seed: int,
    noise: float = 1.05,
    nulls: int = 100_000,
) -> Check:
    """Hypothesis: at every load the expected share of recalled facts is the exact one.

    `cells`: number of facts and pooled answers of `measure_rules`. Student statistics of instance
    means, sum of squares against a simulated null; loads where all instances agree carry no error
    estimate and are refused. Named alternative: the noise of the target is `noise` times as large.
    """
    column = RULES.index(rule)
    table: list[Record] = []
    t, shifts, freedom = [], [], []
    for p, cell in cells:
        exact = rule_recall(kind, rule, dim, p, p - 1)
        wrong = rule_recall(kind, rule, dim, p, p - 1, noise=noise)
        mean, error = float(cell.mean[column]), float(cell.error[column])
        if error == 0.0:
            raise InvalidInput(
                f"all {cell.count} instances at p = {p} recall the same share of facts, which "
                "leaves no error estimate; choose loads where recall is neither full nor nil"
            )
        t.append((mean - exact) / error)
        shifts.append((wrong - exact) / error)
        freedom.append(cell.count - 1)
        half = float(stats.t.ppf(0.975, cell.count - 1)) * error
        key = {"rule": rule, "kind": kind, "dim": dim, "facts": p}
        table += [
            {"source": "theory", **key, "accuracy": exact},
            {
                "source": "simulation",
                **key,
                "accuracy": mean,
                "low": mean - half,
                "high": mean + half,
                "t": t[-1],
                "instances": cell.count,
            },
        ]
    test = squares_test(t, shifts, freedom, seed=(seed, 61, column), samples=nulls)
    middle = len(cells) // 2
    theory, simulation = table[2 * middle], table[2 * middle + 1]
    return Check(
        name=f"{rule}_{kind}_d{dim}",
        claim=f"{KIND_NAMES[kind].capitalize()} problem, d = {dim}: the {NAMES[rule]} memory "
        "recalls a fact with the exact finite-size probability.",
        source="answer and target are jointly Gaussian; law as derived in the code",
        quantity=f"share of facts recalled at p = {cells[middle][0]}",
        predicted=f"{theory['accuracy']:.4f}",
        measured=f"{simulation['accuracy']:.4f}",
        interval=f"[{simulation['low']:.4f}, {simulation['high']:.4f}]",
        sample_size=f"{sum(cell.count for _, cell in cells)} instances at {len(cells)} loads",
        hypothesis="the expected share of recalled facts is the exact one at every load",
        p_value=test.p_value,
        alternative=f"noise of the target {100 * (noise - 1):.0f} % larger",
        power_at=test.power,
        table=table,
        settings={"dim": dim, "kind": kind, "facts": [p for p, _ in cells], "seed": seed},
    )
