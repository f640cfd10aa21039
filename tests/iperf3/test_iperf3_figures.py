"""The figures of both formats, value by value, and what was in force."""

import pytest
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

from benchctl.api import (
    METRICS,
    Channel,
    Direction,
    Effective,
    Failure,
    Ready,
    Sample,
    Started,
    Summary,
    replay,
)
from benchctl_iperf3.details import Detail, Details
from benchctl_iperf3.text import TextServer

BOTH = {"direction": "both", "streams": 2, "interval": "500ms"}


def test_a_json_interval_keeps_everything_that_a_tcp_sender_tells():
    first = samples(events("3.21/json_stream_tcp"))[0]
    assert first == Sample(
        0.0,
        1.000643,
        {
            "sent_bps": 35160261955.399231,
            "bytes_sent": 4397858816,
            "retransmits": 10,
            "cwnd_bytes": 916762,
            "peer_window_bytes": 1540096,
            "tcp_rtt_s": 31e-6,
            "tcp_rttvar_s": 6e-6,
            "path_mtu_bytes": 65535,
            "reordering": 3,
        },
    )


def test_a_json_interval_keeps_everything_that_a_udp_receiver_tells():
    told = events("3.21/json_stream_udp_loss_R", "receive", protocol="udp", length="1400B")
    first = samples(told)[0]
    assert first.direction is Direction.RECEIVE
    assert first.metrics == {
        "throughput_bps": 1889711309.5997357,
        "bytes_received": 236436200,
        "packets_received": 168883,
        "packets_lost": 145056,
        "loss_ratio": 145056 / 313939,
        "jitter_rfc3550_s": pytest.approx(2.76e-6, rel=0.01),
    }


def test_a_json_end_becomes_the_summary():
    assert summary(events("3.21/json_stream_tcp")) == {
        "sent_bps": 33102937972.00034,
        "bytes_sent": 12419072000,
        "retransmits": 13,
        "throughput_bps": 33091394924.453178,
        "bytes_received": 12415270912,
        "tcp_rtt_s": {"min": 31e-6, "mean": 51e-6, "max": 77e-6},
        "cpu_client_ratio": pytest.approx(0.447566, abs=1e-6),
        "cpu_server_ratio": pytest.approx(0.687283, abs=1e-6),
    }


def test_a_json_start_says_what_was_in_force():
    told = events("3.21/tcp_receive_omit.client", "receive", omit="1s", window="256K")
    assert effective(told, Effective) == {
        "version": "3.21",
        "protocol": "tcp",
        "streams": 1,
        "length_bytes": 131072,
        "dscp": 0,
        "mss_bytes": 1000,
        "send_buffer_bytes": 524288,
        "receive_buffer_bytes": 524288,
        "window_bytes": 524288,
        "congestion_control": "reno",
        "peer_congestion_control": "reno",
    }


def test_a_window_that_was_not_asked_for_is_not_told_as_one():
    assert "window_bytes" not in effective(events("3.21/json_stream_tcp"), Effective)
    assert "window_bytes" not in effective(events("3.12/bytes.client"), Effective)


def test_text_says_the_same_of_what_was_in_force():
    told = events("3.12/tcp_receive_omit.client", "receive", omit="1s", window="256K")
    assert effective(told, Effective) == {
        "version": "3.12",
        "protocol": "tcp",
        "streams": 1,
        "length_bytes": 131072,
        "dscp": 0,
        "mss_bytes": 1000,
        "send_buffer_bytes": 524288,
        "receive_buffer_bytes": 524288,
        "window_bytes": 524288,
        "congestion_control": "reno",
        "peer_congestion_control": "reno",
    }


@pytest.mark.parametrize("version", ["3.12", "3.21"])
def test_a_server_tells_only_what_is_its_own(version):
    told = events(f"{version}/tcp_receive_omit.server", "receive", omit="1s")
    assert effective(told, Effective) == {
        "server_version": version,
        "server_send_buffer_bytes": 524288,
        "server_receive_buffer_bytes": 524288,
        "server_mss_bytes": 988,  # 1000 were asked for; timestamps take 12 of them
    }


