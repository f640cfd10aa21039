"""Hostile traces: what they cost in memory and time, and what they show on a terminal."""

import gzip
import json
import sys
import tracemalloc

import pytest
from cli.conftest import Benchctl
from packets.written import (
    block,
    enhanced,
    ethernet,
    interface,
    ipv4,
    ipv6,
    option,
    pcap,
    pcapng,
    sack,
    section,
    tcp,
    udp,
)

from benchctl.packets import connections
from benchctl.packets.trace import read_trace
from benchctl.packets.wire import frames

# docs/packets.md promises these.
BYTES_OF_EACH = 60
BYTES_AT_ALL = 1 << 20
LINES_OF_EACH = 400


def ports(n):
    return n % 60_000 + 1, 1 + n // 60_000


def nested(depth):
    packet = ipv4(tcp(size=9))
    for _ in range(depth):
        packet = ipv4(packet, protocol=4)
    return packet


HOSTILE = {
    "each opens a connection": lambda n: ipv4(tcp(seq=n, flags=2, ports=ports(n))),
    "each opens the same one anew": lambda n: ipv4(tcp(seq=n * 77, flags=2)),
    "each is data of another": lambda n: ipv4(tcp(seq=n, ports=ports(n), size=9), ident=n + 1),
    "each leaves a gap": lambda n: ipv4(tcp(seq=n * 1000, size=9)),
    "nothing is acknowledged": lambda n: ipv4(tcp(seq=n * 9, size=9), ident=n + 1),
    "all come in any order": lambda n: ipv4(tcp(seq=n * 7919 % 60_000, size=9), ident=n + 1),
    "one covers all gaps": lambda n: ipv4(tcp(seq=n * 20, size=9 if n % 50 else 60_000), total=0),
    "numbers jump": lambda n: ipv4(tcp(n % 2, n * 0x7FFFFFF1, n * 0x3FFFFFF1, 16, size=9)),
    "windows close and open": lambda n: ipv4(tcp(seq=1, window=n % 2)),
    "SACK of anything": lambda n: ipv4(
        tcp(n % 2, n * 7, 1, options=sack((n, n + 3), (n * 6, n * 7), (1, n)), size=3 * (n % 2))
    ),
    "requests": lambda n: ipv4(tcp(seq=n * 1000, ports=ports(n), data=b"GET /" + b"x" * 900)),
    "traffic of many ends": lambda n: ipv4(udp(ports=ports(n)), protocol=17),
    "fragments": lambda n: ipv4(bytes(8), fragment=n % 8000 + 1, protocol=n % 256),
    "tunnels in tunnels": lambda n: nested(n % 60),
    "headers behind headers": lambda n: ipv6(
        tcp(seq=n), protocol=0, extensions=bytes(8) * 100 + b"\x06" + bytes(7)
    ),
}


def trace(packet, count):
    return pcap([(n * 1000, ethernet(packet(n))) for n in range(count)])


@pytest.mark.parametrize("kind", HOSTILE)
def test_memory_is_bounded_by_the_size_of_the_trace(kind, tmp_path):
    path = tmp_path / "hostile.pcap"
    path.write_bytes(trace(HOSTILE[kind], 3000))
    tracemalloc.start()
    try:
        read_trace(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < BYTES_AT_ALL + BYTES_OF_EACH * path.stat().st_size


@pytest.mark.parametrize("kind", HOSTILE)
def test_no_packet_takes_more_than_so_many_steps(kind, tmp_path):
    """In lines of Python, for time depends on what else the machine does."""
    path = tmp_path / "hostile.pcap"
    count = 2000
    path.write_bytes(trace(HOSTILE[kind], count))
    lines = 0

    def step(frame, event, _argument):
        nonlocal lines
        lines += event == "line"
        return step

    before = sys.gettrace()
    sys.settrace(step)
    try:
        read_trace(path)
    finally:
        sys.settrace(before)
    assert count < lines < LINES_OF_EACH * count


def test_connections_beyond_the_most_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 3)
    monkeypatch.setattr(frames, "MOST_EXCHANGES", 2)
    path = tmp_path / "flood.pcap"
    opened = [ethernet(ipv4(tcp(seq=n, flags=2, ports=(n + 1, 1)))) for n in range(5)]
    again = ethernet(ipv4(tcp(seq=99, flags=2, ports=(1, 1))))
    asked = [ethernet(ipv4(udp(ports=(n + 1, 1)), protocol=17)) for n in range(4)]
    path.write_bytes(pcap([(n, one) for n, one in enumerate([*opened, again, again, *asked])]))
    found = read_trace(path)
    assert [one.halves[0].packets for one in found.connections] == [1, 1, 1]
    assert len(found.frames.exchanges) == 2
    assert found.frames.unread == {
        "TCP beyond 3 connections": 4, "UDP beyond 2 pairs of ends": 2,
    }  # fmt: skip


