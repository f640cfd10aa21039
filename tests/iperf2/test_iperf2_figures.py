"""What the transcripts of real runs mean: whose count a figure is, of which direction and time."""

from itertools import pairwise

import pytest
from iperf2.iperf2_support import events, flow, only, samples, summary

from benchctl.api import Direction, Effective, Failure, Ready, Role, Sample, Warn, replay
from benchctl_iperf2 import BACKEND
from benchctl_iperf2.client import ClientReport

SEND, RECEIVE = Direction.SEND, Direction.RECEIVE


def counted(told, name, direction):
    return sum(one.metrics[name] for one in samples(told, direction))


def test_a_sender_over_tcp_has_a_rate_of_sending_and_no_throughput():
    told = events("tcp_send")
    assert summary(told) == {"sent_bps": 19765860, "bytes_sent": 2523196, "retransmits": 0}
    first = samples(told)[0]
    assert (first.start_s, first.end_s, first.direction) == (0, 0.25, SEND)
    assert first.metrics == {
        "sent_bps": 19924864, "bytes_sent": 622652, "retransmits": 0,
        "cwnd_bytes": 1151 * 1024, "tcp_rtt_s": 0.018341, "tcp_rttvar_s": 0.011809,
    }  # fmt: skip


def test_our_server_adds_what_arrived():
    told = events("tcp_send", Role.SERVER)
    assert told[0] == Ready()
    assert summary(told) == {"throughput_bps": 20098821, "bytes_received": 2523196}
    assert {one.direction for one in samples(told)} == {SEND}


def test_a_client_that_receives_has_the_throughput_and_the_server_its_own_count():
    received, sent = events("tcp_receive"), events("tcp_receive", Role.SERVER)
    assert summary(received, RECEIVE) == {"throughput_bps": 20000920, "bytes_received": 2523136}
    assert summary(sent, RECEIVE) == {
        "sent_bps": 19457963, "bytes_sent": 2523136, "retransmits": 0,
    }  # fmt: skip


@pytest.mark.parametrize("case", ["tcp_full_duplex", "tcp_dual_test", "udp_full_duplex"])
def test_both_directions_are_told_apart_at_both_ends(case):
    client, server = events(case), events(case, Role.SERVER)
    for way, sender, receiver in ((SEND, client, server), (RECEIVE, server, client)):
        sent, received = summary(sender, way), summary(receiver, way)
        assert sent["bytes_sent"] == received["bytes_received"]
        assert counted(sender, "bytes_sent", way) <= sent["bytes_sent"]
        assert counted(receiver, "bytes_received", way) <= received["bytes_received"]


@pytest.mark.parametrize(
    ("case", "direction", "streams"),
    [("tcp_send_streams", SEND, 3), ("tcp_receive_streams", RECEIVE, 2),
     ("tcp_full_duplex_streams", SEND, 2), ("tcp_full_duplex_streams", RECEIVE, 2)],
)  # fmt: skip
def test_the_figures_of_a_direction_are_those_of_its_streams_together(case, direction, streams):
    told = events(case)
    assert {one.stream for one in samples(told, direction)} == set(range(streams))
    amount = "bytes_sent" if direction is SEND else "bytes_received"
    whole = summary(told, direction)[amount]
    each = {one.stream: 0.0 for one in samples(told, direction)}
    for one in samples(told, direction):
        each[one.stream] += one.metrics[amount]
    assert sum(each.values()) == pytest.approx(whole, rel=0.01)


def test_sums_are_not_read_because_they_end_with_the_first_stream():
    """The line of the sum says 60.4 Mbit/s in 1.0029 s, and each stream took 1.0319 s."""
    assert summary(events("tcp_send_streams"))["sent_bps"] == 19560663 + 19562028 + 19561441


def test_every_datagram_is_counted_once():
    """iperf says 175 writes and 177 datagrams; the bytes are those of 176, which arrived."""
    told = summary(events("udp_send"))
    assert told["bytes_sent"] == 176 * 1448
    assert told["packets_sent"] == told["packets_received"] == 176
    assert (told["packets_lost"], told["loss_ratio"], told["packets_reordered"]) == (0, 0, 0)
    assert told["jitter_rfc3550_s"] == 7e-6
    assert told["throughput_bps"] == 2020354


def test_a_short_last_datagram_counts_as_one():
    told = summary(events("udp_bytes"))
    assert (told["bytes_sent"], told["packets_sent"]) == (103400, 104)


def test_the_servers_report_of_each_stream_comes_back():
    told = summary(events("udp_send_streams"))
    assert (told["packets_received"], told["packets_lost"]) == (351, 1)
    assert told["loss_ratio"] == pytest.approx(1 / 352)


def test_of_one_way_delays_there_are_the_means_of_intervals_and_the_extremes_of_the_run():
    received = events("tcp_trip_times_receive")
    assert summary(received, RECEIVE)["write_to_read_s"] == pytest.approx(
        {"mean": 71e-6, "min": 21e-6, "max": 168e-6}
    )
    [first, *_] = samples(received)
    assert first.metrics["interval_write_to_read_s"] == pytest.approx(65e-6)
    told = summary(events("udp_trip_times"))["owd_s"]
    assert told == pytest.approx({"mean": 24e-6, "min": 3e-6, "max": 107e-6})
    assert "write_to_read_s" in summary(events("tcp_trip_times", Role.SERVER))


