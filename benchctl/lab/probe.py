"""Measures the round-trip time or the rate between two hosts of a lab. A program of its own.

``probe.py answer ADDRESS`` listens on a port, prints it, and ends when its stdin closes.
``probe.py rtt ADDRESS PORT`` sends small datagrams to it and prints their round-trip times;
``probe.py rate ADDRESS PORT THERE BACK`` sends bytes over TCP for a while in either direction, and
prints how many payload bits per second arrived: there, then back. THERE and BACK are the rates
that are expected; they decide how long it takes, and how much may be on its way. It answers in
JSON, in SI units.

Run as a plain script on the hosts, so it imports nothing of benchctl.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import sys
import time

_ECHO_PAYLOAD_BYTES = 56  # makes the frame that ping sends
_ECHOES = 20
_ECHO_GAP_S = 0.01
# Longer than any round trip that is measured here; what has not come by then was lost.
_SILENCE_S = 1.0

_THERE, _BACK = b"TB"
_REQUEST = struct.Struct("=Bd")
_REPORT = struct.Struct("=d")
# A quarter of a second tells a rate to one in a hundred; a slow link needs some frames at least.
_LEAST_S = 0.25
_LEAST_BITS = 50 * 1500 * 8
# On its way at most: what the link carries in so long, so that it is busy and soon empty again.
_WINDOW_S = 0.05
_WINDOW_BYTES = (4 * 1500, 1 << 20)
_CHUNK = b"\0" * (1 << 17)


def answer(address: str) -> None:
    """Answer until stdin closes."""
    with (
        socket.create_server((address, 0)) as server,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as echo,
    ):
        port = server.getsockname()[1]
        echo.bind((address, port))
        print(port, flush=True)
        while True:
            ready = select.select([server, echo, sys.stdin], [], [])[0]
            if echo in ready:
                data, peer = echo.recvfrom(65536)
                echo.sendto(data, peer)
            if server in ready:
                with server.accept()[0] as connection:
                    _serve(connection)
            if sys.stdin in ready:
                return


def _serve(connection: socket.socket) -> None:
    kind, rate_bps = _REQUEST.unpack(connection.recv(_REQUEST.size, socket.MSG_WAITALL))
    if kind == _THERE:
        connection.sendall(_REPORT.pack(_receive(connection, rate_bps)))
        _drain(connection)
    else:
        _limit(connection, rate_bps)
        _send_until_told(connection)


def rtts_s(address: str, port: int) -> list[float]:
    """Return the round-trip times of a few datagrams; those lost are missing."""
    found: list[float] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect((address, port))
        sent, next_s = 0, time.monotonic()
        end_s = next_s + _ECHOES * _ECHO_GAP_S + _SILENCE_S
        while len(found) < _ECHOES and (now_s := time.monotonic()) < end_s:
            if sent < _ECHOES and now_s >= next_s:
                stamp = struct.pack("=Q", time.monotonic_ns())
                sock.send(stamp.ljust(_ECHO_PAYLOAD_BYTES, b"\0"))
                sent, next_s = sent + 1, next_s + _ECHO_GAP_S
            until_s = next_s if sent < _ECHOES else end_s
            if select.select([sock], [], [], max(0.0, until_s - time.monotonic()))[0]:
                data = sock.recv(65536)
                found.append((time.monotonic_ns() - struct.unpack_from("=Q", data)[0]) / 1e9)
    return found


def rate_there_bps(address: str, port: int, rate_bps: float) -> float:
    """Send for a while, and return the rate at which it arrived."""
    with socket.create_connection((address, port)) as connection:
        _limit(connection, rate_bps)
        connection.sendall(_REQUEST.pack(_THERE, rate_bps))
        _send_until_told(connection)
        report: float = _REPORT.unpack(connection.recv(_REPORT.size, socket.MSG_WAITALL))[0]
        connection.shutdown(socket.SHUT_WR)
        _drain(connection)
        return report


def rate_back_bps(address: str, port: int, rate_bps: float) -> float:
    """Have something sent for a while, and return the rate at which it arrived."""
    with socket.create_connection((address, port)) as connection:
        connection.sendall(_REQUEST.pack(_BACK, rate_bps))
        arrived_bps = _receive(connection, rate_bps)
        connection.shutdown(socket.SHUT_WR)
        _drain(connection)
        return arrived_bps


def _limit(connection: socket.socket, rate_bps: float) -> None:
    low, high = _WINDOW_BYTES
    window_bytes = int(min(max(rate_bps * _WINDOW_S / 8, low), high))
    # Linux sets aside twice as much, for its own book-keeping (socket(7), SO_SNDBUF).
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, window_bytes)
    # The one that every system has; what a lab's hosts use may be the thing to be measured.
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")


def _send_until_told(connection: socket.socket) -> None:
    """Send until the other end says something, or that it has seen enough."""
    connection.setblocking(False)
    while True:
        readable, writable, _ = select.select([connection], [connection], [])
        if readable:
            connection.setblocking(True)
            return
        if writable:
            connection.send(_CHUNK)


def _drain(connection: socket.socket) -> None:
    """Read what is still on its way, so that the link is empty again for whoever comes next."""
    while connection.recv(1 << 20):
        pass


def _receive(connection: socket.socket, rate_bps: float) -> float:
    """Read for a while, and return the payload bits per second after the first read."""
    seconds = max(_LEAST_S, _LEAST_BITS / rate_bps)
    connection.recv(1 << 20)
    start_s = now_s = time.monotonic()
    count = 0
    while now_s < start_s + seconds:
        count += len(connection.recv(1 << 20))
        now_s = time.monotonic()
    return count * 8 / (now_s - start_s)


def main() -> None:
    """Answer or ask, as the command line says."""
    kind, address, *rest = sys.argv[1:]
    if kind == "answer":
        answer(address)
        return
    port, *rates = rest
    if kind == "rtt":
        print(json.dumps(rtts_s(address, int(port))))
        return
    there_bps, back_bps = map(float, rates)
    there = rate_there_bps(address, int(port), there_bps)
    print(json.dumps([there, rate_back_bps(address, int(port), back_bps)]))


if __name__ == "__main__":
    main()
