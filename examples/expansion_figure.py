"""How slowly the critical load reaches 1/2: exact values, series and the Lambert form.

Prints a table and writes two figures beside each other, if a file is given.
Run: python examples/expansion_figure.py [FILE.html]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from validate.cli.common import write_text_atomically
from validate.figures_expansion import expansion_data, plot_errors, plot_expansion

STYLE = (
    ":root{--ink:#1b1f24;--muted:#5c6670;--grid:#dfe3e8;--paper:#fefefd;--s1:#0072b2;--s2:#d55e00;"
    "--s3:#009e73;--s4:#cc79a7;--s5:#56b4e9;--s6:#e69f00}svg{max-width:40rem;width:100%}"
)


def main() -> None:
    """Print exact load, order 4 and Lambert form; write the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", nargs="?", type=Path, help="HTML file to write the figures to")
    file = parser.parse_args().file
    records = expansion_data(12)
    sources = ("exact", "order 1", "order 4", "resummed", "level")
    print(f"{'log10 p':>8} " + " ".join(f"{name:>9}" for name in sources))
    for x in sorted({r["facts_log10"] for r in records}):
        row = {r["source"]: r["load"] for r in records if r["facts_log10"] == x}
        print(f"{x:8.1f} " + " ".join(f"{row[name]:9.5f}" for name in sources))
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Critical load</title>'
        f"<style>{STYLE}</style>{plot_expansion(records)}{plot_errors(records)}</html>"
    )
    if file is not None:
        write_text_atomically(file, page)
        print(f"figures written to {file}")


if __name__ == "__main__":
    main()
