"""Tries whether a host lets another one in, by TCP and by UDP, and which packets get through.

``python3 door.py listen ADDRESS PORT [ADDRESS PORT ...]`` opens ports for some seconds and answers
each datagram. ``python3 door.py knock ADDRESS PORT [ADDRESS PORT ...]`` tries such ports, many at
the same time, and prints a JSON list with what it found at each. Python 3.9 and the standard
library only.
"""

from __future__ import annotations

import errno
import json
import select
import socket
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Any

LISTENING = "listening"
OPEN_S = 30.0
"""How long a port stays open, should nobody end it before."""
CONNECT_S = 3.0
# Of datagrams some may be lost.
_TRIES, _TRY_S = 3, 0.5
# Each takes up to `CONNECT_S` and the tries; a port does not stay open for long.
_AT_ONCE = 128
# Linux (ip(7), ipv6(7)): the options that forbid fragments and tell the known MTU of the path, and
# the length of the headers.
_V4 = (socket.IPPROTO_IP, 10, 14, 28)
_V6 = (socket.IPPROTO_IPV6, 23, 24, 48)
_NO_FRAGMENTS = 2
_LONGEST = 65507


def listen(places: Sequence[tuple[str, int]]) -> None:
    """Open ports for `OPEN_S`, and say so. Raises OSError."""
    with ExitStack() as opened:
        tcps, udps = [], []
        for address, port in places:
            family = _family(address)
            tcp = opened.enter_context(socket.socket(family, socket.SOCK_STREAM))
            udp = opened.enter_context(socket.socket(family, socket.SOCK_DGRAM))
            tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tcp.bind((address, port))
            tcp.listen()
            udp.bind((address, port))
            tcps.append(tcp)
            udps.append(udp)
        print(LISTENING, flush=True)
        end = time.monotonic() + OPEN_S
        while (left_s := end - time.monotonic()) > 0:
            for ready in select.select([*tcps, *udps], [], [], left_s)[0]:
                if ready in tcps:
                    ready.accept()[0].close()
                    continue
                with suppress(OSError):  # an earlier answer was refused
                    data, sender = ready.recvfrom(1 << 16)
                    ready.sendto(data[:1], sender)


def probe_port(address: str, port: int) -> dict[str, Any]:
    """Try a port: ``tcp`` and ``udp`` are why they fail, empty if they do not.

    ``mtu_bytes`` is the longest packet that is said to get there, and ``mtu_holds`` whether one
    did; both are missing where the system does not know.
    """
    return {"tcp": _knock_tcp(address, port), **_knock_udp(address, port)}


def _knock_tcp(address: str, port: int) -> str:
    with socket.socket(_family(address), socket.SOCK_STREAM) as tcp:
        tcp.settimeout(CONNECT_S)
        try:
            tcp.connect((address, port))
        except OSError as error:
            return _why(error)
    return ""


def _knock_udp(address: str, port: int) -> dict[str, Any]:
    family = _family(address)
    with socket.socket(family, socket.SOCK_DGRAM) as udp:
        try:
            udp.connect((address, port))
            why = _answer(udp, 1)
        except OSError as error:
            why = _why(error)
        found: dict[str, Any] = {"udp": why}
        if not why and sys.platform == "linux":
            found.update(_mtu(udp, _V6 if family == socket.AF_INET6 else _V4))
    return found


def _mtu(udp: socket.socket, options: tuple[int, int, int, int]) -> dict[str, Any]:
    level, discover, known, headers = options
    udp.setsockopt(level, discover, _NO_FRAGMENTS)
    tried = 0
    while (mtu := udp.getsockopt(level, known)) != tried:  # a router has told of less
        tried = mtu
        try:
            if not _answer(udp, min(mtu - headers, _LONGEST)):
                return {"mtu_bytes": mtu, "mtu_holds": True}
        except OSError as error:
            if error.errno != errno.EMSGSIZE:
                break
    return {"mtu_bytes": mtu, "mtu_holds": False}


def _answer(udp: socket.socket, length: int) -> str:
    """Send a datagram until it is answered; returns why it is not. Raises OSError."""
    for _ in range(_TRIES):
        udp.send(bytes(length))
        if select.select([udp], [], [], _TRY_S)[0]:
            udp.recv(16)
            return ""
    return "no answer"


def _why(error: OSError) -> str:
    return "no answer" if isinstance(error, socket.timeout) else error.strerror or str(error)


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def main(words: list[str]) -> str | None:
    """Listen or knock, as the words say; returns why that failed."""
    pairs = zip(words[1::2], words[2::2])  # noqa: B905 (Python 3.9)
    places = [(address, int(port)) for address, port in pairs]
    if words[0] == "knock":
        with ThreadPoolExecutor(min(len(places), _AT_ONCE)) as pool:
            print(json.dumps(list(pool.map(lambda place: probe_port(*place), places))))
        return None
    try:
        listen(places)
    except OSError as error:
        return _why(error)
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
