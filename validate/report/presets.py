"""How much a report measures: `quick` for minutes, `paper` for hours."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from replica.errors import InvalidInput

EXAMPLE = Path(__file__).parents[2] / "examples" / "data" / "capitals_minilm32.npz"
LADDER_KINDS = ("gaussian", "decoupled", "original")


@dataclass(frozen=True)
class Preset:
    """Sizes of every experiment of a report. `ladder`: d and instances a load for each kind."""

    name: str
    ladder: tuple[tuple[int, tuple[int, int, int]], ...]
    targets: tuple[float, ...]
    projections: int
    projection_sizes: tuple[int, ...]
    volumes_at: int
    hebbian_dim: int
    hebbian_loads: tuple[int, ...]
    hebbian_instances: int
    learning_dim: int
    learning_shares: tuple[float, ...]
    learning_instances: int
    shuffles: int
    table_facts: tuple[int, ...] = (10, 100, 10**3, 10**4, 10**5, 10**6, 10**10, 10**100)
    table_dims: tuple[int, ...] = (10, 20, 64, 128, 256, 512, 768, 1024, 4096)
    digits: int = 10
    false_alarm_rate: float = 0.01

    @property
    def instances(self) -> int:
        """All instances of the ladder."""
        return len(self.targets) * sum(sum(counts) for _, counts in self.ladder)


PRESETS = {
    "quick": Preset(
        name="quick",
        ladder=((10, (60, 60, 60)), (20, (10, 28, 28))),
        targets=(0.97, 0.85, 0.6, 0.35, 0.1),
        projections=200_000,
        projection_sizes=(1, 2, 9, 86),
        volumes_at=86,
        hebbian_dim=10,
        hebbian_loads=(10, 15, 20, 30, 42),
        hebbian_instances=200,
        learning_dim=20,
        learning_shares=(0.4, 0.75, 0.95, 1.15, 1.5),
        learning_instances=3,
        shuffles=3,
    ),
    "paper": Preset(
        name="paper",
        ladder=((10, (1000, 1000, 1000)), (20, (200, 1000, 1000)), (30, (10, 100, 100))),
        targets=(0.97, 0.85, 0.65, 0.4, 0.2, 0.05),
        projections=2_000_000,
        projection_sizes=(1, 2, 9, 86, 261),
        volumes_at=86,
        hebbian_dim=16,
        hebbian_loads=(24, 36, 50, 70, 100),
        hebbian_instances=400,
        learning_dim=20,
        learning_shares=(0.35, 0.55, 0.75, 0.9, 1.05, 1.25, 1.6),
        learning_instances=40,
        shuffles=20,
        table_dims=(10, 20, 64, 128, 256, 512, 768, 1024, 4096, 12288),
    ),
}


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


def preset_named(name: str) -> Preset:
    """The preset `name`, or one sentence that lists them.

    >>> preset_named("quick").instances
    1230
    """
    if name not in PRESETS:
        raise InvalidInput(
            f"the preset is {name!r}; it must be one of {', '.join(PRESETS)}; choose one"
        )
    return PRESETS[name]
