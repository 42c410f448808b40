"""A check: one claim, tested. Tests, command line and report read the same object."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from replica.errors import InvalidInput
from validate.checks.statistics import holm

Verdict = Literal["agrees", "disagrees", "inconclusive", "measured", "proved"]
LEAST_POWER = 0.5
"""A test that would notice its named alternative less often cannot speak for its claim."""
Record = dict[str, Any]


@dataclass
class Check:
    """A claim with its prediction, measurement, interval and test.

    `name` identifies the check; `claim` is one sentence; `source` says where the claim comes from;
    `hypothesis` is what the p-value tests, empty for a pure measurement; `quantity` names what
    `predicted`, `measured` and `interval` (95 %) hold. `table` is tidy: one record a row, each with
    a `source` of "theory" or "simulation". `power_at(level)` is the chance that the test at `level`
    notices `alternative`. `settle` fills `adjusted_p`, `power` and `verdict`.
    """

    name: str
    claim: str
    source: str
    quantity: str
    predicted: str
    measured: str
    interval: str
    sample_size: str
    table: list[Record]
    hypothesis: str = ""
    p_value: float | None = None
    alternative: str = ""
    power_at: Callable[[float], float] | None = None
    undecided: int = 0
    remark: str = ""
    caption: str = ""
    proved: bool = False
    refuted: bool = False
    settings: Record = field(default_factory=dict)
    adjusted_p: float | None = None
    power: float | None = None
    verdict: Verdict | None = None

    def __post_init__(self) -> None:
        sources = {row.get("source") for row in self.table}
        if not sources <= {"theory", "simulation"}:
            raise InvalidInput(
                f"the table of check {self.name!r} has sources {sorted(map(str, sources))}; "
                "every row needs source 'theory' or 'simulation'"
            )
        if (self.p_value is None) != (self.hypothesis == ""):
            raise InvalidInput(
                f"check {self.name!r} needs either both a hypothesis and a p-value or neither"
            )

    def select(self, source: str, **conditions: Any) -> list[Record]:
        """Rows of the table with this source and these values, in order."""
        wanted = {"source": source, **conditions}
        return [r for r in self.table if all(r.get(k) == v for k, v in wanted.items())]

    def to_json(self) -> Record:
        """Everything but the functions, JSON-ready."""
        keys = (
            "name claim source quantity predicted measured interval sample_size hypothesis p_value "
            "adjusted_p alternative power undecided remark verdict settings table"
        )
        return {key: getattr(self, key) for key in keys.split()}


def settle(checks: Sequence[Check], false_alarm_rate: float) -> None:
    """Give every check its verdict; P(any false "disagrees") <= `false_alarm_rate` (Holm).

    Power is stated at the strictest level Holm can ask for, false_alarm_rate / m with m tested
    claims, so it is a lower bound. A check without a p-value is "measured"; "proved" when it rests
    on verified certificates alone; "disagrees" when a logical contradiction `refuted` it. A test
    that refutes nothing "agrees" only if its power is at least `LEAST_POWER`, else it is
    "inconclusive": too little was measured to notice the named alternative.
    """
    if not 0.0 < false_alarm_rate < 1.0:
        raise InvalidInput(
            f"the false-alarm rate is {false_alarm_rate}; it must lie strictly between 0 and 1"
        )
    tested = [check for check in checks if check.p_value is not None]
    adjusted = holm([check.p_value for check in tested if check.p_value is not None])
    for check, value in zip(tested, adjusted, strict=True):
        check.adjusted_p = value
        check.verdict = "disagrees" if value < false_alarm_rate else "agrees"
    for check in checks:
        if check.p_value is None:
            check.verdict = (
                "disagrees" if check.refuted else "proved" if check.proved else "measured"
            )
        if check.power_at is not None:
            check.power = check.power_at(false_alarm_rate / max(1, len(tested)))
            if check.verdict == "agrees" and check.power < LEAST_POWER:
                check.verdict = "inconclusive"
