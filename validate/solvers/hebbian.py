"""The Hebbian memory W = sum_mu u_mu e_mu^T."""

from __future__ import annotations

from validate.problems import Problem
from validate.solvers.learned import Learned, Snapshot


def hebbian(problem: Problem) -> Learned:
    """W = sum over facts of the gradient of the target score: u_mu e_mu^T, or G_mu for Gaussian.

    Recall of a typical fact is lost near log p / (d_in d_out / p) = 1/2, of every fact near 1/8.
    Source: arXiv:2605.10795, section on the Hebbian rule.

    >>> from validate.problems import make_problem
    >>> hebbian(make_problem("original", dim=40, facts=3, seed=0)).accuracy
    1.0
    """
    W = problem.hebbian_memory()
    accuracy = problem.accuracy(W)
    history = [Snapshot(0, float("nan"), accuracy)]
    return Learned(W, accuracy, history, "the rule is one sum over facts and needs no iteration")
