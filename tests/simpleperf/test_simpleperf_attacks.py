"""What an attacker may try against a server that is open to a network.

The attacker has the address 127.0.0.2, or shows it as his datagrams' source: to the server that is
the same. All loads end by themselves.
"""

import socket

import pytest
from simpleperf.simpleperf_harness import ControlClient, idle, running_server, wait_for, works

from benchctl_simpleperf.simpleperf import control_client
from benchctl_simpleperf.simpleperf.errors import Problem
from benchctl_simpleperf.simpleperf.wire import stream_preamble

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
        token = next(iter(server.server._sessions))
        victim.sendto(stream_preamble(token, "receive", 0), (server.host, server.port))
        kind, members = attacker.hear()
        assert (kind, members["kind"]) == ("problem", "refused")
        assert OTHER in members["message"]
        assert "127.0.0.1" in members["message"]
        with pytest.raises(BlockingIOError):
            victim.recv(1)
        attacker.sock.close()
        wait_for(lambda: idle(server))
        assert works(server)


def test_no_stream_of_tcp_is_taken_from_an_address_that_did_not_ask():
    with running_server() as server:
        client = ControlClient(server)
        assert client.ask(directions=("receive",))[0] == "accepted"
        token = next(iter(server.server._sessions))
        with client.sock, server.connect(OTHER) as stream:
            stream.sendall(stream_preamble(token, "receive", 0))
            kind, members = client.hear()
            assert (kind, members["kind"]) == ("problem", "refused")
            assert stream.recv(1) == b""


@pytest.mark.parametrize("direction", ["send", "receive"])
def test_a_client_whose_udp_leaves_by_another_address_is_told_at_once(monkeypatch, direction):
    real = control_client.connect_again

    def elsewhere(control, kind, target, *rest):
        return real(control, kind, target._replace(source=OTHER), *rest)

    monkeypatch.setattr(control_client, "connect_again", elsewhere)
    # It is told long before it would give up by itself, or present itself again.
    monkeypatch.setattr(control_client, "_PRESENT_EVERY_S", 3600.0)
    with running_server() as server, pytest.raises(Problem, match=f"comes from {OTHER}") as raised:
        server.measure(protocol="udp", directions=(direction,), length_bytes=1448)
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
