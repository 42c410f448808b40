"""Numbers as words of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any


def grouped(number: int) -> str:
    """An integer for a table: grouped digits, or 10^k for large powers of ten.

    >>> grouped(4096), grouped(10**100)
    ('4\u202f096', '10^100')
    """
    text = str(number)
    if len(text) > 12 and text == "1" + "0" * (len(text) - 1):
        return f"10^{len(text) - 1}"
    return f"{number:,}".replace(",", "\u202f")


def setting(value: Any) -> str:
    """A setting as a reader would write it: lists with commas, pairs with a colon.

    >>> setting(((10, (60, 30)), (20, (5, 4)))), setting({"a": 1}), setting(1000000)
    ('10: 60, 30; 20: 5, 4', 'a: 1', '1\u202f000\u202f000')
    """
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, int):
        return grouped(value)
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {setting(item)}" for key, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        if any(_deep(item) for item in value):
            return "; ".join(_pair(item) if _deep(item) else setting(item) for item in value)
        return ", ".join(setting(item) for item in value) or "none"
    return str(value)


def settings_of(sizes: Any) -> dict[str, str]:
    """Every field of a frozen dataclass of sizes, as text."""
    return {
        field.name.replace("_", " "): setting(getattr(sizes, field.name)) for field in fields(sizes)
    }


def _deep(item: Any) -> bool:
    return isinstance(item, Sequence) and not isinstance(item, str)


def _pair(item: Sequence[Any]) -> str:
    if len(item) == 2 and not _deep(item[0]) and _deep(item[1]):
        return f"{setting(item[0])}: {setting(item[1])}"
    return setting(item) if not any(_deep(part) for part in item) else f"({setting(item)})"
