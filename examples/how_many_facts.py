"""How many facts does a d x d linear memory hold? Exact thresholds beside the 1/2 law.

Run: python examples/how_many_facts.py [d ...]
"""

from __future__ import annotations

import argparse
import math

from numerics.cone import critical_facts, success_probability

DIMENSIONS = (16, 64, 256, 1024, 4096)


def half_law(dim: int) -> int:
    """Largest p with p log p <= d^2 / 2, the limit p -> infinity taken literally."""
    low, high = 2, dim * dim + 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle * math.log(middle) <= dim**2 / 2 else (low, middle)
    return low


def main(dimensions: tuple[int, ...]) -> None:
    """Print one row a dimension."""
    print(f"{'d':>6} {'facts':>9} {'1/2 law':>9} {'ratio':>6} {'load':>6}   P(5 % fewer facts)")
    for dim in dimensions:
        facts, naive = critical_facts(dim), half_law(dim)
        load = facts * math.log(facts) / dim**2
        chance = "-"
        if dim <= 64:
            chance = success_probability(dim, int(0.95 * facts), digits=6).to_string(6)
        print(f"{dim:6d} {facts:9d} {naive:9d} {facts / naive:6.2f} {load:6.3f}   {chance}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("dimensions", nargs="*", type=int, default=DIMENSIONS, metavar="d")
    main(tuple(parser.parse_args().dimensions))
