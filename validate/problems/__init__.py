"""The recall problems: original, decoupled, Gaussian; random instances and the user's own."""

from __future__ import annotations

from validate.problems.base import Problem
from validate.problems.decoupled import DecoupledProblem
from validate.problems.files import Embeddings, read_embeddings
from validate.problems.gaussian import GaussianProblem
from validate.problems.make import KINDS, make_problem
from validate.problems.original import OriginalProblem

__all__ = [
    "KINDS",
    "DecoupledProblem",
    "Embeddings",
    "GaussianProblem",
    "OriginalProblem",
    "Problem",
    "make_problem",
    "read_embeddings",
]
