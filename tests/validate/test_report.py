"""The report: what it holds, in every format, and that it never depends on anything outside."""

from __future__ import annotations

import html
import html.parser
import json
import pickle
import re
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import numpy as np
import pytest
from scipy import special

from replica.errors import InvalidInput
from tests.validate.small_report import small_report
from validate.plotting import SERIES, new_figure, to_svg
from validate.report.catalogue import PARTS, Context, part, prepared
from validate.report.mathml import to_mathml
from validate.report.model import Report
from validate.report.presets import EXAMPLE, NAMES, preset_named
from validate.report.progress import Stopwatch, progress_bar
from validate.report.render import MARKS, render
from validate.report.words import settings_of
from validate.store import canonical
from validate.sweep.pool import Status


@pytest.fixture(scope="module")
def report() -> Report:
    return small_report()


@pytest.fixture(scope="module")
def page(report: Report) -> str:
    return render(report, "html")


class Tags(html.parser.HTMLParser):
    """Collects ids, references and the balance of non-void tags."""

    VOID = frozenset(["meta", "link", "br", "img", "input", "hr", "path", "use", "rect", "mspace"])

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.references: list[str] = []
        self.stack: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id" and value:
                self.ids.append(value)
            if name in ("href", "xlink:href", "src") and value:
                self.references.append(value)
        if tag not in self.VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.stack.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.stack.pop() == tag


def test_page_is_self_contained_and_well_formed(page: str) -> None:
    tags = Tags()
    tags.feed(page)
    assert tags.stack == []
    assert "script" not in tags.tags
    assert len(tags.ids) == len(set(tags.ids)), "ids collide between figures"
    for reference in tags.references:
        assert reference == "data:," or reference.startswith("#"), reference
        if reference.startswith("#"):
            assert reference[1:] in tags.ids, f"{reference} leads nowhere"
    for target in re.findall(r"url\(([^)]*)\)", page):
        assert target.startswith("data:font/woff;base64,") or target[1:] in tags.ids
    assert "@import" not in page
    style = page[page.index("<style>") : page.index("</style>")]
    assert "http" not in style


def test_every_claim_has_its_row_its_numbers_and_its_verdict(report: Report, page: str) -> None:
    for check in report.checks:
        assert check.verdict in MARKS
        assert f'id="check-{check.name}"' in page
        assert check.source
        assert check.sample_size
        if check.p_value is not None:
            assert check.alternative
            assert check.power is not None
    names = [check.name for check in report.checks]
    for required in ("success_gaussian", "success_decoupled", "equivalence"):
        assert any(name.startswith(required) for name in names), required
    assert {"statistical_dimension", "active_competitors", "embeddings"} <= set(names)


def test_derivation_is_typeset_in_full(report: Report, page: str) -> None:
    derivation = next(s.derivation for s in report.sections if s.derivation)
    assert len(derivation.steps) >= 10
    assert page.count('<math xmlns="http://www.w3.org/1998/Math/MathML"') == len(derivation.steps)
    shown = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    visible = re.sub(r"<[^>]*>", "", shown)
    assert "\\" not in visible, "LaTeX shows through"


def test_threshold_table_holds_certified_digits(report: Report) -> None:
    """delta(9) by a route of its own: k v_k summed in float64, both integrals by the trapezoidal
    rule, which converges geometrically for such entire integrands."""
    rows = {
        row[0]: row
        for section in report.sections
        if section.identifier == "thresholds"
        for row in section.tables[0].rows
    }
    x = np.arange(-36.0, 36.0, 0.05)

    def gaussian_mean(values: np.ndarray) -> float:
        return float((values * np.exp(-x * x / 2)).sum().real * 0.05 / np.sqrt(2 * np.pi))

    M, delta = 9, 0.0
    for k in range(1, M + 1):
        y = x / np.sqrt(k + 1)
        A = gaussian_mean(((1 + special.erf(1j * y / np.sqrt(2))) / 2) ** k)
        B = gaussian_mean(special.ndtr(y) ** (M - k))
        delta += k * special.comb(M, k) * A * B
    assert float(rows["10"][1]) == pytest.approx(delta, rel=1e-9)
    assert float(rows["10"][2]) == pytest.approx(np.log(10) / delta, rel=1e-9)


