"""Clients and servers of simpleowamp measure with each other, and keep to the server's limits."""

import select
import socket
import time

import pytest
from owamp.owamp_harness import (
    MILLISECOND,
    Notes,
    running_server,
    without_delay,
)
from waiting import DEADLINE_S, wait_until

from benchctl_owamp.simpleowamp.measuring.clock import SECOND_NS, Clock
from benchctl_owamp.simpleowamp.measuring.endpoint import open_endpoint
from benchctl_owamp.simpleowamp.measuring.quota import Limits
from benchctl_owamp.simpleowamp.program.client import Client
from benchctl_owamp.simpleowamp.program.control_peer import ControlPeer
from benchctl_owamp.simpleowamp.program.sessions import Outgoing
from benchctl_owamp.simpleowamp.protocol.control_client import ControlClient
from benchctl_owamp.simpleowamp.protocol.messages import (
    Accept,
    FetchedSession,
    FetchEnded,
    FetchStarted,
    Greeting,
    ServerStarted,
    SessionAccepted,
    SessionRequest,
    SessionsStarted,
    Stopped,
    StoppedSession,
)
from benchctl_owamp.simpleowamp.protocol.packets import owamp_format
from benchctl_owamp.simpleowamp.protocol.records import PacketRecord, SkipRange
from benchctl_owamp.simpleowamp.protocol.schedule import FIXED, Slot
from benchctl_owamp.simpleowamp.protocol.timestamps import to_interval, to_timestamp
from benchctl_standalone.addresses import parse_network
from benchctl_standalone.errors import Problem
from benchctl_standalone.waker import Waker

USERS = {"ann": b"correct horse"}
PATIENCE = to_interval(round(DEADLINE_S * SECOND_NS))


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    without_delay(monkeypatch)


@pytest.mark.parametrize("host", ["127.0.0.1", pytest.param("::1", marks=pytest.mark.ipv6)])
@pytest.mark.parametrize("directions", [("send",), ("receive",), ("send", "receive")])
def test_every_packet_of_every_direction_is_reported(host, directions):
    with running_server(host) as server:
        notes = server.measure(directions=directions)
        for name in directions:
            assert sorted(notes.numbers(name)) == [0, 1, 2, 3, 4]
            assert {packet.ttl for packet in notes.packets[name]} == {255}
            assert all(packet.received_ns > packet.sent_ns for packet in notes.packets[name])
            direction = notes.directions[name]
            assert (direction.sent, direction.lost, direction.skipped) == (5, 0, 0)
        assert sorted(notes.over) == sorted(directions)
        server.idle()


def test_what_the_server_received_is_when_it_received_it_and_what_was_sent_when_it_was_sent():
    # A packet takes as long as it takes, but no less than nothing.
    with running_server(clock=Clock(offset_s=10.0)) as server:
        notes = server.measure()
        for packet in notes.packets["send"]:
            assert packet.received_ns - packet.sent_ns >= 10 * SECOND_NS
        for packet in notes.packets["receive"]:
            assert -10 * SECOND_NS <= packet.received_ns - packet.sent_ns < 0


def test_padding_and_dscp_are_taken():
    with running_server() as server:
        notes = server.measure(padding_bytes=100, dscp=46)
        assert len(notes.numbers("send")) == len(notes.numbers("receive")) == 5


@pytest.mark.parametrize("mode", ["authenticated", "encrypted"])
def test_the_protected_modes_measure_the_same(mode):
    pytest.importorskip("cryptography", reason="needs cryptography: pip install benchctl[owamp]")
    with running_server(users=USERS, open_mode=False) as server:
        notes = server.measure(mode=mode, user="ann", passphrase=b"correct horse")
        assert sorted(notes.numbers("send")) == sorted(notes.numbers("receive")) == [0, 1, 2, 3, 4]
        with pytest.raises(Problem) as raised:
            server.measure(mode=mode, user="ann", passphrase=b"wrong")
        assert raised.value.kind == "refused"
        with pytest.raises(Problem, match="does not offer the mode open"):
            server.measure()
        server.idle()


def test_several_clients_measure_at_the_same_time():
    with running_server() as server:
        held = [Asking(server) for _ in range(3)]
        for asking in held:
            assert asking.ask_to_send().accept == Accept.OK
        assert server.measure().over
        for asking in held:
            asking.close()
        server.idle()


