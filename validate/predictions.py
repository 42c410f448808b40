"""What theory says about one cell of an experiment, to be printed beside what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from validate.checks.hebbian import hebbian_every_recall
from validate.checks.rule_laws import RULES, rule_recall

OVERLAP_ACCURACY = 2e-3
LARGEST_OVERLAP_PROBLEM = 256
"""Most competitors for which the saddle point is computed here; beyond, it takes minutes."""


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
    - sample: the overlap of the saddle point at finite p, for up to 256 competitors.

    For the original problem these are the values of the decoupled or Gaussian problem.

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
    if method == "exact":
        from numerics.cone import success_probability

        found = success_probability(dim, facts, others, dim_out=side, digits=10)
        return (Prediction("separable", float(found.to_float_lossy()), "Gaussian problem, exact"),)
    if method == "sample" and others <= LARGEST_OVERLAP_PROBLEM:
        from validate.checks.overlap import predicted_overlap

        value, _ = predicted_overlap(facts / (dim * side), others, OVERLAP_ACCURACY)
        return (Prediction("overlap", value, "saddle point at this p and M, d to infinity"),)
    gaussian = problem == "gaussian"
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
