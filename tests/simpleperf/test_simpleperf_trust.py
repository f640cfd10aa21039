"""A server in a hostile world: strangers, liars, the slow, the half-open and the too many."""

import json
import random
import socket
import struct
import subprocess
import threading
from contextlib import suppress

import pytest
from simpleperf.simpleperf_harness import (
    COMMAND,
    ControlClient,
    Notes,
    idle,
    running_server,
    works,
)
from waiting import wait_until

from benchctl_simpleperf.simpleperf.measuring.side import Side
from benchctl_simpleperf.simpleperf.program import control_client, session
from benchctl_simpleperf.simpleperf.program import server as server_module
from benchctl_simpleperf.simpleperf.protocol.auth import KEY_VARIABLE, prove, proves, read_key
from benchctl_simpleperf.simpleperf.protocol.conversation import (
    CONTROL_PREAMBLE,
    MAGIC,
    stream_preamble,
)
from benchctl_simpleperf.simpleperf.protocol.settings import Limits, MeasurementSettings
from benchctl_standalone.errors import Problem
from benchctl_standalone.waker import Waker

# --- who may --------------------------------------------------------------------------------


def test_who_has_the_key_may_measure():
    with running_server(key=b"sesame") as server:
        notes = server.measure(key=b"sesame", total_bytes=1000)
    assert notes.results


@pytest.mark.parametrize("key", [b"wrong", None])
def test_who_does_not_have_the_key_may_not(key):
    with running_server(key=b"sesame") as server, pytest.raises(Problem) as raised:
        server.measure(key=key, total_bytes=1000)
    assert raised.value.kind == "refused"


def test_a_server_with_a_key_takes_no_plain_clients():
    with running_server(key=b"sesame") as server, server.connect() as sock:
        sock.sendall(b"x" * 1000 + b"BYE")
        with pytest.raises((ConnectionResetError, AssertionError)):
            assert sock.recv(100)
    assert server.notes.results == []


def test_an_answer_to_another_challenge_proves_nothing():
    mac = prove(b"key", "a" * 64, "b" * 64)
    assert proves(b"key", "a" * 64, "b" * 64, mac)
    assert not proves(b"key", "c" * 64, "b" * 64, mac)
    assert not proves(b"key", "a" * 64, "c" * 64, mac)


def test_a_key_is_read_from_a_file_or_the_environment(tmp_path, monkeypatch):
    path = tmp_path / "key"
    path.write_text("  sesame\n")
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    assert read_key(str(path)) == b"sesame"
    assert read_key(None) is None
    monkeypatch.setenv(KEY_VARIABLE, "open")
    assert read_key(None) == b"open"
    assert read_key(str(path)) == b"sesame"


@pytest.mark.parametrize("content", [b"", b"\n", b"x" * 5000])
def test_a_key_file_without_a_key_is_a_mistake(tmp_path, content):
    path = tmp_path / "key"
    path.write_bytes(content)
    with pytest.raises(Problem):
        read_key(str(path))


def test_a_key_file_that_is_not_there_is_a_mistake(tmp_path):
    with pytest.raises(Problem, match="No such file"):
        read_key(str(tmp_path / "key"))


# --- limits ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "asked", "words"),
    [
        (Limits(duration_s=5), {"duration_s": 6.0}, "at most 5 s"),
        (Limits(duration_s=5), {"duration_s": 4.0, "omit_s": 2.0}, "at most 5 s"),
        (Limits(duration_s=5), {"total_bytes": 1, "omit_s": 6.0}, "at most 5 s"),
        (Limits(), {"protocol": "udp", "length_bytes": 1448}, "at most 1.00 Gbit/s of UDP"),
        (Limits(rate_bps=1e6), {}, "at most 1.00 Mbit/s of TCP"),
        (Limits(rate_bps=1e6), {"rate_bps": 6e5, "streams": 2}, "at most 1.00 Mbit"),
        (
            Limits(rate_bps=1e6),
            {"rate_bps": 6e5, "directions": ("send", "receive")},
            "at most 1.00 Mbit",
        ),
        (Limits(all_rate_bps=1e6), {"rate_bps": 2e6}, "at most 1.00 Mbit"),
        (Limits(clients=2), {"streams": 3}, "at most 2 connections and streams"),
        (Limits(client_places=2), {"streams": 3}, "at most 2 connections and streams"),
    ],
)
def test_what_goes_beyond_a_limit_is_refused_with_the_limit(limits, asked, words):
    with running_server(limits=limits) as server, pytest.raises(Problem, match=words) as raised:
        server.measure(**asked)
    assert raised.value.kind == "refused"


