"""Figures of flows through slow links, beside what tcpdump saw at both ends of them.

The links carried 1 or 10 Mbit/s of Ethernet frames, and queued 40 or 60 KB: what is in the queue
when the sender ends arrives later, and is the difference between an end's time and the other's.
"""

import pytest
from contract import kept

from benchctl.analysis.flow.figures import FlowFold
from benchctl.api import Sample, Summary, Warn
from benchctl_iperf3 import BACKEND

KEPT = kept("iperf3")


def measured(name):
    """Return the figures of a flow by direction and metric, and its warnings."""
    fold, warnings = FlowFold(), []
    for role in ("client", "server"):
        if (told := KEPT.get(f"{name}.{role}.json")) is None:
            continue
        for event in told.replay(told.parser(BACKEND)):
            if isinstance(event, Sample):
                fold.add_sample(role, event)
            elif isinstance(event, Summary):
                fold.add_summary(event)
            elif isinstance(event, Warn):
                warnings.append(event.message)
    return fold.figures(), [*warnings, *fold.disagreements()]


@pytest.mark.parametrize(
    ("name", "direction", "sent_bps", "throughput_bps"),
    [
        # Payload from the first packet to the last, at either end.
        ("udp_both_queue_312", "send", 1.3000e6, 0.9749e6),
        ("udp_both_queue_312", "receive", 1.3000e6, 0.9741e6),
        ("udp_both_queue_321", "send", 1.3014e6, 0.9748e6),
        ("udp_both_queue_321", "receive", 1.3000e6, 0.9743e6),
        ("udp_queue_39", "send", 12.9977e6, 9.7241e6),
        ("udp_receive_queue_39", "receive", 1.2997e6, 0.9767e6),
        ("udp_omit_queue_321", "send", 1.3021e6, 0.9746e6),
    ],
)
def test_the_rates_of_datagrams_are_those_on_the_wire(name, direction, sent_bps, throughput_bps):
    figures, warnings = measured(name)
    # A datagram more or less, and the 10 ms to which old versions print times.
    assert figures[direction, "sent_bps"].value == pytest.approx(sent_bps, rel=0.006)
    assert figures[direction, "throughput_bps"].value == pytest.approx(throughput_bps, rel=0.006)
    assert not warnings


@pytest.mark.parametrize("name", ["udp_both_queue_312", "udp_both_queue_321", "tcp_both_queue_312"])
def test_what_arrives_of_data_both_ways_is_divided_by_the_time_of_its_own_end(name):
    figures, _ = measured(name)
    received = figures["receive", "throughput_bps"]
    # Both ends measured for 3 s, and the client is the one that received.
    own_bps = figures["receive", "bytes_received"].value * 8 / 3
    assert (received.origin, received.value) == ("samples", pytest.approx(own_bps, rel=0.002))
    assert received.rejected < 0.95 * own_bps
    assert "arrived at the client by the server's time" in received.broken.words
    sent = figures["receive", "sent_bps"]
    assert sent.value < sent.rejected
    assert figures["send", "throughput_bps"].broken is None


def test_where_both_ends_measure_for_the_same_time_nothing_is_doubted():
    figures, warnings = measured("udp_both")
    assert not [figure for figure in figures.values() if figure.broken]
    assert not warnings


@pytest.mark.parametrize(
    ("name", "rejected_bps", "throughput_bps"),
    [("udp_queue_39", 9.49e6, 9.7241e6), ("tcp_queue_39", 9.346e6, 9.5431e6)],
)
def test_what_a_known_old_server_waited_is_not_in_its_rate(name, rejected_bps, throughput_bps):
    figure = measured(name)[0]["send", "throughput_bps"]
    assert figure.value == pytest.approx(throughput_bps, rel=0.006)
    assert figure.rejected == rejected_bps
    assert "40 ms before the client sends" in figure.broken.words


@pytest.mark.parametrize("name", ["udp_queue_321_317", "udp_queue_312_317"])
def test_a_jitter_that_cannot_be_counts_nowhere(name):
    figures, warnings = measured(name)
    jitter = figures["send", "jitter_rfc3550_s"]
    # 279 datagrams arrived within 3.3 s.
    assert jitter.value == pytest.approx(1.8155, rel=1e-3)
    assert not jitter.counts
    assert "difference of the two clocks" in jitter.broken.words
    # 0.975 Mbit/s arrived; iperf3 reports 1.077.
    [warning] = warnings
    assert warning.startswith("throughput_bps may be too high: a server before 3.2 does not report")


def test_a_server_that_does_not_report_its_time_is_known_without_a_jitter_too():
    [warning] = measured("tcp_queue_321_317")[1]
    assert warning.startswith("throughput_bps may be too high: a server before 3.2 does not report")


def test_without_an_omitted_part_none_is_blamed():
    figures, warnings = measured("udp_receive_312_317")
    sent = figures["receive", "packets_sent"]
    assert (sent.value, sent.rejected) == (337, 308)
    assert "before 3.2 reports as sent what the client has received" in sent.broken.words
    assert not warnings


def test_bytes_that_had_not_arrived_when_iperf3_ended_are_told():
    figures, [warning] = measured("bytes_queue_312")
    assert figures["send", "bytes_received"].value == 883_280
    assert warning.startswith("bytes_received is 883,280 of 1,048,576 bytes: iperf3 ends when")
    # 9.5759 Mbit/s arrived.
    assert figures["send", "throughput_bps"].value == pytest.approx(9.576e6, rel=1e-3)
    assert not measured("tcp_send")[1]


def test_a_rate_of_whole_blocks_is_known_in_steps():
    figures, _ = measured("tcp_queue_321")
    # 415,576 bytes arrived in 3.46 s: 0.956 Mbit/s.
    throughput = figures["send", "throughput_bps"]
    assert throughput.value == pytest.approx(0.6516e6, rel=1e-3)
    assert throughput.resolution == pytest.approx(131072 * 8 / 3.21845)
    # What a server counts as it reads is no number of blocks, nor is what a known one of 3.12 does.
    assert measured("tcp_queue_321_317")[0]["send", "throughput_bps"].resolution is None
    assert measured("tcp_send")[0]["send", "throughput_bps"].resolution is None
