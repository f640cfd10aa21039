"""Kinds of traces of which tshark says something else: these figures differ, and no others.

docs/evidence/packets.md has the same list, with the reasons.
"""

import struct
import subprocess
from collections import Counter

import pytest
from packets.written import (
    MSS,
    SACK_PERMITTED,
    SCALE,
    ethernet,
    ipv4,
    pcap,
    tcp,
    udp,
)

from benchctl.packets.findings import connection_entry
from benchctl.packets.trace import read_trace

pytestmark = [pytest.mark.once, pytest.mark.tool("tshark")]

SYN, SYN_ACK, ACK, PUSH, RST = 2, 18, 16, 24, 20
NEXT, PEER = 1001, 9001
MS = 1_000_000
OPTIONS = MSS + SCALE + SACK_PERMITTED
RTT_MS, SIZE = 10, 1000
# A handshake and five segments, each with its acknowledgement.
ROWS = [
    (0, 0, NEXT - 1, 0, SYN, 0),
    (RTT_MS * MS, 1, PEER - 1, NEXT, SYN_ACK, 0),
    (RTT_MS * MS + 1000, 0, NEXT, PEER, ACK, 0),
    *sorted(
        row
        for number in range(5)
        for row in (
            ((20 + number) * MS, 0, NEXT + number * SIZE, PEER, ACK, SIZE),
            ((30 + number) * MS, 1, PEER, NEXT + (number + 1) * SIZE, ACK, 0),
        )
    ),
]
ALL = NEXT + 5 * SIZE


def packets(rows=ROWS, wrap=ethernet):
    return [
        (at_ns, wrap(ipv4(tcp(way, seq, ack, flags, options=OPTIONS * (flags & SYN > 0), size=size),
                          way, ident=number + 1)))
        for number, (at_ns, way, seq, ack, flags, size) in enumerate(rows)
    ]  # fmt: skip


def gtp(inner):
    body = udp(data=struct.pack(">BBHI", 0x30, 255, len(inner), 7) + inner, ports=(2152, 2152))
    return ethernet(ipv4(body, protocol=17, ends=("192.0.2.1", "192.0.2.2")))


def mpls(inner):
    return ethernet(struct.pack(">I", 17 << 12 | 0x100 | 64) + inner, kind=0x8847)


def in_fragments():
    body = tcp(0, NEXT, PEER, PUSH, size=2000)
    parts = [
        ipv4(body[:SIZE], ident=50, fragment=0x2000),
        ipv4(body[SIZE:], ident=50, fragment=125),
    ]
    inside = [(20 * MS + at, ethernet(part)) for at, part in enumerate(parts)]
    return packets(ROWS[:3]) + inside + packets([(30 * MS, 1, PEER, NEXT + 2000, ACK, 0)])


def refused():
    quoted = ipv4(tcp(0, NEXT, PEER, size=SIZE))[:48]
    error = ipv4(struct.pack(">BBHI", 3, 4, 0, 1400) + quoted, way=1, protocol=1)
    return [*packets(), (60 * MS, ethernet(error))]


def swapped():
    found = packets()
    return [*found[:5], found[6], found[5], *found[7:]]


def beside(kind):
    """Return the trace of a kind, and what differs: the figure of tshark, and ours."""
    whole = {"connections": (1, 0), "packets": (13, 0), "data": (5000, 0), "rtts": (7, 0)}
    twice = [(at + copy * 5000, data) for at, data in packets() for copy in (0, 1)]
    alive = [(5000 * MS, 0, ALL - 1, PEER, ACK, 1), (5010 * MS, 1, PEER, ALL, ACK, 0)]
    later = [(at + 1000 * MS, *rest) for at, *rest in ROWS]
    match kind:
        case "fragments":
            return pcap(in_fragments()), {"packets": (5, 4), "data": (2000, 0), "rtts": (3, 2)}
        case "GTP":
            return pcap(packets(wrap=gtp)), whole
        case "MPLS":
            return pcap(packets(wrap=mpls)), whole
        case "cut headers":
            return pcap(packets(), snaplen=50), {**whole, "rtts": (0, 0)}
        case "ICMP errors":
            return pcap(refused()), {"packets": (14, 13)}
        case "every packet twice":
            again = {"again": (7, 2), "doubled": (0, 5), "duplicate_acks": (6, 4), "rtts": (7, 0)}
            return pcap(twice), again
        case "times that go back":
            return pcap(swapped()), {"again": (1, 0), "late": (0, 1), "rtts": (7, 4)}
        case "keep-alives":
            return pcap(packets(ROWS + alive)), {"data": (5001, 5000), "rtts": (8, 7)}
        case "resets with a text":
            rows = [*ROWS, (60 * MS, 1, PEER, ALL, RST, 20)]
            return pcap(packets(rows)), {"data": (5020, 5000)}
        case "a SYN sent again":
            return pcap(packets([ROWS[0], *later])), {"rtts": (7, 6)}
    return pcap(packets()), {}


def told(path):
    names = ("retransmission", "out_of_order", "duplicate_ack", "ack_rtt")
    fields = ("tcp.stream", "tcp.len", *(f"tcp.analysis.{name}" for name in names))
    argv = ["tshark", "-r", path, "-Y", "tcp", "-T", "fields", "-E", "occurrence=f"]
    argv += [word for field in fields for word in ("-e", field)]
    output = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    found, streams = Counter(), set()
    for line in output.splitlines():
        stream, size, *cells = line.split("\t")
        streams.add(stream)
        found.update(packets=1, data=int(size or 0))
        for name, cell in zip(("again", "late", "duplicate_acks", "rtts"), cells, strict=True):
            found[name] += cell != ""
    found["connections"] = len(streams)
    return found


def counted(path):
    connections = read_trace(path).connections
    found = Counter(connections=len(connections))
    for number, one in enumerate(connections, 1):
        found["rtts"] += sum(len(half.rtt_s) for half in one.halves)
        for way in connection_entry(number, one)["directions"]:
            found.update(
                packets=way["packets"], data=way["data_bytes"],
                again=way["retransmissions"]["count"], late=way["out_of_order"],
                doubled=way["duplicated"], duplicate_acks=way["duplicate_acks"],
            )  # fmt: skip
    return found


@pytest.mark.parametrize(
    "kind",
    [
        "fragments", "GTP", "MPLS", "cut headers", "ICMP errors", "every packet twice",
        "times that go back", "keep-alives", "resets with a text", "a SYN sent again", "plain",
    ],
)  # fmt: skip
def test_only_these_figures_differ(kind, tmp_path):
    path = tmp_path / "trace.pcap"
    raw, differ = beside(kind)
    path.write_bytes(raw)
    theirs, ours = told(path), counted(path)
    names = theirs.keys() | ours.keys()
    assert {name: (theirs[name], ours[name]) for name in names if theirs[name] != ours[name]} == {
        name: pair for name, pair in differ.items() if pair[0] != pair[1]
    }
