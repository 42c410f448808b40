"""What every recall problem offers: scores, margins, their adjoint, and nested prefixes."""

from __future__ import annotations

import abc
from typing import Self

import torch

from replica.errors import InvalidInput

Tensor = torch.Tensor


class Problem(abc.ABC):
    """p facts, M competitors each, and a linear memory W in R^{dim_out x dim_in}.

    Fact mu is recalled by W if its target score exceeds every competing score:
    margins(W)[mu, rho] = target score - score of competitor rho > 0 for all rho.

    Attributes: `kind`, `dim_in`, `dim_out`, `facts` (p), `competitors` (M), `seed`.
    """

    kind: str
    seed: tuple[int, ...] | None

    @property
    @abc.abstractmethod
    def dim_in(self) -> int:
        """Dimension of the inputs (columns of W)."""

    @property
    @abc.abstractmethod
    def dim_out(self) -> int:
        """Dimension of the outputs (rows of W)."""

    @property
    @abc.abstractmethod
    def facts(self) -> int:
        """Number p of facts."""

    @property
    @abc.abstractmethod
    def competitors(self) -> int:
        """Number M of competitors of each fact."""

    @property
    @abc.abstractmethod
    def device(self) -> torch.device:
        """Where the tensors live."""

    @abc.abstractmethod
    def scores(self, W: Tensor) -> Tensor:
        """Scores, shape (..., p, M + 1) for W of shape (..., dim_out, dim_in); column 0: target."""

    @abc.abstractmethod
    def adjoint(self, multipliers: Tensor) -> Tensor:
        """sum_{mu, rho} multipliers[..., mu, rho] d margins[mu, rho] / dW, the shape of W."""

    @abc.abstractmethod
    def hebbian_memory(self) -> Tensor:
        """The Hebbian W: sum over facts of d(target score)/dW."""

    @abc.abstractmethod
    def prefix(self, facts: int, competitors: int | None = None) -> Self:
        """The nested instance of the first `facts` facts, with M = facts - 1 unless given."""

    @abc.abstractmethod
    def subset(self, facts: Tensor) -> Self:
        """The instance of the facts with the given indices, against the same competitors."""

    @abc.abstractmethod
    def to(self, device: torch.device | str) -> Self:
        """The same instance on another device."""

    @property
    def parameters(self) -> int:
        """Number of entries of W, dim_in dim_out."""
        return self.dim_in * self.dim_out

    @property
    def constraints(self) -> int:
        """Number of margins, p M."""
        return self.facts * self.competitors

    def margins(self, W: Tensor) -> Tensor:
        """Target minus competing scores, shape (..., p, M)."""
        scores = self.scores(W)
        return scores[..., :1] - scores[..., 1:]

    def recalled(self, W: Tensor) -> Tensor:
        """Which facts W recalls (top-1 over all outputs, ties lost), bool of shape (..., p)."""
        return (self.margins(W) > 0).all(dim=-1)

    def accuracy(self, W: Tensor) -> float:
        """Share of facts that W (one matrix) recalls."""
        return float(self.recalled(W).double().mean())

    def describe(self) -> str:
        """One line for messages."""
        return (
            f"{self.kind} problem, d_in = {self.dim_in}, d_out = {self.dim_out}, "
            f"p = {self.facts}, M = {self.competitors}"
        )


def check_count(name: str, value: object, least: int) -> int:
    """`value` as an int of at least `least`, else `InvalidInput`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidInput(
            f"{name} is {value!r}; it must be an integer of at least {least}; give such a number"
        )
    return value


def check_prefix(facts: int, competitors: int | None, have: tuple[int, int]) -> tuple[int, int]:
    """Validate the sizes of a prefix of an instance with `have` = (facts, competitors)."""
    check_count("facts", facts, 1)
    rivals = facts - 1 if competitors is None else competitors
    check_count("competitors", rivals, 1)
    most_facts, most_competitors = have
    if facts > most_facts or rivals > most_competitors:
        raise InvalidInput(
            f"a prefix of {facts} facts with {rivals} competitors was asked of an instance with "
            f"{most_facts} facts and {most_competitors} competitors; ask for fewer"
        )
    return facts, rivals
