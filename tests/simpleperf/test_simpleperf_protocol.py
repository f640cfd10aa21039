"""The control protocol: its table of states, its messages, and what breaks it."""

import itertools
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simpleperf.simpleperf_harness import FEWER, REPEATABLE

from benchctl_simpleperf.simpleperf.protocol.conversation import (
    CLIENT,
    CONTROL_PREAMBLE,
    MAGIC,
    MESSAGE_LIMIT,
    MESSAGES,
    SERVER,
    TRANSITIONS,
    Conversation,
    LineReader,
    encode_message,
    read_preamble,
    stream_preamble,
)
from benchctl_simpleperf.simpleperf.protocol.settings import Limits, MeasurementSettings
from benchctl_standalone.errors import Problem

DOCUMENT = Path(__file__).parents[2] / "docs" / "simpleperf-protocol.md"
STATES = {state for state, _, _ in TRANSITIONS} | set(TRANSITIONS.values())

EXAMPLES = {
    "hello": {"version": 1, "agent": "test"},
    "challenge": {"nonce": "0" * 64},
    "proof": {"nonce": "1" * 64, "mac": "2" * 64},
    "welcome": {"version": 1, "agent": "test"},
    "test": {
        **MeasurementSettings()._asdict(),
        "directions": ["send"],
        "known_by": {"control": "127.0.0.1:4000", "ports": [4001]},
    },
    "accepted": {"token": "3" * 32, "known": True},
    "ready": {},
    "start": {},
    "stop": {},
    "samples": {"direction": "send", "fields": ["bytes_received"], "rows": [[0, 0, 0.0, 0.1, 7]]},
    "sent": {"direction": "send", "packets": [7], "omitted": [3], "duration_s": 1.0},
    "result": {
        "directions": {"send": {"duration_s": 1.0, "streams": [{"a": 1}], "effective": {"b": "c"}}},
        "cpu": {"process_ratio": 0.5, "host_ratio": None},
        "unavailable": {"udp_gro": "not here"},
    },
    "problem": {"kind": "busy", "message": "later", "hint": ""},
}


def conversations_in(state):
    """Return both ends of a conversation that has come to a state."""
    client, server = Conversation(CLIENT), Conversation(SERVER)
    client.state = server.state = state
    return {CLIENT: client, SERVER: server}


def other(end):
    return SERVER if end == CLIENT else CLIENT


def test_every_message_has_an_example_here():
    assert EXAMPLES.keys() == MESSAGES.keys()


@pytest.mark.parametrize(("state", "sender", "kind"), TRANSITIONS)
def test_a_message_of_the_table_moves_both_ends_alike(state, sender, kind):
    ends = conversations_in(state)
    data = ends[sender].send(kind, **EXAMPLES[kind])
    assert ends[other(sender)].receive(data) == [(kind, EXAMPLES[kind])]
    assert ends[CLIENT].state == ends[SERVER].state == TRANSITIONS[state, sender, kind]


@pytest.mark.parametrize("state", sorted(STATES))
@pytest.mark.parametrize("sender", [CLIENT, SERVER])
def test_every_other_message_is_a_violation_at_both_ends(state, sender):
    for kind in MESSAGES.keys() - {k for s, who, k in TRANSITIONS if (s, who) == (state, sender)}:
        ends = conversations_in(state)
        with pytest.raises(Problem):
            ends[sender].send(kind, **EXAMPLES[kind])
        with pytest.raises(Problem):
            ends[other(sender)].receive(encode_message({"type": kind, **EXAMPLES[kind]}))
        assert ends[CLIENT].state == ends[SERVER].state == state


def test_every_state_is_reached_and_all_but_the_last_are_left():
    reached, pending = {"connected"}, ["connected"]
    while pending:
        state = pending.pop()
        fresh = {to for (at, _, _), to in TRANSITIONS.items() if at == state} - reached
        reached |= fresh
        pending += fresh
    assert reached == STATES
    assert {
        s for s in STATES if all(to == s for (at, _, _), to in TRANSITIONS.items() if at == s)
    } == {"done"}


def test_the_document_has_the_same_table_as_the_code():
    rows = re.findall(
        r"^\| (\w+) \| (client|server) \| `(\w+)` \| (\w+) \|$", DOCUMENT.read_text(), re.M
    )
    assert {(state, sender, kind): to for state, sender, kind, to in rows} == dict(TRANSITIONS)


def test_the_document_explains_every_message():
    explained = re.findall(r"^\| `(\w+)` \| (.+) \|$", DOCUMENT.read_text(), re.M)
    assert {kind for kind, _ in explained} >= MESSAGES.keys()
    for kind, text in explained:
        if kind in MESSAGES:
            for member in MESSAGES[kind]:
                assert f"`{member}`" in text, f"{kind}: {member}"


def test_a_whole_conversation_is_the_same_however_it_is_cut():
    server = Conversation(SERVER)
    steps = [(CLIENT, "hello"), (SERVER, "welcome"), (CLIENT, "test"), (SERVER, "accepted"),
             (SERVER, "ready"), (CLIENT, "start"), (SERVER, "samples"), (SERVER, "sent"),
             (SERVER, "result")]  # fmt: skip
    client_says = Conversation(CLIENT)
    client_says.state = "connected"
    told = b""
    for sender, kind in steps:
        if sender == SERVER:
            told += server.send(kind, **EXAMPLES[kind])
        else:
            server.receive(encode_message({"type": kind, **EXAMPLES[kind]}))

    # The client's own words move it before the server's arrive.
    def hear(pieces):
        client = Conversation(CLIENT)
        heard = []
        replies = {"welcome": ["test"], "ready": ["start"]}
        client.send("hello", **EXAMPLES["hello"])
        for piece in pieces:
            for line in piece.splitlines(keepends=True):
                for kind, members in client.receive(line):
                    heard.append((kind, members))
                    for reply in replies.get(kind, []):
                        client.send(reply, **EXAMPLES[reply])
        return heard

    whole = hear([told])
    assert [kind for kind, _ in whole] == [kind for sender, kind in steps if sender == SERVER]
    assert hear([told[i : i + 1] for i in range(len(told))]) == whole


