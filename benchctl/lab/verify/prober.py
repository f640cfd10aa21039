"""A `probe` at one end of a link, from the side that controls it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from benchctl.errors import LabError
from benchctl.hosts.log import command_log
from benchctl.lab.lab import Lab
from benchctl.lab.topology.model import Interface
from benchctl.lab.verify import probe

_PROBE = (sys.executable, "-I", "-S", str(Path(probe.__file__)))
# A probe starts in a tenth of a second, and no request takes longer by itself than its own times:
# the rest is for slow machines.
_PATIENCE_S = 20.0


class Prober:
    """A probe that runs on the node of an interface of a lab; a context manager."""

    def __init__(self, lab: Lab, end: Interface) -> None:
        self._lab = lab
        self._node = end.node
        self._address = end.ip
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115
        argv = (*_PROBE, end.ip)
        self._process = subprocess.Popen(
            [*lab.nodes[end.node].prefix, *argv],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr,
            start_new_session=True,
        )  # fmt: skip
        self._log_end = command_log().started(end.node, argv, self._process.pid)
        self._said = b""
        self._ports: list[int] = []

    def __enter__(self) -> Prober:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        if error is not None:
            self._process.kill()
        self._log_end(self._process.wait())
        self._process.stdout.close()
        self._stderr.close()

    @property
    def udp(self) -> dict[str, Any]:
        """Where it receives datagrams, as a request to another probe names it."""
        return {"to": self._address, "port": self._known_ports()[0]}

    @property
    def tcp(self) -> dict[str, Any]:
        """Where it accepts connections."""
        return {"to": self._address, "port": self._known_ports()[1]}

    def order(self, do: str, **values: Any) -> None:
        """Send a request; `answer` waits for its result. Raises LabError."""
        self._known_ports()
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **values}).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._failure("it ended") from None

    def answer(self) -> Any:
        """Return its next answer. Raises LabError."""
        assert self._process.stdout is not None
        end_s = time.monotonic() + _PATIENCE_S
        while b"\n" not in self._said:
            wait_s = end_s - time.monotonic()
            if wait_s < 0 or not wait([self._process.stdout.fileno()], wait_s):
                raise self._failure(f"no answer within {_PATIENCE_S:.0f} s")
            data = os.read(self._process.stdout.fileno(), 1 << 20)
            if not data:
                raise self._failure("it ended")
            self._said += data
        line, _, self._said = self._said.partition(b"\n")
        return json.loads(line)

    def ask(self, do: str, **values: Any) -> Any:
        """Send a request and return the answer. Raises LabError."""
        self.order(do, **values)
        return self.answer()

    def _known_ports(self) -> list[int]:
        if not self._ports:
            self._ports = self.answer()
        return self._ports

    def _failure(self, reason: str) -> LabError:
        # A probe fails with its lab, whose error is then the cause.
        self._lab.check()
        self._stderr.seek(0)
        lines = self._stderr.read().decode("utf-8", "replace").strip().splitlines()
        return LabError(f"cannot measure from {self._node}: {(lines or [reason])[-1]}")
