from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl_owamp.simpleowamp.protocol.control import State
from benchctl_owamp.simpleowamp.protocol.layouts import REQUEST_TW_SESSION
from benchctl_owamp.simpleowamp.protocol.messages import (
    MODES,
    Accept,
    Greeting,
    ServerStarted,
    SessionAccepted,
    SessionRequested,
    SessionsStarted,
    SetUp,
    StartRequested,
    Stopped,
)
from benchctl_owamp.simpleowamp.protocol.twamp import TwampClient, TwampServer, TwoWayRequest
from benchctl_standalone.errors import Problem

REQUESTS = {
    "IPv4": TwoWayRequest("192.0.2.1", 9000, "192.0.2.2", 9001, 5 << 32, 2 << 32, 27, 46 << 24),
    "IPv6": TwoWayRequest("2001:db8::1", 9000, "2001:db8::2", 9001, 0, 2 << 32, 100),
    "own addresses": TwoWayRequest("0.0.0.0", 9000, "0.0.0.0", 862, 0, 0, 27),
}
SID = bytes(range(16))
USERS = {"alice": b"a passphrase"}


class Pair:
    """A client and a server; what one writes, the other reads, in pieces of a size."""

    def __init__(self, mode, piece=1 << 16):
        self.server = TwampServer(sum(MODES.values()), USERS, 7 << 32)
        self.client = TwampClient()
        self.piece = piece
        [greeting] = self.to_client(self.server.greeting())
        assert greeting == Greeting(7)
        [set_up] = self.to_server(self.client.set_up(mode, "alice", USERS["alice"]))
        assert set_up == SetUp(MODES[mode], "" if mode == "open" else "alice", Accept.OK)
        assert self.to_client(self.server.start()) == [ServerStarted(Accept.OK, 7 << 32)]

    def to_client(self, octets):
        return self._pass(octets, self.client)

    def to_server(self, octets):
        return self._pass(octets, self.server)

    def _pass(self, octets, end):
        pieces = (octets[at : at + self.piece] for at in range(0, len(octets), self.piece))
        return [event for piece in pieces for event in end.receive(piece)]


@pytest.fixture(params=MODES)
def mode(request):
    if request.param != "open":
        pytest.importorskip(
            "cryptography", reason="needs cryptography: pip install benchctl[owamp]"
        )
    return request.param


@pytest.mark.parametrize("piece", [1, 7, 1 << 16])
@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_a_session_is_agreed_started_and_stopped_and_the_next_one_may_follow(mode, piece, request_):
    pair = Pair(mode, piece)
    for _ in range(2):
        asked = pair.to_server(pair.client.request_two_way(request_))
        assert asked == [SessionRequested(request_)]
        agreed = pair.to_client(pair.server.accept_session(9001, SID))
        assert agreed == [SessionAccepted(Accept.OK, 9001, SID)]
        assert pair.to_server(pair.client.start_sessions()) == [StartRequested()]
        assert pair.to_client(pair.server.start_ack()) == [SessionsStarted(Accept.OK)]
        assert pair.to_server(pair.client.stop_two_way(1)) == [Stopped(Accept.OK, ())]
        assert pair.client.state is pair.server.state is State.READY


def test_a_refused_session_leaves_the_connection_ready(mode):
    pair = Pair(mode)
    pair.to_server(pair.client.request_two_way(REQUESTS["IPv4"]))
    [answer] = pair.to_client(pair.server.refuse_session(Accept.TEMPORARY_LIMIT))
    assert answer.accept == Accept.TEMPORARY_LIMIT
    assert pair.client.state is State.READY


@pytest.mark.parametrize("field", ["conf_sender", "conf_receiver", "slot_count", "packet_count"])
def test_what_only_one_way_sessions_have_is_unsupported(field):
    fields = REQUEST_TW_SESSION.unpack(REQUESTS["IPv4"].pack() + bytes(16))
    assert TwoWayRequest.unpack(fields).refusal() == Accept.OK
    assert TwoWayRequest.unpack({**fields, field: 1}).refusal() == Accept.UNSUPPORTED


def test_a_type_of_packet_other_than_a_dscp_is_unsupported():
    assert REQUESTS["IPv4"].dscp == 46
    assert REQUESTS["IPv4"]._replace(type_p=1 << 30).refusal() == Accept.UNSUPPORTED


@pytest.mark.parametrize("command", [0, 1, 4, 6, 255])
def test_commands_of_other_protocols_end_the_connection(command):
    pair = Pair("open")
    with pytest.raises(Problem, match=f"unknown command {command}"):
        pair.to_server(bytes([command]) + bytes(111))


@given(st.binary(min_size=1, max_size=300))
def test_random_octets_give_a_problem_or_nothing(octets):
    pair = Pair("open")
    with suppress(Problem):
        pair.to_server(octets)


@pytest.mark.parametrize("at", [16, 47, 80, 111])
def test_a_changed_octet_of_a_sealed_message_is_noticed(at):
    pytest.importorskip("cryptography", reason="needs cryptography: pip install benchctl[owamp]")
    pair = Pair("encrypted")
    message = bytearray(pair.client.request_two_way(REQUESTS["IPv4"]))
    message[at] ^= 1
    with pytest.raises(Problem, match="HMAC"):
        pair.to_server(bytes(message))
