"""Runs the two-way protocols in this process, and as programs; reads what these print."""

import json
import sys
import threading
from contextlib import contextmanager

from owamp.owamp_harness import (
    MILLISECOND,
    TOOL,
    client_program,
    running_server,
    sending,
    server_program,
)
from waiting import DEADLINE_S

from benchctl_owamp.simpleowamp.measuring.clock import Clock
from benchctl_owamp.simpleowamp.measuring.endpoint import open_endpoint
from benchctl_owamp.simpleowamp.measuring.quota import Limits
from benchctl_owamp.simpleowamp.program.client import Settings
from benchctl_owamp.simpleowamp.program.output import Output
from benchctl_owamp.simpleowamp.program.reflecting import TwoWayServer, run_reflector
from benchctl_owamp.simpleowamp.program.two_way_client import TwoWayClient
from benchctl_owamp.simpleowamp.protocol.messages import OPEN
from benchctl_owamp.simpleowamp.protocol.two_way import two_way_format
from benchctl_standalone.sockets import Target
from benchctl_standalone.waker import Waker

PROTOCOLS = ("twamp", "twamp-light", "stamp")
# Without -S, which would hide the library that the secure modes need.
COMMAND = (sys.executable, "-I", str(TOOL))


class Notes(Output):
    """An output that remembers everything."""

    def __init__(self):
        self.address = None
        self.back = []
        self.missing = []
        self.session = None
        self.outcome = None

    def started(self, address, settings, directions):
        self.address = address

    def reflected(self, session, back):
        self.back.append(back)

    def lost(self, direction, seq):
        self.missing.append(seq)

    def ended(self, direction, outcome):
        self.session, self.outcome = direction, outcome


@contextmanager
def reflecting(protocol, host="127.0.0.1", *, key=b"", users=None):
    """Run a server of a protocol in a thread; yields its port."""
    if protocol == "twamp":
        with running_server(host, users=users, kind=TwoWayServer) as server:
            yield server.port
        return
    waker, warnings = Waker(), []
    with open_endpoint((host, 0)) as sock:
        port = sock.getsockname()[1]
        form = two_way_format(protocol, OPEN, None, b"", key)
        work = [sock], form, Limits(), Clock(), waker, warnings.append
        thread = threading.Thread(target=run_reflector, args=work)
        thread.start()
        try:
            yield port
        finally:
            waker.interrupted = True
            waker.wake()
            thread.join(DEADLINE_S)
            assert not thread.is_alive()
    waker.close()
    # Random octets of that size look like a probe without padding.
    assert not [one for one in warnings if not one.startswith("probes of 14 octets")]


def measure(protocol, port, host="127.0.0.1", *, clock=None, notes=None, **asked):
    """Run a client; returns what it noted. A few packets, unless asked otherwise."""
    clock, notes, waker = clock or Clock(), notes or Notes(), Waker()
    few = {"packet_count": 5, "slots": (MILLISECOND,), "timeout_s": DEADLINE_S}
    settings = Settings(protocol=protocol)._replace(**{**few, **asked})
    try:
        with sending(clock) as channel:
            target = Target(host, port, timeout_s=DEADLINE_S)
            TwoWayClient(target, settings, channel, clock, notes, waker).run()
    finally:
        waker.close()
    return notes


@contextmanager
def serving(protocol, *flags):
    """Run a server at a free port as a program; yields the port."""
    flags = ("--protocol", protocol, *map(str, flags))
    with server_program(*flags, command=COMMAND) as (_, port):
        yield port


def measured(host, port, protocol, *flags):
    """Measure as a program; returns its end."""
    flags = ("--protocol", protocol, *map(str, flags))
    return client_program(port, *flags, host=host, command=COMMAND)


def ping(*arguments):
    """Measure as a program; returns the exit code and the events."""
    done = measured(*arguments, "--json")
    assert done.stderr == ""
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def of(events, kind):
    return [event for event in events if event["event"] == kind]
