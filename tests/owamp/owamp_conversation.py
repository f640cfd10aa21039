"""A whole control conversation between both state machines, and what each sent and heard."""

from itertools import cycle, pairwise

from hypothesis import settings

from benchctl_owamp.simpleowamp.protocol.control_client import ControlClient
from benchctl_owamp.simpleowamp.protocol.control_server import ControlServer
from benchctl_owamp.simpleowamp.protocol.messages import (
    FetchRequested,
    SessionRequest,
    SessionRequested,
    SetUp,
    StartRequested,
    Stopped,
    StoppedSession,
    type_p_of,
)
from benchctl_owamp.simpleowamp.protocol.records import PacketRecord, SkipRange
from benchctl_owamp.simpleowamp.protocol.schedule import EXPONENTIAL, FIXED, Slot

# The same examples on every run, and no matter how busy the machine is.
REPEATABLE = settings(derandomize=True, deadline=None)

SID = bytes(range(16))
SECOND = 1 << 32
MODES = 7
USERS = {"ann": b"correct horse"}
REQUEST = SessionRequest(
    conf_sender=False,
    conf_receiver=True,
    packet_count=100,
    slots=(Slot(EXPONENTIAL, SECOND // 10), Slot(FIXED, SECOND // 4)),
    sender_address="192.0.2.1",
    sender_port=5000,
    receiver_address="192.0.2.2",
    receiver_port=6000,
    start_time=3_900_000_000 * SECOND,
    timeout=2 * SECOND,
    padding_bytes=10,
    type_p=type_p_of(46),
)
SKIPS = (SkipRange(1, 2), SkipRange(7, 9), SkipRange(20, 20))
RECORDS = tuple(PacketRecord(seq, 1, 2, 100 + seq, 200 + seq, 254) for seq in range(37))


def counting():
    """Return a source of octets that are the same on every run."""
    octets = cycle(range(256))
    return lambda count: bytes(next(octets) for _ in range(count))


def cut(octets, places):
    """Return octets, cut at some places."""
    ends = [0, *sorted(place % (len(octets) + 1) for place in places), len(octets)]
    return [octets[a:b] for a, b in pairwise(ends)]


class Answering:
    """A server that takes everything, and remembers what it heard."""

    def __init__(self, random=None):
        self.machine = ControlServer(MODES, USERS, 5 * SECOND, random or counting())
        self.heard = []

    def hear(self, data):
        """Take the client's octets; returns the answers' octets."""
        answers = b""
        for event in self.machine.receive(data):
            self.heard.append(event)
            answers += self.answer(event)
        return answers

    def answer(self, event):
        machine = self.machine
        if isinstance(event, SetUp):
            return machine.start()
        if isinstance(event, SessionRequested):
            return machine.accept_session(9000, SID)
        if isinstance(event, StartRequested):
            return machine.start_ack()
        if isinstance(event, Stopped):
            return machine.stop_sessions([StoppedSession(SID, 40, SKIPS)])
        assert isinstance(event, FetchRequested)
        head = machine.fetch_head(REQUEST, len(RECORDS), finished=True, next_seq=40, skips=SKIPS)
        records = machine.fetch_records(RECORDS[:5]) + machine.fetch_records(RECORDS[5:])
        return head + records + machine.fetch_end()


def said(client, mode):
    """Yield what a client says in the order of a measurement; each when it is its turn."""
    yield lambda: client.set_up(mode, "ann", USERS["ann"])
    yield lambda: client.request_session(REQUEST)
    yield lambda: client.request_session(REQUEST)
    yield client.start_sessions
    yield lambda: client.stop_sessions([StoppedSession(SID, 40, SKIPS)])
    yield lambda: client.fetch_session(SID)


def conversation(mode):
    """Run a measurement; returns what the client and the server sent, and the events of each."""
    client, server = ControlClient(counting()), Answering()
    from_client, from_server = b"", server.machine.greeting()
    events = list(client.receive(from_server))
    for say in said(client, mode):
        message = say()
        answer = server.hear(message)
        events += client.receive(answer)
        from_client += message
        from_server += answer
    return from_client, from_server, events, server.heard
