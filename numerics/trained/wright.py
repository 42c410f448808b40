"""The Wright omega function on the real line: w + log w = y, that is w = W_0(e^y).

Lambert's W_0 in the logarithmic domain: no overflow for large y, full relative accuracy for very
negative y, where w = e^y (1 - e^y + ...).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Below, w = e^y to a rounding error.
_TINY = -37.0


def wright_omega(y: Array) -> Array:
    """The w > 0 with w + log w = y, elementwise, to a few units in the last place.

    Argument: `y`, any shape, finite or -inf (w = 0). A starting value good to some per cent and two
    steps of the fourth-order iteration of Fritsch, Shafer and Crowley (1973).

    >>> wright_omega(np.array([1.0, -800.0])).tolist()
    [1.0, 0.0]
    >>> w = wright_omega(np.array([-30.0, 0.0, 1e6]))
    >>> float(np.max(np.abs(w + np.log(w) - [-30.0, 0.0, 1e6]))) < 1e-9
    True
    """
    y = np.asarray(y, dtype=np.float64)
    w = np.exp(np.minimum(y, 1.0))
    # small w: two terms of the series in Pade form; middle: tangent in the logarithm at w = 1
    w = np.where(y < -1.0, w / (1.0 + w), np.exp(0.5 * (np.minimum(y, 1.0) - 1.0)))
    large = y > 1.0
    if np.any(large):
        high = y[large]
        log_high = np.log(high)
        w[large] = high - log_high * (1.0 - 1.0 / (0.6 + high))
    tiny = y < _TINY
    safe = np.where(tiny, 1.0, w)
    target = np.where(tiny, 1.0, y)
    for _ in range(2):
        rest = target - safe - np.log(safe)
        one = 1.0 + safe
        square = 2.0 * one * (one + (2.0 / 3.0) * rest)
        safe *= 1.0 + (rest / one) * (square - rest) / (square - 2.0 * rest)
    return np.where(tiny, np.exp(np.minimum(y, _TINY)), safe)
