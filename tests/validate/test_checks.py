"""Every check passes when its claim is true and fails when a wrong constant is planted."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import special

from replica.errors import InvalidInput
from validate.checks.base import Check, settle
from validate.checks.curves import curve_power, curve_test
from validate.checks.equivalence import check_equivalence
from validate.checks.hebbian import check_hebbian, hebbian_recall, hebbian_recall_limit
from validate.checks.ladder import LadderPoint
from validate.checks.statistical_dimension import (
    check_active_competitors,
    check_statistical_dimension,
    project,
)
from validate.checks.success_curve import check_success_curve
from validate.checks.theory_curve import TheoryCurve, leading_order_facts

SIZES = (1, 2, 9, 86)


@pytest.fixture(scope="module")
def curve() -> TheoryCurve:
    return TheoryCurve.at(20)


def exact_deltas() -> list[float]:
    from numerics.cone import statistical_dimension

    return [statistical_dimension(m, 15).to_float_lossy() for m in SIZES]


def synthetic(
    curve: TheoryCurve, truth: Any, *, kind: str = "gaussian", n: int = 60, seed: int = 0
) -> list[LadderPoint]:
    """Counts drawn from the success probabilities `truth(facts)`."""
    loads = curve.loads((0.97, 0.85, 0.6, 0.35, 0.1))
    rng = np.random.default_rng(seed)
    return [
        LadderPoint(kind, curve.dim, p, int(s), n - int(s), 0, 0.0)
        for p, s in zip(loads, rng.binomial(n, truth(loads)), strict=True)
    ]


def blank(name: str, p_value: float | None = None, **more: Any) -> Check:
    return Check(
        name=name,
        claim="c",
        source="s",
        quantity="q",
        predicted="1",
        measured="1",
        interval="[0, 2]",
        sample_size="1",
        table=[],
        hypothesis="" if p_value is None else "h",
        p_value=p_value,
        **more,
    )


# --- the projection and the statistical dimension ---------------------------------------------


def test_projection_is_the_nearest_point_of_the_cone() -> None:
    """Against a general solver of min |y - z|^2 subject to y_0 >= y_rho."""
    from scipy.optimize import minimize

    rng = np.random.default_rng(2)
    for m in (1, 3, 6):
        z = rng.standard_normal(m + 1)
        z[0] -= 1.0
        found = minimize(
            lambda y, z=z: float(((y - z) ** 2).sum()),
            np.zeros(m + 1),
            constraints={"type": "ineq", "fun": lambda y: y[0] - y[1:]},
            tol=1e-12,
        )
        distance, active = project(z[None])
        assert distance[0] == pytest.approx(found.fun, abs=1e-6)
        assert active[0] == np.count_nonzero(z[1:] > found.x[0] + 1e-5)


def test_statistical_dimension_agrees_with_projection() -> None:
    check = check_statistical_dimension(SIZES, exact_deltas(), seed=3, samples=60_000)
    settle([check], 0.01)
    assert check.verdict == "agrees"
    assert check.power is not None


def test_planted_one_per_cent_in_delta_is_noticed_at_the_stated_power() -> None:
    """30 runs with every delta 1 % too large; the noticed share is within four binomial standard
    errors of the stated power (false alarm below 1e-4)."""
    level, runs, few = 0.05, 30, 3
    wrong = [1.01 * delta for delta in exact_deltas()]
    checks = [
        check_statistical_dimension(SIZES[:few], wrong[:few], seed=s, samples=20_000)
        for s in range(runs)
    ]
    assert checks[0].power_at is not None
    stated = float(np.mean([check.power_at(level) for check in checks if check.power_at]))
    noticed = float(np.mean([check.p_value <= level for check in checks if check.p_value]))
    assert abs(noticed - stated) < 4 * math.sqrt(max(stated * (1 - stated), 0.02) / runs)
    big = check_statistical_dimension(SIZES, wrong, seed=1, samples=100_000)
    settle([big], 0.01)
    assert big.verdict == "disagrees"
    assert big.power is not None
    assert big.power > 0.85


def test_active_competitors_follow_the_intrinsic_volumes_and_a_tilt_is_noticed() -> None:
    from numerics.cone import intrinsic_volumes

    v = [x.to_float_lossy() for x in intrinsic_volumes(30, digits=12).volumes]
    true = check_active_competitors(30, v, seed=4, samples=60_000)
    wrong = check_active_competitors(29, v, seed=4, samples=60_000)
    settle([true], 0.01)
    settle([wrong], 0.01)
    assert (true.verdict, wrong.verdict) == ("agrees", "disagrees")


# --- success curves ---------------------------------------------------------------------------


def test_curve_of_theory_reproduces_the_reference_table(curve: TheoryCurve) -> None:
    table = {78: 0.9963, 83: 0.8744, 87: 0.4889, 91: 0.1221, 96: 0.0056}
    assert curve.exact(list(table)) == pytest.approx(list(table.values()), abs=5e-5)
    assert 86 < curve.half < 87
    with pytest.raises(InvalidInput):
        curve.exact([2000])


def test_alternatives_move_the_half_point_as_they_should(curve: TheoryCurve) -> None:
    assert curve.if_half([curve.leading_order_half])[0] == pytest.approx(0.5)
    p = float(leading_order_facts(20))
    assert p * math.log(p) == pytest.approx(200.0)
    # delta 1 % larger: p_half (1.01 delta) = d^2, with delta growing like the certified one.
    from numerics.cone import statistical_dimension

    shifted = float(np.interp(-0.5, -curve.if_delta(1.01, curve.facts), curve.facts))
    low, high = int(shifted), int(shifted) + 1
    demand = [1.01 * q * statistical_dimension(q - 1, 15).to_float_lossy() for q in (low, high)]
    moved = np.interp(shifted, (low, high), demand)
    at = [q * statistical_dimension(q - 1, 15).to_float_lossy() for q in (86, 87)]
    assert moved == pytest.approx(np.interp(curve.half, (86, 87), at), rel=2e-4)


@pytest.mark.parametrize("kind", ["gaussian", "decoupled"])
def test_success_curve_agrees_with_counts_from_the_theory(curve: TheoryCurve, kind: str) -> None:
    check = check_success_curve(synthetic(curve, curve.exact, kind=kind), curve, seed=1)
    settle([check], 0.01)
    assert check.verdict == "agrees"
    assert check.power == pytest.approx(1.0)
    assert {row["source"] for row in check.table} == {"theory", "simulation"}


def test_planted_half_is_noticed(curve: TheoryCurve) -> None:
    """Counts as if alpha_c = 1/2 at d = 20: the check says so (stated power 1 to four digits)."""
    loads = [48, 50, 52, 54, 80]
    n = 60
    counts = np.random.default_rng(4).binomial(n, curve.if_half(loads))
    wide = TheoryCurve(
        curve.dim,
        np.arange(40, 120),
        np.minimum(curve.interpolated(np.arange(40, 120)), 1 - 1e-9),
        np.interp(np.arange(40, 120), curve.facts, curve.delta),
    )
    points = [
        LadderPoint("gaussian", 20, p, int(s), n - int(s), 0, 0.0)
        for p, s in zip(loads, counts, strict=True)
    ]
    check = check_success_curve(points, wide, seed=1)
    settle([check], 0.01)
    assert check.verdict == "disagrees"


def test_planted_one_per_cent_in_the_success_curve_is_noticed_at_the_stated_power(
    curve: TheoryCurve,
) -> None:
    """Counts from delta 1 % too large, n = 600 a load, 300 runs: noticed as often as stated, within
    four binomial standard errors (false alarm below 1e-4)."""
    loads, runs = curve.loads((0.97, 0.85, 0.6, 0.35, 0.1)), 300
    trials = [600] * len(loads)
    exact, wrong = curve.exact(loads), curve.if_delta(1.01, loads)
    rng = np.random.default_rng(9)
    test = curve_test(rng.binomial(trials, exact), trials, exact, seed=5)
    stated = curve_power(test, trials, exact, wrong, level=0.01, seed=6)
    critical = test.critical_value(0.01)
    from validate.checks.curves import score_statistic

    noticed = np.mean(
        score_statistic(rng.binomial(trials, wrong, (runs, 5)), trials, exact) >= critical
    )
    assert stated > 0.9
    assert abs(noticed - stated) < 4 * math.sqrt(stated * (1 - stated) / runs) + 1 / runs


def test_undecided_instances_never_help_to_reject(curve: TheoryCurve) -> None:
    loads = curve.loads((0.97, 0.85, 0.6, 0.35, 0.1))
    n = 60
    points = [
        LadderPoint("gaussian", 20, p, round(n * q) - 5, n - round(n * q), 5, 0.0)
        for p, q in zip(loads, curve.exact(loads), strict=True)
    ]
    check = check_success_curve(points, curve, seed=1)
    assert check.undecided == 25
    assert "none is dropped" in check.remark
    assert check.p_value is not None
    assert check.p_value > 0.5
    row = check.select("simulation")[0]
    assert row["undecided"] == 5
    assert row["high"] - row["low"] > 5 / n


def test_largest_p_value_lies_inside_the_box_of_decisions() -> None:
    """Bounded least squares against all 11^3 ways; perfect counts pass, wrong ones not."""
    from itertools import product

    from validate.checks.curves import half_point, score_statistic
    from validate.checks.undecided import nearest_counts

    n, p = [100] * 3, [0.85, 0.5, 0.15]
    for s in ([76, 45, 13], [80, 50, 20], [70, 52, 3]):
        ways = [
            [a + b for a, b in zip(s, extra, strict=True)] for extra in product(range(11), repeat=3)
        ]
        least = float(score_statistic(ways, n, p).min())
        found = curve_test(s, n, p, seed=1, samples=2000, undecided=[10] * 3)
        assert found.statistic <= least + 1e-9
        assert found.statistic > least - 0.3, "rounding to whole numbers costs little"
        assert nearest_counts(s, [10] * 3, np.multiply(n, p)).tolist() in ways
    perfect = curve_test([51, 30, 9], n, p, seed=1, undecided=[40] * 3)
    wrong = curve_test([60, 25, 2], n, p, seed=1, undecided=[2] * 3)
    assert perfect.p_value > 0.5
    assert wrong.p_value < 3e-4
    band, plain = (
        half_point([80, 85, 90], s, n, undecided=u)
        for s, u in (([70, 40, 10], [20] * 3), ([85, 50, 15], None))
    )
    assert band.low < plain.low < plain.high < band.high
    open_band = half_point([80, 85, 90], [45, 20, 0], n, undecided=[50] * 3)
    assert open_band.low == 0.0


def test_success_curve_refuses_mixed_cells(curve: TheoryCurve) -> None:
    points = synthetic(curve, curve.exact)
    with pytest.raises(InvalidInput):
        check_success_curve(points[::-1], curve, seed=0)
    with pytest.raises(InvalidInput):
        check_success_curve(
            [points[0], synthetic(curve, curve.exact, kind="original")[1]], curve, seed=0
        )


def test_equivalence_measures_a_planted_shift(curve: TheoryCurve) -> None:
    """A shift of +4 % with 2000 instances a load; the 95 % interval is narrow and excludes zero."""

    def shifted(p: Any) -> Any:
        return curve.interpolated(np.asarray(p) / 1.04)

    original = synthetic(curve, shifted, kind="original", n=2000, seed=1)
    decoupled = synthetic(curve, curve.exact, kind="decoupled", n=2000, seed=2)
    check = check_equivalence(original, decoupled, curve)
    settle([check], 0.01)
    assert check.verdict == "measured"
    ratio = check.table[-1]
    assert ratio["ratio_low"] < 1.04 < ratio["ratio_high"]
    assert ratio["ratio_low"] > 1.03
    assert "easier" in check.remark
    same = check_equivalence(
        synthetic(curve, curve.exact, kind="original", seed=5), decoupled, curve
    )
    assert "not told apart" in same.remark


# --- Hebbian memory ---------------------------------------------------------------------------


def test_hebbian_recall_against_direct_simulation() -> None:
    """The exact law for N = 9, p = 4, M = 3 against 40000 memories built fact by fact; five
    standard errors (false alarm 6e-7)."""
    N, p, M, n = 9, 4, 3, 40_000
    rng = np.random.default_rng(12)
    targets = rng.standard_normal((n, p, N))
    W = targets.sum(1)
    rivals = np.einsum("nmk,nk->nm", rng.standard_normal((n, M, N)), W)
    hit = (np.einsum("nk,nk->n", targets[:, 0], W)[:, None] > rivals).all(1)
    expected = hebbian_recall(N, p, M)
    assert abs(hit.mean() - expected) < 5 * math.sqrt(expected * (1 - expected) / n)


def test_hebbian_recall_tends_to_the_large_d_law() -> None:
    gaps = [
        abs(
            hebbian_recall(d * d, d * d // 6, 50)
            - hebbian_recall_limit(math.sqrt(d * d // 6) / d, 50)
        )
        for d in (12, 48, 192)
    ]
    assert gaps[0] > 10 * gaps[1] > 100 * gaps[2]
    # M = 1: int Dz Phi(1/sigma + z) = Phi(1 / (sigma sqrt 2)), in closed form.
    assert hebbian_recall_limit(0.7, 1) == pytest.approx(
        special.ndtr(1 / (0.7 * math.sqrt(2))), rel=1e-10
    )


def test_large_d_law_equals_the_certified_one() -> None:
    """Against the enclosure that is compiled from the symbolic form."""
    from numerics.hebbian import hebbian_recall as certified

    for dim, facts in ((8, 12), (20, 60), (100, 900)):
        enclosure = certified(dim, facts, digits=12).typical.to_float_lossy()
        assert hebbian_recall_limit(math.sqrt(facts) / dim, facts - 1) == pytest.approx(
            enclosure, rel=1e-9
        )


def test_hebbian_check_agrees_and_notices_a_doubled_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments: dict[str, Any] = {"seed": 3, "nulls": 5000}
    check = check_hebbian(6, (6, 9, 13), 50, **arguments)
    settle([check], 0.01)
    assert check.verdict == "agrees"
    assert check.power == pytest.approx(1.0, abs=1e-3)
    import validate.checks.hebbian as module

    monkeypatch.setattr(
        module, "hebbian_recall", lambda N, p, M: hebbian_recall_limit(2 * math.sqrt(p / N), M)
    )
    planted = check_hebbian(6, (6, 9, 13), 50, **arguments)
    settle([planted], 0.01)
    assert planted.verdict == "disagrees"


# --- the user's embeddings ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("true", "shuffled", "word"),
    [(5, [6, 7], "fewer"), (6, [6, 7], "as many"), (8, [6], "more"), (None, [6], "cannot")],
)
def test_structure_is_claimed_only_against_the_shuffles(
    true: int | None, shuffled: list[int], word: str
) -> None:
    from validate.checks.embeddings import check_embeddings
    from validate.fit import Fit, LeastComponents
    from validate.problems.files import Embeddings

    x = np.eye(9)
    fit = Fit(
        embeddings=Embeddings(x, x, ("",) * 9, ("",) * 9),
        components=9,
        competitors=8,
        decision=type("D", (), {"verdict": "separable"})(),
        least=LeastComponents(true, True, {9: "separable"}),
        shuffled=[LeastComponents(c, c != 7, {9: "undecided"}) for c in shuffled],
        seeds=tuple(range(len(shuffled))),
        theory=5,
        conflicts=[],
        seconds=0.0,
    )
    check = check_embeddings(fit, "test.npz")
    settle([check], 0.01)
    assert word in check.claim
    assert check.verdict == ("measured" if 7 in shuffled else "proved")
    assert check.undecided == len(shuffled)


# --- verdicts ---------------------------------------------------------------------------------


def test_settle_controls_the_whole_report() -> None:
    checks = [blank("a", 0.006), blank("b", 0.2), blank("c"), blank("d", proved=True)]
    checks.append(blank("e", refuted=True))
    settle(checks, 0.01)
    assert [c.verdict for c in checks] == ["agrees", "agrees", "measured", "proved", "disagrees"]
    assert checks[0].adjusted_p == pytest.approx(0.012)
    settle(checks, 0.05)
    assert checks[0].verdict == "disagrees"
    with pytest.raises(InvalidInput):
        settle(checks, 0.0)


def test_settle_states_power_at_the_strictest_level() -> None:
    levels: list[float] = []

    def power_at(level: float) -> float:
        levels.append(level)
        return 0.5

    settle([blank("a", 0.5, power_at=power_at), blank("b", 0.5)], 0.01)
    assert levels == [0.005]


def test_check_refuses_untidy_tables_and_half_a_test() -> None:
    with pytest.raises(InvalidInput, match="source"):
        Check("n", "c", "s", "q", "1", "1", "", "1", [{"source": "guess"}])
    with pytest.raises(InvalidInput, match="hypothesis"):
        Check("n", "c", "s", "q", "1", "1", "", "1", [], p_value=0.5)


def test_without_power_nothing_agrees() -> None:
    """An unrefuted claim whose test would miss its named alternative is no agreement."""
    checks = [blank("strong", 0.4), blank("weak", 0.4), blank("refuted", 1e-6)]
    for check, power in zip(checks, (0.9, 0.1, 0.1), strict=True):
        check.power_at = lambda level, power=power: power
    settle(checks, 0.01)
    assert [c.verdict for c in checks] == ["agrees", "inconclusive", "disagrees"]
