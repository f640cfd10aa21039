"""The program: reads the flags, runs one end, and ends with a documented exit code.

0 done; 1 the measurement failed; 2 the command line is wrong; 130 interrupted (what was measured
is shown). A server that is asked to end by SIGINT or SIGTERM ends with 0.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from benchctl_standalone.background import background_output
from benchctl_standalone.bundle import program_text
from benchctl_standalone.ending import INTERRUPTED, exit_code
from benchctl_standalone.waker import Waker

from . import __version__
from .measuring.sockets import listen
from .program.control_client import run_control_client
from .program.flags import asked_of, limits_of, parse_flags, settings_of, target_of
from .program.output import EventsOutput, JsonOutput, ResultOutput, TextOutput
from .program.plain_client import run_plain_client
from .program.server import Server
from .protocol.auth import read_key

# Streams take the interpreter lock after every system call. While another thread computes figures
# they would wait Python's 5 ms for it, which is long enough to fill a socket's buffer.
_SWITCH_S = 1e-4

_ABOUT = """\
simpleperf {version}: measures what a network carries. One file, nothing but Python 3.9 or newer.

    python3 -I simpleperf.py -s -b 0.0.0.0                the server; without -b for this host only
    python3 -I simpleperf.py -c -I SERVER                 the client
    ssh HOST python3 -I - -s -b 0.0.0.0 < simpleperf.py   a server on a host that has only Python"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run simpleperf; returns the exit code."""
    flags = parse_flags(arguments)
    if flags.self:
        sys.stdout.write(program_text(__package__, _ABOUT.format(version=__version__)))
        return 0
    output = _output(flags)
    sys.setswitchinterval(_SWITCH_S)
    waker = Waker()
    waker.catch_signals()

    def act() -> int:
        if flags.server:
            with background_output("simpleperf"):
                _serve(flags, output, waker)
            return 0
        _measure(flags, output, waker)
        return INTERRUPTED if waker.interrupted else 0

    return exit_code(act, output.failed)


def _output(flags: argparse.Namespace) -> ResultOutput:
    if flags.events:
        return EventsOutput()
    return JsonOutput(flags.server) if flags.json else TextOutput(flags.format)


def _serve(flags: argparse.Namespace, output: ResultOutput, waker: Waker) -> None:
    key = read_key(flags.key_file)
    listener, datagrams = listen(target_of(flags))
    if datagrams is None:
        output.warning("the port is in use for UDP: TCP only")
    limits = limits_of(flags)
    Server(
        listener,
        datagrams,
        output,
        waker,
        limits,
        key,
        flags.interval,
        flags.one_off,
        flags.pause_reading,
    ).run()


def _measure(flags: argparse.Namespace, output: ResultOutput, waker: Waker) -> None:
    target, settings = target_of(flags), settings_of(flags)
    if flags.plain:
        run_plain_client(target, settings, output, waker, flags.start_at)
    else:
        key = read_key(flags.key_file)
        start, asked, probe_s = flags.start_at, asked_of(flags), flags.probe
        run_control_client(target, settings, output, waker, key, start, asked, probe_s)
