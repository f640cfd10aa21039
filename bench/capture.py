"""Reads what tcpdump saw: TCP segments and UDP datagrams over IPv4 with their times; pure."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

# Files of tcpdump --time-stamp-precision nano on Ethernet (pcap-savefile(5)).
_NANO_MAGIC = 0xA1B23C4D
_ETHERNET_BYTES = 14
# Enough of a packet for the heads, and for the number and the stamp of a datagram.
SNAP_BYTES = 128


class Packet(NamedTuple):
    """One packet; ``ends`` are source and destination, (address, port) each."""

    time_s: float
    tcp: bool
    ends: tuple[tuple[bytes, int], tuple[bytes, int]]
    seq: int
    length: int
    payload: bytes
    """As much of it as was kept."""


def read(data: bytes) -> Iterator[Packet]:
    """Yield the TCP and UDP packets; an acknowledgement has length 0."""
    (magic,) = struct.unpack_from("=I", data)
    if magic != _NANO_MAGIC:
        raise ValueError("not a capture with nanoseconds of this machine")
    at = 24
    while at + 16 <= len(data):
        seconds, nanoseconds, kept, _ = struct.unpack_from("=IIII", data, at)
        frame = data[at + 16 : at + 16 + kept]
        at += 16 + kept
        packet = _packet(seconds + nanoseconds / 1e9, frame[_ETHERNET_BYTES:])
        if packet:
            yield packet


def _packet(time_s: float, ip: bytes) -> Packet | None:
    if len(ip) < 28 or ip[0] >> 4 != 4 or ip[9] not in (6, 17):
        return None
    head = 4 * (ip[0] & 15)
    total, tcp = int.from_bytes(ip[2:4], "big"), ip[9] == 6
    source, target, seq = struct.unpack_from("!HHI", ip, head)
    body = head + (4 * (ip[head + 12] >> 4) if tcp else 8)
    ends = ((ip[12:16], source), (ip[16:20], target))
    return Packet(time_s, tcp, ends, seq if tcp else 0, total - body, ip[body:total])


class Stream:
    """One direction of a TCP connection, as one end saw it; sequence numbers count from 0."""

    def __init__(self, packets: Iterable[Packet], skip: int) -> None:
        """``skip`` are bytes at the beginning that are none of the measurement."""
        self.times_s: list[float] = []
        self.resent_s: list[tuple[float, int]] = []
        self._arrived: list[tuple[float, int]] = []
        first: int | None = None
        expected = sent = 0
        waiting: dict[int, int] = {}
        for packet in filter(lambda packet: packet.length, packets):
            first = packet.seq if first is None else first
            start = (packet.seq - first) % (1 << 32) - skip
            end = start + packet.length
            if end <= 0:
                continue
            self.times_s.append(packet.time_s)
            if start < sent:
                self.resent_s.append((packet.time_s, packet.length))
            sent = max(sent, end)
            waiting[start] = max(end, waiting.get(start, 0))
            while waiting and min(waiting) <= expected:
                expected = max(expected, waiting.pop(min(waiting)))
            self._arrived.append((packet.time_s, expected))

    def bytes_by(self, time_s: float) -> int:
        """Return how many bytes had arrived by a time, each once and without a gap."""
        at = bisect_right(self._arrived, (time_s, 1 << 62))
        return self._arrived[at - 1][1] if at else 0

    def resent_within(self, from_s: float, to_s: float, mss_bytes: int) -> int:
        """Return how many segments were sent again between two times."""
        return sum(-(-n // mss_bytes) for at_s, n in self.resent_s if from_s <= at_s < to_s)
