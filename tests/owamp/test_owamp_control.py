"""The control connection: both machines agree, however the stream is cut, and take no nonsense."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from owamp.owamp_conversation import (
    MODES,
    RECORDS,
    REPEATABLE,
    REQUEST,
    SECOND,
    SID,
    SKIPS,
    USERS,
    Answering,
    conversation,
    counting,
    cut,
    said,
)

import benchctl_owamp
from benchctl_owamp.simpleowamp.protocol.control import (
    MAX_SESSIONS,
    MAX_SKIPS,
    MAX_SLOTS,
    MESSAGES,
    State,
)
from benchctl_owamp.simpleowamp.protocol.control_client import ControlClient
from benchctl_owamp.simpleowamp.protocol.control_server import ControlServer
from benchctl_owamp.simpleowamp.protocol.layouts import (
    GREETING,
    REQUEST_SESSION,
    SESSION_DESCRIPTION,
    SET_UP_RESPONSE,
    STOP_SESSIONS,
)
from benchctl_owamp.simpleowamp.protocol.messages import (
    Accept,
    FetchedSession,
    FetchEnded,
    FetchRequested,
    FetchStarted,
    Greeting,
    ServerStarted,
    SessionAccepted,
    SessionRequested,
    SessionsStarted,
    SetUp,
    StartRequested,
    Stopped,
    StoppedSession,
    accept_words,
    make_sid,
)
from benchctl_standalone.errors import Problem

# In each mode.
FEWER = settings(REPEATABLE, max_examples=40)
ALL_MODES = ("open", "authenticated", "encrypted")
BITS = {"open": 1, "authenticated": 2, "encrypted": 4}


def kind_of(act):
    """Return the kind of the Problem that an act ends in; empty if it ends well."""
    try:
        act()
    except Problem as problem:
        return problem.kind
    except RuntimeError as error:
        return "out of turn" if " where " in str(error) else repr(error)
    return ""


@pytest.mark.parametrize("mode", ALL_MODES)
def test_both_ends_understand_each_other_in_every_mode(mode):
    _, _, client, server = conversation(mode)
    stopped = Stopped(Accept.OK, (StoppedSession(SID, 40, SKIPS),))
    accepted = SessionAccepted(Accept.OK, 9000, SID)
    assert client == [
        Greeting(MODES), ServerStarted(Accept.OK, 5 * SECOND), accepted, accepted,
        SessionsStarted(Accept.OK), stopped, FetchStarted(Accept.OK, True, 40, len(RECORDS)),
        FetchedSession(REQUEST, SKIPS), *RECORDS, FetchEnded(),
    ]  # fmt: skip
    user = "" if mode == "open" else "ann"
    assert server == [
        SetUp(BITS[mode], user, Accept.OK), SessionRequested(REQUEST), SessionRequested(REQUEST),
        StartRequested(), stopped, FetchRequested(SID, 0, 0xFFFFFFFF),
    ]  # fmt: skip


@pytest.fixture(scope="module", params=ALL_MODES)
def recorded(request):
    return request.param, *conversation(request.param)


def client_hears(mode, pieces):
    """Return the events of a client that hears the server's octets in pieces."""
    client = ControlClient(counting())
    says = said(client, mode)
    events = []
    speaks_after = (Greeting, ServerStarted, SessionAccepted, SessionsStarted, Stopped)
    for piece in pieces:
        for event in client.receive(piece):
            events.append(event)
            if isinstance(event, speaks_after):
                next(says)()
    return events


def server_hears(pieces):
    server = Answering()
    server.machine.greeting()
    answers = b"".join(map(server.hear, pieces))
    return answers, server.heard


@FEWER
@given(places=st.lists(st.integers(0, 1 << 16), max_size=30))
def test_however_the_stream_is_cut_the_events_are_the_same(recorded, places):
    mode, from_client, from_server, client, server = recorded
    assert client_hears(mode, cut(from_server, places)) == client
    answers, heard = server_hears(cut(from_client, places))
    assert heard == server
    assert answers == from_server[GREETING.size :]