class Asking:
    """A client that asks what a test wants, and nothing by itself."""

    def __init__(self, server, source=None):
        self.sock = server.connect(source)
        self.talk = ControlClient()
        self.heard = []
        self.udp = open_endpoint((self.sock.getsockname()[0], 0))
        self.hear(Greeting)
        self.say(self.talk.set_up())
        self.accept = self.hear(ServerStarted).accept

    def say(self, data):
        self.sock.sendall(data)

    def hear(self, kind):
        while not self.heard:
            data = self.sock.recv(65536)
            assert data, "the server closed the connection"
            self.heard += self.talk.receive(data)
        event = self.heard.pop(0)
        assert isinstance(event, kind), event
        return event

    def request(self, **changed):
        here, there = self.sock.getsockname()[0], self.sock.getpeername()[0]
        asked = SessionRequest(
            conf_sender=False,
            conf_receiver=True,
            packet_count=10,
            slots=(MILLISECOND,),
            sender_address=here,
            sender_port=self.udp.getsockname()[1],
            receiver_address=there,
            receiver_port=0,
            start_time=to_timestamp(time.time_ns()),
            timeout=PATIENCE,
        )._replace(**changed)
        self.say(self.talk.request_session(asked))
        return self.hear(SessionAccepted)

    def ask_to_send(self, **changed):
        return self.request(**changed)

    def ask_to_receive(self, **changed):
        here, there = self.sock.getsockname()[0], self.sock.getpeername()[0]
        port = self.udp.getsockname()[1]
        return self.request(
            **{
                "conf_sender": True,
                "conf_receiver": False,
                "sender_address": there,
                "sender_port": 0,
                "receiver_address": here,
                "receiver_port": port,
                "sid": b"127.0.0.1" + bytes(7),
                **changed,
            }
        )

    def start(self):
        self.say(self.talk.start_sessions())
        assert self.hear(SessionsStarted).accept == Accept.OK

    def send_packet(self, answer, seq):
        form = owamp_format()
        address = (self.sock.getpeername()[0], answer.port)
        self.udp.sendto(form.write(seq, time.time_ns(), 0x8001), address)

    def stop(self, *sent):
        self.say(self.talk.stop_sessions(sent))
        return self.hear(Stopped)

    def fetch(self, sid, first=0, last=0xFFFFFFFF):
        self.say(self.talk.fetch_session(sid, first, last))
        started = self.hear(FetchStarted)
        if started.accept:
            return started, None, []
        session = self.hear(FetchedSession)
        records = [self.hear(PacketRecord) for _ in range(started.record_count)]
        self.hear(FetchEnded)
        return started, session, records

    def close(self):
        self.sock.close()
        self.udp.close()


@pytest.fixture
def server():
    with running_server() as running:
        yield running
        running.idle()


@pytest.fixture
def asking(server):
    client = Asking(server)
    yield client
    client.close()


def test_a_session_that_is_cut_short_counts_only_what_could_not_be_on_its_way_any_more(asking):
    long_ago = to_timestamp(time.time_ns() - 100 * SECOND_NS)
    slots = (MILLISECOND, Slot(FIXED, to_interval(100 * SECOND_NS)))
    asked = {"start_time": long_ago, "timeout": PATIENCE, "slots": slots, "packet_count": 4}
    answer = asking.ask_to_send(**asked)
    asking.start()
    asking.stop(StoppedSession(answer.sid, 2))
    started, _, records = asking.fetch(answer.sid)
    # The first was due 100 s ago, which is longer than it may take, and the second now.
    assert (started.next_seq, [(r.seq, r.lost) for r in records]) == (1, [(0, True)])


def test_a_session_that_ends_in_order_has_a_record_of_every_packet_and_of_the_lost(asking):
    answer = asking.ask_to_send()
    asking.start()
    for seq in (0, 2, 1, 1, 9, 6):
        asking.send_packet(answer, seq)
    asking.stop(StoppedSession(answer.sid, 10, (SkipRange(4, 5),)))
    started, session, records = asking.fetch(answer.sid)
    assert (started.finished, started.next_seq) == (True, 10)
    assert session.skips == (SkipRange(4, 5),)
    assert session.request.receiver_port == answer.port
    assert [record.seq for record in records if not record.lost] == [0, 2, 1, 1, 9, 6]
    assert [record.seq for record in records if record.lost] == [3, 7, 8]
    assert asking.fetch(answer.sid, 6, 8)[2] == [r for r in records if 6 <= r.seq <= 8]


