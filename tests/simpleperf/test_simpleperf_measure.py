"""Real measurements over loopback do what was requested, and both ends' figures agree."""

import itertools
import math
import socket
import threading
import time
from pathlib import Path

import pytest
from simpleperf.simpleperf_harness import Notes, Running, idle, running_server
from waiting import DEADLINE_S, wait_until

from benchctl_simpleperf.simpleperf import __version__
from benchctl_simpleperf.simpleperf.measuring.side import Side
from benchctl_simpleperf.simpleperf.measuring.stream import Timeline
from benchctl_simpleperf.simpleperf.measuring.tcp import TcpReceiver
from benchctl_simpleperf.simpleperf.program import control_client
from benchctl_simpleperf.simpleperf.program import server as server_module
from benchctl_simpleperf.simpleperf.protocol.conversation import read_preamble
from benchctl_simpleperf.simpleperf.protocol.settings import Limits, MeasurementSettings
from benchctl_standalone.errors import Problem
from benchctl_standalone.kernel import Kernel
from benchctl_standalone.sockets import Target
from benchctl_standalone.waker import Interrupted, Waker

linux = pytest.mark.skipif(Kernel.TCP_INFO is None, reason="Linux only")


@pytest.fixture(scope="module")
def server():
    with running_server(limits=Limits(rate_bps=math.inf)) as running:
        yield running


def only(result):
    [direction] = result["directions"].values()
    return direction


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
@pytest.mark.parametrize("directions", [("send",), ("receive",), ("send", "receive")])
def test_bytes_arrive_whole_in_every_direction(server, protocol, directions):
    notes = server.measure(
        protocol=protocol, directions=directions, streams=2, total_bytes=144_800,
        length_bytes=1448, rate_bps=50e6 if protocol == "udp" else None,
    )  # fmt: skip
    [result] = notes.results
    assert tuple(result["directions"]) == directions
    for figures in result["directions"].values():
        assert figures["bytes_sent"] == figures["bytes_received"] == 144_800
        assert [stream["bytes_received"] for stream in figures["streams"]] == [72_400, 72_400]
        assert figures["throughput_bps"] > 0
    assert result["throughput_bps"] == sum(
        figures["throughput_bps"] for figures in result["directions"].values()
    )


@pytest.mark.parametrize("direction", ["send", "receive"])
def test_time_is_kept_and_intervals_cover_it(server, direction):
    notes = server.measure(directions=(direction,), streams=2, duration_s=0.4, interval_s=0.1)
    figures = only(notes.results[0])
    # The time is the sender's: that of a receiver that was not run at once is shorter.
    assert figures["bytes_sent"] * 8 / figures["sent_bps"] >= 0.4 - 1e-6
    assert figures["bytes_received"] > 0
    for stream in (0, 1):
        mine = [interval for interval in notes.intervals if interval["stream"] == stream]
        assert mine[0]["start_s"] == 0
        for before, after in itertools.pairwise(mine):
            assert before["end_s"] == after["start_s"]
        total = sum(interval.get("bytes_received", 0) for interval in mine)
        assert total == figures["streams"][stream]["bytes_received"]
        assert mine[-1]["end_s"] == pytest.approx(figures["end_s"])
        assert all(interval["direction"] == direction for interval in mine)


def test_the_start_is_told_before_the_first_interval_with_its_wall_clock_time(server):
    before = time.time()
    notes = server.measure(omit_s=0.1, duration_s=0.1)
    assert before + 0.1 <= notes.facts["epoch_s"] <= time.time()