def test_octet_by_octet_gives_the_same_events(recorded):
    mode, from_client, from_server, client, server = recorded
    everywhere = range(len(from_client) + len(from_server))
    assert client_hears(mode, cut(from_server, everywhere)) == client
    assert server_hears(cut(from_client, everywhere))[1] == server


def test_the_client_has_stopped_when_all_of_its_message_is_there(recorded):
    server = Answering()
    server.machine.greeting()
    for octet in recorded[1]:
        server.hear(bytes([octet]))
        assert server.machine.state is not State.CLIENT_STOPPED


@FEWER
@given(place=st.integers(0, 1 << 16), mask=st.integers(1, 255), cuts=st.lists(st.integers(0, 4000)))
def test_altered_octets_end_in_one_problem_or_in_nothing(recorded, place, mask, cuts):
    mode, from_client, from_server, *_ = recorded
    for octets, hear in (
        (from_server, lambda pieces: client_hears(mode, pieces)),
        (from_client, server_hears),
    ):
        altered = bytearray(octets)
        altered[place % len(octets)] ^= mask
        outcome = kind_of(lambda hear=hear, altered=altered: hear(cut(bytes(altered), cuts)))
        # Out of turn is the test, which says what it said before.
        assert outcome in ("", "peer", "refused", "out of turn")


@REPEATABLE
@given(pieces=st.lists(st.binary(max_size=300), max_size=20))
def test_random_octets_end_in_one_problem_or_wait_for_more(pieces):
    server = Answering()
    server.machine.greeting()
    client = ControlClient()
    for hear in (server.hear, lambda piece: list(client.receive(piece))):
        assert kind_of(lambda hear=hear: list(map(hear, pieces))) in ("", "peer")


COMMANDS = st.builds(
    lambda command, rest: bytes([command]) + rest,
    st.integers(0, 5),
    st.binary(max_size=200) | st.integers(0, 200).map(bytes),
)


@REPEATABLE
@given(is_running=st.booleans(), pieces=st.lists(COMMANDS, max_size=30))
def test_after_set_up_too_random_octets_end_in_one_problem_and_little_is_kept(is_running, pieces):
    server = running() if is_running else ready()
    assert kind_of(lambda: list(map(server.hear, pieces))) in ("", "peer")
    assert len(server.machine._buffer) <= 8 * MAX_SKIPS + 200


@pytest.mark.parametrize("mode", ["authenticated", "encrypted"])
@pytest.mark.parametrize("place", range(0, 112 + 32 + 16, 8))
def test_an_altered_request_is_noticed_by_its_hmac(mode, place):
    client, server = ControlClient(counting()), Answering()
    list(client.receive(server.machine.greeting()))
    list(client.receive(server.hear(client.set_up(mode, "ann", USERS["ann"]))))
    message = bytearray(client.request_session(REQUEST))
    message[place] ^= 1
    with pytest.raises(Problem) as caught:
        server.hear(bytes(message))
    assert caught.value.kind == "peer"


def test_in_the_open_mode_any_hmac_is_taken():
    client, server = ControlClient(), Answering()
    list(client.receive(server.machine.greeting()))
    list(client.receive(server.hear(client.set_up())))
    message = bytearray(client.request_session(REQUEST))
    message[96:112] = message[-16:] = b"\xff" * 16
    assert server.hear(bytes(message))
    assert server.heard[-1] == SessionRequested(REQUEST)


@pytest.mark.parametrize("mode", ["authenticated", "encrypted"])
@pytest.mark.parametrize(("user", "word"), [("ann", b"wrong"), ("bob", b"x"), ("", b"")])
def test_whoever_does_not_know_the_passphrase_is_refused(mode, user, word):
    client, server = ControlClient(), Answering()
    list(client.receive(server.machine.greeting()))
    (event,) = client.receive(server.hear(client.set_up(mode, user, word)))
    assert event == ServerStarted(Accept.REFUSED, 0)
    assert server.heard == [SetUp(BITS[mode], user, Accept.REFUSED)]
    assert (client.state, server.machine.state) == (State.OVER, State.OVER)
    assert client.keys is server.machine.keys is None
    with pytest.raises(Problem, match=r"after the end|where nothing may follow"):
        server.hear(bytes(32))


