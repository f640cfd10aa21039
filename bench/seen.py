"""What tcpdump and ss saw of one run, found among all that they saw."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import capture

LENGTH_BYTES = 1000
# iperf3 begins a connection with a cookie (iperf_api.h, COOKIE_SIZE).
COOKIE_BYTES = {"simpleperf": 0, "iperf3": 37}
# Its states (iperf_api.h): the server begins, the client ends.
_TEST_START, TEST_END = b"\x01", b"\x04"
PORTS = (7000, 7001)
# Stamps of simpleperf's datagrams from here on are of the measured part.
SECOND_0 = 1 << 62


class Case(NamedTuple):
    """What is measured."""

    backend: str
    protocol: str
    direction: str
    omit_s: float
    interval_s: float

    def __str__(self) -> str:
        way = "->" if self.direction == "send" else "<-"
        return f"{self.backend} {self.protocol} {way} omit {self.omit_s:g} s {self.interval_s:g} s"


class Seen(NamedTuple):
    """What one run showed, and what others saw of it; packets at a and at b."""

    trial: dict[str, Any]
    samples: list[dict[str, str]]
    spoilt: str
    packets: tuple[list[capture.Packet], list[capture.Packet]]
    looks: str
    naps: str
    resent: int
    missing: int


class Datagram(NamedTuple):
    """A datagram of simpleperf's, its time by tcpdump; iperf3's stamp means something else."""

    time_s: float
    stamp_ns: int


def streams(case: Case, seen: Seen) -> tuple[capture.Stream, capture.Stream]:
    """Return the measured connection as its sender and as its receiver saw it."""
    ends = main_ends(case, seen)
    skip = COOKIE_BYTES[case.backend] if case.direction == "send" else 0
    if case.direction == "receive":
        ends = ends[::-1]
    sender, receiver = (
        capture.Stream((p for p in packets if p.tcp and p.ends == ends), skip)
        for packets in ordered(case, seen)
    )
    return sender, receiver


def ordered(case: Case, seen: Seen) -> tuple[list[capture.Packet], ...]:
    """Return the packets at the sender and those at the receiver."""
    return seen.packets if case.direction == "send" else seen.packets[::-1]


def is_of_sender(case: Case, packet: capture.Packet) -> bool:
    """Whether a packet goes the way of what is measured; servers are at b."""
    return (packet.ends[1][1] in PORTS) == (case.direction == "send")


def began(case: Case, seen: Seen, receives: bool) -> float:
    """Return when an end of the flow began its time.

    simpleperf's begins with the first data. Both ends of iperf3 begin theirs when the server says
    so on the control connection (iperf_init_test in iperf_api.c).
    """
    if case.backend == "simpleperf":
        return streams(case, seen)[receives].times_s[0]
    return state_came(case, seen, _TEST_START, receives)


def state_came(case: Case, seen: Seen, state: bytes, at_receiver: bool) -> float:
    """Return when an end of the flow saw iperf3's control connection say a state."""
    return next(
        packet.time_s
        for packet in ordered(case, seen)[at_receiver]
        if packet.tcp and packet.payload == state
    )


def resent_in_all(case: Case, seen: Seen, mss_bytes: int) -> int:
    """Return how many segments the sender's connections sent again, at any time."""
    connections = defaultdict(list)
    for packet in ordered(case, seen)[0]:
        if packet.tcp and is_of_sender(case, packet):
            connections[packet.ends].append(packet)
    return sum(
        capture.Stream(packets, 0).resent_within(0, math.inf, mss_bytes)
        for packets in connections.values()
    )


def main_ends(case: Case, seen: Seen, port: int = 7000) -> tuple[Any, Any]:
    """Return the client's and the server's end of the connection that carried most."""
    carried: Counter[tuple[Any, Any]] = Counter()
    for packet in seen.packets[0]:
        if packet.tcp == (case.protocol == "tcp") and port in (e[1] for e in packet.ends):
            here = packet.ends if packet.ends[1][1] == port else packet.ends[::-1]
            carried[here] += packet.length
    return carried.most_common(1)[0][0]


def datagrams(case: Case, seen: Seen) -> tuple[dict[int, Datagram], dict[int, Datagram]]:
    """Return each datagram as it left its sender and as it came to its receiver, by number."""
    ends = main_ends(case, seen)
    if case.direction == "receive":
        ends = ends[::-1]
    sent, came = (
        {
            number: Datagram(packet.time_s, int.from_bytes(packet.payload[8:16], "big"))
            for packet in reversed(packets)  # The first of those that are there twice.
            if not packet.tcp and packet.ends == ends and packet.length == LENGTH_BYTES
            for number in [_number(case, packet.payload)]
        }
        for packets in ordered(case, seen)
    )
    return sent, came


def _number(case: Case, payload: bytes) -> int:
    if case.backend == "simpleperf":
        return int.from_bytes(payload[:8], "big")
    # Seconds, microseconds, number from 1, of 32 or of 64 bits (iperf_udp.c).
    return int.from_bytes(payload[8:12], "big") or int.from_bytes(payload[8:16], "big")


def cwnds(looks: str, port: int) -> Iterator[tuple[float, float, int]]:
    """Yield when ss began and ended to look, and the window in bytes of a connection then."""
    for line in looks.splitlines():
        fields = line.split("\t")
        if len(fields) < 3:
            continue
        for told in "\t".join(fields[2:]).split("|"):
            words = told.split()
            if len(words) > 4 and any(word.endswith(f":{port}") for word in words[3:5]):
                values = dict(word.split(":", 1) for word in words[5:] if ":" in word)
                if "cwnd" in values:
                    window = int(values["cwnd"]) * int(values.get("mss", 0))
                    yield float(fields[0]), float(fields[1]), window


def nearest_rank(ordered: Sequence[float], ratio: float) -> float:
    return ordered[max(-(-int(ratio * 1000) * len(ordered) // 1000), 1) - 1]
