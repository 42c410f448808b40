"""The whole quick report, as a user makes it: every part, every verdict, resumed, in a browser."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.validate.devtools import Browser
from tests.validate.test_browser import find_browser
from tests.validate.test_report import Tags
from validate.report.catalogue import PARTS
from validate.store import Store

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.long


def make_report(folder: Path, out: str) -> str:
    """Run the command in a process of its own; what it says at the end."""
    command = "import sys; sys.argv[0] = 'factcap'; from validate.cli import main; main()"
    arguments = ["report", "--out", out, "--store", "kept.sqlite", "--workers", "2"]
    done = subprocess.run(
        [sys.executable, "-c", command, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("quick")
    make_report(path, "first.html")
    return path


@pytest.fixture(scope="module")
def data(folder: Path) -> dict[str, Any]:
    """The same report again from the store, as JSON."""
    with Store.open(folder / "kept.sqlite") as store:
        before = store.run_counts()
    make_report(folder, "again.json")
    with Store.open(folder / "kept.sqlite") as store:
        assert store.run_counts() == before, "something was computed twice"
    loaded: dict[str, Any] = json.loads((folder / "again.json").read_text("utf-8"))
    return loaded


def test_every_part_is_there_and_no_claim_is_contradicted(data: dict[str, Any]) -> None:
    assert len(data["sections"]) == len(PARTS)
    verdicts = {check["name"]: check["verdict"] for check in data["checks"]}
    assert len(verdicts) == len(data["checks"]), "names of checks collide"
    assert [name for name, verdict in verdicts.items() if verdict == "disagrees"] == []
    tested = [check for check in data["checks"] if check["p_value"] is not None]
    assert len(tested) >= 15
    for check in tested:
        assert check["alternative"]
        assert check["power"] is not None
        assert check["hypothesis"]
        assert check["adjusted_p"] >= check["p_value"]


def test_the_quick_report_is_quick(data: dict[str, Any]) -> None:
    """Processor seconds, which a busy machine stretches less than the clock: two cores, 3 min."""
    spent = sum(cost["unit_seconds"] + cost["build_seconds"] for cost in data["costs"])
    assert spent < 2 * 180


def test_again_from_the_store_it_says_the_same(folder: Path, data: dict[str, Any]) -> None:
    page = (folder / "first.html").read_text("utf-8")
    shown = re.findall(r'id="check-([^"]+)">\s*<p><span class="verdict (\w+)"', page)
    assert dict(shown) == {check["name"]: check["verdict"] for check in data["checks"]}
    assert all(cost["kept"] == cost["units"] for cost in data["costs"])


def test_the_page_is_well_formed_and_self_contained(folder: Path) -> None:
    tags = Tags()
    tags.feed((folder / "first.html").read_text("utf-8"))
    assert tags.stack == []
    assert "script" not in tags.tags
    doubled = {name for name in tags.ids if tags.ids.count(name) > 1}
    assert doubled == set()
    for reference in tags.references:
        assert reference == "data:," or reference[1:] in tags.ids, reference


@pytest.mark.parametrize(("width", "mobile"), [(1280, False), (390, True)])
def test_it_stands_in_a_browser(folder: Path, tmp_path: Path, width: int, mobile: bool) -> None:
    with Browser(find_browser(), tmp_path) as browser:
        browser.page = folder / "first.html"
        browser.open(width=width, mobile=mobile)
        assert browser.errors == []
        sizes = browser.evaluate(
            "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )
        assert sizes[0] <= sizes[1] == width
        empty = browser.evaluate(
            """[...document.querySelectorAll('figure')].filter(f => {
                 const curves = [...f.querySelectorAll('svg path')];
                 return f.querySelector('svg').getBoundingClientRect().height < 60
                   || curves.filter(p => p.getTotalLength() > 20).length < 3; }).map(f => f.id)"""
        )
        assert empty == []
        cut = browser.evaluate(
            """[...document.querySelectorAll('.scroll')].filter(e =>
                 e.scrollHeight > e.clientHeight).map(e => e.getAttribute('aria-label'))"""
        )
        assert cut == []
