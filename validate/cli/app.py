"""Assembles the command from the modules of `validate.cli`; imports no heavy library itself."""

from __future__ import annotations

import importlib
import sys

import typer

from validate.cli.common import EXIT_BAD_INPUT, fail, run_guarded

# One module a command; each has `register(app)` and imports its libraries inside the command.
COMMANDS: tuple[str, ...] = (
    "threshold",
    "success",
    "table",
    "derive",
    "trained",
    "fit",
    "simulate",
    "critical",
    "report",
    "sweep",
)

EXIT_INTERRUPTED = 130

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


# Typer re-exports one of the command-line errors only; the common base is its parent.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]


def main() -> None:
    """Entry point: bad input gives one sentence and exit code 2, Ctrl-C exit code 130."""
    try:
        run_guarded(_run)
    except (KeyboardInterrupt, typer.Abort):
        print("factcap: interrupted", file=sys.stderr)
        raise SystemExit(EXIT_INTERRUPTED) from None
    except BrokenPipeError:
        raise SystemExit(EXIT_BAD_INPUT) from None


def _run() -> None:
    try:
        code = app(standalone_mode=False)
    except _UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()  # type: ignore[attr-defined]
            raise SystemExit(EXIT_BAD_INPUT) from None
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "factcap"
        message = error.format_message().rstrip(".")  # type: ignore[attr-defined]
        fail(f"{message}; see {command} --help")
    if code == EXIT_INTERRUPTED:  # Typer turns Ctrl-C into this return value, without a word
        raise KeyboardInterrupt
    raise SystemExit(code if isinstance(code, int) else 0)
