"""Sends and receives on one end of a link, on request. A program of its own.

``probe.py ADDRESS`` prints the numbers of a UDP and a TCP port on which it listens, then answers
one request a line, both in JSON with SI units, until its stdin closes:

- ``{"do": "send", "to", "port", "mark", "count", "size", "gap_s", "most_s"}``: sends numbered
  datagrams, at least ``gap_s`` apart and for at most ``most_s``; returns when each was sent.
  ``size`` is that of the payload, ``mark`` is in every datagram.
- ``{"do": "got", "mark", "count", "patience_s", "more_s"}``: waits up to ``patience_s`` for
  ``count`` datagrams with that mark, then ``more_s`` for more; returns ``[number, time]`` of each
  in order of arrival, and how many its own socket dropped.
- ``{"do": "flow", "to", "port", "rate_bps", "pace_bps", "seconds"}``: sends bytes over TCP for a
  while; returns how many payload bits per second arrived, 0 if none did.

Times are nanoseconds of the system's clock, which all hosts of a lab share; arrival times are the
kernel's. Run as a plain script on the hosts, so it imports nothing of benchctl.
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
"""Where struct sk_meminfo has the datagrams dropped by the socket (linux/sock_diag.h)."""

_SECONDS = _REPORT = struct.Struct("=d")
# Longer than the remainder of any request takes on a working link.
_TIMEOUT_S = 5.0
# Limits the data in transit to what the link carries in this time: it stays busy, and empties soon.
_WINDOW_S = 0.05
_WINDOW_BYTES = (4 * 1500, 1 << 20)
_CHUNK = b"\0" * (1 << 17)


def _family(address: str) -> int:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


class _Datagrams:
    """Numbered datagrams, sent and received on one socket."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 23)  # as much as permitted
        sock.setblocking(False)
        self._sock = sock
        self._got: dict[int, list[tuple[int, int]]] = {}
        self._dropped = 0

    def take(self, timeout_s: float = 0.0) -> None:
        """Take the datagrams that have arrived, waiting for the first."""
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
        """Send datagrams, and return the time of each."""
        sent_ns: list[int] = []
        rest = bytes(size - _DATAGRAM.size)
        end_s = time.monotonic() + most_s
        with socket.socket(_family(to), socket.SOCK_DGRAM) as sock:
            sock.connect((to, port))
            while len(sent_ns) < count and (now_s := time.monotonic()) < end_s:
                data = _DATAGRAM.pack(mark, len(sent_ns)) + rest
                sent_ns.append(time.time_ns())
                # A port without a listener is an error of the other end.
                with contextlib.suppress(ConnectionRefusedError):
                    sock.send(data)
                while gap_s and (wait_s := now_s + gap_s - time.monotonic()) > 0:
                    self.take(wait_s)
        return sent_ns

    def got(self, mark: int, count: int, patience_s: float, more_s: float) -> list[Any]:
        """Return the datagrams that arrived with a mark, and how many the buffer dropped."""
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
            # Linux reserves twice as much, for its own bookkeeping (socket(7), SO_SNDBUF).
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, window_bytes)
            # Every system has it; the one that a lab's hosts use may be the subject of the
            # measurement.
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
            if pace_bps < rate_bps:
                pace = struct.pack("=Q", int(pace_bps / 8))
                connection.setsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, pace)
            connection.sendall(_SECONDS.pack(seconds))
            _send_until_stopped(connection, seconds + _TIMEOUT_S)
            report: float = _REPORT.unpack(connection.recv(_REPORT.size, socket.MSG_WAITALL))[0]
            connection.shutdown(socket.SHUT_WR)
            # Until the other end has read everything: then the link is empty for the next request.
            connection.recv(1)
            return report
    except (OSError, struct.error):
        return 0.0


def _send_until_stopped(connection: socket.socket, most_s: float) -> None:
    """Send until the other end answers, or reports that it has received enough."""
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
    """Accept connections; report to each the rate at which its bytes arrived after the first."""
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
    """Serve requests until stdin closes."""
    address = sys.argv[1]
    with (
        socket.create_server((address, 0), family=_family(address)) as server,
        socket.socket(_family(address), socket.SOCK_DGRAM) as sock,
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
