"""If the other end is no server of this protocol, that is reported soon, with a remedy."""

import http.server
import socket
import threading
from contextlib import contextmanager

import pytest
from simpleperf.simpleperf_harness import Notes
from waiting import DEADLINE_S

from benchctl_simpleperf.simpleperf.program import control_client, plain_client
from benchctl_simpleperf.simpleperf.protocol.conversation import encode_message
from benchctl_simpleperf.simpleperf.protocol.plain import ANSWER
from benchctl_simpleperf.simpleperf.protocol.settings import MeasurementSettings
from benchctl_standalone.errors import Problem
from benchctl_standalone.sockets import Target
from benchctl_standalone.waker import Waker


def measure(port, plain):
    """Measure against a port; returns the problem that it ends with."""
    waker = Waker()
    settings = MeasurementSettings()._replace(duration_s=None, total_bytes=10_000)
    run = plain_client.run_plain_client if plain else control_client.run_control_client
    try:
        with pytest.raises(Problem) as raised:
            run(Target("127.0.0.1", port), settings, Notes(), waker)
    finally:
        waker.close()
    return raised.value


@contextmanager
def listening(serve):
    """Give each of a server's connections to a function."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept():
            try:
                while True:
                    sock, _ = listener.accept()
                    with sock:
                        serve(sock)
            except OSError:
                pass  # The test is over.

        thread = threading.Thread(target=accept)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@contextmanager
def http_server():
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def first_simpleperf(sock):
    """Serve as the first simpleperf does: chunks of 1000, until one of them ends with BYE."""
    total = 0
    while data := sock.recv(1000):
        total += len(data)
        if data.endswith(b"BYE"):
            sock.sendall(ANSWER)
            return


def silent_server():
    """Return a server whose kernel takes connections and bytes, and which never looks at them."""
    return socket.create_server(("127.0.0.1", 0))


@pytest.fixture
def soon_asked_again(monkeypatch):
    """A client that asks again soon, and then waits as long as a busy machine takes to answer."""
    monkeypatch.setattr(control_client, "_SILENCE_S", 0.1)
    monkeypatch.setattr(control_client, "_LAST_WORD_S", DEADLINE_S)


def test_a_server_of_the_first_simpleperf_is_known_by_its_answer(soon_asked_again):
    with listening(first_simpleperf) as port:
        problem = measure(port, plain=False)
    assert problem.kind == "refused"
    assert "only the plain protocol" in problem.message
    assert "--plain" in problem.hint
    assert "plain = true" in problem.hint


def test_the_answer_comes_before_anybody_ends_the_client():
    # benchctl allows a flow 15 s beside its duration, connecting included.
    assert control_client._SILENCE_S + control_client._LAST_WORD_S < 7
    assert plain_client._ANSWER_S < 15


@pytest.mark.parametrize("plain", [False, True], ids=["control", "plain"])
def test_a_server_of_something_else_is_shown_by_what_it_says(plain):
    with http_server() as port:
        problem = measure(port, plain)
    assert problem.kind == "refused"
    assert f"127.0.0.1:{port} is not a simpleperf server" in problem.message
    assert "DOCTYPE" in problem.message or "HTTP" in problem.message
    assert "address and port" in problem.hint


@pytest.mark.parametrize("plain", [False, True], ids=["control", "plain"])
def test_a_server_that_closes_at_once_may_not_be_ours_or_not_take_us(plain):
    with listening(lambda sock: None) as port:
        problem = measure(port, plain)
    assert problem.kind == "peer"
    assert "--allow" in problem.hint


@pytest.mark.parametrize("plain", [False, True], ids=["control", "plain"])
def test_a_server_that_says_nothing_is_not_waited_for(monkeypatch, plain):
    monkeypatch.setattr(control_client, "_SILENCE_S", 0.1)
    monkeypatch.setattr(control_client, "_LAST_WORD_S", 0.1)
    monkeypatch.setattr(plain_client, "_ANSWER_S", 0.1)
    with silent_server() as server:
        problem = measure(server.getsockname()[1], plain)
    assert problem.kind == "peer"
    assert "does not respond" in problem.message or "says no" in problem.message
    assert "address and port" in problem.hint


def test_what_is_still_under_way_to_a_plain_server_has_its_time(monkeypatch):
    left = iter([5, 3, 1])
    monkeypatch.setattr(plain_client, "_ANSWER_S", 0.0)
    monkeypatch.setattr(plain_client, "_LOOK_S", 0.01)
    monkeypatch.setattr(plain_client, "unacknowledged_bytes", lambda sock: next(left, 0))
    with silent_server() as server:
        problem = measure(server.getsockname()[1], plain=True)
    assert "took all bytes" in problem.message
    assert next(left, None) is None


def test_a_server_that_answers_too_late_is_not_taken_for_another(soon_asked_again):

    def late(sock):
        while not sock.recv(1 << 16).endswith(b"BYE"):
            pass
        sock.sendall(encode_message({"type": "welcome", "version": 1, "agent": "late"}))

    with listening(late) as port:
        problem = measure(port, plain=False)
    assert problem.kind == "peer"
    assert "answered after more than" in problem.message
