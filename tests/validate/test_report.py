"""The report: what it holds, in every format, and that it never depends on anything outside."""

from __future__ import annotations

import html
import html.parser
import io
import json
import pickle
import re
from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import special

from replica.errors import InvalidInput
from tests.validate.small_report import small_report
from validate.plotting import SERIES, new_figure, to_svg
from validate.report.catalogue import PARTS, Context, part, prepared
from validate.report.font import font_style, greek, upright
from validate.report.mathml import LINE, to_mathml, width_of
from validate.report.model import Report
from validate.report.presets import EXAMPLE, NAMES, preset_named
from validate.report.progress import Stopwatch, progress_bar
from validate.report.render import MARKS, p_value_text, power_text, render, short_digits
from validate.report.words import deviation, settings_of
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


def test_answer_first_then_the_words_of_the_verdicts_then_claims(page: str) -> None:
    order = ['id="thresholds"', "Agrees: not refuted", '<table class="claims">', 'id="derivation"']
    places = [page.index(mark) for mark in order]
    assert places == sorted(places)


def test_p_values_say_what_they_are(report: Report) -> None:
    check = next(c for c in report.checks if c.p_value is not None)
    kept = check.p_value, check.adjusted_p
    try:
        check.p_value, check.adjusted_p = 0.24, 1.0
        assert p_value_text(check) == "P-value 0.24"
        check.p_value, check.adjusted_p = 0.00025, 0.0073
        page, text = render(report, "html"), render(report, "markdown")
    finally:
        check.p_value, check.adjusted_p = kept
    assert page.count("P-value 2.5 × 10<sup>−4</sup> (adjusted 0.0073)") == 2  # row and details
    assert "P-value 2.5e-04 (adjusted 0.0073)" in text
    assert not re.search(r"\bp = 0\.|after Holm", page)


def test_rows_say_what_would_be_noticed_and_how_surely(report: Report, page: str) -> None:
    rows = re.findall(r'<td class="claim">.*?</tr>', page, re.DOTALL)
    assert len(rows) == len(report.checks)
    for check, row in zip(report.checks, rows, strict=True):
        assert ("Would notice" in row) == (check.power is not None)
        if check.power is not None:
            assert f"power {power_text(check.power)}" in row
    dimension = next(i for i, c in enumerate(report.checks) if c.name == "statistical_dimension")
    check = report.checks[dimension]
    value = 100 * (float(check.measured) / float(check.predicted) - 1)
    shown = re.search(r'data-label="Off by">([−+][0-9.]+)\u202f%', rows[dimension])
    assert shown is not None
    assert float(shown[1].replace("−", "-")) == pytest.approx(value, abs=0.06)


def test_deviations_are_ratios_of_single_numbers() -> None:
    assert deviation("2", "2.1", "[2.0, 2.2]") == "+5.0 % (0.0 to +10.0)"
    assert deviation("-2", "-2.1", "[−2.2, −2.0]") == "+5.0 % (0.0 to +10.0)"
    assert deviation("0.5836 (2α = 1.151)", "0.542", "[0.4439, 0.6402]") == "−7 % (−24 to +10)"
    for predicted, measured, interval in [
        ("0", "1", "[0, 2]"),
        ("0", "+1.1 %", "[−0.7, +2.8] %"),
        ("0.847; 0.220", "0.850; 0.222", "[0.8, 0.9]; [0.2, 0.3]"),
        ("22", "15", "exact"),
        ("22", "15", ""),
    ]:
        assert deviation(predicted, measured, interval) == ""


def test_only_refuted_checks_are_unfolded(report: Report) -> None:
    check = report.checks[0]
    assert '<details class="check" open>' not in render(report, "html")
    verdict, check.verdict = check.verdict, "disagrees"
    try:
        page = render(report, "html")
    finally:
        check.verdict = verdict
    assert page.count('<details class="check" open>') == 1
    assert page.index('<details class="check" open>') < page.index(f'id="check-{check.name}"')


