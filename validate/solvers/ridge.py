"""The trained memory: the unique minimiser of a convex loss with ridge, to a certified distance.

    F(W) = sum_mu l(s_mu) + (lambda N/2) |W|^2,      N = dim_in dim_out,   s_mu,rho = scores

F is strongly convex with constant lambda N, so at any W, whatever produced it, the gradient alone
bounds the distance to the minimiser W*:  |W - W*| <= r = |grad F(W)|/(lambda N).  From r follow

    loss      |L(W) - L(W*)| <= (lambda N |W| + 2 |grad F|) r       (L = sum_mu l, convex)
    norm      | |W|^2 - |W*|^2 | <= (2 |W| + r) r
    recall    a margin of W larger than r |d margin/dW| has its sign at W* as well

**Units.** lambda means what it means in the theory when a score has unit-variance weights in W:
entries of d s_mu,rho/dW, which are G_mu,rho for the Gaussian problem (exactly N(0, 1)) and
u_rho e_mu^T for the others (mean square 1 for every `Ensemble`, whose vectors have |x|^2 = dim on
average). No problem divides its scores by anything. Embeddings from a file keep their own size:
with entries of root mean square a for u e^T the ridge lambda acts like lambda/a^2 (`score_scale`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from replica.errors import InvalidInput
from validate.problems import DecoupledProblem, GaussianProblem, OriginalProblem, Problem
from validate.solvers.adam import adam
from validate.solvers.losses import Loss, loss_by_name
from validate.solvers.newton import newton_cg
from validate.solvers.threads import threads_for

Tensor = torch.Tensor
METHODS = ("newton", "adam")


@dataclass(frozen=True)
class RidgeMemory:
    """A memory W with proved bounds on its distance to the minimiser W* (up to rounding).

    `weights` (dim_out, dim_in); `accuracy`: share of facts W recalls; `loss`: mean over facts;
    `norm_squared` |W|^2; `gradient_norm` |grad F(W)|; `distance` bounds |W - W*|; `loss_error` and
    `norm_squared_error` bound the differences to W*; `accuracy_range` holds the accuracy of W*;
    `steps` of the method; `stop_reason`, a sentence. Rounding of the gradient (about 1e-12 of the
    terms it sums) is not included.
    """

    weights: Tensor
    ridge: float
    loss_name: str
    accuracy: float
    loss: float
    norm_squared: float
    gradient_norm: float
    distance: float
    loss_error: float
    norm_squared_error: float
    accuracy_range: tuple[float, float]
    steps: int = 0
    stop_reason: str = ""

    @property
    def relative_distance(self) -> float:
        """Bound on |W - W*|/|W|."""
        return self.distance / math.sqrt(self.norm_squared) if self.norm_squared else math.inf


def ridge_memory(
    problem: Problem,
    ridge: float,
    *,
    loss: str = "cross_entropy",
    method: str = "newton",
    tolerance: float = 1e-6,
    maximum_steps: int | None = None,
) -> RidgeMemory:
    """Minimise  sum_mu l(s_mu) + (ridge N/2) |W|^2  and certify how close the answer is.

    `ridge` lambda > 0; `loss`: cross_entropy, squared_hinge or squared; `tolerance`: wanted bound
    on |W - W*|/|W|. Method "newton": trust-region Newton with conjugate gradients on
    Hessian products, matrix-free, stops when the bound is reached. Method "adam" (cross-entropy
    only): full-batch Adam with weight decay lambda/p added to the gradient, the learning rate
    falling geometrically over `maximum_steps` (default 6000); it stops there, whatever the bound,
    and may well end above `tolerance`. The bounds of the result are computed from its weights
    alone and hold for either.

    Raises `InvalidInput` for a ridge or tolerance that is not positive, unknown names, and Adam
    with another loss. Source: strong convexity; THEORY section 8 for the units.

    >>> from validate.problems import make_problem
    >>> memory = ridge_memory(make_problem("gaussian", dim=8, facts=20, seed=0), 0.01)
    >>> memory.accuracy, memory.relative_distance < 1e-6
    (0.9, True)
    """
    check_ridge(ridge)
    if not (math.isfinite(tolerance) and tolerance > 0):
        raise InvalidInput(
            f"the tolerance is {tolerance}; it must be a positive finite number; give one"
        )
    if method not in METHODS:
        raise InvalidInput(
            f"the method is {method!r}; it must be one of {', '.join(METHODS)}; choose one"
        )
    if maximum_steps is not None and maximum_steps < 1:
        raise InvalidInput(
            f"the number of steps is {maximum_steps}; it must be at least 1; give such a number"
        )
    if method == "newton":
        return _newton(problem, ridge, loss, tolerance, maximum_steps or 200)
    if loss != "cross_entropy":
        raise InvalidInput(
            f"Adam trains the cross-entropy only, not the loss {loss!r}; take the method newton"
        )
    return _adam(problem, ridge, maximum_steps or 6000)


def certify(
    problem: Problem,
    weights: Tensor,
    ridge: float,
    *,
    loss: str = "cross_entropy",
    steps: int = 0,
    stop_reason: str = "given weights",
) -> RidgeMemory:
    """Bounds for any `weights` (dim_out, dim_in), by the formulas at the head of this module.

    >>> from validate.problems import make_problem
    >>> problem = make_problem("gaussian", dim=4, facts=6, seed=0)
    >>> exact = ridge_memory(problem, 0.1)
    >>> near = certify(problem, exact.weights + 0.01, 0.1)
    >>> 0.04 < near.distance
    True
    """
    check_ridge(ridge)
    function = loss_by_name(loss)
    strength = ridge * problem.parameters
    point = weights.detach().clone().requires_grad_()
    with threads_for(problem.parameters):
        scores = problem.scores(point)
        total = function(scores).sum()
        (gradient,) = torch.autograd.grad(total, point)
        gradient_norm = float((gradient + strength * weights).norm())
        norm = float(weights.norm())
        r = gradient_norm / strength
        margins = (scores[..., :1] - scores[..., 1:]).detach()
        slack = r * margin_gradient_norms(problem)
        surely = (margins > slack).all(dim=-1).double().mean()
        possibly = (margins > -slack).all(dim=-1).double().mean()
        accuracy = (margins > 0).all(dim=-1).double().mean()
    return RidgeMemory(
        weights.detach(),
        ridge,
        loss,
        float(accuracy),
        float(total.detach()) / problem.facts,
        norm**2,
        gradient_norm,
        r,
        (strength * norm + 2.0 * gradient_norm) * r / problem.facts,
        (2.0 * norm + r) * r,
        (float(surely), float(possibly)),
        steps,
        stop_reason,
    )


def score_gradient_norms(problem: Problem) -> Tensor:
    """|d s_mu,rho/dW| (Frobenius), shape (p, M + 1): |G_mu,rho|, or |u_rho| |e_mu|.

    >>> from validate.problems import make_problem
    >>> score_gradient_norms(make_problem("original", dim=4, facts=6, seed=0)).shape
    torch.Size([6, 6])
    """
    if isinstance(problem, GaussianProblem):
        return problem.matrices.flatten(2).norm(dim=-1)
    if isinstance(problem, DecoupledProblem):
        outputs = torch.cat([problem.outputs[:, None].norm(dim=-1), problem.rivals.norm(dim=-1)], 1)
    elif isinstance(problem, OriginalProblem):
        norms = problem.outputs.norm(dim=-1)
        order = torch.cat([problem.targets[:, None], problem.competitor_rows()], dim=1)
        outputs = norms[order]
    else:
        raise TypeError(f"no score gradients for {type(problem).__name__}")
    return outputs * problem.inputs.norm(dim=-1, keepdim=True)


def margin_gradient_norms(problem: Problem) -> Tensor:
    """Upper bounds on |d margin_mu,rho/dW|, shape (p, M), by the triangle inequality."""
    norms = score_gradient_norms(problem)
    return norms[:, :1] + norms[:, 1:]


def score_scale(problem: Problem) -> float:
    """Root mean square entry of d s_mu,rho/dW over all facts and scores; near 1 in theory units.

    >>> from validate.problems import make_problem
    >>> abs(score_scale(make_problem("gaussian", dim=8, facts=20, seed=0)) - 1) < 0.05
    True
    """
    squares = score_gradient_norms(problem).square().mean()
    return math.sqrt(float(squares) / problem.parameters)


def check_ridge(ridge: float) -> None:
    """Refuse a ridge for which no unique minimiser is certified."""
    if not (math.isfinite(ridge) and ridge > 0):
        raise InvalidInput(
            f"the ridge is {ridge}; it must be a positive finite number, for without one the "
            "minimiser may not exist; give for example 0.01"
        )


def _newton(
    problem: Problem, ridge: float, name: str, tolerance: float, maximum_steps: int
) -> RidgeMemory:
    function: Loss = loss_by_name(name)
    strength = ridge * problem.parameters
    shape = (problem.dim_out, problem.dim_in)
    taken = 0

    def objective(w: Tensor) -> Tensor:
        return function(problem.scores(w.view(shape))).sum() + 0.5 * strength * w @ w

    def record(step: int, w: Tensor, value: Tensor) -> str:
        nonlocal taken
        taken = step
        return "" if math.isfinite(float(value)) else "the loss is not finite"

    def enough(w: Tensor, gradient: Tensor) -> bool:
        return float(gradient.norm()) <= tolerance * strength * float(w.norm())

    hebb = problem.hebbian_memory().flatten()
    start = hebb / hebb.norm()
    with threads_for(problem.parameters):
        w, reason = newton_cg(
            objective,
            start,
            record,
            maximum_steps=maximum_steps,
            maximum_inner=400,
            radius=1.0,
            enough=enough,
        )
    return certify(problem, w.view(shape), ridge, loss=name, steps=taken, stop_reason=reason)


def _adam(problem: Problem, ridge: float, maximum_steps: int) -> RidgeMemory:
    learned = adam(
        problem,
        learning_rate=0.2,
        final_learning_rate=1e-7,
        weight_decay=ridge / problem.facts,
        maximum_steps=maximum_steps,
        stop_when_perfect=False,
    )
    return certify(
        problem,
        learned.weights,
        ridge,
        steps=learned.history[-1].step,
        stop_reason=learned.stop_reason,
    )
