"""The program: reads the flags, runs one end, and ends with a documented exit code.

0 done; 1 the measurement failed; 2 the command line is wrong; 130 interrupted (what was measured
is shown). A server that is asked to end by SIGINT or SIGTERM ends with 0.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from benchctl_standalone.background import background_output
from benchctl_standalone.bundle import program_text
from benchctl_standalone.ending import INTERRUPTED, exit_code
from benchctl_standalone.errors import Problem, describe_os_error
from benchctl_standalone.saying import say
from benchctl_standalone.sockets import address_text, listener, resolve
from benchctl_standalone.waker import Waker

from . import __version__
from .measuring.channel import Channel, fork
from .measuring.clock import Clock
from .measuring.endpoint import open_endpoint
from .measuring.sender import run_sender
from .program.client import Client
from .program.flags import clock_of, limits_of, parse_flags, settings_of, target_of
from .program.output import JsonOutput, Output, TextOutput
from .program.reflecting import TwoWayServer, run_reflector
from .program.server import Server
from .program.two_way_client import TwoWayClient
from .protocol.ciphers import cbc
from .protocol.messages import OPEN
from .protocol.two_way import two_way_format

KEY_VARIABLE = "SIMPLEOWAMP_KEY"

_ABOUT = """\
simpleowamp {version}: measures one-way delay. One file, nothing but Python 3.9 or newer.

    python3 -I simpleowamp.py serve -b 0.0.0.0                the server; without -b for this host
    python3 -I simpleowamp.py ping SERVER                     the client
    ssh HOST python3 -I - serve -b 0.0.0.0 < simpleowamp.py   a server on a host with only Python"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run simpleowamp; returns the exit code."""
    flags = parse_flags(arguments)
    if flags.self:
        sys.stdout.write(program_text(__package__, _ABOUT.format(version=__version__)))
        return 0
    output: Output = JsonOutput() if flags.command == "ping" and flags.json else TextOutput()
    waker = Waker()
    waker.catch_signals()

    def act() -> int:
        if flags.command == "serve":
            _serve(flags, output, waker)
            return 0
        _ping(flags, output, waker)
        return INTERRUPTED if waker.interrupted else 0

    return exit_code(act, output.failed)


def _serve(flags: argparse.Namespace, output: Output, waker: Waker) -> None:
    if flags.protocol in ("twamp-light", "stamp"):
        _reflect(flags, output, waker)
        return
    passphrases = _read_users(flags.users)
    clock, target = clock_of(flags), target_of(flags)
    family, _, _, _, address = resolve(target.host, target.port, target.family, socket.AI_PASSIVE)[
        0
    ]
    kind = TwoWayServer if flags.protocol == "twamp" else Server
    with (
        listener(family, address) as door,
        _sender(clock) as channel,
        background_output("simpleowamp"),
    ):
        where = address_text(door.getsockname())
        say(f"simpleowamp {__version__} listens on {where}", sys.stdout)
        server = kind(
            door,
            channel,
            waker,
            output.warning,
            limits_of(flags),
            clock,
            passphrases,
            flags.open,
            flags.test_ports,
        )
        server.run()


def _reflect(flags: argparse.Namespace, output: Output, waker: Waker) -> None:
    """Answer whoever sends probes."""
    key = b""
    if flags.protocol == "stamp" and (flags.key_file or KEY_VARIABLE in os.environ):
        key = _read_passphrase(flags.key_file)
    form = two_way_format(flags.protocol, OPEN, None, b"", key)
    clock, target = clock_of(flags), target_of(flags)
    address = resolve(target.host, target.port, target.family, socket.AI_PASSIVE)[0][-1]
    with ExitStack() as stack:
        socks = [stack.enter_context(open_endpoint(address))]
        where = socks[0].getsockname()
        if where[0] == "::" and not flags.family:
            socks.append(stack.enter_context(open_endpoint(("0.0.0.0", where[1]))))
        stack.enter_context(background_output("simpleowamp"))
        say(f"simpleowamp {__version__} listens on {address_text(where)}", sys.stdout)
        run_reflector(socks, form, limits_of(flags), clock, waker, output.warning)


def _ping(flags: argparse.Namespace, output: Output, waker: Waker) -> None:
    passphrase = b"" if flags.mode == "open" else _read_passphrase(flags.key_file)
    clock = clock_of(flags)
    with _sender(clock) as channel:
        settings = settings_of(flags, passphrase)
        kind = Client if flags.protocol == "owamp" else TwoWayClient
        kind(target_of(flags), settings, channel, clock, output, waker).run()
        output.finished(clock.state())


@contextmanager
def _sender(clock: Clock) -> Iterator[Channel]:
    """Start the process that sends; it ends with the block."""
    channel, pid = fork(lambda theirs: run_sender(theirs, clock))
    try:
        yield channel
    finally:
        channel.close()
        os.waitpid(pid, 0)


def _read_users(path: str | None) -> dict[str, bytes]:
    """Return the users and their passphrases of a file. Raises Problem."""
    if path is None:
        return {}
    cbc(bytes(16))  # Without the library nobody could be served.
    users = {}
    for line in _read(path).splitlines():
        user, _, passphrase = line.strip().partition(b" ")
        if user and not user.startswith(b"#"):
            if not passphrase.strip():
                raise Problem("parameter", f"{path}: no passphrase for {user.decode()}")
            users[user.decode()] = passphrase.strip()
    return users


def _read_passphrase(path: str | None) -> bytes:
    """Return the passphrase of a file, or of the environment. Raises Problem."""
    found = os.environb.get(KEY_VARIABLE.encode(), b"") if path is None else _read(path)
    passphrase = found.strip()
    if not passphrase:
        raise Problem("parameter", f"this mode needs a passphrase: --key-file or {KEY_VARIABLE}")
    return passphrase


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(1 << 20)
    except OSError as error:
        raise Problem("parameter", f"{path}: {describe_os_error(error)}") from error