def test_the_omitted_part_counts_in_no_figure(server):
    notes = server.measure(duration_s=0.2, omit_s=0.2, interval_s=0.1, rate_bps=80e6,
                           protocol="udp", length_bytes=1000)  # fmt: skip
    omitted = [interval for interval in notes.intervals if interval["omitted"]]
    counted = [interval for interval in notes.intervals if not interval["omitted"]]
    figures = only(notes.results[0])
    assert omitted[0]["start_s"] == pytest.approx(-0.2)
    # A receiver whose sender was late at second 0 has fewer intervals behind it.
    assert sum(i.get("bytes_received", 0) for i in counted) == figures["bytes_received"]
    assert sum(i["packets_sent"] for i in counted) == figures["packets_sent"]
    # A packet each 0.1 ms for 0.2 s, and none before its time.
    sent_before = sum(i["packets_sent"] for i in omitted)
    assert sent_before <= 2000
    assert sent_before + figures["packets_sent"] <= 4000


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_no_short_interval_of_any_stream_is_lost(server, protocol):
    notes = server.measure(
        protocol=protocol, streams=4, duration_s=0.3, interval_s=0.01, rate_bps=8e6,
        length_bytes=1000,
    )  # fmt: skip
    for stream in range(4):
        mine = [interval for interval in notes.intervals if interval["stream"] == stream]
        figures = only(notes.results[0])["streams"][stream]
        # A receiver that was not run at once has fewer of them, but misses none between.
        arrived = [interval for interval in mine if "throughput_bps" in interval]
        ends = [round(interval["end_s"] * 100) for interval in arrived[:-1]]
        assert ends == list(range(1, len(ends) + 1))
        assert sum(interval["bytes_received"] for interval in arrived) == figures["bytes_received"]
        # A reading of TCP's state that came later than the next interval's end counts for that.
        told = [interval for interval in mine if "sent_bps" in interval]
        assert protocol == "tcp" or len(told) == len(mine)
        assert all(protocol == "udp" or interval["reading_late_s"] >= 0 for interval in told)
        assert sum(interval["bytes_sent"] for interval in told) == figures["bytes_sent"]


def test_no_intervals_are_told_where_none_are_wanted(server):
    notes = server.measure(duration_s=0.1, interval_s=0.0)
    assert notes.intervals == []
    assert only(notes.results[0])["bytes_received"] > 0


@linux
def test_the_sender_tells_tcps_own_figures(server):
    notes = server.measure(duration_s=0.2, interval_s=0.1)
    told = [interval for interval in notes.intervals if "sent_bps" in interval]
    assert told
    for interval in told:
        assert interval["cwnd_bytes"] > 0
        assert interval["tcp_rtt_s"] > 0
        assert interval["path_mtu_bytes"] > 1000
        assert {"retransmits", "delivery_rate_bps", "busy_s", "rwnd_limited_s",
                "sndbuf_limited_s", "segments_lost", "reordering"} <= interval.keys()  # fmt: skip


@linux
@pytest.mark.parametrize("direction", ["send", "receive"])
def test_each_end_has_a_window_of_its_own(server, direction):
    notes = server.measure(
        duration_s=0.1, directions=(direction,), window_bytes=65_536, server_window_bytes=131_072
    )
    in_force = only(notes.results[0])["effective"]
    ends = [in_force["window_bytes"], in_force["receiver_window_bytes"]]
    client, server_ = ends if direction == "send" else reversed(ends)
    assert (client, server_) == (2 * 65_536, 2 * 131_072)


@linux
def test_what_is_in_force_is_told_beside_what_was_asked(server):
    notes = server.measure(
        duration_s=0.1, window_bytes=65_536, mss_bytes=1000, congestion_control="reno",
        no_delay=True, dscp=46,
    )  # fmt: skip
    in_force = only(notes.results[0])["effective"]
    # Linux doubles what is asked for its own bookkeeping (socket(7), SO_SNDBUF).
    assert in_force["window_bytes"] == in_force["receiver_window_bytes"] == 131_072
    assert in_force["mss_bytes"] <= 1000
    assert (in_force["congestion_control"], in_force["no_delay"]) == ("reno", True)
    assert in_force["dscp"] == 46


@pytest.mark.parametrize("directions", [("send",), ("receive",)])
def test_a_congestion_control_that_is_not_there_is_the_users_mistake(server, directions):
    with pytest.raises(Problem) as raised:
        server.measure(congestion_control="nosuch", directions=directions)
    assert raised.value.kind == "parameter"
    assert "nosuch" in raised.value.message