def test_packets_from_elsewhere_and_garbage_are_not_counted(asking):
    answer = asking.ask_to_send()
    asking.start()
    address = (asking.sock.getpeername()[0], answer.port)
    with open_endpoint(("127.0.0.1", 0)) as other:
        other.sendto(owamp_format().write(3, time.time_ns(), 0x8001), address)
    asking.udp.sendto(b"short", address)
    asking.udp.sendto(owamp_format().write(4, time.time_ns(), 0), address)  # No error estimate.
    asking.udp.sendto(owamp_format().write(99, time.time_ns(), 1), address)
    asking.send_packet(answer, 7)
    asking.stop(StoppedSession(answer.sid, 10))
    _, _, records = asking.fetch(answer.sid)
    assert [record.seq for record in records if not record.lost] == [7]


@pytest.mark.parametrize("way", ["ask_to_send", "ask_to_receive"])
def test_no_session_is_with_a_third(asking, way):
    field = "sender_address" if way == "ask_to_send" else "receiver_address"
    assert getattr(asking, way)(**{field: "127.0.0.9"}).accept == Accept.REFUSED


def test_a_session_of_both_ends_of_the_server_is_refused(asking):
    asked = asking.request(conf_sender=True, conf_receiver=True)
    assert asked.accept == Accept.UNSUPPORTED


def test_a_session_id_is_used_once(asking):
    assert asking.ask_to_receive().accept == Accept.OK
    assert asking.ask_to_receive().accept == Accept.REFUSED


@pytest.mark.parametrize("field", ["start_time", "timeout"])
def test_nobody_holds_a_session_for_longer_than_the_limit_by_its_start_or_timeout(asking, field):
    day = to_interval(86400 * SECOND_NS)
    value = day if field == "timeout" else to_timestamp(time.time_ns()) + day
    assert asking.ask_to_send(**{field: value}).accept == Accept.PERMANENT_LIMIT


def test_limits_are_refused_by_their_kind():
    limits = Limits(client_sessions=1, client_packets=1000)
    with running_server(limits=limits) as server:
        one, other = Asking(server), Asking(server)
        assert one.ask_to_send(packet_count=1001).accept == Accept.PERMANENT_LIMIT
        assert one.ask_to_send().accept == Accept.OK
        assert other.ask_to_send().accept == Accept.TEMPORARY_LIMIT
        one.close()
        wait_until(lambda: not server.server.sessions.running)
        assert other.ask_to_send().accept == Accept.OK
        other.close()
        server.idle()


def test_what_a_client_kept_makes_room_for_what_it_measures_next():
    with running_server(limits=Limits(client_packets=12)) as server:
        sids = [server.measure(directions=("send",)).directions["send"].request.sid
                for _ in range(3)]  # fmt: skip
        shelf = server.server.sessions.shelf
        assert [sid in shelf for sid in sids] == [False, True, True]


def test_nobody_else_gets_the_records_of_a_client(asking, server):
    answer = asking.ask_to_send()
    asking.start()
    asking.stop(StoppedSession(answer.sid, 0))
    stranger = Asking(server, "127.0.0.2")
    assert stranger.fetch(answer.sid)[0].accept == Accept.REFUSED
    stranger.close()
    friend = Asking(server)
    assert friend.fetch(answer.sid)[0].accept == Accept.OK
    friend.close()


def test_records_are_dropped_when_they_are_old(monkeypatch):
    monkeypatch.setattr("benchctl_owamp.simpleowamp.program.server._TIDY_S", 0.0)
    with running_server(limits=Limits(keep_s=0.0)) as server:
        asking = Asking(server)
        answer = asking.ask_to_send()
        asking.start()
        asking.stop(StoppedSession(answer.sid, 0))
        wait_until(lambda: not len(server.server.sessions.shelf))
        assert asking.fetch(answer.sid)[0].accept == Accept.REFUSED
        asking.close()
        server.idle()


