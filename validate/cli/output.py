"""Small helpers for the tables of the number commands."""

from __future__ import annotations

from typing import Any


def console() -> Any:
    """A console of at most 80 columns, so that tables paste well."""
    from rich.console import Console

    screen = Console(highlight=False)
    return Console(highlight=False, width=min(screen.width, 80))


def show_count(number: int) -> str:
    """A count as people read it: digits up to 10^12, then a power of ten or a leading form.

    >>> show_count(86), show_count(10**100), show_count(10**100 - 1)
    ('86', '10^100', '10^100 - 1')
    >>> show_count(26260995467123456)
    '26260995467123456'
    """
    text = str(number)
    if len(text) <= 30:
        return text
    for offset in (-1, 0, 1):
        power = str(number - offset)
        if power.strip("0") == "1":
            tail = "" if not offset else (" + 1" if offset > 0 else " - 1")
            return f"10^{len(power) - 1}{tail}"
    return f"{text[0]}.{text[1:12]}... x 10^{len(text) - 1}"


def parse_digits(text: str) -> int:
    """The number of digits asked for on the command line, 1 to 10000."""
    from numerics.cone.volumes import check_digits
    from replica.errors import InvalidInput

    try:
        return check_digits(int(text))
    except InvalidInput:
        raise
    except ValueError:
        raise InvalidInput(
            f"digits is {text[:40]}; it must be a whole number from 1 to 10000; give 15 or 50"
        ) from None


def progress(items: Any, what: str) -> Any:
    """Iterate with a progress bar on standard error, shown only on a terminal, gone at the end."""
    from rich.console import Console
    from rich.progress import track

    screen = Console(stderr=True)
    return track(
        items, description=what, console=screen, transient=True, disable=not screen.is_terminal
    )