def test_requests_are_kept_in_part_and_in_bounded_number(tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "MOST_REQUESTS_IN_ALL", 4)
    path = tmp_path / "requests.pcap"
    long = b"GET /" + b"x" * 9000
    lines = [ethernet(ipv4(tcp(seq=n, ports=(n % 3 + 1, 1), data=long))) for n in range(9)]
    path.write_bytes(pcap([(n, one) for n, one in enumerate(lines)]))
    kept = [line for one in read_trace(path).connections for line in one.requests]
    assert [len(line) for line in kept] == [connections.LONGEST_REQUEST + 1] * 4


def test_a_small_file_of_many_zeros_ends_at_the_first(tmp_path):
    path = tmp_path / "bomb.pcap.gz"
    with gzip.open(path, "wb") as file:
        file.write(trace(HOSTILE["nothing is acknowledged"], 5))
        for _ in range(200):
            file.write(bytes(1 << 20))
    assert path.stat().st_size < 1 << 18
    tracemalloc.start()
    try:
        found = read_trace(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.frames.packets == 5
    assert "unpacked: no packet has 0 bytes" in found.capture.faults[0]
    assert peak < 2 << 20


HOSTILE_TEXT = "\x1b]0;owned\x07\x1b[2J\r\n\u202egnp\u2069".encode()


@pytest.mark.parametrize("flags", [[], ["--json"]], ids=["text", "json"])
def test_text_in_a_trace_cannot_move_the_terminal(flags, tmp_path, fork_server):
    """In names and comments of pcapng, in requests, and in the file's own name."""
    asked = ethernet(ipv4(tcp(seq=1, data=b"GET /" + HOSTILE_TEXT[:10] + b"\x9b2J HTTP/1.1\r\n")))
    data = section() + block(1, b"\x01\x00\x00\x00\x00\x00\x00\x00" + option(2, HOSTILE_TEXT))
    data += interface(options=option(1, HOSTILE_TEXT) + option(3, HOSTILE_TEXT))
    data += block(4, bytes(12) + HOSTILE_TEXT) + enhanced(1, asked) + block(0xBAD, HOSTILE_TEXT)
    (tmp_path / "a\x1b[2Jb.pcapng").write_bytes(data + b"\x07")
    done = Benchctl(tmp_path, server=fork_server)("packets", "a\x1b[2Jb.pcapng", *flags)
    assert done.returncode == 0
    shown = done.stdout + done.stderr
    assert "GET /" in shown
    assert "the file is cut" in shown
    assert not set(shown) & set("\x1b\x07\r\x9b\u202e\u2069")


@pytest.mark.parametrize("wrap", [pcap, pcapng])
def test_a_link_type_that_is_unknown_is_counted_by_its_number(wrap, tmp_path):
    path = tmp_path / "strange"
    path.write_bytes(wrap([(n, bytes(60)) for n in range(3)], link=195))
    found = read_trace(path)
    assert (found.frames.unread, found.connections) == ({"link type 195": 3}, [])
    json.dumps(found.frames.unread)
