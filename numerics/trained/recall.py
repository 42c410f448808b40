"""P(g + lead > max of M Gaussians) in floating point: the recall of every additive signal."""

from __future__ import annotations

import numpy as np
from scipy import special

_NODES = 2000


def recall_by_lead(competitors: int, lead: float) -> float:
    """E Phi(lead + g)^M, g ~ N(0, 1): a target raised by `lead` standard deviations beats M rivals.

    The trapezoidal rule on the whole line (errors beyond rounding for this entire integrand). The
    same integral gives the recall of the Hebbian memory, lead = 1/sigma (THEORY section 6).

    >>> from scipy.special import ndtr
    >>> abs(recall_by_lead(1, 1.0) - ndtr(1 / np.sqrt(2))) < 1e-14
    True
    """
    g = np.linspace(-12.0, 12.0, _NODES + 1)
    # the integrand peaks between 0 and the lead that is missing to the typical best rival
    centre = max(0.0, _threshold(competitors) - lead)
    shifted = g + centre
    log_weight = -0.5 * shifted * shifted
    weight = np.exp(log_weight + competitors * special.log_ndtr(lead + shifted))
    return float(np.sum(weight) * (g[1] - g[0]) / np.sqrt(2.0 * np.pi))


def _threshold(competitors: int) -> float:
    """Median of the largest of M Gaussians: Phi(t)^M = 1/2."""
    return float(-special.ndtri(-np.expm1(-np.log(2.0) / competitors)))
