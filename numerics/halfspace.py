"""Gardner's three averages in ball arithmetic: the fast twin of the compiled `replica` expressions.

x = (sqrt(q) z - m)/sqrt(V), z ~ N(0, 1), V = 1 - q, h = phi/Phi:

    E log Phi(x),   E h(x)^2 / V,   E [h(x)(h(x) + x)]^2 / V^2.

The trapezoidal rule in z. Its error needs bounds on the strip |Im x| <= 1, w = x + i y. With Mills'
m(u) = int_0^inf e^{-ut - t^2/2} dt and h(w) = 1/m(-w):

* x <= 0: Re m(-w) >= m - m''/2 >= m/2 at -x (cos s >= 1 - s^2/2, and m'' <= m there);
* x > 0: m(-w) = sqrt(2 pi) e^{w^2/2} - m(w), so |m(-w)| >= sqrt(2 pi/e) - sqrt(pi/2) > 1/4.

So |h(w)| <= 4 (1 + |x|), Phi has no zero there, and |log Phi(w)| <= |log Phi(x)| + |y| max |h|.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from flint import arb, ctx

# (bound, power): |function| <= bound (1 + |x|)^power on the strip |Im x| <= 1
_LOG_CDF = (5, 2)
_SQUARED_HAZARD = (16, 2)
_SQUARED_BEND = (400, 4)
# E (1 + |z|)^k <= 2^(k-1) (1 + E |z|^k)
_MOMENT = {2: 4, 4: 32}


class HalfspaceAverages:
    """The averages at one overlap `q` and margin `m`, both real balls, at the current precision.

    >>> from numerics.balls import working_precision
    >>> with working_precision(80):
    ...     print(HalfspaceAverages(arb(1) / 2, arb(0)).log_probability().str(12, radius=False))
    -1.00000000000
    """

    def __init__(self, q: Any, margin: Any) -> None:
        self.variance = 1 - q
        self.slope = (q / self.variance).sqrt()
        self.offset = margin / self.variance.sqrt()
        nats = ctx.prec * math.log(2.0) + 8.0
        slope = float(self.slope.upper())
        # the strip |Im z| <= a: wide strips gain less than e^{a^2/2} costs
        width = min(1.0 / slope if slope > 0.0 else math.inf, math.sqrt(nats))
        self.strip = arb(math.ldexp(math.floor(math.ldexp(width, 30)), -30))
        self.step = arb(math.ldexp(math.floor(math.ldexp(2.0 * math.pi * width / nats, 12)), -12))
        if not self.step > 0:
            raise ArithmeticError("the overlap is too close to 1 for this quadrature")
        self.nats = nats

    def _average(self, function: Callable[[Any, Any], Any], bound: tuple[int, int]) -> Any:
        """E function(x, Phi(x)) with the error of the rule and of its cut in the radius."""
        constant, power = bound
        reach = power + math.sqrt(power**2 + 2.0 * self.nats)  # power z - z^2/2 = -nats
        count = math.ceil(reach / float(self.step))
        total = arb(0)
        for j in range(-count, count + 1):
            z = j * self.step
            x = self.slope * z - self.offset
            total += (-(z * z) / 2).exp() * function(x, _cdf(x))
        root = (2 * arb.pi()).sqrt()
        growth = constant * (1 + self.slope + abs(self.offset)) ** power
        on_line = growth * _MOMENT[power] * (self.strip**2 / 2).exp()
        error = 2 * on_line / ((2 * arb.pi() * self.strip / self.step).exp() - 1)
        # beyond the last node, both sides: (1 + z)^k e^{-z^2/2} <= e^{k z - z^2/2}, falling there
        last = count * self.step
        if not last > power + 1:
            raise ArithmeticError("the quadrature range is too short")
        error += 2 * growth * (power * last - last**2 / 2).exp() / (last - power) / root
        return total * self.step / root + arb(0, error.upper())

    def log_probability(self) -> Any:
        """E log Z."""
        return self._average(lambda _, cdf: cdf.log(), _LOG_CDF)

    def squared_gradient(self) -> Any:
        """E (d log Z/d omega)^2."""
        return self._average(lambda x, cdf: _hazard(x, cdf) ** 2, _SQUARED_HAZARD) / self.variance

    def squared_hessian(self) -> Any:
        """E (d^2 log Z/d omega^2)^2."""

        def bend(x: Any, cdf: Any) -> Any:
            hazard = _hazard(x, cdf)
            return (hazard * (hazard + x)) ** 2

        return self._average(bend, _SQUARED_BEND) / self.variance**2


def _cdf(x: Any) -> Any:
    return (-x / arb(2).sqrt()).erfc() / 2


def _hazard(x: Any, cdf: Any) -> Any:
    return (-(x * x) / 2).exp() / ((2 * arb.pi()).sqrt() * cdf)
