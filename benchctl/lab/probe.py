"""Sends and receives on one end of a link, as it is told. A program of its own.

``probe.py ADDRESS`` prints the numbers of a UDP and a TCP port on which it listens, then answers
one order a line, both in JSON with SI units, until its stdin closes:

- ``{"do": "send", "to", "port", "mark", "count", "size", "gap_s", "most_s"}``: sends numbered
  datagrams, no faster than one in ``gap_s`` and for no longer than ``most_s``; answers when each
  was sent. ``size`` is that of the payload, ``mark`` is in every datagram.
- ``{"do": "got", "mark", "count", "patience_s", "more_s"}``: waits so long for so many datagrams
  with that mark, and then for more; answers ``[number, time]`` of each in the order they came, and
  how many its own socket could not hold.
- ``{"do": "flow", "to", "port", "rate_bps", "pace_bps", "seconds"}``: sends bytes over TCP for a
  while; answers how many payload bits per second arrived, 0 where nothing did.

Times are nanoseconds of the system's clock, which all hosts of a lab share; those of arrival are
the kernel's. Run as a plain script on the hosts, so it imports nothing of benchctl.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

_DATAGRAM = struct.Struct("=II")
_STAMP = struct.Struct("@ll")
# asm-generic/socket.h; Python does not name them.
_SO_TIMESTAMPNS, _SO_MEMINFO, _SO_MAX_PACING_RATE = 35, 55, 47
_MEMINFO = struct.Struct("=9I")
_DROPS = 8
"""Where struct sk_meminfo has what the socket's buffer could not hold (linux/sock_diag.h)."""

_SECONDS = _REPORT = struct.Struct("=d")
# Longer than the rest of any order takes on a link that works at all.
_TIMEOUT_S = 5.0
# On its way at most: what the link carries in so long, so that it is busy and soon empty again.
_WINDOW_S = 0.05
_WINDOW_BYTES = (4 * 1500, 1 << 20)
_CHUNK = b"\0" * (1 << 17)


class _Datagrams:
    """Numbered datagrams, sent and received on one socket."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 23)  # as much as the system gives
        sock.setblocking(False)
        self._sock = sock
        self._got: dict[int, list[tuple[int, int]]] = {}
        self._dropped = 0

    def take(self, timeout_s: float = 0.0) -> None:
        """Take what has come, waiting for the first."""
        if timeout_s:
            select.select([self._sock], [], [], timeout_s)
        with contextlib.suppress(BlockingIOError):
            while True:
                data, ancillary, _, _ = self._sock.recvmsg(_DATAGRAM.size, 64)
                mark, number = _DATAGRAM.unpack(data)
                seconds, nanoseconds = _STAMP.unpack_from(ancillary[0][2])
                stamp_ns = seconds * 1_000_000_000 + nanoseconds
                self._got.setdefault(mark, []).append((number, stamp_ns))

    def send(
        self, to: str, port: int, mark: int, count: int, size: int, gap_s: float, most_s: float
    ) -> list[int]:
        """Send datagrams, and return when each was."""
        sent_ns: list[int] = []
        rest = bytes(size - _DATAGRAM.size)
        end_s = time.monotonic() + most_s
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.connect((to, port))
            while len(sent_ns) < count and (now_s := time.monotonic()) < end_s:
                data = _DATAGRAM.pack(mark, len(sent_ns)) + rest
                sent_ns.append(time.time_ns())
                # A port that nobody listens on any more is the other end's trouble.
                with contextlib.suppress(ConnectionRefusedError):
                    sock.send(data)
                while gap_s and (wait_s := now_s + gap_s - time.monotonic()) > 0:
                    self.take(wait_s)
        return sent_ns

    def got(self, mark: int, count: int, patience_s: float, more_s: float) -> list[Any]:
        """Return what has come with a mark, and how many the buffer could not hold."""
        self.take()
        self._wait(patience_s, lambda: len(self._got.get(mark, ())) >= count)
        self._wait(more_s, lambda: False)
        info = self._sock.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO.size)
        before, self._dropped = self._dropped, _MEMINFO.unpack(info)[_DROPS]
        return [self._got.pop(mark, []), self._dropped - before]

    def _wait(self, most_s: float, enough: Callable[[], bool]) -> None:
        end_s = time.monotonic() + most_s
        while not enough() and (wait_s := end_s - time.monotonic()) > 0:
            self.take(wait_s)


def _flow_bps(to: str, port: int, rate_bps: float, pace_bps: float, seconds: float) -> float:
    """Send bytes for a while, and return the rate at which they arrived."""
    try:
        with socket.create_connection((to, port), _TIMEOUT_S) as connection:
            low, high = _WINDOW_BYTES
            window_bytes = int(min(max(rate_bps * _WINDOW_S / 8, low), high))
            # Linux sets aside twice as much, for its own book-keeping (socket(7), SO_SNDBUF).
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, window_bytes)
            # The one that every system has; what a lab's hosts use may be the thing to be measured.
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
            if pace_bps < rate_bps:
                pace = struct.pack("=Q", int(pace_bps / 8))
                connection.setsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, pace)
            connection.sendall(_SECONDS.pack(seconds))
            _send_until_told(connection, seconds + _TIMEOUT_S)
            report: float = _REPORT.unpack(connection.recv(_REPORT.size, socket.MSG_WAITALL))[0]
            connection.shutdown(socket.SHUT_WR)
            # Until the other end has read all: then the link is empty for whoever comes next.
            connection.recv(1)
            return report
    except (OSError, struct.error):
        return 0.0


def _send_until_told(connection: socket.socket, most_s: float) -> None:
    """Send until the other end says something, or that it has seen enough."""
    end_s = time.monotonic() + most_s
    connection.setblocking(False)
    while (wait_s := end_s - time.monotonic()) > 0:
        readable, writable, _ = select.select([connection], [connection], [], wait_s)
        if readable:
            break
        if writable:
            connection.send(_CHUNK)
    connection.settimeout(_TIMEOUT_S)


def _receive(server: socket.socket) -> None:
    """Take connections, and report to each at which rate its bytes arrived after the first."""
    while True:
        connection = server.accept()[0]
        with connection, contextlib.suppress(OSError, struct.error):
            connection.settimeout(_TIMEOUT_S)
            data = connection.recv(_SECONDS.size, socket.MSG_WAITALL)
            seconds: float = _SECONDS.unpack(data)[0]
            connection.recv(1 << 20)
            start_s = now_s = time.monotonic()
            count = 0
            while now_s < start_s + seconds and (data := connection.recv(1 << 20)):
                count += len(data)
                now_s = time.monotonic()
            connection.sendall(_REPORT.pack(count * 8 / (now_s - start_s)))
            while connection.recv(1 << 20):
                pass


def main() -> None:
    """Obey until stdin closes."""
    address = sys.argv[1]
    with (
        socket.create_server((address, 0)) as server,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock,
    ):
        sock.bind((address, 0))
        datagrams = _Datagrams(sock)
        threading.Thread(target=_receive, args=(server,), daemon=True).start()
        orders: dict[str, Callable[..., Any]]
        orders = {"send": datagrams.send, "got": datagrams.got, "flow": _flow_bps}
        print(json.dumps([sock.getsockname()[1], server.getsockname()[1]]), flush=True)
        while True:
            ready = select.select([sock, sys.stdin], [], [])[0]
            if sock in ready:
                datagrams.take()
            if sys.stdin in ready:
                line = sys.stdin.readline()
                if not line:
                    return
                order = json.loads(line)
                print(json.dumps(orders[order.pop("do")](**order)), flush=True)


if __name__ == "__main__":
    main()
