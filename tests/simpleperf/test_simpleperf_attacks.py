"""What an attacker may try against a server that is open to a network.

The attacker has the address 127.0.0.2, or shows it as his datagrams' source: to the server that is
the same. All loads end by themselves.
"""

import random
import resource
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from simpleperf.simpleperf_harness import (
    HELLO,
    OTHER,
    UDP,
    ControlClient,
    idle,
    running_server,
    works,
)
from waiting import wait_until

from benchctl_simpleperf.simpleperf.program import control_client, session
from benchctl_simpleperf.simpleperf.protocol.auth import prove
from benchctl_simpleperf.simpleperf.protocol.conversation import (
    CONTROL_PREAMBLE,
    MAGIC,
    encode_message,
    stream_preamble,
)
from benchctl_simpleperf.simpleperf.protocol.settings import (
    WINDOW_LIMIT,
    Limits,
    MeasurementSettings,
)
from benchctl_standalone.addresses import parse_network
from benchctl_standalone.errors import Problem


def datagrams(host):
    """Return a UDP socket of a host that never waits."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((host, 0))
    sock.setblocking(False)
    return sock


# --- the server as a weapon -----------------------------------------------------------------


@pytest.mark.parametrize("directions", [("receive",), ("send", "receive")])
def test_no_datagram_goes_to_an_address_that_did_not_ask(directions):
    with running_server() as server, datagrams(OTHER) as victim:
        attacker = ControlClient(server)
        answer, _ = attacker.ask(
            protocol="udp", directions=directions, length_bytes=1448, rate_bps=1e8, duration_s=60.0
        )
        assert answer == "accepted"
        victim.sendto(stream_preamble(attacker.token, "receive", 0), (server.host, server.port))
        kind, members = attacker.hear()
        assert (kind, members["kind"]) == ("problem", "refused")
        assert OTHER in members["message"]
        assert "127.0.0.1" in members["message"]
        with pytest.raises(BlockingIOError):
            victim.recv(1)
        attacker.sock.close()
        wait_until(lambda: idle(server))
        assert works(server)


def test_no_stream_of_tcp_is_taken_from_an_address_that_did_not_ask():
    with running_server() as server:
        client = ControlClient(server)
        assert client.ask(directions=("receive",))[0] == "accepted"
        with client.sock, server.connect(OTHER) as stream:
            stream.sendall(stream_preamble(client.token, "receive", 0))
            kind, members = client.hear()
            assert (kind, members["kind"]) == ("problem", "refused")
            assert stream.recv(1) == b""


@pytest.mark.parametrize("direction", ["send", "receive"])
def test_a_client_whose_udp_leaves_by_another_address_is_told_at_once(monkeypatch, direction):
    real = control_client.bind_again

    def elsewhere(control, kind, target, *rest):
        return real(control, kind, target._replace(source=OTHER), *rest)

    monkeypatch.setattr(control_client, "bind_again", elsewhere)
    # It is told long before it would give up by itself, or present itself again.
    monkeypatch.setattr(control_client, "_PRESENT_EVERY_S", 3600.0)
    with running_server() as server, pytest.raises(Problem, match=f"comes from {OTHER}") as raised:
        server.measure(protocol="udp", directions=(direction,), length_bytes=1448, rate_bps=1e6)
    assert raised.value.kind == "refused"
    assert "-b" in raised.value.hint


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_server_of_both_ip_versions_knows_its_clients_by_either(host, protocol):
    with running_server(host="::") as server:
        server.host = host
        for directions in (("send",), ("receive",)):
            notes = server.measure(
                protocol=protocol, directions=directions, total_bytes=10_000, length_bytes=1000,
                rate_bps=1e7,
            )  # fmt: skip
            assert notes.results[0]["directions"][directions[0]]["bytes_received"] == 10_000


def test_no_datagram_is_ever_answered():
    rng = random.Random(11)
    with (
        running_server() as server, datagrams(OTHER) as stranger, datagrams("127.0.0.1") as near,
        datagrams("127.0.0.1") as nearby,
    ):  # fmt: skip
        client = ControlClient(server)
        assert client.ask(protocol="udp", length_bytes=1448, rate_bps=1e6, streams=2)[0]
        for sock in (stranger, near):
            for said in (
                b"", MAGIC, CONTROL_PREAMBLE, CONTROL_PREAMBLE + b'{"type":"hello"}\n', b"BYE",
                stream_preamble("0" * 32, "send", 0), stream_preamble(client.token, "send", 7),
                stream_preamble(client.token, "receive", 0), rng.randbytes(1400),
            ):  # fmt: skip
                sock.sendto(said, (server.host, server.port))
        for number, sock in enumerate((near, nearby)):
            preamble = stream_preamble(client.token, "send", number)
            sock.sendto(preamble, (server.host, server.port))
        assert client.hear()[0] in {"ready", "problem"}  # They came last, so all were looked at.
        for sock in (stranger, near, nearby):
            with pytest.raises(BlockingIOError):
                sock.recv(1)
        client.sock.close()


def test_a_client_whose_host_has_gone_is_noticed_by_the_kernel():
    with running_server(limits=Limits(idle_s=12.0)) as server:
        client = ControlClient(server)
        client.say("hello", version=1, agent="test")
        client.hear()
        [told] = [peer for peer in server.server.hub.peers if isinstance(peer, session.Session)]
        of_tcp = [
            told.sock.getsockopt(socket.IPPROTO_TCP, option)
            for option in (socket.TCP_USER_TIMEOUT, socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL)
        ]
        assert of_tcp == [12_000, 6, 2]
        assert told.sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        client.sock.close()


# --- the server as a victim -------------------------------------------------------------------


def test_who_is_not_allowed_is_told_so_and_not_heard():
    limits = Limits(networks=(parse_network("127.0.0.1"), parse_network("2001:db8::/32")))
    with running_server(limits=limits) as server:
        with pytest.raises(Problem, match=f"does not accept clients from {OTHER}") as raised:
            server.measure(total_bytes=1000, source=OTHER)
        assert raised.value.kind == "refused"
        assert works(server)


def test_ipv4_is_allowed_as_such_where_both_versions_are_served():
    with running_server(
        host="::", limits=Limits(networks=(parse_network("127.0.0.0/8"),))
    ) as server:
        server.host = "127.0.0.1"
        assert works(server)
        server.host = "::1"
        with pytest.raises(Problem, match="does not accept clients from ::1"):
            server.measure(total_bytes=1000)


def keyed_client(server):
    """Return a client that was challenged, and the challenge."""
    client = ControlClient(server)
    client.say("hello", version=1, agent="test")
    kind, members = client.hear()
    assert kind == "challenge"
    return client, members["nonce"]


def test_a_proof_that_was_overheard_opens_nothing():
    with running_server(key=b"sesame") as server:
        client, challenge = keyed_client(server)
        nonce = "ab" * 32
        proof = {"nonce": nonce, "mac": prove(b"sesame", challenge, nonce)}
        client.say("proof", **proof)
        assert client.hear()[0] == "welcome"
        replay, _ = keyed_client(server)
        replay.say("proof", **proof)
        kind, members = replay.hear()
        assert (kind, members["kind"]) == ("problem", "refused")
        # There is no second try on one connection.
        replay.sock.sendall(encode_message({"type": "proof", **proof}))
        assert replay.sock.recv(1000) == b""
        client.sock.close()
        replay.sock.close()


@pytest.mark.parametrize("kind", ["test", "start", "stop", "sent", "welcome", "accepted", "result"])
def test_without_the_proof_nothing_can_be_asked(kind):
    with running_server(key=b"sesame") as server:
        client, _ = keyed_client(server)
        members = MeasurementSettings()._asdict() if kind == "test" else {}
        client.sock.sendall(encode_message({"type": kind, **members}))
        assert client.hear()[0] == "problem"
        assert server.server.quota.claims == 0
        client.sock.close()


def test_a_client_says_nothing_long():
    with running_server() as server:
        client = ControlClient(server)
        client.sock.sendall(b'{"type":"hello","agent":"' + b"x" * 9000)
        kind, members = client.hear()
        assert kind == "problem"
        assert "more than" in members["message"]
        client.sock.close()


def test_lengths_that_are_huge_cost_the_server_nothing():
    with running_server() as server:
        before = memory_bytes()
        client = ControlClient(server)
        answer = client.ask(
            directions=("receive",), streams=64, length_bytes=1 << 26, window_bytes=WINDOW_LIMIT
        )
        assert answer[0] == "accepted"
        streams = [server.connect() for _ in range(64)]
        for number, stream in enumerate(streams):
            stream.sendall(stream_preamble(client.token, "receive", number))
        assert client.hear()[0] == "ready"
        assert memory_bytes() - before < 1 << 28
        for sock in (client.sock, *streams):
            sock.close()


def test_no_window_breaks_the_server():
    with running_server() as server:
        client = ControlClient(server)
        kind, members = client.ask(window_bytes=WINDOW_LIMIT + 1)
        assert kind == "problem"
        assert "window_bytes" in members["message"]
        client.sock.close()
        assert server.measure(total_bytes=1000, window_bytes=WINDOW_LIMIT).results


def test_a_defect_of_the_server_costs_the_client_that_found_it(monkeypatch):
    def defect(*_):
        raise ValueError("not thought of")

    with running_server() as server, server.connect() as finder:
        with monkeypatch.context() as defective:
            defective.setitem(session._ANSWERS, "hello", defect)
            finder.sendall(HELLO)
            assert finder.recv(1) == b""
        assert works(server)
        assert ["not thought of" in text for text in server.notes.warnings] == [True]
        server.notes.warnings.clear()


def memory_bytes():
    """Return how much address space this process has."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


