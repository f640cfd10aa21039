"""The command line: the flags of the first simpleperf, and what has joined them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Callable

from . import __version__
from .settings import DEFAULT_PORT
from .units import BYTE_UNITS, parse_seconds, parse_size

__all__ = ["parse_flags"]


def _quantity(parse: Callable[[str], float]) -> Callable[[str], float]:
    def convert(text: str) -> float:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return convert


def _count(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


def _port(text: str) -> int:
    if not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 0 to 65535")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="simpleperf",
        description="Measure what a network carries: a server at one end, a client at the other.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    role = parser.add_mutually_exclusive_group(required=True)
    role.add_argument("-s", "--server", action="store_true", help="run as the server")
    role.add_argument("-c", "--client", action="store_true", help="run as the client")
    add("--version", action="version", version=f"simpleperf {__version__}")
    add("-b", "--bind", metavar="HOST", help="address to bind (server default: 127.0.0.1)")
    add("-p", "--port", type=_port, default=DEFAULT_PORT, help="port (default: %(default)s)")
    add(
        "-f",
        "--format",
        choices=[unit for unit in BYTE_UNITS if unit != "GB"],
        help="show transfers in this unit (1 KB = 1000 B) and rates in Mbps",
    )
    add(
        "-I",
        "--serverip",
        metavar="HOST",
        default="127.0.0.1",
        help="the server's address (default: %(default)s)",
    )
    add("-t", "--time", type=_quantity(parse_seconds), metavar="SECONDS", help="how long (10 s)")
    add(
        "-i",
        "--interval",
        type=_quantity(parse_seconds),
        metavar="SECONDS",
        help="show figures every so often",
    )
    add(
        "-n",
        "--num",
        type=_quantity(parse_size),
        metavar="BYTES",
        help="send so many bytes instead, shared by the connections",
    )
    add("-P", "--parallel", type=_count, default=1, metavar="N", help="parallel connections")
    add("--plain", action="store_true", help="speak the plain protocol of the first simpleperf")
    add("--one-off", action="store_true", help="server: end after one measurement")
    add("--json", action="store_true", help="print one JSON object")
    add("--events", action="store_true", help="print a JSON line for each interval")
    return parser  # fmt: skip


def parse_flags(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line; a wrong one ends the program with exit code 2."""
    parser = _parser()
    flags = parser.parse_args(arguments)
    if flags.time is not None and flags.num is not None:
        parser.error("-t and -n exclude each other")
    return flags
