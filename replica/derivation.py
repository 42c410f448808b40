"""A derivation: a numbered list of steps, each a SymPy object with a title and a reason.

Steps hold expressions, never strings of mathematics: what is printed is what was computed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from typing import Any

import sympy as sp

from replica.printing import sympifiable

#: Characters that LaTeX text does not take as they are.
_LATEX_TEXT = {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    **{c: rf"\{c}" for c in "_#$%&{}"},
    **{c: f"${c}$" for c in "<>|"},
}


def latex_text(words: str) -> str:
    r"""Plain words as LaTeX text: special characters escaped, arrows and relations as formulas.

    >>> print(latex_text("n -> 0, q_hat >= Q^-1"))
    n $\to$ 0, q\_hat $\ge$ Q\textasciicircum{}-1
    """
    pieces = re.split("(->|>=|<=)", words)
    signs = {"->": r"$\to$", ">=": r"$\ge$", "<=": r"$\le$"}
    return "".join(
        signs[piece] if piece in signs else "".join(_LATEX_TEXT.get(c, c) for c in piece)
        for piece in pieces
    )


@dataclass(frozen=True)
class Step:
    """One step: `expression` (a SymPy object), its `title`, and the operation that gave it.

    `symbol`: what the expression is the value of, printed to its left; None for relations and where
    the title says it.
    """

    title: str
    expression: Any
    reason: str = ""
    symbol: Any = None

    @property
    def latex(self) -> str:
        """LaTeX source of the step, without delimiters."""
        source = str(sp.latex(self.expression))
        return source if self.symbol is None else f"{sp.latex(self.symbol)} = {source}"

    @property
    def text(self) -> str:
        """The step as one line of SymPy text."""
        source = str(sp.sstr(self.expression))
        return source if self.symbol is None else f"{sp.sstr(self.symbol)} = {source}"

    def _repr_latex_(self) -> str:
        return rf"$\displaystyle {self.latex}$"

    def to_json(self) -> dict[str, str]:
        """The step as strings: `title`, `latex`, `sympy` (for `sympy.sympify`), `reason`.

        And `symbol`, of which the expression is the value, where there is one.
        """
        named = {} if self.symbol is None else {"symbol": sympifiable(self.symbol)}
        return {
            "title": self.title,
            **named,
            "latex": self.latex,
            "sympy": sympifiable(self.expression),
            "reason": self.reason,
        }


@dataclass
class Derivation:
    """A titled list of steps and a dictionary of named results (SymPy objects).

    >>> import sympy as sp
    >>> q = sp.Symbol("q")
    >>> d = Derivation("Example")
    >>> _ = d.add("Entropy", sp.log(1 - q) / 2, reason="log det at n -> 0")
    >>> print(d.to_text())
    Example
    <BLANKLINE>
    1. Entropy
       log(1 - q)/2
       (log det at n -> 0)
    """

    title: str
    steps: list[Step] = field(default_factory=list)
    results: dict[str, Any] = field(default_factory=dict)

    def add(self, title: str, expression: Any, reason: str = "", *, symbol: Any = None) -> Any:
        """Append a step and return its expression, so that it can be used in the next one."""
        self.steps.append(Step(title, expression, reason, symbol))
        return expression

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def to_text(self) -> str:
        """Plain text, one numbered step after the other."""
        lines = [self.title, ""]
        for number, step in enumerate(self.steps, 1):
            lines += [f"{number}. {step.title}", f"   {step.text}"]
            if step.reason:
                lines.append(f"   ({step.reason})")
        return "\n".join(lines)

    def to_latex(self) -> str:
        """LaTeX body: a numbered list with one display formula a step."""
        lines = [rf"\section*{{{latex_text(self.title)}}}", r"\begin{enumerate}"]
        for step in self.steps:
            words = latex_text(f"{step.title} ({step.reason})" if step.reason else step.title)
            lines.append(rf"\item {words}: \[{step.latex}\]")
        lines.append(r"\end{enumerate}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """`title`, `steps` (see `Step.to_json`) and every named result as a string."""
        data: dict[str, Any] = {"title": self.title, "steps": [s.to_json() for s in self.steps]}
        for name, value in self.results.items():
            if isinstance(value, list | tuple):
                data[name] = [sympifiable(item) for item in value]
            else:
                data[name] = sympifiable(value)
        return data

    def to_python(self) -> str:
        """NumPy source: one function a named result (see `replica.code.to_python`)."""
        from replica.code import to_python

        return to_python(self.results, self.title)

    def to_mathematica(self) -> str:
        """Mathematica source: one assignment a named result."""
        from replica.code import to_mathematica

        return to_mathematica(self.results, self.title)

    def _repr_latex_(self) -> str:
        rows = [rf"({i})\quad & {step.latex}" for i, step in enumerate(self.steps, 1)]
        return "$$\\begin{aligned}" + r"\\ ".join(rows) + "\\end{aligned}$$"

    def _repr_html_(self) -> str:
        """A collapsible list for notebooks; formulas are LaTeX for the notebook's renderer."""
        parts = [f"<h4>{escape(self.title)}</h4>"]
        for number, step in enumerate(self.steps, 1):
            parts.append(
                f"<details open><summary>{number}. {escape(step.title)}</summary>"
                rf"<div>\[{escape(step.latex)}\]</div><small>{escape(step.reason)}</small></details>"
            )
        return "\n".join(parts)
