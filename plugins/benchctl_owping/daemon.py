"""Runs an owampd with directories of its own until it is told to end; a program of its own.

``daemon.py ADDRESS PORT [LOW-HIGH]`` prints ``owampd listens on …`` when a client can connect, ends
with SIGTERM or SIGINT, and removes its directories. Its test packets use the UDP ports from LOW to
HIGH, if they are given. As root owampd changes to the user nobody; in a user namespace that has no
such user it stays the only one there is. Run as a plain script, so it imports nothing of benchctl.
"""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType

_POLL_S = 0.02
_GREETING_S = 1.0
# No bound on what a flow measures: the profile gives the amount, and whoever runs it has agreed.
_LIMITS = "limit root with disk=0, bandwidth=0, delete_on_fetch=on\nassign default root\n"
_NOBODY = ("nobody", ("nogroup", "nobody"))


def _end(_number: int, _frame: FrameType | None) -> None:
    sys.exit(0)


def main() -> int:
    """Serve on the address and port of the command line; returns the exit code."""
    address, port, test_ports = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    with tempfile.TemporaryDirectory(prefix="benchctl-owampd-") as place:
        node = f"[{address}]" if ":" in address else address
        argv = _prepare(Path(place), f"{node}:{port}", test_ports)
        owampd = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
        try:
            while owampd.poll() is None and not _listens(address, port):
                time.sleep(_POLL_S)
            if owampd.poll() is None:
                print(f"owampd listens on {address} port {port}", flush=True)
            return owampd.wait()
        finally:
            owampd.terminate()
            owampd.wait()


def _prepare(place: Path, node: str, test_ports: list[str]) -> list[str]:
    """Write the files of owampd; returns its command."""
    for name in ("conf", "data", "var"):
        (place / name).mkdir()
    configuration = "".join(f"testports {ports}\n" for ports in test_ports)
    (place / "conf" / "owamp-server.conf").write_text(configuration)
    (place / "conf" / "owamp-server.limits").write_text(_LIMITS)
    where = ("-c", place / "conf", "-d", place / "data", "-R", place / "var", "-S", node)
    return ["owampd", "-Z", *map(str, where), *_user(place)]


def _user(place: Path) -> list[str]:
    """Return the options of the user that owampd runs as, who gets the directories."""
    if os.geteuid():
        return []
    with contextlib.suppress(KeyError, OSError):
        user = pwd.getpwnam(_NOBODY[0])
        group = next(g for g in grp.getgrall() if g.gr_name in _NOBODY[1])
        for path in (place, *place.rglob("*")):
            os.chown(path, user.pw_uid, group.gr_gid)
        return ["-U", user.pw_name, "-G", group.gr_name]
    return ["-f"]


def _listens(address: str, port: int) -> bool:
    """Return whether it greets a client (RFC 4656, 3.1), as it does when it can serve."""
    with contextlib.suppress(OSError), socket.create_connection((address, port), _GREETING_S) as it:
        return len(it.recv(64)) > 0
    return False


if __name__ == "__main__":
    sys.exit(main())
