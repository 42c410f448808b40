"""P(lead + spread g > max of M Gaussians) in floating point."""

from __future__ import annotations

import numpy as np
from scipy import special


def recall_by_lead(competitors: int, lead: float, spread: float = 1.0) -> float:
    """E Phi(lead + spread g)^M, g ~ N(0, 1): a target score of this mean and standard deviation
    (those of a competitor being 0 and 1) beats M rivals.

    The trapezoidal rule around the peak of the integrand (exact to rounding for an entire function
    of Gaussian decay). At spread 1 it is the recall of the Hebbian memory, lead = 1/sigma
    (THEORY section 6).

    >>> from scipy.special import ndtr
    >>> bool(abs(recall_by_lead(1, 1.0) - ndtr(1 / np.sqrt(2))) < 1e-13)
    True
    """

    def log_integrand(g: np.ndarray) -> np.ndarray:
        value = -0.5 * g * g + float(competitors) * special.log_ndtr(lead + spread * g)
        return np.asarray(value)

    coarse = np.linspace(-5.0, 60.0, 1301)
    centre = float(coarse[np.argmax(log_integrand(coarse))])
    g = np.linspace(centre - 12.0, centre + 12.0, 4001)
    total = np.sum(np.exp(log_integrand(g))) * (g[1] - g[0]) / np.sqrt(2.0 * np.pi)
    return min(float(total), 1.0)