def test_a_client_that_sends_faster_than_it_said_is_cut_off(monkeypatch):
    settings = MeasurementSettings()._replace(rate_bps=1e6, duration_s=5.0)
    with running_server(limits=Limits(rate_bps=2e6)) as server:
        client = ControlClient(server)
        assert client.ask(**settings._asdict())[0] == "accepted"
        with client.sock, server.connect() as stream:
            stream.sendall(stream_preamble(client.token, "send", 0))
            assert client.hear()[0] == "ready"
            client.say("start")
            with pytest.raises(OSError):  # noqa: PT011, PT012 - reset or broken pipe
                while True:
                    stream.sendall(bytes(10_000))
            kind, members = client.hear()
    assert (kind, members["kind"]) == ("problem", "refused")


def test_a_client_too_many_is_told_that_the_server_is_busy():
    with running_server(limits=Limits(clients=2)) as server:
        others = [ControlClient(server)]
        assert others[0].ask()[0] == "accepted"
        with pytest.raises(Problem) as raised:
            server.measure(total_bytes=1000)
        assert raised.value.kind == "busy"
        for other in others:
            other.sock.close()
        wait_until(lambda: idle(server))
        assert works(server)


def test_another_version_of_the_protocol_is_refused():
    with running_server() as server:
        client = ControlClient(server)
        client.say("hello", version=2, agent="test")
        kind, members = client.hear()
        client.sock.close()
    assert (kind, members["kind"]) == ("problem", "refused")


# --- the silent, the slow and the gone ------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [b"", b"\0simple", CONTROL_PREAMBLE, CONTROL_PREAMBLE + b'{"type":"hel', b"some payload"],
    ids=["nothing", "half a preamble", "a preamble", "half a message", "payload"],
)
def test_a_client_that_falls_silent_is_dropped(monkeypatch, said):
    monkeypatch.setattr(server_module, "_GREETING_S", 0.1)
    monkeypatch.setattr(session, "_HANDSHAKE_S", 0.1)
    with running_server(limits=Limits(idle_s=0.1)) as server, server.connect() as sock:
        with suppress(ConnectionError):  # It may have been dropped before it said anything.
            sock.sendall(said)
            # It is told why, where it can be told, and nothing more.
            while sock.recv(1000):
                pass
        sock.close()
        wait_until(lambda: idle(server))


def test_a_client_that_asks_and_never_joins_is_dropped(monkeypatch):
    monkeypatch.setattr(session, "_GOODBYE_S", 0.1)
    with running_server() as server:
        client = ControlClient(server)
        assert client.ask(streams=2)[0] == "accepted"
        with client.sock, server.connect() as stream:
            stream.sendall(stream_preamble(client.token, "send", 0))
            server.let_time_pass()
            kind, members = client.hear()
            assert (kind, members["kind"]) == ("problem", "peer")
            # Its stream goes with it.
            assert stream.recv(1) == b""
            wait_until(lambda: idle(server))
        with server.connect() as late:
            late.sendall(stream_preamble(client.token, "send", 1))
            assert late.recv(1) == b""


