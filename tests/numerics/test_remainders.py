"""Published remainder constants, verified with balls on grids they were not measured on."""

from __future__ import annotations

from fractions import Fraction

import mpmath as mp
import pytest

from numerics.hebbian_threshold import threshold
from numerics.remainders import (
    PUBLISHED,
    RemainderClaim,
    grid,
    level,
    maximum_location,
    normalised_remainder,
    published_table,
)
from replica.errors import InvalidInput
from replica.expansion import cone

IDS = [f"{c.name}-{c.order}" for c in PUBLISHED]


@pytest.mark.parametrize("claim", PUBLISHED, ids=IDS)
def test_claims_hold_at_both_small_and_large_p(claim: RemainderClaim) -> None:
    """At p0 itself and beyond it (the long test goes to 10^1000 on a dense grid)."""
    for facts in (claim.first, 3 * claim.first + 1, 10**7 + 3, 10**31 + 7):
        assert claim.holds_at(facts), facts


@pytest.mark.long
@pytest.mark.parametrize("claim", PUBLISHED, ids=IDS)
def test_claims_hold_on_a_shifted_dense_grid(claim: RemainderClaim) -> None:
    for facts in grid(claim.first, 61, Fraction(1, 2)):
        assert claim.holds_at(facts), facts


@pytest.mark.parametrize("claim", PUBLISHED, ids=IDS)
def test_claims_are_not_slack(claim: RemainderClaim) -> None:
    """Power: half of the larger constant is already wrong somewhere on [p0, 10^300]."""
    half = RemainderClaim(
        claim.name,
        claim.order,
        claim.first,
        claim.below / 2 if claim.below >= claim.above else claim.below,
        claim.above / 2 if claim.above >= claim.below else claim.above,
    )
    assert not all(half.holds_at(p) for p in (claim.first, 10**31 + 7, 10**300))


@pytest.mark.parametrize("order", range(6))
def test_statistical_dimension_is_enveloped(order: int) -> None:
    """The remainder has the sign of the first term left out and is smaller than it."""
    following = cone.statistical_dimension(order + 2)[order + 1]
    for facts in (10, 10**3, 10**12, 10**60):
        ratio = normalised_remainder("statistical_dimension", order, facts) / following
        assert ratio > 0
        assert ratio < 1


def test_level_and_location_against_mpmath() -> None:
    with mp.workdps(40):
        t = mp.mpf(level(10**9, 30).value)
        assert abs(10**9 * (mp.npdf(t) - t * mp.erfc(t / mp.sqrt(2)) / 2) - t) < mp.mpf(10) ** -24
        b = mp.mpf(maximum_location(10**9, 30).value)
        assert abs(10**9 * mp.npdf(b) - b) < mp.mpf(10) ** -24


@pytest.mark.parametrize("every", [False, True])
def test_hebbian_threshold_against_quadrature(every: bool) -> None:
    """mpmath's quadrature of int Dz Phi(u+z)^M, raised to the power p where all are asked for."""
    facts = 500
    u = mp.mpf(threshold(facts, every=every).value)
    with mp.workdps(20):
        recalled = mp.quad(
            lambda z: mp.npdf(z) * mp.ncdf(u + z) ** (facts - 1), [-9, -5, -3, -1, 0, 2, 5, 9]
        )
        assert abs(recalled ** (facts if every else 1) - mp.mpf(1) / 2) < 1e-6


def test_wording_and_grid() -> None:
    text = published_table()
    assert text.count("verified on [") == len(PUBLISHED)
    assert "proved" not in text
    points = list(grid(10, 30))
    assert points[0] == 10
    assert points[-1] == 10**1000
    assert points == sorted(set(points))
    with pytest.raises(InvalidInput, match="choose one of"):
        normalised_remainder("nothing", 1, 10)
    with pytest.raises(InvalidInput):
        level(0)
    with pytest.raises(InvalidInput):
        threshold(2)
    with pytest.raises(InvalidInput, match="hebbian_load for more"):
        threshold(1000, digits=30)
