"""Singular values of the optimal memory: quarter circle, truncated, Marchenko-Pastur; certified.

Source of the formulas: `replica.priors.spectrum`. Everything is parametrised by the angle theta in
[0, pi] with s^2 = 1 + c + 2 sqrt(c) cos(theta), c = aspect_ratio: theta = 0 is the largest singular
value, mass_above(theta) the fraction above s.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import sympy as sp

from numerics.balls import Certified
from numerics.certify import certify
from numerics.compiled import root_of
from numerics.cone.volumes import check_digits
from numerics.tail_average import exact_number, rational
from replica.errors import InvalidInput
from replica.priors.spectrum import eigenvalue, marchenko_pastur, mass_above, theta

_ALLOWED = "a number in (0, 1]"


@dataclass(frozen=True)
class SingularValueLaw:
    """Law of one singular value of the optimal W, conditioned on not being cut by the rank.

    rho(s) = 2 s MarchenkoPastur(s^2) / rank_ratio on [a, 1 + sqrt(c)], a fixed by the mass above
    it, rank_ratio. In units where G in R^(d_out x d_in) has entries N(0, 1/d_in), c = d_out/d_in;
    the singular values of W are these up to one common factor. Arguments: `rank_ratio` and
    `aspect_ratio`, exact (int, Fraction, decimal text) in (0, 1]. Raises `InvalidInput`.
    Source: quarter circle and Marchenko-Pastur laws; best approximation of bounded rank.

    >>> law = SingularValueLaw()
    >>> print(law.cdf(1).to_string(12), law.quantile("0.5").to_string(12))
    0.608997781044 0.807945506599
    >>> SingularValueLaw(aspect_ratio=2)
    Traceback (most recent call last):
        ...
    replica.errors.InvalidInput: aspect_ratio is 2; it must lie in (0, 1]; exchange inputs and \
