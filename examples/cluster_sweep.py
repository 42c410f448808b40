"""A sweep on a Dask cluster: here two worker processes on this machine, the same on a real one.

For a real cluster start `dask scheduler` and `dask worker tcp://HOST:8786` on its machines and give
the address: python examples/cluster_sweep.py --scheduler tcp://HOST:8786 --store runs.sqlite
Kill it at any time; the same command goes on where it was.
"""

from __future__ import annotations

import argparse
import tempfile
from contextlib import ExitStack
from pathlib import Path

from numerics.cone import success_probability
from validate.store import Store
from validate.sweep import Status, make_plan, results_frame, run
from validate.sweep.summary import summary

DIM, LOADS, SEEDS = 10, (0.95, 1.05, 1.15), 20


def main() -> None:
    """Run the sweep and print what was measured beside the exact probability."""
    from distributed import LocalCluster

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--scheduler", help="address of a running scheduler")
    parser.add_argument("--store", type=Path, help="SQLite file that keeps the results")
    given = parser.parse_args()
    plan = make_plan("decoupled", dims=[DIM], loads=LOADS, seeds=SEEDS)
    with ExitStack() as stack:
        address = given.scheduler
        if address is None:
            cluster = LocalCluster(
                n_workers=2, threads_per_worker=1, protocol="tcp", dashboard_address=None
            )
            address = stack.enter_context(cluster).scheduler_address
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        store = stack.enter_context(Store.open(given.store or Path(folder) / "runs.sqlite"))
        status: Status = run(plan, store, dask=address)
        print(f"{status.finished} of {status.total} cells, {status.resumed} kept from before")
        print("  d   facts   load  separable  exact P  95 % interval")
        for row in summary(results_frame(store, plan)):
            exact = success_probability(row["dim"], row["facts"], digits=6).to_float_lossy()
            print(
                f"{row['dim']:3d} {row['facts']:7d} {row['load']:6.3f}  {row['separable']:3d} of "
                f"{row['instances']:2d}  {exact:7.4f}  [{row['low']:.3f}, {row['high']:.3f}]"
            )


if __name__ == "__main__":
    main()
