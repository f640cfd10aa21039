"""The TCP connections of running processes, by /proc; none are known where there is none."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from benchctl.hosts.sent.filter import PortPair

_PROC = Path("/proc")


def tcp_ports(group: int) -> set[PortPair]:
    """Return the local and the far port of each TCP connection of a process group."""
    found: set[PortPair] = set()
    for entry in _PROC.glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is somebody else's
            if os.getpgid(int(entry.name)) == group:
                found.update(_ports(entry))
    return found


def _ports(process: Path) -> Iterator[PortPair]:
    links = [path.readlink().name for path in (process / "fd").iterdir()]
    own = {link[len("socket:[") : -1] for link in links if link.startswith("socket:[")}
    for table in ("tcp", "tcp6"):
        # Those of its network namespace.
        for line in (process / "net" / table).read_text().splitlines()[1:]:
            _, local, far, _, _, _, _, _, _, inode = line.split()[:10]
            if inode in own:
                yield int(local.rpartition(":")[2], 16), int(far.rpartition(":")[2], 16)
