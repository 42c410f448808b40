"""Primal-dual interior point for the least-norm point of the hull of the constraint rows.

    minimise |A^T l|^2 / 2   over   l >= 0, sum l = 1.

At the optimum w = A^T l obeys A w >= |w|^2: either w = 0, and l proves that no memory exists, or
w is the maximum-margin memory. Both sides always have interior points, so the same iteration
settles separable and not separable instances, near the transition as well as far from it; it ends
as soon as w recalls everything or a corrected l has A^T l = 0. (Predictor-corrector after
Mehrotra 1992; each Newton step factorises I + A^T diag(l / s) A.)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from validate.solvers.acceleration import Start, accelerated_start
from validate.solvers.factor import Factor, factorise
from validate.solvers.operators import Operator, Tensor

MAXIMUM_ITERATIONS = 40
STEP_TO_BOUNDARY = 0.995
LEAST_PRODUCT = 1e-3
SPREAD, WARM_SPREAD = 0.3, 0.1
FARKAS_RESIDUAL = 1e-13
FARKAS_ROUNDS = 8


@dataclass(frozen=True)
class RawResult:
    """What the iteration claims for one instance, before any certificate."""

    verdict: str
    weights: Tensor | None
    multipliers: Tensor | None
    iterations: int
    reason: str


def interior_point(
    operator: Operator,
    *,
    deadline: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    start: Tensor | None = None,
) -> list[RawResult]:
    """Solve every instance of the batch; `deadline` is a `time.monotonic()` value.

    `start`: multipliers of similar instances (B, n). `progress(iterations, instances left)` is
    called after every iteration.
    """
    if start is None:
        begin = accelerated_start(operator)
        iteration = Iteration(operator, begin.multipliers, SPREAD)
        iteration.accept(begin)
    else:
        iteration = Iteration(operator, start, WARM_SPREAD)
    iteration.run(deadline, progress)
    return [iteration.results[index] for index in range(len(iteration.results))]


class Iteration:
    """The state of the iteration for a batch; `results` by position in the batch.

    `start` (B, n): positive multipliers to begin with; `spread`: how far below the least product
    the level nu starts, in standard deviations of the products.
    """

    def __init__(
        self, operator: Operator, start: Tensor | None = None, spread: float = 1.0
    ) -> None:
        self.op = operator
        self.scale = operator.scale().clamp_min(1e-300)
        self.count = 0
        self.mixed = True
        self.results: dict[int, RawResult] = {}
        batch = self.scale.shape[0]
        self.alive = torch.arange(batch, device=self.scale.device)
        self.l = self.scale.new_full((batch, operator.rows), 1.0 / operator.rows)
        if start is not None:
            self.l = start / start.sum(1, keepdim=True)
        self.w = self.adjoint(self.l)
        self.m = self.apply(self.w)
        width = self.m.std(1, correction=0) + self.w.square().sum(1)
        self.nu = self.m.amin(1) - spread * width.clamp_min(1e-12)
        self.s = self.m - self.nu[:, None]

    def run(
        self, deadline: float | None = None, progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Iterate until every instance has a result."""
        while self.alive.numel():
            if deadline is not None and time.monotonic() > deadline:
                self.give_up("the time limit was reached; give a longer one")
            elif self.count >= MAXIMUM_ITERATIONS:
                self.give_up(
                    f"{MAXIMUM_ITERATIONS} interior-point iterations did not settle it; "
                    "the instance is degenerate to working precision"
                )
            else:
                self.advance()
                if progress is not None:
                    progress(self.count, self.alive.numel())

    def accept(self, begin: Start) -> None:
        """End the instances that the start separates already."""
        done = begin.margins.amin(1) > 0
        for row in torch.nonzero(done).flatten().tolist():
            w, m = begin.weights[row].clone(), begin.margins[row]
            # The margins are the slacks; with l ~ 1/s whoever goes on from here starts centred.
            self._finish(row, RawResult("separable", w, m.amin() / m, 0, ""))
        self._keep(~done)

    def apply(self, w: Tensor) -> Tensor:
        return self.op.apply(w) / self.scale[:, None]

    def adjoint(self, multipliers: Tensor) -> Tensor:
        return self.op.adjoint(multipliers) / self.scale[:, None]

    def advance(self) -> None:
        """Look for separating weights, factorise, look for a Farkas vector, take a step."""
        self._collect_separable()
        if not self.alive.numel():
            return
        self.count += 1
        D = self.l / self.s
        factor, D = self._collect_infeasible(self._factor(D), D)
        if not self.alive.numel():
            return
        before = self.__dict__.copy()
        self._step(factor, D)
        if not factor.reliable:
            self.__dict__.update(before)
            self.mixed = False
            self._step(self._factor(D), D)

    def _factor(self, D: Tensor) -> Factor:
        return factorise(self.op, D / self.scale.square()[:, None], mixed=self.mixed)

    def _collect_separable(self) -> None:
        done = self.m.amin(1) > 0
        for row in torch.nonzero(done).flatten().tolist():
            w, l = self.w[row].clone(), self.l[row].clone()
            self._finish(row, RawResult("separable", w, l, self.count, ""))
        self._keep(~done)

    def _collect_infeasible(self, factor: Factor, D: Tensor) -> tuple[Factor, Tensor]:
        """Correct l onto A^T l = 0 in the metric of D; a nonnegative result ends the instance."""
        corrected, residual = self.l, self.w
        good = torch.ones_like(self.nu, dtype=torch.bool)
        size = torch.ones_like(self.nu)
        for _ in range(FARKAS_ROUNDS):
            corrected = corrected - D * self.apply(factor.solve(residual))
            good &= (corrected >= 0).all(1)
            if not bool(good.any()):
                return factor, D
            residual = self.adjoint(corrected)
            size = residual.norm(dim=1)
            if bool((size[good] <= FARKAS_RESIDUAL).all()):
                break
        good &= size <= FARKAS_RESIDUAL
        if not bool(good.any()):
            return factor, D
        for row in torch.nonzero(good).flatten().tolist():
            proof = corrected[row] / corrected[row].sum()
            self._finish(row, RawResult("not_separable", None, proof, self.count, ""))
        self._keep(~good)
        return factor.select(~good), D[~good]

    def _step(self, factor: Factor, D: Tensor) -> None:
        gap = (self.l * self.s).mean(1, keepdim=True)
        ones_pull = factor.solve(self.adjoint(D))
        ones_rise = self.apply(ones_pull)
        ones_fall = D * (1.0 - ones_rise)
        denominator = ones_fall.sum(1, keepdim=True)
        infeasibility = self.m - self.nu[:, None] - self.s

        def direction(target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            # s dl + l ds = target, A dw - dnu = ds - infeasibility, dw = A^T dl, sum dl = 0
            g = target / self.l - infeasibility
            rise = self.apply(factor.solve(self.adjoint(D * g)))
            fall = D * (g - rise)
            dnu = -fall.sum(1, keepdim=True) / denominator
            dl = fall + dnu * ones_fall
            ds = rise + dnu * ones_rise - dnu + infeasibility
            return dl, dnu, ds

        product = self.l * self.s
        dl, _, ds = direction(-product)
        step = torch.minimum(longest(self.l, dl), longest(self.s, ds))[:, None]
        aimed = ((self.l + step * dl) * (self.s + step * ds)).mean(1, keepdim=True)
        sigma = (aimed / gap).clamp(0.0, 1.0) ** 3
        dl, dnu, ds = direction(sigma * gap - product - dl * ds)
        step = STEP_TO_BOUNDARY * torch.minimum(longest(self.l, dl), longest(self.s, ds))
        step = step.clamp_max(1.0)[:, None]
        self.l = self.l + step * dl
        total = self.l.sum(1, keepdim=True)
        self.l = self.l / total
        self.s = self.s + step * ds
        # Rounding can leave single products l s far below the rest, which then block every step.
        level = (self.l * self.s).mean(1, keepdim=True)
        self.s = torch.maximum(self.s, LEAST_PRODUCT * level / self.l)
        self.nu = self.nu + (step * dnu).squeeze(1)
        self.w = self.adjoint(self.l)
        self.m = self.apply(self.w)

    def _finish(self, row: int, result: RawResult) -> None:
        self.results[int(self.alive[row])] = result

    def give_up(self, reason: str) -> None:
        for row in range(self.alive.numel()):
            result = RawResult(
                "undecided", self.w[row].clone(), self.l[row].clone(), self.count, ""
            )
            self._finish(row, RawResult(**{**result.__dict__, "reason": reason}))
        self._keep(torch.zeros_like(self.nu, dtype=torch.bool))

    def _keep(self, mask: Tensor) -> None:
        if bool(mask.all()):
            return
        rows = torch.nonzero(mask).flatten()
        self.alive = self.alive[rows]
        if rows.numel():
            self.op = self.op.select(rows)
        self.scale, self.l, self.w, self.m = (
            self.scale[rows],
            self.l[rows],
            self.w[rows],
            self.m[rows],
        )
        self.nu, self.s = self.nu[rows], self.s[rows]


def solve(factor: Tensor, right: Tensor) -> Tensor:
    """Solve with a batch of lower Cholesky factors, right-hand sides (B, N)."""
    return torch.cholesky_solve(right[..., None], factor).squeeze(-1)


def longest(x: Tensor, dx: Tensor) -> Tensor:
    """Largest step at most 1 that keeps x + step dx >= 0, shape (B,)."""
    ratio = torch.where(dx < 0, -x / dx, torch.ones_like(x))
    return ratio.amin(1).clamp_max(1.0)
