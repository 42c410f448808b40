"""The cone of recall: statistical dimension, intrinsic volumes, thresholds, success probability."""

from __future__ import annotations

from numerics.cone.critical import (
    critical_facts,
    critical_load,
    facts_per_parameter,
    least_dimension,
)
from numerics.cone.rank import rank_factor
from numerics.cone.success import failure_probability, success_probability
from numerics.cone.volumes import (
    IntrinsicVolumes,
    intrinsic_volumes,
    mean_active,
    statistical_dimension,
    variance_of_active,
)

__all__ = [
    "IntrinsicVolumes",
    "critical_facts",
    "critical_load",
    "facts_per_parameter",
    "failure_probability",
    "intrinsic_volumes",
    "least_dimension",
    "mean_active",
    "rank_factor",
    "statistical_dimension",
    "success_probability",
    "variance_of_active",
]
