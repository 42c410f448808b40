"""The user's own embeddings: least number of components, beside random pairings and theory."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from replica.errors import InvalidInput
from validate.checks.base import Check, Record
from validate.fit import Fit, LeastComponents, least_components, theory_dimension
from validate.plotting import INK, MUTED, SERIES, new_figure, simulation_points


@dataclass(frozen=True)
class Pairings:
    """Least numbers of components: `least` of the true pairing, `shuffled` of others by `seeds`.

    `verdict` is that of the true pairing with all `components`; `theory` as in `Fit`.
    """

    facts: int
    components: int
    competitors: int
    verdict: str
    least: LeastComponents
    shuffled: list[LeastComponents]
    seeds: tuple[int, ...]
    theory: int

    @classmethod
    def of(cls, result: Fit) -> Pairings:
        """What `validate.fit.fit` found."""
        return cls(
            result.embeddings.facts,
            result.components,
            result.competitors,
            result.decision.verdict,
            result.least,
            result.shuffled,
            result.seeds,
            result.theory,
        )

    @classmethod
    def from_answers(cls, answers: Sequence[Mapping[str, Any]]) -> Pairings:
        """From the answers of `measure_pairing`, the true pairing first."""
        found = [
            LeastComponents(
                answer["least"], answer["exact"], {int(k): v for k, v in answer["verdicts"].items()}
            )
            for answer in answers
        ]
        true = answers[0]
        return cls(
            facts=true["facts"],
            components=true["components"],
            competitors=true["competitors"],
            verdict=found[0].decisions[true["components"]],
            least=found[0],
            shuffled=found[1:],
            seeds=tuple(answer["index"] for answer in answers[1:]),
            theory=theory_dimension(true["facts"], true["competitors"]),
        )


def file_digest(path: str) -> str:
    """SHA-256 of a file, as hexadecimal text."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def measure_pairing(path: str, digest: str, seed: int, index: int | None) -> dict[str, Any]:
    """Least number of components for the facts in `path`: as paired there, or shuffled.

    `index` None is the true pairing; else that of the stream (seed, index), as in `fit`. `digest`
    must be that of the file, so that a store never answers for another file of the same name.
    """
    from validate.problems.files import read_embeddings

    if file_digest(path) != digest:
        raise InvalidInput(
            f"the file {path!r} changed while the report was being made; leave it and start again"
        )
    facts = read_embeddings(Path(path))
    pairing = None
    if index is not None:
        pairing = np.random.default_rng(np.random.SeedSequence((seed, index))).permutation(
            facts.facts
        )
    found = least_components(facts, pairing=pairing)
    return {
        "facts": facts.facts,
        "components": facts.components,
        "competitors": facts.problem(components=facts.components).competitors,
        "index": index,
        "least": found.components,
        "exact": found.exact,
        "verdicts": {str(k): v for k, v in found.decisions.items()},
    }


def check_embeddings(result: Pairings | Fit, name: str) -> Check:
    """Least number of leading components that hold every fact: proved, for true and random pairs.

    The theory's number is for random Gaussian embeddings of as many facts, where it is the least d
    with p delta(M) <= d^2. Real facts have structure, so the true pairing is no test of the theory;
    the shuffled pairings are the closer comparison.
    """
    if isinstance(result, Fit):
        result = Pairings.of(result)
    least = result.least
    shuffled = [s.components for s in result.shuffled]
    undecided = sum(
        verdict == "undecided"
        for s in [least, *result.shuffled]
        for verdict in s.decisions.values()
    )
    all_exact = least.exact and all(s.exact for s in result.shuffled)
    table: list[Record] = [
        {"source": "theory", "pairing": "random embeddings", "components": result.theory},
        {
            "source": "simulation",
            "pairing": "true",
            "components": least.components,
            "proved_least": least.exact,
        },
    ]
    table += [
        {
            "source": "simulation",
            "pairing": f"shuffled, seed {seed}",
            "components": s.components,
            "proved_least": s.exact,
        }
        for seed, s in zip(result.seeds, result.shuffled, strict=True)
    ]
    components = "none" if least.components is None else str(least.components)
    known = [c for c in shuffled if c is not None]
    spread = "none" if not known else f"{min(known)}–{max(known)}"
    if known and min(known) == max(known):
        spread = str(known[0])
    return Check(
        name="embeddings",
        claim=f"The {result.facts} facts of {name} " + _comparison(least.components, known),
        source="factcap fit; least d with p δ(M) ≤ d²",
        quantity="least number of leading components that recall every fact",
        predicted=f"{result.theory} (random facts)",
        measured=f"{components} (true pairing), {spread} (shuffled)",
        interval="exact" if all_exact else "not closed",
        sample_size=f"1 true pairing and {len(shuffled)} shuffled ones, each found by bisection "
        "over certified verdicts",
        undecided=undecided,
        proved=all_exact,
        remark=f"With {components} components a memory was found and checked; with one fewer, "
        f"{'none exists, which is proved' if least.exact else 'the verdict is open'}. "
        f"All {result.components} components: {result.verdict.replace('_', ' ')}.",
        table=table,
        settings={"shuffle seeds": list(result.seeds), "competitors": result.competitors},
    )


def _comparison(true: int | None, shuffled: list[int]) -> str:
    """What the counts say; only fewer than every shuffle needs counts as structure."""
    if true is None:
        return "cannot all be recalled with the components given."
    if not shuffled:
        return f"fit in {true} components."
    if true < min(shuffled):
        return (
            "fit in fewer components than the same vectors paired at random: structure is cheaper."
        )
    if true > max(shuffled):
        return "need more components than the same vectors paired at random."
    return "need as many components as the same vectors paired at random."


def plot_embeddings(check: Check) -> Figure:
    """One row a pairing: its least number of components; the theory's number as a line."""
    rows = check.select("simulation")
    theory = check.select("theory")[0]["components"]
    found = [r for r in rows if r["components"] is not None]
    figure, axes = new_figure(height=1.1 + 0.34 * len(rows))
    axes.axvline(theory, color=SERIES[0], label=f"theory, random facts: {theory}")
    for row in found:
        height = len(rows) - 1 - rows.index(row)
        true = row["pairing"] == "true"
        axes.plot([0, row["components"]], [height, height], color=MUTED, linewidth=0.8)
        simulation_points(
            axes,
            [row["components"]],
            [height],
            [height],
            [height],
            series=2 if true else 1,
            label=f"{row['pairing']}: {row['components']}",
        )
        axes.annotate(
            str(row["components"]),
            (row["components"], height),
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            color=INK,
        )
    axes.set_yticks(range(len(rows)), [r["pairing"] for r in reversed(rows)])
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_xlim(0, 1.15 * max(theory, *(r["components"] for r in found), 1))
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("leading components needed")
    axes.annotate(
        f"random facts: {theory}",
        (theory, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(-4, 2),
        textcoords="offset points",
        ha="right",
        va="bottom",
        fontsize=8.5,
        color=SERIES[0],
    )
    return figure
