"""The pseudo-inverse (projection) memory: least-squares association."""

from __future__ import annotations

import torch

from validate.problems import GaussianProblem, Problem
from validate.problems.decoupled import DecoupledProblem
from validate.problems.original import OriginalProblem
from validate.solvers.learned import Learned, Snapshot


def pseudo_inverse(problem: Problem) -> Learned:
    """W = U^T (E^+)^T: the least-norm minimiser of sum_mu |W e_mu - u_mu|^2.

    For the Gaussian problem, which has no output vectors, the analogue is the least-norm minimiser
    of sum_mu (<G_mu, W> - 1)^2 over the target matrices. For p <= d_in in general position
    W e_mu = u_mu, so that fact mu is recalled if u_mu . (u_mu - u_rho) > 0 for every rival.

    >>> from validate.problems import make_problem
    >>> pseudo_inverse(make_problem("original", dim=12, facts=12, seed=0)).accuracy
    1.0
    """
    if isinstance(problem, GaussianProblem):
        rows = problem.matrices[:, 0].flatten(1)
        W = (torch.linalg.pinv(rows) @ rows.new_ones(problem.facts)).view(
            problem.dim_out, problem.dim_in
        )
    elif isinstance(problem, OriginalProblem | DecoupledProblem):
        targets = problem.outputs
        if isinstance(problem, OriginalProblem):
            targets = targets[problem.targets]
        W = (torch.linalg.pinv(problem.inputs) @ targets).T
    else:
        raise TypeError(f"no pseudo-inverse for {type(problem).__name__}")
    accuracy = problem.accuracy(W)
    history = [Snapshot(0, float("nan"), accuracy)]
    return Learned(W, accuracy, history, "the rule is one linear solve and needs no iteration")