def test_json_is_complete_and_finite(report: Report) -> None:
    data = json.loads(render(report, "json"))
    assert [c["name"] for c in data["checks"]] == [c.name for c in report.checks]
    for check in data["checks"]:
        assert {row["source"] for row in check["table"]} <= {"theory", "simulation"}
    assert data["settings"]["seed"] == 0
    assert "torch" in data["versions"]
    assert data["seconds"]["total"] > 0


def test_markdown_tables_are_rectangular(report: Report) -> None:
    text = render(report, "markdown")
    assert text.count("$$") == 2 * sum(
        len(s.derivation.steps) for s in report.sections if s.derivation
    )
    width = None
    for line in text.splitlines():
        if line.startswith("|"):
            cells = len(re.findall(r"(?<!\\)\|", line)) - 1
            assert width in (None, cells), line
            width = cells
        else:
            width = None
    for check in report.checks:
        assert check.claim.replace("|", "\\|") in text


def test_long_tables_are_folded_and_short_ones_are_not(report: Report) -> None:
    table = report.sections[0].tables[0]
    rows = table.rows
    assert '<details class="table">' not in render(report, "html")
    try:
        object.__setattr__(table, "rows", [*rows] * 20)
        page = render(report, "html")
    finally:
        object.__setattr__(table, "rows", rows)
    assert page.count('<details class="table">') == 1
    assert f"({20 * len(rows)} rows)" in page


def test_undecided_instances_are_shown(report: Report, page: str) -> None:
    check = report.checks[0]
    check.undecided += 3
    try:
        assert f"{check.undecided} undecided" in render(report, "html")
    finally:
        check.undecided -= 3


def test_hostile_names_stay_text(report: Report) -> None:
    check = report.checks[-1]
    claim, check.claim = check.claim, "<script>alert(1)</script> & more"
    try:
        page = render(report, "html")
    finally:
        check.claim = claim
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_the_same_seed_gives_the_same_counts_whatever_the_workers() -> None:
    from validate.checks.parallel import Cell, measure_cells

    cells = [Cell("decoupled", 5, 11, 7), Cell("original", 5, 12, 5)]
    one = measure_cells(cells, seed=4, workers=1, batch=3)
    two = measure_cells(cells, seed=4, workers=2, batch=2)
    assert [(p.separable, p.not_separable, p.undecided) for p in one] == [
        (p.separable, p.not_separable, p.undecided) for p in two
    ]
    assert [p.instances for p in one] == [7, 5]


def test_formats_and_presets_are_refused_in_one_sentence(report: Report) -> None:
    with pytest.raises(InvalidInput, match="html, markdown, json"):
        render(report, "pdf")
    with pytest.raises(InvalidInput, match="quick, paper"):
        preset_named("fast")
    with pytest.raises(InvalidInput, match="thresholds"):
        part("nothing")


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("preset", ["quick", pytest.param("paper", marks=pytest.mark.long)])
def test_every_part_keeps_the_contract(name: str, preset: str) -> None:
    """Sizes are frozen and printable; units are small JSON and depend on the seed.

    Equal units are allowed: they run once and answer everywhere.
    """
    module = part(name)
    assert set(module.SIZES) == set(NAMES)
    given = prepared(name, module.SIZES[preset], Context(EXAMPLE))
    assert all(settings_of(given).values())
    with pytest.raises(FrozenInstanceError):
        setattr(given, fields(given)[0].name, None)
    units = module.units(given, 0)
    texts = [canonical(unit.config) for unit in units]
    assert all(unit.work <= 120.0 for unit in units), "a kill would lose too much"
    other = [canonical(unit.config) for unit in module.units(given, 1)]
    assert not set(texts) & set(other) or not texts, "a unit does not depend on the seed"
    assert len(texts) == len(other)


