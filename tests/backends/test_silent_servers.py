"""A server that prints nothing is ready when its port listens."""

import json
import socket
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.api import Channel, Command, LineParser, Ready, Warn, silent_server
from benchctl.api.listening import MARK, is_open

SERVER = """
import socket, sys, time
kind = socket.SOCK_STREAM if sys.argv[1] == "tcp" else socket.SOCK_DGRAM
with socket.socket(socket.AF_INET, kind) as sock:
    sock.bind(("127.0.0.1", int(sys.argv[2])))
    if kind is socket.SOCK_STREAM:
        sock.listen()
    time.sleep(60)
"""


class Echo(LineParser):
    def line(self, text, channel):
        yield Warn(text)


@given(st.binary(max_size=40), st.binary(max_size=40), st.lists(st.integers(1, 9), max_size=30))
def test_the_mark_is_found_however_the_bytes_are_split(before, behind, sizes):
    parser = silent_server(Command(("server",), Echo()), "tcp", 1).parser
    plain = Echo()
    data = before.replace(MARK, b"") + MARK + behind
    events, at = [], 0
    for size in [*sizes, len(data)]:
        events += parser.feed(data[at : at + size])
        at += size
    expected = plain.feed(data.replace(MARK, b"", 1))
    assert [event for event in events if not isinstance(event, Ready)] == list(expected)
    assert sum(isinstance(event, Ready) for event in events) == 1
    assert list(parser.close(0)) == list(plain.close(0))


def test_without_the_mark_all_is_the_servers_own():
    parser = silent_server(Command(("server",), Echo()), "udp", 1).parser
    assert parser.feed(b"no luck\n" + MARK[:5]) == [Warn("no luck")]
    assert parser.feed(b"bad\n", Channel.STDERR) == [Warn("bad")]
    assert [type(event) for event in parser.close(1)] == [Warn]


def test_another_protocol_is_refused():
    with pytest.raises(ValueError, match="tcp or udp, and not on sctp"):
        silent_server(Command(("server",), Echo()), "sctp", 1)


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc/net")
@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_it_is_said_once_the_port_listens_and_a_signal_reaches_the_server(protocol, port):
    server = (sys.executable, "-c", SERVER, protocol, str(port))
    command = silent_server(Command(server, Echo()), protocol, port)
    process = subprocess.Popen(command.argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        said = process.stdout.read(len(MARK))
        assert list(command.parser.feed(said)) == [Ready()]
        assert is_open(protocol, port)
    finally:
        process.terminate()
        process.communicate()
    assert process.returncode == 128 + 15
    assert not is_open(protocol, port)


def test_a_server_that_is_not_there_or_ends_says_so():
    command = silent_server(Command(("no-such-program",), Echo()), "tcp", 1)
    done = subprocess.run(command.argv, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (127, b"")
    assert b"no-such-program cannot be started" in done.stderr
    ends = silent_server(Command(("sh", "-c", "exit 3"), Echo()), "tcp", 1)
    assert subprocess.run(ends.argv, check=False).returncode == 3


def test_only_what_listens_is_open(tmp_path):
    head = "  sl  local_address rem_address   st\n"
    (tmp_path / "tcp").write_text(f"{head}   0: 0100007F:1F98 0100007F:9C40 01\n")
    (tmp_path / "tcp6").write_text(f"{head}   0: {'0' * 32}:1F90 {'0' * 32}:0000 0A\n")
    assert is_open("tcp", 8080, str(tmp_path))
    assert not is_open("tcp", 8088, str(tmp_path))
    assert not is_open("udp", 8080, str(tmp_path))


PLUGIN = f'''
import sys
from benchctl.api import *

class Client(LineParser):
    def line(self, text, channel):
        yield Summary({{"throughput_bps": float(text)}})

class Nothing(LineParser):
    def line(self, text, channel):
        return ()

class Silent(Backend):
    name = "silent"
    summary = "its server prints nothing"
    parameters = Parameters
    capabilities = Capabilities((Direction.SEND,), needs_server=True, default_port=7070)
    def probe(self, role): return None
    def read_probe(self, role, exit_code, output): return Tool("")
    def duration_s(self, params): return 1.0
    def client(self, flow):
        program = "import socket, sys; "
        program += "socket.create_connection((sys.argv[1], int(sys.argv[2]))); print(8e6)"
        return Command((sys.executable, "-c", program, flow.address, str(flow.port)), Client())
    def server(self, flow):
        argv = (sys.executable, "-c", """{SERVER}""", "tcp", str(flow.port))
        return silent_server(Command(argv, Nothing(), stays=True), "tcp", flow.port)

BACKEND = Silent()
'''


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc/net")
def test_a_flow_waits_for_such_a_server(tmp_path):
    (tmp_path / "silent.py").write_text(PLUGIN)
    (tmp_path / "p.toml").write_text('[flows.main]\nbackend = "silent"\n')
    words = ("--plugin", "silent.py", "run", "p.toml", "-q", "--format", "json", "--store", "s")
    done = subprocess.run(
        [sys.executable, "-m", "benchctl", *words],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    ((flow,),) = (trial["flows"] for trial in json.loads(done.stdout)["trials"])
    assert flow["metrics"]["throughput_bps"] == 8e6
    with socket.socket() as sock:
        assert sock.connect_ex(("127.0.0.1", flow["port"])) != 0
