"""The report in a real browser: headless Chromium, driven over its debugging protocol.

Where no Chromium is installed the tests skip and say so; in CI (CI=true) they fail instead.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.validate.devtools import Browser
from tests.validate.small_report import small_report
from validate.report.render import render

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_browser() -> str:
    """Path of a Chromium; without one the test is skipped, or fails when CI=true."""
    program = next((path for name in PROGRAMS if (path := shutil.which(name))), None)
    if program is None:
        message = "no Chromium found; install the Debian package chromium to test the report"
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(message)
        pytest.skip(message)
    return program


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = find_browser()
    page = tmp_path_factory.mktemp("page") / "report.html"
    page.write_text(render(small_report(), "html"), "utf-8")
    with Browser(program, tmp_path_factory.mktemp("profile")) as running:
        running.page = page
        yield running


WIDTHS = [(1280, False), (768, False), (390, True)]


@pytest.mark.parametrize(("width", "mobile"), WIDTHS)
def test_no_errors_no_requests_no_sideways_scroll(
    browser: Browser, width: int, mobile: bool
) -> None:
    browser.open(width=width, mobile=mobile)
    assert browser.errors == []
    assert [url for url in browser.requests if not url.startswith(("file:", "data:"))] == []
    size = browser.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert size[0] <= size[1] == width


@pytest.mark.parametrize(("width", "mobile"), WIDTHS)
def test_what_is_wide_scrolls_in_its_own_box(browser: Browser, width: int, mobile: bool) -> None:
    browser.open(width=width, mobile=mobile)
    outside = browser.evaluate(
        """[...document.querySelectorAll('body *')].filter(e => {
             const r = e.getBoundingClientRect();
             return r.width > 0 && r.right > innerWidth + 1 && !e.closest('.scroll, .claims thead');
           }).map(e => e.tagName + '.' + e.className).slice(0, 5)"""
    )
    assert outside == []


@pytest.mark.parametrize(("width", "mobile"), WIDTHS)
def test_boxes_scroll_sideways_only(browser: Browser, width: int, mobile: bool) -> None:
    """Nothing is cut off at the lower edge of a box, and no box has a vertical scrollbar."""
    browser.open(width=width, mobile=mobile)
    cut = browser.evaluate(
        """[...document.querySelectorAll('.scroll')].filter(e => e.scrollHeight > e.clientHeight)
             .map(e => e.getAttribute('aria-label'))"""
    )
    assert cut == []


@pytest.mark.parametrize(("width", "mobile"), WIDTHS)
def test_formulas_have_a_size_and_figures_are_drawn(
    browser: Browser, width: int, mobile: bool
) -> None:
    browser.open(width=width, mobile=mobile)
    report = small_report()
    formulas = browser.evaluate(
        """[...document.querySelectorAll('math')].map(m => {
             const r = m.getBoundingClientRect(); return [r.width, r.height]; })"""
    )
    steps = sum(len(s.derivation.steps) for s in report.sections if s.derivation)
    assert len(formulas) == steps
    assert all(w > 5 and h > 8 for w, h in formulas)
    fractions = browser.evaluate(
        """[...document.querySelectorAll('mfrac')].map(f =>
             f.children[0].getBoundingClientRect().bottom
               <= f.children[1].getBoundingClientRect().top + 1)"""
    )
    assert fractions, "no fraction was typeset"
    assert all(fractions), "numerators must stand above denominators"
    figures = browser.evaluate(
        """[...document.querySelectorAll('figure svg')].map(s => {
             const r = s.getBoundingClientRect();
             const curves = [...s.querySelectorAll('path')].filter(p => p.getTotalLength() > 20);
             return [r.width, r.height, curves.length, s.getAttribute('role')]; })"""
    )
    assert len(figures) == sum(len(s.figures) for s in report.sections)
    for figure_width, height, curves, role in figures:
        assert figure_width > 250
        assert height > 60
        assert curves >= 3
        assert role == "img"


def test_every_figure_is_named_for_a_screen_reader(browser: Browser) -> None:
    browser.open(width=1280, mobile=False)
    names = browser.accessible_names("image")
    assert len(names) >= sum(len(s.figures) for s in small_report().sections)
    assert all(len(name) > 10 for name in names)


def contrast(browser: Browser, selector: str) -> float:
    """WCAG contrast of the selector's text colour against the page."""
    script = f"""(() => {{
      const parse = c => c.match(/[0-9.]+/g).slice(0, 3).map(Number);
      const lum = c => {{ const [r, g, b] = parse(c).map(v => v / 255).map(
        v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b; }};
      const a = lum(getComputedStyle(document.querySelector('{selector}')).color);
      const b = lum(getComputedStyle(document.body).backgroundColor);
      return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); }})()"""
    return float(browser.evaluate(script))