outputs if the outputs have the larger dimension
    """

    rank_ratio: Any = Fraction(1)
    aspect_ratio: Any = Fraction(1)

    def __post_init__(self) -> None:
        hints = {
            "rank_ratio": "give the number of columns over the smaller dimension",
            "aspect_ratio": "exchange inputs and outputs if the outputs have the larger dimension",
        }
        for name, hint in hints.items():
            exact = exact_number(getattr(self, name), name, _ALLOWED)
            if not 0 < exact <= 1:
                raise InvalidInput(f"{name} is {exact}; it must lie in (0, 1]; {hint}")
            object.__setattr__(self, name, exact)

    # -- the formulas, as SymPy objects of this aspect ratio ----------------------------------
    @cached_property
    def _mass(self) -> Any:
        return mass_above(theta, rational(self.aspect_ratio))

    @cached_property
    def _squared(self) -> Any:
        return eigenvalue(theta, rational(self.aspect_ratio))

    def _angle_of_mass(self, mass: Fraction, digits: int) -> Certified | None:
        """theta with mass_above(theta) = mass; None where it is exactly pi."""
        if mass == 1:
            return None
        # mass_above increases from 0 to 1; near 0 it is about theta^3 times a constant, so that
        # absolute digits in theta become relative ones by asking for a few more.
        guard = len(str(mass.denominator)) // 3
        return root_of(self._mass - rational(mass), theta, 0, Fraction(355, 113), digits + guard)

    def _singular_value(self, angle: Certified | None, digits: int) -> Certified:
        if angle is None:
            return certify(sp.sqrt(self._squared.subs(theta, sp.pi)), digits, real=True)
        return certify(sp.sqrt(self._squared), digits, {theta: angle}, real=True)

    # -- what one asks for ---------------------------------------------------------------------
    def support(self, digits: int = 15) -> tuple[Certified, Certified]:
        """The ends (a, 1 + sqrt(c)) of the law.

        >>> low, high = SingularValueLaw(rank_ratio="0.5").support()
        >>> print(low.to_string(12), high)
        0.807945506599 2
        """
        digits = check_digits(digits)
        low = self._singular_value(self._angle_of_mass(self.rank_ratio, digits + 4), digits)
        return low, certify(sp.sqrt(self._squared.subs(theta, 0)), digits, real=True)

    def density(self, s: Any, digits: int = 15) -> Certified:
        """rho(s) at an exact s; 0 outside the support, `Undecided` if s is its very end."""
        point = exact_number(s, "s", "a singular value")
        low, high = self.support(digits + 4)
        if (
            point < 0
            or point > high
            or ((self.rank_ratio < 1 or self.aspect_ratio < 1) and point < low)
        ):
            return Certified(0)
        exact = rational(point)
        if self.aspect_ratio == 1:
            # 2 s MP(s^2) = sqrt(4 - s^2)/pi: the factor s cancels, which the value at 0 needs
            value = sp.sqrt(4 - exact**2) / sp.pi
        else:
            value = 2 * exact * marchenko_pastur(exact**2, rational(self.aspect_ratio))
        return certify(value / rational(self.rank_ratio), check_digits(digits), real=True)

    def survival(self, s: Any, digits: int = 15) -> Certified:
        """P(singular value > s) = mass_above(theta(s)) / rank_ratio, at an exact s."""
        point = exact_number(s, "s", "a singular value")
        low, high = self.support(digits + 4)
        if point >= high:
            return Certified(0)
        if point <= 0 or point <= low:
            return Certified(1)
        c = rational(self.aspect_ratio)
        angle = sp.acos((rational(point) ** 2 - 1 - c) / (2 * sp.sqrt(c)))
        value = self._mass.subs(theta, angle) / rational(self.rank_ratio)
        return certify(value, check_digits(digits), real=True)

    def cdf(self, s: Any, digits: int = 15) -> Certified:
        """P(singular value <= s) at an exact s, dimensionless."""
        return 1 - self.survival(s, digits + 2)

    def quantile(self, u: Any, digits: int = 15) -> Certified:
        """The s with P(singular value <= s) = u, for an exact u in [0, 1].

        The enclosure of the angle is proved by the signs of mass_above - (1 - u) rank_ratio at its
        two ends.
        """
        level = exact_number(u, "u", "a probability in [0, 1]")
        if not 0 <= level <= 1:
            raise InvalidInput(f"u is {u}; a quantile needs a probability in [0, 1]")
        digits = check_digits(digits)
        mass = (1 - level) * self.rank_ratio
        if mass == 0:
            return self.support(digits)[1]
        return self._singular_value(self._angle_of_mass(mass, digits + 4), digits)

    def moment(self, power: int, digits: int = 15) -> Certified:
        """E s^power, power = 1, 2, ...: an integral over the angle.

        >>> print(SingularValueLaw(rank_ratio="0.5").moment(2).to_string(12))  # I(0.5)/0.5
        1.78746158776
        """
        if isinstance(power, bool) or not isinstance(power, int) or power < 1:
            raise InvalidInput(
                f"power is {power}; a positive integer is allowed; give for example 2"
            )
        digits = check_digits(digits)
        end = sp.Symbol("end", positive=True)
        angle = self._angle_of_mass(self.rank_ratio, digits + 6)
        # s^power as a function without square root where one exists
        half = sp.cos(theta / 2)
        root = 2 * half if self.aspect_ratio == 1 else sp.sqrt(self._squared)
        value = self._squared ** (power // 2) * (root if power % 2 else 1)
        body = sp.Integral(value * self._density_in_angle(), (theta, 0, end))
        values = {end: sp.pi if angle is None else angle}
        return certify(body / rational(self.rank_ratio), digits, values, real=True)

    def _density_in_angle(self) -> Any:
        """d mass_above / d theta = (2/pi) sin^2(theta) / (eigenvalue)."""
        if self.aspect_ratio == 1:
            return (1 - sp.cos(theta)) / sp.pi
        return 2 * sp.sin(theta) ** 2 / (sp.pi * self._squared)