def test_details_are_no_program_dump(report: Report) -> None:
    check = report.checks[0]
    settings, interval = check.settings, check.interval
    check.settings = {"a_b": {"c": 0.00096069228, "d": [-3.3911697, float("nan")]}, "e": "/tmp/x/y"}
    check.interval = ""
    try:
        page = render(report, "html")
    finally:
        check.settings, check.interval = settings, interval
    assert "<dt>a b</dt><dd>c: 0.0009607; d: −3.391, none</dd>" in page
    assert "<dt>e</dt><dd>y</dd>" in page
    assert "interval ." not in page
    assert "/tmp/" not in page
    assert "/tmp/" not in render(report, "markdown")


def test_steps_fold_but_for_the_key_ones(report: Report, page: str) -> None:
    section = next(s for s in report.sections if s.derivation)
    assert section.derivation
    titles = [step.title for step in section.derivation]
    key = section.key_steps
    assert set(key) <= set(titles)
    assert page.count('<details class="step">') == sum(title not in key for title in titles) > 20
    section.key_steps = ()
    try:
        whole = render(report, "html")
    finally:
        section.key_steps = key
    assert '<details class="step">' not in whole
    assert whole.count("<math ") == page.count("<math ")


def test_narrow_screens_get_fewer_digits_and_all_of_them_folded(report: Report, page: str) -> None:
    table = next(s for s in report.sections if s.identifier == "thresholds").tables[0]
    cell = next(c for c in table.rows[0] if len(c) > 9)
    short = short_digits(cell)
    assert re.sub(r'<span class="dots">.*', "", short).replace("</span>", "").replace(
        '<span class="more">', ""
    ) == str(cell)
    assert '<details class="narrow"><summary>By number of facts: all digits' in page
    assert f"<td>{cell}</td>" in page
    assert str(short_digits("1.72")) == "1.72"
    assert str(short_digits("0.002255389446")).startswith("0.002255<")


def test_the_font_of_formulas_is_small_free_and_complete(report: Report, page: str) -> None:
    from fontTools.ttLib import TTFont

    assert len(font_style()) < 150_000
    font, letters = TTFont(io.BytesIO(upright())), TTFont(io.BytesIO(greek()))
    assert upright() == upright(), "the same report must give the same bytes"
    for each in (font, letters):
        names = " ".join(str(record) for record in each["name"].names)
        assert "Permission is hereby granted" in names, "the licence goes with the font"
        family = each["name"].getDebugName(1)
        assert family == "Factcap Math", "a modified font must not keep the protected names"
    variants = font["MATH"].table.MathVariants
    place = variants.VertGlyphCoverage.glyphs.index(font.getBestCmap()[ord("(")])
    grown = variants.VertGlyphConstruction[place].MathGlyphVariantRecord
    heights = [font["glyf"][r.VariantGlyph].yMax - font["glyf"][r.VariantGlyph].yMin for r in grown]
    assert heights == sorted(set(heights))
    for record, height in zip(grown, heights, strict=True):
        assert record.AdvanceMeasurement == pytest.approx(height, abs=3)
    drawn = set("".join(re.findall(r"<m[ino][^>]*>([^<]*)</m[ino]>", html.unescape(page))))
    assert {c for c in drawn if ord(c) not in font.getBestCmap()} == set()
    assert {0x1D6FC, 0x1D6FE, 0x1D714} <= set(letters.getBestCmap())


def test_wide_formulas_are_broken_before_signs_and_lose_nothing(report: Report) -> None:
    derivation = next(s.derivation for s in report.sections if s.derivation)
    broken = 0
    for step in derivation:
        whole = ElementTree.fromstring(to_mathml(step.latex, display=False))
        lines = ElementTree.fromstring(to_mathml(step.latex))
        assert "".join(lines.itertext()) == "".join(whole.itertext())
        rows = [row for row in lines.iter() if row.tag.endswith("mtr")]
        broken += len(rows) > 1
        for row in rows[1:]:
            assert "".join(row.itertext())[0] in "+−="
        assert width_of(lines) <= max(width_of(whole), LINE)
    assert broken >= 2


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
    assert "<mi>margin</mi>" in markup
    assert "<mi>dist</mi>" in markup
    assert '<mo form="prefix">−</mo>' in to_mathml(r"\left(- x\right)")
    assert "<mo>−</mo>" in to_mathml(r"\left(y - x\right)")


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
