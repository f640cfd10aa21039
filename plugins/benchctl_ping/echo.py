"""echo: a ping for hosts that have none, in one file of the standard library, for Python 3.9.

    python3 -I echo.py -c 10 -D 192.0.2.1
    ssh HOST python3 -I - -c 10 -D 192.0.2.1 < echo.py

Its options and its output are those of iputils, as far as it has them, so the parser of one reads
the other; times have all their digits. It needs no rights where the kernel lets a user have ICMP
sockets (ping_group_range in icmp(7)); elsewhere it needs CAP_NET_RAW.

As in iputils, a probe is sent when it is passed to the kernel, and a reply has arrived when the
kernel says so (SO_TIMESTAMPNS in socket(7)), however late this program runs. Both times are of the
wall clock. Systems without such timestamps use the time when the reply was read.
"""

from __future__ import annotations

import argparse
import math
import os
import select
import signal
import socket
import struct
import sys
import time
from contextlib import suppress
from typing import NamedTuple

VERSION = "1.0"
SECOND_NS = 10**9
# As iputils: without replies, a flood is a hundred probes a second.
FLOOD_NS = 10**7

# Types of ICMP (RFC 792) and ICMPv6 (RFC 4443).
REQUEST, REPLY = {4: 8, 6: 128}, {4: 0, 6: 129}
HEAD = struct.Struct("!BBHHH")
"""Type, code, checksum, identifier, sequence number."""
SECRET_BYTES = 8
"""Begins the payload: what only this program knows, so a forged reply does not count."""

# Numbers of Linux that Python has no names for: asm-generic/socket.h, linux/in.h, linux/in6.h.
LINUX = sys.platform.startswith("linux")
SO_BINDTODEVICE = 25
SO_TIMESTAMPNS = 35
IP_MTU_DISCOVER, IPV6_MTU_DISCOVER, PMTUDISC_DO = 10, 23, 2
IP_RECVERR, IPV6_RECVERR = 11, 25
IP_RECVTTL = 12
# struct sock_extended_err of linux/errqueue.h: errno, origin, type, code, padding, info, data.
EXTENDED_ERROR = struct.Struct("=IBBBBII")
ORIGIN_LOCAL = 1
TIMESPEC = struct.Struct("@ll")

UNREACHABLE = {
    4: ("Destination Net Unreachable", "Destination Host Unreachable",
        "Destination Protocol Unreachable", "Destination Port Unreachable",
        "Frag needed and DF set (mtu = {info})"),
    6: ("Destination unreachable: No route",
        "Destination unreachable: Administratively prohibited",
        "Destination unreachable: Beyond scope of source address",
        "Destination unreachable: Address unreachable",
        "Destination unreachable: Port unreachable"),
}  # fmt: skip
OTHER_ERRORS = {
    (4, 3): "Destination unreachable, code {code}",
    (4, 11): "Time to live exceeded",
    (6, 1): "Destination unreachable, code {code}",
    (6, 2): "Packet too big: mtu={info}",
    (6, 3): "Time exceeded: Hop limit",
}


class Reply(NamedTuple):
    """An answer to one of our probes."""

    number: int
    length: int
    address: str
    ttl: int | None
    arrived_ns: int
    sent_ns: int


def main() -> int:
    """Ping; returns 0 if a reply came, 1 if none did, 2 if there was nothing to wait for."""
    options = parse_options()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        found = socket.getaddrinfo(options.host, None, options.family, socket.SOCK_DGRAM)
        family, _, _, _, where = found[0]
        version = 6 if family == socket.AF_INET6 else 4
        pinger = Pinger(open_socket(family), version, options.length)
        set_options(pinger, options)
        # The kernel passes on packets of this host only.
        pinger.sock.connect(where)
    except OSError as error:
        name = f"{options.host}: " if isinstance(error, socket.gaierror) else ""
        print(f"ping: {name}{error.strerror}", file=sys.stderr)
        return 2
    return Session(pinger, str(where[0]), options).run()


