"""The series of a connection beside what tshark says of each packet, interval by interval."""

import math
import subprocess
from statistics import fmean
from types import SimpleNamespace

import pytest
from packets.test_agreement import TRACES

from benchctl.packets.trace import read_trace

pytestmark = pytest.mark.once

STEP_S = 0.064
EDGE_S = 1e-7
FIELDS = (
    "frame.time_relative", "tcp.srcport", "tcp.len", "tcp.seq_raw", "tcp.window_size",
    "tcp.analysis.bytes_in_flight", "tcp.analysis.ack_rtt", "tcp.analysis.retransmission",
    "tcp.flags.ack",
)  # fmt: skip


@pytest.fixture(scope="module", params=TRACES)
def trace(request, tmp_path_factory):
    """Return tshark's packets, and our intervals with the half that they are of."""
    path = tmp_path_factory.mktemp("over-time") / "trace.pcap"
    path.write_bytes(TRACES[request.param]())
    connection = read_trace(path, lambda _, one: one.record(STEP_S)).connections[0]
    fields = [word for name in FIELDS for word in ("-e", name)]
    argv = ["tshark", "-r", path, "-T", "fields", "-E", "occurrence=f", *fields]
    output = subprocess.run([*argv, "-Y", "tcp.stream == 0"], capture_output=True, text=True,
                            check=True).stdout  # fmt: skip
    packets = [_packet(line.split("\t")) for line in output.splitlines()]
    sender = max(packets, key=lambda one: one.length).port
    way = max((0, 1), key=lambda one: connection.halves[one].data_bytes)
    return SimpleNamespace(
        sent=[one for one in packets if one.port == sender],
        heard=[one for one in packets if one.port != sender],
        half=connection.halves[way],
        found=[*connection.timeline.intervals(way)],
    )


def _packet(cells):
    time_s, port, length, seq, window, flight, rtt, again, answers = cells
    return SimpleNamespace(
        time_s=float(time_s), port=port, length=int(length), seq=int(seq), window=int(window),
        flight=int(flight or 0), rtt_s=float(rtt) if rtt else None, again=bool(again),
        answers=answers in {"1", "True"},
    )  # fmt: skip


def intervals(trace, packets):
    """Yield each interval with its packets: one at an edge, by rounding, is in the later."""
    nexts = [one.start_s for one in trace.found[1:]] + [math.inf]
    for one, until_s in zip(trace.found, nexts, strict=True):
        yield one, [at for at in packets if one.start_s - EDGE_S <= at.time_s < until_s - EDGE_S]


@pytest.mark.tool("tshark")
def test_tshark_sees_the_same_data_pass_in_each_interval(trace):
    first = {at.seq: at for at in reversed(trace.sent) if at.length}
    for one, packets in intervals(trace, first.values()):
        fresh = sum(at.length for at in packets)
        if "throughput_bps" in one.metrics:
            rate_bps = pytest.approx(fresh * 8 / (one.end_s - one.start_s))
            assert one.metrics["throughput_bps"] == rate_bps
        else:
            assert not fresh
    assert sum(at.length for at in first.values()) == trace.half.unique_bytes


# tshark has the view of the place of the trace.
@pytest.mark.tool("tshark")
@pytest.mark.parametrize("trace", sorted({*TRACES} - {"at the receiver"}), indirect=True)
def test_tshark_sees_as_much_in_flight_in_each_interval_where_the_trace_is_the_senders(trace):
    assert not trace.half.lag_s
    estimated = 0
    for one, packets in intervals(trace, [at for at in trace.sent if at.length]):
        most = max((at.flight for at in packets if not at.again), default=0)
        # What was in flight when the interval began may be more than what was sent in it.
        assert one.metrics["flight_bytes"] >= most
        if "cwnd_estimated_bytes" in one.metrics:
            assert one.metrics["cwnd_estimated_bytes"] == most
            estimated += 1
    assert estimated > 2


@pytest.mark.tool("tshark")
def test_tshark_has_the_same_least_window_in_each_interval(trace):
    answers = [at for at in trace.heard if at.answers]
    before = answers[0].window
    for one, packets in intervals(trace, answers):
        said = [at.window for at in packets]
        assert one.metrics["peer_window_bytes"] == min([before, *said])
        before = said[-1] if said else before


@pytest.mark.tool("tshark")
def test_tshark_times_the_same_round_trips_in_each_interval(trace):
    """Where nothing is sent again, which it times, too, against Karn's rule."""
    timed = 0
    for one, packets in intervals(trace, trace.heard):
        theirs = [at.rtt_s for at in packets if at.rtt_s is not None]
        ours = one.metrics.get("rtt_s"), one.metrics.get("rtt_max_s")
        if None not in ours and len(theirs) == len(trips_of(trace.half, one)):
            assert ours == pytest.approx((fmean(theirs), max(theirs)), abs=2e-6)
            timed += 1
    assert timed > 2 or not trace.half.least_s  # tshark has none of 0 us


def trips_of(half, one):
    return [at_s for at_s in half.rtt_times_s if one.start_s - EDGE_S <= at_s < one.end_s - EDGE_S]
