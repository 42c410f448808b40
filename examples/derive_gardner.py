"""One machinery, two models: Gardner's perceptron and factual recall from the same derivation.

Run: python examples/derive_gardner.py
"""

from __future__ import annotations

import sympy as sp

from replica.catalogue import model


def main() -> None:
    """Print the free entropy, the saddle point and the capacity of both models."""
    for criterion in ("halfspace", "top_one"):
        derivation = model("spherical", criterion).derivation
        print(derivation.title)
        for name in ("free_entropy", "saddle_point", "capacity_equation", "critical_load"):
            print(f"  {name}:")
            value = derivation.results[name]
            for item in value if isinstance(value, list | tuple) else [value]:
                print("   ", sp.sstr(item))
        print()


if __name__ == "__main__":
    main()
