"""Logistic loss log(1 + e^{s_1 - s_0}): cross-entropy with one competitor."""

from __future__ import annotations

from typing import ClassVar

from numerics.trained.losses.cross_entropy import CrossEntropy
from replica.errors import InvalidInput


class Logistic(CrossEntropy):
    """l(s) = log(1 + e^{s_1 - s_0}), M = 1: logistic regression through the origin."""

    name: ClassVar[str] = "logistic"
    title: ClassVar[str] = "logistic, log(1 + exp(s_1 - s_0)), one competitor"

    def check_competitors(self, competitors: int) -> None:
        if competitors != 1:
            raise InvalidInput(
                f"competitors is {competitors}; the logistic loss has exactly one; give "
                "--competitors 1, or the loss cross_entropy"
            )
