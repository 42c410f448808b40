"""From the geometry of the cone to the integral that the Wick engine expands.

dist^2(z, C) = min_t (t + m - z_0)_+^2 + sum_rho (z_rho - t)_+^2. Everything below is obtained by
operations on SymPy expressions; the engine receives only the polynomials in B that come out.
"""

from __future__ import annotations

from functools import lru_cache

import sympy as sp

from replica.wick import ACTIVE, ACTIVE_1, ACTIVE_2, LEVEL

T_LEVEL = sp.Symbol("t", real=True)
V = sp.Symbol("v", real=True)  # i lambda; real v suffices for the formal expansion
W = sp.Symbol("w", real=True)  # t + v
S = sp.Symbol("s", positive=True)
EXCESS = sp.Symbol("x", positive=True)
COMPETITORS = sp.Symbol("M", positive=True)
MARGIN = sp.Symbol("margin", real=True)
_SHAPE = sp.Function("B")


def normal_density(x: sp.Expr) -> sp.Expr:
    """phi(x) = e^{-x^2/2} / sqrt(2 pi)."""
    return sp.exp(-(x**2) / 2) / sp.sqrt(2 * sp.pi)


def mills_integral(w: sp.Expr) -> sp.Integral:
    """m(w) = int_0^oo e^{-w x - x^2/2} dx, Mills' ratio."""
    return sp.Integral(sp.exp(-w * EXCESS - EXCESS**2 / 2), (EXCESS, 0, sp.oo))


def stationarity() -> tuple[sp.Expr, sp.Expr]:
    """Half the t-derivative of the distance for K active competitors, and its slope.

    With K active ones of sum Z the condition is t + m - z_0 = sum_active (z_rho - t), and the
    Jacobian that turns the root t into an integral over t is 1 + K.

    >>> stationarity()[1]
    K + 1
    """
    count, total, target, square = sp.symbols("K Z z_0 Z_2")
    distance = (T_LEVEL + MARGIN - target) ** 2
    # sum over active (z_rho - t)^2 = Z_2 - 2 t Z + K t^2
    distance += square - 2 * T_LEVEL * total + count * T_LEVEL**2
    condition = sp.expand(sp.diff(distance, T_LEVEL) / 2)
    return condition, sp.diff(condition, T_LEVEL)


def competitor_weight() -> tuple[sp.Expr, sp.Expr]:
    """b = E 1[z > t] e^{-v (z - t)} as an integral over the excess x, and as phi(t) m(t + v).

    The exponents agree identically, which is checked here.
    """
    direct = normal_density(T_LEVEL + EXCESS) * sp.exp(-V * EXCESS)
    factored = normal_density(T_LEVEL) * mills_integral(T_LEVEL + V).function
    if sp.expand(sp.log(direct / factored).expand(force=True)) != 0:
        raise ArithmeticError("the competitor's weight does not factor into phi(t) m(t + v)")
    left = sp.Integral(direct, (EXCESS, 0, sp.oo))
    return left, normal_density(T_LEVEL) * mills_integral(T_LEVEL + V)


def _jacobian(expression: sp.Expr) -> sp.Expr:
    """(1 + s d/ds): the Jacobian 1 + K acting on a generating function."""
    return expression + S * sp.diff(expression, S)


def _polynomial(expression: sp.Expr) -> sp.Expr:
    """Divide by e^{s B} at s = 1 and name B, B', B''."""
    shape = _SHAPE(W)
    reduced = sp.expand(sp.simplify((expression * sp.exp(-S * shape)).doit()).subs(S, 1))
    return sp.expand(
        reduced.subs(sp.diff(shape, W, 2), ACTIVE_2)
        .subs(sp.diff(shape, W), ACTIVE_1)
        .subs(shape, ACTIVE)
    )


@lru_cache(maxsize=1)
def observables() -> dict[str, sp.Expr]:
    """Polynomials in B, B', B'' and t/T whose Wick averages are the quantities named.

    e^{s B(w)} is the Poisson generating function of the active competitors, w = t + v. Then
    K -> s d/ds, and since every active competitor carries e^{-w x}, the square of the summed
    excess is d^2/dw^2 of e^{s B} and the sum of squared excesses is s B'' e^{s B}.

    >>> observables()["active"]
    B**2 + 2*B
    """
    generating = sp.exp(S * _SHAPE(W))
    count = S * sp.diff(generating, S)
    count_square = S * sp.diff(count, S)
    target_part = sp.diff(generating, W, 2)  # (t + m - z_0)^2 = (sum of excesses)^2
    competitor_part = S * sp.diff(_SHAPE(W), W, 2) * generating
    table = {
        "normalisation": _polynomial(_jacobian(generating)),
        "active": _polynomial(_jacobian(count)),
        "active_square": _polynomial(_jacobian(count_square)),
        "distance_square": _polynomial(_jacobian(target_part + competitor_part)),
    }
    table["level"] = table["normalisation"] * LEVEL
    table["level_square"] = table["normalisation"] * LEVEL**2
    return table


def integrand_exponent() -> sp.Expr:
    """S(t, v) = v^2/2 + v (t + m) - M phi(t) [m(t) - m(t + v)] of the Poisson limit.

    phi(t + m - S) = (1/2 pi) int dlambda e^{-lambda^2/2 + i lambda (t + m - S)} gives the first two
    terms with v = i lambda; M log(a + b) -> M (a + b - 1) = M phi(t) [m(t+v) - m(t)] the third.
    """
    mills = sp.Function("m")
    height = COMPETITORS * normal_density(T_LEVEL)
    return V**2 / 2 + V * (T_LEVEL + MARGIN) - height * (mills(T_LEVEL) - mills(T_LEVEL + V))
