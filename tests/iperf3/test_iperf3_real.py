"""The real program on loopback: the reports of both ends must agree."""

import hashlib
import itertools
import signal
import subprocess
import sys
from dataclasses import replace

import pytest
from ends import Bench, drive, tool_of
from iperf3.iperf3_support import effective, only, samples, summary

from benchctl.api import (
    Direction,
    Effective,
    Failure,
    FailureKind,
    Flow,
    Ready,
    Sample,
    Summary,
)
from benchctl_iperf3 import BACKEND

pytestmark = [
    pytest.mark.tool("iperf3"),
    pytest.mark.once,
    pytest.mark.skipif(sys.platform != "linux", reason="TCP_INFO and socket buffers as on Linux"),
]

ADDRESS = "127.0.0.1"


class Iperf3Bench(Bench):
    backend = BACKEND
    tool = None

    @property
    def tells_details(self):
        """Whether this version tells more than its tables show."""
        return "debug-levels" in self.tool.features

    def flow(self, direction="send", **parameters):
        self.tool = tool_of(BACKEND)
        parameters = {"interval": "200ms", **parameters}
        if "bytes" not in parameters:
            parameters.setdefault("duration", "1s")
        model = BACKEND.parameters(**parameters)
        return Flow(model, Direction(direction), ADDRESS, self.port, self.tool, owns_server=True)

    def run_until_first_sample(self, **parameters):
        client, server = self.both(self.flow(**parameters))
        drive([client, server], until=lambda: samples(client.events))
        return client, server


@pytest.fixture
def bench(port):
    bench = Iperf3Bench(port)
    yield bench
    bench.close()


def counted(events, name, direction=Direction.SEND):
    return sum(sample.metrics[name] for sample in samples(events) if sample.direction is direction)


def assert_rate(client, receiver, way, rate_bps):
    """Compare a throughput with what arrived by then, and with the rate that was asked for."""
    metrics = summary(client, way)
    lasted_s = max(sample.end_s for sample in samples(receiver) if sample.direction is way)
    arrived_bps = metrics["bytes_received"] * 8 / lasted_s
    # A busy receiver's time runs on after its last interval, by less than one, of a second's five.
    assert 0.8 * arrived_bps < metrics["throughput_bps"] < 1.05 * arrived_bps
    # A busy machine may send less, and half of it would be another mistake.
    assert 0.55 * rate_bps < metrics["throughput_bps"] < 1.05 * rate_bps


def assert_ends_agree(client, server, direction, streams):
    """Compare what both ends counted in one direction, interval by interval and in all."""
    sender, receiver = (client, server) if direction is Direction.SEND else (server, client)
    metrics = summary(client, direction)
    # The ends stop within milliseconds of each other, and their last crumb is left out.
    assert metrics["bytes_received"] == pytest.approx(metrics["bytes_sent"], rel=0.05)
    assert counted(sender, "bytes_sent", direction) == pytest.approx(
        metrics["bytes_sent"], rel=0.05
    )
    # What arrives after the receiver's last interval is in none: less than one, of a second's five.
    arrived = counted(receiver, "bytes_received", direction)
    assert 0.8 * metrics["bytes_received"] < arrived <= 1.05 * metrics["bytes_received"]
    for end in (sender, receiver):
        of_way = [sample for sample in samples(end) if sample.direction is direction]
        assert len({sample.stream for sample in of_way}) == streams
        # On a busy machine an interval may be late: then it is longer, and no time is missing.
        for stream in {sample.stream for sample in of_way}:
            times = [(sample.start_s, sample.end_s) for sample in of_way if sample.stream == stream]
            assert [start_s for start_s, _ in times] == [0, *(end_s for _, end_s in times[:-1])]
            assert times[-1][1] >= 0.95


@pytest.mark.parametrize("direction", ["send", "receive"])
@pytest.mark.parametrize("streams", [1, 3])
def test_tcp_one_way(bench, direction, streams):
    # At a rate that a busy machine can send: of more, the ends would keep some in their buffers.
    client, server = bench.run(direction, streams=streams, rate="50Mbit")
    way = Direction(direction)
    assert_ends_agree(client, server, way, streams)
    metrics = summary(client, way)
    assert_rate(client, server if way is Direction.SEND else client, way, streams * 50e6)
    for sample in samples(client if way is Direction.SEND else server):
        assert sample.metrics["cwnd_bytes"] > 0
        assert not bench.tells_details or 0 < sample.metrics["tcp_rtt_s"] < 1
    if bench.tells_details:
        assert metrics["cpu_client_ratio"] > 0
        assert metrics["cpu_server_ratio"] > 0


