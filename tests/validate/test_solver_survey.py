"""10,000 certified verdicts: none contradicted, undecided share reported."""

from __future__ import annotations

import pytest

from validate.problems import KINDS
from validate.survey import survey

LOADS = {10: (24, 27, 30, 33, 36), 20: (80, 84, 87, 90, 94)}


def test_a_small_survey() -> None:
    found = survey(
        [(kind, 10, p) for kind in KINDS for p in (28, 31)],
        instances=15,
        seed=1,
        compare_every=6,
    )
    assert found.instances == 90
    assert sum(found.verdicts.values()) == 90
    assert found.compared == 15
    assert found.contradicted == 0
    # Generic instances: 5 undecided of 90 would mean something is broken (observed share < 1e-3).
    assert found.verdicts["undecided"] <= 4
    assert found.verdicts["separable"] > 15
    assert found.verdicts["not_separable"] > 15


@pytest.mark.long
def test_ten_thousand_instances(capsys: pytest.CaptureFixture[str]) -> None:
    counts = {10: 534, 20: 134}
    total = undecided = contradicted = 0
    for dim, loads in LOADS.items():
        cells = [(kind, dim, p) for kind in KINDS for p in loads]
        found = survey(cells, instances=counts[dim], seed=2)
        with capsys.disabled():
            print(f"\nd = {dim}: {found}")
        total += found.instances
        undecided += found.verdicts["undecided"]
        contradicted += found.contradicted
    assert total >= 10_000
    assert contradicted == 0
    assert undecided <= total / 1000
