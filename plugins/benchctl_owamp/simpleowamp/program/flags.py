"""The command line of simpleowamp."""

from __future__ import annotations

import argparse
import re
import socket
from collections.abc import Sequence
from typing import Any, Callable

from benchctl_standalone.arguments import dscp, network, quantity, whole
from benchctl_standalone.sockets import Target
from benchctl_standalone.units import parse_rate, parse_seconds

from .. import __version__
from ..measuring.clock import SECOND_NS, Clock
from ..measuring.quota import Limits
from ..protocol.messages import MODES
from ..protocol.schedule import EXPONENTIAL, FIXED, Slot
from ..protocol.timestamps import to_interval
from .client import Settings

# RFC 4656, section 3.1; RFC 5357, section 3.1, and RFC 8762, section 4.1.
OWAMP_PORT, TWO_WAY_PORT = 861, 862
PROTOCOLS = ("owamp", "twamp", "twamp-light", "stamp")
_SCHEDULES = {"exponential": EXPONENTIAL, "periodic": FIXED}
_DIRECTIONS = {"send": ("send",), "receive": ("receive",), "both": ("send", "receive")}
# Of protocols in which nobody agrees on a session, so on no keys.
_MODES_WITHOUT_TALK = {"twamp-light": ("open",), "stamp": ("open", "authenticated")}
# An IPv4 packet has 65535 octets, of which headers and the longest head of ours take 76.
_PADDING_MOST = 65000


def _signed(parse: Callable[[str], float]) -> Callable[[str], float]:
    def convert(text: str) -> float:
        sign = -1.0 if text.startswith("-") else 1.0
        return sign * parse(text[1:] if text[:1] in ("-", "+") else text)

    return convert


def _drift(text: str) -> float:
    """Parse ``1ms/min``: a time for each time; returns seconds per second. Raises ValueError."""
    change, per, each = text.partition("/")
    each_s = parse_seconds(each if re.match("[0-9]", each) else "1" + each) if per else 0.0
    if not each_s:
        raise ValueError(f"{text!r} is not a drift such as 1ms/min")
    return _signed(parse_seconds)(change) / each_s


def _ports(text: str) -> range:
    found = re.fullmatch("([0-9]{1,5})-([0-9]{1,5})", text)
    if not found or not 0 < int(found[1]) <= int(found[2]) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a range of ports such as 8760-9960")
    return range(int(found[1]), int(found[2]) + 1)


_SECONDS, _MOMENT = quantity(parse_seconds), quantity(parse_seconds, 1e-6)
_RATE = quantity(parse_rate, 1000)
_ANY_TIME, _ANY_DRIFT = quantity(_signed(parse_seconds), -1e6), quantity(_drift, -0.5)
_PORT = whole(0, 65535)


# One flag a line reads best.
# fmt: off
def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="simpleowamp",
        description="Measure the delay of each direction: a server at one end, ping at the other.",
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"simpleowamp {__version__}")
    parser.add_argument("--self", action="store_true", help="print this whole program as one file: "
                        "simpleowamp --self | ssh HOST python3 -I - serve -b 0.0.0.0")
    commands = parser.add_subparsers(dest="command", metavar="serve|ping")
    _server_flags(commands.add_parser("serve", help="answer clients", allow_abbrev=False,
                                      description="Answer clients: the far end of a measurement."))
    _client_flags(commands.add_parser("ping", help="measure", allow_abbrev=False,
                                      description="Measure the path to a server and back."))
    return parser


