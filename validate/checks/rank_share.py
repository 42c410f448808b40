"""I(rank_ratio) from singular values of random matrices, extrapolated to large d."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import special

from replica.errors import InvalidInput
from validate.checks.base import Check, Record
from validate.checks.statistics import generator
from validate.checks.units import Unit

NOTICED = 0.02
"""The named alternative: I(rank_ratio) wrong by this share."""


def measure_share(
    dim: int, ratios: list[float], seed: int, batch: int, count: int
) -> dict[str, Any]:
    """Share of the squared singular values that the largest `ratio` d carry, `count` matrices.

    Sums and sums of squares over d x d standard Gaussian matrices, one entry a ratio.

    >>> measure_share(4, [1.0], seed=0, batch=0, count=2)["sum"]
    [2.0]
    """
    stream = generator(seed, 57, dim, batch)
    shares = []
    for _ in range(count):
        square = np.linalg.svd(stream.standard_normal((dim, dim)), compute_uv=False) ** 2
        shares.append([square[: round(r * dim)].sum() / square.sum() for r in ratios])
    table = np.asarray(shares)
    return {
        "sum": table.sum(axis=0).tolist(),
        "square": (table**2).sum(axis=0).tolist(),
        "count": count,
    }


def share_units(
    dims: Sequence[tuple[int, int]], ratios: Sequence[str], seed: int, batch: int = 40
) -> list[Unit]:
    """The matrices of every dimension, (d, number of matrices), as units."""
    return [
        Unit(
            "validate.checks.rank_share:measure_share",
            {
                "dim": dim,
                "ratios": [float(r) for r in ratios],
                "seed": seed,
                "batch": first // batch,
                "count": min(batch, total - first),
            },
            work=6e-9 * dim**3 * min(batch, total - first),
        )
        for dim, total in dims
        for first in range(0, total, batch)
    ]


def pooled(
    units: Sequence[Unit], answers: Sequence[Any], place: int
) -> dict[int, tuple[float, float, int]]:
    """(mean, variance, number) of the share of ratio number `place` at every dimension."""
    sums: dict[int, list[float]] = {}
    for unit, answer in zip(units, answers, strict=True):
        entry = sums.setdefault(unit.arguments["dim"], [0.0, 0.0, 0.0])
        entry[0] += answer["sum"][place]
        entry[1] += answer["square"][place]
        entry[2] += answer["count"]
    found = {}
    for dim, (total, square, number) in sums.items():
        mean = total / number
        found[dim] = (mean, (square - number * mean * mean) / (number - 1), int(number))
    return found


def check_rank_share(
    rank_ratio: str, shares: Mapping[int, tuple[float, float, int]], *, factor: float | None = None
) -> Check:
    """Hypothesis: the share tends to I(rank_ratio); Student test of its extrapolation.

    Arguments: (mean, variance, number) of the share at three dimensions. The mean is I + c/d +
    c'/d^2 + ..., and the combination sum w_d mean_d with sum w = 1, sum w/d = sum w/d^2 = 0 removes
    two corrections. `factor` replaces I(rank_ratio) (to plant a wrong one).
    """
    from numerics.cone import rank_factor

    if len(shares) != 3:
        raise InvalidInput(
            f"{len(shares)} dimensions were given; the extrapolation needs exactly 3; give three"
        )
    I = float(rank_factor(rank_ratio, 12).to_float_lossy()) if factor is None else factor
    dims = sorted(shares)
    x = 1.0 / np.asarray(dims, dtype=float)
    weights = np.linalg.solve(np.stack([np.ones(3), x, x * x]), np.array([1.0, 0.0, 0.0]))
    mean = np.array([shares[d][0] for d in dims])
    spread = np.array([shares[d][1] / shares[d][2] for d in dims])
    limit, error = float(weights @ mean), float(np.sqrt(weights**2 @ spread))
    freedom = min(shares[d][2] for d in dims) - 1  # the fewest: conservative
    p_value = float(2.0 * special.stdtr(freedom, -abs(limit - I) / error))
    half = float(special.stdtrit(freedom, 0.975)) * error

    def power(level: float) -> float:
        critical = float(special.stdtrit(freedom, 1.0 - level / 2.0))
        return float(special.ndtr(NOTICED * I / error - critical))

    table: list[Record] = [
        {"source": "theory", "rank_ratio": rank_ratio, "share": I},
        *(
            {
                "source": "simulation",
                "rank_ratio": rank_ratio,
                "dim": d,
                "share": float(m),
                "error": float(np.sqrt(v)),
                "matrices": shares[d][2],
            }
            for d, m, v in zip(dims, mean, spread, strict=True)
        ),
    ]
    return Check(
        name=f"rank_share_{rank_ratio}",
        claim=f"The largest {rank_ratio} d singular values of a random d × d matrix carry the "
        f"share I = {I:.4f} of the squared weight: what rank {rank_ratio} d leaves of capacity.",
        source="quarter circle, I(k) = ∫ s² ρ(s) ds",
        quantity="share, d → ∞",
        predicted=f"{I:.5f}",
        measured=f"{limit:.5f}",
        interval=f"[{limit - half:.5f}, {limit + half:.5f}]",
        sample_size=", ".join(f"{shares[d][2]} matrices at d = {d}" for d in dims),
        hypothesis="the mean share, extrapolated through 1/d and 1/d², is I (Student test with the "
        "fewest degrees of freedom)",
        p_value=p_value,
        alternative="I(rank_ratio) off by 2 %",
        power_at=power,
        table=table,
    )
