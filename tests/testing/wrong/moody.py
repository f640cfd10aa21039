"""A backend whose commands depend on more than the flow, and whose probe fails."""

import os
from dataclasses import replace
from itertools import count
from pathlib import Path

from testing.sound import Sound

from benchctl.api import Direction, Probe, Role, Tool

CALLS = count()
HOSTNAME = Path("/etc/hostname")


class Moody(Sound):
    name = "moody"

    def client(self, flow):
        command = super().client(flow)
        if flow.direction is Direction.RECEIVE:
            words = {"one", "two", "three", "four", "five", "six", "seven", "eight"}
            return replace(command, env={"WORDS": " ".join(words)})
        if flow.source_address is not None:
            return replace(command, stop_signal=f"SIG{next(CALLS)}")
        if ":" in flow.address and HOSTNAME.exists():
            return replace(command, argv=(*command.argv, HOSTNAME.read_text()))
        return replace(command, argv=(*command.argv, os.environ.get("BENCHCTL_MOOD", "none")))

    def probe(self, role):
        program = "no-such-program" if role is Role.CLIENT else "/bin/sh"
        return Probe((program, "-c", "echo 1"), "")

    def read_probe(self, role, exit_code, output):
        if role is Role.SERVER:
            raise KeyError(output)
        return Tool("1.0")


BACKEND = Moody()
