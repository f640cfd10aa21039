"""Commands of a backend that run for real, with the parsers that read them."""

import os
import selectors
import subprocess
import time

from waiting import DEADLINE_S

from benchctl.api import Channel
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