def test_a_client_that_joins_and_never_starts_is_dropped(monkeypatch):
    monkeypatch.setattr(session, "_GOODBYE_S", 0.1)
    with running_server() as server:
        client = ControlClient(server)
        assert client.ask()[0] == "accepted"
        with client.sock, server.connect() as stream:
            stream.sendall(stream_preamble(client.token, "send", 0))
            assert client.hear()[0] == "ready"
            server.let_time_pass()
            assert client.hear()[0] == "problem"
            wait_until(lambda: idle(server))


def test_a_stream_that_stands_still_ends_the_measurement(monkeypatch):
    def impatient(sends, sockets, settings, idle_s, notify, pauses):
        return Side(sends, sockets, settings, 0.2, notify, pauses)

    monkeypatch.setattr(session, "Side", impatient)
    with running_server() as server:
        client = ControlClient(server)
        assert client.ask(duration_s=None, total_bytes=1 << 30)[0] == "accepted"
        with client.sock, server.connect() as stream:
            stream.sendall(stream_preamble(client.token, "send", 0))
            assert client.hear()[0] == "ready"
            client.say("start")
            stream.sendall(b"x")
            kind, members = client.hear()
    assert kind == "problem"
    assert "too long" in members["message"]


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
@pytest.mark.parametrize("direction", ["send", "receive"])
def test_a_client_that_vanishes_frees_the_server_at_once(protocol, direction):
    with running_server() as server:
        flags = ["-u"] * (protocol == "udp") + ["-R"] * (direction == "receive")
        argv = [*COMMAND, "-c", "-p", str(server.port), *flags]
        argv += ["-t", "60", "-r", "50M", "-i", "0.05", "--events"]
        with subprocess.Popen(argv, stdout=subprocess.PIPE) as client:
            next(line for line in client.stdout if b'"interval"' in line)
            threads = threading.active_count()
            client.kill()
        wait_until(lambda: idle(server))
        wait_until(lambda: threading.active_count() < threads)
        assert works(server)


def test_a_client_that_does_not_read_what_it_is_told_is_dropped(monkeypatch):
    monkeypatch.setattr(session, "_UNREAD_LIMIT", 1000)
    with running_server() as server:
        client = ControlClient(server)
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        asked = {"streams": 32, "directions": ("receive",), "interval_s": 0.01, "duration_s": 60.0}
        assert client.ask(**asked, rate_bps=1e6)[0] == "accepted"
        streams = [server.connect() for _ in range(32)]
        for number, stream in enumerate(streams):
            stream.sendall(stream_preamble(client.token, "receive", number))
        assert client.hear()[0] == "ready"
        # The kernel's own buffer takes little, so it is soon the server's that fills.
        [told] = [peer for peer in server.server.hub.peers if isinstance(peer, session.Session)]
        told.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        client.say("start")
        wait_until(lambda: idle(server))
        for sock in (client.sock, *streams):
            sock.close()


# --- liars ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "preamble",
    [
        stream_preamble("0" * 32, "send", 0),
        stream_preamble("", "send", 0),
        MAGIC + b"stream\n",
        MAGIC + b"\xff\xff\n",
    ],
)
def test_a_stream_that_belongs_to_nobody_is_closed(preamble):
    with running_server() as server, server.connect() as sock:
        sock.sendall(preamble)
        assert sock.recv(1) == b""
        wait_until(lambda: idle(server))


@pytest.mark.parametrize(("direction", "number"), [("receive", 0), ("send", 1), ("send", 2)])
def test_a_stream_that_was_not_asked_for_is_closed(direction, number):
    with running_server() as server:
        client = ControlClient(server)
        assert client.ask(streams=2)[0] == "accepted"
        with client.sock, server.connect() as first, server.connect() as second:
            wait_until(lambda: server.server.connections == 3)
            first.sendall(stream_preamble(client.token, "send", 1))
            wait_until(lambda: server.server.connections == 2)  # A stream that joined is none.
            second.sendall(stream_preamble(client.token, direction, number))
            assert second.recv(1) == b""


