"""Original against decoupled: the measured shift of the 50 % point, with its interval."""

from __future__ import annotations

from collections.abc import Sequence

from validate.checks.base import Check, Record
from validate.checks.curves import half_point, ratio_interval
from validate.checks.ladder import LadderPoint, same_cell
from validate.checks.theory_curve import TheoryCurve
from validate.checks.undecided import undecided_remark


def check_equivalence(
    original: Sequence[LadderPoint], decoupled: Sequence[LadderPoint], theory: TheoryCurve
) -> Check:
    """Ratio of the 50 % points, original to decoupled, at one dimension: a measurement.

    The equivalence hypothesis says that the ratio tends to 1 as d grows; at finite d the original
    problem is known to be slightly easier. One dimension can neither confirm nor refute a limit, so
    no verdict is passed: the shift is reported with its 95 % interval.
    """
    _, dim = same_cell(original)
    same_cell(decoupled)
    fits = [
        half_point(
            [p.facts for p in points],
            [p.separable for p in points],
            [p.instances for p in points],
            undecided=[p.undecided for p in points],
        )
        for points in (original, decoupled)
    ]
    ratio, low, high = ratio_interval(fits[0], fits[1])
    table: list[Record] = [point.record() for point in original]
    table.append(
        {"source": "simulation", "dim": dim, "ratio": ratio, "ratio_low": low, "ratio_high": high}
    )
    shift = f"{signed(100 * (ratio - 1))} %"
    bounds = f"[{signed(100 * (low - 1))}, {signed(100 * (high - 1))}] %"
    wrong = theory.leading_order_half / theory.half - 1.0
    side = (
        "easier than the decoupled one"
        if low > 1.0
        else "harder than the decoupled one"
        if high < 1.0
        else "not told apart from the decoupled one by this sample"
    )
    unknown = sum(p.undecided for p in [*original, *decoupled])
    trials = sum(p.instances for p in [*original, *decoupled])
    return Check(
        name=f"equivalence_d{dim}",
        claim=f"Original problem, d = {dim}: the 50 % point differs from the decoupled one by an "
        "amount that the decoupling hypothesis says must vanish as d grows.",
        source="arXiv:2605.10795, equivalence hypothesis",
        quantity="shift of the 50 % point, original vs decoupled",
        predicted="0 as d → ∞",
        measured=shift,
        interval=bounds,
        sample_size=f"{trials} certified instances",
        undecided=unknown,
        remark=f"At d = {dim} the original problem is {side}: 50 % point {fits[0].value:.1f} "
        f"[{fits[0].low:.1f}, {fits[0].high:.1f}] against {fits[1].value:.1f} "
        f"[{fits[1].low:.1f}, {fits[1].high:.1f}]. α_c = 1/2 taken at this d would mean a 50 % "
        f"point {signed(100 * wrong, 0)} % away. One dimension cannot decide a "
        "limit: the section on growing d extrapolates."
        + (undecided_remark(unknown) if unknown else ""),
        table=table,
        settings={"facts": [p.facts for p in original]},
    )


def signed(value: float, decimals: int = 1) -> str:
    """A number with its sign, minus typeset as such.

    >>> signed(-1.25), signed(3.0, 0)
    ('−1.2', '+3')
    """
    return f"{value:+.{decimals}f}".replace("-", "−")
