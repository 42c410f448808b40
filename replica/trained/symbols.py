"""Symbols of the trained memory; V, gamma and M are those of `replica.symbols`.

| symbol | meaning |
|---|---|
| beta | inverse temperature, -> infinity |
| ridge | lambda, strength of the penalty lambda N/2 ||W||^2 |
| Q | ||W||^2, variance of a score |
| x_0, x_1 | proximal scores of the target and of one competitor |
"""

from __future__ import annotations

import sympy as sp

beta = sp.Symbol("beta", positive=True)
ridge = sp.Symbol("lambda", positive=True)
Q = sp.Symbol("Q", positive=True)
x0, x1 = sp.symbols("x_0 x_1", real=True)