def _common_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("-p", "--port", type=_PORT, metavar="PORT",
        help=f"the server's port (default: {OWAMP_PORT} of owamp, else {TWO_WAY_PORT}); UDP of "
        "twamp-light and stamp, else TCP")
    add("--protocol", choices=PROTOCOLS, default=PROTOCOLS[0], help="owamp measures each "
        "direction by itself, the others a round trip and its two halves (default: %(default)s)")
    add("-4", dest="family", action="store_const", const=socket.AF_INET, help="IPv4 only")
    add("-6", dest="family", action="store_const", const=socket.AF_INET6, help="IPv6 only")
    add("--test-ports", type=_ports, metavar="LOW-HIGH",
        help="UDP ports of this end's test packets (default: any)")
    add = parser.add_argument_group("experiments: a clock that is wrong on purpose").add_argument
    add("--clock-offset", type=_ANY_TIME, default=0.0, metavar="TIME",
        help="how much this end's clock is ahead, such as 55ms; --clock-offset=-55ms is behind")
    add("--clock-drift", type=_ANY_DRIFT, default=0.0, metavar="TIME/TIME",
        help="how much it gains, such as 1ms/min")
    add("--clock-zero", type=quantity(float), metavar="EPOCH",
        help="when the drift began, in seconds since 1970 (default: now)")


def _server_flags(parser: argparse.ArgumentParser) -> None:
    limits = Limits()
    add = parser.add_argument
    add("-b", "--bind", metavar="ADDRESS",
        help="address to listen on (default: 127.0.0.1, so that only this host can reach it)")
    add("--users", metavar="FILE",
        help="file with a user and a passphrase a line: only they are served, in the modes "
        "authenticated and encrypted")
    add("--key-file", metavar="FILE", help="file with the key of stamp (or SIMPLEOWAMP_KEY): only "
        "packets that are signed with it are answered")
    add("--open", action="store_true", help="serve everybody in the open mode, beside --users")
    _common_flags(parser)
    add = parser.add_argument_group("limits").add_argument
    add("--allow", type=network, action="append", default=[], metavar="NETWORK",
        help="serve clients of this network only, such as 192.0.2.0/24; repeatable")
    add("--max-sessions", type=whole(1, 10**5), default=limits.sessions, metavar="N",
        help="sessions at a time; a direction is one (default: %(default)s)")
    add("--max-sessions-per-client", type=whole(1, 10**5), default=limits.client_sessions,
        metavar="N", help="of one client, an IPv4 address or an IPv6 /64 (default: %(default)s)")
    add("--max-rate", type=_RATE, default=limits.rate_bps, metavar="BITS",
        help="rate of all sessions together (default: 100M)")
    add("--max-rate-per-client", type=_RATE, default=limits.client_rate_bps, metavar="BITS",
        help="of one client (default: 10M)")
    add("--max-packet-rate-per-client", type=whole(1, 10**6), default=limits.client_rate_pps,
        metavar="N", help="packets/s of one client that a reflector of twamp, twamp-light or stamp "
        "looks at (default: %(default)s)")
    add("--max-packets", type=whole(1, 10**9), default=limits.packets, metavar="N",
        help="packets of all sessions that run or can be fetched (default: %(default)s)")
    add("--max-packets-per-client", type=whole(1, 10**9), default=limits.client_packets,
        metavar="N", help="of one client (default: %(default)s)")
    add("--max-time", type=_MOMENT, default=limits.duration_s, metavar="SECONDS",
        help="duration of a session (default: %(default)g)")
    add("--idle", type=_MOMENT, default=limits.idle_s, metavar="SECONDS",
        help="how long a client may be silent when it should speak (default: %(default)g)")


