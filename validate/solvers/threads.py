"""One torch thread for small work: on a busy machine more of them cost far more than they give."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

SMALL_UNKNOWNS = 1200


@contextmanager
def threads_for(unknowns: int) -> Iterator[None]:
    """Run torch with one thread if the matrices are small; restores the number afterwards."""
    before = torch.get_num_threads()
    if unknowns < SMALL_UNKNOWNS:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
