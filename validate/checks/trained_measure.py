"""What the checks of trained memories measure and compare with: units of work.

Imports stay inside the tasks, so that a report can list its units without loading torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replica.errors import InvalidInput

QUANTITIES = ("accuracy", "loss", "norm_squared")
SYMBOLS = {"accuracy": "accuracy", "loss": "loss", "norm_squared": "‖W‖²"}
RULES = ("hebbian", "pseudo_inverse")
# Every instance is solved until |W - W*| is proved to be at most this times |W|.
DISTANCE = 1e-6
_STREAM = 81

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    """One experiment: p = `facts`, M = `competitors`, W of `dim_out` x `dim`, lambda = `ridge`."""

    kind: str
    dim: int
    dim_out: int
    facts: int
    competitors: int
    ridge: float

    @property
    def parameters(self) -> int:
        """N = dim dim_out."""
        return self.dim * self.dim_out

    @property
    def gamma(self) -> float:
        """Facts per parameter, p/N."""
        return self.facts / self.parameters


def measure_trained(
    kind: str,
    dim: int,
    dim_out: int,
    facts: int,
    competitors: int,
    ridge: float,
    seed: int,
    first: int,
    instances: int,
    rules: bool = False,
) -> dict[str, Any]:
    """Train on `instances` instances from number `first` on: one value an instance and quantity.

    Answer: accuracy, loss (mean over facts) and norm_squared |W|^2 of the cross-entropy minimiser,
    lists in the order of the instances; "loose" counts instances whose distance to the minimiser
    is not proved to be below 1e-6 |W|, which are left out of the lists; "ambiguous" is the largest
    share of facts whose recall by the exact minimiser the bound leaves open. With `rules` also the
    accuracy of the Hebbian and the pseudo-inverse memory on the same instances. The instance i
    depends on (seed, kind, sizes, i) alone, not on the ridge.

    >>> answer = measure_trained("gaussian", 4, 4, 6, 5, 0.1, seed=0, first=0, instances=2)
    >>> len(answer["accuracy"]), answer["loose"]
    (2, 0)
    """
    from validate.problems import make_problem
    from validate.solvers.hebbian import hebbian
    from validate.solvers.pseudo_inverse import pseudo_inverse
    from validate.solvers.ridge import ridge_memory

    answer: dict[str, Any] = {name: [] for name in QUANTITIES}
    answer |= {"loose": 0, "ambiguous": 0.0}
    if rules:
        answer |= {name: [] for name in RULES}
    for number in range(first, first + instances):
        problem = make_problem(
            kind,
            dim=dim,
            dim_out=dim_out,
            facts=facts,
            competitors=competitors,
            seed=(seed, _STREAM, facts, competitors, number),
        )
        memory = ridge_memory(problem, ridge, tolerance=DISTANCE)
        if memory.relative_distance > DISTANCE:
            answer["loose"] += 1
            continue
        for name in QUANTITIES:
            answer[name].append(getattr(memory, name))
        low, high = memory.accuracy_range
        answer["ambiguous"] = max(answer["ambiguous"], high - low)
        if rules:
            answer["hebbian"].append(hebbian(problem).accuracy)
            answer["pseudo_inverse"].append(pseudo_inverse(problem).accuracy)
    return answer


def predict_trained(
    parameters: int, facts: int, competitors: int, ridge: float, accuracy: float, seed: int
) -> dict[str, list[float]]:
    """[value, standard error] of every quantity from the theory (limit of large N).

    >>> predict_trained(64, 20, 5, 0.1, accuracy=0.05, seed=0)["norm_squared"][0] > 0
    True
    """
    from numerics.trained import predict

    found = predict(
        parameters=parameters,
        facts=facts,
        competitors=competitors,
        ridge=ridge,
        accuracy=accuracy,
        seed=seed,
    )
    return {name: [getattr(found, name).value, getattr(found, name).stderr] for name in QUANTITIES}


@dataclass(frozen=True)
class Sample:
    """All instances of one setting: `values` (n, 3) in the order of QUANTITIES."""

    setting: Setting
    values: Floats
    loose: int = 0
    ambiguous: float = 0.0

    @classmethod
    def from_answers(cls, setting: Setting, answers: Sequence[dict[str, Any]]) -> Sample:
        """Join the answers of the units of one setting."""
        values = np.array(
            [[x for a in answers for x in a[name]] for name in QUANTITIES], dtype=float
        ).T
        if len(values) < 5:
            raise InvalidInput(
                f"{len(values)} instances of p = {setting.facts}, N = {setting.parameters} were "
                "measured; a covariance of three quantities needs at least 5; measure more"
            )
        return cls(
            setting,
            values,
            sum(a["loose"] for a in answers),
            max(a["ambiguous"] for a in answers),
        )

    @property
    def size(self) -> int:
        """Instances."""
        return len(self.values)

    @property
    def mean(self) -> Floats:
        """(3,)."""
        return np.asarray(self.values.mean(axis=0))

    @property
    def covariance(self) -> Floats:
        """Covariance of the values of one instance, (3, 3)."""
        return np.cov(self.values, rowvar=False)

    @property
    def error(self) -> Floats:
        """Standard errors of the means, (3,)."""
        return np.sqrt(np.diag(self.covariance) / self.size)


@dataclass(frozen=True)
class Theory:
    """Predicted `value` (3,) and standard error `stderr` (3,), in the order of QUANTITIES."""

    value: Floats
    stderr: Floats

    @classmethod
    def from_answer(cls, answer: dict[str, list[float]]) -> Theory:
        """From the answer of `predict_trained`."""
        pairs = np.array([answer[name] for name in QUANTITIES], dtype=float)
        return cls(pairs[:, 0], pairs[:, 1])
