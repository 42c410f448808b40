"""The critical load of single instances: add facts until no memory recalls them all, with proof.

The median over seeds should lie at the root of p delta(p-1) = d^2 (Gaussian and decoupled
problems) or slightly above (original problem).
Run: python examples/critical_loads.py
"""

from __future__ import annotations

from statistics import median

from numerics.cone import critical_facts
from validate.critical_load import critical_load

DIM, SEEDS = 10, 12


def main() -> None:
    """Print the critical numbers of facts of a few nested instances."""
    print(f"d = {DIM}; theory: {critical_facts(DIM)} facts")
    for kind in ("decoupled", "original"):
        loads = sorted(critical_load(kind, dim=DIM, seed=seed).facts for seed in range(SEEDS))
        print(f"{kind:>10}: median {median(loads)}, all {loads}")


if __name__ == "__main__":
    main()
