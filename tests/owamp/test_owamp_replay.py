"""What the real owping and owampd sent is what the machines, the schedule and the ciphers say.

Captures of owping and owampd 5.2.3; `owamp_captures` says how they are replayed.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from owamp.owamp_captures import DATA, Capture, Replay
from owamp.owamp_conversation import REPEATABLE

from benchctl_owamp.simpleowamp.protocol.ciphers import TestCipher
from benchctl_owamp.simpleowamp.protocol.control import State
from benchctl_owamp.simpleowamp.protocol.layouts import TEST, TEST_SECURE
from benchctl_owamp.simpleowamp.protocol.messages import (
    OPEN,
    Accept,
    FetchedSession,
    FetchStarted,
    ServerStarted,
    SessionAccepted,
    SessionRequested,
    Stopped,
)
from benchctl_owamp.simpleowamp.protocol.records import PacketRecord, SkipRange
from benchctl_owamp.simpleowamp.protocol.schedule import EXPONENTIAL, FIXED, offsets
from benchctl_owamp.simpleowamp.protocol.timestamps import from_interval

CAPTURES = sorted(path.stem for path in DATA.glob("owping-*.json"))
SECURE = ("owping-authenticated", "owping-encrypted")
FULL = tuple(
    name for name in CAPTURES if name not in ("owping-too-much", "owping-wrong-passphrase")
)
MS = 1_000_000


@pytest.fixture(scope="module")
def replays():
    found = {}

    def of(name):
        if name not in found:
            found[name] = Replay(Capture(name))
        return found[name]

    return of


def heard(replay, end, kind):
    return [event for event in replay.heard[end] if isinstance(event, kind)]


def sessions_of(replay):
    """Yield the request and the answer of each session."""
    requests = heard(replay, "server", SessionRequested)
    answers = heard(replay, "client", SessionAccepted)
    for requested, answer in zip(requests, answers, strict=True):
        yield requested.request, answer


def packets_of(replay, request, answer):
    """Return the heads of a session's packets, opened, and how many octets each had."""
    if request.conf_receiver:
        ports = request.sender_port, answer.port
    else:
        ports = answer.port, request.receiver_port
    found = [payload for *where, payload in replay.capture.packets if tuple(where) == ports]
    mode = replay.capture.mode
    if mode == OPEN:
        heads = [TEST.unpack(packet) for packet in found]
    else:
        cipher = TestCipher(mode, replay.client.keys, answer.sid)
        heads = [TEST_SECURE.unpack(cipher.open(packet)) for packet in found]
    return heads, list(map(len, found))


@pytest.mark.parametrize("name", CAPTURES)
def test_the_machines_use_the_octets_of_the_real_programs(replays, name):
    replay = replays(name)
    assert replay.said == replay.capture.sent
    over = name == "owping-wrong-passphrase"
    assert replay.client.state is replay.server.state is (State.OVER if over else State.READY)
    assert replay.client.at_rest
    assert replay.server.at_rest


@pytest.mark.parametrize("name", CAPTURES)
@settings(REPEATABLE, max_examples=10)
@given(places=st.lists(st.integers(0, 2000), max_size=20))
def test_however_a_capture_is_cut_it_means_the_same(replays, name, places):
    again = Replay(Capture(name), places)
    assert again.heard == replays(name).heard
    assert again.said == again.capture.sent


@pytest.mark.parametrize("name", FULL)
def test_every_test_packet_opens_and_leaves_when_it_is_due(replays, name):
    """The sender was held up in one capture only; elsewhere a busy machine made it a bit late."""
    replay = replays(name)
    for request, answer in sessions_of(replay):
        heads, sizes = packets_of(replay, request, answer)
        sid = answer.sid if request.conf_receiver else request.sid
        due = list(offsets(sid, request.slots, request.packet_count))
        late_ns = [
            from_interval(head["time"] - request.start_time - due[head["seq"]]) for head in heads
        ]
        assert heads
        assert all(0 <= late < 100 * MS for late in late_ns)
        assert sum(late < 5 * MS for late in late_ns) > len(heads) / 2
        least = TEST.size if replay.capture.mode == OPEN else TEST_SECURE.size
        assert set(sizes) == {least + request.padding_bytes}


