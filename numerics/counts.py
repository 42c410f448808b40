"""Reading counts as people write them: 1000, 1e100, 10^1000, 2**64, exactly, as integers."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from numbers import Integral

from replica.errors import InvalidInput

MAX_EXPONENT = 1000
_POWER = re.compile(r"(\d+)\s*(?:\^|\*\*)\s*(\d+)")
_DECIMAL = re.compile(r"\+?(\d+\.?\d*|\.\d+)(?:[eE]\+?(\d+))?")


def parse_count(text: str | int, name: str = "count", least: int = 1) -> int:
    """The exact integer written as `1000`, `1_000`, `1e100`, `2.5e6`, `10^1000` or `2**64`.

    Arguments: `text`, a string or an integer (a pure number); `name`, how the message calls it;
    `least`, the smallest value allowed. Raises `InvalidInput` for anything else, for values
    that are not whole, and above 10^1000.

    >>> parse_count("2.5e3"), parse_count("10^3"), parse_count(7)
    (2500, 1000, 7)
    >>> parse_count("1.5")
    Traceback (most recent call last):
        ...
    replica.errors.InvalidInput: count is 1.5; it must be a whole number from 1 to 10^1000; \
write it like 1000, 1e100 or 10^1000
    """
    shown = str(text) if len(str(text)[:60]) < 60 else f"{str(text)[:40]}..."
    allowed = (
        f"{name} is {shown}; it must be a whole number from {least} to 10^{MAX_EXPONENT}; "
        "write it like 1000, 1e100 or 10^1000"
    )
    value = _read(text, allowed)
    if value < least or value > 10**MAX_EXPONENT:
        raise InvalidInput(allowed)
    return value


def _read(text: str | int, allowed: str) -> int:
    if isinstance(text, bool):
        raise InvalidInput(allowed)
    if isinstance(text, Integral):  # NumPy's integers too
        return int(text)
    if not isinstance(text, str):
        raise InvalidInput(allowed)
    stripped = text.strip().replace("_", "")
    if len(stripped) > MAX_EXPONENT + 50:
        raise InvalidInput(allowed)
    power = _POWER.fullmatch(stripped)
    if power:
        base, exponent = int(power[1]), int(power[2])
        if base > 1 and (exponent - 1) * (base.bit_length() - 1) > 4 * MAX_EXPONENT:
            raise InvalidInput(allowed)
        return base ** min(exponent, 4 * MAX_EXPONENT) if base > 1 else base ** min(exponent, 1)
    decimal = _DECIMAL.fullmatch(stripped)
    if decimal is None or (decimal[2] and int(decimal[2]) > 2 * MAX_EXPONENT):
        raise InvalidInput(allowed)
    if stripped.lstrip("+").isdigit():
        return int(stripped)
    try:
        exact = Decimal(stripped)
    except InvalidOperation:
        raise InvalidInput(allowed) from None
    numerator, denominator = exact.as_integer_ratio()
    if denominator != 1:
        raise InvalidInput(allowed)
    return numerator


def parse_counts(text: str, name: str = "counts", least: int = 1) -> list[int]:
    """A comma-separated list of counts; `...` between two powers of ten fills in the ratio.

    `1e2,1e3,...,1e6` means 1e2, 1e3, 1e4, 1e5, 1e6: the two terms before the dots fix the ratio.

    >>> parse_counts("10,100,...,1e4, 7")
    [10, 100, 1000, 10000, 7]
    """
    values: list[int] = []
    fill = False
    for part in text.split(","):
        if part.strip() == "...":
            if len(values) < 2 or fill:
                raise InvalidInput(
                    f"{name} is {text}; '...' must follow two numbers and precede one; write it "
                    "like 1e2,1e3,...,1e10"
                )
            fill = True
            continue
        value = parse_count(part, name, least)
        if fill:
            values += _between(values[-2], values[-1], value, name)
            fill = False
        values.append(value)
    if fill:
        raise InvalidInput(f"{name} is {text}; '...' must be followed by the last number; add it")
    return values


def _between(before: int, start: int, end: int, name: str) -> list[int]:
    ratio, rest = divmod(start, before) if before else (0, 1)
    if rest or ratio < 2:
        raise InvalidInput(
            f"{name} has '...' after {before},{start}, whose ratio is not a whole number above 1; "
            "write it like 1e2,1e3,...,1e10"
        )
    filled, value = [], start * ratio
    while value < end:
        filled.append(value)
        value *= ratio
    if value != end:
        raise InvalidInput(
            f"{name} has '...' that steps by the factor {ratio} but does not meet its last number; "
            "give a last number of the same progression"
        )
    return filled
