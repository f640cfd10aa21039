"""The same traces through tshark and tcptrace, and through us: every figure that they give.

docs/evidence/packets.md says where and why they differ; here each difference is exact, too.
"""

import re
import subprocess
from collections import Counter
from types import SimpleNamespace

import pytest
from packets.simulated import Plan, Transfer
from packets.slow import slow
from packets.written import trace_of

from benchctl.packets.findings import connection_entry
from benchctl.packets.trace import read_trace

pytestmark = pytest.mark.once

_LOSSES = frozenset({(50, 0), (120, 0), (121, 0), (200, 0), (200, 1)})
TRACES = {
    "every cause": slow,
    "at the sender": lambda: trace_of(Transfer(Plan(
        segments=300, window=20, lost_after=_LOSSES, doubled=frozenset({(80, 0)}),
        pause_after=frozenset({160}),
    ))),
    "at the receiver": lambda: trace_of(Transfer(Plan(
        segments=300, window=20, here=1.0, lost_before=_LOSSES, doubled=frozenset({(80, 0)}),
        late=frozenset({(90, 0)}),
    ))),
    "sequence numbers that wrap": lambda: trace_of(Transfer(Plan(
        segments=300, window=20, isn=0xFFFFFFFF - 150_500, lost_after=frozenset({(149, 0)}),
    ))),
}  # fmt: skip


@pytest.fixture(scope="module", params=TRACES)
def trace(request, tmp_path_factory):
    """Return a trace's file, and our first connection of it."""
    path = tmp_path_factory.mktemp("agreement") / "trace.pcap"
    path.write_bytes(TRACES[request.param]())
    connection = read_trace(path).connections[0]
    return SimpleNamespace(
        path=path, halves=connection.halves, ways=connection_entry(1, connection)["directions"]
    )


def port_of(way):
    return way["from"].rpartition(":")[2]


@pytest.fixture(scope="module")
def tshark(trace):
    """Return what tshark says of each packet of the connection, by the port of its sender."""
    flags = (
        "retransmission", "out_of_order", "zero_window", "zero_window_probe", "window_full",
        "keep_alive", "duplicate_ack",
    )  # fmt: skip
    names = ("frame.len", "tcp.len", *(f"tcp.analysis.{flag}" for flag in flags))
    values = ("tcp.analysis.ack_rtt", "tcp.analysis.bytes_in_flight")
    fields = [word for name in ("tcp.srcport", *names, *values) for word in ("-e", name)]
    argv = ["tshark", "-r", trace.path, "-T", "fields", "-E", "occurrence=f", *fields]
    argv += ["-Y", "tcp.stream == 0"]
    output = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    found = {}
    for line in output.splitlines():
        port, size, length, *rest = line.split("\t")
        one = found.setdefault(port, SimpleNamespace(counts=Counter(), rtts=[], flights=[0]))
        one.counts.update(packets=1, bytes=int(size), data=int(length), data_packets=length != "0")
        one.counts.update(name for name, cell in zip(flags, rest, strict=False) if cell)
        one.rtts += [float(cell) for cell in rest[-2:-1] if cell]
        one.flights += [int(cell) for cell in rest[-1:] if cell]
    return found


@pytest.fixture(scope="module")
def tcptrace(trace):
    """Return tcptrace's figures of the connection, by name, for each way."""
    argv = ["tcptrace", "-l", "-r", trace.path]
    output = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    first = output.partition("TCP connection 1:")[2].partition("TCP connection 2:")[0]
    found = ({}, {})
    for line in first.splitlines():
        pairs = re.findall(r"(\S[^:]*):\s+(\S+)(?: (\w+))?", line.strip())
        if len(pairs) == 2:
            for way, (name, value, unit) in zip(found, pairs, strict=True):
                way[f"{name} {unit}" if name == "initial window" else name] = value
    return found


@pytest.mark.tool("tshark")
def test_tshark_counts_the_same_packets_and_bytes(trace, tshark):
    for way in trace.ways:
        theirs = tshark[port_of(way)].counts
        assert theirs["packets"] == way["packets"]
        assert theirs["bytes"] == way["frame_bytes"]
        assert theirs["data"] == way["data_bytes"]
        assert theirs["data_packets"] == way["data_packets"]


@pytest.mark.tool("tshark")
def test_tshark_finds_the_same_segments_late_or_again(trace, tshark):
    """It divides them by other rules: a packet that the network doubled is out of order to it."""
    for way in trace.ways:
        theirs = tshark[port_of(way)].counts
        ours = way["retransmissions"]["count"] + way["out_of_order"] + way["duplicated"]
        assert theirs["retransmission"] + theirs["out_of_order"] == ours
        assert theirs["retransmission"] == way["retransmissions"]["count"]


@pytest.mark.tool("tshark")
def test_tshark_finds_the_same_windows_and_probes(trace, tshark):
    shuts = read_trace(trace.path).connections[0].shuts
    for number, way in enumerate(trace.ways):
        theirs = tshark[port_of(way)].counts
        peers = tshark[port_of(trace.ways[1 - number])].counts
        assert peers["zero_window"] == sum(one.acks for one in shuts if one.direction == number)
        probes = sum(one.probes for one in shuts if one.direction == number)
        assert theirs["keep_alive"] + theirs["zero_window_probe"] == probes + way["keep_alives"]
        assert theirs["window_full"] == way["window_full"]


