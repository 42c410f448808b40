"""Section "derivation": free entropy, capacity and scaling limit, step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from replica.catalogue import model
from validate.checks.units import Unit
from validate.report.model import Section


@dataclass(frozen=True)
class Sizes:
    """Which model of the catalogue is derived."""

    prior: str = "spherical"
    criterion: str = "top_one"


SIZES = {"quick": Sizes(), "paper": Sizes()}


def units(sizes: Sizes, seed: int) -> list[Unit]:
    """No experiment belongs to this section."""
    return []


def build(sizes: Sizes, seed: int, answers: list[Any]) -> Section:
    """The derivation as the symbolic layer carries it out now."""
    return Section(
        identifier="derivation",
        title="Derivation",
        introduction="From the replicated action to the capacity. Every line is the output of an "
        "operation on expressions, named under it; nothing is typed in. Wide formulas scroll.",
        derivation=model(sizes.prior, sizes.criterion).derivation,
    )
