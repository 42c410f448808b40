"""Laws of the scores of one fact below capacity: Monte Carlo over the shared scores omega.

A memory drawn uniformly from the solution space gives a fact the scores y = omega + sqrt(V) x,
conditioned on y in C = {y_0 >= max_rho y_rho + margin}, omega ~ N(0, q I), V = 1 - q:

    density(y_0)  = E_omega N(y_0; omega_0, V) prod_rho Phi((y_0 - margin - omega_rho)/sqrt V) / Z
    P(best <= b)  = P(y_0 <= b + margin) + E_omega Q((b + margin - omega_0)/sqrt V)
                                                    prod_rho Phi((b - omega_rho)/sqrt V) / Z
    P(gap > g)    = E_omega Z(omega; margin g) / Z(omega; margin),   g >= margin.

No competitor is exactly active (C is met in its interior), so K has a law at capacity only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from scipy import integrate, special

from numerics.estimate import MonteCarloCurve, MonteCarloEstimate, controlled_mean
from numerics.fields import Array, Fields, draw_fields
from numerics.order_parameters import (
    TopOneOrderParameters,
    fixed_controls,
    stein_controls,
    top_one_order_parameters,
)
from numerics.posterior import BATCH_ELEMENTS, Local, local_quantities, log_weight, scores_at
from replica.errors import InvalidInput

GRID = 121


@dataclass(frozen=True)
class _At:
    """The sample at one overlap: local quantities and control variates."""

    q: float
    local: Local
    controls: Array


@dataclass(frozen=True)
class BelowCapacityScores:
    """Laws at the saddle point `parameters`; built by `below_capacity_scores`.

    Scores in standard deviations of a typical score. Every estimate contains, in quadrature with
    its sampling error, the change that one standard error of the overlap makes.
    """

    parameters: TopOneOrderParameters
    fields: Fields

    @property
    def _samples(self) -> tuple[int, int]:
        return self.parameters.overlap.samples, self.parameters.overlap.seed

    def _at(self, q: float) -> _At:
        local = local_quantities(self.fields, q, self.parameters.margin)
        fixed = fixed_controls(self.fields, self.parameters.competitors)
        controls = np.concatenate([fixed, stein_controls(self.fields, local, q)], axis=1)
        return _At(q, local, controls)

    @cached_property
    def _pair(self) -> tuple[_At, _At]:
        """At the overlap, and one standard error (at least 1e-4 (1-q)) beside it."""
        overlap = self.parameters.overlap
        return self._at(overlap.value), self._at(overlap.value - self._shift)

    @property
    def _shift(self) -> float:
        overlap = self.parameters.overlap
        return min(0.5 * overlap.value, max(overlap.stderr, 1e-4 * (1.0 - overlap.value)))

    def _estimate(self, function: Callable[[_At], Array]) -> MonteCarloEstimate:
        """Controlled mean of a function of the sample, the error of q included."""
        here, beside = (controlled_mean(function(at), at.controls) for at in self._pair)
        drift = (here.value - beside.value) * self.parameters.overlap.stderr / self._shift
        return MonteCarloEstimate(here.value, math.hypot(here.stderr, drift), *self._samples)

    def _curve(self, points: Array, function: Callable[[_At], Array]) -> MonteCarloCurve:
        """The same for a function with values (n, len(points))."""
        tables = [(function(at), at.controls) for at in self._pair]
        estimates = []
        for i in range(len(points)):
            here, beside = (controlled_mean(table[:, i], c) for table, c in tables)
            drift = (here.value - beside.value) * self.parameters.overlap.stderr / self._shift
            estimates.append((here.value, math.hypot(here.stderr, drift)))
        values, errors = np.array(estimates).T
        return MonteCarloCurve(points, values, errors, *self._samples)

    # -- moments -------------------------------------------------------------------------------
    def target_mean(self) -> MonteCarloEstimate:
        """E y_0 = E[omega_0 + V d_0 log Z]."""
        return self._estimate(self._posterior_mean)

    def target_variance(self) -> MonteCarloEstimate:
        """Var y_0, about the estimated mean (its error enters in second order)."""
        centre = self.target_mean().value

        def square(at: _At) -> Array:
            variance = 1.0 - at.q
            spread = variance + variance**2 * at.local.target_curvature
            return (self._posterior_mean(at) - centre) ** 2 + spread

        return self._estimate(square)

    def _posterior_mean(self, at: _At) -> Array:
        return math.sqrt(at.q) * self.fields.target + (1.0 - at.q) * at.local.target_gradient

    # -- laws ----------------------------------------------------------------------------------
    def target_density(self, points: Any) -> MonteCarloCurve:
        """Density of the target score at `points` (a sequence of scores)."""
        y = _check_points(points)
        return self._curve(y, lambda at: np.exp(self._log_joint(at, y)[0]))

    def target_cdf(self, points: Any) -> MonteCarloCurve:
        """P(y_0 <= y) at `points`."""
        y = _check_points(points)
        return self._curve(y, lambda at: self._cumulative(at, y))

    def best_cdf(self, points: Any) -> MonteCarloCurve:
        """P(best competitor <= b) at `points`."""
        b = _check_points(points)
        margin = self.parameters.margin

        def probability(at: _At) -> Array:
            root = math.sqrt(1.0 - at.q)
            _, log_below = self._log_joint(at, b + margin)
            omega = math.sqrt(at.q) * self.fields.target
            free = special.log_ndtr((omega[:, None] - b - margin) / root)
            return self._cumulative(at, b + margin) + np.exp(
                log_below + free - at.local.log_z[:, None]
            )

        return self._curve(b, probability)

    def best_density(self, points: Any) -> MonteCarloCurve:
        """Density of the best competitor at `points`.

        Given omega it is d/db [prod_rho Phi((b - omega_rho)/sqrt V)] P(y_0 > b + margin) / Z.
        """
        b = _check_points(points)
        margin = self.parameters.margin

        def density(at: _At) -> Array:
            variance = 1.0 - at.q
            root = math.sqrt(variance)
            _, log_below = self._log_joint(at, b + margin)
            omega = math.sqrt(at.q) * self.fields.target
            free = special.log_ndtr((omega[:, None] - b - margin) / root)
            columns = self.fields.top.shape[1] + 64
            slopes = []
            for batch in self.fields.batches(max(1, BATCH_ELEMENTS // (columns * len(b)))):
                scores = scores_at(batch, at.q, margin)
                table = np.broadcast_to(b + margin, (len(batch), len(b)))
                _, x, log_cdf = log_weight(scores, table, variance, margin)
                hazard = np.exp(-0.5 * x * x - 0.5 * math.log(2.0 * math.pi) - log_cdf)
                slopes.append(np.einsum("nk,nkm->nm", scores.weights, hazard) / root)
            return np.concatenate(slopes) * np.exp(log_below + free - at.local.log_z[:, None])

        return self._curve(b, density)

    def gap_density(self, points: Any) -> MonteCarloCurve:
        """Density of the gap at `points` g >= margin, -d/dg Z(g) / Z(margin).

        A gap g lowers omega_0 by g, so -d/dg log Z is the gradient in omega_0 at that margin.
        """
        g = self._check_gaps(points)

        def density(at: _At) -> Array:
            columns = []
            for gap in g:
                there = local_quantities(self.fields, at.q, float(gap))
                columns.append(np.exp(there.log_z - at.local.log_z) * there.target_gradient)
            return np.stack(columns, axis=1)

        return self._curve(g, density)

    def _check_gaps(self, points: Any) -> Array:
        g = _check_points(points)
        if np.any(g < self.parameters.margin):
            raise InvalidInput(
                f"a gap below the margin {self.parameters.margin} was given; the gap is at least "
                "the margin; give larger points"
            )
        return g

    def gap_survival(self, points: Any) -> MonteCarloCurve:
        """P(target - best competitor > g) at `points` g >= margin."""
        g = self._check_gaps(points)

        def probability(at: _At) -> Array:
            columns = [
                local_quantities(self.fields, at.q, float(gap)).log_z - at.local.log_z for gap in g
            ]
            return np.exp(np.stack(columns, axis=1))

        return self._curve(g, probability)

    def _log_joint(self, at: _At, y: Array) -> tuple[Array, Array]:
        """log density of y_0 given omega, and sum_rho log Phi, both (n, len(y))."""
        variance = 1.0 - at.q
        columns = self.fields.top.shape[1] + 64
        size = max(1, BATCH_ELEMENTS // (columns * len(y)))
        below = []
        for batch in self.fields.batches(size):
            scores = scores_at(batch, at.q, self.parameters.margin)
            table = np.broadcast_to(y, (len(batch), len(y)))
            total, _, _ = log_weight(scores, table, variance, self.parameters.margin)
            density = -0.5 * (table - scores.target[:, None]) ** 2 / variance
            below.append(total - density + 0.5 * math.log(2.0 * math.pi * variance))
        log_below = np.concatenate(below)
        omega = math.sqrt(at.q) * self.fields.target
        kernel = -0.5 * (y - omega[:, None]) ** 2 / variance - 0.5 * math.log(
            2.0 * math.pi * variance
        )
        return kernel + log_below - at.local.log_z[:, None], log_below

    def _cumulative(self, at: _At, y: Array) -> Array:
        """P(y_0 <= y | omega), (n, len(y)): Simpson on a grid over the bulk of each sample.

        The grid of a sample spans its mean -+ 9 widths; between nodes the cubic through values and
        densities at both ends.
        """
        variance = 1.0 - at.q
        mean = self._posterior_mean(at)
        width = np.sqrt(variance + variance**2 * at.local.target_curvature)
        result = np.empty((len(mean), len(y)))
        columns = self.fields.top.shape[1] + 64
        size = max(1, BATCH_ELEMENTS // (columns * GRID))
        u = np.linspace(-8.0, 10.0, GRID)
        for start in range(0, len(mean), size):
            part = slice(start, start + size)
            fields = self.fields[part]
            grid = mean[part, None] + width[part, None] * u
            scores = scores_at(fields, at.q, self.parameters.margin)
            total, _, _ = log_weight(scores, grid, variance, self.parameters.margin)
            density = np.exp(total - at.local.log_z[part, None]) * width[part, None]
            cumulative = integrate.cumulative_simpson(density, x=u, initial=0, axis=1)
            x = (y - mean[part, None]) / width[part, None]
            result[part] = _hermite(u, cumulative, density, x)
        return result


def _hermite(u: Array, values: Array, slopes: Array, x: Array) -> Array:
    """Piecewise cubic interpolation, row by row, constant outside the grid."""
    step = u[1] - u[0]
    position = np.clip((x - u[0]) / step, 0.0, len(u) - 1.0)
    index = np.minimum(position.astype(int), len(u) - 2)
    s = position - index

    def pick(table: Array, shift: int) -> Array:
        return np.take_along_axis(table, index + shift, axis=1)

    return (
        pick(values, 0) * (1 + 2 * s) * (1 - s) ** 2
        + pick(values, 1) * s * s * (3 - 2 * s)
        + step * pick(slopes, 0) * s * (1 - s) ** 2
        - step * pick(slopes, 1) * s * s * (1 - s)
    )


def _check_points(points: Any) -> Array:
    array = np.atleast_1d(np.asarray(points, dtype=float))
    if array.ndim != 1 or not len(array) or not np.all(np.isfinite(array)):
        raise InvalidInput(
            "the points of a law must be a non-empty one-dimensional sequence of finite scores; "
            "give for example [0.5, 1.0, 1.5]"
        )
    return array


def below_capacity_scores(
    facts_per_parameter: float | Fraction,
    competitors: int | str,
    *,
    margin: float = 0.0,
    samples: int = 4096,
    seed: int = 0,
) -> BelowCapacityScores:
    """Solve the saddle point and prepare the laws; arguments as `top_one_order_parameters`.

    >>> laws = below_capacity_scores(0.1, 39, samples=256)  # d = 20, p = 40
    >>> abs(laws.target_mean().value - 1.94) < 0.05
    True
    """
    parameters = top_one_order_parameters(
        facts_per_parameter, competitors, margin=margin, samples=samples, seed=seed
    )
    fields = draw_fields(parameters.competitors, samples, seed)
    return BelowCapacityScores(parameters, fields)
