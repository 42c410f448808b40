"""The `factcap` command. Each command is one module here; heavy imports happen inside commands."""

from __future__ import annotations

from validate.cli.app import main

__all__ = ["main"]
