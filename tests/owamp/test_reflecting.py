"""TWAMP's sessions of a server: who gets one, and until when it answers."""

import json
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager, suppress

import pytest
from owamp.owamp_harness import server_program
from owamp.two_way_harness import COMMAND, of
from simpleperf.simpleperf_hosts import two_hosts
from waiting import DEADLINE_S, wait_until

from benchctl_owamp.simpleowamp.measuring.clock import Clock
from benchctl_owamp.simpleowamp.measuring.quota import Limits
from benchctl_owamp.simpleowamp.program.reflecting import TwoWaySessions
from benchctl_owamp.simpleowamp.program.sessions import Requester
from benchctl_owamp.simpleowamp.protocol.messages import OPEN, Accept
from benchctl_owamp.simpleowamp.protocol.timestamps import UNITS_PER_S
from benchctl_owamp.simpleowamp.protocol.twamp import TwoWayRequest
from benchctl_owamp.simpleowamp.protocol.two_way import twamp_format

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


# Sends forged probes, and counts them and what follows until half a second is quiet.
FORGER = r"""
import select, socket, struct, sys
device, source, port, target, its_port, count = sys.argv[1:]
frames = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
frames.bind((device, 3))
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
addresses = socket.inet_aton(source) + socket.inet_aton(target)
for number in range(int(count)):
    probe = struct.pack("!IQH", number, 1 << 60, 1) + bytes(30)
    head = struct.pack("!BBHHHBBH", 0x45, 0, 0, 0, 0, 64, socket.IPPROTO_UDP, 0) + addresses
    udp = struct.pack("!HHHH", int(port), int(its_port), 8 + len(probe), 0)
    raw.sendto(head + udp + probe, (target, 0))
seen = 0
while seen < 5000 and select.select([frames], [], [], 0.5)[0]:
    packet, address = frames.recvfrom(2000)
    # What stays on this host comes twice.
    if packet[9] == socket.IPPROTO_UDP and (device != "lo" or address[2] == socket.PACKET_OUTGOING):
        seen += 1
print(seen)
"""

# As another maker's responder: it has never seen ours.
RESPONDER = r"""
import socket, struct, sys, time
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind((sys.argv[1], 0))
print(f"listens on {sys.argv[1]}:{sock.getsockname()[1]}", flush=True)
numbers = {}
while True:
    packet, source = sock.recvfrom(2000)
    numbers[source] = numbers.get(source, -1) + 1
    now = time.time() + 2208988800
    stamp = struct.pack("!II", int(now), int(now % 1 * 2**32))
    head = struct.pack("!I", numbers[source]) + stamp + struct.pack("!HH", 1, 0) + stamp
    sock.sendto(head + packet[:14] + bytes(8), source)
"""

FLOOD = r"""
import socket, sys, time
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind((sys.argv[1], 0))
sock.connect((sys.argv[2], int(sys.argv[3])))
print("floods", flush=True)
begun, sent = time.monotonic(), 0
while (passed := time.monotonic() - begun) < float(sys.argv[5]):
    for _ in range(int(passed * int(sys.argv[4])) - sent):
        sock.send(bytes(44))
        sent += 1
    time.sleep(0.0005)
print(sent)
"""


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    with two_hosts(tmp_path_factory.mktemp("hosts")) as both:
        yield both


@contextmanager
def reflector_at(host, protocol):
    """Run a reflector on a host, without privileges; yields its address and port."""
    bare = ("setpriv", "--bounding-set=-all")
    command = (*host.prefix, *bare, *COMMAND)
    flags = ("--protocol", protocol, "-b", host.address)
    with server_program(*flags, command=command) as (_, port):
        yield host.address, str(port)


@contextmanager
def started(host, program, *arguments):
    """Run a program on a host; yields it when it has printed its first line, and that."""
    with subprocess.Popen(
        [*host.prefix, sys.executable, "-I", "-c", program, *arguments],
        stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            yield process, process.stdout.readline()
        finally:
            process.terminate()


def pings(host, address, *flags):
    """Return the end of an honest measurement."""
    done = host.run(*COMMAND, "ping", address[0], "-p", address[1], "--json", *flags)
    assert done.returncode == 0, done.stdout
    [end] = of([json.loads(line) for line in done.stdout.splitlines()], "end")
    return end


@pytest.mark.netns
@pytest.mark.once
@pytest.mark.parametrize(
    ("other", "protocol"),
    [("itself", "twamp-light"), ("ours", "twamp-light"), ("ours", "stamp"), ("another's", "stamp")],
)
def test_forged_packets_end_at_the_reflector_that_they_made_answer(hosts, other, protocol):
    server, client = hosts
    with ExitStack() as stack:
        target = stack.enter_context(reflector_at(server, protocol))
        attacker, device, source = client, "eth0", target
        if other == "itself":
            attacker, device = server, "lo"
        elif other == "ours":
            source = stack.enter_context(reflector_at(client, protocol))
        else:
            _, line = stack.enter_context(started(client, RESPONDER, client.address))
            source = client.address, line.rpartition(":")[2].strip()
        for count in (1, 20):
            done = attacker.run(
                sys.executable, "-I", "-c", FORGER, device, *source, *target, str(count)
            )
            # Each was answered, and so was that.
            assert done.stdout.split() == [str(3 * count)], done.stderr
        end = pings(client, target, "--protocol", protocol, "-c", "5", "-i", "0.01", "-L", "1")
        assert end["received"] == 5


@pytest.mark.netns
@pytest.mark.quiet
def test_a_flood_of_small_packets_of_one_source_takes_nothing_from_another(hosts):
    server, client = hosts
    other = "10.77.0.3"
    client.configure(f"address add {other}/24 dev eth0")
    with reflector_at(server, "stamp") as address:
        flood = started(client, FLOOD, other, *address, "20000", "3")
        with flood as (flooding, _):
            asked = ("--protocol", "stamp", "-c", "100", "-i", "0.01", "-L", "1")
            end = pings(client, address, *asked, "-b", client.address)
            sent = int(flooding.communicate(timeout=DEADLINE_S)[0])
            sockets = server.run("cat", "/proc/net/udp").stdout.splitlines()
    assert sent > 57_000  # which is 19,000 a second
    # Its own limit and what is known as a flood then were read, and the kernel dropped the rest.
    (drops,) = [int(line.split()[-1]) for line in sockets if f":{int(address[1]):04X} " in line]
    assert drops > sent / 2
    # A sender that was not run in time skips packets.
    assert end["lost"] == 0 < end["received"] == end["sent"]
