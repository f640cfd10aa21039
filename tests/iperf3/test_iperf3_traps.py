"""Habits of iperf3 that have spoilt figures before; each test is named after one."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from iperf3.iperf3_support import (
    effective,
    events,
    flow,
    only,
    parser_of,
    samples,
    summary,
    transcript,
)

from benchctl.api import Direction, Effective, Failure, FailureKind, Sample, Summary, Warn, replay
from benchctl_iperf3.stream import JsonStream
from benchctl_iperf3.text import TextClient


def failure(told):
    """Return the one failure, after which no figures are told."""
    [found] = only(Failure, told)
    assert not only(Summary, told)
    return found


@pytest.mark.parametrize(
    "name",
    [
        "3.12/fail_busy_text",
        "3.12/server_killed_KILL_text",
        "3.12/client_SIGTERM_text",
        "3.21/json_stream_busy",
        "3.21/json_stream_SIGINT",
        "3.21/json_stream_badflag",
    ],
)
def test_exit_code_0_does_not_make_an_error_a_success(name):
    assert failure(events(name, exit_code=0)) == failure(events(name, exit_code=1))


def test_a_run_that_ends_without_a_result_fails_with_exit_code_0():
    told = transcript("3.21/json_stream_tcp")
    without_end = b"".join(told.stdout.splitlines(keepends=True)[:-1])
    found = failure(replay(JsonStream(flow()), without_end))
    assert (found.kind, found.message) == (FailureKind.TOOL, "no result (exit code 0)")


def test_a_result_stands_when_the_exit_code_is_bad_and_the_user_hears_of_it():
    told = events("3.21/json_stream_tcp", exit_code=-9)
    assert summary(told)["throughput_bps"] == pytest.approx(33_091_394_924)
    assert only(Warn, told) == [Warn("iperf3 reported its result and then ended with SIGKILL")]


@pytest.mark.parametrize(
    ("name", "ends"),
    [
        ("3.12/server_killed_INT_text", [1.0, 2.0]),
        ("3.12/server_killed_KILL_text", [1.0, 2.0]),
        ("3.21/server_killed.client", [1.001206, 2.001367]),
    ],
)
def test_the_last_interval_is_told_twice_when_the_server_goes_away(name, ends):
    told = events(name)
    assert [sample.end_s for sample in samples(told)] == ends
    assert failure(told).kind is FailureKind.PEER


def test_a_server_that_was_terminated_is_the_peers_fault():
    found = failure(events("3.21/server_terminated.client"))
    assert (found.kind, found.message) == (FailureKind.PEER, "the server has terminated")


def test_an_empty_end_object_is_no_result():
    assert failure(events("3.21/server_killed.client")).kind is FailureKind.PEER
    told = transcript("3.21/server_killed.client").stdout
    without_error = told.replace(b'"event":"error"', b'"event":"other"')
    assert failure(replay(JsonStream(flow()), without_error)).kind is FailureKind.TOOL


def test_of_two_errors_the_first_is_the_cause():
    refusal = b"client's requested duration exceeds the server's maximum permitted limit"
    stream = (
        b'{"event":"error","data":"SERVER ERROR - ' + refusal + b'"}\n'
        b'{"event":"error","data":"control socket has closed unexpectedly"}\n'
        b'{"event":"end","data":{}}\n'
    )
    assert failure(replay(JsonStream(flow()), stream, exit_code=1)) == Failure(
        FailureKind.REFUSED,
        refusal.decode(),
        "the server limits the duration; reduce it",
    )
    text = b"iperf3: SERVER ERROR - " + refusal + b"\niperf3: error - int_errno=37: \n"
    assert failure(replay(TextClient(flow()), b"", text, 1)).message == refusal.decode()


def test_an_object_with_the_same_key_twice_is_read():
    stream = b'{"event":"error","data":"the server is busy","data":"the server is busy"}\n'
    assert failure(replay(JsonStream(flow()), stream, exit_code=1)).kind is FailureKind.BUSY


@pytest.mark.parametrize(
    ("name", "direction"),
    [
        ("3.9/tcp_receive_omit.client", "receive"),
        ("3.12/tcp_receive_omit.client", "receive"),
        ("3.12/tcp_receive_omit.server", "receive"),
        ("3.21/tcp_receive_omit.client", "receive"),
        ("3.21/tcp_receive_omit.server", "receive"),
        ("3.12/udp_both_omit.client", "both"),
        ("3.12/udp_both_omit.server", "both"),
        ("3.21/udp_both_omit.client", "both"),
        ("3.21/udp_both_omit.server", "both"),
    ],
)
def test_the_clock_starts_again_after_omitted_intervals(name, direction):
    protocol = "udp" if "udp" in name else "tcp"
    told = samples(events(name, direction, protocol=protocol, omit="1s", duration="2s"))
    for stream in {sample.stream for sample in told}:
        of_stream = [sample for sample in told if sample.stream == stream]
        assert [sample.omitted for sample in of_stream] == [True, False, False]
        starts = [sample.start_s for sample in of_stream]
        assert starts == pytest.approx([-1, 0, 1], abs=0.02)
        assert of_stream[0].end_s <= 0 <= of_stream[1].start_s


def test_an_interrupted_client_keeps_its_samples_and_is_no_result():
    for name in ("3.21/json_stream_SIGINT", "3.12/client_SIGTERM_text", "3.12/interrupted.client"):
        told = events(name)
        assert len(samples(told)) >= 2
        assert failure(told).kind is FailureKind.TOOL
        assert failure(told).hint == "a signal ended the client before its time"


def test_a_client_that_hangs_on_a_frozen_server_can_be_killed_and_keeps_its_samples():
    told = transcript("3.21/json_stream_tcp")
    frozen = b"".join(told.stdout.splitlines(keepends=True)[:3])
    found = replay(JsonStream(flow()), frozen, exit_code=-9)
    assert len(samples(found)) == 2
    assert failure(found).message == "no result (SIGKILL)"


def test_the_fragment_at_the_end_of_the_servers_intervals_has_no_rate():
    stdout = transcript("3.21/tcp_both_P2.server").stdout
    assert b"  1.00-1.00   sec" in stdout
    told = samples(events("3.21/tcp_both_P2.server", "both", streams=2, interval="500ms"))
    last = [sample for sample in told if sample.end_s - sample.start_s < 0.05]
    assert last
    for sample in last:
        assert (sample.start_s, sample.end_s) == (1.0, 1.0)
        assert not {"throughput_bps", "sent_bps"} & set(sample.metrics)


def test_a_fragment_counts_when_it_is_all_there_is():
    told = events("3.12/bytes.client", bytes="10M")
    [sample] = samples(told)
    assert sample.end_s - sample.start_s < 0.1
    assert sample.metrics["bytes_sent"] == 10 * 2**20
    assert summary(told)["bytes_received"] == 10 * 2**20


def test_a_receiver_that_counted_nothing_means_that_no_data_moved():
    told = transcript("3.21/json_stream_udp").stdout
    head, mark, end = told.rpartition(b'"sum_received":')
    silent = head + mark + b'{"bytes":0,"bits_per_second":0,"packets":0,"lost_packets":0}}}\n'
    assert end
    found = failure(replay(JsonStream(flow(protocol="udp")), silent))
    assert (found.kind, found.message) == (
        FailureKind.TOOL,
        "moved no data: the receiver counted 0 bytes",
    )


def test_one_silent_direction_of_two_is_a_failure():
    told = transcript("3.12/tcp_text_bidir")
    rows = told.stdout.decode().splitlines()
    [index] = [i for i, row in enumerate(rows) if "RX-C" in row and row.endswith("receiver")]
    rows[index] = (
        "[  7][RX-C]   0.00-1.00   sec  0.00 Bytes  0.00 bits/sec                  receiver"
    )
    silent = "\n".join(rows).encode()
    assert "moved no data" in failure(replay(TextClient(flow("both")), silent)).message


def test_the_sums_flag_sender_does_not_pick_the_receiver():
    # Both sums of a sending client carry "sender": true.
    metrics = summary(events("3.21/json_stream_tcp"))
    assert metrics["bytes_sent"] == 12_419_072_000
    assert metrics["bytes_received"] == 12_415_270_912


def test_udp_loss_comes_from_the_receivers_sum():
    told = events("3.21/json_stream_udp_loss_R", "receive", protocol="udp", length="1400B")
    metrics = summary(told, Direction.RECEIVE)
    assert metrics["packets_sent"] == 689_153
    assert metrics["packets_received"] + metrics["packets_lost"] == 689_148
    assert metrics["loss_ratio"] == pytest.approx(309_736 / 689_148)
    assert metrics["bytes_received"] == metrics["packets_received"] * 1400


def test_a_round_trip_time_of_zero_means_unknown():
    for name, direction, way in (
        ("3.21/tcp_receive_omit.client", "receive", Direction.RECEIVE),
        ("3.21/json_stream_bidir", "both", Direction.RECEIVE),
    ):
        assert "tcp_rtt_s" not in summary(events(name, direction, omit="1s"), way)
    stdout = transcript("3.21/json_stream_tcp").stdout
    unknown = stdout.replace(b'"rtt":31,', b'"rtt":0,').replace(b'"min_rtt":31,', b'"min_rtt":0,')
    told = replay(JsonStream(flow()), unknown)
    assert ["tcp_rtt_s" in sample.metrics for sample in samples(told)] == [False, True, True]
    assert "tcp_rtt_s" not in summary(told)


def test_the_round_trip_times_of_an_idle_receiving_socket_are_not_those_of_the_flow():
    told = transcript("3.21/json_stream_bidir").stdout
    assert b'"max_rtt":3,' in told
    assert summary(events("3.21/json_stream_bidir", "both"))["tcp_rtt_s"] == {
        "min": 34e-6,
        "mean": 47e-6,
        "max": 61e-6,
    }


def test_in_both_directions_the_congestion_control_of_json_means_the_server_as_sender():
    name = "3.21/cross_new_client_312_server_bidir_stream"
    assert b'"sender_tcp_congestion":"reno"' in transcript(name).stdout
    settings = effective(events(name, "both"), Effective)
    assert settings["congestion_control"] == "bbr"
    assert settings["peer_congestion_control"] == "reno"


def test_parameter_errors_are_not_json():
    found = failure(events("3.21/json_stream_badflag"))
    assert found == Failure(FailureKind.PARAMETER, "unrecognized option '--nosuch'")


def test_the_help_that_312_prints_after_a_parameter_error_is_no_table():
    assert transcript("3.12/fail_bigP_text").stdout.startswith(b"Usage:")
    found = failure(events("3.12/fail_bigP_text"))
    assert found.kind is FailureKind.PARAMETER
    assert found.message == "number of parallel streams too large (maximum = 128)"


def test_warnings_on_stderr_do_not_fail_a_run():
    told = transcript("3.21/json_stream_udp")
    text = "UDP block size 1472 exceeds TCP MSS 1448, may result in fragmentation / drops"
    found = replay(JsonStream(flow(protocol="udp")), told.stdout, f"warning: {text}\n".encode())
    assert only(Warn, found) == [Warn(text)]
    assert only(Summary, found)


def test_the_tables_of_streams_are_not_added_to_their_sum():
    told = events("3.12/tcp_text_P4", streams=4)
    assert len(samples(told)) == 4
    assert [sample.stream for sample in samples(told)] == [0, 1, 2, 3]
    assert summary(told)["throughput_bps"] == 44.5e9


def test_late_packets_take_back_a_loss_without_a_negative_ratio():
    row = "[  5]   1.00-2.00   sec  2.38 MBytes  19988 Kbits/sec  0.013 ms  -2/1727 (-0.12%)  "
    [sample] = replay(parser_of("text", "receive", protocol="udp"), row.encode() + b"\n")[:1]
    assert isinstance(sample, Sample)
    assert sample.metrics["packets_lost"] == -2
    assert sample.metrics["packets_received"] == 1729
    assert "loss_ratio" not in sample.metrics


def test_losses_that_a_version_cannot_tell_are_left_out():
    row = "[  5]   0.00-2.00   sec  4.77 MBytes  20007 Kbits/sec  0.011 ms  Unknown/3454  receiver"
    told = replay(parser_of("text", "receive", protocol="udp"), row.encode() + b"\n")
    assert "packets_lost" not in summary(told, Direction.RECEIVE)
    assert summary(told, Direction.RECEIVE)["throughput_bps"] == 20_007_000


def test_reordered_packets_are_told_once_a_stream_under_the_name_of_the_sum():
    told = transcript("3.12/udp_loss_R_text")
    line = b"[SUM]  0.0-2.0 sec  3 datagrams received out-of-order\n"
    stdout = told.stdout.replace(b"\niperf Done", line + line + b"\niperf Done")
    found = replay(parser_of("text", "receive", protocol="udp", length="1400B"), stdout)
    assert summary(found, Direction.RECEIVE)["packets_reordered"] == 6


# What a server of 3.12 printed that was stopped for 0.34 s: the rest of an interval behind the late
# one has a fourth of all bytes.
HELD_UP = b"""\
[  5]   0.00-0.20   sec   512 KBytes  21.0 Mbits/sec
[  5]   0.20-0.59   sec   384 KBytes  8.16 Mbits/sec
[  5]   0.59-0.60   sec   640 KBytes   364 Mbits/sec
[  5]   0.60-0.80   sec   512 KBytes  21.0 Mbits/sec
[  5]   0.80-1.00   sec   512 KBytes  21.0 Mbits/sec
"""


def test_what_a_held_up_end_counts_in_the_rest_of_an_interval_is_in_the_next():
    told = samples(replay(parser_of("text.server", interval="200ms"), HELD_UP))
    times = [(sample.start_s, sample.end_s) for sample in told]
    assert times == [(0, 0.2), (0.2, 0.59), (0.59, 0.8), (0.8, 1.0)]
    received = [sample.metrics["bytes_received"] / 1024 for sample in told]
    assert received == [512, 384, 640 + 512, 512]
    assert told[2].metrics["throughput_bps"] == pytest.approx((640 + 512) * 1024 * 8 / 0.21)


def interval(start_s, end_s, omitted=False, **figures):
    row = {"socket": 5, "start": start_s, "end": end_s, "omitted": omitted, **figures}
    return json.dumps({"event": "interval", "data": {"streams": [row]}}) + "\n"


def told_of(*intervals, **parameters):
    start = {"event": "start", "data": {"test_start": {"protocol": "UDP"}}}
    parser = JsonStream(flow("receive", protocol="udp", interval="1s", **parameters))
    return samples(replay(parser, (json.dumps(start) + "\n" + "".join(intervals)).encode()))


def counts(packets, lost, bits_per_second=1e6):
    told = {"packets": packets, "lost_packets": lost, "jitter_ms": packets / 1e3}
    return {"bytes": (packets - lost) * 1000, "bits_per_second": bits_per_second, **told}


def test_datagrams_in_the_rest_of_an_interval_are_counted_in_the_next():
    told = told_of(
        interval(0, 1.95, **counts(100, 0)),
        interval(1.95, 2, **counts(40, 10)),
        interval(2, 2, **counts(0, 0)),
        interval(2, 3, **counts(60, -1)),
        interval(3, 4, **counts(50, 5)),
    )
    assert [(sample.start_s, sample.end_s) for sample in told] == [(0, 1.95), (1.95, 3), (3, 4)]
    assert told[1].metrics == {
        "bytes_received": 91_000, "throughput_bps": pytest.approx(91_000 * 8 / 1.05),
        "packets_received": 91, "packets_lost": 9, "loss_ratio": 0.09,
        "jitter_rfc3550_s": pytest.approx(6e-5),
    }  # fmt: skip
    assert told[2].metrics["loss_ratio"] == 0.1


@given(
    parts=st.lists(
        st.tuples(st.floats(0.001, 2), st.integers(1, 99), st.integers(0, 9)), min_size=1
    )
)
def test_wherever_intervals_end_nothing_is_lost_between_them(parts):
    rows, end_s = [], 0.0
    for length_s, received, lost in parts:
        rows.append(interval(end_s, end_s + length_s, **counts(received + lost, lost)))
        end_s += length_s
    told = told_of(*rows)
    ends = [0.0, *(sample.end_s for sample in told)]
    assert [sample.start_s for sample in told] == ends[:-1]
    assert ends[-1] == end_s
    for name, number in (("packets_received", 1), ("packets_lost", 2)):
        counted = sum(sample.metrics.get(name, 0.0) for sample in told)
        assert counted == sum(part[number] for part in parts)


def test_the_rest_of_a_transfer_has_its_bytes_and_no_absurd_rate():
    told = told_of(interval(0, 1, **counts(100, 0)), interval(1, 1.002, **counts(90, 1, 360e6)))
    assert (told[1].start_s, told[1].end_s) == (1, 1.002)
    assert "throughput_bps" not in told[1].metrics
    assert told[1].metrics["bytes_received"] == 89_000


def test_what_counts_nothing_after_the_last_interval_is_no_sample():
    told = told_of(interval(0, 1, **counts(100, 0)), interval(1, 1.002, **counts(0, 0)))
    assert [sample.end_s for sample in told] == [1]


def test_the_rest_of_an_omitted_interval_is_not_measured():
    told = told_of(
        interval(0, 1, omitted=True, **counts(100, 0)),
        interval(1, 1.05, omitted=True, **counts(5, 0)),
        interval(0, 1, **counts(50, 0)),
        omit="1s",
    )
    assert [sample.omitted for sample in told] == [True, False]
    assert told[1].metrics["packets_received"] == 50


def test_an_interval_that_does_not_follow_is_not_joined_to_what_came_before():
    told = told_of(
        interval(0, 1, **counts(100, 0)),
        interval(1, 1.05, **counts(5, 0)),
        interval(0, 2, **counts(60, 0)),
    )
    assert [(sample.start_s, sample.end_s) for sample in told] == [(0, 1), (0, 2)]
    assert told[1].metrics["packets_received"] == 60