@linux
@pytest.mark.parametrize("directions", [("send",), ("receive",)])
def test_zero_copy_says_what_it_used(server, directions):
    notes = server.measure(
        zero_copy=True, total_bytes=10_000_000, directions=directions, interval_s=0.0
    )
    figures = only(notes.results[0])
    assert figures["bytes_received"] == 10_000_000
    assert figures["effective"]["send"] == "sendfile"
    assert figures["effective"]["receive"] == "discard"


def test_a_paced_tcp_stream_keeps_to_its_rate(server):
    # Linux does not pace the first ten segments, which are large on loopback. The rate is that of
    # the sender: a receiver that was not run at once finds much together.
    notes = server.measure(rate_bps=40e6, duration_s=0.5, mss_bytes=1448)
    assert 0 < only(notes.results[0])["sent_bps"] <= 42e6


@pytest.mark.parametrize("rate_bps", [5e6, 400e6])
def test_a_paced_udp_stream_never_sends_more_than_its_rate_says(server, rate_bps):
    notes = server.measure(protocol="udp", rate_bps=rate_bps, length_bytes=1448, duration_s=0.3)
    figures = only(notes.results[0])
    assert 0 < figures["packets_sent"] <= math.ceil(0.3 * rate_bps / (8 * 1448))
    assert figures["packets_sent"] == figures["packets_received"] + figures["packets_lost"]
    assert figures["loss_ratio"] == figures["packets_lost"] / figures["packets_sent"]


def test_an_unlimited_udp_stream_counts_every_datagram_once(server):
    notes = server.measure(protocol="udp", length_bytes=1448, duration_s=0.3, interval_s=0.0)
    figures = only(notes.results[0])
    assert figures["packets_sent"] == figures["packets_received"] + figures["packets_lost"]
    assert figures["packets_duplicated"] == 0
    assert figures["bytes_received"] == 1448 * figures["packets_received"]


def test_udp_tells_jitter_and_the_gaps_between_arrivals(server):
    notes = server.measure(protocol="udp", rate_bps=8e6, length_bytes=1000, total_bytes=300_000)
    figures = only(notes.results[0])
    # A millisecond each; a sender that was not scheduled catches up at twice the rate.
    assert figures["packet_gap_s"]["mean"] > 0.00049
    span_s = (figures["packets_received"] - 1) * figures["packet_gap_s"]["mean"]
    assert figures["end_s"] == pytest.approx(span_s, rel=0.05)
    assert figures["jitter_rfc3550_s"] >= 0
    assert figures["pdv_p95_p50_s"] >= 0


@pytest.mark.ipv6
@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_ipv6_carries_both_protocols(protocol):
    with running_server(host="::1") as server:
        notes = server.measure(protocol=protocol, total_bytes=50_000, length_bytes=1000,
                               rate_bps=20e6, dscp=10)  # fmt: skip
    figures = only(notes.results[0])
    assert figures["bytes_received"] == 50_000
    assert figures["effective"]["dscp"] == 10
    assert figures["streams"][0]["id"].startswith("[::1]:")


@pytest.mark.ipv6
@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_a_server_on_all_addresses_serves_ipv4_on_its_ipv6_socket(protocol):
    with running_server(host="::") as server:
        server.host = "127.0.0.1"
        notes = server.measure(protocol=protocol, total_bytes=50_000, length_bytes=1000,
                               rate_bps=20e6, directions=("receive",))  # fmt: skip
    assert only(notes.results[0])["bytes_received"] == 50_000


@linux
@pytest.mark.parametrize(("window_bytes", "gathers"), [(None, True), (1 << 20, False)])
def test_a_fast_receiver_is_woken_seldom_unless_the_window_was_asked(window_bytes, gathers):
    settings = MeasurementSettings()._replace(window_bytes=window_bytes)
    near, far = socket.socketpair()
    receiver = TcpReceiver(0, Timeline(settings.schedule()), near, settings, {})
    thread = threading.Thread(target=receiver.move)
    thread.start()
    blocks, woken_at = 0, set()
    while blocks < 1000 or (gathers and woken_at == {1}):
        far.sendall(bytes(100_000))
        woken_at.add(near.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT))
        blocks += 1
        assert blocks < 100_000
    far.close()
    thread.join()
    near.close()
    assert receiver.moved_bytes == blocks * 100_000
    assert (woken_at > {1}) == gathers


