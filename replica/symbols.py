"""The symbols that every formula shares, with the names the command line prints.

| symbol | meaning | range |
|---|---|---|
| q, V | overlap of two solutions, V = 1 - q | (0, 1) |
| gamma | facts per parameter p / (d_in d_out) | positive |
| alpha | load gamma * L (or gamma itself where no logarithm enters) | positive |
| M, L | number of competitors, log p | positive |
| margin | required lead of the target score | real |
| rank_ratio, aspect_ratio | columns of the factors / d_out, d_out / d_in | (0, 1] |
| r | fraction of competitors in a tail average | (0, 1) |
| list_size | length of the list that must hold the target | positive integer |
| n | number of replicas | -> 0 |
"""

from __future__ import annotations

import sympy as sp

q = sp.Symbol("q", positive=True)
V = sp.Symbol("V", positive=True)
gamma = sp.Symbol("gamma", positive=True)
alpha = sp.Symbol("alpha", positive=True)
M = sp.Symbol("M", positive=True, integer=True)
L = sp.Symbol("L", positive=True)
margin = sp.Symbol("margin", real=True)
rank_ratio = sp.Symbol("rank_ratio", positive=True)
aspect_ratio = sp.Symbol("aspect_ratio", positive=True)
r = sp.Symbol("r", positive=True)
n = sp.Symbol("n", real=True)
list_size = sp.Symbol("list_size", positive=True, integer=True)
# One-step replica symmetry breaking: overlaps between and within blocks, and the block size.
q0 = sp.Symbol("q0", positive=True)
q1 = sp.Symbol("q1", positive=True)
block = sp.Symbol("block", positive=True)
# Names of results, to the left of their formulas: the free entropy per weight (of any q, in the
# scaling limit, and there at the saddle point), the statistical dimension, the law of the number of
# active competitors, the critical load.
free_entropy = sp.Function("phi", real=True)(q)
scaling_free_entropy = sp.Function("phi_s", real=True)(q)
saddle_free_entropy = sp.Symbol("phi_s", real=True)
delta = sp.Symbol("delta", positive=True)
v_k = sp.Symbol("v_k", nonnegative=True)
alpha_c = sp.Symbol("alpha_c", positive=True)
# Integration and index symbols.
t = sp.Symbol("t", real=True)
x = sp.Symbol("x", real=True)
y = sp.Symbol("y", real=True)
u = sp.Symbol("u", real=True)
psi = sp.Symbol("psi", real=True)
w = sp.Symbol("w")
z = sp.Symbol("z", real=True)
z0 = sp.Symbol("z0", real=True)
z1 = sp.Symbol("z1", real=True)
omega0 = sp.Symbol("omega_0", real=True)
omega1 = sp.Symbol("omega_1", real=True)
rho = sp.Symbol("rho", integer=True, positive=True)
k = sp.Symbol("k", integer=True, nonnegative=True)
