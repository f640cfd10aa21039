"""Runs servers and clients of simpleowamp: in this process for speed, or as programs."""

import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

from waiting import DEADLINE_S, wait_until

import benchctl_owamp
from benchctl_owamp.simpleowamp.measuring.channel import Channel
from benchctl_owamp.simpleowamp.measuring.clock import Clock, ClockState
from benchctl_owamp.simpleowamp.measuring.quota import Limits
from benchctl_owamp.simpleowamp.measuring.sender import SenderLoop
from benchctl_owamp.simpleowamp.program import client as client_module
from benchctl_owamp.simpleowamp.program.client import Client, Settings
from benchctl_owamp.simpleowamp.program.control_peer import ControlPeer
from benchctl_owamp.simpleowamp.program.output import Output
from benchctl_owamp.simpleowamp.program.server import Server
from benchctl_owamp.simpleowamp.protocol.schedule import FIXED, Slot
from benchctl_standalone.sockets import Target, listener
from benchctl_standalone.waker import Waker

PLUGINS = Path(benchctl_owamp.__file__).parents[1]
TOOL = PLUGINS / "benchctl_owamp" / "simpleowamp" / "__main__.py"
COMMAND = (sys.executable, "-I", "-S", str(TOOL))

UNSYNCHRONIZED = ClockState(False, 16.0, 16.0, "no time daemon")
MILLISECOND = Slot(FIXED, (1 << 32) // 1000)


class Notes(Output):
    """An output that remembers everything."""

    def __init__(self):
        self.directions = {}
        self.packets = {"send": [], "receive": []}
        self.missing = {"send": [], "receive": []}
        self.outcome = None
        self.over = []

    def started(self, address, settings, directions):
        self.directions = directions

    def packet(self, direction, packet):
        self.packets[direction.name].append(packet)

    def lost(self, direction, seq):
        self.missing[direction.name].append(seq)

    def ended(self, direction, outcome):
        self.outcome = outcome or self.outcome
        self.over.append(direction.name)

    def numbers(self, name):
        return [packet.seq for packet in self.packets[name]]


@contextmanager
def sending(clock):
    """Run what sends in a thread instead of a process; yields the channel to it."""
    ours, theirs = socket.socketpair()
    channel = Channel(ours)
    thread = threading.Thread(target=SenderLoop(Channel(theirs), clock).run)
    thread.start()
    try:
        yield channel
    finally:
        ours.close()
        thread.join(DEADLINE_S)
        theirs.close()
        assert not thread.is_alive()


class Running:
    """A server in a thread of this process."""

    def __init__(self, host, limits, clock, channel, users, kind=Server, **options):
        self.waker = Waker()
        self.warnings = []
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.listener = listener(family, (host, 0))
        self.host, self.port = self.listener.getsockname()[:2]
        warn = self.warnings.append
        self.server = kind(
            self.listener, channel, self.waker, warn, limits, clock, users, **options
        )
        self._thread = threading.Thread(target=self.server.run)
        self._thread.start()

    def stop(self):
        self.waker.interrupted = True
        self.waker.wake()
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive()
        assert not self.warnings
        self.waker.close()

    def connect(self, source=None):
        """Return a connection to the server, which gives up in the end."""
        from_where = (source, 0) if source else None
        return socket.create_connection((self.host, self.port), DEADLINE_S, from_where)

    def measure(self, clock=None, source=None, waker=None, output=None, **asked):
        """Run a client; returns what it noted. A few packets, unless asked otherwise."""
        clock, notes = clock or Clock(), output or Notes()
        target = Target(self.host, self.port, source=source, timeout_s=DEADLINE_S)
        settings = Settings()._replace(
            **{
                "packet_count": 5,
                "slots": (MILLISECOND,),
                "timeout_s": DEADLINE_S,
                "waits": False,
                **asked,
            }
        )
        own = waker or Waker()
        try:
            with sending(clock) as channel:
                Client(target, settings, channel, clock, notes, own).run()
        finally:
            if waker is None:
                own.close()
        return notes

    def let_time_pass(self):
        """Let the server find that every client was silent for too long."""
        for peer in list(self.server.hub.peers):
            if isinstance(peer, ControlPeer):
                peer.deadline_s = 0.0
        self.waker.wake()

    def idle(self):
        """Wait until nobody is connected and no session runs."""
        wait_until(lambda: not self.server.connections and not self.server.sessions.running)


@contextmanager
def running_server(host="127.0.0.1", limits=None, clock=None, users=None, **options):
    clock = clock or Clock()
    with sending(clock) as channel:
        server = Running(host, limits or Limits(), clock, channel, users or {}, **options)
        try:
            yield server
        finally:
            server.stop()


def without_delay(monkeypatch):
    """Let sessions start at once: packets that are late then are sent, and not skipped."""
    monkeypatch.setattr(client_module, "_LEAST_WAIT_S", 0.0)


@contextmanager
def server_program(*flags, command=COMMAND, **options):
    """Start the server as a program; yields it and its port, and ends it."""
    with subprocess.Popen(
        [*command, "serve", "-p", "0", *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    ) as process:
        try:
            line = process.stdout.readline()
            yield process, int(line.rpartition(":")[2])
        finally:
            process.terminate()
            process.communicate(timeout=DEADLINE_S)


def client_program(port, *flags, command=COMMAND, host="127.0.0.1", **options):
    """Run the client as a program to its end."""
    return subprocess.run(
        [*command, "ping", host, "-p", str(port), *flags],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
        **options,
    )
