"""A server that prints nothing when it is ready: it is when its port listens."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchctl.api import listening
from benchctl.api.events import Event, Ready
from benchctl.api.flow import Command
from benchctl.api.parser import Channel, Parser

_SCRIPT = (sys.executable, "-I", "-S", str(Path(listening.__file__)))


def silent_server(command: Command, protocol: str, port: int) -> Command:
    """Return the command of a server that is ready when its ``port`` listens.

    ``protocol`` is ``"tcp"`` or ``"udp"``. The server's own parser gets what it prints, and need
    not yield `Ready`. Its host needs Linux, and Python 3.9 if it is remote. Raises ValueError for
    another protocol.
    """
    if protocol not in ("tcp", "udp"):
        raise ValueError(f"a server listens on tcp or udp, and not on {protocol}")
    argv = (*_SCRIPT, protocol, str(port), *command.argv)
    return replace(command, argv=argv, parser=_Watched(command.parser))


class _Watched(Parser):
    """The output of a watched server: the mark is its readiness, the rest is the server's own."""

    def __init__(self, own: Parser) -> None:
        self._own = own
        self._waiting = True
        self._held = b""

    def feed(self, data: bytes, channel: Channel = Channel.STDOUT) -> Sequence[Event]:
        if not self._waiting or channel is not Channel.STDOUT:
            return self._own.feed(data, channel)
        data = self._held + data
        before, mark, behind = data.partition(listening.MARK)
        if mark:
            self._waiting, self._held = False, b""
            return [Ready(), *self._own.feed(before + behind, channel)]
        # The mark may be split anywhere.
        start = next(at for at in range(len(data) + 1) if listening.MARK.startswith(data[at:]))
        self._held = data[start:]
        return self._own.feed(data[:start], channel) if start else ()

    def close(self, exit_code: int) -> Sequence[Event]:
        events = [*self._own.feed(self._held, Channel.STDOUT)] if self._held else []
        return [*events, *self._own.close(exit_code)]