@pytest.mark.parametrize("name", FULL)
def test_what_was_fetched_are_the_packets_that_were_captured(replays, name):
    replay = replays(name)
    (fetched,) = heard(replay, "client", FetchedSession)
    (session,) = (one for one in sessions_of(replay) if one[0].conf_receiver)
    request, answer = session
    assert fetched.request == request._replace(
        sid=answer.sid, sender_port=fetched.request.sender_port, receiver_port=answer.port
    )
    heads, _ = packets_of(replay, *session)
    sent = {head["seq"]: (head["time"], head["error"]) for head in heads}
    records = heard(replay, "client", PacketRecord)
    received = [record for record in records if not record.lost]
    assert all(sent[record.seq] == (record.send_time, record.send_error) for record in received)
    assert all(0 < record.receive_time - record.send_time < 1 << 32 for record in received)
    (ack,) = heard(replay, "client", FetchStarted)
    assert len(records) == ack.record_count


def test_a_request_means_what_owping_was_asked_for(replays):
    """It ran with ``-c 9 -i 0.01e,0.02f,0.03f -s 20 -D 46 -L 0.3``."""
    for request, _ in sessions_of(replays("owping-slots")):
        assert (request.packet_count, request.padding_bytes, request.dscp) == (9, 20, 46)
        assert [slot.slot_type for slot in request.slots] == [EXPONENTIAL, FIXED, FIXED]
        intervals_ns = [from_interval(slot.parameter) for slot in request.slots]
        assert intervals_ns == pytest.approx([10 * MS, 20 * MS, 30 * MS], abs=1)
        assert from_interval(request.timeout) == pytest.approx(300 * MS, abs=1)
        assert request.refusal() is Accept.OK
    for request, _ in sessions_of(replays("owping-ipv6")):
        assert (request.sender_address, request.receiver_address) == ("::1", "::1")


def test_a_lost_packet_was_due_when_owampd_says_to_the_last_bit(replays):
    replay = replays("owping-skips")
    (fetched,) = heard(replay, "client", FetchedSession)
    request = fetched.request
    due = list(offsets(request.sid, request.slots, request.packet_count))
    lost = [record for record in heard(replay, "client", PacketRecord) if record.lost]
    assert [record.send_time - request.start_time for record in lost] == [
        due[record.seq] for record in lost
    ]
    # owampd has a record of each packet that was skipped, as if it were lost.
    assert fetched.skips == (SkipRange(8, 18), SkipRange(31, 41))
    assert [record.seq for record in lost] == [*range(8, 19), *range(31, 42)]


def test_the_sender_says_what_it_skipped_and_where_it_stopped(replays):
    (stopped,) = heard(replays("owping-skips"), "server", Stopped)
    (session,) = stopped.sessions
    assert (session.next_seq, session.skips) == (60, (SkipRange(8, 18), SkipRange(31, 41)))
    (stopped,) = heard(replays("owping-interrupted"), "server", Stopped)
    assert stopped.sessions[0].next_seq < 100


def test_the_real_server_refuses_in_the_rfcs_words(replays):
    (answer,) = heard(replays("owping-too-much"), "client", SessionAccepted)
    assert answer.accept is Accept.REFUSED
    (answer,) = heard(replays("owping-wrong-passphrase"), "client", ServerStarted)
    assert answer == ServerStarted(Accept.REFUSED, 0)


@pytest.mark.parametrize("name", SECURE)
def test_a_sealed_packet_has_the_octets_of_the_real_one(replays, name):
    replay = replays(name)
    for request, answer in sessions_of(replay):
        heads, _ = packets_of(replay, request, answer)
        cipher = TestCipher(replay.capture.mode, replay.client.keys, answer.sid)
        sealed = {cipher.seal(TEST_SECURE.pack(**head)) for head in heads}
        assert len(sealed) == len(heads) == 8
        assert sealed <= {payload[: TEST_SECURE.size] for *_, payload in replay.capture.packets}


@pytest.mark.parametrize("name", SECURE)
def test_a_packet_that_was_altered_cut_or_is_of_another_session_does_not_open(replays, name):
    replay = replays(name)
    (_, first), (_, second) = sessions_of(replay)
    mode, keys = replay.capture.mode, replay.client.keys
    packet = replay.capture.packets[0][-1]
    cipher, other = TestCipher(mode, keys, first.sid), TestCipher(mode, keys, second.sid)
    if cipher.open(packet) is None:
        cipher, other = other, cipher
    assert cipher.open(packet) is not None
    assert other.open(packet) is None
    assert cipher.open(packet[: TEST_SECURE.size - 1]) is None
    protected = 16 if name == "owping-authenticated" else 32
    for place in (*range(protected), *range(32, 48)):
        altered = bytearray(packet)
        altered[place] ^= 1
        assert cipher.open(bytes(altered)) is None, place
