"""The overlap q of two independent solutions, with an error bar from independent chains."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from replica.errors import InvalidInput
from validate.sampler.run import Sample

FloatArray = NDArray[np.float64]
R_HAT_ALLOWED = 1.05


@dataclass(frozen=True)
class Overlap:
    """q = E <W_a . W_b> / (|W_a| |W_b|) of independent uniform solutions of one instance.

    `value` +- `stderr` (jackknife over `chains`, so chains - 1 degrees of freedom); `start_overlap`
    of the chains' starting points, to be compared with `value`: far from it, agreement of the
    chains means that they have forgotten where they began; `r_hat` and `effective_size` of the
    slowest functional; `converged` says r_hat <= 1.05.
    """

    value: float
    stderr: float
    chains: int
    samples: int
    effective_size: float
    r_hat: float
    start_overlap: float

    @property
    def converged(self) -> bool:
        """Whether the chains agree."""
        return self.r_hat <= R_HAT_ALLOWED

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Student interval value +- t_{chains-1} stderr."""
        if not 0.0 < confidence < 1.0:
            raise InvalidInput(
                f"the confidence is {confidence}; it must lie strictly between 0 and 1; give 0.95"
            )
        half = float(stats.t.ppf(0.5 + confidence / 2, self.chains - 1)) * self.stderr
        return self.value - half, self.value + half


def measure_overlap(drawn: Sample) -> Overlap:
    """Overlap of different chains: mean over pairs a != b of m_a . m_b, m the mean direction.

    That is the mean of W_a . W_b / (|W_a| |W_b|) over all times of both chains, unbiased because
    different chains are independent; pairs of one chain, which are not, are left out.

    Raises `InvalidInput` for fewer than three chains (no error bar) or fewer than four samples.

    >>> from validate.sampler import sample_rows
    >>> drawn = sample_rows(np.eye(3), start=np.ones(3), samples=200, seed=0)
    >>> low, high = measure_overlap(drawn).interval(0.99)   # exactly 3/4 for the positive octant
    >>> low < 0.75 < high
    True
    """
    chains, samples = drawn.points.shape[:2]
    if chains < 3:
        raise InvalidInput(
            f"the sample has {chains} chains; an overlap with an error bar needs at least 3; "
            "sample more chains"
        )
    means = drawn.directions.mean(axis=1)
    gram = means @ means.T
    rest = np.array([_off_diagonal(np.delete(np.delete(gram, c, 0), c, 1)) for c in range(chains)])
    variance = (chains - 1) / chains * float(np.square(rest - rest.mean()).sum())
    return Overlap(
        value=_off_diagonal(gram),
        stderr=math.sqrt(variance),
        chains=chains,
        samples=samples,
        effective_size=drawn.effective_size,
        r_hat=drawn.r_hat,
        start_overlap=_off_diagonal(_cosines(drawn.starts)),
    )


def _off_diagonal(gram: FloatArray) -> float:
    n = gram.shape[0]
    return float((gram.sum() - np.trace(gram)) / (n * (n - 1)))


def _cosines(vectors: FloatArray) -> FloatArray:
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    gram: FloatArray = unit @ unit.T
    return gram