@linux
def test_a_fast_receiver_has_room_for_many_times_what_it_waits_for():
    most = int(Path("/proc/sys/net/ipv4/tcp_rmem").read_text().split()[2]) // 2
    with socket.create_server(("127.0.0.1", 0)) as door:
        far = socket.create_connection(door.getsockname())
        near, _ = door.accept()
    receiver = TcpReceiver(
        0, Timeline(MeasurementSettings().schedule()), near, MeasurementSettings(), {}
    )
    thread = threading.Thread(target=receiver.move)
    thread.start()
    with near, far:
        for _ in range(100_000):
            far.sendall(bytes(1_000_000))
            if near.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT) > 1:
                break
        far.shutdown(socket.SHUT_WR)
        thread.join()
        waits_for = near.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)
        room = near.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
    assert room >= min(32 * waits_for, most) > 1


def test_streams_come_from_the_address_and_ports_that_were_asked(server, port):
    notes, waker = Notes(), Waker()
    target = Target(server.host, server.port, source="127.0.0.1", source_port=port)
    settings = MeasurementSettings()._replace(duration_s=None, total_bytes=1000, interval_s=0.0)
    control_client.run_control_client(target, settings, notes, waker)
    waker.close()
    assert only(notes.results[0])["streams"][0]["id"] == f"127.0.0.1:{port}"


def test_a_common_start_is_kept(server, monkeypatch):
    start_at_s, waits = time.time() + 3600, []

    def sleep_until(waker, epoch_s):
        waits.append((epoch_s, server.server.connections))

    monkeypatch.setattr(Waker, "sleep_until", sleep_until)
    wait_until(lambda: idle(server))
    notes = server.measure(duration_s=0.1, start_at_s=start_at_s)
    # It connects a little earlier, and then everything but the start is done.
    (early_s, before), (start_s, joined) = waits
    assert early_s < start_s == start_at_s
    assert (before, joined) == (0, 1)
    assert notes.warnings == []


def test_a_wait_ends_at_its_time_of_day_and_with_an_interrupt():
    waker = Waker()
    epoch_s = time.time() + 0.05
    waker.sleep_until(epoch_s)
    assert time.time() >= epoch_s
    waker.interrupted = True
    waker.wake()
    with pytest.raises(Interrupted):
        waker.sleep_until(time.time() + 3600)
    waker.close()


def test_a_common_start_that_is_over_is_told(server):
    notes = server.measure(duration_s=0.1, start_at_s=time.time() - 5)
    [warning] = notes.warnings
    assert "after the time of --start-at" in warning


def test_cpu_of_both_ends_is_told(server):
    cpu = server.measure(duration_s=0.2).results[0]["cpu"]
    assert cpu["client"]["process_ratio"] > 0
    assert cpu["server"]["process_ratio"] > 0


@pytest.mark.parametrize("directions", [("send",), ("receive",)])
def test_over_udp_a_server_that_is_older_is_named_with_what_that_means(
    server, monkeypatch, directions
):
    expect = Side.expect
    monkeypatch.setattr(
        Side, "expect", lambda side, packets, omitted, _: expect(side, packets, omitted, None)
    )
    notes = server.measure(
        protocol="udp", directions=directions, total_bytes=10_000, length_bytes=1000, rate_bps=1e7
    )
    [warning] = notes.warnings
    assert warning.startswith(f"the server is simpleperf {__version__}, so the receiver's time")
    assert only(notes.results[0])["effective"]["timed_by"] == "arrivals"


def test_the_server_shows_what_it_saw():
    with running_server(interval_s=0.1) as server:
        client = server.measure(duration_s=0.3, interval_s=0.1).results[0]
        [told] = server.notes.wait_for_results(1)
        assert only(told)["bytes_received"] == only(client)["bytes_received"]
        shown = sum(interval["bytes_received"] for interval in server.notes.intervals)
        assert shown == only(told)["bytes_received"]


