"""Our own ping: one file that runs anywhere, and that measures what the system's does in a lab."""

import ast
import json
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from cli.conftest import Benchctl
from needs import PYTHONS
from waiting import DEADLINE_S

from benchctl.api import Direction, FailureKind, Flow, replay
from benchctl_ping import BACKEND, echo

FILE = Path(echo.__file__)
BESIDE_WIRE = Path(__file__).with_name("beside_wire.py")


@pytest.mark.parametrize("python", PYTHONS)
def test_it_runs_from_standard_input_with_nothing_but_python(python, tmp_path):
    with FILE.open() as text:
        done = subprocess.run(
            [python, "-I", "-", "-c", "2", "-i", "0.01", "127.0.0.1"],
            stdin=text, capture_output=True, text=True, timeout=DEADLINE_S, check=True,
            cwd=tmp_path,
        )  # fmt: skip
    assert "2 packets transmitted, 2 received, 0% packet loss" in done.stdout


def test_it_imports_nothing_but_the_standard_library():
    nodes = ast.walk(ast.parse(FILE.read_text()))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    nodes = ast.walk(ast.parse(FILE.read_text()))
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    assert names <= sys.stdlib_module_names


def test_the_version_is_one_line_on_any_terminal():
    done = subprocess.run(
        [sys.executable, FILE, "-V"], env={"COLUMNS": "1"}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stdout == f"echo {echo.VERSION}\n"


@pytest.mark.parametrize("length", [8, 9, 64, 1501])
def test_a_packet_with_its_checksum_sums_to_zero(length):
    packet = bytearray(Random(length).randbytes(length))
    packet[2:4] = bytes(2)
    packet[2:4] = echo.checksum(bytes(packet)).to_bytes(2, "big")
    assert echo.checksum(bytes(packet)) == 0


class Wire:
    """A raw socket that hands over what a test puts on it."""

    type = echo.socket.SOCK_RAW
    source = ("192.0.2.1", 0)

    def __init__(self):
        self.sent = b""
        self.waiting = []

    def send(self, packet):
        self.sent = packet

    def recvmsg(self, size, ancillary, flags=0):
        return self.waiting.pop(0)


@pytest.fixture
def wire():
    return Wire()


def answer_to(packet, kind=0):
    """Return what arrives: 20 bytes of IPv4 with a TTL of 7, and the echoed payload."""
    head = bytes([0x45]) + bytes(7) + bytes([7]) + bytes(11)
    reply = bytes([kind]) + packet[1:]
    arrived = struct.pack("@ll", 1_000_000_000, 250)
    ancillary = [(echo.socket.SOL_SOCKET, echo.SO_TIMESTAMPNS, arrived)]
    return head + reply, ancillary, 0, Wire.source


def test_a_reply_has_the_time_that_the_kernel_gave_it(wire, monkeypatch):
    pinger = echo.Pinger(wire, 4, 56)
    monkeypatch.setattr(echo.time, "time_ns", lambda: 10**18)
    pinger.send(70_000)
    wire.waiting.append(answer_to(wire.sent))
    reply = pinger.receive()
    assert reply == echo.Reply(70_000 & 0xFFFF, 64, "192.0.2.1", 7, 10**18 + 250, 10**18)


@pytest.mark.parametrize(
    "forge",
    [
        lambda packet: answer_to(packet, kind=8),  # our own request, on loopback
        lambda packet: answer_to(packet[:4] + b"\0\0" + packet[6:]),  # another ping's
        lambda packet: answer_to(packet[:6] + b"\x12\x34" + packet[8:]),  # never sent
        lambda packet: answer_to(packet[:8] + bytes(len(packet) - 8)),  # a guess
        lambda packet: answer_to(packet[:4]),
    ],
)
def test_what_is_no_reply_to_a_probe_is_not_counted(wire, monkeypatch, forge):
    monkeypatch.setattr(echo.os, "urandom", lambda size: b"\xaa" * size)
    pinger = echo.Pinger(wire, 4, 56)
    pinger.send(1)
    wire.waiting.append(forge(wire.sent))
    assert pinger.receive() is None


@pytest.mark.parametrize(
    ("version", "kind", "code", "text"),
    [
        (4, 3, 1, "Destination Host Unreachable"),
        (4, 3, 4, "Frag needed and DF set (mtu = 1280)"),
        (4, 3, 13, "Destination unreachable, code 13"),
        (4, 11, 0, "Time to live exceeded"),
        (6, 1, 3, "Destination unreachable: Address unreachable"),
        (6, 2, 0, "Packet too big: mtu=1280"),
        (6, 3, 0, "Time exceeded: Hop limit"),
    ],
)
def test_an_error_of_a_router_has_the_words_of_ping(wire, version, kind, code, text):
    error = struct.pack("=IBBBBII", 113, 2, kind, code, 0, 1280, 0)
    address = {4: bytes(4) + bytes([192, 0, 2, 9]), 6: bytes(8) + bytes(15) + b"\1"}[version]
    wire.waiting.append((bytes(6) + b"\0\5" + bytes(8), [(0, 11, error + address)], 0, None))
    wire.family = {4: echo.socket.AF_INET, 6: echo.socket.AF_INET6}[version]
    pinger = echo.Pinger(wire, version, 56)
    assert pinger.error() == (5, {4: "192.0.2.9", 6: "::1"}[version], text)


WITHOUT_RIGHTS = """
ip link set lo up mtu 1400
[ -z "$1" ] || echo "$1" > /proc/sys/net/ipv4/ping_group_range
shift
exec setpriv --bounding-set -all --inh-caps -all "$@"
"""


def ping_without_rights(group_range, *options):
    words = ["unshare", "--map-root-user", "--net", "sh", "-ec", WITHOUT_RIGHTS, "sh", group_range]
    return subprocess.run(
        [*words, sys.executable, "-I", "-S", FILE, *options],
        capture_output=True, text=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip


@pytest.mark.netns
@pytest.mark.tool("unshare", "setpriv")
@pytest.mark.parametrize("address", ["127.0.0.1", pytest.param("::1", marks=pytest.mark.ipv6)])
def test_a_user_without_rights_pings_where_the_kernel_permits_it(address):
    done = ping_without_rights("0 0", "-c", "2", "-i", "0.01", address)
    assert "2 packets transmitted, 2 received" in done.stdout, done.stderr


@pytest.mark.netns
@pytest.mark.tool("unshare", "setpriv")
def test_a_user_who_may_not_ping_learns_the_setting():
    done = ping_without_rights("", "-c", "2", "127.0.0.1")
    parser = BACKEND.client(flow_of(count=2)).parser
    [failure] = replay(parser, done.stdout.encode(), done.stderr.encode(), done.returncode)
    assert done.returncode == 2
    assert failure.kind is FailureKind.TOOL
    assert "net.ipv4.ping_group_range" in failure.hint


@pytest.mark.netns
@pytest.mark.tool("unshare", "setpriv")
def test_a_probe_that_may_not_be_cut_and_does_not_fit_is_told_to_be_too_long():
    options = ("-c", "1", "-W", "0.1", "-M", "do", "-s", "65507", "127.0.0.1")
    done = ping_without_rights("0 0", *options)
    parser = BACKEND.client(flow_of(count=1)).parser
    told = replay(parser, done.stdout.encode(), done.stderr.encode(), done.returncode)
    assert told[-1].kind is FailureKind.PARAMETER
    assert "lower length" in told[-1].hint


def flow_of(**parameters):
    tool = BACKEND.read_probe("client", 0, f"echo {echo.VERSION}\n")
    model = BACKEND.parameters(**parameters)
    return Flow(model, Direction.ROUND_TRIP, "127.0.0.1", None, tool)


PAIR = """
[hosts]
a = {}
b = {}
[links]
l = { between = ["a", "b"], delay = "1ms" }
"""
PROFILE = """
[lab]
topology = "pair.toml"
verify = false
[flows.ping]
backend = "ping"
from = "a"
to = "b"
count = 10
interval = "10ms"
[flows.flood]
backend = "ping"
from = "a"
to = "b"
count = 300
flood = true
"""


@pytest.fixture
def without_ping(tmp_path):
    """A directory for the PATH with every program of this machine but ping."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for directory in filter(None, os.environ["PATH"].split(os.pathsep)):
        for program in Path(directory).glob("*"):
            if program.name != "ping" and not os.path.lexists(programs / program.name):
                (programs / program.name).symlink_to(program)
    assert shutil.which("ping", path=str(programs)) is None
    return str(programs)


def least_beyond_wire_s(*command):
    """Return by how much a ping's reported times exceed those of the wire, at the least."""
    words = ["unshare", "--map-root-user", "--net", sys.executable, BESIDE_WIRE, *command]
    done = subprocess.run(
        [*words, "-c", "60", "-i", "0.01", "127.0.0.1"],
        capture_output=True, text=True, timeout=DEADLINE_S, check=True,
    )  # fmt: skip
    trips = json.loads(done.stdout)
    assert len(trips) == 60
    return min(trip["reported_s"] - trip["wire_s"] for trip in trips)


@pytest.mark.netns
@pytest.mark.tool("ping", "unshare")
def test_its_times_exceed_those_of_the_wire_by_no_more_than_those_of_the_system_s():
    system_s = least_beyond_wire_s("ping", "-n")
    own_s = least_beyond_wire_s(sys.executable, "-I", "-S", FILE)
    # Both include the kernel's path to the wire and back. What else the machine does only adds to
    # some of the times: the least ones are the programs' own.
    assert own_s == pytest.approx(system_s, abs=50e-6)


@pytest.mark.netns
def test_a_lab_without_ping_measures_and_floods_by_it(tmp_path, without_ping):
    benchctl = Benchctl(tmp_path)
    benchctl.environment["PATH"] = without_ping
    benchctl.profile(PAIR, "pair.toml")
    result = benchctl("run", "--format", "json", benchctl.profile(PROFILE))
    assert result.returncode == 0, result.stderr
    received = {}
    for flow in json.loads(result.stdout)["trials"][0]["flows"]:
        assert "echo.py" in " ".join(flow["command"])
        assert flow["metrics"]["rtt_s"]["min"] >= 0.002
        received[flow["name"]] = flow["metrics"]["packets_received"]
    assert received == {"ping": 10, "flood": 300}


def test_a_flood_outside_a_lab_is_rejected_with_its_flow(tmp_path):
    benchctl = Benchctl(tmp_path)
    text = """[flows.main]\nbackend = "ping"\ncount = 5\nflood = true\n"""
    result = benchctl("plan", benchctl.profile(text))
    assert result.returncode == 2
    assert "p.toml:1: flows.main: ping may send this in a lab only" in result.stderr


def test_the_backend_finds_the_file_that_it_runs():
    assert FILE.name in " ".join(BACKEND.probe("client").otherwise.argv)
