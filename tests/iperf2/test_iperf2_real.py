"""The real program on loopback, beside what others counted: a sink of ours, and its other end."""

import itertools
import signal
import socket
import struct
import sys
import threading
from functools import partial

import pytest
from ends import Bench, drive, tool_of
from iperf2.iperf2_support import only, samples, summary
from waiting import wait_until

from benchctl.api import Direction, Effective, Failure, FailureKind, Flow, Warn
from benchctl_iperf2 import BACKEND

pytestmark = [
    pytest.mark.tool("iperf"),
    pytest.mark.once,
    pytest.mark.skipif(sys.platform != "linux", reason="TCP_INFO and socket buffers as on Linux"),
]

ADDRESS = "127.0.0.1"
SEND, RECEIVE = Direction.SEND, Direction.RECEIVE
# A rate that a busy machine can send.
STEADY = {"rate": "20Mbit", "length": "16K"}


class Iperf2Bench(Bench):
    backend = BACKEND

    def flow(self, direction="send", port=None, owns_server=True, **parameters):
        parameters = {"interval": "100ms", **parameters}
        if "bytes" not in parameters:
            parameters.setdefault("duration", "300ms")
        model = BACKEND.parameters(**parameters)
        return Flow(
            model, Direction(direction), ADDRESS, port or self.port, tool_of(BACKEND),
            owns_server=owns_server, one_clock=True,
        )  # fmt: skip

    def alone(self, *args, **parameters):
        """Run a client whose server is not ours; returns its events."""
        client = self.start(BACKEND.client(self.flow(*args, owns_server=False, **parameters)))
        drive([client])
        return client.events


@pytest.fixture
def bench(port):
    bench = Iperf2Bench(port)
    yield bench
    bench.close()


class Sink:
    """A server of ten lines that swallows one connection and counts."""

    def __init__(self, address=ADDRESS):
        self.listener = socket.create_server((address, 0))
        self.port = self.listener.getsockname()[1]
        self.bytes = 0
        self.thread = threading.Thread(target=self._swallow)
        self.thread.start()

    def _swallow(self):
        connection, _ = self.listener.accept()
        with connection:
            while data := connection.recv(1 << 16):
                self.bytes += len(data)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        socket.create_connection(self.listener.getsockname()).close()  # if nobody came
        self.thread.join()
        self.listener.close()


@pytest.mark.parametrize("compatible", [False, True])
def test_what_a_client_counts_is_what_a_plain_sink_swallows(bench, compatible):
    with Sink() as sink:
        told = bench.alone(port=sink.port, compatible=compatible, **STEADY)
        sink.thread.join()
    assert not only(Failure, told)
    metrics = summary(told)
    assert metrics["bytes_sent"] == sink.bytes
    assert "throughput_bps" not in metrics
    assert sum(one.metrics["bytes_sent"] for one in samples(told)) <= sink.bytes


def test_a_byte_count_is_sent_whole(bench):
    with Sink() as sink:
        told = bench.alone(port=sink.port, bytes="300000B", length="10000B")
        sink.thread.join()
    assert summary(told)["bytes_sent"] == sink.bytes == 300_000


