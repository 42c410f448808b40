"""Embedding ensembles: how the input and output vectors of an instance are drawn.

Every row of an ensemble is drawn from one sequential stream, so that a longer draw starts with the
shorter one: instances are nested when facts are added.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from replica.errors import InvalidInput

FloatArray = NDArray[np.float64]
Key = tuple[int, ...]

MOST_EXPONENT = 20
NAMES = ("gaussian", "sphere", "rademacher", "sparse", "correlated")


@dataclass(frozen=True)
class Ensemble:
    """A law of embedding vectors in R^d with E|x|^2 = d.

    - gaussian: x ~ N(0, I);
    - sphere: uniform on the sphere of radius sqrt(d);
    - rademacher: independent signs;
    - sparse: each entry is N(0, 1/density) with probability `density`, else 0, given x != 0;
    - correlated: x ~ N(0, diag(spectrum)) with the spectrum normalised to mean 1; `spectrum` lists
      d eigenvalues, or is left out and k^(-exponent), k = 1..d, is used.

    Raises `InvalidInput` for an unknown name or a parameter out of range.

    >>> Ensemble("sparse", density=0.25).draw((0,), rows=2, dim=3).shape
    (2, 3)
    """

    name: str = "gaussian"
    density: float = 0.2
    exponent: float = 1.0
    spectrum: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise InvalidInput(
                f"the ensemble is {self.name!r}; it must be one of {', '.join(NAMES)}; choose one"
            )
        if not 0.0 < self.density <= 1.0:
            raise InvalidInput(
                f"the density of the sparse ensemble is {self.density}; it must lie in (0, 1]; "
                "give such a number"
            )
        if not abs(self.exponent) <= MOST_EXPONENT:
            raise InvalidInput(
                f"the exponent of the correlated ensemble is {self.exponent}; it must lie between "
                f"-{MOST_EXPONENT} and {MOST_EXPONENT}, beyond which a spectrum k^-exponent has "
                "one direction only; give such a number"
            )
        if self.spectrum is not None and not all(np.isfinite(s) and s > 0 for s in self.spectrum):
            raise InvalidInput(
                "the covariance spectrum holds an entry that is not a positive finite number; "
                "give positive eigenvalues only"
            )

    def draw(self, key: Key, *, rows: int, dim: int) -> FloatArray:
        """`rows` vectors of R^dim from the stream `SeedSequence(key)`; shape (rows, dim)."""
        generator = np.random.default_rng(np.random.SeedSequence(key))
        if self.name == "rademacher":
            bits = generator.integers(0, 2, size=(rows, dim), dtype=np.int8)
            return 2.0 * bits.astype(np.float64) - 1.0
        x: FloatArray = generator.standard_normal((rows, dim))
        if self.name == "sphere":
            x *= np.sqrt(dim) / np.linalg.norm(x, axis=1, keepdims=True)
        elif self.name == "sparse":
            x *= self._masks(key, rows, dim) / np.sqrt(self.density)
        elif self.name == "correlated":
            x *= np.sqrt(self._eigenvalues(dim))
        return x

    def _masks(self, key: Key, rows: int, dim: int) -> FloatArray:
        generator = np.random.default_rng(np.random.SeedSequence((*key, 1)))
        mask = generator.random((rows, dim)) < self.density
        for row in np.flatnonzero(~mask.any(axis=1)):
            # A zero vector is no embedding: draw this row again from a stream of its own.
            again = np.random.default_rng(np.random.SeedSequence((*key, 2, int(row))))
            while not mask[row].any():
                mask[row] = again.random(dim) < self.density
        return mask.astype(np.float64)

    def _eigenvalues(self, dim: int) -> FloatArray:
        if self.spectrum is None:
            values = np.arange(1, dim + 1, dtype=np.float64) ** -self.exponent
        else:
            values = np.asarray(self.spectrum, dtype=np.float64)
            if values.shape != (dim,):
                raise InvalidInput(
                    f"the covariance spectrum has {values.size} eigenvalues but the embeddings "
                    f"have dimension {dim}; give one eigenvalue per dimension"
                )
        normalised: FloatArray = values / values.mean()
        return normalised


def parse_ensemble(text: str | Ensemble) -> Ensemble:
    """An ensemble from `name` or `name:parameter` (density of sparse, exponent of correlated).

    >>> parse_ensemble("sparse:0.1").density
    0.1
    """
    if isinstance(text, Ensemble):
        return text
    name, colon, parameter = text.partition(":")
    if not colon:
        return Ensemble(name)
    if name not in ("sparse", "correlated"):
        raise InvalidInput(
            f"the ensemble {text!r} has a parameter; only sparse:DENSITY and correlated:EXPONENT "
            "take one; leave it out"
        )
    try:
        value = float(parameter)
    except ValueError:
        raise InvalidInput(
            f"the ensemble {text!r} has the parameter {parameter!r}; it must be a number, as in "
            "sparse:0.1; give one"
        ) from None
    return Ensemble(name, density=value) if name == "sparse" else Ensemble(name, exponent=value)


def with_spectrum(ensemble: str, path: Path | None) -> Ensemble:
    """The ensemble `ensemble`, or `correlated` with the eigenvalues in the file at `path`.

    The file is `.npy` or text with one eigenvalue a line. Raises `InvalidInput` for another
    ensemble beside a file, and for a file that cannot be read as positive numbers.

    >>> with_spectrum("sphere", None).name
    'sphere'
    """
    parsed = parse_ensemble(ensemble)
    if path is None:
        return parsed
    if ensemble not in ("correlated", "gaussian"):
        raise InvalidInput(
            f"a covariance spectrum was given with the ensemble {ensemble!r}; only correlated has "
            "one; leave one of them out"
        )
    try:
        if path.suffix == ".npy":
            values = np.load(path, allow_pickle=False)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # of an empty file: refused below
                values = np.loadtxt(path, dtype=np.float64, ndmin=1)
        spectrum = tuple(float(v) for v in np.asarray(values, dtype=np.float64).ravel())
    except (OSError, ValueError, EOFError) as error:
        raise InvalidInput(
            f"the covariance spectrum {str(path)!r} cannot be read ({_first_line(error)}); give a "
            ".npy file or a text file with one positive number a line"
        ) from None
    if not spectrum:
        raise InvalidInput(
            f"the covariance spectrum {str(path)!r} is empty; give one eigenvalue per dimension"
        )
    return Ensemble("correlated", spectrum=spectrum)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
