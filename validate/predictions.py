"""What theory says about one cell of an experiment, to be printed beside what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from validate.checks.hebbian import hebbian_every_recall
from validate.checks.rule_laws import RULES, rule_recall

OVERLAP_ACCURACY = 2e-3
LARGEST_OVERLAP_PROBLEM = 256
"""Most competitors for which the saddle point is computed here; beyond, it takes minutes."""


NEAR_CAPACITY = 0.98
"""Largest p delta/d^2 at which the overlap is computed: at 1 the saddle point ends at q = 1."""
MOST_FACTS = 100_000
"""Most facts for which P(separable) is computed here; beyond, it can take minutes."""


@dataclass(frozen=True)
class Prediction:
    """`value` of a `quantity` and whose `law` it is.

    `quantity`: "separable" (for a learning rule: it recalls every fact), "accuracy" or "overlap".
    """

    quantity: str
    value: float
    law: str


@lru_cache(maxsize=1024)
def predictions(
    problem: str,
    method: str,
    *,
    dim: int,
    facts: int,
    competitors: int | None = None,
    dim_out: int | None = None,
    ensemble: str = "gaussian",
) -> tuple[Prediction, ...]:
    """The theory of one cell; empty where there is none for this method, size or ensemble.

    - exact: P(separable) of the Gaussian problem, exact at finite sizes (`numerics.cone`);
    - hebbian, pseudo_inverse: the probability that a fact is recalled, exact for the Gaussian and
      decoupled problems with d_out = d and Gaussian embeddings (`checks.rule_laws`);
    - hebbian, Gaussian problem: the probability that all facts are recalled, exact;
    - sample: besides P(separable) the overlap of the saddle point at finite p (d to infinity), for
      up to 256 competitors and loads at which that saddle point exists.

    Exact and sample: values of the Gaussian problem, whatever the problem, but none for correlated
    embeddings. Rules: those of the decoupled problem for the original one.

    >>> for found in predictions("original", "exact", dim=20, facts=87):
    ...     print(f"{found.quantity} {found.value:.4f} {found.law}")
    separable 0.4889 Gaussian problem, exact
    >>> predictions("original", "adam", dim=20, facts=87)
    ()
    """
    others = facts - 1 if competitors is None else competitors
    side = dim if dim_out is None else dim_out
    if facts < 1 or others < 1:
        return ()
    gaussian = problem == "gaussian"
    if method in ("exact", "sample"):
        if facts > MOST_FACTS or not (gaussian or ensemble != "correlated"):
            return ()
        from numerics.cone import success_probability

        ball = success_probability(dim, facts, others, dim_out=side, digits=10)
        value = float(ball.to_float_lossy())
        found = [Prediction("separable", value, "Gaussian problem, exact")]
        if method == "sample":
            found += _overlap(facts / (dim * side), others)
        return tuple(found)
    known = method in RULES and side == dim and (gaussian or ensemble == "gaussian")
    if not known or (gaussian and method == "pseudo_inverse" and facts > dim * dim):
        return ()
    kind = "gaussian" if gaussian else "decoupled"
    law = f"{'Gaussian' if gaussian else 'decoupled'} problem, exact"
    accuracy = Prediction("accuracy", rule_recall(kind, method, dim, facts, others), law)
    if not (gaussian and method == "hebbian"):
        return (accuracy,)
    every = hebbian_every_recall(dim * dim, facts, others)
    return (Prediction("separable", every, law), accuracy)


def _overlap(gamma: float, competitors: int) -> list[Prediction]:
    """The saddle-point overlap, if there is a saddle point (p delta < d^2) and it is cheap."""
    from numerics.cone import statistical_dimension
    from validate.checks.overlap import predicted_overlap

    if competitors > LARGEST_OVERLAP_PROBLEM:
        return []
    if gamma * float(statistical_dimension(competitors, 10).to_float_lossy()) >= NEAR_CAPACITY:
        return []
    value, _ = predicted_overlap(gamma, competitors, OVERLAP_ACCURACY)
    return [Prediction("overlap", value, "Gaussian problem, saddle point at this p, d to infinity")]
