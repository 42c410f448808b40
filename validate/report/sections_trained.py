"""Section "trained memories": what cross-entropy with ridge reaches at every load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from math import gcd
from typing import Any

from numerics import cone
from replica.trained import theory
from validate.checks.base import Check
from validate.checks.trained_curve import CurvePoint, check_trained_curve, plot_trained_curve
from validate.checks.trained_limit import Limit
from validate.checks.trained_measure import QUANTITIES, RULES, SYMBOLS, Sample, Setting, Theory
from validate.checks.trained_memory import check_trained_memory, plot_trained_memory
from validate.checks.trained_universality import (
    Series,
    check_trained_universality,
    plot_trained_universality,
)
from validate.checks.units import Unit
from validate.plotting import to_svg
from validate.report.model import Figure, Section, Table

MEASURE = "validate.checks.trained_measure:measure_trained"
PREDICT = "validate.checks.trained_measure:predict_trained"
# N = dim_in dim_out; only N matters to the Gaussian problem.
SHAPES = {64: (8, 8), 128: (16, 8), 256: (16, 16), 512: (32, 16)}
SECONDS_A_UNIT = 15.0


@dataclass(frozen=True)
class Sizes:
    """`limits`: (p/N, ridge) whose limit is tested with M = `competitors` at `limit_sizes`, pairs
    of N and instances. `curve_dim`, `curve_ridges`, `curve_facts`: accuracy curves, with
    `curve_instances` memories a point and theory at `curve_lines` in addition. `decoupled`:
    (p/N, ridge) with M = `competitors`, `original`: (p/p_c, ridge) with M = p - 1 and p_c the
    critical number of facts; their distance from the theory is measured at `distance_dims`, pairs
    of d and instances.
    `accuracies`: relative errors of the theory of limits (and decoupled), curves, original.
    """

    limits: tuple[tuple[float, float], ...]
    limit_sizes: tuple[tuple[int, int], ...]
    curve_dim: int
    curve_ridges: tuple[float, ...]
    curve_facts: tuple[int, ...]
    curve_lines: tuple[int, ...]
    curve_instances: int
    decoupled: tuple[tuple[float, float], ...]
    original: tuple[tuple[float, float], ...]
    distance_dims: tuple[tuple[int, int], ...]
    accuracies: tuple[float, float, float]
    competitors: int = 31


SIZES = {
    "quick": Sizes(
        limits=((0.1875, 0.05), (0.5, 0.2)),
        limit_sizes=((128, 80), (256, 38)),
        curve_dim=10,
        curve_ridges=(0.01, 1.0),
        curve_facts=(14, 26, 40, 56),
        curve_lines=(18, 22, 32, 48),
        curve_instances=6,
        decoupled=((0.1875, 0.05), (0.5, 0.2)),
        original=((1.5, 0.05),),
        distance_dims=((16, 10), (24, 8), (32, 7)),
        accuracies=(0.003, 0.01, 0.01),
    ),
    "paper": Sizes(
        limits=((0.1875, 0.05), (0.25, 0.1), (0.375, 0.02), (0.5, 0.05)),
        limit_sizes=((128, 600), (256, 400), (512, 200)),
        curve_dim=16,
        curve_ridges=(0.001, 0.01, 0.1, 1.0),
        curve_facts=(20, 30, 40, 50, 60, 75, 90, 110, 130),
        curve_lines=(25, 35, 45, 55, 65, 70, 80, 100, 120),
        curve_instances=12,
        decoupled=((0.1875, 0.05), (0.5, 0.05)),
        original=((0.7, 0.05), (1.5, 0.05)),
        distance_dims=((12, 200), (16, 150), (24, 80), (32, 50), (48, 20)),
        accuracies=(0.0008, 0.005, 0.002),
    ),
}


@dataclass(frozen=True)
class Job:
    """All units of one setting: `instances` measured (with `rules` or not), and the theory to the
    relative error `accuracy` (0: none)."""

    setting: Setting
    instances: int
    accuracy: float
    rules: bool = False

    def units(self, seed: int) -> list[Unit]:
        """Batches of instances, then the theory."""
        found = []
        each = _seconds(self.setting)
        batch = max(1, int(SECONDS_A_UNIT / each))
        for first in range(0, self.instances, batch):
            count = min(batch, self.instances - first)
            arguments = {
                **asdict(self.setting),
                "seed": seed,
                "first": first,
                "instances": count,
                "rules": self.rules,
            }
            found.append(Unit(MEASURE, arguments, work=count * each))
        if self.accuracy:
            # The theory knows p/N only: in lowest terms, different N ask for one and the same unit.
            common = gcd(self.setting.parameters, self.setting.facts)
            arguments = {
                "parameters": self.setting.parameters // common,
                "facts": self.setting.facts // common,
                "competitors": self.setting.competitors,
                "ridge": self.setting.ridge,
                "accuracy": self.accuracy,
                "seed": seed,
            }
            found.append(Unit(PREDICT, arguments, work=0.5 + 2e-6 / self.accuracy**2))
        return found


@dataclass(frozen=True)
class Done:
    """The answers of one job."""

    setting: Setting
    measured: list[dict[str, Any]]
    predicted: dict[str, Any] | None

    @property
    def sample(self) -> Sample:
        """Its instances."""
        return Sample.from_answers(self.setting, self.measured)

    @property
    def theory(self) -> Theory:
        """Its prediction."""
        assert self.predicted is not None
        return Theory.from_answer(self.predicted)


def _seconds(setting: Setting) -> float:
    """Rough cost of an instance: a few dozen products with everything it is made of."""
    numbers = setting.facts * (setting.competitors + 1) * setting.dim
    if setting.kind == "gaussian":
        numbers *= setting.dim_out
    return 0.04 + {"gaussian": 1.4e-7, "decoupled": 4e-7, "original": 1e-7}[setting.kind] * numbers


def limit_jobs(sizes: Sizes) -> list[list[Job]]:
    """For every load and ridge, one job a size; the theory, alike for all, goes with the first."""
    groups = []
    for gamma, ridge in sizes.limits:
        group = []
        for number, (parameters, instances) in enumerate(sizes.limit_sizes):
            dim, dim_out = SHAPES[parameters]
            facts = round(gamma * parameters)
            setting = Setting("gaussian", dim, dim_out, facts, sizes.competitors, ridge)
            group.append(Job(setting, instances, sizes.accuracies[0] if number == 0 else 0.0))
        groups.append(group)
    return groups


def curve_jobs(sizes: Sizes) -> list[Job]:
    """One job for every ridge and load, measured or not; rules with the first ridge."""
    d = sizes.curve_dim
    return [
        Job(
            Setting("gaussian", d, d, facts, facts - 1, ridge),
            sizes.curve_instances if facts in sizes.curve_facts else 0,
            sizes.accuracies[1],
            rules=number == 0,
        )
        for number, ridge in enumerate(sizes.curve_ridges)
        for facts in sorted({*sizes.curve_facts, *sizes.curve_lines})
    ]


def distance_jobs(sizes: Sizes) -> list[tuple[str, str, list[Job]]]:
    """(problem, load, jobs at every d)."""
    groups = []
    for kind, loads in (("decoupled", sizes.decoupled), ("original", sizes.original)):
        for load, ridge in loads:
            jobs = []
            for dim, instances in sizes.distance_dims:
                if kind == "decoupled":
                    facts, rivals = round(load * dim * dim), sizes.competitors
                else:
                    facts = round(load * _critical_facts(dim))
                    rivals = facts - 1
                setting = Setting(kind, dim, dim, facts, rivals, ridge)
                error = sizes.accuracies[0 if kind == "decoupled" else 2]
                jobs.append(Job(setting, instances, error))
            name = f"p = {load:g} {'d²' if kind == 'decoupled' else 'p_c'}, λ = {ridge:g}"
            groups.append((kind, name, jobs))
    return groups


def all_jobs(sizes: Sizes) -> list[Job]:
    """Every job, in the order of the units."""
    return [
        *(job for group in limit_jobs(sizes) for job in group),
        *curve_jobs(sizes),
        *(job for _, _, group in distance_jobs(sizes) for job in group),
    ]


def units(sizes: Sizes, seed: int) -> list[Unit]:
    """Batches of trained memories, and their theory."""
    return [unit for job in all_jobs(sizes) for unit in job.units(seed)]


def build(sizes: Sizes, seed: int, answers: list[Any]) -> Section:
    """Limit of large N, accuracy curves, and the distance of the other problems."""
    done = iter(_collect(all_jobs(sizes), seed, answers))
    limits = []
    for group in limit_jobs(sizes):
        parts = [next(done) for _ in group]
        limits.append(Limit([part.sample for part in parts], parts[0].theory))
    points, theories = [], {}
    for job in curve_jobs(sizes):
        part = next(done)
        theories[job.setting.ridge, job.setting.facts] = part.theory
        if job.instances:
            rules = {r: [x for a in part.measured for x in a[r]] for r in RULES if job.rules}
            points.append(CurvePoint(part.sample, rules))
    series = []
    for kind, name, jobs in distance_jobs(sizes):
        parts = [next(done) for _ in jobs]
        series.append(
            Series(kind, name, [part.sample for part in parts], [part.theory for part in parts])
        )
    memory = check_trained_memory(limits, seed=seed)
    curve = check_trained_curve(points, theories, _critical_facts(sizes.curve_dim))
    distance = check_trained_universality(series)
    return Section(
        identifier="trained",
        title="What training reaches",
        introduction="A memory trained by cross-entropy with the ridge (λN/2)‖W‖² has one "
        "minimiser at every load. Two equations predict its accuracy, loss and norm, also beyond "
        "capacity, where no memory recalls everything. Here memories are trained until strong "
        "convexity proves them within a millionth of the minimiser. First, where the two equations "
        "come from.",
        derivation=theory("cross_entropy").derivation,
        tables=[_limit_table(memory), _distance_table(distance, sizes.competitors)],
        figures=[_curve_figure(curve), _limit_figure(memory), _distance_figure(distance)],
        checks=[memory, curve, distance],
    )


def _collect(jobs: Sequence[Job], seed: int, answers: Sequence[Any]) -> list[Done]:
    rest = list(answers)
    found = []
    for job in jobs:
        count = len(job.units(seed))
        mine, rest = rest[:count], rest[count:]
        predicted = mine.pop() if job.accuracy else None
        found.append(Done(job.setting, mine, predicted))
    return found


@cache
def _critical_facts(dim: int) -> float:
    return float(int(cone.critical_facts(dim)))


def _limit_table(check: Check) -> Table:
    rows = []
    for record in check.table:
        pairs = [f"{record[name]:.4g} ± {record[f'{name}_error']:.1g}" for name in QUANTITIES]
        source = "theory" if record["source"] == "theory" else str(record.get("instances", "fit"))
        rows.append(
            (f"{record['load']:g}", f"{record['ridge']:g}", str(record["N"]), source, *pairs)
        )
    return Table(
        "Gaussian problem: measured means and their limit",
        ("p/N", "λ", "N", "memories", *(SYMBOLS[name] for name in QUANTITIES)),
        rows,
        f"M = {check.settings['competitors']} competitors; ± one standard error. The row of the "
        "fit should agree with the row of the theory above it.",
    )


def _distance_table(check: Check, competitors: int) -> Table:
    rows = []
    for record in sorted(check.select("simulation"), key=_group):
        correction = record.get("correction")
        rows.append(
            (
                record["problem"],
                record["load"].replace(", ", "; "),
                SYMBOLS[record["quantity"]],
                str(record["dim"]) + (f" ({correction})" if correction else ""),
                f"{record['difference']:+.2%}",
                f"[{record['low']:+.2%}, {record['high']:+.2%}]",
            )
        )
    return Table(
        "Decoupled and original problems: difference from the theory",
        ("problem", "load", "quantity", "d", "difference", "95 % interval"),
        rows,
        f"Decoupled: M = {competitors} fixed; original: M = p − 1. Rows d = ∞ extrapolate with the "
        "corrections in brackets; an interval that holds zero says that the problem becomes the "
        "Gaussian one, if the correction has that form.",
    )


def _group(record: dict[str, Any]) -> tuple[str, str, int]:
    return record["problem"], record["load"], QUANTITIES.index(record["quantity"])


def _curve_figure(check: Check) -> Figure:
    dim = check.settings["dim"]
    return Figure(
        "trained-curve",
        "Accuracy against load",
        f"Training accuracy against the number of facts at d = {dim}, for each ridge, the Hebbian "
        "rule and the pseudo-inverse, with the capacity marked by a vertical line.",
        "Lines: theory of the limit of large N (for ridges a monotone curve through computed "
        "loads); points: means over memories with 95 % intervals. Compare how early each line "
        "leaves one and how it passes the capacity (vertical line): a smaller ridge holds longer, "
        "a larger one is closer to Hebb. Agreement: points on their lines, up to corrections of "
        "order 1/N, which are largest where a line is steep.",
        to_svg(
            plot_trained_curve(check),
            identifier="trained-curve",
            title=f"Training accuracy against number of facts at d = {dim}",
            description="Curves for several ridges, the Hebbian rule and the pseudo-inverse, and "
            "measured points with intervals.",
        ),
    )


def _limit_figure(check: Check) -> Figure:
    return Figure(
        "trained-limit",
        "The limit of large N",
        "Deviation of the mean squared norm from the theory against 1000/N, with straight lines "
        "fitted to the points and the interval of each limit at 1/N = 0.",
        "Agreement: each bar at the left edge, the limit of its line, holds zero; what deviates at "
        "finite N would then be a correction proportional to 1/N.",
        to_svg(
            plot_trained_memory(check),
            identifier="trained-limit",
            title="Deviation of the squared norm from theory against 1000/N",
            description="Points at several N, fitted lines, and their limits at 1/N = 0.",
        ),
    )


def _distance_figure(check: Check) -> Figure:
    return Figure(
        "trained-distance",
        "Distance of the other problems",
        "Relative difference of the squared norm from the theory against 1/d for the decoupled and "
        "original problems, with lines in 1/d and curves in one over the root of d.",
        "Norms of decoupled and original memories differ from the theory at finite d. Full lines: "
        "fits in 1/d; dotted: in d^(−1/2). Where they meet the left edge is the limit that each "
        "form would give; how far the two forms are apart there is how little the data say.",
        to_svg(
            plot_trained_universality(check),
            identifier="trained-distance",
            title="Difference of the squared norm from theory against 1/d",
            description="Points with intervals at several d, and two fitted curves a series.",
        ),
    )
