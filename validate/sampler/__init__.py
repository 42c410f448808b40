"""Uniform sampling of the solution space: which memories recall every fact, and how alike they are.

W ~ N(0, I) restricted to the open cone {W : all margins > 0} has a direction W/|W| that is uniform
on the solution space, because both the Gaussian and the cone are invariant under W -> c W, c > 0.
"""

from __future__ import annotations

from validate.sampler.overlap import Overlap, measure_overlap
from validate.sampler.run import Sample, sample, sample_rows

__all__ = ["Overlap", "Sample", "measure_overlap", "sample", "sample_rows"]
