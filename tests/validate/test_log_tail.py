"""CASES 14: log Phi(-10) in float64, wherever the package computes such a thing.

The reference is mpmath's erfc at 30 digits; one minus a number near 1 would give log 0.
"""

from __future__ import annotations

import ast
from pathlib import Path
from types import ModuleType

import mpmath
import numpy as np
import pytest
import sympy as sp
import torch
from flint import arb

import numerics
import replica
import validate
from numerics.certify import certify
from numerics.cone.gauss import float_log_laplace, float_mills, log_lower_tail
from numerics.posterior import Scores, log_weight
from replica.code import to_python
from replica.gaussian import Phi
from validate.checks.hebbian import _typical

X = sp.Symbol("x", real=True)
TAIL = 7.619853024160525e-24
with mpmath.workdps(30):
    LOG_TAIL = float(mpmath.log(mpmath.erfc(10 / mpmath.sqrt(2)) / 2))


def log_tail(x: float) -> float:
    """log Phi(x) for x < 0 by mpmath."""
    with mpmath.workdps(30):
        return float(mpmath.log(mpmath.erfc(-x / mpmath.sqrt(2)) / 2))


def test_the_reference() -> None:
    assert pytest.approx(np.log(TAIL), rel=1e-14) == LOG_TAIL


def test_generated_numpy_code() -> None:
    forms = {
        "value": Phi(X),
        "log_phi": sp.log(Phi(X)),
        "mirror": sp.log(1 - Phi(-X)),
        "product": 2 * sp.log(3 * Phi(X) ** 7 * Phi(X - 1)),
    }
    namespace: dict[str, object] = {}
    exec(to_python(forms), namespace)

    def at(name: str, x: float) -> float:
        return float(namespace[name](x=x))  # type: ignore[operator]

    assert at("value", -10.0) == pytest.approx(TAIL, rel=1e-13)
    for x in (-10.0, -40.0):  # Phi(-40) is below the least float
        assert at("log_phi", x) == pytest.approx(log_tail(x), rel=1e-14)
        assert at("mirror", x) == pytest.approx(log_tail(x), rel=1e-14)
        expected = 2 * (np.log(3) + 7 * log_tail(x) + log_tail(x - 1))
        assert at("product", x) == pytest.approx(expected, rel=1e-14)


def test_numpy_functions() -> None:
    scores = Scores(np.zeros(1), np.full((1, 1), 10.0), np.ones((1, 1)), 1)
    total, x, log_cdf = log_weight(scores, np.zeros((1, 1)), 1.0, 0.0)
    assert x.item() == -10.0
    assert log_cdf.item() == pytest.approx(LOG_TAIL, rel=1e-14)
    assert total.item() == pytest.approx(LOG_TAIL - np.log(2 * np.pi) / 2, rel=1e-14)
    assert float_log_laplace(-10.0) - 50.0 == pytest.approx(LOG_TAIL, rel=1e-13)
    density = np.exp(-50.0) / np.sqrt(2 * np.pi)
    assert float_mills(10.0) * density == pytest.approx(TAIL, rel=1e-13)
    assert _typical(np.array([-10.0]), 0.0, 1)[0] == pytest.approx(TAIL, rel=1e-12)


def test_certified_numbers() -> None:
    for expression in (sp.log(Phi(-10)), sp.log(1 - Phi(10))):
        assert certify(expression, 15).to_float_lossy() == pytest.approx(LOG_TAIL, rel=1e-15)
    assert float(log_lower_tail(arb(-10)).mid()) == pytest.approx(LOG_TAIL, rel=1e-14)


def test_torch() -> None:
    """Nothing here computes Phi in torch; if something will, torch's own log_ndtr is right."""
    got = torch.special.log_ndtr(torch.tensor(-10.0, dtype=torch.float64)).item()
    assert got == pytest.approx(LOG_TAIL, rel=1e-14)


def _calls(package: ModuleType) -> list[tuple[str, ast.Call]]:
    root = Path(package.__path__[0])
    return [
        (f"{root.name}/{path.relative_to(root)}", node)
        for path in sorted(root.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
    ]


def _name(node: ast.Call) -> str:
    return ast.unparse(node.func)


def test_no_logarithm_of_a_rounded_tail() -> None:
    """No np.log or torch.log of an ndtr, cdf or sf, and no normal distribution from torch."""
    for package in (replica, numerics, validate):
        for where, call in _calls(package):
            name = _name(call)
            assert not name.startswith(("torch.erf", "torch.special.erf", "torch.distributions"))
            assert name not in ("torch.special.ndtr", "torch.special.ndtri"), where
            if name in ("np.log", "np.log10", "np.log1p", "torch.log", "torch.log1p"):
                inside = {
                    _name(n).rsplit(".", 1)[-1] for n in ast.walk(call) if isinstance(n, ast.Call)
                }
                assert not inside & {"ndtr", "cdf", "sf", "erfc", "erf"}, where
