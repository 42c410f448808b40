"""The recall cone C = { y_0 >= max_rho y_rho + margin } at finite M: distances and their law.

dist^2(z, C) = min_t (t + margin - z_0)_+^2 + sum_rho (z_rho - t)_+^2. At the minimum
F(t) = t + margin - z_0 - S(t) = 0 with S = sum_rho (z_rho - t)_+; F increases with slope 1 + K,
K the number of active competitors (z_rho > t). Hence for every function f of the minimum

    E f = int dt int dlambda/(2 pi) E[ f (1 + K) exp(i lambda F(t)) ],

which factorises over the scores, and in w = t + i lambda also into a t and a w integral.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from replica import symbols as s
from replica.derivation import Derivation
from replica.errors import InvalidInput
from replica.gaussian import GaussianAverage, Phi, phi

g = sp.Symbol("g", real=True)
frequency = sp.Symbol("l", real=True)


def active_factor(k: Any, margin: Any = 0) -> Any:
    """A_k = E exp(-i margin g) Phi(i g)^k, g ~ N(0, 1/(k+1)).

    At margin 0: the probability that k of k+1 Gaussians, a fixed one left out, exceed their mean.

    >>> [active_factor(k).doit() for k in (0, 1, 2)]
    [1, 1/2, 1/6]
    """
    k = sp.sympify(k)
    body = Phi(sp.I * g) ** k * sp.exp(-sp.I * sp.sympify(margin) * g)
    return GaussianAverage(body, (g, 1 / (k + 1)))


def inactive_factor(k: Any, count: Any, margin: Any = 0) -> Any:
    """B_{k,N} = E exp(-margin g) Phi(g)^N, g ~ N(0, 1/(k+1)), N = count.

    At margin 0: the probability that N further Gaussians lie below the mean of k+1.

    >>> inactive_factor(1, 1).doit()
    1/2
    """
    k = sp.sympify(k)
    body = Phi(g) ** count * sp.exp(-sp.sympify(margin) * g)
    return GaussianAverage(body, (g, 1 / (k + 1)))


def intrinsic_volume(k: Any, competitors: Any = s.M, margin: Any = 0) -> Any:
    """v_k = P(K = k) = binomial(M, k) A_k B_{k, M-k}, M = competitors.

    At margin 0 these are the conic intrinsic volumes of the polar of the recall cone (source:
    `add_distance_steps` derives the factorised form).

    >>> [intrinsic_volume(k, 2).doit() for k in (0, 1, 2)]
    [1/3, 1/2, 1/6]
    """
    return (
        sp.binomial(competitors, k)
        * active_factor(k, margin)
        * inactive_factor(k, competitors - k, margin)
    )


def distance_factor(k: Any, margin: Any) -> Any:
    """D_k, which replaces A_k when dist^2 is averaged instead of 1 at K = k.

    With h(w) = exp(w^2/2) (1 - Phi(w)): D_k = E exp(i margin g) R_k(i g), g ~ N(0, 1/(k+1)),
    R_k(w) = exp(-k w^2/2) [ (h^k)'' + k h^(k-1) h'' ]: S^2 is minus the second derivative with
    respect to the frequency, and sum_rho (z_rho - t)^2 the same on a single competitor.
    """
    k = sp.sympify(k)
    return GaussianAverage(
        sp.exp(sp.I * sp.sympify(margin) * g) * _squared_excess(k).subs(s.w, sp.I * g),
        (g, 1 / (k + 1)),
    )


def _squared_excess(k: Any) -> Any:
    """R_k(w), by differentiation and division by exp(k w^2/2)."""
    # h = e^{w^2/2} Q with Q' = -phi: written through Q so that the exponential divides out.
    tail = 1 - Phi(s.w)
    first = s.w * tail - phi(s.w)
    second = tail + s.w * first
    return sp.expand_mul(
        k * (k - 1) * tail ** (k - 2) * first**2 + 2 * k * tail ** (k - 1) * second
    )


def mean_distance_squared(competitors: Any = s.M, margin: Any = 0) -> Any:
    """delta = E dist^2(z, C): sum_k k v_k at margin 0, sum_k binomial(M, k) D_k B_{k, M-k} else.

    >>> mean_distance_squared(2).doit()
    5/6
    """
    margin = sp.sympify(margin)
    if margin == 0:
        term = s.k * intrinsic_volume(s.k, competitors)
    else:
        term = (
            sp.binomial(competitors, s.k)
            * distance_factor(s.k, margin)
            * inactive_factor(s.k, competitors - s.k, margin)
        )
    if sp.sympify(competitors).is_Integer:
        return sp.Add(*[term.subs(s.k, k) for k in range(1, int(competitors) + 1)])
    return sp.Sum(term, (s.k, 1, competitors))


def competitor_generating_function(mark: Any) -> Any:
    """E exp(-i lambda (z - t)_+) mark^(1 if z > t else 0) over one competitor: a + mark b."""
    below = GaussianAverage(sp.S.One, (s.z, 1, -sp.oo, s.t))
    above = GaussianAverage(sp.exp(-sp.I * frequency * (s.z - s.t)), (s.z, 1, s.t, sp.oo))
    return below.doit() + mark * above.doit()


def double_integral(competitors: Any = s.M) -> Any:
    """delta at margin 0 as one double integral over t and the frequency l (a second route).

    delta = int dt int dl/(2 pi) exp(-l^2/2 + i l t)
            [ 2 M b (a+b)^(M-1) + M (M-1) b^2 (a+b)^(M-2) ].
    """
    mark = sp.Symbol("mark", positive=True)
    a_b = sp.Symbol("a") + mark * sp.Symbol("b")
    power = a_b**competitors
    # K (K + 1) = K (K - 1) + 2 K: second and first derivative with respect to the mark.
    counted = (power.diff(mark, 2) + 2 * power.diff(mark)).subs(mark, 1)
    pair = competitor_generating_function(mark)
    b = pair.coeff(mark)
    weight = GaussianAverage(sp.exp(-sp.I * frequency * s.z0), s.z0).doit()
    integrand = weight * sp.exp(sp.I * frequency * s.t) / (2 * sp.pi)
    integrand *= counted.subs({sp.Symbol("a"): pair - mark * b, sp.Symbol("b"): b})
    return sp.Integral(integrand, (frequency, -sp.oo, sp.oo), (s.t, -sp.oo, sp.oo))


def success_probability(dimension: Any, facts: int, competitors: int) -> Any:
    """P(separable) = 2 sum_{j = 1, 3, 5, ...} P(K_tot = N - j), exactly, N = `dimension` weights.

    K_tot is the sum of `facts` independent copies of K. The scores of a Gaussian memory span a
    uniformly random N-dimensional subspace; the conic kinematic formula gives the probability that
    it meets the interior of the product of the recall cones (Amelunxen, Lotz, McCoy, Tropp 2014).

    >>> success_probability(3, 5, 1)  # Cover: 2^(1-p) sum_{i < N} binomial(p-1, i)
    11/16
    """
    for name, value in (("dimension", dimension), ("facts", facts), ("competitors", competitors)):
        if not (sp.sympify(value).is_Integer and value >= 1):
            raise InvalidInput(f"{name} is {value}; it must be a positive integer")
    volumes = [intrinsic_volume(k, competitors).doit() for k in range(competitors + 1)]
    total = [sp.S.One]
    for _ in range(facts):
        total = [
            sp.Add(
                *[
                    total[i - j] * volumes[j]
                    for j in range(competitors + 1)
                    if 0 <= i - j < len(total)
                ]
            )
            for i in range(len(total) + competitors)
        ]
    picked = [total[i] for i in range(dimension - 1, -1, -2) if i < len(total)]
    if dimension > facts * competitors:
        return sp.S.One
    return sp.expand(2 * sp.Add(*picked))


def add_distance_steps(derivation: Derivation, competitors: Any, margin: Any) -> Any:
    """Append the derivation of delta(M, margin) and return delta."""
    k, t, w = s.k, s.t, s.w
    z_i = sp.Function("z", real=True)
    excess = sp.Sum(sp.Max(z_i(s.rho) - t, 0), (s.rho, 1, competitors))
    derivation.add(
        "Nearest point of C",
        sp.Eq(t + margin - s.z0, excess),
        "dist^2 = min over t of (t + margin - z_0)_+^2 + sum (z_rho - t)_+^2; derivative in t",
    )
    mark = sp.Symbol("mark", positive=True)
    pair = competitor_generating_function(mark)
    derivation.add(
        "Average over one competitor, active ones marked",
        pair,
        "E exp(-i l (z - t)_+) mark^(z > t); the root t is selected by "
        "1 = int dt F'(t) delta(F(t)), F' = 1 + K, delta as a Fourier integral over l",
    )
    target = GaussianAverage(sp.exp(-sp.I * frequency * s.z0), s.z0)
    derivation.add("Average over the target score", sp.Eq(target, target.doit()), "shift rule")
    active = pair.coeff(mark)
    prefactor = active / (1 - Phi(t + sp.I * frequency))
    exponent = sp.log(sp.cancel(prefactor)).expand(force=True)
    total = -(frequency**2) / 2 + sp.I * frequency * (t + margin) + k * exponent
    separated = sp.expand(total.subs(frequency, -sp.I * (w - t)))
    if separated.diff(t, w).expand() != 0:
        raise ArithmeticError("the integrand does not factorise in t and w")
    derivation.add(
        "Exponent of the term with K = k",
        sp.collect(separated, [t, w]),
        "w = t + i l; no cross term is left, so the integrals over t and w separate (the contour "
        "of w moves to the imaginary axis, the integrand being entire)",
    )
    derivation.add(
        "Law of the number of active competitors",
        intrinsic_volume(k, competitors, margin),
        "binomial(M, k) (1 + k) times both integrals; each becomes an average over "
        "g ~ N(0, 1/(k+1)), w = i g",
        symbol=s.v_k,
    )
    delta = mean_distance_squared(competitors, margin)
    reason = (
        "given K = k the deviations from the mean form a chi^2 with k degrees of freedom"
        if sp.sympify(margin) == 0
        else "dist^2 = S^2 + sum (z_rho - t)_+^2 at the root: second derivatives in the frequency"
    )
    derivation.add("Mean squared distance", delta, reason, symbol=s.delta)
    if isinstance(delta, sp.Sum) and sp.sympify(margin) == 0:
        weight = sp.cancel(delta.function / intrinsic_volume(k, competitors))
        derivation.add(
            "Statistical dimension: mean number of active competitors",
            sp.Sum(weight * s.v_k, delta.limits[0]),
            "the summand divided by the law of the number of active competitors",
            symbol=s.delta,
        )
    return delta
