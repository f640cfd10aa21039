"""The program: reads the flags, runs one end, and ends with a documented exit code.

0 done; 1 the measurement failed; 2 the command line is wrong; 130 interrupted (what was measured
is shown). A server that is asked to end by SIGINT or SIGTERM ends with 0.
"""

from __future__ import annotations

import argparse
import socket
from collections.abc import Sequence

from .errors import Problem
from .flags import parse_flags
from .output import EventsOutput, JsonOutput, Output, TextOutput
from .plain_client import run_plain_client
from .server import Server
from .settings import Settings
from .sockets import connect, listen
from .waker import Waker

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run simpleperf; returns the exit code."""
    flags = parse_flags(arguments)
    output = _output(flags)
    waker = Waker()
    waker.catch_signals()
    try:
        if flags.server:
            listener = listen(flags.bind or "127.0.0.1", flags.port)
            Server(listener, output, waker, flags.interval or 0.0, flags.one_off).run()
            return 0
        run_plain_client(_connect_all(flags), _settings(flags), output, waker)
    except Problem as problem:
        output.failed(problem)
        return 1
    return 130 if waker.interrupted else 0


def _output(flags: argparse.Namespace) -> Output:
    if flags.events:
        return EventsOutput()
    return JsonOutput() if flags.json else TextOutput(flags.format)


def _settings(flags: argparse.Namespace) -> Settings:
    return Settings(
        streams=flags.parallel,
        duration_s=None if flags.num is not None else 10.0 if flags.time is None else flags.time,
        total_bytes=flags.num,
        interval_s=flags.interval or 0.0,
    )


def _connect_all(flags: argparse.Namespace) -> list[socket.socket]:
    source = (flags.bind, 0) if flags.bind else None
    return [connect(flags.serverip, flags.port, 0, source) for _ in range(flags.parallel)]