def test_mathml_refuses_what_it_cannot_set_and_sets_names_upright() -> None:
    with pytest.raises(InvalidInput, match="LaTeX command"):
        to_mathml(r"\undefinedthing{x}")
    markup = to_mathml(r"r_{hat} + margin \operatorname{dist}{(x)}")
    assert "hat" not in re.sub(r"<[^>]*>", "", markup)
    assert "margin" in re.sub(r"<[^>]*>", "", markup)


def test_figures_need_words_and_follow_the_theme() -> None:
    figure, axes = new_figure()
    axes.plot([0, 1], [0, 1], color=SERIES[1])
    svg = to_svg(figure, identifier="a", title="T & t", description="D")
    assert "T &amp; t" in svg
    assert "var(--s2)" in svg
    assert not re.search(r"#(0072b2|d55e00|1b1f24)", svg)
    for identifier, title in [("1x", "t"), ("a b", "t"), ("ok", " ")]:
        with pytest.raises(InvalidInput):
            to_svg(figure, identifier=identifier, title=title, description="D")


def test_progress_says_what_is_done_and_how_long_it_takes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    watch = Stopwatch()
    watch.begin("one")
    watch.begin("two")
    assert set(watch.finish()) == {"one", "two", "total"}
    with progress_bar() as reporter:  # no terminal here: lines
        reporter.begin("measuring")
        reporter.show(Status(10, 2, 2, 0, 0.0, 0.0, 30.0))
        reporter.show(Status(10, 2, 6, 4, 8.0, 10.0, 20.0))  # too early for another line
        reporter.show(Status(10, 2, 7, 5, 40.0, 10.0, 20.0))
        reporter.show(Status(10, 2, 10, 8, 41.0, 30.0, 0.0))
    assert capsys.readouterr().err.splitlines() == [
        "measuring",
        "  2 of 10 units, 2 kept from before",
        "  7 of 10 units, 2 kept from before, 0.12 units/s, 1 min 20 s left",
        "  10 of 10 units, 2 kept from before, 0.2 units/s, 0 s left",
    ]


def test_settings_costs_and_times_are_all_shown(report: Report, page: str) -> None:
    text = re.sub(r"<[^>]*>", "", page)
    for section in report.sections:
        for key, value in section.settings.items():
            assert key in text
            assert html.unescape(value) in html.unescape(text)
    assert [cost.section for cost in report.costs] == [s.title for s in report.sections]
    ladder = next(c for c in report.costs if "Gaussian" in c.section)
    assert ladder.units == 18
    assert ladder.unit_seconds > 0


def test_templates_are_found_as_package_data() -> None:
    folder = Path(__file__).parents[2] / "validate" / "report"
    assert (folder / "report.html.j2").is_file()
    assert (folder / "style.css").is_file()


def test_a_section_that_cannot_travel_between_processes_is_built_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its check holds a function with a cache, which no pickle takes."""
    from functools import lru_cache

    from validate.checks.base import Check
    from validate.report import run as module
    from validate.report.model import Section

    @lru_cache(maxsize=1)
    def power(level: float) -> float:
        return 1.0 - level

    check = Check("a", "c", "s", "q", "1", "1", "[1, 1]", "1", [], power_at=power)
    section = Section("a", "A", "I", checks=[check])
    monkeypatch.setattr(module, "build", lambda *job: (section, 0.5))
    assert module._packed(("a", None, 0, []), {}) is None
    check.power_at = lambda level: 1.0 - level
    packed = module._packed(("a", None, 0, []), {})
    assert packed is not None
    copy, seconds = pickle.loads(packed)
    assert copy.checks[0].power_at(0.25) == 0.75
    assert seconds == 0.5