def test_datagrams_of_strangers_are_ignored():
    rng = random.Random(7)
    with running_server() as server, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for _ in range(200):
            data = rng.choice([b"", MAGIC, stream_preamble("0" * 32, "send", 0)])
            stranger.sendto(data + rng.randbytes(rng.randrange(60)), (server.host, server.port))
        notes = server.measure(protocol="udp", total_bytes=10_000, length_bytes=1000, rate_bps=1e7)
    assert notes.results[0]["directions"]["send"]["bytes_received"] == 10_000


def test_a_storm_of_random_bytes_leaves_the_server_serving():
    rng = random.Random(5)
    starts = [b"", MAGIC, CONTROL_PREAMBLE, CONTROL_PREAMBLE + b"{", MAGIC + b"stream ",
              CONTROL_PREAMBLE + b'{"type":"hello","version":1,"agent":"x"}\n']  # fmt: skip
    with running_server() as server:
        for _ in range(150):
            with server.connect() as sock:
                sock.sendall(rng.choice(starts) + rng.randbytes(rng.randrange(500)))
                if rng.random() < 0.5:
                    linger = struct.pack("@ii", 1, 0)
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        assert works(server)
        wait_until(lambda: idle(server))


def mutated(rng, message):
    """Return a message of the protocol with something wrong about it."""
    members = dict(message)
    name = rng.choice([*members, "more"])
    members[name] = rng.choice([None, -1, 1e300, 2**70, "", "x" * 300, [], {}, [[]], True, "\n"])
    if rng.random() < 0.2:
        members.pop(name)
    return json.dumps(members).encode() + b"\n"


def test_messages_with_something_wrong_about_them_leave_the_server_serving():
    rng = random.Random(6)
    hello = {"type": "hello", "version": 1, "agent": "x"}
    test = {"type": "test", **MeasurementSettings()._asdict()}
    with running_server() as server:
        for _ in range(150):
            script = [hello, test, {"type": "start"}, {"type": "sent"}, {"type": "stop"}]
            wrong = rng.randrange(len(script))
            with server.connect() as sock:
                sock.sendall(CONTROL_PREAMBLE)
                for position, message in enumerate(script[: wrong + 1]):
                    line = mutated(rng, message) if position == wrong else None
                    sock.sendall(line or json.dumps(message).encode() + b"\n")
        assert works(server)
        wait_until(lambda: idle(server))


def test_a_message_without_end_is_cut_off_and_its_memory_freed():
    with running_server() as server, server.connect() as sock:
        sock.sendall(CONTROL_PREAMBLE + b'{"type":"')
        with pytest.raises(OSError):  # noqa: PT011, PT012 - reset or broken pipe
            while True:
                sock.sendall(bytes(65536))
        wait_until(lambda: idle(server))


# --- servers that lie to clients ------------------------------------------------------------


def lying_server(answers):
    """Serve one control connection with the given messages, whatever the client says."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        with listener:
            sock, _ = listener.accept()
            with sock:
                for answer in answers:
                    sock.recv(65536)
                    sock.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    return thread, listener.getsockname()[1]


WELCOME = b'{"type":"welcome","version":1,"agent":"x"}\n'


@pytest.mark.parametrize(
    "answers",
    [
        [b'{"type":"result"}\n'],
        [b'{"type":"welcome"}\n'],
        [WELCOME, b'{"type":"ready"}\n'],
        [WELCOME, b'{"type":"accepted","token":"short"}\n'],
        [WELCOME, b"[" * 100_000 + b"\n"],
        [WELCOME],
        [],
    ],
)
def test_a_server_that_talks_nonsense_is_told_as_the_peers_fault(answers):
    thread, port = lying_server(answers)
    waker = Waker()
    target = control_client.Target("127.0.0.1", port)
    with pytest.raises(Problem) as raised:
        control_client.run_control_client(target, MeasurementSettings(), Notes(), waker)
    waker.close()
    thread.join()
    assert raised.value.kind == "peer"
