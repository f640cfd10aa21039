"""Runs simpleowamp as users do: a server at a free port, and a measurement."""

import json
import subprocess
import sys
from contextlib import contextmanager

TOOL = [sys.executable, "-m", "benchctl_owamp.simpleowamp"]


@contextmanager
def serving(*arguments):
    """Run a server at a free port; yields the port."""
    command = [*TOOL, "serve", "-p", "0", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            line = server.stdout.readline()
            assert " listens on " in line
            yield int(line.rpartition(":")[2])
        finally:
            server.terminate()
            assert server.wait() == 0


def ping(*arguments):
    """Measure; returns the exit code and the events."""
    command = [*TOOL, "ping", *map(str, arguments), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def of(events, kind):
    return [event for event in events if event["event"] == kind]
