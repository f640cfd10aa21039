"""A server sends no datagram to a host whose address somebody else writes into his own.

The attacker is a host of a network that the test makes. There he may write any source into a
datagram, and sees every frame that the server sends.
"""

import json
import sys

import pytest
from simpleperf.simpleperf_harness import COMMAND, server_program
from simpleperf.simpleperf_hosts import two_hosts

from benchctl_simpleperf.simpleperf.protocol.settings import MeasurementSettings

pytestmark = [pytest.mark.netns, pytest.mark.once]

ATTACKER, VICTIM = "10.77.0.2", "10.77.0.66"
ASKED = MeasurementSettings(
    protocol="udp", directions=("receive",), length_bytes=1000, rate_bps=1e7, duration_s=60.0
)
FORGER = r"""
import collections, json, select, socket, struct, sys
asked = json.loads(sys.argv[1])
server, port = asked["server"], asked["port"]
frames = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
# Without it, the kernel would tell the server that nobody listens.
listens = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
listens.bind(("0.0.0.0", 40_000))
control = socket.create_connection((server, port), 20, (asked["control"], 0))
lines = control.makefile("rb")
sent_to = collections.Counter()

def say(kind, **members):
    control.sendall(json.dumps({"type": kind, **members}).encode() + b"\n")

def hear(*kinds):
    while (told := json.loads(lines.readline()))["type"] not in kinds:
        pass
    return told

def forge(source):
    said = b"\0simpleperf stream %s receive 0\n" % token.encode()
    addresses = socket.inet_aton(source) + socket.inet_aton(server)
    head = struct.pack("!BBHHHBBH", 0x45, 0, 0, 0, 0, 64, socket.IPPROTO_UDP, 0) + addresses
    udp = struct.pack("!HHHH", 40_000, port, 8 + len(said), 0)
    raw.sendto(head + udp + said, (server, 0))

def count(seconds):
    while select.select([frames], [], [], seconds)[0]:
        packet = frames.recv(2000)
        if packet[9] == socket.IPPROTO_UDP and packet[20:22] == struct.pack("!H", port):
            sent_to[socket.inet_ntoa(packet[16:20])] += 1
            if seconds:
                return

control.sendall(b"\0simpleperf control 1\n")
say("hello", version=1, agent="test")
hear("welcome")
say("test", **asked["test"])
token = hear("accepted")["token"]
forge(asked["first"])
told = hear("ready", "problem")
if told["type"] == "ready":
    say("start")
    count(20)
    forge(asked["then"])
    for _ in range(50):
        count(20)
    say("stop")
    told = hear("result", "problem")
count(0)  # What was sent before a message has arrived before it.
print(json.dumps({"told": told, "sent_to": sent_to}))
"""


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    with two_hosts(tmp_path_factory.mktemp("hosts")) as (server, attacker):
        # The victim is a host of its own for the server, which finds it: see the first test.
        attacker.configure(f"address add {VICTIM}/24 dev eth0")
        yield server, attacker


def forge(hosts, control, first, then):
    """Ask from one address and write others into the datagrams; returns what came of it."""
    server, attacker = hosts
    with server_program("-b", "0.0.0.0", command=(*server.prefix, *COMMAND)) as (_, port):
        asked = {
            "server": server.address, "port": port, "control": control, "first": first,
            "then": then, "test": ASKED._asdict(),
        }  # fmt: skip
        done = attacker.run(sys.executable, "-I", "-S", "-c", FORGER, json.dumps(asked))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_forged_datagram_of_who_asked_is_as_good_as_his_own(hosts):
    found = forge(hosts, control=VICTIM, first=VICTIM, then=VICTIM)
    assert found["told"]["type"] == "result"
    assert found["sent_to"].keys() == {VICTIM}


def test_a_stream_is_not_taken_from_a_forged_address(hosts):
    found = forge(hosts, control=ATTACKER, first=VICTIM, then=VICTIM)
    assert (found["told"]["type"], found["told"]["kind"]) == ("problem", "refused")
    assert VICTIM in found["told"]["message"]
    assert found["sent_to"] == {}


def test_a_stream_does_not_move_to_a_forged_address(hosts):
    found = forge(hosts, control=ATTACKER, first=ATTACKER, then=VICTIM)
    assert found["told"]["type"] == "result"
    assert found["sent_to"].keys() == {ATTACKER}
    assert found["sent_to"][ATTACKER] > 50
