"""Sweeps: many cells of an experiment, on several processes, that survive being killed."""

from __future__ import annotations

from validate.sweep.cell import METHODS, Cell, Outcome, compute
from validate.sweep.code import code_version
from validate.sweep.plan import Plan, make_plan, parse_counts, parse_loads
from validate.sweep.results import export, results_frame
from validate.sweep.run import Status, run

__all__ = [
    "METHODS",
    "Cell",
    "Outcome",
    "Plan",
    "Status",
    "code_version",
    "compute",
    "export",
    "make_plan",
    "parse_counts",
    "parse_loads",
    "results_frame",
    "run",
]