def parse_options() -> argparse.Namespace:
    """Return the command line; an error ends the program with exit code 2."""
    parser = argparse.ArgumentParser(
        prog="echo", description="A ping for hosts that have none; options as in ping(8).",
        allow_abbrev=False,
        # benchctl reads the version, so it is one line however narrow the terminal is.
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add = parser.add_argument
    add("-V", action="version", version=f"echo {VERSION}")
    add("-4", dest="family", action="store_const", const=socket.AF_INET, default=0)
    add("-6", dest="family", action="store_const", const=socket.AF_INET6)
    add("-c", dest="count", type=int, default=sys.maxsize, help="probes to send")
    add("-i", dest="interval", type=float, default=1.0, help="seconds between two probes")
    add("-s", dest="length", type=int, default=56, help="bytes of payload")
    add("-W", dest="timeout", type=float, default=10.0, help="seconds to wait for the last reply")
    add("-Q", dest="tos", type=int, default=0, help="type of service, the DSCP times four")
    add("-t", dest="ttl", type=int, help="time to live")
    add("-M", dest="fragment", choices=["do"], help="do: forbid fragmentation")
    add("-I", dest="sources", action="append", default=[], help="source address or device")
    add("-f", dest="flood", action="store_true", help="send at each reply, or after 10 ms")
    add("-q", dest="quiet", action="store_true", help="print only the summary")
    add("-D", dest="stamps", action="store_true", help="print the time of each line")
    add("-O", dest="silences", action="store_true", help="report probes not yet answered")
    add("-n", action="store_true", help="print addresses, as always")
    add("host")
    options = parser.parse_args()
    if not 0 <= options.length <= 65507 or options.interval < 0 or options.count < 1:
        parser.error("a length, an interval or a count is out of range")
    return options


def open_socket(family: int) -> socket.socket:
    """Return an ICMP socket: one for users if the kernel gives it, else one for root."""
    protocol = socket.IPPROTO_ICMPV6 if family == socket.AF_INET6 else socket.IPPROTO_ICMP
    try:
        return socket.socket(family, socket.SOCK_DGRAM, protocol)
    except OSError as error:
        refused = error
    try:
        return socket.socket(family, socket.SOCK_RAW, protocol)
    except PermissionError:
        refused.strerror = f"socket: {refused.strerror}"
        raise refused from None


def set_options(pinger: Pinger, options: argparse.Namespace) -> None:
    """Set what the user wants of the packets, and what the kernel shall tell. Raises OSError."""
    sock, v6 = pinger.sock, pinger.version == 6
    level = socket.IPPROTO_IPV6 if v6 else socket.IPPROTO_IP
    sock.setblocking(False)
    wanted = [
        (socket.SOL_SOCKET, SO_TIMESTAMPNS, 1, LINUX),
        (level, socket.IPV6_RECVHOPLIMIT if v6 else IP_RECVTTL, 1, v6 or LINUX),
        (level, IPV6_RECVERR if v6 else IP_RECVERR, 1, LINUX),
        (level, socket.IPV6_TCLASS if v6 else socket.IP_TOS, options.tos, options.tos),
        (level, socket.IPV6_UNICAST_HOPS if v6 else socket.IP_TTL, options.ttl, options.ttl),
        (level, IPV6_MTU_DISCOVER if v6 else IP_MTU_DISCOVER, PMTUDISC_DO, options.fragment),
        # A burst of replies while this program does not run.
        (socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20, True),
    ]
    for where, option, value, asked in wanted:
        if asked:
            sock.setsockopt(where, option, value)
    for source in options.sources:
        bind(sock, source)


def bind(sock: socket.socket, source: str) -> None:
    """Send from an address or over a device. Raises OSError."""
    what = "bind"
    try:
        try:
            found = socket.getaddrinfo(source, 0, sock.family, flags=socket.AI_NUMERICHOST)
        except socket.gaierror:
            what = f"SO_BINDTODEVICE {source}"
            sock.setsockopt(socket.SOL_SOCKET, SO_BINDTODEVICE, source.encode())
        else:
            sock.bind(found[0][4])
    except OSError as error:
        error.strerror = f"{what}: {error.strerror}"
        raise


class Pinger:
    """Sends probes and reads replies and errors; knows no time but that of the packets."""

    def __init__(self, sock: socket.socket, version: int, length: int) -> None:
        self.sock = sock
        self.version = version
        self._raw = sock.type == socket.SOCK_RAW
        self._identifier = int.from_bytes(os.urandom(2), "big")
        secret, rest = os.urandom(SECRET_BYTES), bytes(i & 0xFF for i in range(length))
        self._payload = (secret + rest[SECRET_BYTES:])[:length]
        # By number: it has 16 bits.
        self._sent_ns = [0] * (1 << 16)

    def send(self, number: int) -> None:
        """Send a probe. Raises OSError."""
        number &= 0xFFFF
        head = HEAD.pack(REQUEST[self.version], 0, 0, self._identifier, number)
        packet = head + self._payload
        if self._raw and self.version == 4:  # Otherwise the kernel computes it.
            packet = packet[:2] + checksum(packet).to_bytes(2, "big") + packet[4:]
        self._sent_ns[number] = time.time_ns()
        self.sock.send(packet)

    def receive(self) -> Reply | None:
        """Return the next reply, None for another packet. Raises OSError, BlockingIOError too."""
        data, ancillary, _, source = self.sock.recvmsg(65536, 512)
        arrived_ns = time.time_ns()
        ttl = None
        if self._raw and self.version == 4:
            ttl, data = data[8], data[(data[0] & 15) * 4 :]
        for _, kind, value in ancillary:
            if kind == SO_TIMESTAMPNS and len(value) == TIMESPEC.size:
                seconds, nanoseconds = TIMESPEC.unpack(value)
                arrived_ns = seconds * SECOND_NS + nanoseconds
            elif kind in (socket.IP_TTL, socket.IPV6_HOPLIMIT) and len(value) == 4:
                ttl = int.from_bytes(value, sys.byteorder)
        if len(data) < HEAD.size:
            return None
        kind, _, _, identifier, number = HEAD.unpack_from(data)
        if kind != REPLY[self.version] or (self._raw and identifier != self._identifier):
            return None
        if data[HEAD.size :] != self._payload or not self._sent_ns[number]:
            return None
        return Reply(number, len(data), source[0], ttl, arrived_ns, self._sent_ns[number])

    def error(self) -> tuple[int, str, str] | None:
        """Return the next error of the kernel's queue: number, who reported it, its text.

        Raises BlockingIOError if there is none.
        """
        data, ancillary, _, _ = self.sock.recvmsg(65536, 512, getattr(socket, "MSG_ERRQUEUE", 0))
        for _, _, value in ancillary:
            if len(value) < EXTENDED_ERROR.size + 4 or len(data) < HEAD.size:
                continue
            _, origin, kind, code, _, info, _ = EXTENDED_ERROR.unpack_from(value)
            number = HEAD.unpack_from(data)[4]
            if origin == ORIGIN_LOCAL:
                return number, "", f"local error: message too long, mtu: {info}"
            # A struct sockaddr_in or sockaddr_in6.
            address = value[EXTENDED_ERROR.size :]
            host = address[8:24] if self.version == 6 else address[4:8]
            offender = socket.inet_ntop(self.sock.family, host)
            return number, offender, self._text(kind, code, info)
        return None

    def _text(self, kind: int, code: int, info: int) -> str:
        unreachable = UNREACHABLE[self.version]
        if kind == (1 if self.version == 6 else 3) and code < len(unreachable):
            text = unreachable[code]
        else:
            text = OTHER_ERRORS.get((self.version, kind), "ICMP type {kind}, code {code}")
        return text.format(kind=kind, code=code, info=info)


def checksum(packet: bytes) -> int:
    """Return the Internet checksum (RFC 1071)."""
    padded = packet + b"\0" * (len(packet) % 2)
    total: int = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Session:
    """One run: when to send, what was answered, and what is printed."""

    def __init__(self, pinger: Pinger, address: str, options: argparse.Namespace) -> None:
        self._pinger = pinger
        self._address = address
        self._options = options
        self._answered = bytearray()
        self._sent = self._received = self._duplicates = self._errors = 0
        self._least_ns: float = math.inf
        self._most_ns = self._sum_ns = self._squares_ns = 0
        self._first_ns = self._last_ns = 0

    def run(self) -> int:
        options = self._options
        address = self._address
        whole = options.length + (48 if self._pinger.version == 6 else 28)
        print(f"PING {options.host} ({address}) {options.length}({whole}) bytes of data.")
        sys.stdout.flush()
        with suppress(KeyboardInterrupt):
            self._ping()
        self._summarize()
        return 0 if self._received else 1

    def _ping(self) -> None:
        gap_ns = FLOOD_NS if self._options.flood else round(self._options.interval * SECOND_NS)
        due_ns = self._first_ns = time.monotonic_ns()
        while True:
            self._send()
            if self._sent == self._options.count:
                break
            # The schedule is absolute: lateness does not add up.
            due_ns += gap_ns
            self._take_until(due_ns, self._options.flood)
            if self._options.flood:
                due_ns = time.monotonic_ns()
            if self._options.silences and not self._answered[-1]:
                self._say(f"no answer yet for icmp_seq={self._sent & 0xFFFF}", time.time_ns())
        self._take_until(self._last_ns + round(self._options.timeout * SECOND_NS), True)

    def _send(self) -> None:
        self._sent += 1
        self._answered.append(0)
        self._last_ns = time.monotonic_ns()
        for _ in range(2):
            try:
                self._pinger.send(self._sent)
            except OSError as error:
                # It may be the error of an earlier probe, which the queue tells better.
                if not self._take_errors():
                    print(f"ping: sendmsg: {error.strerror}", file=sys.stderr)
                    return
            else:
                return

    def _take_until(self, until_ns: int, all_suffice: bool) -> None:
        """Take what arrives until a time, or until nothing is missing if that is enough."""
        while not (all_suffice and self._received >= self._sent):
            left_s = (until_ns - time.monotonic_ns()) / SECOND_NS
            ready, _, _ = select.select([self._pinger.sock], [], [], max(left_s, 0))
            if not ready:
                return
            self._take_errors()
            try:
                reply = self._pinger.receive()
            except OSError:
                continue  # Nothing, or the error that was just taken from the queue.
            if reply:
                self._take(reply)

    def _take(self, reply: Reply) -> None:
        number = self._sent - ((self._sent - reply.number) & 0xFFFF)
        if number < 1:
            return  # Never sent.
        again = self._answered[number - 1]
        self._answered[number - 1] = 1
        self._duplicates += again
        self._received += not again
        rtt_ns = max(reply.arrived_ns - reply.sent_ns, 0)
        self._least_ns, self._most_ns = min(self._least_ns, rtt_ns), max(self._most_ns, rtt_ns)
        self._sum_ns += rtt_ns
        self._squares_ns += rtt_ns * rtt_ns
        ttl = f" ttl={reply.ttl}" * (reply.ttl is not None)
        self._say(
            f"{reply.length} bytes from {reply.address}: icmp_seq={number & 0xFFFF}{ttl}"
            f" time={rtt_ns / 1e6:.6f} ms{' (DUP!)' * again}",
            reply.arrived_ns,
        )

    def _take_errors(self) -> bool:
        """Report the errors in the kernel's queue; returns whether there were any."""
        found = False
        with suppress(OSError):
            while LINUX:
                error = self._pinger.error()
                if error is None:
                    continue
                found = True
                number, source, text = error
                self._errors += 1
                if source:
                    self._say(f"From {source} icmp_seq={number} {text}", time.time_ns())
                else:
                    print(f"ping: {text}", file=sys.stderr)
        return found

    def _say(self, text: str, at_ns: int) -> None:
        if not self._options.quiet:
            seconds, rest_ns = divmod(at_ns, SECOND_NS)
            stamp = f"[{seconds}.{rest_ns // 1000:06d}] " if self._options.stamps else ""
            print(f"{stamp}{text}", flush=True)

    def _summarize(self) -> None:
        sent, received = self._sent, self._received
        duplicates = f" +{self._duplicates} duplicates," if self._duplicates else ""
        errors = f" +{self._errors} errors," if self._errors else ""
        lost = 100 * (sent - received) / sent if sent else 0
        elapsed_ms = (self._last_ns - self._first_ns) // 10**6
        print(f"\n--- {self._options.host} ping statistics ---")
        print(
            f"{sent} packets transmitted, {received} received,{duplicates}{errors}"
            f" {lost:.6g}% packet loss, time {elapsed_ms}ms"
        )
        if count := received + self._duplicates:
            # In integers: a difference of two large squares.
            variance = self._squares_ns * count - self._sum_ns * self._sum_ns
            mean_ns, deviation_ns = self._sum_ns / count, math.isqrt(variance) / count
            figures = (self._least_ns, mean_ns, self._most_ns, deviation_ns)
            print("rtt min/avg/max/mdev =", "/".join(f"{ns / 1e6:.6f}" for ns in figures), "ms")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
