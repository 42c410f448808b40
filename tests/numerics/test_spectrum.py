"""Laws of singular values: mpmath, random matrices, certified quantiles."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numerics.spectrum import SingularValueLaw
from replica.errors import InvalidInput

REFERENCE_RANK = {"0.5": "0.8937307938779827", "0.25": "0.6229125512783653"}
LAWS = [("1", "1"), ("0.5", "1"), ("1", "0.5"), ("0.25", "0.3"), ("1", "0.01")]


def mp_density(s: mpmath.mpf, rank: mpmath.mpf, c: mpmath.mpf) -> mpmath.mpf:
    """Textbook Marchenko-Pastur law of s = sqrt(eigenvalue), c = d_out/d_in."""
    upper, lower = (1 + mpmath.sqrt(c)) ** 2, (1 - mpmath.sqrt(c)) ** 2
    inside = (upper - s**2) * (s**2 - lower)
    return mpmath.sqrt(abs(inside)) / (mpmath.pi * c * s) / rank


@pytest.mark.parametrize(("rank", "aspect"), LAWS)
def test_cdf_density_and_moments_against_mpmath(rank: str, aspect: str) -> None:
    law = SingularValueLaw(rank, aspect)
    low, high = law.support(25)
    with mpmath.workdps(30):
        k, c = mpmath.mpf(rank), mpmath.mpf(aspect)
        a, b = mpmath.mpf(low.value), mpmath.mpf(high.value)
        middle = (2 * a + 3 * b) / 5
        point = Fraction(mpmath.nstr(middle, 12))
        exact = mpmath.mpf(point.numerator) / point.denominator
        total = mpmath.quad(lambda s: mp_density(s, k, c), [a, exact, b])
        assert abs(total - 1) < mpmath.mpf(10) ** -12
        above = mpmath.quad(lambda s: mp_density(s, k, c), [exact, b])
        assert abs(mpmath.mpf(law.survival(point, 20).value) - above) < mpmath.mpf(10) ** -12
        assert abs(mpmath.mpf(law.cdf(point, 20).value) + above - 1) < mpmath.mpf(10) ** -12
        density = mpmath.mpf(law.density(point, 20).value)
        assert abs(density - mp_density(exact, k, c)) < mpmath.mpf(10) ** -18
        for power in (1, 2, 3):
            moment = mpmath.quad(lambda s, n=power: s**n * mp_density(s, k, c), [a, exact, b])
            value = mpmath.mpf(law.moment(power, 18).value)
            assert abs(value - moment) < mpmath.mpf(10) ** -11


@pytest.mark.parametrize(("rank", "value"), REFERENCE_RANK.items())
def test_second_moment_is_the_weight_of_the_rank(rank: str, value: str) -> None:
    weight = SingularValueLaw(rank).moment(2, 20) * Fraction(rank)
    # the reference's 16 digits agree with THEORY's closed form to about 1e-6 only where they do
    with mpmath.workdps(30):
        theta = mpmath.findroot(
            lambda t: 1 - 2 / mpmath.pi * (t + mpmath.sin(2 * t) / 2) - mpmath.mpf(rank), 0.4
        )
        closed = 1 - 2 / mpmath.pi * (theta - mpmath.sin(4 * theta) / 4)
        assert abs(mpmath.mpf(weight.value) - closed) < mpmath.mpf(10) ** -18
    assert abs(Fraction(weight.value) - Fraction(value)) < Fraction(2, 10**6)


@settings(max_examples=25, deadline=None)
@given(
    u=st.fractions(Fraction(1, 1000), Fraction(999, 1000), max_denominator=1000),
    rank=st.sampled_from(["1", "0.5", "0.03"]),
    aspect=st.sampled_from(["1", "0.7", "0.2"]),
    digits=st.integers(4, 40),
)
def test_quantile_brackets_the_probability(
    u: Fraction, rank: str, aspect: str, digits: int
) -> None:
    law = SingularValueLaw(rank, aspect)
    low, high = law.quantile(u, digits).bounds
    assert low > 0
    assert law.cdf(low, digits + 20) <= u
    assert law.cdf(high, digits + 20) >= u
    assert (high - low) <= Fraction(2, 10**digits) * high


def test_quantiles_at_the_ends_and_deep_in_the_tail() -> None:
    law = SingularValueLaw()
    assert law.quantile(1).contains(2)
    assert law.quantile(0).contains(0)
    # 1 - u = 10^-30 near the soft edge: s = 2 - (3 pi 10^-30 / 4)^(2/3) (1 + O(10^-20))
    deep = law.quantile(1 - Fraction(1, 10**30), 45)
    with mpmath.workdps(60):
        edge = (3 * mpmath.pi / 4 * mpmath.mpf(10) ** -30) ** (mpmath.mpf(2) / 3)
        assert abs((2 - mpmath.mpf(deep.value)) / edge - 1) < mpmath.mpf(10) ** -15


@pytest.mark.parametrize(("rows", "columns"), [(300, 300), (150, 400)])
def test_random_matrices_have_this_law(rows: int, columns: int) -> None:
    """Linear statistics of a random matrix fluctuate by O(1/d), also when only the top is kept.

    Four matrices; the tolerance is 5/d, several times below the differences between laws.
    """
    rng = np.random.default_rng(9)
    keep = rows // 4
    values = np.concatenate(
        [
            np.linalg.svd(rng.standard_normal((rows, columns)) / np.sqrt(columns), compute_uv=False)
            for _ in range(4)
        ]
    ).reshape(4, rows)
    aspect = Fraction(rows, columns)
    whole, top = SingularValueLaw(1, aspect), SingularValueLaw("0.25", aspect)
    tolerance = 5 / rows
    for power in (1, 2, 3):
        assert abs(np.mean(values**power) - whole.moment(power).to_float_lossy()) < tolerance
        kept = np.mean(values[:, :keep] ** power) - top.moment(power).to_float_lossy()
        assert abs(kept) < 4 * tolerance
    middle = whole.quantile("0.5").to_float_lossy()
    assert abs(np.mean(values <= middle) - 0.5) < tolerance


def test_bad_input() -> None:
    with pytest.raises(InvalidInput, match="rank_ratio is 0"):
        SingularValueLaw(0)
    with pytest.raises(InvalidInput, match="exchange inputs and outputs"):
        SingularValueLaw(1, 2)
    with pytest.raises(InvalidInput, match="exact"):
        SingularValueLaw(0.5)
    with pytest.raises(InvalidInput, match="probability in"):
        SingularValueLaw().quantile("1.5")
    with pytest.raises(InvalidInput, match="positive integer"):
        SingularValueLaw().moment(0)
