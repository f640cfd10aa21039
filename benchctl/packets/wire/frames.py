"""The headers of a packet: link layer, VLAN, IPv4, IPv6 with its extension headers, TCP, UDP.

Link types: tcpdump.org/linktypes.html. Every packet is counted once: as a segment of TCP, as
traffic of another protocol between two ends, or by why it could not be read. Of a packet in a
tunnel that is the innermost one that can be read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from ipaddress import ip_address
from struct import Struct

from msgspec import Struct as Record

from benchctl.packets.wire.capture import Batch
from benchctl.packets.wire.tunnels import (
    IPV4,
    IPV6,
    MOST_NESTED,
    PPPOE,
    VLANS,
    Carried,
    Reads,
    directed_ppp,
    in_ip,
    ppp,
    pppoe,
)

Segment = tuple[float, bytes, int, int, int, int, int, int, int, bytes, int, int, int]
"""A TCP segment of the trace.

Its time; its ends (addresses and ports as on the wire, the sender's first); its bytes on the wire;
sequence and acknowledgement number, flags, window and bytes of data; the identification of its IPv4
packet or 0; and the data of the batch, with the places where options begin, data begins and what
was captured ends.
"""

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16

ETHERNET, LINUX_SLL, LINUX_SLL2 = 1, 113, 276
_LAYOUTS = {ETHERNET: (12, 14), LINUX_SLL: (14, 16), LINUX_SLL2: (0, 20)}
"""Where the EtherType is, and where the header ends."""
_LOOPBACK = {0, 108}
"""NULL and LOOP: a family of four bytes in an order and with values of the system that wrote it."""
_RAW = {12, 14, 101, 228, 229}
"""Raw IP; 12 and 14 are what some systems write for 101."""
_PPP = {9: ppp, 50: ppp, 51: pppoe, 104: ppp, 166: directed_ppp, 204: directed_ppp}
"""PPP in several frames; those of 104 are Cisco's HDLC."""
_TCP, _UDP, _ICMP, _ICMPV6, _FRAGMENT, _AUTHENTICATION = 6, 17, 1, 58, 44, 51
_EXTENSIONS = {0, 43, 60, 135, 139, 140, _FRAGMENT, _AUTHENTICATION}
"""IPv6 extension headers that another header follows (IANA, Internet Protocol Version 6)."""
_MOST_EXTENSIONS = 16
"""Each should occur at most once (RFC 8200, section 4.1)."""
_NAMES = {
    _TCP: "TCP",
    _UDP: "UDP",
    _ICMP: "ICMP",
    _ICMPV6: "ICMP",
    4: "IP in IP",
    41: "IPv6 in IP",
    47: "GRE",
    50: "ESP",
}
MOST_EXCHANGES = 200_000
"""Pairs of ends with other traffic than TCP, which bounds memory."""
_QUIC = {bytes.fromhex("00000001"), bytes.fromhex("6b3343cf")}
"""Versions 1 and 2 (RFC 9000, RFC 9369), which stand in long headers."""

_ethertype = Struct(">H").unpack_from
_ipv4 = Struct(">BxHHHxB").unpack_from
_ipv6 = Struct(">4xHB").unpack_from
_tcp = Struct(">12sIIBBH").unpack_from
"""Two addresses of IPv4 and the TCP header behind them, up to its window."""


class Exchange(Record):
    """What went one way between two ends, by a protocol other than TCP.

    ``bytes_count`` is of whole frames, as long as they were on the wire.
    """

    protocol: str
    ends: bytes
    first_s: float
    last_s: float
    packets: int = 0
    bytes_count: int = 0

    @property
    def rate_bps(self) -> float | None:
        """Bits per second from the first packet to the last; None for a single moment."""
        lasted_s = self.last_s - self.first_s
        return self.bytes_count * 8 / lasted_s if lasted_s > 0 else None


class Frames:
    """Finds the segments in packets, and counts everything else.

    ``exchanges`` has the traffic of other protocols than TCP, and all fragments; ``unread`` the
    packets that are neither, by what they are; ``backwards`` those that are earlier than one before
    them in the file; ``tunnels`` those whose insides were read, by the tunnel.
    """

    def __init__(self) -> None:
        self.packets = 0
        self.bytes_count = 0
        self.last_s = 0.0
        self.backwards = 0
        self.links: set[int] = set()
        self.exchanges: dict[tuple[int, bytes], Exchange] = {}
        self.unread: Counter[str] = Counter()
        self.tunnels: Counter[str] = Counter()

    def segments(self, batches: Iterable[Batch]) -> Iterator[Segment]:
        """Yield the TCP segments of a trace, in its order."""
        unread = self.unread
        for link, data, packets in batches:
            self.links.add(link)
            self.packets += len(packets)
            kind_at, size = _LAYOUTS.get(link, (None, 0))
            framing = _PPP.get(link)
            if kind_at is None and not framing and link not in _RAW and link not in _LOOPBACK:
                unread[f"link type {link}"] += len(packets)
                continue
            if link in _LOOPBACK:
                size = 4
            last_s, bytes_count = self.last_s, self.bytes_count
            for time_s, start, stop, wire in packets:
                bytes_count += wire
                if time_s >= last_s:
                    last_s = time_s
                else:
                    self.backwards += 1
                at = start + size
                if stop - at < 20:
                    unread["cut too short"] += 1
                    continue
                if kind_at is not None:
                    (kind,) = _ethertype(data, start + kind_at)
                    while kind in VLANS and stop - at >= 24:
                        (kind,) = _ethertype(data, at + 2)
                        at += 4
                elif framing is not None:
                    kind, at = framing(data, at, stop) or (0, at)
                else:
                    kind = IPV6 if data[at] >> 4 == 6 else IPV4
                nested = 0
                while True:
                    if kind == IPV4:
                        first, total, ident, fragment, protocol = _ipv4(data, at)
                        upper = at + ((first & 15) << 2)
                        # Offloaded segmentation leaves 0 for a length that does not fit.
                        end = at + total if total else start + wire
                        low, high = at + 12, at + 20
                        whole = first >= 0x45 and first < 0x50
                        part = fragment & 0x3FFF
                    elif kind == IPV6 and stop - at >= 40:
                        ident, low, high = 0, at + 8, at + 40
                        total, protocol = _ipv6(data, at)
                        end = at + 40 + total if total else start + wire
                        protocol, upper, part = _upper(data, at + 40, stop, protocol)
                        whole = data[at] >> 4 == 6
                    elif kind == PPPOE and (
                        carried := self._carried("PPPoE", pppoe, data, at, stop)
                    ):
                        kind, at = carried
                        continue
                    else:
                        unread[_unread(kind, framing is not None)] += 1
                        break
                    if not whole:
                        unread["malformed"] += 1
                        break
                    if protocol != _TCP or part:
                        tunnel = None
                        if not part and nested < MOST_NESTED:
                            tunnel = in_ip(protocol, data, upper, stop)
                        if tunnel and (found := self._carried(*tunnel, data, upper, stop)):
                            kind, at = found
                            nested += 1
                            continue
                        head = data[upper : min(stop, upper + 13)]
                        self._count(time_s, protocol, part, data[low:high], wire, head)
                        break
                    if stop - upper < 20:
                        unread["cut too short"] += 1
                        break
                    ends, sequence, acknowledged, offset, flags, window = _tcp(data, upper - 8)
                    body = upper + (offset >> 4 << 2)
                    if end > start + wire:  # no packet has more than its frame
                        end = start + wire
                    if body < upper + 20 or body > end:
                        unread["malformed"] += 1
                        break
                    if upper != low + 8:  # longer addresses, options or extension headers
                        ends = data[low:high] + data[upper : upper + 4]
                    yield (
                        time_s, ends, wire, sequence, acknowledged,
                        flags, window, end - body, ident, data, upper + 20, body, stop,
                    )  # fmt: skip
                    break
            self.last_s, self.bytes_count = last_s, bytes_count

    def _carried(self, name: str, read: Reads, data: bytes, at: int, stop: int) -> Carried:
        """Return what a tunnel carries, and count it; None if that cannot be read.

        Of what is returned, at least an IP header was captured.
        """
        carried = read(data, at, stop)
        if carried is not None and stop - carried[1] < 20:
            return None
        if carried is not None:
            self.tunnels[name] += 1
        return carried

    def _count(
        self, time_s: float, protocol: int, part: int, addresses: bytes, wire: int, head: bytes
    ) -> None:
        """Count a packet of another protocol; ``head`` is what follows its IP header."""
        name, ends = _NAMES.get(protocol, f"IP protocol {protocol}"), addresses
        if part:
            name, protocol = f"{name} fragments", -protocol
        elif protocol == _UDP and len(head) >= 8:
            ends += head[:4]
        found = self.exchanges.get((protocol, ends))
        if found is None:
            if len(self.exchanges) >= MOST_EXCHANGES:
                self.unread[f"{name} beyond {MOST_EXCHANGES:,} pairs of ends"] += 1
                return
            found = self.exchanges[protocol, ends] = Exchange(name, ends, time_s, time_s)
            other = self.exchanges.get((protocol, reverse(ends)))
            if other is not None:
                found.protocol = other.protocol
        if protocol == _UDP and head[8:9] >= b"\xc0" and head[9:13] in _QUIC:
            found.protocol = "QUIC"
            other = self.exchanges.get((protocol, reverse(ends)))
            if other is not None:
                other.protocol = "QUIC"
        found.packets += 1
        found.bytes_count += wire
        found.last_s = time_s


def _unread(kind: int, framed: bool) -> str:
    """Return what a packet is that is not read, by its EtherType."""
    if kind in (IPV4, IPV6):
        return "cut too short"
    return f"EtherType 0x{kind:04x}" if kind or not framed else "PPP without IP"


def _upper(data: bytes, at: int, stop: int, protocol: int) -> tuple[int, int, int]:
    """Return the protocol above IPv6, where it begins, and whether this is a fragment."""
    part = 0
    for _ in range(_MOST_EXTENSIONS):
        if protocol not in _EXTENSIONS or stop - at < 8:
            break
        if protocol == _FRAGMENT:
            # Offset and flag are 0 in an atomic fragment (RFC 6946), which is whole.
            part |= int.from_bytes(data[at + 2 : at + 4]) & 0xFFF9
            size = 8
        elif protocol == _AUTHENTICATION:
            size = (data[at + 1] + 2) << 2
        else:
            size = (data[at + 1] + 1) << 3
        protocol, at = data[at], at + size
        if part:
            break
    return protocol, at, part


def options_of(options: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the options of a TCP header (RFC 9293, section 3.1): kind and value."""
    at = 0
    while at + 1 < len(options):
        kind, size = options[at], options[at + 1]
        if kind == 0:
            return
        if kind == 1:
            at += 1
        elif size < 2:
            return
        else:
            yield kind, options[at + 2 : at + size]
            at += size


def reverse(ends: bytes) -> bytes:
    """Return the ends in the other order."""
    size = 32 if len(ends) >= 32 else 8
    half = size // 2
    return ends[half:size] + ends[:half] + ends[size + 2 :] + ends[size : size + 2]


def names_of(ends: bytes) -> tuple[str, str]:
    """Return both ends: ``10.0.0.1:5201``, ``[2001:db8::1]:5201``; some have no port."""
    size = 32 if len(ends) >= 32 else 8
    half = size // 2
    texts = []
    for place, port in ((0, size), (half, size + 2)):
        text = str(ip_address(ends[place : place + half]))
        if len(ends) > size:
            text = f"[{text}]" if half == 16 else text
            text += f":{int.from_bytes(ends[port : port + 2])}"
        texts.append(text)
    return texts[0], texts[1]