def test_a_text_interval_of_a_tcp_sender_is_exact_through_its_details():
    first = samples(events("3.12/tcp_both_P2.client", **BOTH))[0]
    rows = transcript("3.12/tcp_both_P2.client").stdout.decode().splitlines()
    lengths = [row.split() for row in rows if row.startswith("interval_len")]
    infos = [row.split() for row in rows if row.startswith("tcpi_")]
    row = next(row for row in rows if "[TX-C]" in row)
    kbit, retransmits = row.split("Kbits/sec")[0].split()[-1], row.split("Kbits/sec")[1].split()[0]
    assert first == Sample(
        0.0,
        0.5,
        {
            "sent_bps": float(kbit) * 1e3,
            "bytes_sent": float(lengths[0][3]),
            "retransmits": float(retransmits),
            "cwnd_bytes": float(infos[0][1]) * float(infos[0][3]),
            "tcp_rtt_s": float(infos[0][5]) / 1e6,
        },
    )
    assert first.metrics["bytes_sent"] * 8 / float(lengths[0][1]) == pytest.approx(
        first.metrics["sent_bps"], abs=600
    )


@pytest.mark.parametrize("role", ["client", "server"])
@pytest.mark.parametrize("version", ["3.12", "3.21"])
def test_samples_of_both_directions_add_up_to_the_bytes_of_the_summary(version, role):
    told = samples(events(f"{version}/tcp_both_P2.{role}", **BOTH))
    totals = events(f"{version}/tcp_both_P2.client", **BOTH)
    # Each end counts the traffic it sends and the traffic it receives.
    sent_way = Direction.SEND if role == "client" else Direction.RECEIVE
    for sample in told:
        counts = "sent" if sample.direction is sent_way else "received"
        assert set(sample.metrics) >= {f"bytes_{counts}"}
        assert ("tcp_rtt_s" in sample.metrics) is (counts == "sent")
    for direction in (Direction.SEND, Direction.RECEIVE):
        name = "bytes_sent" if direction is sent_way else "bytes_received"
        counted = sum(s.metrics[name] for s in told if s.direction is direction)
        assert counted == summary(totals, direction)[name]


@pytest.mark.parametrize("version", ["3.12", "3.21"])
def test_both_ends_number_the_streams_alike(version):
    ways = []
    for role in ("client", "server"):
        told = samples(events(f"{version}/tcp_both_P2.{role}", **BOTH))
        ways.append({(sample.stream, sample.direction) for sample in told})
    send, receive = Direction.SEND, Direction.RECEIVE
    assert ways == [{(0, send), (1, send), (2, receive), (3, receive)}] * 2


def _details(*lines):
    details = Details(256)
    for line in lines:
        assert details.take(line)
    return details


TWO_STREAMS = (
    "tcpi_snd_cwnd 10 tcpi_snd_mss 1000 tcpi_rtt 11",
    "tcpi_snd_cwnd 20 tcpi_snd_mss 1000 tcpi_rtt 22",
    "interval_len 1.000000 bytes_transferred 125000",
    "interval_len 1.000000 bytes_transferred 125000",
)


def test_streams_of_one_rate_get_their_own_round_trip_times_in_order():
    details = _details(*TWO_STREAMS)
    found = [details.of(1e6) for _ in range(3)]
    assert found == [Detail(125000, 10_000, 1000, 11e-6), Detail(125000, 20_000, 1000, 22e-6), None]


def test_tcp_figures_that_are_told_twice_count_by_the_later():
    earlier = [line.replace("tcpi_rtt ", "tcpi_rtt 9") for line in TWO_STREAMS[:2]]
    details = _details(*earlier, *TWO_STREAMS)
    assert [details.of(1e6).rtt_s for _ in range(2)] == [11e-6, 22e-6]


def test_details_do_not_outlive_their_interval():
    details = _details(*TWO_STREAMS, TWO_STREAMS[0])
    assert details.of(1e6) is None


def test_the_exchanged_results_make_a_text_summary_exact():
    told = events("3.12/tcp_both_P2.client", **BOTH)
    stdout = transcript("3.12/tcp_both_P2.client").stdout.decode()
    shown = [row for row in stdout.splitlines() if row.startswith("[SUM]") and "ceiver" in row]
    for direction, row in zip((Direction.SEND, Direction.RECEIVE), shown, strict=True):
        metrics = summary(told, direction)
        assert metrics["bytes_received"].is_integer()
        kbit = float(row.split("Kbits/sec")[0].split()[-1])
        assert metrics["throughput_bps"] == kbit * 1e3
        # The row's time is rounded to 10 ms of about 1 s.
        assert metrics["bytes_received"] * 8 == pytest.approx(kbit * 1e3, rel=0.01)


def test_the_cpu_of_both_ends_is_told_once_and_for_a_receiver_too():
    told = events("3.12/tcp_both_P2.client", **BOTH)
    assert 0 < summary(told, Direction.SEND)["cpu_client_ratio"] < 2
    assert "cpu_client_ratio" not in summary(told, Direction.RECEIVE)
    reverse = events("3.12/tcp_receive_omit.client", "receive", omit="1s")
    assert "CPU Utilization" not in transcript("3.12/tcp_receive_omit.client").stdout.decode()
    assert 0 < summary(reverse, Direction.RECEIVE)["cpu_server_ratio"] < 2