def _client_flags(parser: argparse.ArgumentParser) -> None:
    settings = Settings()
    add = parser.add_argument
    add("server", metavar="SERVER", help="the server's name or address")
    add("--direction", choices=tuple(_DIRECTIONS), default="both",
        help="direction of the packets, seen from here (default: %(default)s)")
    add("-c", "--count", type=whole(1, 10**6), default=settings.packet_count, metavar="COUNT",
        help="packets in each direction (default: %(default)s)")
    add("-i", "--interval", type=_MOMENT, default=settings.interval_s, metavar="SECONDS",
        help="mean time between packets (default: %(default)g)")
    add("--schedule", choices=tuple(_SCHEDULES), default="exponential",
        help="distribution of that time (default: %(default)s)")
    add("-s", "--padding", type=whole(0, _PADDING_MOST), default=0, metavar="BYTES",
        help="octets added to each packet (default: %(default)s)")
    add("-L", "--timeout", type=_MOMENT, default=settings.timeout_s, metavar="SECONDS",
        help="a packet that takes longer is lost (default: %(default)g)")
    add("--dscp", type=dscp, default=0, metavar="N", help="DSCP of the packets: 0 to 63, or such "
        "as ef")
    add("--mode", choices=tuple(MODES), default="open", help="protection of the conversation and "
        "the packets (default: %(default)s)")
    add("--user", default="", help="user of the modes authenticated and encrypted")
    add("--key-file", metavar="FILE", help="file with the passphrase (or SIMPLEOWAMP_KEY)")
    add("-b", "--bind", metavar="ADDRESS", help="address of this end")
    add("--device", metavar="NAME", help="network device of the conversation (Linux)")
    add("--start-at", type=quantity(float), metavar="EPOCH",
        help="start at this time, in seconds since 1970")
    add("--connect-timeout", type=_MOMENT, default=10.0, metavar="SECONDS",
        help="(default: %(default)g)")
    add("--json", action="store_true", help="print one JSON object a line")
    _common_flags(parser)
# fmt: on


def parse_flags(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line; an error ends the program with exit code 2."""
    parser = make_parser()
    flags = parser.parse_args(arguments)
    if not flags.self and flags.command is None:
        parser.error("serve or ping?")
    if flags.command is None:
        return flags
    if flags.port is None:
        flags.port = OWAMP_PORT if flags.protocol == "owamp" else TWO_WAY_PORT
    modes = _MODES_WITHOUT_TALK.get(flags.protocol)
    if flags.command == "ping" and modes is not None:
        if flags.mode not in modes:
            parser.error(f"{flags.protocol} has the modes {' and '.join(modes)} only")
    elif flags.command == "ping" and flags.mode != "open" and not flags.user:
        parser.error(f"the mode {flags.mode} needs --user")
    return flags


def target_of(flags: argparse.Namespace) -> Target:
    """Return where a server listens, or where a client connects."""
    family = flags.family or 0
    if flags.command == "serve":
        default = "::1" if family == socket.AF_INET6 else "127.0.0.1"
        return Target(flags.bind or default, flags.port, family)
    timeout_s = flags.connect_timeout
    return Target(flags.server, flags.port, family, flags.bind, 0, flags.device, timeout_s)


def clock_of(flags: argparse.Namespace) -> Clock:
    """Return the clock of this end."""
    zero_ns = None if flags.clock_zero is None else round(flags.clock_zero * SECOND_NS)
    return Clock(flags.clock_offset, flags.clock_drift, zero_ns)


def limits_of(flags: argparse.Namespace) -> Limits:
    """Return a server's limits."""
    return Limits(
        client_sessions=min(flags.max_sessions_per_client, flags.max_sessions),
        sessions=flags.max_sessions,
        client_rate_bps=min(flags.max_rate_per_client, flags.max_rate),
        rate_bps=flags.max_rate,
        client_rate_pps=flags.max_packet_rate_per_client,
        client_packets=min(flags.max_packets_per_client, flags.max_packets),
        packets=flags.max_packets,
        duration_s=flags.max_time,
        idle_s=flags.idle,
        networks=tuple(flags.allow),
    )


def settings_of(flags: argparse.Namespace, passphrase: bytes) -> Settings:
    """Return what a client measures."""
    slot = Slot(_SCHEDULES[flags.schedule], to_interval(round(flags.interval * SECOND_NS)))
    settings: dict[str, Any] = {name: getattr(flags, name) for name in ("protocol", "mode", "user")}
    return Settings(
        directions=_DIRECTIONS[flags.direction],
        packet_count=flags.count,
        interval_s=flags.interval,
        slots=(slot,),
        padding_bytes=flags.padding,
        timeout_s=flags.timeout,
        dscp=flags.dscp,
        passphrase=passphrase,
        start_at_s=flags.start_at,
        ports=flags.test_ports,
        **settings,
    )
