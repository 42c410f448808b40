"""Full-batch Adam on the cross-entropy of the softmax over all outputs."""

from __future__ import annotations

import math

import torch

from replica.errors import InvalidInput
from validate.problems import Problem
from validate.solvers.learned import Learned, Snapshot
from validate.solvers.threads import threads_for

STALLED_CHECKS = 20


def cross_entropy(scores: torch.Tensor) -> torch.Tensor:
    """Mean over facts of log sum_rho e^{s_rho} - s_0, scores (p, M + 1) with the target first."""
    return (torch.logsumexp(scores, dim=-1) - scores[..., 0]).mean()


def adam(
    problem: Problem,
    *,
    learning_rate: float = 0.2,
    final_learning_rate: float | None = None,
    weight_decay: float = 0.0,
    maximum_steps: int = 3000,
    check_every: int = 25,
    stop_when_perfect: bool = True,
) -> Learned:
    """Minimise  mean_mu log sum_rho e^{s_rho - s_0} + weight_decay/2 |W|^2  by full-batch Adam.

    Starts at W = 0 (the problem is convex, so the start does not choose the answer). Scores are
    divided by sqrt(N), N = dim_in dim_out, which makes `learning_rate` mean the same at every size;
    the W returned is divided by it instead (at d = 20 the default moves W by 0.01 a step). In the
    convention sum_mu loss + (lambda N / 2) |W|^2 of that W, lambda = p `weight_decay`; the decay
    enters as a term of the gradient, so the minimiser is that of the ridge problem.

    Stops when every fact is recalled (`stop_when_perfect`), when neither loss nor accuracy has
    improved for 20 checks, or after `maximum_steps`. With a `final_learning_rate` the rate falls
    to it geometrically over `maximum_steps`, and a stall stops nothing: a constant rate circles
    the minimiser, a falling one settles there.

    Raises `InvalidInput` for a learning rate, decay or step count out of range.

    >>> from validate.problems import make_problem
    >>> adam(make_problem("original", dim=8, facts=10, seed=0)).accuracy
    1.0
    """
    check_training(learning_rate, maximum_steps, check_every)
    if not (math.isfinite(weight_decay) and weight_decay >= 0):
        raise InvalidInput(
            f"the weight decay is {weight_decay}; it must be finite and at least 0; give one"
        )
    if final_learning_rate is not None and not 0.0 < final_learning_rate <= learning_rate:
        raise InvalidInput(
            f"the final learning rate is {final_learning_rate}; it must be positive and at most "
            f"the first, {learning_rate}; give such a number"
        )
    fall = 1.0 if final_learning_rate is None else final_learning_rate / learning_rate
    scale = 1.0 / math.sqrt(problem.parameters)
    W = torch.zeros(
        problem.dim_out,
        problem.dim_in,
        dtype=torch.float64,
        device=problem.device,
        requires_grad=True,
    )
    optimiser = torch.optim.Adam([W], lr=learning_rate, weight_decay=weight_decay)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimiser, fall ** (1.0 / maximum_steps))
    watch = Watch(stop_when_perfect, stop_when_stalled=final_learning_rate is None)
    with threads_for(problem.parameters):
        for step in range(maximum_steps + 1):
            scores = problem.scores(W * scale)
            loss = cross_entropy(scores)
            if step % check_every == 0 or step == maximum_steps:
                reason = watch.record(step, loss, scores)
                if reason or step == maximum_steps:
                    break
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    stop = reason or f"the limit of {maximum_steps} steps was reached"
    weights = (W * scale).detach()
    return Learned(weights, problem.accuracy(weights), watch.history, stop)


class Watch:
    """Keeps the history of a training run and says when to stop."""

    def __init__(self, stop_when_perfect: bool, stop_when_stalled: bool = True) -> None:
        self.history: list[Snapshot] = []
        self.stop_when_perfect = stop_when_perfect
        self.stop_when_stalled = stop_when_stalled
        self._best_loss, self._best_accuracy, self._stalled = math.inf, -1.0, 0

    def record(self, step: int, loss: torch.Tensor, scores: torch.Tensor) -> str:
        """Add a snapshot; an empty string means go on."""
        value = float(loss.detach())
        accuracy = float((scores[:, :1] > scores[:, 1:]).all(-1).double().mean())
        self.history.append(Snapshot(step, value, accuracy))
        if not math.isfinite(value):
            return "the loss is not finite; give a smaller learning rate"
        if self.stop_when_perfect and accuracy == 1.0:
            return "every fact is recalled"
        better = value < self._best_loss * (1 - 1e-5) or accuracy > self._best_accuracy
        self._stalled = 0 if better else self._stalled + 1
        self._best_loss = min(self._best_loss, value)
        self._best_accuracy = max(self._best_accuracy, accuracy)
        if self.stop_when_stalled and self._stalled >= STALLED_CHECKS:
            return "neither loss nor accuracy improves any more"
        return ""


def check_training(learning_rate: float, maximum_steps: int, check_every: int) -> None:
    """Refuse settings with which training cannot run."""
    if not (math.isfinite(learning_rate) and learning_rate > 0):
        raise InvalidInput(
            f"the learning rate is {learning_rate}; it must be a positive finite number; give one"
        )
    if maximum_steps < 1 or check_every < 1:
        raise InvalidInput(
            f"{maximum_steps} steps with a check every {check_every} were asked for; both must be "
            "at least 1; give such numbers"
        )