def test_a_client_that_vanishes_ends_its_sessions(server):
    asking = Asking(server)
    asking.ask_to_send()
    asking.ask_to_receive(start_time=to_timestamp(time.time_ns() + 3600 * SECOND_NS))
    asking.start()
    asking.close()
    server.idle()


def test_a_silent_client_is_closed():
    with running_server() as server:
        asking = Asking(server)
        server.let_time_pass()
        assert asking.sock.recv(1) == b""
        asking.close()
        server.idle()


def test_a_client_that_never_chooses_a_mode_is_closed(monkeypatch):
    monkeypatch.setattr("benchctl_owamp.simpleowamp.program.control_peer.GREETING_S", 0.1)
    with running_server() as server, server.connect() as sock:
        greeting = b""
        while data := sock.recv(100):
            greeting += data
        assert len(greeting) == 64


def test_a_client_of_another_network_is_asked_to_go():
    limits = Limits(networks=(parse_network("192.0.2.0/24"),))
    with running_server(limits=limits) as server, pytest.raises(Problem) as raised:
        server.measure()
    assert raised.value.kind == "refused"
    assert "takes no measurements" in raised.value.hint


def test_a_stop_ends_what_the_server_sends(asking):
    answer = asking.ask_to_receive(start_time=to_timestamp(time.time_ns() + 3600 * SECOND_NS))
    asking.start()
    theirs = asking.stop()
    assert theirs.sessions == (StoppedSession(b"127.0.0.1" + bytes(7), 0),)
    assert answer.accept == Accept.OK
    assert asking.ask_to_send().accept == Accept.OK  # The connection takes more.


def test_the_server_stops_by_itself_when_it_has_sent_everything(asking):
    asking.ask_to_receive(timeout=to_interval(10_000_000))
    asking.start()
    theirs = asking.hear(Stopped)
    [session] = theirs.sessions
    assert session.next_seq == 10
    asking.say(asking.talk.stop_sessions(()))
    assert asking.ask_to_send().accept == Accept.OK


def test_a_server_that_has_sent_everything_waits_for_what_its_client_sends(server, asking):
    timeout = to_interval(10_000_000)
    later = to_timestamp(time.time_ns() + 3600 * SECOND_NS)
    sending = asking.ask_to_send(start_time=later, timeout=timeout)
    asking.ask_to_receive(timeout=timeout)
    asking.start()
    # Packets may be late, and those that are later than the timeout are skipped.
    [peer] = (one for one in server.server.hub.peers if isinstance(one, ControlPeer))
    [ours] = (one for one in peer._open if isinstance(one, Outgoing))
    wait_until(lambda: ours.stopped)
    assert not select.select([asking.sock], [], [], 20 * 0.01)[0]
    theirs = asking.stop(StoppedSession(sending.sid, 0))
    assert [session.next_seq for session in theirs.sessions] == [10]


def test_a_user_who_interrupts_gets_what_was_measured(server):
    waker = Waker()

    class Interrupting(Notes):
        def packet(self, direction, packet):
            super().packet(direction, packet)
            if packet.seq >= 2:
                waker.interrupted = True
                waker.wake()

    notes = server.measure(
        waker=waker, output=Interrupting(), packet_count=100_000, directions=("receive",),
        timeout_s=1.0,
    )  # fmt: skip
    waker.close()
    assert notes.over == ["receive"]
    assert notes.packets["receive"][-1].seq >= 2
    assert len(notes.packets["receive"]) < 100_000


def test_a_server_that_goes_away_is_reported(server):
    class Leaving(Notes):
        def packet(self, direction, packet):
            super().packet(direction, packet)
            for peer in list(server.server.hub.peers):
                if isinstance(peer, ControlPeer):
                    peer.sock.shutdown(socket.SHUT_RDWR)

    with pytest.raises(Problem, match="closed the connection"):
        server.measure(output=Leaving(), directions=("receive",))


def test_a_server_that_is_none_is_reported(port):
    from owamp.owamp_harness import sending

    from benchctl_owamp.simpleowamp.program.client import Settings
    from benchctl_standalone.sockets import Target

    waker = Waker()
    with sending(Clock()) as channel, pytest.raises(Problem, match="refused") as raised:
        Client(Target("127.0.0.1", port), Settings(), channel, Clock(), Notes(), waker).run()
    waker.close()
    assert raised.value.kind == "unreachable"
