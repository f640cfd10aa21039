"""Sets the requested options of a stream's socket, and reads the effective ones.

An option that the system lacks is noted in ``unavailable`` and skipped: the measurement continues
without it. One that the system has and rejects is the user's error: a `Problem`.
"""

from __future__ import annotations

import fcntl
import math
import socket
import struct
from contextlib import suppress
from typing import Any

from benchctl_standalone.kernel import Kernel
from benchctl_standalone.sockets import set_option

from ..protocol.settings import MeasurementSettings

_TCP_CONGESTION_BYTES = 16
_INT = struct.Struct("@i")
_TIMEVAL = struct.Struct("@ll")
# What a fast sender sends while the receiver is not running for some milliseconds. The kernel caps
# it at net.core.rmem_max, unless the process is privileged.
_UDP_BUFFER_BYTES = 32 << 20


def set_options(
    sock: socket.socket, settings: MeasurementSettings, unavailable: dict[str, str]
) -> None:
    """Set the options of a stream, best before it connects. Raises Problem."""
    window = settings.window_bytes
    if window:
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            set_option(sock, socket.SOL_SOCKET, option, window, "window")
    elif settings.protocol == "udp":
        _enlarge_receive_buffer(sock)
    if settings.dscp is not None:
        level, option = _traffic_class(sock)
        set_option(sock, level, option, settings.dscp << 2, "DSCP")
        with suppress(OSError):  # An IPv6 socket may carry IPv4, which has its own option.
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, settings.dscp << 2)
    if settings.protocol == "tcp":
        _set_tcp_options(sock, settings, unavailable)


def _set_tcp_options(
    sock: socket.socket, settings: MeasurementSettings, unavailable: dict[str, str]
) -> None:
    if settings.no_delay:
        set_option(sock, socket.IPPROTO_TCP, socket.TCP_NODELAY, 1, "no-delay")
    if settings.mss_bytes:
        set_option(sock, socket.IPPROTO_TCP, socket.TCP_MAXSEG, settings.mss_bytes, "MSS")
    if settings.congestion_control:
        if Kernel.TCP_CONGESTION is None:
            unavailable["congestion_control"] = "this system cannot set it"
        else:
            name = settings.congestion_control.encode()
            what = f"congestion control {settings.congestion_control}"
            set_option(sock, socket.IPPROTO_TCP, Kernel.TCP_CONGESTION, name, what)


def _enlarge_receive_buffer(sock: socket.socket) -> None:
    """Set the largest receive buffer that this process may have, for a late receiver."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _UDP_BUFFER_BYTES)
    if Kernel.RECEIVE_BUFFER_FORCE is not None:
        with suppress(PermissionError):
            sock.setsockopt(socket.SOL_SOCKET, Kernel.RECEIVE_BUFFER_FORCE, _UDP_BUFFER_BYTES)


def _traffic_class(sock: socket.socket) -> tuple[int, int]:
    if sock.family == socket.AF_INET6:
        return socket.IPPROTO_IPV6, socket.IPV6_TCLASS
    return socket.IPPROTO_IP, socket.IP_TOS


def set_patience(sock: socket.socket, option: int, seconds: float) -> None:
    """Set a timeout of a blocking send (SO_SNDTIMEO) or receive (SO_RCVTIMEO).

    Python's own timeouts would cost one more system call for each call.
    """
    whole = int(seconds)
    limit = _TIMEVAL.pack(whole, int((seconds - whole) * 1e6))
    sock.setsockopt(socket.SOL_SOCKET, option, limit)


def get_patience(sock: socket.socket, option: int) -> float:
    """Return the timeout of a blocking send or receive, in seconds."""
    seconds, micros = _TIMEVAL.unpack(sock.getsockopt(socket.SOL_SOCKET, option, _TIMEVAL.size))
    return seconds + micros / 1e6 or math.inf


def notice_absence(sock: socket.socket, seconds: float) -> None:
    """Break a TCP connection if its peer's host is silent, or accepts nothing, for so long.

    A host that has vanished acknowledges neither data (TCP_USER_TIMEOUT, RFC 5482) nor probes.
    Without these options the kernel would notice after hours.
    """
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_USER_TIMEOUT", seconds * 1000),
        ("TCP_KEEPIDLE", seconds / 2),
        ("TCP_KEEPINTVL", seconds / 6),
        ("TCP_KEEPCNT", 3),
    ):
        if hasattr(socket, name):  # Some systems lack one or the other.
            with suppress(OSError):
                option = getattr(socket, name)
                sock.setsockopt(socket.IPPROTO_TCP, option, max(1, round(value)))


def unacknowledged_bytes(sock: socket.socket) -> int:
    """Return how much sent data the peer has not acknowledged (SIOCOUTQ, tcp(7)).

    At least one byte if the system does not report it.
    """
    if Kernel.OUTPUT_QUEUE is None:
        return 1
    answer = fcntl.ioctl(sock, Kernel.OUTPUT_QUEUE, bytes(_INT.size))
    return int(_INT.unpack(answer)[0])


def kernel_paces(sock: socket.socket, rate_bps: float) -> bool:
    """Ask the kernel to pace a TCP socket; False if it cannot (SO_MAX_PACING_RATE)."""
    if Kernel.PACING_RATE is None:
        return False
    rate_bytes = round(rate_bps / 8)
    try:
        # Before Linux 4.20 the value has 32 bits, and a longer one is cut on little-endian only.
        form = "@L" if rate_bytes >= 1 << 32 else "@I"
        sock.setsockopt(socket.SOL_SOCKET, Kernel.PACING_RATE, struct.pack(form, rate_bytes))
    except (OSError, struct.error):
        return False
    return True


def effective_options(sock: socket.socket, sends: bool) -> dict[str, Any]:
    """Return the effective options of a socket, by the names of the results."""
    buffer = socket.SO_SNDBUF if sends else socket.SO_RCVBUF
    name = "window_bytes" if sends else "receiver_window_bytes"
    facts: dict[str, Any] = {name: sock.getsockopt(socket.SOL_SOCKET, buffer)}
    if sock.type == socket.SOCK_STREAM and sends:
        facts["mss_bytes"] = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
        facts["no_delay"] = bool(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        if Kernel.TCP_CONGESTION is not None:
            found = sock.getsockopt(
                socket.IPPROTO_TCP, Kernel.TCP_CONGESTION, _TCP_CONGESTION_BYTES
            )
            facts["congestion_control"] = found.partition(b"\0")[0].decode()
    if sends:
        level, option = _traffic_class(sock)
        facts["dscp"] = sock.getsockopt(level, option) >> 2
    return facts
