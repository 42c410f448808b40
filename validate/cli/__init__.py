"""The `factcap` command. Each command is one module here; heavy imports happen inside commands."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Entry point of the command; Ctrl-C while its modules are loading is quiet, too."""
    try:
        from validate.cli.app import main as run
    except KeyboardInterrupt:
        print("factcap: interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    run()
