"""Do success curves lie where a prediction with a stated tolerance puts them? Deviance test.

Cell i (an ensemble at one d) has the predicted probit U_i and the predicted relative shift x_i:

    P = Phi(s_i U_i(log p - log r_i)),   |r_i - 1 - c x_i (1 + k x_i)| <= t,   s_i in [1/2, 2],

c and k common to all cells, in boxes of their own. The deviance from one free rate a load is
minimised over everything in the box, for the data and for a sample drawn at the fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from replica.errors import InvalidInput
from validate.checks.extrapolation import Curve
from validate.checks.statistics import generator, monte_carlo_p_value

Floats = NDArray[np.float64]
BLOCK = 8_000_000
"""Entries of a table of likelihoods held at once."""
ROWS = 2000


@dataclass(frozen=True)
class ShiftBox:
    """The boxes of c and k, the tolerance t of every ratio and the factors of the widths.

    Pilot instances at d = 12, 16, 20 (seeds of their own) gave c x (1 + k x) = 1.1 x for the sphere
    and signs (x = 0.05) and 1.7 x for sparse vectors (x = -0.06), so c = 1.4 and k = -4: the boxes
    are wide enough for these and their errors, and t for the error of a simulated x.
    """

    leading: tuple[float, float] = (1.1, 1.6)
    next_order: tuple[float, float] = (-6.0, -2.0)
    tolerance: float = 0.01
    widths: tuple[float, float] = (0.5, 2.0)

    def centres(self, shift: float) -> Floats:
        """1 + c x (1 + k x) on a grid of (c, k), c slowest."""
        c = np.linspace(*self.leading, 11)[:, None]
        k = np.linspace(*self.next_order, 7)
        return np.asarray(1.0 + c * shift * (1.0 + k * shift)).ravel()


@dataclass(frozen=True)
class BoxedCell:
    """Counts of one cell of `group`; `undecided` of the `trials` may be successes as well."""

    group: str
    curve: Curve
    shift: float
    facts: Sequence[int]
    successes: Sequence[int]
    undecided: Sequence[int]
    trials: Sequence[int]

    def __post_init__(self) -> None:
        lengths = {len(v) for v in (self.facts, self.successes, self.undecided, self.trials)}
        if len(lengths) != 1 or 0 in lengths or min(self.trials) < 1:
            raise InvalidInput(
                "facts, successes, undecided and trials must be lists of one length with n >= 1; "
                "give the counts of one cell"
            )


class CellFit:
    """Least deviance of one cell at every allowed ratio, over a grid of widths.

    The spacing is half the error of r and log s; data and null sample use the same grid.
    """

    def __init__(self, cell: BoxedCell, box: ShiftBox) -> None:
        self.trials = np.asarray(cell.trials, dtype=float)
        total = float(self.trials.sum())
        x, y = cell.curve
        steep = float(np.median(np.abs(np.diff(y) / np.diff(x))))
        centres = box.centres(cell.shift)
        low, high = centres.min() - box.tolerance, centres.max() + box.tolerance
        step = min(box.tolerance / 4.0, 0.7 / (steep * total**0.5))
        self.ratios = np.linspace(low, high, int(np.clip(np.ceil((high - low) / step), 9, 300)) + 1)
        span = float(np.log(box.widths[1] / box.widths[0]))
        count = int(np.clip(np.ceil(span * 2.0 * total**0.5), 10, 120)) + 1
        self.widths = np.geomspace(*box.widths, count)
        u = np.log(np.asarray(cell.facts, dtype=float)) - np.log(self.ratios)[:, None]
        self.eta = self.widths[:, None] * _linear(u, x, y)[:, None, :]
        flat = self.eta.reshape(-1, self.trials.size)
        self.success, self.failure = special.log_ndtr(flat), special.log_ndtr(-flat)
        slack = 1e-9
        first = np.searchsorted(self.ratios, centres - box.tolerance - slack)
        last = np.searchsorted(self.ratios, centres + box.tolerance + slack)
        self.windows, self.window_of = np.unique(
            np.stack([first, last], axis=1), axis=0, return_inverse=True
        )
        self.window_of = self.window_of.reshape(-1)

    def by_ratio(self, counts: ArrayLike) -> Floats:
        """Deviance of every row of `counts` (K, I) at every ratio, least over widths: (K, R)."""
        rows, back = np.unique(np.asarray(counts, dtype=float), axis=0, return_inverse=True)
        n = self.trials
        best = (special.xlogy(rows, rows / n) + special.xlogy(n - rows, 1.0 - rows / n)).sum(-1)
        values = np.empty((len(rows), self.ratios.size))
        step = max(1, BLOCK // len(self.success))
        for first in range(0, len(rows), step):
            s = rows[first : first + step]
            table = s @ self.success.T + (n - s) @ self.failure.T
            values[first : first + step] = table.reshape(len(s), self.ratios.size, -1).max(-1)
        return np.asarray(2.0 * np.maximum(best[:, None] - values, 0.0)[back.reshape(-1)])

    def kindest(self, successes: ArrayLike, undecided: ArrayLike) -> Floats:
        """Deviance at (ratio, width), the undecided taken as kindly as can be: (R, S).

        At given P the kindest count is the nearest to n P (the deviance is convex in every count).
        """
        low, n = np.asarray(successes, dtype=float), self.trials
        s = np.clip(n * special.ndtr(self.eta), low, low + np.asarray(undecided, dtype=float))
        gap = special.xlogy(s, s / n) + special.xlogy(n - s, 1.0 - s / n)
        gap -= s * special.log_ndtr(self.eta) + (n - s) * special.log_ndtr(-self.eta)
        return np.asarray(2.0 * np.maximum(gap.sum(axis=-1), 0.0))

    def in_windows(self, by_ratio: Floats) -> Floats:
        """Least deviance within the tolerance of every centre: (C, K)."""
        least = np.stack([by_ratio[:, a:b].min(axis=1) for a, b in self.windows])
        return np.asarray(least[self.window_of])


class BoxTest:
    """The fit, and one statistic a group besides that of all groups together.

    `p_values` by group ("" for all together); the fit is joint, so a group that does not go with
    the others stands out.
    """

    def __init__(
        self, cells: Sequence[BoxedCell], box: ShiftBox, *, seed: int, samples: int
    ) -> None:
        self.cells, self.box = list(cells), box
        self.fits = [CellFit(cell, box) for cell in cells]
        self.groups = list(dict.fromkeys(cell.group for cell in cells))
        tables = [
            f.kindest(c.successes, c.undecided) for f, c in zip(self.fits, cells, strict=True)
        ]
        held = [f.in_windows(t.min(axis=1)[None]) for f, t in zip(self.fits, tables, strict=True)]
        observed, best = self._reduce(held)
        centre = int(best[0])
        self.ratios, self.widths = [], []
        for fit, table in zip(self.fits, tables, strict=True):
            first, last = fit.windows[fit.window_of[centre]]
            r, s = np.unravel_index(int(table[first:last].argmin()), table[first:last].shape)
            self.ratios.append(float(fit.ratios[first + r]))
            self.widths.append(float(fit.widths[s]))
        self.null = self.statistics(self.draw({}, seed=seed, samples=samples))
        self.observed = observed[:, 0]
        self.p_values = {
            name: monte_carlo_p_value(float(value), null)
            for name, value, null in zip(["", *self.groups], self.observed, self.null, strict=True)
        }

    def draw(
        self, factors: dict[str, float], *, seed: int, samples: int
    ) -> list[NDArray[np.int64]]:
        """Counts of every cell at the fit, with the 50 % points of groups times `factors`."""
        counts = []
        for number, (cell, r, s) in enumerate(
            zip(self.cells, self.ratios, self.widths, strict=True)
        ):
            u = np.log(np.asarray(cell.facts) / (r * factors.get(cell.group, 1.0)))
            p = special.ndtr(s * _linear(u, *cell.curve))
            n = np.asarray(cell.trials, dtype=np.int64)
            counts.append(generator(seed, 73, number).binomial(n, p, (samples, n.size)))
        return counts

    def statistics(self, counts: Sequence[NDArray[np.int64]]) -> Floats:
        """Statistics of all groups together and of every group, shape (1 + G, K)."""
        parts = []
        for first in range(0, len(counts[0]), ROWS):
            part = slice(first, first + ROWS)
            parts.append(
                self._reduce(
                    [
                        fit.in_windows(fit.by_ratio(s[part]))
                        for fit, s in zip(self.fits, counts, strict=True)
                    ]
                )[0]
            )
        return np.concatenate(parts, axis=1)

    def rejects(self, counts: Sequence[NDArray[np.int64]], level: float) -> NDArray[np.bool_]:
        """Rows that one of the statistics rejects at `level` each."""
        rank = int(np.floor(level * (1 + self.null.shape[1])))
        if rank < 1:
            return np.zeros(len(counts[0]), dtype=bool)
        critical = np.sort(self.null, axis=1)[:, -rank] * (1.0 - 1e-9)
        return np.asarray((self.statistics(counts) >= critical[:, None]).any(axis=0))

    def _reduce(self, held: Sequence[Floats]) -> tuple[Floats, NDArray[np.int64]]:
        """From deviances (C, K) of the cells: the statistics, and the best (c, k) of every row."""
        total = np.sum(held, axis=0)
        best = total.argmin(axis=0)
        columns = np.arange(total.shape[1])
        rows = [total[best, columns]]
        for group in self.groups:
            own = [h for h, cell in zip(held, self.cells, strict=True) if cell.group == group]
            rows.append(np.sum([h[best, columns] for h in own], axis=0))
        return np.stack(rows), best


def _linear(u: Floats, x: Floats, y: Floats) -> Floats:
    """y at u, linear between and beyond the nodes."""
    left = np.clip(np.searchsorted(x, u) - 1, 0, x.size - 2)
    slope = (y[left + 1] - y[left]) / (x[left + 1] - x[left])
    return np.asarray(y[left] + slope * (u - x[left]))
