"""What the README tells a reader to type exists: commands, options, files, sections."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from validate.cli.app import app
from validate.report.catalogue import PARTS, part

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text("utf-8")


def commands() -> list[str]:
    """Every `factcap ...` in a code block or between backticks, without comments."""
    blocks = re.sub(r"\\\n\s*", "", TEXT)
    lines = re.findall(r"^ {4}(factcap [^#\n]*)", blocks, re.MULTILINE)
    return [line.strip() for line in lines + re.findall(r"`(factcap [^`\n]*)`", TEXT)]


@pytest.mark.parametrize("command", sorted(set(commands())))
def test_every_command_is_understood(command: str) -> None:
    words = shlex.split(command)[1:]
    known: dict[str, Any] = getattr(typer.main.get_command(app), "commands")  # noqa: B009
    assert words[0] in known, f"there is no command {words[0]}"
    sub = known[words[0]]
    options = {name for parameter in sub.params for name in parameter.opts}
    for word in words[1:]:
        if word.startswith("--"):
            assert word in options, f"{words[0]} has no option {word}"
    if len(words) > 1:  # not a mere mention of the command: it can be typed as it stands
        for parameter in sub.params:
            if parameter.required and parameter.param_type_name == "option":
                assert set(parameter.opts) & set(words), f"{command} lacks {parameter.opts}"
        if words[0] == "threshold":
            assert {"--dim", "--facts"} & set(words), f"{command} lacks --dim or --facts"


def test_commands_are_found_at_all() -> None:
    assert len(commands()) > 15
    assert {shlex.split(c)[1] for c in commands()} >= {"derive", "threshold", "report", "trained"}


def test_expansions_and_criteria_exist() -> None:
    from replica.catalogue import CRITERIA
    from replica.expansion.catalogue import expansion_names

    assert set(re.findall(r"--expansion (\w+)", TEXT)) <= set(expansion_names())
    assert set(re.findall(r"--criterion (\w+)", TEXT)) - {"either_sign"} <= set(CRITERIA)


def test_files_and_links_exist() -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", TEXT):
        assert (ROOT / target).is_file(), target
    for script in re.findall(r"python (examples/\w+\.py)", TEXT):
        assert (ROOT / script).is_file(), script
    for name in re.findall(r"`(\w+\.py)` \(", TEXT):
        assert (ROOT / "examples" / name).is_file(), name


def test_sections_named_in_the_table_are_parts_of_the_report() -> None:
    """The last column of the table for those who know the papers."""
    rows = re.findall(r"^\| (?:A|B|new) \|.*\| ([^|]+) \|$", TEXT, re.MULTILINE)
    assert len(rows) >= 12
    for cell in rows:
        for name in [] if cell == "—" else cell.split(", "):
            word = name.replace(" ", "_")
            assert any(known.endswith(word) for known in PARTS), f"{name!r} is not in {PARTS}"
    for name in PARTS:
        assert part(name).SIZES
