"""Section "derivation": free entropy, capacity and scaling limit, step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from replica.catalogue import model
from validate.checks.units import Unit
from validate.report.model import Section

KEY_STEPS = (
    "Replicated action per weight",
    "Entropic term",
    "Free entropy",
    "Saddle-point equation",
    "Replicon stability",
    "Law of the number of active competitors",
    "Statistical dimension: mean number of active competitors",
    "Capacity",
    "Free entropy in the scaling limit",
    "Overlap",
    "Critical load",
)
"""The steps that a reader sees without unfolding the others."""


@dataclass(frozen=True)
class Sizes:
    """Which model of the catalogue is derived, and at which margin."""

    prior: str = "spherical"
    criterion: str = "top_one"
    margin: int = 0


SIZES = {"quick": Sizes(), "paper": Sizes()}


def units(sizes: Sizes, seed: int) -> list[Unit]:
    """No experiment belongs to this section."""
    return []


def build(sizes: Sizes, seed: int, answers: list[Any]) -> Section:
    """The derivation as the symbolic layer carries it out now."""
    return Section(
        identifier="derivation",
        title="Derivation",
        introduction="From the replicated action to the capacity, at margin "
        f"{sizes.margin}. Every line is the output of an operation on expressions, named under it, "
        "but for three inputs that their lines state: the replicated action itself, Laplace's "
        "method (V → 0) and the Gaussian tails at the scale of the largest competitor. "
        "factcap derive gives the same at a symbolic margin.",
        derivation=model(sizes.prior, sizes.criterion, margin=sizes.margin).derivation,
        key_steps=KEY_STEPS,
    )