def test_delays_that_nobody_asked_for_are_left_out():
    """iperf prints them for every datagram, although nobody said that the clocks agree."""
    assert "owd_s" not in summary(events("udp_send"))


def test_delays_of_two_clocks_come_with_a_warning():
    lines = b"".join(
        line for line in UDP.splitlines(keepends=True) if b"Bytes" in line or b"Report" in line
    )
    for one_clock in (False, True):
        parser = ClientReport(
            flow(protocol="udp", duration="1s", trip_times=True, one_clock=one_clock), 0.25
        )
        warned = [w.message for w in only(Warn, replay(parser, lines)) if "clocks" in w.message]
        assert bool(warned) is not one_clock


def test_what_was_in_force_is_told_and_a_default_buffer_is_not():
    settings = only(Effective, events("tcp_options"))[-1].settings
    assert settings == {
        "length_bytes": 16384, "congestion_control": "reno", "dscp": 46, "window_bytes": 131072,
        "mss_bytes": 988,
    }  # fmt: skip
    assert "window_bytes" not in only(Effective, events("tcp_send"))[-1].settings


def test_a_server_that_only_swallows_leaves_the_senders_count():
    told = events("sink")
    assert not only(Warn, told)
    assert summary(told).keys() == {"sent_bps", "bytes_sent", "retransmits"}


def test_a_compatible_client_has_bytes_and_rates():
    assert summary(events("sink_compatible")) == {"sent_bps": 20123229, "bytes_sent": 2523136}


def test_a_server_that_never_closes_does_not_make_the_rate_smaller():
    """iperf waits 2 s for it and says 6.67 Mbit/s; 2,523,196 bytes were written in 1 s."""
    told = events("sink_never_closes")
    metrics = summary(told)
    assert metrics["sent_bps"] == 2523196 * 8
    assert metrics["iperf2_sent_bps"] == 6667178
    assert "did not close the connection" in only(Warn, told)[0].message
    assert "sent_bps" not in samples(told)[-1].metrics  # after the last write


def test_a_wait_for_a_slow_close_is_told():
    """Its time may be that of buffers that empty, so iperf's rate is kept."""
    lines = b"""\
[  1] 0.00-1.00 sec  1000000 Bytes  8000000 bits/sec  10/0          0      10K/500(2) us  1
[  1] 0.00-1.50 sec  1000000 Bytes  5333333 bits/sec  10/0          0      10K/500(2) us  1
"""
    told = replay(ClientReport(flow(duration="1s"), 1.0), lines)
    assert summary(told)["sent_bps"] == 5333333
    assert "0.5 s from the last write" in only(Warn, told)[0].message


def test_a_run_within_its_first_interval_is_one_sample_and_the_result():
    line = b"[  1] 0.0000-0.0163 sec  1000 Bytes  491975 bits/sec  10/0  0  416K/35(20) us  17\n"
    told = replay(ClientReport(flow(bytes="1000B"), 1.0), line)
    assert summary(told)["bytes_sent"] == 1000
    assert len(samples(told)) == 1


def test_a_rate_over_no_time_is_unknown():
    line = b"[  1] 0.0000-0.0001 sec  16444 Bytes  0.000 bits/sec  1/0  0  320K/34(17) us  0\n"
    [told] = samples(replay(ClientReport(flow(bytes="16444B"), 1.0), line))
    assert "sent_bps" not in told.metrics


def test_reordered_datagrams_are_those_of_the_whole_run():
    late = b"""\
[ *1] 0.0000-1.0000 sec  1448000 Bytes  11584000 bits/sec  0.01 ms 0/1000 (0%) -/-/-/- ms 9 pps
[ *1] 0.0000-1.0000 sec  3 datagrams received out-of-order
[ *1] 0.0000-2.0000 sec  2896000 Bytes  11584000 bits/sec  0.01 ms 0/2000 (0%) -/-/-/- ms 9 pps
[ *1] 0.0000-2.0000 sec  5 datagrams received out-of-order
"""
    parser = ClientReport(flow("receive", protocol="udp", duration="2s", rate="12Mbit"), 1.0)
    assert summary(replay(parser, late), RECEIVE)["packets_reordered"] == 5


def test_times_of_a_stream_follow_each_other():
    for case in ("tcp_send_streams", "tcp_full_duplex_streams", "udp_send", "server_dies_udp"):
        told = events(case)
        for way in (SEND, RECEIVE):
            for stream in {one.stream for one in samples(told, way)}:
                mine = [one for one in samples(told, way) if one.stream == stream]
                assert all(a.end_s == b.start_s for a, b in pairwise(mine))


def test_adaptive_units_are_read_too():
    line = b"[  3]  0.0- 1.0 sec  1.12 GBytes  9.41 Gbits/sec\n"
    [told] = only(Sample, replay(BACKEND.client(flow(duration="2s")).parser, line))
    assert told.metrics == {"sent_bps": 9.41e9, "bytes_sent": round(1.12 * 2**30)}
    assert not only(Failure, [told])


UDP = b"""\
[  1] 0.0000-0.2500 sec  65160 Bytes  2085120 bits/sec  44/0      181 pps
[  1] 0.0000-1.0079 sec  254848 Bytes  2022726 bits/sec  175/0      176 pps
[  1] Sent 177 datagrams
[  1] Server Report:
[  1] 0.0000-1.0080 sec 254848 Bytes 2022513 bits/sec 0.002 ms 0/176 (0%) 0.02/0.01/0.1/0.1 ms 1 pps
"""
