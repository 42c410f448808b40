"""Plain-text formulas inside sentences, set with subscripts, superscripts and Greek letters."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

_GREEK = {
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "delta": "δ",
    "epsilon": "ε",
    "eta": "η",
    "kappa": "κ",
    "lambda": "λ",
    "mu": "μ",
    "omega": "ω",
    "phi": "φ",
    "Phi": "Φ",
    "chi": "χ",
    "pi": "π",
    "psi": "ψ",
    "rho": "ρ",
    "sigma": "σ",
    "theta": "θ",
}
_NAMES = "|".join(_GREEK)
_GREEK_WORD = re.compile(rf"(?<![A-Za-z0-9])({_NAMES})(?![A-Za-z0-9])")
_DIFFERENTIAL = re.compile(rf"(?<![A-Za-z0-9])d({_NAMES})(?![A-Za-z0-9])")
_HAT = re.compile(r"(?<![A-Za-z0-9_])([A-Za-z])_hat(?![A-Za-z0-9])")
_ROOT = re.compile(r"(?<![A-Za-z])sqrt\(([^()]*)\)")
_INTEGRAL = re.compile(r"(?<![A-Za-z])int (?=d[a-z](?![A-Za-z]))")
_GRADIENT = re.compile(r"(?<![A-Za-z])grad (?=log |dist|[A-Z](?![a-z]))")
# A minus sign of a formula: between or after spaces, after a bracket, between single letters.
_MINUS = re.compile(
    r"(?<= )-(?=[ A-Za-z0-9(])|(?<=[(^{|])-(?=[A-Za-z0-9(])"
    r"|(?<=(?<![A-Za-z0-9])[A-Za-z0-9])-(?=[a-z](?![A-Za-z]))"
)
# The sign of a number, unless it is an exponent's or stands between two words.
_NEGATIVE = re.compile(r"(?<![\w.)^])-(?=\.?[0-9])")
_PER_CENT = re.compile(r"(?<=[0-9\]]) ?%")
_POWER_OF_TEN = re.compile(r"(?<![\w.])([0-9](?:\.[0-9]+)?)e([-−+]?)0*([0-9]+)(?![\w.])")
# One letter (or closing bracket) with _x, _xy, _{...} or _+; never the underscore of a file name.
_SUBSCRIPT = re.compile(r"(?<![A-Za-z0-9_Α-ω])([A-Za-zΑ-ω]\u0302?)_(\{[^{}]*\}|[A-Za-z0-9Α-ω]+|\+)")
_OVERLAP = re.compile(r"(?<![\w^])q([01])(?!\w)")
_BRACKET_SUBSCRIPT = re.compile(r"\)_(\+)")
_SUPERSCRIPT = re.compile(r"\^(\{[^{}]*\}|\([^()]*\)|[-−]?[A-Za-z0-9Α-ω]+)")


def prose(text: str) -> Markup:
    """HTML of a sentence: x_c, x^2, sqrt(x), -> and spelled Greek letters as a physicist does.

    >>> prose("alpha_c -> 1/2 (Z^n, n -> 0)")
    Markup('α<sub>c</sub> → 1/2 (Z<sup>n</sup>, n → 0)')
    >>> prose("E omega g = q E dg/domega, e^{L (1 - a^2)}, sqrt(2 L), Q_hat = Q^-1")
    Markup('E ω g = q E dg/dω, e<sup>L (1 − a<sup>2</sup>)</sup>, √(2 L), Q̂ = Q<sup>−1</sup>')
    >>> prose("capitals_minilm32.npz & more")
    Markup('capitals_minilm32.npz &amp; more')
    >>> prose("[-0.181, 0.356], 5 % of 2.5e-04, arXiv:2605-3")
    Markup('[−0.181, 0.356], 5\u202f% of 2.5 × 10<sup>−4</sup>, arXiv:2605-3')
    """
    text = text.replace("->", "→").replace("<=", "≤").replace(">=", "≥")
    text = text.replace("infinity", "∞")
    text = _DIFFERENTIAL.sub(lambda m: f"d{_GREEK[m.group(1)]}", text)
    text = _GREEK_WORD.sub(lambda m: _GREEK[m.group(1)], text)
    text = _OVERLAP.sub(r"q_\1", text)
    text = _HAT.sub("\\1\u0302", text)
    text = _ROOT.sub(_root, text)
    text = _GRADIENT.sub("∇", text)
    text = _INTEGRAL.sub("∫ ", text)
    text = _POWER_OF_TEN.sub(_scientific, text)
    text = _NEGATIVE.sub("−", _MINUS.sub("−", text))
    text = _PER_CENT.sub("\u202f%", text)
    safe = str(escape(text))
    safe = _SUBSCRIPT.sub(lambda m: f"{m.group(1)}<sub>{m.group(2).strip('{}')}</sub>", safe)
    safe = _BRACKET_SUBSCRIPT.sub(lambda m: f")<sub>{m.group(1)}</sub>", safe)
    return Markup(_raised(safe))


def _scientific(match: re.Match[str]) -> str:
    mantissa, sign, exponent = match.groups()
    return f"{mantissa} × 10^{{{'' if sign == '+' else sign and '−'}{exponent}}}"


def _root(match: re.Match[str]) -> str:
    """The root of one letter or number needs no brackets."""
    inside = match.group(1)
    return f"√{inside}" if len(inside) == 1 or inside.isdecimal() else f"√({inside})"


def _raised(safe: str) -> str:
    """Superscripts, those inside superscripts included."""

    def raised(match: re.Match[str]) -> str:
        inside = match.group(1)
        return f"<sup>{_raised(inside.strip('{}') if inside[0] == '{' else inside)}</sup>"

    return _SUPERSCRIPT.sub(raised, safe)
