"""The code version of a unit: everything in this project that its answer can depend on.

That is the source of the task's module and of every module it imports, directly or not, inside
functions or not, with the versions of the packages below it. So an answer in a store is reused
exactly as long as none of that has changed; a report's wording may change freely.
"""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OWN = ("replica", "numerics", "validate")
PACKAGES = ("sympy", "mpmath", "python-flint", "numpy", "scipy", "torch")
# They draw figures or pass units around; no answer depends on them.
WITHOUT_INFLUENCE = frozenset({"validate.plotting", "validate.checks.units"})


@cache
def code_of_task(task: str) -> str:
    """16 hexadecimal digits of SHA-256 for the task "package.module:function"; once a process.

    >>> len(code_of_task("validate.checks.statistics:clopper_pearson"))
    16
    """
    digest = hashlib.sha256()
    for module in sorted(closure(task.partition(":")[0])):
        digest.update(f"{module}\n".encode())
        # Line ends differ between checkouts of the same text.
        digest.update(_file(module).read_bytes().replace(b"\r\n", b"\n"))
    for package in PACKAGES:
        digest.update(f"{package} {metadata.version(package)}\n".encode())
    return digest.hexdigest()[:16]


@cache
def closure(module: str) -> frozenset[str]:
    """`module`, the packages that hold it, and all modules of this project they import.

    >>> sorted(m for m in closure("validate.checks.statistics") if m.startswith("validate.checks"))
    ['validate.checks', 'validate.checks.statistics']
    """
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in found or name in WITHOUT_INFLUENCE or not _exists(name):
            continue
        found.add(name)
        waiting += [*_parents(name), *_imports(name)]
    return frozenset(found)


@cache
def _imports(module: str) -> tuple[str, ...]:
    """Names of this project's modules in every import statement of `module`."""
    path = _file(module)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            # `from package import name`: the name may be a module of its own.
            names += [base, *(f"{base}.{alias.name}" for alias in node.names)]
    return tuple(name for name in names if name.partition(".")[0] in OWN and _exists(name))


def _parents(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[:k]) for k in range(1, len(parts))]


def _exists(module: str) -> bool:
    return _file(module).is_file()


def _file(module: str) -> Path:
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