# --- floods ---------------------------------------------------------------------------------

FLOOD = """
import random, socket, sys
rng = random.Random(3)
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind(("127.0.0.2", 0))
words = [b"", rng.randbytes(64), b"\\0simpleperf stream " + b"0" * 32 + b" send 0\\n"]
print("begun", flush=True)
for number in range(int(sys.argv[2])):
    sock.sendto(words[number % 3], ("127.0.0.1", int(sys.argv[1])))
"""


@pytest.mark.parametrize("directions", [("send",), ("receive",)])
def test_strangers_who_flood_the_udp_port_stop_no_measurement(directions):
    with running_server() as server:
        flood = [sys.executable, "-I", "-S", "-c", FLOOD, str(server.port), "150000"]
        with subprocess.Popen(flood, stdout=subprocess.PIPE) as stranger:
            assert stranger.stdout.readline() == b"begun\n"
            notes = server.measure(**UDP | {"duration_s": 0.3}, directions=directions, rate_bps=5e6)
            assert server.measure(total_bytes=10_000).results
        [figures] = notes.results[0]["directions"].values()
    assert figures["packets_received"] == figures["packets_sent"] > 0


def test_datagrams_are_looked_at_only_while_streams_are_awaited():
    with running_server() as server:
        assert doors(server) == 1
        client = ControlClient(server)
        assert client.ask(**UDP, rate_bps=1e6)[0] == "accepted"
        wait_until(lambda: doors(server) == 2)
        client.sock.close()
        wait_until(lambda: idle(server) and doors(server) == 1)