def test_a_user_whose_name_does_not_fit_is_refused_here_and_one_that_fits_arrives_whole():
    client = ControlClient()
    list(client.receive(GREETING.pack(modes=2, count=1)))
    with pytest.raises(Problem, match="a user's name of more than 80 octets"):
        client.set_up("authenticated", "ü" * 41, b"x")
    server = Answering()
    server.machine.greeting()
    server.hear(SET_UP_RESPONSE.pack(mode=2, key_id=("ü" * 40).encode()))
    assert server.heard[-1].user == "ü" * 40


def test_what_follows_a_zero_is_no_part_of_a_users_name():
    server = Answering()
    server.machine.greeting()
    server.hear(SET_UP_RESPONSE.pack(mode=2, key_id=b"ann\0garbage"))
    assert server.heard[-1].user == "ann"


@pytest.mark.parametrize("mode", [0, 3, 8, 1 << 31])
def test_an_unknown_mode_is_refused(mode):
    server = Answering()
    server.machine.greeting()
    answer = server.hear(SET_UP_RESPONSE.pack(mode=mode))
    assert server.heard == [SetUp(mode, "", Accept.UNSUPPORTED)]
    assert (len(answer), answer[15]) == (48, Accept.UNSUPPORTED)


def test_a_mode_that_is_not_offered_is_refused_by_each_end():
    server = ControlServer(2, USERS, 0)
    client = ControlClient()
    list(client.receive(server.greeting()))
    with pytest.raises(Problem) as caught:
        client.set_up("open")
    assert caught.value.kind == "refused"
    assert (caught.value.message, caught.value.hint) == (
        "the server does not offer the mode open", "it offers authenticated"
    )  # fmt: skip
    (event,) = server.receive(SET_UP_RESPONSE.pack(mode=1))
    assert event.accept == Accept.UNSUPPORTED


def test_a_server_without_modes_takes_nobody():
    client = ControlClient()
    list(client.receive(GREETING.pack(modes=0)))
    with pytest.raises(Problem) as caught:
        client.set_up("open")
    assert caught.value.hint == "it takes no measurements now"


def test_a_server_may_refuse_whom_the_protocol_would_take():
    server, client = ControlServer(1, {}, 7), ControlClient()
    list(client.receive(server.greeting()))
    list(server.receive(client.set_up()))
    (event,) = client.receive(server.start(Accept.TEMPORARY_LIMIT))
    assert event == ServerStarted(Accept.TEMPORARY_LIMIT, 0)


def test_a_server_cannot_make_a_client_work_for_long():
    client = ControlClient()
    list(client.receive(GREETING.pack(modes=2, count=1 << 31)))
    with pytest.raises(Problem, match="rounds of key derivation"):
        client.set_up("authenticated", "ann", b"x")


def ready(request=None):
    """Return a server whose client has been set up in the open mode."""
    server = Answering()
    server.machine.greeting()
    server.hear(SET_UP_RESPONSE.pack(mode=1))
    return server


def running():
    server = ready()
    server.hear(REQUEST_SESSION.pack(command=1, ip_version=4) + bytes(16))
    server.hear(b"\2" + bytes(31))
    return server


@pytest.mark.parametrize(
    ("server", "octets", "words"),
    [
        (ready, bytes(16), "the unknown command 0"),
        (ready, b"\5" + bytes(15), "the unknown command 5"),
        (ready, STOP_SESSIONS.pack(command=3), "Stop-Sessions where the client may ask"),
        (running, b"\4" + bytes(47), "Fetch-Session where the sessions run"),
        (running, b"\1" + bytes(15), "Request-Session where the sessions run"),
        (ready, REQUEST_SESSION.pack(command=1, ip_version=5) + bytes(16), "version 5 of IP"),
        (ready, REQUEST_SESSION.pack(command=1, ip_version=4, slot_count=MAX_SLOTS + 1),
         "1025 schedule slots"),
        (running, STOP_SESSIONS.pack(command=3, session_count=MAX_SESSIONS + 1), "1025 sessions"),
        (running, STOP_SESSIONS.pack(command=3, session_count=1)
         + SESSION_DESCRIPTION.pack(skip_count=MAX_SKIPS + 1) + bytes(8), "16385 skip ranges"),
        (running, STOP_SESSIONS.pack(command=3, session_count=1)
         + SESSION_DESCRIPTION.pack(skip_count=1) + bytes.fromhex("00000002 00000001"),
         "not in order"),
        (running, STOP_SESSIONS.pack(command=3, session_count=1)
         + SESSION_DESCRIPTION.pack(skip_count=2) + bytes.fromhex("00000002 00000003")
         + bytes.fromhex("00000003 00000004") + bytes(8), "not in order"),
    ],
)  # fmt: skip
def test_what_the_protocol_does_not_allow_is_named(server, octets, words):
    with pytest.raises(Problem, match=words) as caught:
        server().hear(octets)
    assert caught.value.kind == "peer"


