"""UDP sockets of test sessions: where they are bound, and what the kernel says of each packet.

Test packets leave with a TTL of 255 (RFC 4656, section 4.1.2; RFC 8762, section 4.2.1), so the
receiver sees how many routers they passed. The kernel's timestamps are on the system's clock.
"""

from __future__ import annotations

import random
import socket
import struct
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

from benchctl_standalone.errors import Problem, describe_os_error
from benchctl_standalone.kernel import Kernel
from benchctl_standalone.sockets import set_option

from .clock import SECOND_NS

TTL = 255
PACKET_LIMIT = 65536
# What arrives in a second at 10,000 packets/s: for so long may the receiver be kept from running.
_RECEIVE_BUFFER_BYTES = 16 << 20
_ANCILLARY_BYTES = 256
_TIMESPEC = struct.Struct("@ll")
_INT = struct.Struct("@i")
# linux/net_tstamp.h: software transmit timestamps, numbered from 0, without the packet.
_TRANSMIT_STAMPS = 1 << 1 | 1 << 4 | 1 << 7 | 1 << 11
# struct sock_extended_err (linux/errqueue.h) ends with the packet's number; the kernel's own
# errors have another origin.
_EXTENDED_ERROR = struct.Struct("@IBBBBII")
_FROM_TIMESTAMPING = 4
# linux/filter.h: a program for packets, whose loads count from the IP header with this offset.
_INSTRUCTION = struct.Struct("@HBBI")
_PROGRAM = struct.Struct("@HP")
_LOAD_WORD, _JUMP_EQUAL, _RETURN = 0x20, 0x15, 0x06
_NETWORK_HEADER = 0xFFF00000
_SOURCE_AT = {socket.AF_INET: 12, socket.AF_INET6: 8}
_RECEIVED_ERROR = {(socket.IPPROTO_IP, 11), (socket.IPPROTO_IPV6, 25)}


class Arrival(NamedTuple):
    """A packet: when it arrived on the system's clock, from where, and its TTL if known."""

    data: bytes
    received_ns: int
    address: Any
    ttl: int | None
    local: tuple[int, int, bytes] | None = None
    """With `note_destinations`: what lets an answer leave from the address that it came to."""


def at_port(address: Any, port: int) -> Any:
    """Return the address of a TCP connection's end with another port, for a UDP socket.

    IPv4 that is mapped into IPv6 becomes IPv4: its test packets are IPv4, with the TTL of such.
    """
    host, _, *rest = address
    if host.startswith("::ffff:") and "." in host:
        return host[len("::ffff:") :], port
    return (host, port, *rest)


def open_endpoint(address: Any, ports: range | None = None, dscp: int = 0) -> socket.socket:
    """Return a non-blocking UDP socket at an address, for test packets in either direction.

    A port 0 is one of ``ports``, or any if that is None. Raises Problem.
    """
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_DGRAM)
    try:
        if family == socket.AF_INET6:  # The TTL of mapped IPv4 could be neither set nor read.
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        _bind(sock, address, ports)
        sock.setblocking(False)
        _prepare(sock, family, dscp)
    except BaseException:
        sock.close()
        raise
    return sock


def _bind(sock: socket.socket, address: Any, ports: range | None) -> None:
    # Ports in a random order: nobody can guess the next session's (RFC 6056).
    host, port, *rest = address
    wanted = [port] if port or ports is None else random.sample(ports, len(ports))
    for number, candidate in enumerate(wanted, 1):
        try:
            sock.bind((host, candidate, *rest))
            return
        except OSError as error:
            if number == len(wanted):
                reason = f"no UDP port for test packets at {host}: {describe_os_error(error)}"
                raise Problem("tool", reason) from error


def _prepare(sock: socket.socket, family: int, dscp: int) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)
    if Kernel.RECEIVE_BUFFER_FORCE is not None:
        with suppress(PermissionError):
            sock.setsockopt(socket.SOL_SOCKET, Kernel.RECEIVE_BUFFER_FORCE, _RECEIVE_BUFFER_BYTES)
    if Kernel.TIMESTAMP_NS is not None:
        sock.setsockopt(socket.SOL_SOCKET, Kernel.TIMESTAMP_NS, 1)
    if family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, TTL)
        if Kernel.RECEIVE_HOP_LIMIT is not None:
            sock.setsockopt(socket.IPPROTO_IPV6, Kernel.RECEIVE_HOP_LIMIT[0], 1)
        set_option(sock, socket.IPPROTO_IPV6, socket.IPV6_TCLASS, dscp << 2, "DSCP")
    else:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, TTL)
        if Kernel.RECEIVE_TTL is not None:
            sock.setsockopt(socket.IPPROTO_IP, Kernel.RECEIVE_TTL[0], 1)
        set_option(sock, socket.IPPROTO_IP, socket.IP_TOS, dscp << 2, "DSCP")


