"""How much a report measures: `quick` for minutes, `paper` for an hour or two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replica.errors import InvalidInput

EXAMPLE = Path(__file__).parents[2] / "examples" / "data" / "capitals_minilm32.npz"
NAMES = ("quick", "paper")


@dataclass(frozen=True)
class Preset:
    """The parts of a report, each with the sizes of its experiments, in the order of the page."""

    name: str
    sizes: Mapping[str, Any] = field(default_factory=dict)
    false_alarm_rate: float = 0.01


def check_preset(name: str) -> None:
    """Refuse an unknown preset with one sentence that lists those there are."""
    if name not in NAMES:
        raise InvalidInput(
            f"the preset is {name!r}; it must be one of {', '.join(NAMES)}; choose one"
        )


def preset_named(name: str) -> Preset:
    """The preset `name`, with the sizes that each part of the report has for it.

    >>> list(preset_named("quick").sizes)[0]
    'thresholds'
    """
    check_preset(name)
    from validate.report.catalogue import PARTS, part

    return Preset(name, {key: part(key).SIZES[name] for key in PARTS})


def check_run(seed: int, workers: int | None, embeddings: Path | None) -> Path:
    """Refuse what `run` could not use, before anything heavy is imported; the file to read.

    Raises `InvalidInput` for a negative seed, fewer than one worker, or a missing file.
    """
    if seed < 0:
        raise InvalidInput(f"the seed is {seed}; it must be a nonnegative integer; give 0 or more")
    if workers is not None and workers < 1:
        raise InvalidInput(f"workers is {workers}; it must be at least 1; leave it out for all")
    data = EXAMPLE if embeddings is None else embeddings
    if not data.is_file():
        raise InvalidInput(
            f"there is no file {str(data)!r} with embeddings; give one with --embeddings (the "
            "example is in the source tree, examples/data/capitals_minilm32.npz)"
        )
    return data