def test_a_server_that_speaks_out_of_turn_is_named():
    client = ControlClient()
    with pytest.raises(Problem, match="where the server has offered its modes"):
        list(client.receive(GREETING.pack(modes=1) + bytes(48)))
    client, server = ControlClient(), Answering()
    list(client.receive(server.machine.greeting()))
    list(client.receive(server.hear(client.set_up())))
    with pytest.raises(Problem, match="out of turn: the client may ask"):
        list(client.receive(bytes(16)))


def test_while_sessions_run_a_server_may_only_stop_them():
    client, server = ControlClient(), Answering()
    list(client.receive(server.machine.greeting()))
    for say in (client.set_up, lambda: client.request_session(REQUEST), client.start_sessions):
        list(client.receive(server.hear(say())))
    with pytest.raises(Problem, match="the command 2 where only Stop-Sessions may come"):
        list(client.receive(b"\2" + bytes(15)))


def test_what_a_stranger_sends_is_not_kept():
    """A whole message is what a machine keeps at most, and never more than its limits."""
    server = ready()
    message = REQUEST_SESSION.pack(command=1, ip_version=4, slot_count=MAX_SLOTS)
    for _ in range(3):
        server.hear(message + bytes(16 * MAX_SLOTS) + bytes(16))
    assert len(server.machine._buffer) == 0
    assert server.machine.at_rest


def test_either_end_may_stop_first():
    server = running().machine
    assert server.state is State.RUNNING
    server.stop_sessions([])
    assert server.state is State.SERVER_STOPPED
    (event,) = server.receive(STOP_SESSIONS.pack(command=3, accept=1) + bytes(16))
    assert event == Stopped(1, ())
    assert server.state is State.READY


def test_a_client_is_in_the_middle_of_something_until_the_answer():
    client, server = ControlClient(), Answering()
    assert client.at_rest
    list(client.receive(server.machine.greeting()[:10]))
    assert not client.at_rest
    server = running().machine
    assert not server.at_rest


def test_who_speaks_out_of_turn_here_is_told_so():
    client = ControlClient()
    with pytest.raises(RuntimeError, match="Start-Sessions where no greeting yet"):
        client.start_sessions()
    with pytest.raises(RuntimeError, match="Set-Up-Response where no greeting yet"):
        client.set_up()
    with pytest.raises(RuntimeError, match="Accept-Session where the client may ask"):
        ready().machine.accept_session(1, SID)
    with pytest.raises(RuntimeError, match="records where the client may ask"):
        ready().machine.fetch_records([])


def test_a_refused_session_a_refused_start_and_a_refused_fetch_leave_the_client_free_to_ask():
    client, server = ControlClient(), ControlServer(1, {}, 0)
    list(client.receive(server.greeting()))
    list(server.receive(client.set_up()))
    list(client.receive(server.start()))
    list(server.receive(client.request_session(REQUEST)))
    (event,) = client.receive(server.refuse_session(Accept.PERMANENT_LIMIT))
    assert event == SessionAccepted(Accept.PERMANENT_LIMIT, 0, bytes(16))
    list(server.receive(client.start_sessions()))
    assert list(client.receive(server.start_ack(Accept.REFUSED))) == [SessionsStarted(1)]
    list(server.receive(client.fetch_session(SID, 3, 9)))
    (event,) = client.receive(server.refuse_fetch(Accept.REFUSED))
    assert event == FetchStarted(Accept.REFUSED, False, 0, 0)
    assert client.state is server.state is State.READY


