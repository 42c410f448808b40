"""Factors of the Newton systems: mixed precision solves what double does, or says no."""

from __future__ import annotations

import pytest
import torch

from validate.decide import decide
from validate.problems import make_problem
from validate.solvers import factor
from validate.solvers.factor import DoubleFactor, MixedFactor, factorise
from validate.solvers.operators import RowsOperator


def system(spread: float, rows: int = 90, size: int = 30) -> tuple[RowsOperator, torch.Tensor]:
    """Gaussian rows and weights D that range over 10^(+-spread)."""
    stream = torch.Generator().manual_seed(3)
    matrix = torch.randn(1, rows, size, generator=stream, dtype=torch.float64)
    exponents = torch.empty(1, rows, dtype=torch.float64).uniform_(
        -spread, spread, generator=stream
    )
    return RowsOperator(matrix), 10.0**exponents


@pytest.mark.parametrize("spread", [0.0, 1.0, 2.0])
def test_both_precisions_solve_the_system(spread: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factor, "WORTH_IT", 1)
    operator, weights = system(spread)
    matrix = operator.matrix[0]
    true = torch.eye(30, dtype=torch.float64) + matrix.T @ (weights[0, :, None] * matrix)
    right = torch.linspace(-1, 1, 30, dtype=torch.float64)[None]
    expected = torch.linalg.solve(true, right[0])
    for mixed, kind in ((True, MixedFactor), (False, DoubleFactor)):
        made = factorise(operator, weights, mixed=mixed)
        assert isinstance(made, kind)
        found = made.solve(right)[0]
        assert made.reliable
        residual = (true @ found - right[0]).norm() / right.norm()
        assert float(residual) <= (factor.TOLERANCE * 1.01 if mixed else 1e-9)
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-5 * float(expected.norm()))


def test_a_system_beyond_single_precision_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factor, "WORTH_IT", 1)
    operator, weights = system(14.0)
    made = factorise(operator, weights, mixed=True)
    made.solve(torch.ones(1, 30, dtype=torch.float64))
    assert isinstance(made, DoubleFactor) or not made.reliable


def test_verdicts_do_not_depend_on_the_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides of the transition, with the single-precision path forced on small instances."""
    problems = [
        make_problem("gaussian", dim=6, facts=p, seed=s) for p in (12, 15) for s in range(8)
    ]
    plain = [decide(problem).verdict for problem in problems]
    monkeypatch.setattr(factor, "WORTH_IT", 1)
    used: list[int] = []
    solve = MixedFactor.solve

    def counted(self: MixedFactor, right: torch.Tensor) -> torch.Tensor:
        used.append(1)
        return solve(self, right)

    monkeypatch.setattr(MixedFactor, "solve", counted)
    assert [decide(problem).verdict for problem in problems] == plain
    assert used
    assert set(plain) == {"separable", "not_separable"}
