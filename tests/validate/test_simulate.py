"""One cell of an experiment: counts, averages, and independence of everything but the seeds."""

from __future__ import annotations

import pytest

from replica.errors import InvalidInput
from validate.decide import decide
from validate.problems import KINDS, make_problem
from validate.simulate import METHODS, simulate
from validate.solvers.hebbian import hebbian

KEYS = [
    "problem", "dim", "facts", "method", "seeds", "separable", "not_separable", "undecided",
    "accuracy_mean", "accuracy_stderr", "seconds",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_on_every_problem(kind: str, method: str) -> None:
    ratio = 0.6 if method == "newton" else None
    data = simulate(kind, dim=5, facts=7, method=method, seeds=3, rank_ratio=ratio).to_json()
    assert list(data) == KEYS
    assert data["separable"] + data["not_separable"] + data["undecided"] == 3
    assert 0 <= data["accuracy_mean"] <= 1


def test_exact_counts_are_the_verdicts_of_the_seeds() -> None:
    cell = simulate("original", dim=6, facts=15, seeds=8, seed=3)
    expected = [
        decide(make_problem("original", dim=6, facts=15, seed=(3, i))).verdict for i in range(8)
    ]
    assert [o.verdict for o in cell.outcomes] == expected
    assert cell.count("separable") == expected.count("separable")
    assert len(set(expected)) == 2
    assert cell.to_json()["accuracy_mean"] == 1.0


def test_no_memory_no_accuracy() -> None:
    data = simulate("original", dim=3, facts=40, seeds=2).to_json()
    assert data["not_separable"] == 2
    assert data["accuracy_mean"] is None
    assert data["accuracy_stderr"] is None


def test_accuracy_mean_and_standard_error() -> None:
    data = simulate("decoupled", dim=8, facts=30, method="hebbian", seeds=6, seed=1).to_json()
    values = [
        hebbian(make_problem("decoupled", dim=8, facts=30, seed=(1, i))).accuracy for i in range(6)
    ]
    mean = sum(values) / 6
    error = (sum((v - mean) ** 2 for v in values) / 5 / 6) ** 0.5
    assert data["accuracy_mean"] == pytest.approx(mean)
    assert data["accuracy_stderr"] == pytest.approx(error)
    # The rule fails on every instance, which proves nothing about them.
    assert (data["separable"], data["undecided"]) == (0, 6)


@pytest.mark.parametrize("method", ["adam", "newton"])
def test_low_rank_training(method: str) -> None:
    cell = simulate("original", dim=8, facts=9, method=method, rank_ratio=0.5, seeds=2)
    assert cell.count("separable") == 2


def test_progress_is_called() -> None:
    seen: list[tuple[int, int]] = []
    steps: list[int] = []

    def tell(done: int, total: int) -> None:
        seen.append((done, total))

    simulate("original", dim=4, facts=4, seeds=3, method="hebbian", progress=tell)
    assert seen == [(1, 3), (2, 3), (3, 3)]
    # Exact verdicts of small instances come in batches, each with its iterations.
    simulate("original", dim=4, facts=7, seeds=3, progress=tell, steps=steps.append)
    assert seen[3:] == [(3, 3)]
    assert steps == sorted(steps)
    assert steps
    # A time limit holds for one instance, so they come one by one.
    simulate("original", dim=4, facts=7, seeds=2, time_limit=60.0, progress=tell)
    assert seen[4:] == [(1, 2), (2, 2)]


def test_batches_give_the_verdicts_of_single_instances(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in KINDS:
        whole = simulate(kind, dim=6, facts=14, seeds=12, seed=2)
        for rows in (1, 3 * 14 * 13):
            monkeypatch.setattr("validate.simulate.BATCH_ROWS", rows)
            split = simulate(kind, dim=6, facts=14, seeds=12, seed=2)
            assert [o.verdict for o in split.outcomes] == [o.verdict for o in whole.outcomes]
        monkeypatch.undo()


@pytest.mark.parametrize(
    "arguments",
    [
        {"method": "sgd"},
        {"seeds": 0},
        {"rank_ratio": 0.5},
        {"rank_ratio": 2.0, "method": "adam"},
        {"method": "newton"},
        {"time_limit": -1.0},
        {"seed": -1},
    ],
)
def test_bad_arguments_get_one_sentence(arguments: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        simulate("original", **{"dim": 4, "facts": 5, **arguments})  # type: ignore[arg-type]
