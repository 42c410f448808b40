"""The first-order start: it descends whatever the rows, and saves iterations of the solver."""

from __future__ import annotations

import itertools

import pytest
import torch

from validate.embeddings import Ensemble
from validate.problems import KINDS, make_problem
from validate.solvers.acceleration import LEAST_SHARE, accelerated_start
from validate.solvers.interior_point import Iteration
from validate.solvers.operators import RowsOperator, operator_of


def height(margins: torch.Tensor) -> torch.Tensor:
    return torch.logsumexp(-margins, 1)


@pytest.mark.parametrize(
    "ensemble", ["gaussian", "sphere", "rademacher", "sparse:0.3", "correlated:3"]
)
@pytest.mark.parametrize("kind", ["decoupled", "original"])
def test_it_descends_on_every_ensemble(kind: str, ensemble: str) -> None:
    problems = [make_problem(kind, dim=6, facts=14, seed=s, ensemble=ensemble) for s in range(4)]
    operator = operator_of(problems)
    heights = [height(accelerated_start(operator, steps=n).margins) for n in (0, 3, 10, 40)]
    for before, after in itertools.pairwise(heights):
        assert bool((after <= before + 1e-12).all())
    assert bool((heights[-1] < heights[0]).all())


def test_badly_scaled_rows_do_not_diverge() -> None:
    """Column scales over eight decades: the step is far too long at first, and is halved."""
    stream = torch.Generator().manual_seed(0)
    rows = torch.randn(1, 60, 12, generator=stream, dtype=torch.float64)
    rows = rows * torch.logspace(-4, 4, 12, dtype=torch.float64)
    begin = accelerated_start(RowsOperator(rows))
    assert bool(torch.isfinite(begin.weights).all())
    flat = torch.logsumexp(torch.zeros(1, 60, dtype=torch.float64), 1)
    assert float(height(begin.margins)) < float(flat)


def test_what_it_returns_belongs_together() -> None:
    problems = [make_problem("decoupled", dim=6, facts=14, seed=s) for s in range(3)]
    operator = operator_of(problems)
    begin = accelerated_start(operator)
    torch.testing.assert_close(begin.margins, operator.apply(begin.weights))
    q = begin.multipliers
    assert bool((q >= 0.999 * LEAST_SHARE * q.amax(1, keepdim=True)).all())
    # Going on from its weights never climbs.
    more = accelerated_start(operator, steps=5, weights=begin.weights)
    assert bool((height(more.margins) <= height(begin.margins) + 1e-12).all())


@pytest.mark.parametrize("kind", KINDS)
def test_it_saves_iterations_near_the_transition(kind: str) -> None:
    """Totals over ten instances on both sides of the transition; all of it is deterministic."""
    problems = [make_problem(kind, dim=8, facts=p, seed=s) for p in (19, 23) for s in range(5)]
    cold = warm = 0
    for problem in problems:
        operator = operator_of([problem])
        plain = Iteration(operator)
        plain.run()
        cold += plain.results[0].iterations
        begin = accelerated_start(operator)
        started = Iteration(operator, begin.multipliers, 0.3)
        started.accept(begin)
        started.run()
        warm += started.results[0].iterations
        assert started.results[0].verdict == plain.results[0].verdict
    assert warm < 0.7 * cold


def test_a_spectrum_with_one_direction_is_still_decided() -> None:
    law = Ensemble("correlated", spectrum=(1e6, 1.0, 1.0, 1e-6))
    problem = make_problem("original", dim=4, facts=4, seed=1, ensemble=law)
    begin = accelerated_start(operator_of([problem]))
    assert bool(torch.isfinite(begin.margins).all())
