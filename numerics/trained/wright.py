"""The Wright omega function on the real line: w + log w = y, that is w = W_0(e^y).

Lambert's W_0 in the logarithmic domain: no overflow for large y, full relative accuracy for very
negative y, where w = e^y (1 - e^y + ...).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Below, w = e^y to a rounding error; e^y itself is kept from underflowing in the logarithm.
_TINY = -37.0

#: W_0(e) = sum_k (-k)^(k-1)/k! e^k, the series for small e; up to the sixth power.
SERIES = (1.0, -1.0, 3.0 / 2.0, -8.0 / 3.0, 125.0 / 24.0, -54.0 / 5.0)

#: For y below this `wright_omega_series` is right to a relative 3e-12.
SERIES_LIMIT = -5.0


def wright_omega(y: Array) -> Array:
    """The w > 0 with w + log w = y, elementwise, to a few units in the last place.

    Argument: `y`, any shape, finite or -inf (w = 0). A starting value good to some per cent
    (Iacono and Boyd 2017), then two steps of the fourth-order iteration of Fritsch, Shafer and
    Crowley (1973).

    >>> wright_omega(np.array([1.0, -800.0])).tolist()
    [1.0, 0.0]
    >>> w = wright_omega(np.array([-30.0, 0.0, 1e6]))
    >>> float(np.max(np.abs(w + np.log(w) - [-30.0, 0.0, 1e6]))) < 1e-9
    True
    """
    y = np.asarray(y, dtype=np.float64)
    high = np.maximum(y, _TINY)
    w = np.exp(-np.abs(high))
    np.log1p(w, out=w)
    w += np.maximum(high, 0.0)  # softplus
    w *= 1.0 - np.log1p(w) / (2.0 + w)
    for _ in range(2):
        rest = high - np.log(w)
        rest -= w
        one = 1.0 + w
        square = rest * (2.0 / 3.0)
        square += one
        square *= one
        square *= 2.0
        square -= rest  # numerator; the denominator is one `rest` less
        one *= square - rest
        rest *= square
        rest /= one
        rest += 1.0
        w *= rest
    if np.any(y < _TINY):
        w = np.where(y < _TINY, np.exp(np.minimum(y, _TINY)), w)
    return w


def wright_omega_series(exponential: Array) -> Array:
    """W_0(e) for small e = e^y, y < `SERIES_LIMIT`, elementwise, by its series.

    >>> y = np.array([-6.0, -20.0])
    >>> np.allclose(wright_omega_series(np.exp(y)), wright_omega(y), rtol=3e-12, atol=0)
    True
    """
    result = np.full_like(exponential, SERIES[-1])
    for coefficient in reversed(SERIES[:-1]):
        result *= exponential
        result += coefficient
    result *= exponential
    return result
