"""TWAMP's sessions of a server: who gets one, and until when it answers."""

import socket
import time
from contextlib import suppress

import pytest
from waiting import wait_until

from benchctl_owamp.simpleowamp.clock import Clock
from benchctl_owamp.simpleowamp.messages import OPEN, Accept
from benchctl_owamp.simpleowamp.quota import Limits
from benchctl_owamp.simpleowamp.reflecting import TwoWaySessions
from benchctl_owamp.simpleowamp.sessions import Requester
from benchctl_owamp.simpleowamp.timestamps import UNITS_PER_S
from benchctl_owamp.simpleowamp.twamp import TwoWayRequest
from benchctl_owamp.simpleowamp.two_way import twamp_format

CLIENT = Requester(b"127.0.0.1", ("127.0.0.1", 862), ("127.0.0.1", 40000), OPEN, None)
REQUEST = TwoWayRequest("127.0.0.1", 9000, "127.0.0.1", 0, 0, UNITS_PER_S, 27)


class Hub:
    """Keeps what it is to watch."""

    def __init__(self):
        self.peers = []

    def add(self, peer):
        self.peers.append(peer)

    def remove(self, peer):
        if peer in self.peers:
            self.peers.remove(peer)


@pytest.fixture
def opened():
    """Sessions that are closed at the end."""
    kept = []
    yield kept
    for sessions, session in kept:
        sessions.end(session)


@pytest.fixture
def start(opened):
    """Start a session; returns the hub, the sessions and it."""

    def work(request=REQUEST, client=CLIENT, **limits):
        sessions = TwoWaySessions(Hub(), Limits(**limits), Clock(), None, None)
        session = sessions.open(client, request)
        opened.append((sessions, session))
        sessions.start(session, client, None)
        return sessions._hub, sessions, session

    return work


def refusal(request, **limits):
    return TwoWaySessions(Hub(), Limits(**limits), Clock(), None, None).open(CLIENT, request)


def test_nobody_gets_answers_sent_to_a_third():
    assert refusal(REQUEST._replace(sender_address="192.0.2.1")) == Accept.REFUSED


def test_probes_that_are_shorter_than_their_answers_are_unsupported():
    assert refusal(REQUEST._replace(padding_bytes=26)) == Accept.UNSUPPORTED


def test_a_client_behind_a_translator_of_addresses_names_none(start):
    _, _, session = start(REQUEST._replace(sender_address="0.0.0.0", receiver_address="0.0.0.0"))
    assert session.port


def test_sessions_are_limited_until_one_ends(start, opened):
    _, sessions, session = start(sessions=1)
    assert sessions.open(CLIENT, REQUEST) == Accept.TEMPORARY_LIMIT
    sessions.drop(session)
    again = sessions.open(CLIENT, REQUEST)
    opened.append((sessions, again))
    assert again.request.sid != session.request.sid


def test_the_port_that_the_client_wants_is_taken_if_it_is_free(start, port, opened):
    _, sessions, session = start(REQUEST._replace(receiver_port=port))
    assert session.port == port
    other = sessions.open(CLIENT, REQUEST._replace(receiver_port=port))
    opened.append((sessions, other))
    assert other.port != port


def test_a_low_port_is_not_the_clients_to_choose(start):
    _, _, session = start(REQUEST._replace(receiver_port=1023))
    assert session.port != 1023


def taken(session):
    """Take what has arrived."""
    with suppress(BlockingIOError):
        session.on_readable(memoryview(bytearray(65536)))
    return True


def test_only_the_client_that_asked_is_answered(start):
    with (
        socket.socket(type=socket.SOCK_DGRAM) as asker,
        socket.socket(type=socket.SOCK_DGRAM) as other,
    ):
        for sock in (asker, other):
            sock.bind(("127.0.0.1", 0))
            sock.settimeout(30)
        _, _, session = start(REQUEST._replace(sender_port=asker.getsockname()[1]))
        probe = twamp_format().probes().write(0, time.time_ns(), 1)
        for sock in (other, asker):
            sock.sendto(probe, ("127.0.0.1", session.port))
        reflector = session.reflector
        wait_until(lambda: taken(session) and reflector.answered + reflector.ignored == 2)
        assert asker.recv(100)[:4] == bytes(4)
        other.setblocking(False)
        with pytest.raises(BlockingIOError):
            other.recv(100)


def test_a_session_ends_when_its_client_is_silent_or_its_time_is_over(start):
    hub, _, session = start(duration_s=0.0)
    assert hub.peers == [session]
    session.on_deadline()
    assert hub.peers == []
    hub, _, session = start()
    session.on_deadline()
    assert hub.peers == [session]
    assert 890 < session.end_s - time.monotonic() <= 900


def test_after_its_end_a_session_answers_what_is_on_its_way(start):
    hub, sessions, session = start()
    sessions.stop(session)
    assert hub.peers == [session]
    assert session.deadline_s - time.monotonic() <= 1.0
