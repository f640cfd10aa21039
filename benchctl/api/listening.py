"""Starts a server that prints nothing, and says when its port listens.

``listening.py tcp|udp PORT PROGRAM [WORD...]`` prints one line once the program, or what it has
started, listens on the port, and ends as the program does. It reads /proc/net, so it needs Linux
there. Runs as a plain script on the server's host, with Python 3.9 or later and nothing else.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import FrameType

MARK = b"\0the port listens\n"
"""No text has a zero byte."""
_LOOK_S = 0.02
# The states of a socket that a client can reach (include/net/tcp_states.h): TCP_LISTEN, and of UDP
# an unconnected one, which is in TCP_CLOSE.
_STATES = {"tcp": "0A", "udp": "07"}


def is_open(protocol: str, port: int, root: str = "/proc/net") -> bool:
    """Return whether a socket of a protocol listens on a port, of IPv4 or IPv6."""
    for name in (protocol, f"{protocol}6"):
        try:
            lines = Path(root, name).read_text().splitlines()[1:]
        except FileNotFoundError:
            continue  # no IPv6
        for line in lines:
            _, local, _, state = line.split()[:4]
            if state == _STATES[protocol] and int(local.rpartition(":")[2], 16) == port:
                return True
    return False


def main() -> int:
    """Start the program and wait for its end; returns its exit code."""
    protocol, port, *argv = sys.argv[1:]
    try:
        child = subprocess.Popen(argv)
    except OSError as error:
        print(f"{argv[0]} cannot be started: {error.strerror}", file=sys.stderr)
        return 127

    def pass_on(number: int, _: FrameType | None) -> None:
        child.send_signal(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, pass_on)
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(_LOOK_S):
            if is_open(protocol, int(port)):
                os.write(1, MARK)
                return

    threading.Thread(target=watch, daemon=True).start()
    code = child.wait()
    ended.set()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
