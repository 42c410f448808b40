"""Numbers as words of a report."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import PurePath
from typing import Any

NUMBER = r"[-−+]?[0-9]+(?:\.[0-9]+)?"


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
    return basename(value)


def basename(value: Any) -> str:
    """Text of a value; of a path on this machine only the file's name.

    >>> basename("/home/me/facts.npz"), basename("p/d")
    ('facts.npz', 'p/d')
    """
    path = isinstance(value, PurePath) or (isinstance(value, str) and value.startswith("/"))
    return PurePath(value).name if path else str(value)


def detail(value: Any) -> str:
    """A setting of a check: floats to four digits, everything else as `setting` writes it.

    >>> detail({"a": 0.00096069, "c": [-3.39117, 5.0]}), detail(float("nan"))
    ('a: 0.0009607; c: -3.391, 5', 'none')
    """
    return setting(_shortened(value))


def _shortened(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.4g}" if math.isfinite(value) else "none"
    if isinstance(value, Mapping):
        return {key: _shortened(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_shortened(item) for item in value]
    return value


def deviation(predicted: str, measured: str, interval: str) -> str:
    """measured / predicted - 1 with its 95 % interval, in per cent; empty where that has no sense.

    It makes claims about different quantities comparable. Sense has a ratio of single numbers of
    which the predicted one is not 0.

    >>> deviation("30.62", "31.00", "[30.59, 31.45]")
    '+1.2 % (−0.1 to +2.7)'
    >>> deviation("0", "0.1", "[-0.1, 0.3]"), deviation("1; 2", "1; 2", "")
    ('', '')
    """
    remark = r"(?: \([^()]*\))?"
    values = [re.fullmatch(f"({NUMBER}){remark}", text) for text in (predicted, measured)]
    ends = re.fullmatch(rf"\[({NUMBER}), ({NUMBER})\]", interval)
    if values[0] is None or values[1] is None or ends is None:
        return ""
    law, found, low, high = (
        float(text.replace("−", "-")) for text in (values[0][1], values[1][1], *ends.groups())
    )
    if law == 0.0:
        return ""
    found, low, high = (100.0 * (x / law - 1.0) for x in (found, low, high))
    low, high = sorted((low, high))
    width = (high - low) / 2.0
    digits = min(3, max(0, 1 - math.floor(math.log10(width)))) if width > 0.0 else 2
    shown = (
        f"{x:+.{digits}f}".replace("-", "−") if round(x, digits) else f"{0:.{digits}f}"
        for x in (found, low, high)
    )
    return "{} % ({} to {})".format(*shown)


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