def interrupted_after(notes_needed, **asked):
    """Interrupt a client once it has told so many intervals; returns what it noted."""
    with running_server() as server:
        notes, waker = Notes(), Waker()

        def interrupt():
            with notes.more:
                notes.more.wait_for(
                    lambda: len(notes.intervals) >= notes_needed, timeout=DEADLINE_S
                )
            waker.interrupted = True
            waker.wake()

        thread = threading.Thread(target=interrupt)
        thread.start()
        settings = MeasurementSettings()._replace(interval_s=0.05, **asked)
        try:
            control_client.run_control_client(server.target(), settings, notes, waker)
        finally:
            thread.join()
            waker.close()
    return notes


@pytest.mark.parametrize(
    "asked",
    [
        {"duration_s": 60.0},
        {"duration_s": 60.0, "directions": ("receive",)},
        {"duration_s": 60.0, "protocol": "udp", "rate_bps": 8e6, "length_bytes": 1000},
        {"duration_s": None, "total_bytes": 1 << 50},
    ],
    ids=["send", "receive", "udp", "bytes"],
)
def test_an_interrupted_client_tells_what_was_measured_so_far(asked):
    notes = interrupted_after(3, **asked)
    figures = only(notes.results[0])
    assert 0.1 < figures["end_s"] < 30
    assert figures["bytes_received"] > 0
    assert figures["bytes_received"] >= sum(i.get("bytes_received", 0) for i in notes.intervals[:3])


def test_a_client_that_is_interrupted_before_the_start_ends_without_a_result():
    with running_server() as server:
        notes, waker = Notes(), Waker()
        waker.interrupted = True
        waker.wake()
        with pytest.raises(Interrupted):
            control_client.run_control_client(server.target(), MeasurementSettings(), notes, waker)
        waker.close()
    assert notes.results == []


def test_nobody_at_the_port_is_told_as_unreachable(port):
    waker = Waker()
    with pytest.raises(Problem) as raised:
        control_client.run_control_client(
            Target("127.0.0.1", port), MeasurementSettings(), Notes(), waker
        )
    waker.close()
    assert raised.value.kind == "unreachable"
    assert raised.value.message == f"127.0.0.1:{port}: Connection refused"


def test_an_address_of_the_other_ip_version_is_a_wrong_parameter():
    waker = Waker()
    target = Target("127.0.0.1", 1, socket.AF_INET6)
    with pytest.raises(Problem, match=r"127\.0\.0\.1") as raised:
        control_client.run_control_client(target, MeasurementSettings(), Notes(), waker)
    waker.close()
    assert raised.value.kind == "parameter"
    assert "IP version" in raised.value.hint


def test_a_name_is_told_with_the_address_that_did_not_answer(port):
    waker = Waker()
    target = Target("localhost", port, socket.AF_INET)
    with pytest.raises(Problem) as raised:
        control_client.run_control_client(target, MeasurementSettings(), Notes(), waker)
    waker.close()
    assert raised.value.message == f"localhost (127.0.0.1:{port}): Connection refused"


def test_a_server_that_hears_nothing_by_udp_is_told_with_what_to_look_at(monkeypatch):
    monkeypatch.setattr(control_client, "_PRESENT_S", 0.3)
    monkeypatch.setattr(
        server_module,
        "read_preamble",
        lambda data: None if b"stream" in data else read_preamble(data),
    )
    with running_server() as server, pytest.raises(Problem) as raised:
        server.measure(protocol="udp", rate_bps=1e6, length_bytes=1000)
    assert raised.value.kind == "unreachable"
    assert raised.value.message == f"127.0.0.1:{server.port} receives no UDP"
    assert "UDP" in raised.value.hint


def test_a_server_that_dies_in_the_middle_is_told_as_the_peers_end():
    server = Running()
    notes, waker = Notes(), Waker()

    def end_it():
        with notes.more:
            notes.more.wait_for(lambda: notes.intervals, timeout=DEADLINE_S)
        server.stop()

    thread = threading.Thread(target=end_it)
    thread.start()
    settings = MeasurementSettings()._replace(duration_s=60.0, interval_s=0.05)
    with pytest.raises(Problem) as raised:
        control_client.run_control_client(server.target(), settings, notes, waker)
    thread.join()
    waker.close()
    assert raised.value.kind == "peer"
    assert notes.intervals