@pytest.mark.parametrize("dark", [False, True])
def test_light_and_dark_are_readable_and_figures_follow(browser: Browser, dark: bool) -> None:
    browser.open(width=1280, mobile=False, dark=dark)
    background = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(float(v) for v in background.strip("rgb()").split(","))
    assert (brightness < 150) if dark else (brightness > 700)
    for selector in ("body", ".note", ".agrees, .measured", "nav a", "th"):
        assert contrast(browser, selector) >= 4.5, selector
    strokes = browser.evaluate(
        """[...document.querySelectorAll('figure svg path')].map(p =>
             getComputedStyle(p).stroke + getComputedStyle(p).fill).join(' ')"""
    )
    assert ("rgb(86, 168, 224)" in strokes) == dark
    letters = set(
        browser.evaluate(
            "[...document.querySelectorAll('figure svg use')].map(u => getComputedStyle(u).fill)"
        )
    )
    assert letters
    assert "rgb(0, 0, 0)" not in letters, "a label keeps its black when the page turns dark"


def test_works_without_javascript(browser: Browser) -> None:
    browser.open(width=390, mobile=True, scripts=False)
    text = browser.document_text()
    assert "Claims and verdicts" in text
    assert "How this was made" in text


def test_prints_to_a_few_pages(browser: Browser, tmp_path: Path) -> None:
    browser.open(width=1280, mobile=False)
    pdf = tmp_path / "report.pdf"
    pdf.write_bytes(browser.print_pdf())
    assert pdf.read_bytes().startswith(b"%PDF")
    assert pdf.stat().st_size > 20_000
    if shutil.which("pdftotext"):
        text = subprocess.run(
            ["pdftotext", str(pdf), "-"], capture_output=True, text=True, check=True
        ).stdout
        assert "Claims and verdicts" in text
        pages = text.count("\f")
        assert 3 <= pages <= 20
        assert "95 % interval" in text
        assert "Frobenius" in text  # a reason of the derivation
        assert "can ask for" not in text  # what is folded stays folded
        assert "\\" not in text, "LaTeX shows through"


def test_printed_formulas_fit_the_page(browser: Browser) -> None:
    """182 mm of a printed line are 688 px; nothing scrolls on paper."""
    browser.open(width=688, mobile=False)
    browser.emulate_print()
    wide = browser.evaluate(
        """[...document.querySelectorAll('math')].map(m => {
             const r = m.getBoundingClientRect(); return [r.right, r.height]; })
             .filter(([right, height]) => right > 688 || height === 0)"""
    )
    assert wide == []
    sizes = browser.evaluate(
        "[...document.querySelectorAll('math')].map(m => parseFloat(getComputedStyle(m).fontSize))"
    )
    assert min(sizes) > 5.5 / 0.75, "a formula is too small to read"


def test_brackets_grow_with_what_they_hold(browser: Browser) -> None:
    """Without the embedded font's MATH table they keep one height, on this machine or another."""
    browser.open(width=1280, mobile=False)
    assert browser.evaluate("document.fonts.check('16px \"Factcap Math\"', 'x')")
    loaded = browser.evaluate(
        "[...document.fonts].map(f => f.family.replaceAll('\"', '') + ' ' + f.status)"
    )
    assert loaded == ["Factcap Math loaded"] * 2
    ratios = browser.evaluate(
        """[...document.querySelectorAll('mrow')].filter(r => r.children.length === 3
             && r.children[0].textContent === '(' && r.children[1].tagName === 'mfrac'
             && r.children[0].getAttribute('stretchy') === 'true').map(r =>
             r.children[0].getBoundingClientRect().height
               / r.children[1].getBoundingClientRect().height)"""
    )
    assert ratios, "no fraction in brackets"
    assert all(0.85 < ratio < 1.7 for ratio in ratios), ratios


def test_a_claim_leads_to_its_check_and_opens_it(browser: Browser) -> None:
    browser.open(width=390, mobile=True)
    opened = browser.evaluate(
        """(async () => { const link = document.querySelector('.claims td.claim a');
             const check = document.querySelector(link.getAttribute('href'));
             const folded = check.closest('details');
             const before = folded.open;
             link.click();
             await new Promise(done => setTimeout(done, 200));
             return JSON.stringify([before, folded.open]); })()""",
        wait=True,
    )
    assert opened == "[false,true]"


def test_settings_open_and_close(browser: Browser) -> None:
    browser.open(width=390, mobile=True)
    states: Any = browser.evaluate(
        """(() => { const d = document.querySelector('#made details:not([open])');
             const height = () => d.getBoundingClientRect().height;
             const closed = height();
             d.querySelector('summary').click();
             const opened = height();
             d.querySelector('summary').click();
             return [closed, opened, height()]; })()"""
    )
    assert states[1] > states[0] + 50
    assert states[2] == states[0]


@pytest.mark.parametrize(
    ("setting", "outcome"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)]
)
def test_a_missing_browser_is_never_silent(
    monkeypatch: pytest.MonkeyPatch, setting: str, outcome: type[BaseException]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setenv("CI", setting)
    with pytest.raises(outcome, match="Chromium"):
        find_browser()
