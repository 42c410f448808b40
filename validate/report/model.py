"""What a report holds, before any format is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from replica.derivation import Derivation
from validate.checks.base import Check


@dataclass(frozen=True)
class Figure:
    """A drawn figure: `svg` inline, `title` and `description` for readers without the picture."""

    identifier: str
    title: str
    description: str
    caption: str
    svg: str


@dataclass(frozen=True)
class Table:
    """A table of strings with one header; `note` says what the numbers mean.

    `folded` puts it behind its title, as happens by itself to a long table and to one whose figure
    is shown; columns numbered in `secondary` (from 0) are left out on a narrow screen.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    folded: bool = False
    secondary: Sequence[int] = ()


@dataclass
class Section:
    """A heading with an introduction, then figures, derivation, tables, checks.

    `settings` are filled in by the run: every size of the section's experiments. `key_steps` are
    the titles of the derivation's steps that stay open on screen; without them all do.
    """

    identifier: str
    title: str
    introduction: str
    derivation: Derivation | None = None
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    key_steps: Sequence[str] = ()

    def folds(self, title: str) -> bool:
        """Whether the derivation's step of this title is folded away on screen."""
        return bool(self.key_steps) and title not in self.key_steps


@dataclass(frozen=True)
class Cost:
    """What a section took: units and how many of them a store held, processor seconds of all its
    units when they were run, and seconds of its theory, tests and figures in this run."""

    section: str
    units: int
    kept: int
    unit_seconds: float
    build_seconds: float

    @property
    def times(self) -> tuple[float, float]:
        """Seconds of the units and of what is made from them."""
        return self.unit_seconds, self.build_seconds


@dataclass
class Report:
    """The whole report: sections, and how they came about."""

    title: str
    answer: str
    false_alarm_rate: float
    sections: list[Section]
    settings: dict[str, Any]
    versions: dict[str, str]
    costs: list[Cost]
    seconds: dict[str, float]
    created: str

    @property
    def checks(self) -> list[Check]:
        """Every check, in order of appearance."""
        return [check for section in self.sections for check in section.checks]

    @property
    def tested(self) -> int:
        """Number of claims that carry a p-value."""
        return sum(check.p_value is not None for check in self.checks)

    def count(self, verdict: str) -> int:
        """Number of checks with this verdict."""
        return sum(check.verdict == verdict for check in self.checks)

    def to_json(self) -> dict[str, Any]:
        """Everything as JSON-ready data; figures by their title and description only."""
        return {
            "title": self.title,
            "answer": self.answer,
            "created": self.created,
            "false_alarm_rate": self.false_alarm_rate,
            "checks": [check.to_json() for check in self.checks],
            "sections": [
                {
                    "identifier": section.identifier,
                    "title": section.title,
                    "introduction": section.introduction,
                    "derivation": section.derivation.to_json() if section.derivation else None,
                    "tables": [
                        {
                            "title": table.title,
                            "header": list(table.header),
                            "rows": [list(row) for row in table.rows],
                            "note": table.note,
                        }
                        for table in section.tables
                    ],
                    "figures": [
                        {"title": f.title, "description": f.description, "caption": f.caption}
                        for f in section.figures
                    ],
                    "checks": [check.name for check in section.checks],
                    "settings": section.settings,
                }
                for section in self.sections
            ],
            "settings": self.settings,
            "versions": self.versions,
            "costs": [asdict(cost) for cost in self.costs],
            "seconds": self.seconds,
        }