def test_every_state_is_reached_and_left():
    reached = {following for messages in MESSAGES.values() for following in messages.values()}
    assert set(MESSAGES) == set(State)
    assert reached == set(State) - {State.NEW}
    assert [state for state, messages in MESSAGES.items() if not messages] == [State.OVER]


def test_each_answer_has_its_words():
    words = [accept_words(code) for code in range(7)]
    assert len(set(words)) == 7
    assert words[6] == "refused, with the unknown code 6"


def test_an_unknown_answer_is_a_refusal():
    client, server = ControlClient(), Answering()
    list(client.receive(server.machine.greeting()))
    client.set_up()
    (event,) = client.receive(bytes(15) + b"\x63" + bytes(32))
    assert event == ServerStarted(99, 0)
    assert client.state is State.OVER


@pytest.mark.parametrize("address", ["192.0.2.7", "2001:db8::7"])
@pytest.mark.parametrize("port", [0, 65535])
def test_a_request_keeps_addresses_of_both_families(address, port):
    request = REQUEST._replace(
        sender_address=address, receiver_address=address, sender_port=port, receiver_port=port,
        conf_sender=True, conf_receiver=False, sid=SID,
    )  # fmt: skip
    server = ready()
    head, slots = request.pack()
    server.hear(head + bytes(16) + slots + bytes(16))
    assert server.heard[-1] == SessionRequested(request)


def test_addresses_of_two_families_are_no_session():
    with pytest.raises(Problem, match="one address is of IPv4 and the other of IPv6"):
        REQUEST._replace(receiver_address="::1").pack()


def test_any_value_but_zero_asks_the_server_to_take_part():
    server = ready()
    server.hear(REQUEST_SESSION.pack(command=1, ip_version=4, conf_sender=200) + bytes(16))
    assert server.heard[-1].request.conf_sender is True


@pytest.mark.parametrize(
    ("changes", "accept"),
    [
        ({}, Accept.OK),
        ({"conf_sender": True}, Accept.UNSUPPORTED),
        ({"conf_receiver": False}, Accept.UNSUPPORTED),
        ({"type_p": 1 << 30}, Accept.UNSUPPORTED),
        ({"slots": (REQUEST.slots[0]._replace(slot_type=2),)}, Accept.UNSUPPORTED),
        ({"slots": ()}, Accept.REFUSED),
        ({"slots": (REQUEST.slots[0]._replace(parameter=0),)}, Accept.REFUSED),
        ({"packet_count": 0}, Accept.REFUSED),
    ],
)
def test_what_no_server_here_does_is_refused_with_the_reason(changes, accept):
    assert REQUEST._replace(**changes).refusal() is accept


def test_a_session_id_has_the_receivers_address_the_time_and_chance():
    assert make_sid("192.0.2.7", 5, b"abcd").hex() == "c0000207000000000000000561626364"
    assert make_sid("2001:db8::7", 5, b"abcd").hex() == "00000007000000000000000561626364"


def test_without_the_library_the_secure_modes_say_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers", None)
    client = ControlClient()
    list(client.receive(Answering().machine.greeting()))
    with pytest.raises(Problem) as caught:
        client.set_up("encrypted", "ann", USERS["ann"])
    assert caught.value.kind == "tool"
    assert "pip install 'benchctl[owamp]'" in caught.value.hint


def test_the_protocol_imports_nothing_but_the_standard_library():
    program = (
        "import sys; sys.path.append(sys.argv[1]); "
        "from benchctl_owamp.simpleowamp.protocol import control_client, control_server; "
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    plugins = Path(benchctl_owamp.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, str(plugins)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    loaded = set(done.stdout.split()) - {"__main__", "benchctl_owamp", "benchctl_standalone"}
    assert loaded <= sys.stdlib_module_names | set(sys.builtin_module_names)
    assert not loaded & {"dataclasses", "inspect", "pathlib", "socket", "selectors", "threading"}
