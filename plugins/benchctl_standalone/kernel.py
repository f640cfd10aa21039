"""Kernel features that Python does not name, as far as this system has them.

None means that a feature is missing. The numbers are those of Linux's asm-generic/socket.h and
linux/{udp,tcp}.h, which every architecture but alpha, parisc and sparc shares.
"""

from __future__ import annotations

import os
import socket
import sys
import termios
from typing import Any

_LINUX = sys.platform.startswith("linux") and not os.uname().machine.startswith(
    ("alpha", "parisc", "sparc")
)


_DARWIN_TTL = (24, 24) if sys.platform == "darwin" else None
_HOP_LIMIT = (
    (socket.IPV6_RECVHOPLIMIT, socket.IPV6_HOPLIMIT)
    if hasattr(socket, "IPV6_RECVHOPLIMIT") and hasattr(socket, "IPV6_HOPLIMIT")
    else None
)


def _on_linux(number: int) -> int | None:
    return number if _LINUX else None


class Kernel:
    """Options and calls that some systems lack; tests set one to None to simulate that."""

    TCP_CONGESTION: int | None = getattr(socket, "TCP_CONGESTION", None)
    TCP_INFO: int | None = _on_linux(11)
    OUTPUT_QUEUE: int | None = _on_linux(termios.TIOCOUTQ)
    BIND_DEVICE: int | None = _on_linux(25)
    PACING_RATE: int | None = _on_linux(47)
    RECEIVE_BUFFER_FORCE: int | None = _on_linux(33)
    ATTACH_FILTER: int | None = _on_linux(26)
    DETACH_FILTER: int | None = _on_linux(27)
    MEMINFO: int | None = _on_linux(55)
    TIMESTAMP_NS: int | None = _on_linux(35)
    TIMESTAMPING: int | None = _on_linux(37)
    # Options and kinds of ancillary data: Python names those of IPv6, where the system has them.
    RECEIVE_TTL: tuple[int, int] | None = (12, 2) if _LINUX else _DARWIN_TTL
    RECEIVE_HOP_LIMIT: tuple[int, int] | None = _HOP_LIMIT
    PACKET_INFO: int | None = _on_linux(8)
    UDP_SEGMENT: int | None = _on_linux(103)
    UDP_GRO: int | None = _on_linux(104)
    # MSG_PROBE: a send that ends before the packet is made.
    PROBE: int | None = _on_linux(0x10)
    # Elsewhere MSG_TRUNC is accepted for TCP but drops nothing.
    TCP_DISCARD: int | None = _on_linux(0x20)
    SENDFILE: Any = getattr(os, "sendfile", None)
    MEMFD: Any = getattr(os, "memfd_create", None)
