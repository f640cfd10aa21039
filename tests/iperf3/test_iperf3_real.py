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
from ports import lend_port

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
TRIES = 30
BUFFERS = {"window": "64K"}
# What those of a stream's two ends hold: Linux doubles each (socket(7), SO_SNDBUF).
HELD_BYTES = 2 * 2 * 65536


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


def ends_of(client, server, way):
    """Return the events of the sender and of the receiver."""
    return (client, server) if way is Direction.SEND else (server, client)


def assert_nothing_appears(client, server, way, streams):
    """Assert what holds on every machine: data get fewer on their way, and no time is missing."""
    sender, receiver = ends_of(client, server, way)
    metrics = summary(client, way)
    sent, received = metrics["bytes_sent"], metrics["bytes_received"]
    assert 0 < received <= sent
    if "packets_sent" in metrics:
        assert metrics["packets_received"] + metrics["packets_lost"] <= metrics["packets_sent"]
    else:
        assert sent - received <= streams * HELD_BYTES
    # Some versions round what their tables show.
    assert counted(sender, "bytes_sent", way) <= 1.05 * sent
    assert counted(receiver, "bytes_received", way) <= 1.05 * received
    for end in (sender, receiver):
        of_way = [sample for sample in samples(end) if sample.direction is way]
        assert len({sample.stream for sample in of_way}) == streams
        # On a busy machine an interval may be late: then it is longer.
        for stream in {sample.stream for sample in of_way}:
            times = [(sample.start_s, sample.end_s) for sample in of_way if sample.stream == stream]
            assert [start_s for start_s, _ in times] == [0, *(end_s for _, end_s in times[:-1])]


def shares(client, server, way, rate_bps):
    """Return what is 1 where nothing held up a run: what both ends counted, beside each other."""
    sender, receiver = ends_of(client, server, way)
    metrics = summary(client, way)
    sent, received = metrics["bytes_sent"], metrics["bytes_received"]
    lasted_s = max(sample.end_s for sample in samples(receiver) if sample.direction is way)
    rate = metrics.get("throughput_bps", 0.0)  # left out if the ends measured at other times
    return {
        "of what was sent, arrived": received / sent,
        "in the sender's intervals": counted(sender, "bytes_sent", way) / sent,
        "in the receiver's intervals": counted(receiver, "bytes_received", way) / received,
        "throughput, of what arrived": rate * lasted_s / 8 / received,
        "throughput, of the rate": rate / rate_bps,
    }


def measured(bench, rate_bps, direction="send", **parameters):
    """Measure until both ends agree on a whole run; returns the events of client and server.

    Where a machine holds up a run, data move after its last interval, or datagrams are lost. It
    measures again then, for the ends of a run that nothing holds up agree.
    """
    ways = [Direction.SEND, Direction.RECEIVE] if direction == "both" else [Direction(direction)]
    parameters = parameters if parameters.get("protocol") == "udp" else BUFFERS | parameters
    for _ in range(TRIES):
        client, server = bench.run(direction, **parameters)
        for way in ways:
            assert_nothing_appears(client, server, way, parameters.get("streams", 1))
        found = [shares(client, server, way, rate_bps) for way in ways]
        if all(0.95 < share < 1.05 for one in found for share in one.values()):
            return client, server
    pytest.fail(f"the ends agree in none of {TRIES} runs; the last: {found}")


@pytest.mark.parametrize(("streams", "direction"), [(1, "receive"), (3, "send")])
def test_tcp_one_way(bench, direction, streams):
    client, server = measured(bench, streams * 50e6, direction, streams=streams, rate="50Mbit")
    metrics = summary(client, Direction(direction))
    for sample in samples(ends_of(client, server, Direction(direction))[0]):
        assert sample.metrics["cwnd_bytes"] > 0
        assert not bench.tells_details or 0 < sample.metrics["tcp_rtt_s"] < 10
    if bench.tells_details:
        assert metrics["cpu_client_ratio"] > 0
        assert metrics["cpu_server_ratio"] > 0


# UDP: of datagrams so few that a busy machine, too, sends them all in time and loses none.
@pytest.mark.parametrize(("protocol", "rate_mbps"), [("tcp", 50), ("udp", 5)])
def test_both_ways_at_once(bench, protocol, rate_mbps):
    measured(bench, 2e6 * rate_mbps, "both", protocol=protocol, rate=f"{rate_mbps}Mbit", streams=2)


@pytest.mark.parametrize("direction", ["send", "receive"])
def test_udp_counts_every_datagram(bench, direction):
    client, server = measured(bench, 5e6, direction, protocol="udp", rate="5Mbit", length="1000B")
    way = Direction(direction)
    metrics = summary(client, way)
    assert metrics["packets_lost"] == pytest.approx(
        metrics["loss_ratio"] * (metrics["packets_received"] + metrics["packets_lost"])
    )
    assert metrics["bytes_sent"] == metrics["packets_sent"] * 1000
    assert metrics["bytes_received"] == metrics["packets_received"] * 1000
    came = samples(ends_of(client, server, way)[1])
    # Of the first datagram of all there is none.
    assert max(one.metrics["jitter_rfc3550_s"] for one in came) > 0


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
    client, _ = bench.run(bytes="5M", interval="30s")
    assert summary(client)["bytes_sent"] >= 5 * 2**20
    assert counted(client, "bytes_sent") == summary(client)["bytes_sent"]


def test_what_was_asked_and_what_was_in_force(bench):
    client, server = bench.run(
        rate="50Mbit", **BUFFERS, congestion_control="reno", mss="1000B", dscp="af11"
    )
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
    first, server = bench.run_until_first_sample(rate="50Mbit")
    # However long the second takes, the first has not ended.
    first.process.send_signal(signal.SIGSTOP)
    second = bench.start(BACKEND.client(bench.flow()))
    drive([second])
    first.process.send_signal(signal.SIGCONT)
    drive([first, server])
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


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """The files of a server's private and public key."""
    folder = tmp_path_factory.mktemp("keys")
    private, public = folder / "private.pem", folder / "public.pem"
    for command in (
        ["openssl", "genrsa", "-out", private, "2048"],
        ["openssl", "rsa", "-in", private, "-pubout", "-out", public],
    ):
        subprocess.run(command, check=True, capture_output=True)
    return private, public


@pytest.fixture
def login(keys, tmp_path):
    """The files of a server that requires a password, and the parameters that satisfy it."""
    private, public = keys
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
    assert summary(guarded(bench, options, rate="50Mbit", **parameters))["throughput_bps"] > 0


@pytest.mark.tool("openssl")
def test_a_server_that_requires_a_password_gets_it_from_the_environment(bench, login, monkeypatch):
    options, parameters = login
    monkeypatch.setenv("IPERF3_PASSWORD", "correct-horse")
    del parameters["password_file"]
    assert summary(guarded(bench, options, rate="50Mbit", **parameters))["throughput_bps"] > 0


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


def test_source_port_burst_and_options_reach_the_program(bench):
    client, server = bench.run(
        source_port=lend_port(), rate="20Mbit", burst=4, options=["--no-fq-socket-pacing"],
        **BUFFERS,
    )  # fmt: skip
    assert_nothing_appears(client, server, Direction.SEND, 1)
    # A sender that was held up catches up with its rate, by some blocks too many at the end.
    lasted_s = samples(client)[-1].end_s
    assert counted(client, "bytes_sent") <= 20e6 / 8 * lasted_s + 5 * 131072


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
