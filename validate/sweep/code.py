"""The code version of a result: everything that can change its bytes.

A digest of the sources that draw, solve, prove and sample, with the versions of NumPy, SciPy and
torch. A store keeps the rows of every code version apart and reuses those of the current one only.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import metadata
from pathlib import Path

SOURCES = (
    "certificates.py",
    "certified_rows.py",
    "decide.py",
    "embeddings.py",
    "problems",
    "sampler",
    "simulate.py",
    "solvers",
    "sweep/cell.py",
)
PACKAGES = ("numpy", "scipy", "torch")


@cache
def code_version() -> str:
    """16 hexadecimal digits of SHA-256 over sources and package versions; computed once a process.

    >>> len(code_version())
    16
    """
    digest = hashlib.sha256()
    root = Path(__file__).resolve().parent.parent
    for name in SOURCES:
        path = root / name
        for source in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(f"{source.relative_to(root).as_posix()}\n".encode())
            # Line ends differ between checkouts of the same text.
            digest.update(source.read_bytes().replace(b"\r\n", b"\n"))
    for package in PACKAGES:
        digest.update(f"{package} {metadata.version(package)}\n".encode())
    return digest.hexdigest()[:16]
