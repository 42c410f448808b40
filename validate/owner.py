"""Who holds a claim, and is that process still alive? Workers that end with their parent.

On Linux a process is named by (host, boot, pid namespace) and by pid with its start time, so that a
pid used again by another program is not taken for the old process. Elsewhere, and for processes of
another host or container, a claim lives as long as its lease, which the holder renews.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

LEASE_SECONDS = 60.0


@dataclass(frozen=True)
class Owner:
    """A process, and within it one open store (`token`)."""

    host: str
    pid: int
    started: str
    token: str

    @classmethod
    def current(cls) -> Owner:
        """This process, with a fresh token."""
        return cls(_host(), os.getpid(), _started(os.getpid()), secrets.token_hex(8))

    def alive(self, expires: float) -> bool:
        """Whether the claim of this owner, with a lease until `expires` (Unix time), still holds.

        >>> Owner.current().alive(expires=0.0) or not Path("/proc/self/stat").exists()
        True
        >>> Owner("elsewhere", 1, "", "").alive(expires=0.0)
        False
        """
        if self.host == _host() and self.started:
            return _started(self.pid) == self.started
        return expires > time.time()


@cache
def _host() -> str:
    parts = [socket.gethostname()]
    try:
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(os.readlink("/proc/self/ns/pid"))
    except OSError:
        pass
    return " ".join(parts)


def _started(pid: int) -> str:
    """Start time of a running process in clock ticks since boot; empty if dead or unknown."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    # The command name, in parentheses, may itself hold spaces and parentheses.
    state, *fields = stat.rpartition(")")[2].split()
    return "" if state in "ZX" else fields[18]


def end_with_parent(parent: int) -> None:
    """Let this process end soon after its parent `parent` has been killed.

    Workers of a killed sweep would otherwise finish their cells for nobody and then stay for
    minutes. POSIX only: an orphan has another parent there.
    """
    if os.name != "posix":
        return

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, name="watch parent", daemon=True).start()
