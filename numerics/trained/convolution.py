"""Cross-entropy without sampling: the averages as one integral over the level c.

log sum e^x = min_c (c - 1 + sum e^{x - c}) makes the envelope separable at fixed c,

    M_V(omega) = min_c J(c),   J'(c) = 1 - T/V,   T = sum_rho u_rho,   u_rho = W_0(V e^{a_rho - c}),

with J convex, so that E M_V = E J(b) - int_{-inf}^b E (1 - T/V)_+ dc for b above every minimiser.
T is a sum of M independent terms of one law and one of the target's: its characteristic function
is a power, and E (1 - T/V)_+ a sum over frequencies. The derivatives of E M_V in V and Q, under
the integral, are the averages of the fixed point:

    E|x - omega|^2 = -2 V^2 d_V E M_V,   E tr = 2 d_Q E M_V,   E l = E M_V + V d_V E M_V.

The cost does not depend on M. Nothing is shared with the proximal maps but Wright's omega.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy import fft, sparse, special

from numerics.trained.losses.base import Array, Loss
from numerics.trained.losses.cross_entropy import CrossEntropy
from numerics.trained.population import Averages
from numerics.trained.wright import wright_omega

_TILT = 9.0  # e^{-tilt T/V} keeps sums beyond the period from coming back
_PERIOD = 4  # in units of V: wrapped terms are below e^{-36}
_MOST_FIELDS = 24000
_BLOCK = 1 << 21  # numbers held at once
_REACH = 9.0  # standard deviations of the fields kept
_SETTLED = 1e-6  # of a quantity between 0 and 1


@dataclass(frozen=True)
class Convolution:
    """Averages of the cross-entropy for M = `competitors`; T/V on a grid of 1/`grid`.

    Errors fall like grid^-4. `levels` Gauss-Legendre nodes for 20 units of c (5 sqrt(Q) if that is
    more) and `fields` nodes for a Gaussian of standard deviation 4, more where the range or sqrt(Q)
    is larger.
    """

    competitors: int
    grid: int = 512
    levels: int = 80
    fields: int = 1000
    is_gapless: bool = True  # whether the nodes are dense on the grid of T
    _ranges: dict[tuple[int, int], tuple[float, float]] = field(
        default_factory=dict, repr=False, compare=False
    )

    def averages(self, loss: Loss, norm_squared: float, order_v: float) -> Averages:
        """Means at Q = `norm_squared`, V = `order_v`; arrays of length 1."""
        if not isinstance(loss, CrossEntropy):
            raise TypeError(f"the convolution averages the cross-entropy, not {loss.name}")
        value, in_v, in_q = self.envelope(norm_squared, order_v)
        recalled = loss.recall(self.competitors, norm_squared, order_v)
        means = (-2.0 * order_v**2 * in_v, 2.0 * in_q, value + order_v * in_v, recalled)
        return Averages(*(np.array([x]) for x in means))

    def envelope(self, q: float, v: float) -> tuple[float, float, float]:
        """E M_V and its derivatives in V and Q."""
        # one range for all neighbours: the derivatives of the fixed point see no jump of it
        key = (round(8.0 * math.log(q)), round(8.0 * math.log(v)))
        if key not in self._ranges:
            self._ranges[key] = self._range(q, v)
        low, high = self._ranges[key]
        # at large Q all that depends on c varies on the scale of sqrt(Q)
        scale = 20.0 * max(1.0, math.sqrt(q) / 4.0)
        count = math.ceil(self.levels * max(1.0, (high - low) / scale))
        x, w = np.polynomial.legendre.leggauss(count)
        levels = 0.5 * (low + high) + 0.5 * (high - low) * x
        positive = self._positive_part(levels, q, v)  # (3, levels): E (J')_+ and derivatives
        integral = 0.5 * (high - low) * (positive @ w)
        top = self._at_level(high, q, v)
        value, in_v, in_q = (float(t - i) for t, i in zip(top, integral, strict=True))
        return value, in_v, in_q

    def _at_level(self, c: float, q: float, v: float) -> tuple[float, float, float]:
        """E J(c) and its derivatives in V and Q at fixed c, by quadrature over one field."""
        z, weight = self._field(q)
        omega = math.sqrt(q) * z
        value, in_v, in_q = c - 1.0 - 0.5 * v, -0.5, 0.0
        for count, raised in ((float(self.competitors), 0.0), (1.0, v)):
            u = wright_omega(math.log(v) + omega + raised - c)
            # E [u/V + u^2/(2V)]; du = r (dV/V + d raised + z dQ/(2 sqrt Q)), r = u/(1+u), so that
            # (1 + u) r = u; a raised target carries dV once more
            value += count * float(weight @ (u + 0.5 * u * u)) / v
            by_raise = float(weight @ u) / v
            fixed = float(weight @ (u / v - (u + 0.5 * u * u) / v)) / v
            in_v += count * (fixed + (by_raise if raised else 0.0))
            in_q += count * float(weight @ (u * z)) / (2.0 * math.sqrt(q) * v)
        return value, in_v, in_q

    def _positive_part(self, levels: Array, q: float, v: float) -> Array:
        """(3, L): E (1 - T/V)_+ and its derivatives in V and Q at every level."""
        size = _PERIOD * self.grid
        transforms = []
        for raised in (0.0, v):
            # where few competitors smooth T no law may have gaps between its nodes on the grid
            dense = min(1.0, 100.0 / self.competitors) if self.is_gapless else 0.0
            gapless = dense * 100.0 * math.sqrt(q) * self.grid / v
            count = self._nodes(q, min(gapless, _MOST_FIELDS))
            transforms.append(self._transforms(levels, q, v, raised, count, size))
        (rival, rival_v, rival_q), (target, target_v, target_q) = transforms
        number = float(self.competitors)
        rest = rival ** (number - 1.0)
        excess, step = self._tests(size)
        whole = rest * rival * target
        results = [_pair(whole, excess)]
        for by_rival, by_target in ((rival_v, target_v), (rival_q, target_q)):
            moved = number * rest * by_rival * target + rest * rival * by_target
            results.append(-_pair(moved, step))  # d (1 - T/V)_+ = -1(T < V) d(T/V)
        return np.array(results)

    def _transforms(
        self, levels: Array, q: float, v: float, raised: float, count: int, size: int
    ) -> tuple[Array, ...]:
        """Tilted characteristic functions of u/V (L, size/2 + 1): u, and du in V and in Q.

        u depends on y = log V + omega + raised - c alone: the nodes are those of one lattice in y
        for all levels, and what moves with the level is the Gaussian weight of a node.
        """
        width = math.sqrt(q)
        step = 2.0 * _REACH * width / (count - 1)
        centres = math.log(v) + raised - levels
        results = np.empty((3, len(levels), size // 2 + 1), dtype=np.complex128)
        rows = max(1, int(_BLOCK / (count + size)))
        for start in range(0, len(levels), rows):
            part = slice(start, start + rows)
            low, high = float(centres[part].min()), float(centres[part].max())
            first = math.floor((low - _REACH * width) / step)
            last = math.ceil((high + _REACH * width) / step)
            top = v * (1.0 + 2.0 / self.grid)  # terms above are left out: T exceeds V with them
            last = min(last, math.ceil((top + math.log(top)) / step))
            y = step * np.arange(first, last + 1, dtype=np.float64)
            u = wright_omega(y)
            stencil = self._stencil(u / v, size)
            z = (y[None, :] - centres[part, None]) / width
            weight = np.exp(-0.5 * z * z)
            weight *= step / (width * math.sqrt(2.0 * math.pi))
            ratio = u / (1.0 + u)
            in_v = (ratio / v + (ratio if raised else 0.0) - u / v) / v  # d(u/V) at fixed field
            in_q = ratio / (2.0 * width * v)
            for index, values in enumerate((weight, weight * in_v, weight * z * in_q)):
                table = np.asarray(stencil.T @ values.T).T
                results[index, part] = fft.rfft(table, axis=1)
        return tuple(results)

    def _stencil(self, share: Array, size: int) -> sparse.csr_array:
        """(nodes, size): e^{-tilt share} at u/V = `share`, by cubic interpolation to the grid."""
        position = share * self.grid
        kept = position < self.grid + 2  # all that the stencil brings to the nodes up to V
        position = np.where(kept, position, 0.0)
        mass = np.where(kept, np.exp(-_TILT * share), 0.0)
        first = np.floor(position).astype(np.int64)
        t = position - first
        # centred cubic Lagrange weights on -1, 0, 1, 2: of modulus at most 1 at every frequency, so
        # that powers are stable; a one-sided stencil at the edge would not be
        lagrange = (
            -t * (t - 1) * (t - 2) / 6.0,
            (t + 1) * (t - 1) * (t - 2) / 2.0,
            -(t + 1) * t * (t - 2) / 2.0,
            (t + 1) * t * (t - 1) / 6.0,
        )
        columns = (first[:, None] + np.arange(-1, 3)) % size
        values = np.stack(lagrange, axis=1) * mass[:, None]
        rows = np.repeat(np.arange(len(share)), 4)
        return sparse.csr_array((values.ravel(), (rows, columns.ravel())), shape=(len(share), size))

    def _tests(self, size: int) -> tuple[Array, Array]:
        """Transforms of e^{tilt T/V} (1 - T/V)_+ and of e^{tilt T/V} 1(T < V), conjugated."""
        # continued to -V <= T < 0, where the interpolation puts small parts of the mass
        grid = np.arange(-self.grid, self.grid + 1) / self.grid
        ends = np.ones(len(grid))
        ends[-3:] = 23.0 / 24.0, 7.0 / 6.0, 3.0 / 8.0  # Gregory: fourth order at the end T = V
        results = []
        for function in (1.0 - grid, np.ones_like(grid)):
            padded = np.zeros(size)
            padded[: len(grid)] = function * ends * np.exp(_TILT * grid)
            results.append(np.conj(fft.rfft(np.roll(padded, -self.grid))))
        return results[0], results[1]

    def _field(self, q: float, least: float = 0.0) -> tuple[Array, Array]:
        """Trapezoidal nodes and weights of N(0, 1): exact to rounding for smooth functions."""
        count = self._nodes(q, least)
        z = np.linspace(-_REACH, _REACH, count)
        weight = np.exp(-0.5 * z * z)
        return z, weight / weight.sum()

    def _nodes(self, q: float, least: float) -> int:
        return math.ceil(max(self.fields * max(1.0, math.sqrt(q) / 4.0), least))

    def _range(self, q: float, v: float) -> tuple[float, float]:
        """Levels outside which the minimiser c* lies with negligible probability.

        Where it lies above c surely E (1 - T/V)_+ = 0, where below, it is E (1 - T/V). c* > omega_0
        and c* <= log sum e^a bound a search for where both hold to `_SETTLED`; as the law of c* has
        Gaussian tails, 0.6 of that width more on either side is beyond rounding.
        """
        width = math.sqrt(q)
        low = -_REACH * width
        best = width * float(-special.ndtri(1e-16 / (self.competitors + 1.0)))
        high = max(_REACH * width + v, best) + math.log1p(self.competitors)
        grid = 1 << math.ceil(math.log2(min(max(4.0 * v, 1024.0), 4096.0)))
        least, most = low, high
        coarse = Convolution(self.competitors, grid, 24, 400, is_gapless=False)
        for _ in range(8):
            levels = np.linspace(low, high, 24)
            positive = coarse._positive_part(levels, q, v)[0]
            expectation = np.array([1.0 - coarse._mean_share(c, q, v) for c in levels])
            above = np.nonzero(positive > _SETTLED)[0]
            unsettled = np.nonzero(positive - expectation > _SETTLED)[0]
            first = max(int(above[0]) - 1, 0) if len(above) else 0
            last = min(int(unsettled[-1]) + 1, len(levels) - 1) if len(unsettled) else 1
            last = max(last, first + 1)
            kept = (float(levels[first]), float(levels[last]))
            shrunk = kept[1] - kept[0] < 0.7 * (high - low)
            low, high = kept
            if not shrunk:
                break
        more = 0.6 * (high - low)
        return max(low - more, least), min(high + more, most)

    def _mean_share(self, c: float, q: float, v: float) -> float:
        """E T/V at the level c."""
        z, weight = self._field(q)
        omega = math.log(v) + math.sqrt(q) * z - c
        rivals = float(weight @ wright_omega(omega))
        return (self.competitors * rivals + float(weight @ wright_omega(omega + v))) / v


def _pair(transform: Array, test: Array) -> Array:
    """sum_T p(T) f(T) by Parseval: real signals, half of the frequencies."""
    size = 2 * (len(test) - 1)
    product = np.real(transform * test)
    return np.asarray((2.0 * product.sum(axis=1) - product[:, 0] - product[:, -1]) / size)
