"""The user's own embeddings: reading them, refusing bad files, and the capitals example."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from numerics.cone import least_dimension
from replica.errors import InvalidInput
from validate.decide import decide
from validate.fit import fit, least_components, principal_components, theory_dimension
from validate.problems.files import Embeddings, read_embeddings

CAPITALS = Path(__file__).parents[2] / "examples" / "data" / "capitals_minilm32.npz"


@pytest.fixture
def pair() -> tuple[np.ndarray, np.ndarray]:
    stream = np.random.default_rng(0)
    return stream.standard_normal((9, 5)), stream.standard_normal((9, 4))


def test_every_format_reads_the_same(tmp_path: Path, pair: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = pair
    np.savez(tmp_path / "a.npz", inputs=x, outputs=y, input_names=[f"in{k}" for k in range(9)])
    torch.save({"inputs": torch.from_numpy(x), "outputs": torch.from_numpy(y)}, tmp_path / "a.pt")
    save_file({"inputs": x, "outputs": y}, tmp_path / "a.safetensors")
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    np.save(tmp_path / "both.npy", np.stack([x[:, :4], y]))
    found = [read_embeddings(tmp_path / name) for name in ("a.npz", "a.pt", "a.safetensors")]
    found.append(read_embeddings(tmp_path / "x.npy", tmp_path / "y.npy"))
    for embeddings in found:
        np.testing.assert_array_equal(embeddings.inputs, x)
        np.testing.assert_array_equal(embeddings.outputs, y)
    assert found[0].input_names[3] == "in3"
    assert found[1].input_names[3] == "fact 3"
    np.testing.assert_array_equal(read_embeddings(tmp_path / "both.npy").inputs, x[:, :4])
    half = {"inputs": torch.from_numpy(x).bfloat16(), "outputs": torch.from_numpy(y).half()}
    torch.save(half, tmp_path / "half.pt")
    assert read_embeddings(tmp_path / "half.pt").inputs.dtype == np.float64


def test_bad_arrays_get_one_sentence(tmp_path: Path, pair: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = pair

    def changed(array: np.ndarray, row: int, value: object) -> np.ndarray:
        array = array.copy()
        array[row] = value
        return array

    cases: list[tuple[dict[str, object], str]] = [
        ({"inputs": x}, "no array 'outputs'"),
        ({"inputs": x, "outputs": y[:-1]}, "numbers must agree"),
        ({"inputs": x[0], "outputs": y}, "must be a matrix"),
        ({"inputs": x[:, :0], "outputs": y}, "must be a matrix"),
        ({"inputs": x[:1], "outputs": y[:1]}, "at least 2 facts"),
        ({"inputs": changed(x, 2, np.nan), "outputs": y}, "row 2"),
        ({"inputs": x, "outputs": changed(y, 4, np.inf)}, "outputs has NaN or infinite"),
        ({"inputs": changed(x, 3, 0.0), "outputs": y}, "zero vector"),
        ({"inputs": x, "outputs": changed(y, 3, 0.0)}, "zero vector"),
        ({"inputs": changed(x, 3, 1e-320), "outputs": y}, "row 3 of inputs .* rescale"),
        ({"inputs": x, "outputs": changed(y, 3, 1e200)}, "row 3 of outputs .* rescale"),
        ({"inputs": changed(x, 5, x[1]), "outputs": y}, "rows 1 and 5"),
        ({"inputs": x, "outputs": changed(y, 5, y[1])}, "same output"),
        ({"inputs": x.astype(str), "outputs": y}, "real numbers"),
        ({"inputs": x + 1j, "outputs": y}, "real numbers"),
        ({"inputs": x, "outputs": y, "input_names": np.array(["a"])}, "input_names"),
    ]
    for number, (arrays, words) in enumerate(cases):
        path = tmp_path / f"bad{number}.npz"
        np.savez(path, **arrays)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match=words) as error:
            read_embeddings(path)
        assert "\n" not in str(error.value)


def test_bad_files_get_one_sentence(tmp_path: Path, pair: tuple[np.ndarray, np.ndarray]) -> None:
    x, _ = pair
    for name in ("a.npz", "a.pt", "a.npy", "a.safetensors"):
        with pytest.raises(InvalidInput, match="no file"):
            read_embeddings(tmp_path / name)
        (tmp_path / name).write_bytes(b"not an array at all")
        with pytest.raises(InvalidInput, match="cannot be read"):
            read_embeddings(tmp_path / name)
        (tmp_path / name).write_bytes(b"")
        with pytest.raises(InvalidInput, match="cannot be read"):
            read_embeddings(tmp_path / name)
    np.savez(tmp_path / "objects.npz", inputs=np.array([{}, 1], dtype=object), outputs=x)
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_embeddings(tmp_path / "objects.npz")
    (tmp_path / "a.csv").write_text("1,2")
    with pytest.raises(InvalidInput, match="convert it"):
        read_embeddings(tmp_path / "a.csv")
    np.save(tmp_path / "flat.npy", x)
    with pytest.raises(InvalidInput, match=r"shape \(2, facts, dim\)"):
        read_embeddings(tmp_path / "flat.npy")


def test_the_allowed_range_of_entries_can_be_decided(
    tmp_path: Path, pair: tuple[np.ndarray, np.ndarray]
) -> None:
    x, y = (array[:6, :4] / np.abs(array[:6, :4]).max(axis=1, keepdims=True) for array in pair)
    for first, second in ((1.1e-50, 1.1e-50), (9e49, 9e49), (9e49, 1.1e-50)):
        np.savez(tmp_path / "far.npz", inputs=first * x, outputs=second * y)
        found = fit(read_embeddings(tmp_path / "far.npz"), shuffles=0)
        np.savez(tmp_path / "near.npz", inputs=x, outputs=y)
        near = fit(read_embeddings(tmp_path / "near.npz"), shuffles=0)
        assert found.decision.certificate.verdict == near.decision.certificate.verdict
        assert found.least.components == near.least.components


def test_a_pt_file_runs_no_code_and_may_hold_parameters(
    tmp_path: Path, pair: tuple[np.ndarray, np.ndarray]
) -> None:
    class Code:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return Path.touch, (tmp_path / "ran",)  # type: ignore[return-value]

    x, y = (torch.from_numpy(array) for array in pair)
    torch.save({"inputs": torch.nn.Parameter(x), "outputs": y}, tmp_path / "a.pt")
    np.testing.assert_array_equal(read_embeddings(tmp_path / "a.pt").inputs, pair[0])
    (tmp_path / "b.pt").write_bytes(pickle.dumps(Code()))  # and no warning beside the sentence
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_embeddings(tmp_path / "b.pt")
    assert not (tmp_path / "ran").exists()


def test_shared_outputs_are_one_answer(tmp_path: Path) -> None:
    stream = np.random.default_rng(1)
    x, y = stream.standard_normal((12, 6)), stream.standard_normal((3, 6))
    np.savez(tmp_path / "a.npz", inputs=x, outputs=y[np.arange(12) % 3])
    embeddings = read_embeddings(tmp_path / "a.npz", share_outputs=True)
    problem = embeddings.problem()
    assert (problem.facts, problem.competitors) == (12, 2)
    np.testing.assert_array_equal(problem.outputs[problem.targets].numpy(), y[np.arange(12) % 3])
    result = fit(embeddings, shuffles=1)
    assert result.competitors == 2
    assert result.decision.verdict in ("separable", "not_separable")
    for k, verdict in result.least.decisions.items():
        assert decide(embeddings.problem(components=k)).verdict == verdict


def test_the_least_number_of_components_is_least() -> None:
    embeddings = read_embeddings(CAPITALS)
    result = fit(embeddings, components=14, shuffles=1, seed=0)
    # An exploratory run with another solver found 15, and 22 to 23 for shuffled pairings.
    assert result.least.components == 15
    assert result.least.exact
    assert result.decision.verdict == "not_separable"
    assert [s.components for s in result.shuffled] == [22]
    assert result.theory == 22
    assert result.competitors == 99
    assert len(result.conflicts) == 5
    assert all(" -> " in name for name, _ in result.conflicts)
    data = result.to_json()
    assert data["least_components"] == 15
    assert data["certificate"]["correction"] < 1
    assert decide(embeddings.problem(components=15)).verdict == "separable"


def test_shuffles_have_seeds() -> None:
    embeddings = read_embeddings(CAPITALS)
    few = Embeddings(
        embeddings.inputs[:30, :12],
        embeddings.outputs[:30, :12],
        embeddings.input_names[:30],
        embeddings.output_names[:30],
    )
    first, again = fit(few, shuffles=3, seed=4), fit(few, shuffles=3, seed=4)
    assert [s.components for s in first.shuffled] == [s.components for s in again.shuffled]
    more = fit(few, shuffles=4, seed=4)
    assert [s.components for s in more.shuffled][:3] == [s.components for s in first.shuffled]


def test_principal_components_are_rotations(pair: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = pair
    names = ("",) * 9
    turned = principal_components(Embeddings(x, y, names, names))
    np.testing.assert_allclose(turned.inputs @ turned.inputs.T, x @ x.T, atol=1e-12)
    spread = np.square(turned.outputs).sum(0)
    assert (np.diff(spread) <= 0).all()


def test_too_few_components_at_all() -> None:
    stream = np.random.default_rng(3)
    names = ("",) * 40
    x = Embeddings(stream.standard_normal((40, 3)), stream.standard_normal((40, 3)), names, names)
    found = least_components(x)
    assert found.components is None
    assert found.exact


@pytest.mark.parametrize("arguments", [{"components": 0}, {"components": 33}, {"shuffles": -1}])
def test_bad_arguments(arguments: dict[str, int]) -> None:
    with pytest.raises(InvalidInput):
        fit(read_embeddings(CAPITALS), **arguments)  # type: ignore[arg-type]


def test_all_facts_with_one_answer(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", inputs=np.eye(3), outputs=np.ones((3, 2)))
    with pytest.raises(InvalidInput, match="same output"):
        fit(read_embeddings(tmp_path / "a.npz", share_outputs=True))


def test_few_answers_need_the_dimension_of_their_differences() -> None:
    """Cover at M = 1 (p = 2 d); for M >= d the ordinary threshold; never below it."""
    assert [theory_dimension(p, 1) for p in (2, 10, 11, 200)] == [1, 5, 6, 100]
    for facts, rivals in ((100, 99), (100, 30), (40, 60)):
        assert theory_dimension(facts, rivals) == least_dimension(facts, rivals)
    assert theory_dimension(200, 3) > least_dimension(200, 3)
