"""Plain-text formulas inside sentences, set with subscripts, superscripts and Greek letters."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

_GREEK = {
    "alpha": "α",
    "gamma": "γ",
    "delta": "δ",
    "kappa": "κ",
    "lambda": "λ",
    "mu": "μ",
    "omega": "ω",
    "phi": "φ",
    "psi": "ψ",
    "rho": "ρ",
    "sigma": "σ",
}
_GREEK_WORD = re.compile(rf"(?<![A-Za-z0-9])({'|'.join(_GREEK)})(?![A-Za-z0-9])")
# One letter (or closing bracket) with _x, _xy, _{...} or _+; never the underscore of a file name.
_SUBSCRIPT = re.compile(r"(?<![A-Za-z0-9_Α-ω])([A-Za-zΑ-ω])_(\{[^{}]*\}|[A-Za-z0-9Α-ω]+|\+)")
_BRACKET_SUBSCRIPT = re.compile(r"\)_(\+)")
_SUPERSCRIPT = re.compile(r"\^(\{[^{}]*\}|[-−]?[A-Za-z0-9Α-ω]+)")


def prose(text: str) -> Markup:
    """HTML of a sentence: x_c, x^2, ->, <= and spelled Greek letters as a physicist writes them.

    >>> prose("alpha_c -> 1/2 (Z^n, n -> 0)")
    Markup('α<sub>c</sub> → 1/2 (Z<sup>n</sup>, n → 0)')
    >>> prose("capitals_minilm32.npz & more")
    Markup('capitals_minilm32.npz &amp; more')
    """
    text = text.replace("->", "→").replace("<=", "≤").replace(">=", "≥")
    text = _GREEK_WORD.sub(lambda m: _GREEK[m.group(1)], text)
    safe = str(escape(text))
    safe = _SUBSCRIPT.sub(lambda m: f"{m.group(1)}<sub>{m.group(2).strip('{}')}</sub>", safe)
    safe = _BRACKET_SUBSCRIPT.sub(lambda m: f")<sub>{m.group(1)}</sub>", safe)
    safe = _SUPERSCRIPT.sub(lambda m: f"<sup>{m.group(1).strip('{}')}</sup>", safe)
    return Markup(safe)
