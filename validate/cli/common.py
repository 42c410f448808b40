"""What the commands share: the error boundary, atomic writing, the missing-extra sentence."""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from replica.errors import InvalidInput

EXIT_BAD_INPUT = 2


def run_guarded(command: Callable[[], None]) -> None:
    """Run a command; a user's mistake becomes one sentence on standard error and exit code 2."""
    try:
        command()
    except InvalidInput as error:
        fail(str(error))
    except BrokenPipeError:
        raise
    except OSError as error:
        # A full disk, a name too long, a folder without permission: not a defect of the program.
        about = f" ({error.filename!r})" if error.filename is not None else ""
        fail(f"the system refused: {error.strerror or error}{about}; give another path")


def fail(sentence: str) -> None:
    """Print the sentence on standard error and exit with code 2."""
    print(f"factcap: {' '.join(sentence.split())}", file=sys.stderr)
    raise SystemExit(EXIT_BAD_INPUT)


def require_extra(*modules: str) -> None:
    """Check that the modules of the `validate` extra import; else say how to install it."""
    for name in modules:
        try:
            importlib.import_module(name)
        except ImportError:
            raise InvalidInput(
                f"this command needs the Python package {name!r}, which is not installed; "
                "install the extra with: pip install 'factcap[validate]'"
            ) from None


def write_text_atomically(path: Path, text: str) -> None:
    """Write by temporary file and rename: `path` holds the old content or the whole new one."""
    write_bytes_atomically(path, text.encode("utf-8"))


def check_writable(path: Path) -> None:
    """Refuse early, before long work, a path that cannot be written."""
    if path.is_dir():
        raise InvalidInput(f"the output {str(path)!r} is a folder; give the name of a file")
    if path.exists() and not path.is_file():
        # The rename of an atomic write would put a plain file in place of a device or a pipe.
        raise InvalidInput(
            f"the output {str(path)!r} is a device, pipe or socket; give the name of a plain file"
        )
    folder = path.parent
    if not folder.is_dir():
        raise InvalidInput(
            f"the output {str(path)!r} lies in a folder that does not exist; "
            f"create {str(folder)!r} or give another path"
        )
    try:
        # Permission bits say nothing to the administrator, nor on special file systems: try it.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InvalidInput(
            f"the output {str(path)!r} cannot be written: the folder {str(folder)!r} takes no new "
            f"file ({error.strerror}); give another path"
        ) from None


def check_distinct(output: Path, source: Path, what: str) -> None:
    """Refuse an output that is the very file `source`, which writing would destroy."""
    same = output.resolve() == source.resolve()
    if same or (output.exists() and source.exists() and output.samefile(source)):
        raise InvalidInput(
            f"the output {str(output)!r} is also {what} and would overwrite it; give another path"
        )


def write_bytes_atomically(path: Path, content: bytes) -> None:
    """As `write_text_atomically`, for bytes."""
    check_writable(path)
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise InvalidInput(
            f"the output {str(path)!r} cannot be written ({error.strerror}); give another path"
        ) from None
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise InvalidInput(
            f"the output {str(path)!r} cannot be written ({error.strerror}); give another path"
        ) from None
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def print_json(data: Any) -> None:
    """Print one JSON object on standard output; NaN and infinity are refused."""
    print(json.dumps(data, indent=2, allow_nan=False))
