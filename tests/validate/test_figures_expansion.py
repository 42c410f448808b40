"""Figures of the critical load: the data behind them and that they draw what they say."""

from __future__ import annotations

import pytest

from validate.figures_expansion import expansion_data, plot_errors, plot_expansion


@pytest.fixture(scope="module")
def records() -> list[dict[str, object]]:
    return expansion_data(6)


def load(records: list[dict[str, object]], source: str, index: int) -> float:
    rows = [r for r in records if r["source"] == source]
    return float(str(rows[index]["load"]))


def test_data_tell_the_story_of_the_caption(records: list[dict[str, object]]) -> None:
    assert load(records, "exact", 0) == pytest.approx(1.1559, abs=1e-4)
    assert load(records, "exact", -1) == pytest.approx(0.50263, abs=1e-5)
    exact = load(records, "exact", 0)
    assert abs(load(records, "order 4", 0) / exact - 1) < 0.01
    # the series in 1/T^2 wins for large p and loses for small p
    for index, winner in ((-2, "level"), (0, "order 4")):
        exact = load(records, "exact", index)
        loser = "order 4" if winner == "level" else "level"
        assert abs(load(records, winner, index) - exact) < abs(load(records, loser, index) - exact)
    orders = [abs(load(records, f"order {n}", -1) - load(records, "exact", -1)) for n in (1, 2, 4)]
    assert orders == sorted(orders, reverse=True)


def test_figures_are_complete(records: list[dict[str, object]]) -> None:
    for svg in (plot_expansion(records), plot_errors(records)):
        assert svg.startswith("<svg")
        assert 'role="img"' in svg
        assert svg.count("var(--s") >= 5
