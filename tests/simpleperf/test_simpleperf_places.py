"""Places and rates of an open server: nobody takes them all, and nobody keeps others waiting."""

import resource
from contextlib import suppress

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
from waiting import DEADLINE_S, wait_until

from benchctl_simpleperf.simpleperf.program import control_client, session
from benchctl_simpleperf.simpleperf.program import server as server_module
from benchctl_simpleperf.simpleperf.protocol.conversation import (
    CONTROL_PREAMBLE,
)
from benchctl_simpleperf.simpleperf.protocol.settings import Limits
from benchctl_standalone.errors import Problem


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


def test_plain_clients_that_send_keep_their_places(monkeypatch):
    monkeypatch.setattr(server_module, "_SLOW_S", 3600.0)
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


def refuses(sock, data):
    """Send a little; returns whether the server has closed the connection."""
    try:
        sock.sendall(data)
    except OSError:
        return True
    return False


def test_a_plain_client_that_drips_is_dropped_like_a_silent_one():
    with running_server(limits=Limits(idle_s=0.3)) as server, server.connect() as sock:
        wait_until(lambda: refuses(sock, b"x"))
        wait_until(lambda: idle(server))


def test_a_control_connection_that_drips_is_dropped_like_a_silent_one(monkeypatch):
    monkeypatch.setattr(session, "_HANDSHAKE_S", 0.3)
    monkeypatch.setattr(session, "_GOODBYE_S", 0.1)
    with running_server() as server, server.connect() as sock:
        sock.sendall(CONTROL_PREAMBLE)
        wait_until(lambda: refuses(sock, b" "))
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