# UDP: of datagrams so few that a busy machine, too, sends them all in time and loses none.
@pytest.mark.parametrize(("protocol", "rate_mbps"), [("tcp", 50), ("udp", 5)])
def test_both_ways_at_once(bench, protocol, rate_mbps):
    client, server = bench.run("both", protocol=protocol, rate=f"{rate_mbps}Mbit", streams=2)
    for way in (Direction.SEND, Direction.RECEIVE):
        assert_ends_agree(client, server, way, 2)
        assert_rate(client, server if way is Direction.SEND else client, way, 2e6 * rate_mbps)


@pytest.mark.parametrize("direction", ["send", "receive"])
def test_udp_counts_every_datagram(bench, direction):
    client, server = bench.run(direction, protocol="udp", rate="5Mbit", length="1000B")
    way = Direction(direction)
    assert_ends_agree(client, server, way, 1)
    assert_rate(client, server if way is Direction.SEND else client, way, 5e6)
    metrics = summary(client, way)
    assert metrics["packets_lost"] == pytest.approx(
        metrics["loss_ratio"] * (metrics["packets_received"] + metrics["packets_lost"])
    )
    assert metrics["bytes_sent"] == metrics["packets_sent"] * 1000
    came = samples(server if way is Direction.SEND else client)
    jitters = [
        one.metrics["jitter_rfc3550_s"] for one in came if one.metrics.get("packets_received")
    ]
    assert min(jitters) > 0


def test_omitted_seconds_lie_before_zero_at_both_ends(bench):
    for events in bench.run(omit="1s", rate="50Mbit"):
        omitted = [sample for sample in samples(events) if sample.omitted]
        assert [sample.end_s <= 0 for sample in samples(events)] == [
            sample.omitted for sample in samples(events)
        ]
        # A busy machine omits more than it was asked to, and its intervals are longer.
        assert omitted[0].start_s < -0.95
        for before, after in itertools.pairwise(omitted):
            assert before.end_s == pytest.approx(after.start_s)


def test_a_byte_count_ends_the_run(bench):
    client, _ = bench.run(bytes="5M", interval="1s")
    assert summary(client)["bytes_sent"] >= 5 * 2**20
    assert counted(client, "bytes_sent") == summary(client)["bytes_sent"]


def test_what_was_asked_and_what_was_in_force(bench):
    client, server = bench.run(window="64K", congestion_control="reno", mss="1000B", dscp="af11")
    settings = effective(client, Effective) | effective(server, Effective)
    if bench.tells_details:
        # Linux doubles what it is asked for (socket(7), SO_SNDBUF).
        assert settings["window_bytes"] == settings["server_receive_buffer_bytes"] == 2 * 65536
    assert settings["congestion_control"] == settings["peer_congestion_control"] == "reno"
    assert settings["mss_bytes"] in (1000, 988)
    assert settings["dscp"] == 10


def test_nobody_there_is_unreachable(bench):
    client = bench.start(BACKEND.client(bench.flow()))
    drive([client])
    [failure] = only(Failure, client.events)
    assert failure.kind is FailureKind.UNREACHABLE


def test_a_server_that_measures_for_another_is_busy(bench):
    first, server = bench.run_until_first_sample()
    second = bench.start(BACKEND.client(bench.flow()))
    drive([first, second, server])
    [failure] = only(Failure, second.events)
    # 3.9 sends into the closed connection, and then misses the server's answer.
    missed = bench.tool.version == "3.9"
    assert failure.kind is (FailureKind.PEER if missed else FailureKind.BUSY)
    assert only(Summary, first.events)


def test_a_port_in_use_is_busy_for_a_server(bench):
    bench.server(bench.flow())
    second = bench.start(BACKEND.server(bench.flow()))
    drive([second])
    assert [failure.kind for failure in only(Failure, second.events)] == [FailureKind.BUSY]
    assert Ready() not in second.events


def test_an_unknown_congestion_control_is_a_parameter_error(bench):
    flow = bench.flow(congestion_control="nosuch")
    client, _ = bench.both(flow)
    drive([client])
    [failure] = only(Failure, client.events)
    assert failure.kind is FailureKind.PARAMETER


def test_a_server_that_is_killed_leaves_samples_and_a_failure(bench):
    client, server = bench.run_until_first_sample(duration="5s")
    server.process.kill()
    drive([client, server])
    [failure] = only(Failure, client.events)
    assert failure.kind is FailureKind.PEER
    ends = [sample.end_s for sample in samples(client.events)]
    assert ends == sorted(set(ends))