def test_versions_without_details_are_read_from_the_tables_alone():
    told = events("3.9/tcp_receive_omit.client", "receive", omit="1s")
    rows = transcript("3.9/tcp_receive_omit.client").stdout.decode().splitlines()
    final = next(row for row in rows if row.endswith("receiver"))
    kbit = float(final.split("Kbits/sec")[0].split()[-1])
    assert summary(told, Direction.RECEIVE)["throughput_bps"] == kbit * 1e3
    # Three digits of the byte count: at most half a per cent off.
    assert summary(told, Direction.RECEIVE)["bytes_received"] * 8 / 2 == pytest.approx(
        kbit * 1e3, rel=0.01
    )


@pytest.mark.parametrize("version", ["3.12", "3.21"])
def test_udp_bytes_are_whole_datagrams(version):
    parameters = {"protocol": "udp", "streams": 2, "rate": "20Mbit", "duration": "1s"}
    for role in ("client", "server"):
        for sample in samples(events(f"{version}/udp_P2.{role}", **parameters)):
            count = "sent" if role == "client" else "received"
            packets = sample.metrics[f"packets_{count}"]
            assert sample.metrics[f"bytes_{count}"] == packets * 1448
    metrics = summary(events(f"{version}/udp_P2.client", **parameters))
    assert metrics["bytes_received"] == metrics["packets_received"] * 1448


@pytest.mark.parametrize("version", ["3.12", "3.21"])
def test_a_server_is_ready_once_when_it_listens(version):
    told = transcript(f"{version}/tcp_both_P2.server")
    parser = TextServer(flow("both"))
    before, mark, after = told.stdout.partition(b"Server listening")
    assert parser.feed(before) == []
    assert parser.feed(mark + after.partition(b"\n")[0] + b"\n") == [Ready()]
    again = parser.feed(b"Server listening on 5201 (test #2)\n") + parser.feed(after)
    assert Ready() not in again


def test_an_interval_is_told_as_soon_as_its_line_is_whole():
    for name, direction, start in (
        ("3.21/json_stream_tcp", "send", b'{"event":"interval"'),
        ("3.12/tcp_receive_omit.client", "receive", b"[  5]   0.00-1.00"),
    ):
        told = transcript(name).stdout
        parser = parser_of(name, direction)
        end = told.index(b"\n", told.index(start))
        assert not only(Sample, parser.feed(told[:end]))
        assert only(Sample, parser.feed(told[end : end + 1]))


def test_a_server_that_its_runner_ended_has_nothing_to_complain_of():
    listening = b"Server listening on 5201 (test #1)\n"
    for ending in (b"", b" by signal Terminated(15)"):
        words = b"iperf3: interrupt - the server has terminated" + ending + b"\n"
        assert replay(TextServer(flow()), listening, words, 1) == [Ready()]


def test_what_a_server_complains_of_after_it_was_ready_leaves_the_verdict_to_the_client():
    words = b"iperf3: error - unable to receive parameters from client: Success\n"
    told = replay(TextServer(flow()), b"Server listening on 5201\n", words, 0)
    assert not only(Failure, told)
    assert "unable to receive parameters" in str(told)


def test_no_clock_is_told_because_iperf3_stamps_the_control_connection():
    # The data starts several round trips after the timestamp.
    assert b"timemillisecs" in transcript("3.21/json_stream_tcp").stdout
    assert not only(Started, events("3.21/json_stream_tcp"))


def test_every_metric_is_one_that_benchctl_knows():
    names = set()
    for name, direction in (
        ("3.12/tcp_both_P2.client", "both"),
        ("3.12/udp_both_omit.client", "both"),
        ("3.21/tcp_both_P2.client", "both"),
        ("3.21/udp_both_omit.client", "both"),
    ):
        for event in events(name, direction, protocol="udp" if "udp" in name else "tcp"):
            if isinstance(event, Sample | Summary):
                names |= set(event.metrics)
    assert names <= set(METRICS)
    assert len(names) >= 18


def test_stderr_may_be_read_before_or_after_stdout():
    told = transcript("3.12/server_killed_KILL_text")
    parser = parser_of("3.12/server_killed_KILL_text")
    found = [*parser.feed(told.stderr, Channel.STDERR), *parser.feed(told.stdout)]
    assert found + list(parser.close(1)) == events("3.12/server_killed_KILL_text")
