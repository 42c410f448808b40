"""certify(expression, digits): proved digits of a SymPy expression, or the reason why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import sympy as sp
from flint import acb, arb, fmpq

from numerics.balls import Certified, bits_for, working_precision
from numerics.evaluator import compile_program
from replica.errors import InvalidInput
from replica.gaussian import GaussianAverage, Phi, phi

MAX_DIGITS = 10_000


class NotCertified(ArithmeticError):
    """The wanted digits could not be proved; the message says what was reached and why."""


@dataclass(frozen=True)
class CertifiedComplex:
    """A complex number as two enclosures.

    >>> import sympy as sp
    >>> value = certify(sp.exp(sp.I), 10)
    >>> value.real.to_string(10), value.imag.to_string(10)
    ('0.5403023059', '0.8414709848')
    """

    real: Certified
    imag: Certified

    def __str__(self) -> str:
        return f"{self.real} + {self.imag}j"

    def to_json(self) -> dict[str, dict[str, str]]:
        """{"real": {"value", "radius"}, "imag": {"value", "radius"}}."""
        return {"real": self.real.to_json(), "imag": self.imag.to_json()}

    @classmethod
    def from_json(cls, data: Any) -> CertifiedComplex:
        """The number written by `to_json`; raises InvalidInput for anything else."""
        if not isinstance(data, dict) or set(data) != {"real", "imag"}:
            raise InvalidInput(
                f"a certified complex number is stored as 'real' and 'imag'; {data!r} is not"
            )
        return cls(Certified.from_json(data["real"]), Certified.from_json(data["imag"]))


def certify(
    expression: Any,
    digits: int = 15,
    values: Mapping[Any, Any] | None = None,
    *,
    real: bool | None = None,
) -> Any:
    """Enclose `expression` with relative error at most 10^-digits, raising precision until it fits.

    `values` maps symbols to exact numbers (int, Fraction, SymPy exact numbers) or `Certified`
    balls; floats are refused because their decimals are not what was meant. The result is a
    `Certified`, or a `CertifiedComplex` where the value is not known to be real (`real=True`
    asserts that it is: then only the real part is returned, after a check that the enclosure of
    the imaginary part contains 0).

    Raises `InvalidInput` for digits outside 1 ... 10000 and for what has no rigorous evaluation,
    `NotCertified` where precision does not help (value 0, a wide input ball, no convergence).

    >>> import sympy as sp
    >>> x = sp.Symbol("x")
    >>> certify(sp.Integral(sp.sqrt(x), (x, 0, 1)), 20).to_string(20)
    '0.66666666666666666667'
    >>> certify(sp.zeta(3))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    numerics.evaluator.CannotEvaluate: zeta has no rigorous evaluation; ...
    """
    if not isinstance(digits, int) or not 1 <= digits <= MAX_DIGITS:
        raise InvalidInput(f"digits is {digits}; an integer from 1 to {MAX_DIGITS} is allowed")
    expression = sp.sympify(expression)
    program = compile_program(expression)
    is_real = _is_real(expression) if real is None else real
    target = bits_for(digits)
    bits = target + 20
    limit = 16 * target + 2000
    reached: Any = None
    while bits <= limit:
        with working_precision(bits):
            scope = {sp.sympify(k): _ball(v, k) for k, v in (values or {}).items()}
            ball = program(scope)
            if is_real and not ball.imag.contains(0):
                raise InvalidInput(
                    f"the value {ball} is not real, though real=True was given; leave it out"
                )
            parts = [ball.real] if is_real or ball.imag.is_zero() else [ball.real, ball.imag]
            size = arb(max(parts, key=lambda part: part.abs_upper()).abs_upper())
            if reached is not None and not ball.is_finite() and not reached.is_finite():
                break
            reached = ball
            wanted = size * arb(10) ** -digits
            if ball.is_finite() and all(p.rad() <= wanted for p in parts) and size > 0:
                numbers = [Certified(part) for part in parts]
                return numbers[0] if len(numbers) == 1 else CertifiedComplex(*numbers)
            if all(p.is_exact() for p in parts) and ball.is_finite():
                return Certified(parts[0])
        bits *= 2
    raise NotCertified(
        f"{digits} digits could not be proved with up to {bits} bits of working precision; the "
        f"best enclosure is {reached.str(10)}; the value may be 0, undefined, or an input too wide"
    )


def _ball(value: Any, symbol: Any) -> Any:
    if isinstance(value, Certified):
        return acb(value.ball)
    if isinstance(value, bool | float):
        raise InvalidInput(
            f"the value {value!r} of {symbol} is a {type(value).__name__}; give an int, a "
            "Fraction, a SymPy number or a Certified"
        )
    if isinstance(value, int):
        return acb(value)
    if isinstance(value, Fraction):
        return acb(arb(fmpq(value.numerator, value.denominator)))
    return compile_program(sp.sympify(value))({})


def _is_real(expression: Any) -> bool:
    """Is the value provably real? Integration variables run over real numbers, which helps."""
    if not isinstance(expression, sp.Basic):
        return True
    expression = expression.replace(
        lambda e: isinstance(e, GaussianAverage), lambda e: e.as_integral()
    )

    def visible(integral: Any) -> Any:
        function = integral.function
        for variable, low, high in (limit for limit in integral.limits if len(limit) == 3):
            if not (low.is_extended_real and high.is_extended_real):
                return integral
            sign = {"nonnegative": True} if low.is_extended_nonnegative else {"real": True}
            function = function.xreplace({variable: sp.Dummy(variable.name, **sign)})
        return sp.Dummy("integral", real=True) if _is_real(function) else integral

    replaced = expression.replace(lambda e: isinstance(e, sp.Integral), visible).replace(
        lambda e: isinstance(e, Phi | phi) and e.args[0].is_real,
        lambda e: sp.Dummy("gaussian", positive=True),
    )
    return bool(replaced.is_real)
