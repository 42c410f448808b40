"""LaTeX of SymPy to MathML that every browser draws without scripts or fonts from outside."""

from __future__ import annotations

import re

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


def print_size(markup: str, *, normal: float = 9.5, width: float = 510.0) -> float:
    """Font size in points at which the formula fits a printed line of `width` points.

    Paper cannot scroll. A character takes about half its font size.

    >>> print_size("<mi>x</mi>")
    9.5
    """
    characters = len(
        re.sub(r"<[^>]*>|&[^;]*;", lambda m: "" if m.group()[0] == "<" else "x", markup)
    )
    return round(min(normal, width / (0.5 * max(characters, 1))), 1)


def to_mathml(latex: str, *, display: bool = True) -> str:
    r"""One `<math>` element for a LaTeX formula without delimiters.

    Raises `InvalidInput` when a command survives as visible text (a backslash in the output), so
    that a formula is never shown garbled.

    >>> "<mfrac>" in to_mathml(r"\frac{1}{2}")
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
    return markup