def test_a_client_that_is_interrupted_leaves_samples_and_no_result(bench):
    client, server = bench.run_until_first_sample(duration="5s")
    client.process.send_signal(getattr(signal, client.command.stop_signal))
    drive([client, server])
    [failure] = only(Failure, client.events)
    assert failure.kind is FailureKind.TOOL
    assert only(Sample, client.events)
    assert not only(Summary, client.events)


@pytest.fixture
def login(tmp_path):
    """The files of a server that requires a password, and the parameters that satisfy it."""
    private, public = tmp_path / "private.pem", tmp_path / "public.pem"
    for command in (
        ["openssl", "genrsa", "-out", private, "2048"],
        ["openssl", "rsa", "-in", private, "-pubout", "-out", public],
    ):
        subprocess.run(command, check=True, capture_output=True)
    users, password = tmp_path / "users.csv", tmp_path / "password"
    users.write_text("ann," + hashlib.sha256(b"{ann}correct-horse").hexdigest() + "\n")
    password.touch(mode=0o600)
    password.write_text("correct-horse\n")
    parameters = {
        "username": "ann", "public_key": str(public), "password_file": str(password),
    }  # fmt: skip
    return (
        ("--rsa-private-key-path", str(private), "--authorized-users-path", str(users)),
        parameters,
    )


def guarded(bench, options, **parameters):
    """Measure against a server that requires a password; returns the client's events."""
    flow = bench.flow(**parameters)
    if "authentication" not in flow.tool.features:
        pytest.skip("iperf3 was built without OpenSSL")
    command = BACKEND.server(flow)
    server = bench.start(replace(command, argv=(*command.argv, *options)))
    drive([server], until=lambda: server.events)
    client = bench.start(BACKEND.client(flow))
    drive([client])
    return client.events


@pytest.mark.tool("openssl")
def test_a_server_that_requires_a_password_gets_it_from_a_file(bench, login):
    options, parameters = login
    assert summary(guarded(bench, options, **parameters))["throughput_bps"] > 0


@pytest.mark.tool("openssl")
def test_a_server_that_requires_a_password_gets_it_from_the_environment(bench, login, monkeypatch):
    options, parameters = login
    monkeypatch.setenv("IPERF3_PASSWORD", "correct-horse")
    del parameters["password_file"]
    assert summary(guarded(bench, options, **parameters))["throughput_bps"] > 0


@pytest.mark.tool("openssl")
@pytest.mark.parametrize("password", ["wrong", None])
def test_a_server_that_refuses_a_login_says_what_it_needs(bench, login, monkeypatch, password):
    options, parameters = login
    monkeypatch.setenv("IPERF3_PASSWORD", str(password))
    del parameters["password_file"]
    [failure] = only(Failure, guarded(bench, options, **(parameters if password else {})))
    assert failure.kind is FailureKind.REFUSED
    assert "username, public_key and a password" in failure.hint


@pytest.mark.tool("openssl")
def test_a_login_without_a_password_says_where_to_put_it(bench, login, monkeypatch):
    options, parameters = login
    monkeypatch.delenv("IPERF3_PASSWORD", raising=False)
    del parameters["password_file"]
    [failure] = only(Failure, guarded(bench, options, **parameters))
    assert failure.kind is FailureKind.PARAMETER
    assert "IPERF3_PASSWORD" in failure.hint


def test_source_port_burst_and_options_reach_the_program(bench, lend_port):
    client, server = bench.run(
        source_port=lend_port(), rate="20Mbit", burst=4, options=["--no-fq-socket-pacing"]
    )
    assert_rate(client, server, Direction.SEND, 20e6)


def test_an_option_that_iperf3_does_not_have_is_a_parameter_error(bench):
    flow = bench.flow(options=["--no-such-option"])
    client = bench.start(BACKEND.client(flow))
    drive([client])
    [failure] = only(Failure, client.events)
    assert failure.kind is FailureKind.PARAMETER
    assert "no-such-option" in failure.message


@pytest.mark.parametrize("protocol", ["sctp", "mptcp"])
def test_a_protocol_measures_or_says_what_is_missing(bench, protocol):
    flow = bench.flow(protocol=protocol)
    if protocol not in flow.tool.features:
        with pytest.raises(ValueError, match=f"cannot measure {protocol.upper()}"):
            BACKEND.client(flow)
        return
    client, _ = bench.both(flow)
    drive([client])
    failures = only(Failure, client.events)
    if failures:
        assert failures[0].kind is FailureKind.PARAMETER
        assert "kernel does not have the protocol" in failures[0].hint
    else:
        assert summary(client.events)["throughput_bps"] > 0
