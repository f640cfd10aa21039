"""What twping and twampd said to each other on loopback: our ends say the same, octet by octet."""

import json
from collections import deque
from pathlib import Path

import pytest
from owamp.two_way_parts import SOURCE, HandClock, State, reflector_of

from benchctl_owamp.simpleowamp.measuring.receiving import Receiving
from benchctl_owamp.simpleowamp.measuring.round_trip import LostWays, RoundTrip
from benchctl_owamp.simpleowamp.protocol.ciphers import derive_key, open_token
from benchctl_owamp.simpleowamp.protocol.layouts import GREETING, SERVER_START, SET_UP_RESPONSE
from benchctl_owamp.simpleowamp.protocol.messages import (
    MODES,
    Greeting,
    ServerStarted,
    SessionAccepted,
    SessionRequested,
    SessionsStarted,
    SetUp,
    StartRequested,
    Stopped,
)
from benchctl_owamp.simpleowamp.protocol.schedule import FIXED, Slot
from benchctl_owamp.simpleowamp.protocol.timestamps import (
    UNITS_PER_S,
    ErrorEstimate,
    from_timestamp,
    to_timestamp,
)
from benchctl_owamp.simpleowamp.protocol.twamp import TwampClient, TwampServer
from benchctl_owamp.simpleowamp.protocol.two_way import twamp_format

DATA = Path(__file__).with_name("data")
USER = "alice"
# Units of 2^-32 s to nanoseconds and back.
ROUNDING = 3


class Recording:
    """One exchange: the octets of each message and packet, and what twping printed of them."""

    def __init__(self, mode):
        if mode != "open":
            pytest.importorskip(
                "cryptography", reason="needs cryptography: pip install cryptography"
            )
        recorded = json.loads((DATA / f"twamp-{mode}.json").read_text())
        packets = [(who, kind, bytes.fromhex(text)) for who, kind, text in recorded["packets"]]
        self.mode = mode
        self.passphrase = bytes.fromhex(recorded["passphrase"])
        self.control = [(who, octets) for who, kind, octets in packets if kind == "tcp"]
        self.probes = [octets for who, kind, octets in packets if (who, kind) == ("client", "udp")]
        self.answers = [octets for who, kind, octets in packets if (who, kind) == ("server", "udp")]
        self.printed = [list(map(float, line.split())) for line in recorded["printed"]]
        self.times = [
            [int(line.split()[at]) for at in (1, 4, 9, 12)] for line in recorded["printed"]
        ]
        (_, greeting), (_, set_up), (_, start), *_ = self.control
        self.greeting = GREETING.unpack(greeting)
        self.set_up = SET_UP_RESPONSE.unpack(set_up)
        self.server_iv = SERVER_START.unpack(start)["server_iv"]
        self.keys = None
        if mode != "open":  # They chose them at random, and only the token has them.
            key = derive_key(self.passphrase, self.greeting["salt"], self.greeting["count"])
            self.keys = open_token(key, self.greeting["challenge"], self.set_up["token"])


@pytest.fixture(params=MODES, scope="module")
def recording(request):
    return Recording(request.param)


def drawn(*values):
    """Return a source of random octets that draws these."""
    left = deque(values)
    return lambda count: left.popleft()[:count]


