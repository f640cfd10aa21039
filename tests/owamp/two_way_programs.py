"""Runs simpleowamp's two-way protocols as users do, and reads what is printed."""

import json
import sys
from contextlib import contextmanager

from owamp.owamp_harness import TOOL, client_program, server_program

# Without -S, which would hide the library that the secure modes need.
COMMAND = (sys.executable, "-I", str(TOOL))


@contextmanager
def serving(protocol, *flags):
    """Run a server at a free port; yields the port."""
    flags = ("--protocol", protocol, *map(str, flags))
    with server_program(*flags, command=COMMAND) as (_, port):
        yield port


def measured(host, port, protocol, *flags):
    """Measure; returns the program's end."""
    flags = ("--protocol", protocol, *map(str, flags))
    return client_program(port, *flags, host=host, command=COMMAND)


def ping(*arguments):
    """Measure; returns the exit code and the events."""
    done = measured(*arguments, "--json")
    assert done.stderr == ""
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def of(events, kind):
    return [event for event in events if event["event"] == kind]
