"""LaTeX of SymPy to MathML that every browser draws without scripts or fonts from outside."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from latex2mathml.converter import convert

from replica.errors import InvalidInput

# Commands that the converter would print as text, written with ones that it knows; hats; and
# names of several letters, which would else be set as products of italic letters.
_REWRITES = (
    (re.compile(r"\\limits(?![a-zA-Z])"), ""),
    (re.compile(r"\\middle(?![a-zA-Z])"), ""),
    (re.compile(r"\b([a-zA-Z])_\{hat\}"), r"\\hat{\1}"),
)
_WORD = re.compile(
    r"\\(?:operatorname|mathrm|text|mathbb|begin|end)\*?\{[^{}]*\}|\\[a-zA-Z]+|[a-zA-Z]{2,}"
)


# The d of a differential stays a letter like any other.
_DIFFERENTIAL = re.compile(r"d[a-z]")


def upright(latex: str) -> str:
    r"""Hats for r_{hat}, and names of several letters upright and set off, as LaTeX.

    >>> print(upright(r"q_{hat} + margin^{2} \operatorname{dist}{(x)} dy"))
    \hat{q} + \mathrm{margin}^{2} \, \mathrm{dist}{(x)} dy
    >>> print(upright(r"2 block q_{0}"))
    2 \, \mathrm{block} \, q_{0}
    """
    for pattern, replacement in _REWRITES:
        latex = pattern.sub(replacement, latex)
    latex = _WORD.sub(_name, latex)
    latex = re.sub(r"(?<=[0-9A-Za-z}]) (?=\\mathrm\{)", r" \\, ", latex)
    return re.sub(r"(\\mathrm\{[a-zA-Z]+\}) (?=[A-Za-z]|\\(?!right|\\|,))", r"\1 \\, ", latex)


def _name(match: re.Match[str]) -> str:
    word = match.group()
    if word.startswith("\\operatorname"):
        return r"\mathrm{" + word[word.index("{") + 1 :]
    if word.startswith("\\") or _DIFFERENTIAL.fullmatch(word):
        return word
    return rf"\mathrm{{{word}}}"


# Widths in units of the font size, on the generous side: Chromium draws a little narrower.
LINE = 50.0
"""Width above which a formula is broken into lines, in units of its font size."""
_SCRIPT = 0.72
_M = "{http://www.w3.org/1998/Math/MathML}"
_WIDE = frozenset("=+\u2212<>\u2264\u2265\u2192\u223c")
_BREAKS = frozenset("=+\u2212")
_OPENING = frozenset("([{,=<>\u2264\u2265\u2192")


def print_size(markup: str, *, normal: float = 9.5, width: float = 510.0) -> float:
    """Font size in points at which the formula fits a printed line of `width` points.

    Paper cannot scroll.

    >>> print_size(to_mathml("x"))
    9.5
    """
    return round(min(normal, width / width_of(ElementTree.fromstring(markup))), 1)


def width_of(element: Element) -> float:
    """Estimated width in units of the font size: fractions as wide as their wider half."""
    tag, inside = element.tag.removeprefix(_M), [width_of(child) for child in element]
    text = element.text or ""
    if tag in ("mi", "mtext", "mn"):
        return 0.66 * len(text)
    if tag == "mo":
        return 1.5 if text in _WIDE else 0.55 if text == "," else 0.45 * max(1, len(text))
    if tag == "mspace":
        return float(element.get("width", "0em").removesuffix("em"))
    if tag == "mfrac":
        return max(inside) + 0.3
    if tag in ("msub", "msup"):
        return inside[0] + _SCRIPT * inside[1]
    if tag == "msubsup":
        return inside[0] + _SCRIPT * max(inside[1:])
    if tag in ("mover", "munder", "munderover"):
        return max(inside[0], *(_SCRIPT * part for part in inside[1:]))
    if tag == "mtable":
        return max(inside)
    return sum(inside) + (0.8 if tag == "msqrt" else 0.0)


def to_mathml(latex: str, *, display: bool = True) -> str:
    r"""One `<math>` element for a LaTeX formula without delimiters.

    A displayed formula that is wider than a line is broken before relations, plus and minus signs.
    Raises `InvalidInput` when a command survives as visible text (a backslash in the output), so
    that a formula is never shown garbled.

    >>> "<mfrac>" in to_mathml(r"\frac{1}{2}")
    True
    >>> "<mi>margin</mi>" in to_mathml("margin + 1")
    True
    """
    latex = upright(latex)
    try:
        markup = convert(latex, display="block" if display else "inline")
    except Exception as error:
        raise InvalidInput(
            f"the formula {latex[:80]!r} cannot be typeset ({type(error).__name__}); write it with "
            "plain LaTeX commands"
        ) from error
    visible = re.sub(r"<[^>]*>", "", markup)
    if "\\" in visible:
        raise InvalidInput(
            f"the formula {latex[:80]!r} uses a LaTeX command that MathML conversion does not "
            f"know (near {visible[visible.index(chr(92)) : visible.index(chr(92)) + 20]!r}); "
            "write it otherwise"
        )
    root = ElementTree.fromstring(markup)
    _tidy(root)
    if display and width_of(root) > LINE:
        _break(root)
    ElementTree.register_namespace("", _M.strip("{}"))
    return ElementTree.tostring(root, encoding="unicode")


def _tidy(element: Element) -> None:
    """Names of several letters as one identifier; ~ a relation; signs and names spaced."""
    for child in list(element):
        _tidy(child)
    letters = [child for child in element if child.get("mathvariant") == "normal"]
    if len(letters) > 1 and len(letters) == len(element):
        name = "".join(child.text or "" for child in letters)
        attributes = dict(element.attrib)
        tail = element.tail
        tag = f"{_M}mi"
        if element.tag == f"{_M}mrow":
            element.clear()
            element.tag, element.text, element.tail = tag, name, tail
            element.attrib.update(attributes)
    if element.tag == f"{_M}mi" and element.text == "~":
        element.tag, element.text = f"{_M}mo", "\u223c"
    if element.tag == f"{_M}mo" and element.text == "^":
        element.text = "\u02c6"
    if element.tag in (f"{_M}mrow", f"{_M}math"):
        _space_names(element)
        _sign_numbers(element)


def _space_names(row: Element) -> None:
    """A thin space between a name such as log and a letter, number or bracket group before it."""
    children = list(row)
    for before, child in pairwise(children):
        name = child.tag == f"{_M}mi" and len(child.text or "") > 1
        if name and before.tag not in (f"{_M}mo", f"{_M}mspace"):
            space = Element(f"{_M}mspace", {"width": "0.167em"})
            row.insert(list(row).index(child), space)


def _sign_numbers(row: Element) -> None:
    """A sign after an opening bracket, a comma or a relation belongs to what follows it."""
    before: Element | None = None
    for child in row:
        first = before is None or (before.tag == f"{_M}mo" and before.text in _OPENING)
        if first and child.tag == f"{_M}mo" and child.text in ("+", "\u2212"):
            child.set("form", "prefix")
        if child.tag != f"{_M}mspace":
            before = child


def _break(root: Element) -> None:
    """Lay the formula out in lines, later ones indented."""
    lines: list[list[Element]] = [[]]
    room = LINE
    for piece in _pieces(list(root)):
        width = sum(width_of(part) for part in piece)
        if lines[-1] and width > room:
            lines.append([])
            room = LINE - 2.0
        lines[-1] += piece
        room -= width
    if len(lines) == 1:
        return
    root.clear()
    root.set("display", "block")
    table = SubElement(root, f"{_M}mtable", {"displaystyle": "true", "class": "lines"})
    for number, line in enumerate(lines):
        cell = SubElement(SubElement(table, f"{_M}mtr"), f"{_M}mtd")
        row = SubElement(cell, f"{_M}mrow")
        if number:
            SubElement(row, f"{_M}mspace", {"width": "2em"})
            if line[0].tag == f"{_M}mo":
                line[0].set("form", "infix")
        row.extend(line)


def _pieces(elements: list[Element]) -> list[list[Element]]:
    """Runs of elements that stay on one line: each but the first begins with a breaking sign."""
    flat: list[Element] = []

    def spread(element: Element) -> None:
        if element.tag == f"{_M}mrow" and (len(element) == 1 or width_of(element) > LINE - 2.0):
            for child in element:
                spread(child)
        else:
            flat.append(element)

    for element in elements:
        spread(element)
    pieces: list[list[Element]] = [[]]
    for element in flat:
        last = pieces[-1][-1] if pieces[-1] else None
        opened = last is None or (last.tag == f"{_M}mo" and last.get("form") != "postfix")
        if element.tag == f"{_M}mo" and element.text in _BREAKS and not opened:
            pieces.append([])
        pieces[-1].append(element)
    return pieces
