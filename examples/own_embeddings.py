"""Can one linear memory recall my facts, and how many components does it need?

Row mu of the arrays `inputs` and `outputs` is one fact. The example: 100 places and their capitals.
Run: python examples/own_embeddings.py [FILE.npz]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from validate.fit import fit
from validate.problems.files import read_embeddings

CAPITALS = Path(__file__).parent / "data" / "capitals_minilm32.npz"


def main(path: Path) -> None:
    """Print the verdict, its certificate and the least number of components."""
    result = fit(read_embeddings(path), shuffles=2, seed=0)
    print(f"{path.name}: {result.embeddings.facts} facts, {result.components} components")
    print("verdict:", result.decision.verdict, f"({result.decision.certificate.method})")
    print("least components, true pairing:    ", result.least.components)
    print("least components, shuffled pairing:", [s.components for s in result.shuffled])
    print("least dimension for random facts:  ", result.theory)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", nargs="?", type=Path, default=CAPITALS, help="own embeddings")
    main(parser.parse_args().file)
