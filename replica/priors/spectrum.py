"""Singular values of a Gaussian matrix and what its best low-rank part carries.

For G in R^(d_out x d_in), entries N(0, 1/d_in), c = d_out/d_in <= 1, the eigenvalues x of G G^T
follow the Marchenko-Pastur law on [(1-sqrt c)^2, (1+sqrt c)^2]; at c = 1 the singular values
sqrt(x) follow the quarter circle on [0, 2]. An angle, x = 1 + c + 2 sqrt(c) cos(theta), turns both
into elementary integrals; theta = 0 is the top of the spectrum.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import sympy as sp

from replica import symbols as s
from replica.derivation import Derivation
from replica.errors import InvalidInput

theta = sp.Symbol("theta", positive=True)


def eigenvalue(angle: Any = theta, aspect: Any = s.aspect_ratio) -> Any:
    """x(theta) = 1 + c + 2 sqrt(c) cos(theta), the squared singular value.

    >>> import sympy as sp
    >>> eigenvalue(0, 1), eigenvalue(sp.pi, 1)
    (4, 0)
    """
    return 1 + aspect + 2 * sp.sqrt(aspect) * sp.cos(angle)


def marchenko_pastur(x: Any, aspect: Any = s.aspect_ratio) -> Any:
    """Density of eigenvalues, sqrt((x_+ - x)(x - x_-)) / (2 pi c x) on [x_-, x_+]."""
    upper, lower = (1 + sp.sqrt(aspect)) ** 2, (1 - sp.sqrt(aspect)) ** 2
    return sp.sqrt((upper - x) * (x - lower)) / (2 * sp.pi * aspect * x)


def _density_in_angle(aspect: Any) -> Any:
    """rho(x) |dx/dtheta| = (2/pi) sin^2 / x: the square root becomes 2 sqrt(c) sin(theta)."""
    x = eigenvalue(theta, aspect)
    inside = ((1 + sp.sqrt(aspect)) ** 2 - x) * (x - (1 - sp.sqrt(aspect)) ** 2)
    root = 2 * sp.sqrt(aspect) * sp.sin(theta)
    if sp.expand(sp.expand(inside) - 4 * aspect * (1 - sp.cos(theta) ** 2)) != 0:
        raise ArithmeticError("the angle does not rationalise the Marchenko-Pastur density")
    return root * (-x.diff(theta)) / (2 * sp.pi * aspect * x)


@lru_cache(maxsize=32)
def mass_above(angle: Any = theta, aspect: Any = s.aspect_ratio) -> Any:
    """rank_ratio as a function of the angle: the fraction of singular values above x(theta).

    Square: (theta - sin theta)/pi. The antiderivative is checked by differentiation.

    >>> mass_above(aspect=1)
    (theta - sin(theta))/pi
    """
    c = sp.sympify(aspect)
    half = (1 - sp.sqrt(c)) / (1 + sp.sqrt(c)) * sp.tan(theta / 2)
    full = (1 + c) * theta - 2 * sp.sqrt(c) * sp.sin(theta) - 2 * (1 - c) * sp.atan(half)
    mass = full / (2 * sp.pi * c)
    if not _same_in_half_angle(mass.diff(theta), _density_in_angle(c)):
        raise ArithmeticError("the antiderivative of the Marchenko-Pastur density is wrong")
    return sp.cancel(mass).subs(theta, angle) if c == 1 else mass.subs(theta, angle)


def _same_in_half_angle(left: Any, right: Any) -> bool:
    """Equality of functions rational in sin, cos, tan(theta/2) and sqrt(c)."""
    u, root = sp.symbols("u root", positive=True)
    difference = (left - right).subs(
        {sp.sin(theta): 2 * u / (1 + u**2), sp.cos(theta): (1 - u**2) / (1 + u**2)}
    )
    difference = difference.subs(sp.tan(theta / 2), u).subs(s.aspect_ratio, root**2)
    return bool(sp.cancel(sp.together(difference)) == 0)


@lru_cache(maxsize=32)
def weight_above(angle: Any = theta) -> Any:
    """I as a function of the angle: integral of x over the singular values above x(theta).

    The factor x cancels the denominator of the density, so c drops out.

    >>> weight_above()
    (theta - sin(theta)*cos(theta))/pi
    """
    density = sp.cancel(_density_in_angle(s.aspect_ratio) * eigenvalue())
    dummy = sp.Symbol("angle", positive=True)
    value = sp.integrate(density.subs(theta, dummy), (dummy, 0, theta))
    return sp.together(sp.expand(value)).subs(theta, angle)


class SpectralAngle(sp.Function):
    """The angle theta in [0, pi] with mass_above(theta, aspect) = rank_ratio.

    >>> import sympy as sp
    >>> SpectralAngle(1, sp.Rational(1, 3)), SpectralAngle(sp.Rational(1, 2), 1).evalf(20)
    (pi, 2.3098814600100572609)
    """

    nargs = 2

    @classmethod
    def eval(cls, rank: Any, aspect: Any) -> Any:
        for name, value in (("rank_ratio", rank), ("aspect_ratio", aspect)):
            if value.is_number and not (0 < value <= 1 or (name == "rank_ratio" and value == 0)):
                raise InvalidInput(
                    f"{name} is {value}; it must lie in (0, 1]; exchange inputs and outputs if "
                    "the outputs have the larger dimension"
                )
        if rank == 1:
            return sp.pi
        if rank == 0:
            return sp.S.Zero
        return None

    def fdiff(self, argindex: int = 1) -> Any:
        rank, aspect = self.args
        angle = sp.Symbol("angle", positive=True)
        mass = mass_above(angle, s.aspect_ratio)
        slope = mass.diff(angle) if argindex == 1 else -mass.diff(angle) / mass.diff(s.aspect_ratio)
        return (1 / slope).subs(s.aspect_ratio, aspect).subs(angle, SpectralAngle(rank, aspect))

    def _eval_evalf(self, prec: int) -> Any:
        import mpmath

        rank, aspect = (value._eval_evalf(prec + 10) for value in self.args)
        if rank is None or aspect is None or not (rank.is_Number and aspect.is_Number):
            return None
        mass = sp.lambdify(theta, mass_above(theta, self.args[1]), "mpmath")
        slope = sp.lambdify(theta, mass_above(theta, self.args[1]).diff(theta), "mpmath")
        with mpmath.workprec(prec + 20):
            target = rank._to_mpmath(prec + 20)
            low, high = mpmath.mpf(0), +mpmath.pi
            if target >= 1:  # rounded to full rank at low precision
                return sp.pi._eval_evalf(prec)
            point = high * target ** (mpmath.mpf(1) / 3)
            # Newton, kept in the bracket by bisection: mass_above increases.
            for _ in range(10 * prec):
                gap = mass(point) - target
                low, high = (point, high) if gap < 0 else (low, point)
                step = gap / slope(point)
                new = point - step
                if not low < new < high:
                    new = (low + high) / 2
                if abs(new - point) <= mpmath.ldexp(abs(point), -prec - 8):
                    return sp.Float._new(new._mpf_, prec)
                point = new
        return None

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        body = rf"\theta_{{{', '.join(printer._print(a) for a in self.args)}}}"
        return body if exp is None else rf"{body}^{{{exp}}}"


class SpectralWeight(sp.Function):
    """I(rank_ratio, aspect) = max over rank of ||best part of G||_F^2 / ||G||_F^2, in (0, 1].

    The squared weight of the largest singular values, a fraction rank_ratio of them: closed form
    (theta - sin(theta) cos(theta))/pi at theta = SpectralAngle(rank_ratio, aspect). Its derivative
    in rank_ratio is the squared singular value at the cut.

    >>> import sympy as sp
    >>> SpectralWeight(1, 1), SpectralWeight(sp.Rational(1, 2), 1).evalf(10)
    (1, 0.8937307939)
    """

    nargs = 2

    @classmethod
    def eval(cls, rank: Any, aspect: Any) -> Any:
        angle = SpectralAngle(rank, aspect)
        return weight_above(angle) if not isinstance(angle, SpectralAngle) else None

    def fdiff(self, argindex: int = 1) -> Any:
        if argindex != 1:
            raise InvalidInput("SpectralWeight is differentiated in its rank_ratio only")
        return eigenvalue(SpectralAngle(*self.args), self.args[1])

    def closed_form(self) -> Any:
        """The weight written with `SpectralAngle`."""
        return weight_above(SpectralAngle(*self.args))

    def _eval_evalf(self, prec: int) -> Any:
        return sp.N(self.closed_form(), sp.core.evalf.prec_to_dps(prec + 10))._eval_evalf(prec)

    def plain(self) -> Any:
        """Layer cake: integral over x of min(rank_ratio, mass above x), an ordinary `Integral`.

        At a fixed rank it is a decimal of 30 digits instead: SymPy would evaluate the integral,
        whose integrand has a kink, at every comparison, for minutes.
        """
        rank, aspect = self.args
        if rank.is_number and aspect.is_number:
            return self.evalf(30)
        jacobian = -eigenvalue(theta, aspect).diff(theta)
        capped = sp.Min(rank, mass_above(theta, aspect))
        return rank * eigenvalue(sp.pi, aspect) + sp.Integral(capped * jacobian, (theta, 0, sp.pi))

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        rank, aspect = self.args
        inside = (
            printer._print(rank) if aspect == 1 else printer.doprint(sp.Tuple(*self.args))[6:-7]
        )
        body = rf"I\left({inside}\right)"
        return body if exp is None else rf"{{{body}}}^{{{exp}}}"


def add_parametric_load(derivation: Derivation) -> None:
    """Results that a low-rank critical load needs to be used with functions SymPy knows.

    I(rank_ratio) has a closed form in the angle only, and its layer-cake integral is slow to
    evaluate; so the curve is also given in parametric form. Nothing is added to a derivation whose
    load has no `SpectralWeight`.
    """
    load = sp.sympify(derivation.results["critical_load"])
    for weight in load.atoms(SpectralWeight):
        aspect = weight.args[1]
        derivation.results["critical_load_parametric"] = derivation.add(
            "The critical load against rank_ratio in parametric form",
            [
                sp.Eq(s.rank_ratio, mass_above(theta, aspect)),
                load.xreplace({weight: weight_above()}),
            ],
            "0 < theta <= pi; theta = pi is full rank",
        )


def expansion_at_zero(order: int = 3, aspect: Any = 1) -> Any:
    """I(rank_ratio) as rank_ratio -> 0: series in rank_ratio^(2/3), by reversion in theta.

    >>> expansion_at_zero(2)
    -3*6**(2/3)*pi**(2/3)*rank_ratio**(5/3)/5 + 4*rank_ratio
    """
    u = sp.Symbol("u", positive=True)
    # rank_ratio = theta^3 (m0 + m1 theta^2 + ...): revert for theta in u = rank_ratio^(1/3).
    degree = 2 * order + 1
    mass = _taylor(mass_above(theta, sp.sympify(aspect)), degree + 2)
    unknown = sp.symbols(f"a0:{order}")
    angle = sp.Add(*[a * u ** (2 * i + 1) for i, a in enumerate(unknown)])
    values = _match(mass, angle, u**3, unknown, [3 + 2 * i for i in range(order)], u)
    weight = _taylor(weight_above(), degree + 2).subs(theta, angle.subs(values))
    terms = sp.Poly(sp.expand(weight), u)
    kept = [
        terms.coeff_monomial(u**e) * s.rank_ratio ** sp.Rational(e, 3)
        for e in range(3, degree + 1, 2)
    ]
    return sp.Add(*[sp.powsimp(sp.powdenest(sp.factor(term), force=True)) for term in kept])


def expansion_at_one(order: int = 1) -> Any:
    """Square case, rank_ratio -> 1: 1 - I in odd powers of 1 - rank_ratio, from the third on.

    >>> expansion_at_one()
    -pi**2*(1 - rank_ratio)**3/12 + 1
    """
    u = sp.Symbol("u", positive=True)
    # theta = pi - phi: 1 - rank_ratio = (phi + sin phi)/pi, 1 - I = (phi - sin phi cos phi)/pi.
    missing = sp.expand_trig(1 - mass_above(theta, 1).subs(theta, sp.pi - theta))
    lost = sp.expand_trig(1 - weight_above().subs(theta, sp.pi - theta))
    degree = 2 * order + 1
    unknown = sp.symbols(f"a0:{order}")
    angle = sp.Add(*[a * u ** (2 * i + 1) for i, a in enumerate(unknown)])
    values = _match(
        _taylor(missing, degree), angle, u, unknown, [1 + 2 * i for i in range(order)], u
    )
    series = sp.Poly(sp.expand(_taylor(lost, degree).subs(theta, angle.subs(values))), u)
    gap = 1 - s.rank_ratio
    return 1 - sp.Add(*[series.coeff_monomial(u**e) * gap**e for e in range(3, degree + 1, 2)])


def _taylor(function: Any, degree: int) -> Any:
    # Each coefficient by differentiation at 0, in root = sqrt(c): exact and without simplification.
    root = sp.Symbol("root", positive=True)
    function = function.subs(s.aspect_ratio, root**2)
    series = sp.S.Zero
    for power in range(degree + 1):
        value = sp.factor(function.subs(theta, 0)) / sp.factorial(power)
        series += value.subs(root, sp.sqrt(s.aspect_ratio)) * theta**power
        function = function.diff(theta)
    return series


def _match(
    series: Any, angle: Any, target: Any, unknown: tuple[Any, ...], powers: list[int], u: Any
) -> dict[Any, Any]:
    """Coefficients of `angle` from series(angle) = target, power by power of u."""
    values: dict[Any, Any] = {}
    residual = sp.Poly(sp.expand(series.subs(theta, angle) - target), u)
    for name, power in zip(unknown, powers, strict=True):
        equation = sp.expand(residual.coeff_monomial(u**power).subs(values))
        roots = [root for root in sp.solve(equation, name) if root.is_real]
        (values[name],) = roots
    return values


def add_spectrum_steps(derivation: Derivation, rank: Any, aspect: Any) -> Any:
    """Append the steps that lead to I(rank_ratio); returns it."""
    x = sp.Symbol("x", positive=True)
    derivation.add(
        "Squared singular values of a Gaussian matrix",
        marchenko_pastur(x, aspect),
        "Marchenko-Pastur law (quarter circle of singular values for a square matrix)",
    )
    derivation.add(
        "Rank ratio as a function of the cut",
        sp.Eq(rank, mass_above(theta, aspect), evaluate=False),
        "x = 1 + c + 2 sqrt(c) cos(theta): mass above x(theta), antiderivative checked",
    )
    derivation.add("Weight above the cut", weight_above(), "integral of x over the same range")
    weight = SpectralWeight(rank, aspect)
    return derivation.add(
        "Squared Gaussian width of the low-rank memories",
        weight,
        "sup of <G, W> over W of this rank and norm is the norm of the truncated singular value "
        "decomposition of G; its square per weight is the weight above the cut",
    )
