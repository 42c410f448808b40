"""Assembles the command from the modules of `validate.cli`; imports no heavy library itself."""

from __future__ import annotations

import importlib
import sys

import typer

from validate.cli.common import EXIT_BAD_INPUT, run_guarded

# One module a command; each has `register(app)` and imports its libraries inside the command.
COMMANDS: tuple[str, ...] = ("threshold", "success", "derive", "fit", "simulate")

app = typer.Typer(
    name="factcap",
    help="How many facts a linear associative memory can recall: theory, certified digits, checks.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

for _name in COMMANDS:
    importlib.import_module(f"validate.cli.{_name}").register(app)


def main() -> None:
    """Entry point: bad input gives one sentence and exit code 2, Ctrl-C exit code 130."""
    try:
        run_guarded(lambda: app(standalone_mode=True))
    except KeyboardInterrupt:
        print("factcap: interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    except BrokenPipeError:
        raise SystemExit(EXIT_BAD_INPUT) from None