def doors(server):
    """Return at how many sockets a server waits for strangers."""
    return len(server.server.hub.peers) - server.server.connections


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_a_system_without_more_threads_costs_one_measurement(monkeypatch, threads):
    left = [threads]
    start = threading.Thread.start

    def scarce(thread):
        if thread.daemon:  # Those of measurements; the server of this test has none of them.
            left[0] -= 1
            if left[0] < 0:
                raise RuntimeError("can't start new thread")
        start(thread)

    with running_server() as server:
        client = ControlClient(server)
        assert client.ask(streams=4, duration_s=60.0)[0] == "accepted"
        streams = [server.connect() for _ in range(4)]
        for number, stream in enumerate(streams):
            stream.sendall(stream_preamble(client.token, "send", number))
        assert client.hear()[0] == "ready"
        with monkeypatch.context() as scarcity:
            scarcity.setattr(threading.Thread, "start", scarce)
            client.say("start")
            wait_until(lambda: left[0] < 0)
            for stream in streams:
                assert stream.recv(1) == b""
                stream.close()
        client.sock.close()
        wait_until(lambda: idle(server))
        assert works(server)


def test_nobody_takes_the_streams_that_another_client_of_its_address_awaits():
    with running_server() as server:
        honest, liar = ControlClient(server), ControlClient(server)
        asked = {**MeasurementSettings()._asdict(), "duration_s": 60.0}
        answers = []
        for client in (honest, liar):
            client.say("hello", version=1, agent="test")
            assert client.hear()[0] == "welcome"
            host, port = client.sock.getsockname()
            client.say("test", **asked, known_by={"control": f"{host}:{port}", "ports": [50_000]})
            answers.append(client.hear()[1]["known"])
        assert answers == [True, False]
        for client in (honest, liar):
            client.sock.close()
