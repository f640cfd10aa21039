"""Whatever comes to the server's door is refused cleanly, and honest clients are still served."""

import socket
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from owamp.owamp_harness import client_module, running_server
from waiting import wait_until

from benchctl_owamp.simpleowamp.measuring.quota import Limits
from benchctl_owamp.simpleowamp.program.control_peer import ControlPeer
from benchctl_owamp.simpleowamp.protocol.control_client import ControlClient
from benchctl_owamp.simpleowamp.protocol.messages import SessionRequest
from benchctl_owamp.simpleowamp.protocol.schedule import EXPONENTIAL, Slot
from benchctl_owamp.simpleowamp.protocol.timestamps import to_interval, to_timestamp

EXAMPLES = settings(max_examples=60)


@pytest.fixture(scope="module")
def server():
    with pytest.MonkeyPatch.context() as patch, running_server() as running:
        patch.setattr(client_module, "_LEAST_WAIT_S", 0.0)
        yield running
        running.idle()


def set_up():
    """Return what an honest client says before it asks for sessions."""
    client = ControlClient()
    list(client.receive(bytes(15) + bytes([1]) + bytes(48)))
    return client, client.set_up()


def honest_words(sender_port=5000):
    """Return a conversation of a client about one session, in which it sends nothing."""
    client, words = set_up()
    list(client.receive(bytes(48)))
    request = SessionRequest(
        False, True, 10, (Slot(EXPONENTIAL, to_interval(1_000_000)),), "127.0.0.1", sender_port,
        "127.0.0.1", 0, to_timestamp(time.time_ns()), to_interval(1_000_000_000),
    )  # fmt: skip
    words += client.request_session(request)
    list(client.receive(bytes(48)))
    words += client.start_sessions()
    list(client.receive(bytes(32)))
    return words, client.stop_sessions(())


HONEST = b"".join(honest_words())


def say(server, words, cuts=()):
    """Say words, in pieces, and then nothing; returns when the server has closed or all is read."""
    with server.connect() as sock:
        ends = [*sorted(cuts), len(words)]
        try:
            for start, end in zip([0, *ends], ends, strict=False):
                sock.sendall(words[start:end])
            sock.shutdown(socket.SHUT_WR)
            while sock.recv(65536):
                pass
        except OSError:
            pass  # It has closed before it was told everything.


def serves(server):
    return server.measure(packet_count=1).over and not server.warnings


@EXAMPLES
@given(st.binary(max_size=600))
def test_random_bytes_are_no_conversation(server, words):
    say(server, words)
    assert not server.warnings


@EXAMPLES
@given(st.binary(min_size=16, max_size=400))
def test_random_commands_after_a_proper_set_up_are_refused(server, words):
    say(server, set_up()[1] + words)
    assert not server.warnings


@EXAMPLES
@given(
    st.lists(st.tuples(st.integers(0, len(HONEST) - 1), st.integers(1, 255)), max_size=8),
    st.lists(st.integers(0, len(HONEST)), max_size=4),
    st.integers(0, len(HONEST)),
)
def test_a_conversation_that_is_altered_cut_or_ends_early_harms_nobody(server, flips, cuts, end):
    words = bytearray(HONEST)
    for at, change in flips:
        words[at] ^= change
    say(server, bytes(words[:end]), [cut for cut in cuts if cut <= end])
    assert not server.warnings


@EXAMPLES
@given(st.lists(st.binary(max_size=100), max_size=5))
def test_random_packets_to_a_test_port_are_not_counted(server, packets):
    with server.connect() as sock, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        begin, stop = honest_words(udp.getsockname()[1])
        sock.sendall(begin)
        _, started, accepted, acknowledged = (heard(sock, n) for n in (64, 48, 48, 32))
        assert (started[15], accepted[0], acknowledged[0]) == (0, 0, 0)
        udp.connect(("127.0.0.1", int.from_bytes(accepted[2:4], "big")))
        for packet in packets:
            udp.send(packet)
        sock.sendall(stop)
        assert heard(sock, 32)[0] == 3
    kept = server.server.sessions.shelf.get(accepted[4:20], b"127.0.0.1")
    assert kept.records == b""


def heard(sock, count):
    data = b""
    while len(data) < count:
        data += sock.recv(count - len(data))
    return data


def test_after_all_that_an_honest_client_is_served_and_nothing_is_left(server):
    server.idle()
    assert serves(server)
    assert server.server.sessions.running == 0


@pytest.mark.parametrize("mode", [0, 2, 3, 8, 1 << 31])
def test_an_unknown_mode_is_refused(server, mode):
    with server.connect() as sock:
        sock.sendall(mode.to_bytes(4, "big") + bytes(160))
        answer = b""
        while data := sock.recv(1000):
            answer += data
        assert answer[64 + 15] == 3  # Server-Start: the mode is not supported.


def test_half_open_connections_do_not_keep_others_out(server):
    held = [server.connect() for _ in range(200)]
    held[0].sendall(HONEST[:100])
    assert serves(server)
    for sock in held:
        sock.close()
    server.idle()


def test_of_too_many_waiting_connections_the_oldest_of_the_greediest_go(monkeypatch):
    monkeypatch.setattr("benchctl_owamp.simpleowamp.program.server._WAITING", 20)
    monkeypatch.setattr("benchctl_owamp.simpleowamp.program.server._THINNED", 5)
    with running_server() as server:
        modest = server.connect("127.0.0.2")
        wait_until(lambda: server.server.connections == 1)
        greedy = [server.connect("127.0.0.3") for _ in range(60)]
        wait_until(lambda: server.server.connections <= 21)
        origins = [peer.origin for peer in server.server.hub.peers if isinstance(peer, ControlPeer)]
        assert b"127.0.0.2" in origins
        for sock in (modest, *greedy):
            sock.close()
        server.idle()


def talk_on(sock, words):
    while True:
        sock.sendall(words)


def test_a_client_that_talks_and_does_not_listen_is_closed():
    with running_server(limits=Limits(idle_s=0.2)) as server, server.connect() as sock:
        client, words = set_up()
        list(client.receive(bytes(48)))
        sock.sendall(words)
        asks = client.fetch_session(bytes(16))
        with pytest.raises(ConnectionError):
            talk_on(sock, asks * 1000)
        server.idle()