@pytest.mark.tool("tshark")
def test_tshark_times_the_same_round_trips(trace, tshark):
    """It also times what was sent twice, which Karn's rule leaves out, but nothing of 0 us."""
    for number, half in enumerate(trace.halves):
        theirs = tshark[port_of(trace.ways[1 - number])].rtts
        ours = Counter(round(rtt_s * 1e6) for rtt_s in half.rtt_s if rtt_s)
        assert not ours - Counter(round(rtt_s * 1e6) for rtt_s in theirs)
        if not (half.retransmissions or half.doubled or half.out_of_order):
            assert ours.total() == len(theirs)


@pytest.mark.tool("tshark")
def test_tshark_sees_as_much_in_flight_where_the_trace_is_the_senders(trace, tshark):
    for number, way in enumerate(trace.ways):
        if way["data_packets"] and not trace.halves[number].lag_s:
            assert max(tshark[port_of(way)].flights) == way["flight_max_bytes"]


@pytest.mark.tool("tshark")
def test_tshark_counts_duplicate_acknowledgements_also_with_nothing_in_flight(trace, tshark):
    for number, way in enumerate(trace.ways):
        theirs = tshark[port_of(trace.ways[1 - number])].counts["duplicate_ack"]
        assert way["duplicate_acks"] <= theirs
        if not (way["duplicated"] or way["retransmissions"]["spurious"]):
            assert way["duplicate_acks"] == theirs


@pytest.mark.tool("tcptrace")
def test_tcptrace_counts_the_same_segments(trace, tcptrace):
    """It takes a packet that the network doubled for a retransmission."""
    for way, theirs in zip(trace.ways, tcptrace, strict=True):
        again = way["retransmissions"]["count"] + way["out_of_order"] + way["duplicated"]
        assert int(theirs["total packets"]) == way["packets"]
        assert int(theirs["unique bytes sent"]) == way["unique_bytes"]
        assert int(theirs["actual data pkts"]) == way["data_packets"]
        assert int(theirs["actual data bytes"]) == way["data_bytes"]
        assert int(theirs["rexmt data pkts"]) + int(theirs["outoforder pkts"]) == again


@pytest.mark.tool("tcptrace")
def test_tcptrace_reads_the_same_handshake(trace, tcptrace):
    for number, (way, theirs) in enumerate(zip(trace.ways, tcptrace, strict=True)):
        assert int(theirs["mss requested"]) == way["mss_bytes"]
        assert int(theirs["adv wind scale"]) == way["window_scale"]
        assert (theirs["req sack"] == "Y") == way["sack_permitted"]
        assert theirs["req 1323 ws/ts"].endswith("Y") == way["timestamps"]
        shown = f"{way['handshake_rtt_s'] * 1e3:.1f}"
        assert theirs["RTT from 3WHS"] == shown
        if not trace.halves[number].lag_s:  # else it sees acknowledgements before the sender does
            assert int(theirs["initial window bytes"]) == (way["initial_window_bytes"] or 0)
            assert int(theirs["initial window pkts"]) == (way["initial_window_segments"] or 0)


@pytest.mark.tool("tcptrace")
def test_tcptrace_times_the_same_round_trips(trace, tcptrace):
    for way, theirs in zip(trace.ways, tcptrace, strict=True):
        ours = way["rtt_s"]
        assert theirs["RTT min"] == f"{ours['min'] * 1e3:.1f}"
        assert theirs["RTT max"] == f"{ours['max'] * 1e3:.1f}"
        assert float(theirs["RTT avg"]) == pytest.approx(ours["mean"] * 1e3, abs=0.051)
        assert ours["samples"] <= int(theirs["RTT samples"])
        again = way["retransmissions"]["count"] + way["duplicated"] + way["out_of_order"]
        if not again:
            assert ours["samples"] == int(theirs["RTT samples"])


@pytest.mark.tool("tcptrace")
def test_tcptrace_finds_the_same_acknowledgements(trace, tcptrace):
    """It takes every SACK for a D-SACK once sequence numbers have wrapped."""
    shuts = read_trace(trace.path).connections[0].shuts
    for number, way in enumerate(trace.ways):
        theirs = tcptrace[1 - number]
        closed = sum(one.acks for one in shuts if one.direction == number)
        assert int(theirs["zero win adv"]) == closed
        assert int(theirs["sacks sent"]) == way["sack_acks"]
        half = trace.halves[number]
        if half.base >= 0 and half.base + half.next < 1 << 32:
            assert int(theirs["dsack pkts sent"]) == way["dsack_blocks"]
        assert int(tcptrace[number]["triple dupacks"]) == way["triple_duplicate_acks"]


@pytest.mark.tool("tcptrace")
def test_tcptrace_has_the_throughput_that_is_shown_as_its_own(trace, tcptrace):
    for way, theirs in zip(trace.ways, tcptrace, strict=True):
        theirs_bps = int(theirs["throughput"]) * 8
        assert theirs_bps == pytest.approx(way["throughput_tcptrace_bps"] or 0, abs=8.1)
