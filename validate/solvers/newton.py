"""Trust-region Newton method with truncated conjugate gradients (Steihaug 1983)."""

from __future__ import annotations

from collections.abc import Callable

import torch

Tensor = torch.Tensor
Objective = Callable[[Tensor], Tensor]
Record = Callable[[int, Tensor, Tensor], str]


def newton_cg(
    objective: Objective,
    start: Tensor,
    record: Record,
    *,
    maximum_steps: int = 200,
    maximum_inner: int = 100,
    radius: float | None = None,
    enough: Callable[[Tensor, Tensor], bool] | None = None,
) -> tuple[Tensor, str]:
    """Minimise a smooth, possibly nonconvex function of a vector; returns the point and why.

    Each step minimises the quadratic model within the trust radius by conjugate gradients, which
    stop at the boundary or at a direction of negative curvature. `record(step, x, loss)` sees every
    accepted point and ends the run by returning a sentence; `enough(x, gradient)` ends it as well.
    `radius` is the first trust radius (default a tenth of the start).
    """
    x = start.detach().clone()
    if radius is None:
        radius = 0.1 * float(x.norm()) + 1e-3
    for step in range(maximum_steps):
        point = x.clone().requires_grad_()
        loss = objective(point)
        (gradient,) = torch.autograd.grad(loss, point, create_graph=True)
        reason = record(step, x, loss.detach())
        if reason:
            return x, reason
        g = gradient.detach()
        if enough is not None and enough(x, g):
            return x, "the gradient is as small as asked for"
        if float(g.norm()) < 1e-12:
            return x, "the gradient vanishes"

        def hessian(v: Tensor, grad: Tensor = gradient, at: Tensor = point) -> Tensor:
            (product,) = torch.autograd.grad(grad, at, v, retain_graph=True)
            return product

        move, predicted, on_boundary = _inner(hessian, g, radius, maximum_inner)
        gain = _gain(objective, x, move, loss.detach(), g, predicted)
        ratio = gain / predicted if predicted > 0 else -1.0
        if ratio > 1e-4:
            x = x + move
        if ratio < 0.25:
            radius = 0.25 * float(move.norm())
        elif ratio > 0.75 and on_boundary:
            radius = 2.0 * radius
        if radius < 1e-12 * (1.0 + float(x.norm())):
            return x, "the trust region shrank to rounding"
    record(maximum_steps, x, objective(x).detach())
    return x, f"the limit of {maximum_steps} Newton steps was reached"


def _gain(
    objective: Objective, x: Tensor, move: Tensor, loss: Tensor, g: Tensor, predicted: float
) -> float:
    """Decrease of the loss along the step."""
    if predicted > 1e-9 * abs(float(loss)):
        with torch.no_grad():
            return float(loss - objective(x + move))
    # The difference of two losses would be rounding: integrate the slope (trapezoidal rule).
    point = (x + move).requires_grad_()
    (after,) = torch.autograd.grad(objective(point), point)
    return -0.5 * float((g + after) @ move)


def _inner(
    hessian: Callable[[Tensor], Tensor], g: Tensor, radius: float, maximum: int
) -> tuple[Tensor, float, bool]:
    """Step, predicted decrease, and whether the step ends on the trust-region boundary."""
    step = torch.zeros_like(g)
    residual, direction = -g, -g
    square = float(residual @ residual)
    target = square * min(0.25, square**0.5)
    for _ in range(maximum):
        curved = hessian(direction)
        curvature = float(direction @ curved)
        length = square / curvature if curvature > 0 else float("inf")
        if curvature <= 0 or float((step + length * direction).norm()) >= radius:
            step = step + _to_boundary(step, direction, radius) * direction
            return step, _decrease(hessian, g, step), True
        step = step + length * direction
        residual = residual - length * curved
        fresh = float(residual @ residual)
        if fresh <= target:
            break
        direction = residual + (fresh / square) * direction
        square = fresh
    return step, _decrease(hessian, g, step), False


def _decrease(hessian: Callable[[Tensor], Tensor], g: Tensor, step: Tensor) -> float:
    return -float(g @ step + 0.5 * step @ hessian(step))


def _to_boundary(step: Tensor, direction: Tensor, radius: float) -> float:
    a, b = float(direction @ direction), float(step @ direction)
    c = float(step @ step) - radius**2
    return float((-b + max(b * b - a * c, 0.0) ** 0.5) / a)
