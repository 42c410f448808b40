"""The catalogue: every prior and criterion by name, and the model that a pair of names states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

import sympy as sp

from replica.criteria.base import Criterion
from replica.criteria.halfspace import Halfspace
from replica.criteria.list_wise import ListWise
from replica.criteria.tail_average import TailAverage
from replica.criteria.top_one import TopOne
from replica.errors import InvalidInput
from replica.free_entropy import FreeEntropy
from replica.priors.base import Prior
from replica.priors.low_rank import LowRank
from replica.priors.spherical import Spherical

PRIORS: dict[str, Callable[..., Prior]] = {cls.name: cls for cls in (Spherical, LowRank)}
CRITERIA: dict[str, Callable[..., Criterion]] = {
    cls.name: cls for cls in (TopOne, Halfspace, TailAverage, ListWise)
}


@lru_cache(maxsize=256)
def model(prior: str = "spherical", criterion: str = "top_one", **parameters: Any) -> FreeEntropy:
    """The model of the two names; `parameters` (margin, competitors, ...) go where they belong.

    Cached: the same arguments give the same object, with its derivation.

    >>> model("spherical", "halfspace", margin=0).capacity
    2
    >>> model("spherical", "banana")
    Traceback (most recent call last):
        ...
    replica.errors.InvalidInput: unknown criterion 'banana'; the known ones are: top_one, halfspace,
    tail_average, list_wise
    """
    prior_class = _look_up("prior", prior, PRIORS)
    criterion_class = _look_up("criterion", criterion, CRITERIA)
    known_prior = _fields(prior_class)
    known_criterion = _fields(criterion_class)
    for name in parameters:
        if name not in known_prior | known_criterion:
            allowed = ", ".join(sorted(known_prior | known_criterion)) or "none"
            raise InvalidInput(
                f"the model {prior} with {criterion} has no parameter {name!r}; it has: {allowed}"
            )
    return FreeEntropy(
        prior_class(**{k: v for k, v in parameters.items() if k in known_prior}),
        criterion_class(**{k: v for k, v in parameters.items() if k in known_criterion}),
    )


def register(cls: type[Criterion] | type[Prior]) -> Any:
    """Class decorator: put a criterion or a prior under its `name` into the catalogue.

    Afterwards `model`, `table_row`, the command line and every test of the catalogue know it.
    """
    table: dict[str, Any] = CRITERIA if issubclass(cls, Criterion) else PRIORS
    known = table.get(cls.name)
    if known is not None and getattr(known, "__qualname__", None) != cls.__qualname__:
        raise InvalidInput(f"the name {cls.name!r} is taken by {known}; choose another name")
    table[cls.name] = cls
    model.cache_clear()
    return cls


def table_row(prior: str, criterion: str, digits: int = 10, **parameters: Any) -> dict[str, str]:
    """One row of the table of models: names, gamma_c, alpha_c; numbers where nothing is symbolic.

    >>> table_row("spherical", "halfspace", margin=0)["capacity"]
    '2'
    >>> table_row("spherical", "top_one", digits=6, margin=0, competitors=2)["capacity"]
    '6/5'
    """
    entry = model(prior, criterion, **parameters)

    def shown(value: Any) -> str:
        value = value.doit()
        if value.free_symbols or value.is_Rational:
            return str(value)
        return str(sp.re(sp.N(value, digits)))

    return {
        "prior": prior,
        "criterion": criterion,
        "capacity": shown(entry.capacity),
        "critical_load": shown(entry.critical_load),
        "bound": entry.criterion.caveat,
    }


def _fields(cls: Any) -> set[str]:
    # `fields` leaves class variables out, which are no parameters.
    return {entry.name for entry in fields(cls)} if is_dataclass(cls) else set()


def _look_up(kind: str, name: str, table: dict[str, Any]) -> Any:
    if name not in table:
        raise InvalidInput(f"unknown {kind} {name!r}; the known ones are: {', '.join(table)}")
    return table[name]
