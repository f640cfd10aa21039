"""Commands of a backend that run for real, with the parsers that read them."""

import os
import selectors
import subprocess
import time

from waiting import DEADLINE_S

from benchctl.api import Channel, Ready, Role
from benchctl.hosts.secrets import read_secrets


class End:
    """A command that runs, and the events of its parser so far."""

    def __init__(self, command):
        self.command = command
        self.events = []
        self.process = subprocess.Popen(
            command.argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
            env={**os.environ, **command.env, **read_secrets(command.secrets)},
        )  # fmt: skip
        self.channels = {
            self.process.stdout: Channel.STDOUT,
            self.process.stderr: Channel.STDERR,
        }

    def take(self, file):
        if data := os.read(file.fileno(), 65536):
            self.events += self.command.parser.feed(data, self.channels[file])
            return
        del self.channels[file]
        file.close()
        if not self.channels:
            self.events += self.command.parser.close(self.process.wait())


def drive(ends, until=lambda: False):
    """Read from all ends until a condition holds, or all have ended."""
    deadline = time.monotonic() + DEADLINE_S
    with selectors.DefaultSelector() as selector:
        for end in ends:
            for file in end.channels:
                selector.register(file, selectors.EVENT_READ, end)
        while selector.get_map() and not until():
            ready = selector.select(deadline - time.monotonic())
            assert ready, f"nothing within {DEADLINE_S} s"
            for key, _ in ready:
                key.data.take(key.fileobj)
                if key.fileobj.closed:
                    selector.unregister(key.fileobj)


def tool_of(backend):
    """Return the client's tool as it is on this machine."""
    argv = backend.probe(Role.CLIENT).argv
    probed = subprocess.run(argv, capture_output=True, text=True, check=False)
    return backend.read_probe(Role.CLIENT, probed.returncode, probed.stdout + probed.stderr)


class Bench:
    """Starts both ends of a flow, and ends what a test leaves behind; a subclass makes flows."""

    backend = None

    def __init__(self, port):
        self.port = port
        self.ends = []

    def start(self, command):
        self.ends.append(End(command))
        return self.ends[-1]

    def server(self, flow):
        server = self.start(self.backend.server(flow))
        drive([server], until=lambda: server.events)
        assert server.events[0] == Ready()
        return server

    def both(self, flow):
        """Start a server, and its client when it is ready; returns the client and the server."""
        server = self.server(flow)
        return self.start(self.backend.client(flow)), server

    def run(self, *args, **parameters):
        """Measure; returns the events of the client and of the server."""
        client, server = self.both(self.flow(*args, **parameters))
        drive([client, server])
        return client.events, server.events

    def close(self):
        for end in self.ends:
            if end.process.poll() is None:
                end.process.kill()
                end.process.wait()
            for file in end.channels:
                file.close()
