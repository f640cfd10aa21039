"""Runs servers and clients of simpleperf: in this process for speed, or as programs."""

import json
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

from hypothesis import settings
from waiting import DEADLINE_S

import benchctl_simpleperf
from benchctl_simpleperf.simpleperf.measuring.sockets import listen
from benchctl_simpleperf.simpleperf.program.control_client import run_control_client
from benchctl_simpleperf.simpleperf.program.output import ResultOutput
from benchctl_simpleperf.simpleperf.program.plain_client import run_plain_client
from benchctl_simpleperf.simpleperf.program.server import Server
from benchctl_simpleperf.simpleperf.program.session import Session
from benchctl_simpleperf.simpleperf.protocol.conversation import (
    CLIENT,
    CONTROL_PREAMBLE,
    Conversation,
    encode_message,
)
from benchctl_simpleperf.simpleperf.protocol.settings import Limits, MeasurementSettings
from benchctl_standalone.sockets import Target
from benchctl_standalone.waker import Waker

# The same examples on every run, and no matter how busy the machine is.
REPEATABLE = settings(derandomize=True, deadline=None)
# Where each example is costly to make.
FEWER = settings(REPEATABLE, max_examples=40)

TOOL = Path(benchctl_simpleperf.__file__).parent / "simpleperf" / "__main__.py"
COMMAND = (sys.executable, "-I", "-S", str(TOOL))

HELLO = CONTROL_PREAMBLE + encode_message({"type": "hello", "version": 1, "agent": "test"})
OTHER = "127.0.0.2"
"""Another host, as a server sees it."""
UDP = {"protocol": "udp", "length_bytes": 1448, "duration_s": 60.0}


class Notes(ResultOutput):
    """An output that remembers everything."""

    def __init__(self):
        self.facts = None
        self.intervals = []
        self.probes = []
        self.warnings = []
        self.results = []
        self.more = threading.Condition()

    def started(self, facts):
        self.facts = facts

    def interval(self, figures):
        with self.more:
            self.intervals.append(figures)
            self.more.notify_all()

    def probe(self, figures):
        self.probes.append(figures)

    def warning(self, message):
        self.warnings.append(message)

    def finished(self, result):
        with self.more:
            self.results.append(result)
            self.more.notify_all()

    def wait_for_results(self, count):
        """Wait until so many measurements are over; returns their results."""
        with self.more:
            assert self.more.wait_for(lambda: len(self.results) >= count, timeout=DEADLINE_S)
            return self.results


class Running:
    """A server in a thread of this process."""

    def __init__(self, host="127.0.0.1", limits=None, key=None, interval_s=0.0, pauses=()):
        self.notes = Notes()
        self.waker = Waker()
        listener, datagrams = listen(Target(host, 0))
        self.host, self.port = listener.getsockname()[:2]
        self.server = Server(
            listener, datagrams, self.notes, self.waker, limits or Limits(), key, interval_s,
            pauses=pauses,
        )  # fmt: skip
        self._thread = threading.Thread(target=self.server.run)
        self._thread.start()

    def stop(self):
        self.waker.interrupted = True
        self.waker.wake()
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive()
        assert not [text for text in self.notes.warnings if "defect" in text]
        self.waker.close()

    def let_time_pass(self):
        """Let the server find that every client was silent for too long."""
        for peer in list(self.server.hub.peers):
            if isinstance(peer, Session):
                peer.deadline_s = 0.0
        self.waker.wake()

    def connect(self, source=None):
        """Return a connection to the server, which gives up in the end."""
        from_where = (source, 0) if source else None
        return socket.create_connection((self.host, self.port), DEADLINE_S, from_where)

    def measure(
        self,
        key=None,
        source=None,
        start_at_s=None,
        server_window_bytes=None,
        probe_s=0.0,
        **asked,
    ):
        """Run a client; returns what it noted. Half a second, unless asked otherwise."""
        notes, waker = Notes(), Waker()
        own = _settings(asked)
        theirs = own._replace(window_bytes=server_window_bytes or own.window_bytes)
        try:
            target = self.target(source)
            run_control_client(target, own, notes, waker, key, start_at_s, theirs, probe_s)
        finally:
            waker.close()
        return notes

    def measure_plain(self, **asked):
        """Run a plain client; returns what it noted."""
        notes, waker = Notes(), Waker()
        try:
            run_plain_client(self.target(), _settings(asked), notes, waker)
        finally:
            waker.close()
        return notes

    def target(self, source=None):
        return Target(self.host, self.port, source=source, timeout_s=DEADLINE_S)


def _settings(asked):
    if "total_bytes" in asked:
        asked = {"duration_s": None, **asked}
    return MeasurementSettings()._replace(**{"duration_s": 0.4, "interval_s": 0.1, **asked})


class ControlClient:
    """A client that says what a test wants, and nothing by itself."""

    def __init__(self, server, source=None):
        self.sock = server.connect(source)
        self.conversation = Conversation(CLIENT)
        self.heard = []
        self.sock.sendall(CONTROL_PREAMBLE)

    def say(self, kind, **members):
        self.sock.sendall(self.conversation.send(kind, **members))

    def hear(self):
        """Return the next message that is not of samples."""
        while True:
            while not self.heard:
                data = self.sock.recv(65536)
                assert data, "the server closed the connection"
                self.heard += self.conversation.receive(data)
            kind, members = self.heard.pop(0)
            if kind != "samples":
                return kind, members

    def ask(self, **asked):
        """Say hello and ask for a measurement; returns the answer, and keeps its token."""
        self.say("hello", version=1, agent="test")
        assert self.hear()[0] == "welcome"
        settings = MeasurementSettings()._replace(**asked)
        self.say("test", **settings._asdict())
        kind, members = self.hear()
        self.token = members.get("token")
        return kind, members


def idle(server):
    return not server.server.connections


def works(server):
    """Whether an honest client is still served."""
    notes = server.measure(total_bytes=10_000, interval_s=0.0)
    return notes.results[0]["directions"]["send"]["bytes_received"] == 10_000


@contextmanager
def running_server(**options):
    server = Running(**options)
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def server_program(*flags, command=COMMAND, **options):
    """Start the server as a program; yields it and its port, and ends it."""
    process = subprocess.Popen(
        [*command, "-s", "-p", "0", "--events", *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )
    try:
        yield process, json.loads(process.stdout.readline())["port"]
    finally:
        process.terminate()
        process.communicate(timeout=DEADLINE_S)


def client_program(port, *flags, command=COMMAND, **options):
    """Run the client as a program to its end."""
    return subprocess.run(
        [*command, "-c", "-p", str(port), *flags],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
        **options,
    )
