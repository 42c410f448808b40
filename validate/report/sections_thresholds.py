"""Section "certified thresholds": by number of facts and by dimension. Nothing is measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numerics import cone
from validate.checks.theory_curve import leading_order_facts
from validate.checks.units import Unit
from validate.report.model import Section, Table
from validate.report.words import grouped


@dataclass(frozen=True)
class Sizes:
    """Rows of the two tables and the number of digits asked for."""

    facts: tuple[int, ...] = (10, 100, 10**3, 10**4, 10**5, 10**6, 10**10, 10**100)
    dims: tuple[int, ...] = (10, 20, 64, 128, 256, 512, 768, 1024, 4096, 12288)
    digits: int = 10


SIZES = {"quick": Sizes(), "paper": Sizes()}


def units(sizes: Sizes, seed: int) -> list[Unit]:
    """No experiment belongs to this section."""
    return []


def build(sizes: Sizes, seed: int, answers: list[Any]) -> Section:
    """Both tables, every digit proved."""
    by_facts = [
        (
            grouped(facts),
            cone.statistical_dimension(facts - 1, sizes.digits).to_string(sizes.digits),
            cone.critical_load(facts, digits=sizes.digits).to_string(sizes.digits),
            cone.facts_per_parameter(facts, digits=sizes.digits).to_string(sizes.digits),
        )
        for facts in sizes.facts
    ]
    by_dim = []
    for dim in sizes.dims:
        facts, leading = int(cone.critical_facts(dim)), leading_order_facts(dim)
        by_dim.append(
            (
                str(dim),
                grouped(dim * dim),
                grouped(facts),
                grouped(round(leading)),
                f"{facts / leading:.2f}",
            )
        )
    return Section(
        identifier="thresholds",
        title="How many facts fit: certified thresholds",
        introduction="A linear memory with d² weights recalls p random facts, all of them, up to "
        "p δ(p−1) = d², where δ(M) is the statistical dimension for M competitors. The critical "
        "load α_c(p) = log p / δ(p−1) tends to 1/2 only as log log p / log p: at every size in use "
        "the finite-p value is what counts.",
        tables=[
            Table(
                "By number of facts",
                ("facts p", "δ(p−1)", "critical load α_c(p)", "facts per weight 1/δ"),
                by_facts,
                f"Every printed digit is proved by ball arithmetic (up to {sizes.digits} asked).",
            ),
            Table(
                "By dimension",
                ("d", "weights d²", "most facts p_c", "p from α_c = 1/2", "ratio"),
                by_dim,
                "p_c: largest p with p δ(p−1) ≤ d², decided rigorously. Next to it, what the "
                "limit value α_c = 1/2 would say (p log p = d²/2), and by how much that is short.",
            ),
        ],
    )