class Replay:
    """Both our ends hear the other one of the recording; ``said`` is what they say themselves."""

    def __init__(self, recording):
        self.recording = recording
        greeting, keys = recording.greeting, recording.keys
        random = drawn(greeting["challenge"], greeting["salt"], recording.server_iv)
        passphrases = {USER: recording.passphrase}
        modes, count = greeting["modes"], greeting["count"]
        self.server = TwampServer(modes, passphrases, 0, random, count)
        random = drawn(keys.aes, keys.hmac, recording.set_up["client_iv"]) if keys else drawn()
        self.client = TwampClient(random)
        self.events = {"client": [], "server": []}
        self.said = []
        for who, octets in recording.control:
            if who == "server":
                [event] = self.client.receive(octets)
                self.said.append(self.server_says(event))
            else:
                [event] = self.server.receive(octets)
                self.said.append(self.client_says(event))
            self.events[who].append(event)

    def client_says(self, event):
        client = self.client
        if isinstance(event, SetUp):
            user = USER if self.recording.keys else ""
            return client.set_up(self.recording.mode, user, self.recording.passphrase)
        if isinstance(event, SessionRequested):
            return client.request_two_way(event.request)
        if isinstance(event, StartRequested):
            return client.start_sessions()
        return client.stop_two_way(1)

    def server_says(self, event):
        if isinstance(event, Greeting):
            return self.server.greeting()
        if isinstance(event, ServerStarted):
            self.server._start_time = event.start_time
            return self.server.start()
        if isinstance(event, SessionAccepted):
            return self.server.accept_session(event.port, event.sid)
        return self.server.start_ack()


@pytest.fixture(scope="module")
def replay(recording):
    return Replay(recording)


def test_our_server_understands_twping(recording, replay):
    events = replay.events["client"]
    assert [type(event) for event in events] == [SetUp, SessionRequested, StartRequested, Stopped]
    request = events[1].request
    # Its packets are just long enough for the answers.
    assert request.padding_bytes == form_of(recording, replay).padding_bytes(0)
    assert request.timeout == UNITS_PER_S // 2
    assert (request.sender_address, request.receiver_address) == ("127.0.0.1", "127.0.0.1")
    assert not request.refusal()


def test_our_client_understands_twampd(replay):
    expected = [Greeting, ServerStarted, SessionAccepted, SessionsStarted]
    assert [type(event) for event in replay.events["server"]] == expected
    assert not any(event.accept for event in replay.events["server"][1:])


def test_our_ends_say_what_theirs_did(replay):
    assert replay.said == [octets for _, octets in replay.recording.control]


def form_of(recording, replay):
    mode = MODES[recording.mode]
    return twamp_format(mode, recording.keys, replay.events["server"][2].sid)


def test_our_figures_of_their_packets_are_those_that_twping_printed(recording, replay):
    first = recording.times[0][0]
    session = Receiving(bytes(16), [Slot(FIXED, 1)], 5, first, 10 * UNITS_PER_S)
    trip = RoundTrip(form_of(recording, replay), session, counts=True)
    for answer, times, printed in zip(
        recording.answers, recording.times, recording.printed, strict=True
    ):
        back = trip.receive(answer, from_timestamp(times[3]), 255)
        ours = back.sent_ns, back.reflector_received_ns, back.reflector_sent_ns, back.received_ns
        assert ours == tuple(map(from_timestamp, times))
        assert (back.seq, back.reflector_seq, back.reflector_ttl) == tuple(
            printed[at] for at in (0, 8, 7)
        )
        assert back.sent_error == ErrorEstimate(bool(printed[2]), 2.0**-32)
        assert back.rtt_ns == back.send_ns + back.receive_ns
    assert trip.lost_ways([]) == LostWays(0, 0)


def test_our_reflector_answers_their_probes_as_twampd_did(recording, replay):
    clock = HandClock()
    clock.state = lambda: State(False, 2.0**-32)
    form = form_of(recording, replay)
    reflector = reflector_of(form, clock)
    for probe, theirs, times in zip(
        recording.probes, recording.answers, recording.times, strict=True
    ):
        clock.ns = from_timestamp(times[2])
        answer = reflector.answer(probe, SOURCE, from_timestamp(times[1]), 255)
        assert len(answer) == len(theirs)
        ours, others = form.read_answer(answer), form.read_answer(theirs)
        for name in ("time", "received_time"):  # Ours are in nanoseconds.
            assert abs(ours.pop(name) - others.pop(name)) <= ROUNDING
        ours.pop("hmac", None), others.pop("hmac", None)
        assert ours == others
        assert to_timestamp(from_timestamp(times[0])) - times[0] <= ROUNDING
