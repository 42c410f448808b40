"""The bounds inside the cone's numbers: each is compared with the quantity that it bounds."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import acb, arb
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr, wofz

from numerics.balls import working_precision
from numerics.cone.gauss import density, laplace, lower_tail, upper_tail
from numerics.cone.level import LevelSum, _log_modulus_bound
from numerics.cone.line import laplace_on_line
from numerics.cone.tail import choose_cut, generating_bound
from numerics.cone.volumes import coefficients, volume_balls


@given(
    st.floats(-30, 6).filter(lambda c: abs(c) > 0.25),
    st.sampled_from([0.05, 0.125, 0.25]),
    st.sampled_from([80, 200, 500]),
)
@settings(max_examples=25, deadline=None)
def test_values_on_a_line_enclose_erfc(c: float, h: float, bits: int) -> None:
    c = round(c * 1024) / 1024
    with working_precision(bits):
        values, gauss = laplace_on_line(c, h, 25)
    with working_precision(2 * bits + 100):
        for j in (0, 1, 7, 24):
            w = acb(c, arb(j) * arb(h))
            exact = laplace(w)
            assert values[j].overlaps(exact)
            assert gauss[j].overlaps((w * w / 2).exp())
            if 2 * math.pi**2 / h**2 < bits:  # too coarse a step for so many bits: still enclosed
                continue
            scale = abs(exact) if c < 0 else abs((w * w / 2).exp()) + abs(exact)
            assert values[j].real.rad() < scale * arb(2) ** (30 - bits)


@given(st.floats(0.3, 30), st.floats(0.01, 1.5), st.floats(0, 1), st.floats(0, 1))
@settings(max_examples=200, deadline=None)
def test_modulus_bound_on_a_piece_of_the_ray(t: float, y: float, u: float, v: float) -> None:
    """log |Phi(t' + i y')| for t' in [t, t_next], 0 <= y' <= y never exceeds the bound."""
    t_next = t + 0.3 / t
    with working_precision(200):
        a, b, height = arb(t), arb(t_next), arb(y)
        bound = _log_modulus_bound(a, b, height, density(a), upper_tail(a), upper_tail(b))
        point = acb(a + arb(u) * (b - a), arb(v) * height)
        truth = abs(1 - upper_tail(point)).log()
        assert truth < bound.upper() + arb(10) ** -40


@pytest.mark.parametrize(
    ("competitors", "margin"), [(10**3, 0), (10**6, 0), (10**10, 0), (10**6, 3)]
)
def test_ray_integral_bounds_the_true_one(competitors: int, margin: int) -> None:
    """The bound on int |F| along the ray beside a fine numerical integral of |F| (floats)."""
    parts = coefficients(competitors, 40.0, Fraction(margin))
    sums = LevelSum(competitors, parts.moment, parts.margin)
    left, right = sums.level - 6.0 * sums.scale, sums.level + 4.0
    tau = left - 0.2
    angle = 0.4 * sums.scale / (sums.level - tau)
    with working_precision(120):
        bound = float(sums._ray_integral(angle, tau, left, right).log().mid())
    rho = np.linspace(1e-6, right - tau + 4.0, 40_001)
    w = tau + rho * np.exp(1j * angle)
    log_phi = np.log1p(-0.5 * np.exp(-w * w / 2) * wofz(1j * w / math.sqrt(2.0)))
    logs = np.array([float(d.log().mid()) if d > 0 else -np.inf for d in parts.moment])
    k = np.arange(len(logs))
    exponents = (
        logs[None, :]
        + ((competitors - k)[None, :] * log_phi[:, None])
        - (k + 1)[None, :] * (w * w / 2)[:, None]
        - margin * w[:, None]
    )
    top = exponents.real.max()
    modulus = np.abs(np.exp(exponents - top).sum(axis=1))
    truth = top + math.log(modulus.sum() * (rho[1] - rho[0]))
    assert truth <= bound + 1e-6
    assert bound - truth < 40.0  # and it is not wasteful


@given(st.integers(2, 500), st.floats(1.01, 3.0), st.floats(-1.0, 4.0))
@settings(max_examples=20, deadline=None)
def test_chernoff_bound(competitors: int, s: float, t: float) -> None:
    """sum_k s^k v_k never exceeds the closed form, for any s > 1 and t."""
    volumes = volume_balls(competitors, 25)
    with working_precision(150):
        power = sum((arb(s) ** k * v for k, v in enumerate(volumes.balls)), arb(0))
        assert power.lower() <= generating_bound(competitors, arb(s), arb(t), arb(0)).upper()


def test_cut_bounds_what_is_left_out() -> None:
    """Volumes to 40 digits show the mass beyond a cut made for 12 digits."""
    fine = volume_balls(1000, 45)
    cut = choose_cut(1000, 12 * math.log(10))
    assert cut.last < len(fine.balls) - 1
    with working_precision(200):
        for power in (0, 1, 2):
            beyond = sum((k**power * v for k, v in enumerate(fine.balls) if k > cut.last), arb(0))
            assert beyond.upper() < cut.beyond(power)
            assert cut.beyond(power) < arb(10) ** -10
        assert cut.distance_beyond() > sum(
            (k * v for k, v in enumerate(fine.balls) if k > cut.last), arb(0)
        )


def test_float_guides_agree_with_balls() -> None:
    from numerics.cone.gauss import float_log_laplace

    for x in (-40.0, -8.0, -6.01, -5.99, 0.0, 3.0):
        with working_precision(100):
            exact = float(laplace(arb(x)).log().mid())
        assert float_log_laplace(x) == pytest.approx(exact, abs=1e-10)
    with working_precision(100):
        assert float(lower_tail(arb(-9)).log().mid()) == pytest.approx(float(log_ndtr(-9.0)))