@REPEATABLE
@given(st.binary(max_size=300), st.sampled_from(sorted(STATES)), st.sampled_from([CLIENT, SERVER]))
def test_garbage_is_a_violation_and_nothing_else(data, state, role):
    conversation = conversations_in(state)[role]
    with pytest.raises(Problem) as raised:
        conversation.receive(data + b"\n")
    assert raised.value.kind == "peer"


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=10,
)


@FEWER
@given(st.sampled_from(sorted(TRANSITIONS)), st.data())
def test_a_message_with_any_member_replaced_is_taken_checked_or_refused(transition, data):
    state, sender, kind = transition
    message = {"type": kind, **EXAMPLES[kind]}
    if len(message) > 1:
        name = data.draw(st.sampled_from(sorted(EXAMPLES[kind])))
        message[name] = data.draw(json_values)
    try:
        [(heard, members)] = conversations_in(state)[other(sender)].receive(encode_message(message))
    except Problem:
        return
    assert heard == kind
    assert members.keys() == MESSAGES[kind].keys()


@FEWER
@given(st.data())
def test_settings_survive_the_wire_or_are_refused(data):
    members = dict(EXAMPLES["test"])
    for name in data.draw(st.sets(st.sampled_from(sorted(members)), max_size=3)):
        members[name] = data.draw(json_values)
    server = conversations_in("open")[SERVER]
    try:
        [(_, checked)] = server.receive(encode_message({"type": "test", **members}))
        del checked["known_by"]
        settings = MeasurementSettings.from_message(checked)
        Limits().check(settings)
    except Problem:
        return
    assert settings.streams >= 1
    assert (settings.duration_s is None) != (settings.total_bytes is None)
    next(settings.schedule().boundaries())


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 100_000,
        b'{"type":"hello","version":' + b"9" * 5000 + b',"agent":""}',
        b'{"type":"hello","version":NaN,"agent":""}',
        b'{"type":["hello"]}',
        b'{"type":"hello"}',
        b"\xff\xfe",
        b"null",
        b"",
    ],
)
def test_a_line_that_is_no_message_is_a_violation(line):
    with pytest.raises(Problem):
        Conversation(SERVER).receive(line + b"\n")


def test_a_message_that_does_not_end_is_cut_off_at_the_limit():
    reader = LineReader()
    for _ in range(4):
        assert reader.feed(b"x" * (MESSAGE_LIMIT // 4)) == []
    with pytest.raises(Problem, match="more than"):
        reader.feed(b"x")


def test_the_largest_result_fits_a_message():
    stream = {f"metric_number_{number}_of_a_stream": 123456.789012345 for number in range(12)}
    spread = dict.fromkeys(("min", "mean", "median", "p95", "p99", "max"), 1.2345678901234568e-05)
    side = {
        "duration_s": 1.0,
        "streams": [{**stream, "packet_gap_s": spread}] * 128,
        "effective": {},
    }
    message = {"directions": {"send": side, "receive": side}, "cpu": {}, "unavailable": {}}
    ends = conversations_in("running")
    data = ends[SERVER].send("result", **message)
    assert ends[CLIENT].receive(data) == [("result", message)]


def test_a_sender_of_an_older_version_leaves_out_what_it_does_not_know():
    [(_, members)] = conversations_in("running")[SERVER].receive(
        encode_message({"type": "sent", "direction": "send", "packets": [7]})
    )
    assert members == {"direction": "send", "packets": [7], "omitted": None, "duration_s": None}


# --- preambles -------------------------------------------------------------------------------


@REPEATABLE
@given(st.binary(min_size=1, max_size=100))
def test_what_is_no_preamble_is_a_plain_client(data):
    if not data.startswith(MAGIC[: len(data)]):
        preamble = read_preamble(data)
        assert (preamble.kind, preamble.rest) == ("plain", data)


@pytest.mark.parametrize("preamble", [CONTROL_PREAMBLE, stream_preamble("ab" * 16, "receive", 17)])
def test_a_preamble_is_known_by_its_last_byte_and_no_sooner(preamble):
    for length in range(1, len(preamble)):
        assert read_preamble(preamble[:length]) is None
    found = read_preamble(preamble + b"rest")
    assert found.rest == b"rest"
    if found.kind == "stream":
        assert (found.token, found.direction, found.stream) == ("ab" * 16, "receive", 17)


@pytest.mark.parametrize(
    "data",
    [
        MAGIC + b"control 2\n",
        MAGIC + b"stream abc sideways 0\n",
        MAGIC + b"stream abc send -1\n",
        MAGIC + b"stream abc send 123456\n",
        MAGIC + "stream abc send ²\n".encode(),
        MAGIC + b"x" * 100,
        MAGIC + b"\n",
    ],
)
def test_a_broken_preamble_is_a_violation(data):
    with pytest.raises(Problem):
        read_preamble(data)


def test_every_cut_of_the_magic_itself_waits_for_more():
    for length in itertools.takewhile(lambda n: n < len(MAGIC), itertools.count(1)):
        assert read_preamble(MAGIC[:length]) is None
        assert read_preamble(MAGIC[:length] + b"BYE").kind == "plain"
