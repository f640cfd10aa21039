"""A run on hosts that SSH reaches, as its command reports it event by event."""

import json
import os
import threading

from waiting import wait_until

MAIN = """
[hosts.paris]
ssh = "paris"

[hosts.tokyo]
ssh = "tokyo"

[flows.main]
backend = "simpleperf"
from = "paris"
to = "tokyo"
duration = "1s"
interval = "100ms"
rate = "2Mbit"
"""


class Measured:
    """A run in progress; its lab is that of the test, and its store lies beside the profile."""

    def __init__(self, lab, profile, options):
        self.store = str(profile.with_suffix(".sqlite"))
        self.process = lab.start(
            "run", str(profile), "--events", "--quiet", *options,
            env={**os.environ, "BENCHCTL_STORE": self.store},
        )  # fmt: skip
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
