"""The user's own embeddings: reading them, and refusing what cannot work in one sentence."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from replica.errors import InvalidInput
from validate.problems.original import OriginalProblem

SUFFIXES = (".npz", ".npy", ".pt", ".safetensors")
LEAST, MOST = 1e-50, 1e50
"""Allowed largest entry of a row: beyond, squares of products leave the range of floats."""


@dataclass(frozen=True)
class Embeddings:
    """Pairs of embeddings: row mu of `inputs` (p, d_in) and of `outputs` (p, d_out) is fact mu.

    `input_names` and `output_names` name the rows ("fact 1", ... where the file has no names).
    """

    inputs: NDArray[np.float64]
    outputs: NDArray[np.float64]
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]

    @property
    def facts(self) -> int:
        """Number p of facts."""
        return self.inputs.shape[0]

    @property
    def components(self) -> int:
        """Largest number of components that means something, max(d_in, d_out)."""
        return max(self.inputs.shape[1], self.outputs.shape[1])

    def problem(
        self, *, components: int | None = None, pairing: NDArray[np.int64] | None = None
    ) -> OriginalProblem:
        """The recall problem of the leading components; facts with equal outputs share a target.

        `pairing[mu]` is the row of `outputs` that belongs to input mu (mu itself by default).
        Outputs that only truncation makes equal stay competitors, and then cannot be told apart.
        """
        distinct, targets = np.unique(self.outputs, axis=0, return_inverse=True)
        targets = targets.reshape(-1)
        if pairing is not None:
            targets = targets[pairing]
        k = self.components if components is None else components
        return OriginalProblem(
            torch.from_numpy(self.inputs[:, :k].copy()),
            torch.from_numpy(distinct[:, :k].copy()),
            torch.from_numpy(targets.astype(np.int64)),
        )


def read_embeddings(
    path: Path | str, outputs_path: Path | str | None = None, *, share_outputs: bool = False
) -> Embeddings:
    """Read the pairs from `.npz`, `.pt` or `.safetensors` with arrays `inputs` and `outputs`.

    A `.npy` file holds one array of shape (2, p, d), inputs and outputs; or `outputs_path` names
    the `.npy` file of the outputs. Optional names: `input_names`, `output_names` (p strings).

    Raises `InvalidInput` for a file that cannot be read, arrays of wrong shape or type, NaN or
    infinite entries, fewer than two facts, a zero vector or one whose largest entry is not within
    1e-50 to 1e50, equal inputs with different outputs (no memory can recall both), and equal
    outputs unless `share_outputs` says that they are meant to be one answer.
    """
    arrays = _load(Path(path))
    if outputs_path is not None:
        other = _load(Path(outputs_path))
        arrays = {"inputs": _single(arrays, path), "outputs": _single(other, outputs_path)}
    elif set(arrays) == {"array"}:
        both = arrays["array"]
        if both.ndim != 3 or both.shape[0] != 2:
            raise InvalidInput(
                f"{str(path)!r} holds one array of shape {both.shape}; a single .npy file must "
                "have shape (2, facts, dim), inputs then outputs; give the outputs as a second "
                "file or use .npz"
            )
        arrays = {"inputs": both[0], "outputs": both[1]}
    for name in ("inputs", "outputs"):
        if name not in arrays:
            have = ", ".join(sorted(arrays)) or "nothing"
            raise InvalidInput(
                f"{str(path)!r} has no array {name!r} (it holds {have}); it needs the arrays "
                "inputs and outputs, row mu of each being fact mu; rename or add it"
            )
    inputs = _matrix(arrays["inputs"], "inputs")
    outputs = _matrix(arrays["outputs"], "outputs")
    facts = inputs.shape[0]
    if outputs.shape[0] != facts:
        raise InvalidInput(
            f"inputs has {facts} rows and outputs has {outputs.shape[0]}; row mu of both is fact "
            "mu, so the numbers must agree; drop or add rows"
        )
    if facts < 2:
        raise InvalidInput(
            f"the file holds {facts} fact; recall needs at least 2 facts to tell apart; add rows"
        )
    embeddings = Embeddings(
        inputs,
        outputs,
        _names(arrays.get("input_names"), "input_names", facts),
        _names(arrays.get("output_names"), "output_names", facts),
    )
    _refuse_extreme_rows(embeddings)
    _refuse_equal_rows(embeddings, share_outputs)
    return embeddings


def _load(path: Path) -> dict[str, Any]:
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InvalidInput(
            f"the file {str(path)!r} ends in {suffix or 'nothing'!r}; embeddings are read from "
            f"{', '.join(SUFFIXES)}; convert it"
        )
    if not path.is_file():
        raise InvalidInput(f"there is no file {str(path)!r}; give the path of an existing file")
    try:
        if suffix == ".pt":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what matters about a file is said below
                loaded = torch.load(path, map_location="cpu", weights_only=True)
            if not isinstance(loaded, dict):
                loaded = {"array": loaded}
            return {str(key): _from_torch(value) for key, value in loaded.items()}
        if suffix == ".safetensors":
            from safetensors.torch import load_file

            return {key: _from_torch(value) for key, value in load_file(path).items()}
        content = np.load(path, allow_pickle=False)
        if isinstance(content, np.ndarray):
            return {"array": content}
        with content:
            return {key: content[key] for key in content.files}
    except ImportError:
        raise InvalidInput(
            f"reading {str(path)!r} needs the Python package 'safetensors'; install the extra "
            "with: pip install 'factcap[validate]'"
        ) from None
    except Exception as error:
        # Every reader has exceptions of its own for damaged bytes; all mean the same to the user.
        raise InvalidInput(
            f"the file {str(path)!r} cannot be read as {suffix} ({type(error).__name__}); it must "
            "hold plain numeric arrays; write it again"
        ) from None


def _from_torch(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        value = value.detach()
        return value.double().numpy() if value.is_floating_point() else value.numpy()
    return np.asarray(value)


def _single(arrays: dict[str, Any], path: Path | str) -> Any:
    if len(arrays) != 1:
        raise InvalidInput(
            f"{str(path)!r} holds {len(arrays)} arrays but inputs and outputs were given as two "
            "files; each must hold one array; give one file with both or two with one each"
        )
    return next(iter(arrays.values()))


def _matrix(array: Any, name: str) -> NDArray[np.float64]:
    array = np.asarray(array)
    if array.ndim != 2 or 0 in array.shape:
        raise InvalidInput(
            f"{name} has shape {array.shape}; it must be a matrix of shape (facts, dim); reshape it"
        )
    if array.dtype.kind not in "fiu":
        raise InvalidInput(
            f"{name} has entries of type {array.dtype}; they must be real numbers; convert them"
        )
    matrix = np.ascontiguousarray(array, dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if bad.size:
        raise InvalidInput(
            f"{name} has NaN or infinite entries in row {bad[0]} ({bad.size} such rows, counting "
            "rows from 0); all entries must be finite; remove or repair those facts"
        )
    return matrix


def _names(value: Any, name: str, facts: int) -> tuple[str, ...]:
    if value is None:
        return tuple(f"fact {mu}" for mu in range(facts))
    names = tuple(str(x) for x in np.asarray(value).reshape(-1).tolist())
    if len(names) != facts:
        raise InvalidInput(
            f"{name} has {len(names)} entries for {facts} facts; give one name a fact or none"
        )
    return names


def _refuse_extreme_rows(embeddings: Embeddings) -> None:
    for matrix, name, labels in (
        (embeddings.inputs, "inputs", embeddings.input_names),
        (embeddings.outputs, "outputs", embeddings.output_names),
    ):
        zero = np.flatnonzero(~matrix.any(axis=1))
        if zero.size:
            raise InvalidInput(
                f"row {zero[0]} of {name} ({labels[zero[0]]}) is the zero vector; every embedding "
                "must be nonzero; remove or repair that fact"
            )
        largest = np.abs(matrix).max(axis=1)
        extreme = np.flatnonzero((largest < LEAST) | (largest > MOST))
        if extreme.size:
            mu = extreme[0]
            raise InvalidInput(
                f"row {mu} of {name} ({labels[mu]}) has largest entry {largest[mu]:.3g}; it must "
                f"lie between {LEAST:g} and {MOST:g}; rescale the embeddings, which changes no "
                "verdict"
            )


def _refuse_equal_rows(embeddings: Embeddings, share_outputs: bool) -> None:
    _, same_input = np.unique(embeddings.inputs, axis=0, return_inverse=True)
    _, same_output = np.unique(embeddings.outputs, axis=0, return_inverse=True)
    same_input, same_output = same_input.reshape(-1), same_output.reshape(-1)
    first_input: dict[int, int] = {}
    for mu, group in enumerate(same_input.tolist()):
        nu = first_input.setdefault(group, mu)
        if same_output[nu] != same_output[mu]:
            raise InvalidInput(
                f"rows {nu} and {mu} ({_pair(embeddings.input_names, nu, mu)}) have "
                "the same input but different outputs; no memory can recall both; remove one"
            )
    if share_outputs:
        return
    first_output: dict[int, int] = {}
    for mu, group in enumerate(same_output.tolist()):
        nu = first_output.setdefault(group, mu)
        if nu != mu:
            raise InvalidInput(
                f"rows {nu} and {mu} ({_pair(embeddings.output_names, nu, mu)}) have "
                "the same output, which makes recall impossible if they compete; remove one, "
                "or say with --share-outputs that equal outputs are one answer"
            )


def _pair(names: tuple[str, ...], nu: int, mu: int) -> str:
    return f"{names[nu]}, {names[mu]}"