def test_every_datagram_that_a_client_sends_is_counted_once(bench):
    """Those that only ask for the server's report again, after the first, are not counted."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        sock.bind((ADDRESS, 0))
        port = sock.getsockname()[1]
        told = bench.alone(port=port, protocol="udp", rate="2Mbit", compatible=True)
        sock.setblocking(False)
        numbers = []
        while not numbers or numbers[-1] is not None:
            try:
                numbers.append(struct.unpack("!i", sock.recv(2048)[:4])[0])
            except BlockingIOError:
                numbers.append(None)
    data = [number for number in numbers[:-1] if number > 0]
    assert summary(told)["packets_sent"] == len(data) + 1  # the first one that ends the stream
    assert any("report is missing" in warn.message for warn in only(Warn, told))


def connected(port):
    try:
        return socket.create_connection((ADDRESS, port))
    except ConnectionRefusedError:
        return None


def test_what_a_server_counts_is_what_was_sent_to_it(bench):
    """Without a header, it leaves out the four bytes in which it looks for one."""
    server = bench.server(bench.flow())
    connection = wait_until(partial(connected, bench.port))  # it says that it listens before
    with connection:
        for _ in range(50):
            connection.sendall(b"\0" * 10_000)
    drive([server])
    assert summary(server.events)["bytes_received"] == 500_000 - 4


def assert_ends_agree(client, server, direction):
    sender, receiver = (client, server) if direction is SEND else (server, client)
    sent, received = summary(sender, direction), summary(receiver, direction)
    assert sent["bytes_sent"] == received["bytes_received"] > 0
    for end in (sender, receiver):
        of_way = samples(end, direction)
        for a, b in itertools.pairwise(of_way):
            assert b.start_s == pytest.approx(a.end_s, abs=0.001)


@pytest.mark.parametrize("direction", ["send", "receive"])
def test_the_ends_of_a_tcp_connection_agree_to_the_byte(bench, direction):
    client, server = bench.run(direction, **STEADY)
    assert_ends_agree(client, server, Direction(direction))
    sender = client if direction == "send" else server
    assert all(one.metrics["tcp_rtt_s"] < 10 for one in samples(sender, Direction(direction)))


def test_both_directions_of_one_connection_agree_to_the_byte(bench):
    client, server = bench.run("both", **STEADY)
    for way in (SEND, RECEIVE):
        assert_ends_agree(client, server, way)


@pytest.mark.parametrize("direction", ["send", "receive"])
def test_datagrams_that_arrive_and_those_that_are_lost_are_all_that_were_sent(bench, direction):
    client, server = bench.run(direction, protocol="udp", rate="2Mbit", length="1000B")
    way = Direction(direction)
    sent = summary(client if way is SEND else server, way)
    received = summary(server if way is SEND else client, way)
    assert received["packets_received"] + received["packets_lost"] == sent["packets_sent"]
    assert received["bytes_received"] == received["packets_received"] * 1000


def test_what_was_asked_is_in_force(bench):
    client, server = bench.run(
        window="64K", mss="1000B", congestion_control="reno", dscp="af11", no_delay=True, **STEADY
    )
    settings = only(Effective, client)[-1].settings
    # Linux doubles what it is asked for (socket(7), SO_SNDBUF), and an option takes 12 bytes.
    assert settings["window_bytes"] == 2 * 65536
    assert settings["mss_bytes"] in (1000, 988)
    assert (settings["congestion_control"], settings["dscp"]) == ("reno", 10)
    assert only(Effective, server)[-1].settings["server_window_bytes"] == 2 * 65536


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_one_way_delays_are_measured_where_data_arrive(bench, protocol):
    rate = STEADY if protocol == "tcp" else {"rate": "2Mbit"}
    client, _ = bench.run("receive", protocol=protocol, trip_times=True, **rate)
    delays = summary(client, RECEIVE)["write_to_read_s" if protocol == "tcp" else "owd_s"]
    assert 0 <= delays["min"] <= delays["mean"] <= delays["max"]


@pytest.mark.ipv6
def test_ipv6_is_measured_too(bench):
    flow = bench.flow(**STEADY)
    flow = Flow(flow.params, flow.direction, "::1", flow.port, flow.tool, owns_server=True)
    client, server = bench.both(flow)
    drive([client, server])
    assert_ends_agree(client.events, server.events, SEND)


def test_nobody_there_is_unreachable(bench):
    [failure] = only(Failure, bench.alone())
    assert failure.kind is FailureKind.UNREACHABLE


def test_a_port_in_use_is_busy_for_a_server(bench):
    with Sink() as sink:
        second = bench.start(BACKEND.server(bench.flow(port=sink.port)))
        drive([second])
    assert {failure.kind for failure in only(Failure, second.events)} == {FailureKind.BUSY}


def test_a_server_that_is_killed_leaves_samples_and_a_failure(bench):
    flow = bench.flow(duration="5s", **STEADY)
    client, server = bench.both(flow)
    drive([client, server], until=lambda: samples(client.events))
    server.process.kill()
    drive([client, server])
    assert only(Failure, client.events)[0].kind is FailureKind.PEER


def test_a_client_that_is_interrupted_ends_and_says_how_far_it_came(bench):
    flow = bench.flow(duration="5s", **STEADY)
    client, server = bench.both(flow)
    drive([client, server], until=lambda: samples(client.events))
    client.process.send_signal(getattr(signal, client.command.stop_signal))
    drive([client, server])
    [failure] = only(Failure, client.events)
    assert failure.message.startswith("ended after")
    assert failure.message.endswith(" of 5 s")