def receive(sock: socket.socket, buffer: memoryview) -> Arrival:
    """Return the next packet. Raises BlockingIOError if there is none."""
    size, ancillary, _, address = sock.recvmsg_into([buffer], _ANCILLARY_BYTES)
    received_ns, ttl, local = 0, None, None
    option = Kernel.RECEIVE_HOP_LIMIT if sock.family == socket.AF_INET6 else Kernel.RECEIVE_TTL
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == Kernel.TIMESTAMP_NS:
            seconds, nanoseconds = _TIMESPEC.unpack_from(data)
            received_ns = seconds * SECOND_NS + nanoseconds
        elif option and level != socket.SOL_SOCKET and kind == option[1]:
            ttl = _INT.unpack(data)[0] if len(data) == _INT.size else data[0]
        elif level == socket.IPPROTO_IPV6 and kind == socket.IPV6_PKTINFO:
            local = level, kind, data
        elif level == socket.IPPROTO_IP and kind == Kernel.PACKET_INFO:
            # Without the device, whose first address would go before this one (ip(7)).
            local = level, kind, bytes(4) + data[4:8] + bytes(4)
    return Arrival(bytes(buffer[:size]), received_ns or time.time_ns(), address, ttl, local)


def note_destinations(sock: socket.socket) -> None:
    """Let the kernel say to which of this host's addresses each packet came."""
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
    elif Kernel.PACKET_INFO is not None:
        sock.setsockopt(socket.IPPROTO_IP, Kernel.PACKET_INFO, 1)


def drop_hosts(sock: socket.socket, hosts: Iterable[str]) -> None:
    """Let the kernel drop all that comes from these hosts, and nothing else any longer.

    Of IPv6 the whole /64 of each, but of a link-local host. Raises OSError. No effect where the
    system has no filters.
    """
    if Kernel.ATTACH_FILTER is None or Kernel.DETACH_FILTER is None:
        return
    program = b"".join(_of_host(sock.family, host) for host in hosts)
    if not program:
        sock.setsockopt(socket.SOL_SOCKET, Kernel.DETACH_FILTER, 0)
        return
    import ctypes  # Only imported in a flood.

    program += _INSTRUCTION.pack(_RETURN, 0, 0, 0xFFFFFFFF)
    kept = ctypes.create_string_buffer(program)
    packed = _PROGRAM.pack(len(program) // _INSTRUCTION.size, ctypes.addressof(kept))
    sock.setsockopt(socket.SOL_SOCKET, Kernel.ATTACH_FILTER, packed)


def _of_host(family: int, host: str) -> bytes:
    """Return the instructions that drop the packets of one host, and go on with all others."""
    octets = socket.inet_pton(family, host.partition("%")[0])
    if family == socket.AF_INET6 and (octets[0], octets[1] & 0xC0) != (0xFE, 0x80):
        octets = octets[:8]
    at, words = _SOURCE_AT[socket.AddressFamily(family)], len(octets) // 4
    code = b""
    for number in range(words):
        (word,) = struct.unpack_from("!I", octets, 4 * number)
        code += _INSTRUCTION.pack(_LOAD_WORD, 0, 0, _NETWORK_HEADER + at + 4 * number)
        code += _INSTRUCTION.pack(_JUMP_EQUAL, 0, 2 * (words - 1 - number) + 1, word)
    return code + _INSTRUCTION.pack(_RETURN, 0, 0, 0)


def answer(sock: socket.socket, arrival: Arrival, data: bytes) -> None:
    """Send an answer to where a packet came from. Raises OSError."""
    sock.sendmsg([data], [arrival.local] if arrival.local else [], 0, arrival.address)


def stamp_transmissions(sock: socket.socket) -> bool:
    """Let the kernel note when it passes each packet to the device; False if it cannot."""
    if Kernel.TIMESTAMPING is None:
        return False
    try:
        sock.setsockopt(socket.SOL_SOCKET, Kernel.TIMESTAMPING, _TRANSMIT_STAMPS)
    except OSError:
        return False
    return True


def transmission(sock: socket.socket) -> tuple[int, int]:
    """Return the number of a packet, from 0 in the order of sending, and when it left.

    Raises BlockingIOError if the kernel has noted no more.
    """
    while True:
        _, ancillary, _, _ = sock.recvmsg(0, _ANCILLARY_BYTES, socket.MSG_ERRQUEUE)
        number, left_ns = None, 0
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == Kernel.TIMESTAMPING:
                seconds, nanoseconds = _TIMESPEC.unpack_from(data)
                left_ns = seconds * SECOND_NS + nanoseconds
            elif (level, kind) in _RECEIVED_ERROR:
                error = _EXTENDED_ERROR.unpack_from(data)
                number = error[-1] if error[1] == _FROM_TIMESTAMPING else None
        if number is not None and left_ns:
            return number, left_ns
