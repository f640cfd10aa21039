"""Captured exchanges of the real tools, replayed through both state machines.

Each machine hears what the real program of the other end sent, and says again what it heard from
that program's end. If both are right, they use the octets of the real programs.
"""

import json
from pathlib import Path

from owamp.owamp_conversation import cut

from benchctl_owamp.simpleowamp.protocol.ciphers import derive_key, open_token
from benchctl_owamp.simpleowamp.protocol.control_client import ControlClient
from benchctl_owamp.simpleowamp.protocol.control_server import ControlServer
from benchctl_owamp.simpleowamp.protocol.layouts import GREETING, SET_UP_RESPONSE
from benchctl_owamp.simpleowamp.protocol.messages import (
    MODES,
    OPEN,
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
)
from benchctl_owamp.simpleowamp.protocol.records import PacketRecord

DATA = Path(__file__).parent / "data"
NAMES = {bit: name for name, bit in MODES.items()}
SERVER_USERS = {"ann": b"correct horse"}


class Capture:
    """The octets of a control connection in the order they passed, and the test packets.

    A packet is its UDP source and destination port and its payload.
    """

    def __init__(self, name):
        recorded = json.loads((DATA / f"{name}.json").read_text())
        self.chunks = [(who, bytes.fromhex(octets)) for who, octets in recorded["control"]]
        self.packets = [(*ports, bytes.fromhex(octets)) for *ports, octets in recorded["packets"]]
        self.passphrase = recorded["passphrases"]["ann"].encode()
        self.sent = {
            end: b"".join(octets for who, octets in self.chunks if who == end)
            for end in ("client", "server")
        }
        self.greeting = GREETING.unpack(self.sent["server"])
        self.choice = SET_UP_RESPONSE.unpack(self.sent["client"])
        self.mode = self.choice["mode"]

    def client_random(self):
        """Return what the client drew: the session keys, and its initialization vector."""
        if self.mode == OPEN:
            return []
        greeting, choice = self.greeting, self.choice
        key = derive_key(self.passphrase, greeting["salt"], greeting["count"])
        keys = open_token(key, greeting["challenge"], choice["token"])
        return [keys.aes, keys.hmac, choice["client_iv"]]

    def server_random(self):
        """Return what the server drew."""
        server_iv = self.sent["server"][GREETING.size + 16 : GREETING.size + 32]
        return [self.greeting["challenge"], self.greeting["salt"], server_iv]


class Replay:
    """A capture in which the machines take the place of the programs."""

    def __init__(self, capture, places=()):
        self.capture = capture
        client, server = iter(capture.client_random()), iter(capture.server_random())
        greeting = capture.greeting
        self.client = ControlClient(lambda count: next(client))
        self.server = ControlServer(
            greeting["modes"], SERVER_USERS, 0, lambda count: next(server), greeting["count"]
        )
        self.said = {"client": b"", "server": self.server.greeting()}
        self.heard = {"client": [], "server": []}
        for who, octets in capture.chunks:
            hearer, machine, says = {
                "client": ("server", self.server, self._client_says),
                "server": ("client", self.client, self._server_says),
            }[who]
            for piece in cut(octets, places):
                for event in machine.receive(piece):
                    self.heard[hearer].append(event)
                    self.said[who] += says(event)

    def _client_says(self, event):
        """Say again what the server heard."""
        match event:
            case SetUp(mode=mode, user=user):
                return self.client.set_up(NAMES[mode], user, self.capture.passphrase)
            case SessionRequested(request=request):
                return self.client.request_session(request)
            case StartRequested():
                return self.client.start_sessions()
            case Stopped(accept=accept, sessions=sessions):
                return self.client.stop_sessions(sessions, accept)
            case FetchRequested(sid=sid, begin_seq=begin_seq, end_seq=end_seq):
                return self.client.fetch_session(sid, begin_seq, end_seq)
        raise AssertionError(event)

    def _server_says(self, event):
        """Say again what the client heard."""
        match event:
            case Greeting() | FetchStarted(accept=0):
                return b""
            case ServerStarted(accept=accept, start_time=start_time):
                self.server._start_time = start_time
                return self.server.start(accept)
            case SessionAccepted(accept=0, port=port, sid=sid):
                return self.server.accept_session(port, sid)
            case SessionAccepted(accept=accept):
                return self.server.refuse_session(accept)
            case SessionsStarted(accept=accept):
                return self.server.start_ack(accept)
            case Stopped(accept=accept, sessions=sessions):
                return self.server.stop_sessions(sessions, accept)
            case FetchStarted(accept=accept):
                return self.server.refuse_fetch(accept)
            case FetchedSession(request=request, skips=skips):
                ack = self.heard["client"][-2]
                return self.server.fetch_head(
                    request, ack.record_count, finished=ack.finished, next_seq=ack.next_seq,
                    skips=skips,
                )  # fmt: skip
            case PacketRecord():
                return self.server.fetch_records([event])
            case FetchEnded():
                return self.server.fetch_end()
        raise AssertionError(event)
