"""The parts of a report in their order on the page; adding one is one name here and one module.

A part NAME is the module `validate.report.sections_NAME` with

    SIZES     {"quick": sizes, "paper": sizes}: a frozen dataclass, everything that sets its cost
    units     units(sizes, seed) -> list of `Unit`: what is to be measured
    build     build(sizes, seed, answers) -> `Section`, from the answers in the order of the units

and, where it applies,

    curves    curves(sizes) -> dimensions whose exact success curves it needs
    prepare   prepare(sizes, context) -> sizes, with what the reader gave
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

from replica.errors import InvalidInput
from validate.checks.units import Unit
from validate.report.model import Section
from validate.store import Store

PARTS = (
    "thresholds",
    "derivation",
    "cone",
    "ladder",
    "equivalence",
    "universality",
    "thresholds_low_rank",
    "listwise",
    "overlap",
    "scores",
    "spectra",
    "rules",
    "trained",
    "embeddings",
)


@dataclass(frozen=True)
class Context:
    """What the reader gave: a file with `embeddings`, and a `store` that may hold a sweep."""

    embeddings: Path
    store: Store | None = None


class Part(Protocol):
    """One section of the report (see the head of this module)."""

    SIZES: dict[str, Any]

    def units(self, sizes: Any, seed: int) -> list[Unit]:
        """What is to be measured."""
        ...

    def build(self, sizes: Any, seed: int, answers: list[Any]) -> Section:
        """The section, from the answers in the order of the units."""
        ...


def part(name: str) -> Part:
    """The part `name`; refused with one sentence if there is none of that name.

    >>> sorted(part("thresholds").SIZES)
    ['paper', 'quick']
    """
    if name not in PARTS:
        raise InvalidInput(
            f"the part of the report is {name!r}; it must be one of {', '.join(PARTS)}; choose one"
        )
    return cast(Part, import_module(f"validate.report.sections_{name}"))


def curves_needed(name: str, sizes: Any) -> list[int]:
    """Dimensions whose exact success curves the part needs.

    >>> curves_needed("ladder", part("ladder").SIZES["quick"])
    [10, 20]
    """
    curves = getattr(part(name), "curves", None)
    return [] if curves is None else list(curves(sizes))


def prepared(name: str, sizes: Any, context: Context) -> Any:
    """The sizes of a part with what the reader gave, for parts that ask for it."""
    prepare = getattr(part(name), "prepare", None)
    return sizes if prepare is None else prepare(sizes, context)
