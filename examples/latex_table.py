"""A threshold table for a paper, in LaTeX: how many facts fit at each dimension, all digits proved.

Needs \\usepackage{booktabs} in the paper.
Run: python examples/latex_table.py [d ...] [--digits N] [--out FILE.tex]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from numerics.cone import critical_facts, critical_load, facts_per_parameter
from validate.cli.common import write_text_atomically

DIMENSIONS = (16, 64, 256, 512, 1024, 2048, 4096, 12288)
HEAD = r"""\begin{{table}}
\centering
\caption{{Facts that a $d \times d$ linear associative memory recalls: $p_c$ is the largest $p$ with
$p\,\delta(p-1) \le d^2$, $\alpha_c = \log p_c / \delta(p_c-1)$ the critical load (limit $1/2$), and
$1/\delta$ the number of facts per weight. All {digits} digits are proved by ball arithmetic.}}
\label{{tab:thresholds}}
\begin{{tabular}}{{rrrr}}
\toprule
$d$ & $p_c$ & $\alpha_c(p_c)$ & $1/\delta(p_c-1)$ \\
\midrule
"""
TAIL = r"""\bottomrule
\end{tabular}
\end{table}
"""


def grouped(number: int) -> str:
    """An integer with LaTeX thin spaces."""
    return f"{number:,}".replace(",", r"\,")


def table(dimensions: Sequence[int], digits: int) -> str:
    """The whole table as LaTeX."""
    rows = []
    for dim in dimensions:
        facts = critical_facts(dim)
        cells = (
            grouped(dim),
            grouped(facts),
            critical_load(facts, digits=digits).to_string(digits),
            facts_per_parameter(facts, digits=digits).to_string(digits),
        )
        rows.append(" & ".join(cells) + r" \\" + "\n")
    return HEAD.format(digits=digits) + "".join(rows) + TAIL


def main() -> None:
    """Print the table, or write it to a file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("dimensions", nargs="*", type=int, default=DIMENSIONS, metavar="d")
    parser.add_argument("--digits", type=int, default=8)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    text = table(given.dimensions, given.digits)
    if given.out is None:
        print(text, end="")
    else:
        write_text_atomically(given.out, text)
        print(f"wrote {len(given.dimensions)} rows to {given.out}")


if __name__ == "__main__":
    main()
