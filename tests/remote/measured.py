"""A run on hosts that SSH reaches, as its command reports it event by event."""

import json
import os
import signal
import threading
from pathlib import Path

from waiting import wait_until

from benchctl.store.locks import Liveness

_HOSTS = """
[hosts.paris]
ssh = "paris"

[hosts.tokyo]
ssh = "tokyo"

[flows.main]
from = "paris"
to = "tokyo"
interval = "100ms"
"""
MAIN = f"""{_HOSTS}
backend = "simpleperf"
duration = "1s"
rate = "2Mbit"
"""
PING = f"""{_HOSTS}
backend = "ping"
count = 3
"""
"""A run whose tool needs little, for what does not depend on the tool."""


class Measured:
    """A run in progress; its lab is that of the test, and its store lies beside the profile."""

    def __init__(self, lab, profile, options):
        self.store = str(profile.with_suffix(".sqlite"))
        words = ("run", str(profile), "--events", "--quiet", *options)
        self.process = lab.start(*words, BENCHCTL_STORE=self.store)
        self.events, self.errors = [], []
        self._readers = [
            threading.Thread(target=self._read_events), threading.Thread(target=self._read_errors),
        ]  # fmt: skip
        for reader in self._readers:
            reader.start()

    def _read_events(self):
        for line in self.process.stdout:
            self.events.append(json.loads(line))

    def _read_errors(self):
        self.errors += self.process.stderr

    @property
    def runner(self):
        """Its runner's process, as it is numbered here."""
        pid = Liveness(Path(self.store)).runner_pid(1)
        assert pid
        return pid

    def interrupt(self):
        """Be the terminal of a Ctrl-C: all of the command's process group hear it."""
        os.killpg(self.process.pid, signal.SIGINT)

    def told(self):
        return [event["event"] for event in self.events], self.errors

    def of(self, kind):
        return [event for event in list(self.events) if event["event"] == kind]

    def until(self, kind, count=1):
        """Wait until so many events of a kind were reported; returns the last of them."""

        def reported():
            has_ended = not any(reader.is_alive() for reader in self._readers)
            found = self.of(kind)
            assert len(found) >= count or not has_ended, self.told()
            return found[count - 1 :]

        return wait_until(reported, self.told)[0]

    def end(self):
        """Wait for its end; returns its exit code."""
        code = self.process.wait()
        for reader in self._readers:
            reader.join()
        return code
