"""Counts as people write them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numerics.counts import parse_count, parse_counts
from replica.errors import InvalidInput


@given(st.integers(1, 10**60))
def test_plain_integers(n: int) -> None:
    assert parse_count(n) == parse_count(str(n)) == parse_count(f" {n:_} ") == n


def test_integers_of_numpy() -> None:
    assert parse_count(np.int64(10)) == 10
    assert type(parse_count(np.int64(10))) is int


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e100", 10**100),
        ("10^1000", 10**1000),
        ("10**3", 1000),
        ("2^64", 2**64),
        ("2.5e6", 2_500_000),
        ("1E3", 1000),
        ("1.0", 1),
        ("1^5000", 1),
    ],
)
def test_other_ways(text: str, value: int) -> None:
    assert parse_count(text) == value


@pytest.mark.parametrize(
    "text",
    ["", "x", "-3", "0", "1.5", "1e1001", "10^1001", "9^9999999", "1e-3", "nan", "inf", "1" * 3000,
     True, 2.0, None, "1e99999999999", "0^5"],
)  # fmt: skip
def test_refused_in_one_sentence(text: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_count(text, "facts")
    message = str(caught.value)
    assert message.startswith("facts is")
    assert "\n" not in message
    assert len(message) < 250


def test_lists() -> None:
    assert parse_counts("1e2,1e3,...,1e100") == [10**k for k in range(2, 101)]
    assert parse_counts("3") == [3]
    for text in (
        "1,2,...",
        "...,3",
        "1,...,5",
        "10,15,...,40",
        "10,100,...,1e3.5",
        "1e2,1e3,...,5e5",
    ):
        with pytest.raises(InvalidInput):
            parse_counts(text)
