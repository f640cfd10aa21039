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
import time
from contextlib import suppress
from pathlib import Path

import pytest
from simpleperf.simpleperf_harness import (
    ControlClient,
    idle,
    running_server,
    works,
)
from waiting import DEADLINE_S, wait_until

from benchctl_simpleperf.simpleperf import control_client, session
from benchctl_simpleperf.simpleperf import server as server_module
from benchctl_simpleperf.simpleperf.addresses import parse_network
from benchctl_simpleperf.simpleperf.auth import prove
from benchctl_simpleperf.simpleperf.errors import Problem
from benchctl_simpleperf.simpleperf.protocol import (
    CONTROL_PREAMBLE,
    MAGIC,
    encode_message,
    stream_preamble,
)
from benchctl_simpleperf.simpleperf.settings import WINDOW_LIMIT, Limits, MeasurementSettings

HELLO = CONTROL_PREAMBLE + encode_message({"type": "hello", "version": 1, "agent": "test"})
OTHER = "127.0.0.2"


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


# --- the server as a victim: places ---------------------------------------------------------


@pytest.fixture
def many_files():
    """Let this process have as many open files as it may."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("where", [OTHER, "127.0.0.1"], ids=["elsewhere", "the same address"])
@pytest.mark.parametrize(
    "said",
    [b"", b"\0simple", CONTROL_PREAMBLE, HELLO],
    ids=["nothing", "half", "preamble", "hello"],
)
def test_two_thousand_idle_connections_keep_nobody_waiting(monkeypatch, many_files, where, said):
    # Those that stay would stay for ever: who is served does not wait for their end.
    monkeypatch.setattr(server_module, "_GREETING_S", 3600.0)
    monkeypatch.setattr(session, "_HANDSHAKE_S", 3600.0)
    # How long the server is busy with the crowd is the machine's matter: here, 0.2 ms for each.
    monkeypatch.setattr(control_client, "_SILENCE_S", DEADLINE_S)
    with running_server() as server:
        crowd = []
        for _ in range(2000):
            crowd.append(server.connect(where))
            with suppress(OSError):  # It may be closed already.
                crowd[-1].sendall(said)
        assert works(server)
        assert server.server.connections <= server_module._WAITING
        for sock in crowd:
            sock.close()
        wait_until(lambda: idle(server))


def test_when_too_many_wait_those_of_the_greediest_go_first(monkeypatch):
    monkeypatch.setattr(server_module, "_WAITING", 20)
    monkeypatch.setattr(server_module, "_THINNED", 4)
    with running_server() as server:
        patient = [server.connect("127.0.0.3") for _ in range(5)]
        crowd = [server.connect(OTHER) for _ in range(40)]
        wait_until(lambda: not any(map(still_open, crowd[:20])))
        assert all(map(still_open, patient))
        for sock in (*patient, *crowd):
            sock.close()


def test_as_many_as_may_wait_do_so_whatever_the_places_are(monkeypatch):
    monkeypatch.setattr(server_module, "_WAITING", 20)
    with running_server(limits=Limits(clients=20, client_places=20)) as server:
        plain = [server.connect(OTHER) for _ in range(20)]
        wait_until(lambda: server.server.connections == 20)
        for sock in plain:
            sock.sendall(b"x" * 1000 + b"BYE")
        assert [sock.recv(100) for sock in plain] == [b"ACK: BYE"] * 20
        for sock in plain:
            sock.close()


def still_open(sock):
    sock.setblocking(False)
    try:
        return sock.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False


def test_plain_clients_that_barely_send_make_room_for_others(monkeypatch):
    monkeypatch.setattr(server_module, "_SLOW_S", 0.0)
    with running_server(limits=Limits(clients=4, idle_s=3600.0)) as server:
        slow = [server.connect(OTHER) for _ in range(4)]
        for sock in slow:
            sock.sendall(b"x")
        wait_until(lambda: server.server.quota.claims == 4)
        assert works(server)
        for sock in slow:
            sock.close()


def test_plain_clients_that_send_keep_their_places():
    with running_server(limits=Limits(clients=4, idle_s=3600.0)) as server:
        plain = [server.connect(OTHER) for _ in range(3)]
        for sock in plain:
            sock.sendall(b"x" * 1000)
        wait_until(lambda: server.server.quota.claims == 3)
        with pytest.raises(Problem) as raised:
            server.measure(total_bytes=1000)
        assert raised.value.kind == "busy"
        assert all(map(still_open, plain))
        for sock in plain:
            sock.close()


def test_a_plain_client_that_drips_is_dropped_like_a_silent_one():
    with running_server(limits=Limits(idle_s=0.3)) as server, server.connect() as sock:
        with pytest.raises(OSError):  # noqa: PT011, PT012 - reset or broken pipe
            for _ in range(200):
                sock.sendall(b"x")
                time.sleep(0.02)
        wait_until(lambda: idle(server))


def test_a_control_connection_that_drips_is_dropped_like_a_silent_one(monkeypatch):
    monkeypatch.setattr(session, "_HANDSHAKE_S", 0.3)
    monkeypatch.setattr(session, "_GOODBYE_S", 0.1)
    with running_server() as server, server.connect() as sock:
        sock.sendall(CONTROL_PREAMBLE)
        with pytest.raises(OSError):  # noqa: PT011, PT012 - reset or broken pipe
            for _ in range(200):
                sock.sendall(b" ")
                time.sleep(0.02)
        wait_until(lambda: idle(server))


def test_one_client_cannot_take_all_places():
    with running_server(limits=Limits(clients=9, client_places=6)) as server:
        greedy = [ControlClient(server, OTHER) for _ in range(4)]
        answers = [client.ask() for client in greedy]
        assert [kind for kind, _ in answers] == ["accepted"] * 3 + ["problem"]
        assert answers[3][1]["kind"] == "busy"
        assert works(server)
        for client in greedy:
            client.sock.close()
        wait_until(lambda: idle(server))
        assert server.server.quota.claims == 0


# --- the server as a victim: rates ----------------------------------------------------------

UDP = {"protocol": "udp", "length_bytes": 1448, "duration_s": 60.0}


def test_one_client_has_its_bound_however_often_it_asks():
    with running_server() as server:
        first, second, other = (ControlClient(server, host) for host in (OTHER, OTHER, None))
        assert first.ask(**UDP, rate_bps=6e8)[0] == "accepted"
        kind, members = second.ask(**UDP, rate_bps=6e8)
        assert (kind, members["kind"]) == ("problem", "busy")
        assert other.ask(**UDP, rate_bps=6e8)[0] == "accepted"
        first.sock.close()
        wait_until(lambda: server.server.quota.claims == 1)
        again = ControlClient(server, OTHER)
        assert again.ask(**UDP, rate_bps=6e8)[0] == "accepted"
        for client in (second, other, again):
            client.sock.close()


def test_all_clients_together_have_a_bound():
    with running_server(limits=Limits(rate_bps=6e6, all_rate_bps=10e6)) as server:
        clients = [ControlClient(server, f"127.0.0.{number}") for number in (2, 3)]
        answers = [client.ask(rate_bps=6e6, duration_s=1.0) for client in clients]
        assert [kind for kind, _ in answers] == ["accepted", "problem"]
        assert answers[1][1]["kind"] == "busy"
        assert "10.0 Mbit/s" in answers[1][1]["message"]
        for client in clients:
            client.sock.close()


def test_plain_clients_share_the_bound_of_their_address():
    with running_server(limits=Limits(rate_bps=40e6)) as server:
        with pytest.raises(Problem):
            server.measure_plain(duration_s=3, streams=3)
        assert works_at(server, 1e6, "127.0.0.3")


def works_at(server, rate_bps, source):
    return server.measure(total_bytes=10_000, rate_bps=rate_bps, source=source).results


# --- the server as a victim: words ----------------------------------------------------------


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
        flood = [sys.executable, "-I", "-S", "-c", FLOOD, str(server.port), "300000"]
        with subprocess.Popen(flood, stdout=subprocess.PIPE) as stranger:
            assert stranger.stdout.readline() == b"begun\n"
            notes = server.measure(**UDP | {"duration_s": 0.5}, directions=directions, rate_bps=5e6)
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
