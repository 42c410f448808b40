"""Versions and machine facts that a reader needs to repeat a report."""

from __future__ import annotations

import os
import platform
from importlib import metadata

PACKAGES = (
    "factcap",
    "sympy",
    "mpmath",
    "python-flint",
    "numpy",
    "scipy",
    "torch",
    "matplotlib",
    "latex2mathml",
    "jinja2",
)


def versions() -> dict[str, str]:
    """Version of Python, of the packages used, the processor type and the number of cores.

    >>> sorted(versions())[:2]
    ['cores', 'factcap']
    """
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    found["machine"] = f"{platform.system()} {platform.machine()}"
    found["cores"] = str(
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    )
    return found
