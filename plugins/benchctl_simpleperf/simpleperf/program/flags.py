"""The command line: the flags of the original simpleperf, and later ones."""

from __future__ import annotations

import argparse
import math
import socket
from collections.abc import Sequence
from typing import Any

from benchctl_standalone.arguments import dscp, network, quantity, whole
from benchctl_standalone.errors import Problem
from benchctl_standalone.sockets import Target
from benchctl_standalone.units import BYTE_UNITS, parse_rate, parse_seconds, parse_size

from .. import __version__
from ..protocol.settings import (
    DEFAULT_PORT,
    PAUSE_MOST_S,
    SETTINGS_CHECKS,
    STREAMS_LIMIT,
    TCP_LENGTH_BYTES,
    UDP_LENGTH_BYTES,
    UDP_RATE_BPS,
    Limits,
    MeasurementSettings,
    Pause,
)

_INTERVAL_LEAST_S = 0.01


_SIZE, _RATE = quantity(parse_size, 1), quantity(parse_rate, 1000)
_SECONDS, _MOMENT = quantity(parse_seconds), quantity(parse_seconds, 0.001)
_INTERVAL = quantity(parse_seconds, _INTERVAL_LEAST_S)
_PORT = whole(0, 65535)


def _pause(text: str) -> Pause:
    """A pause: when it begins and how long it lasts, such as 5:1.5 or 5s:300ms."""
    at, _, length = text.partition(":")
    pause = Pause(_SECONDS(at), _MOMENT(length))
    if pause.length_s > PAUSE_MOST_S:
        what = f"{text!r} pauses for more than {PAUSE_MOST_S:g} s"
        raise argparse.ArgumentTypeError(what)
    return pause


# One flag a line reads best.
# fmt: off
def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="simpleperf",
        description="Measure what a network carries: a server at one end, a client at the other.",
        epilog="Sizes: B, KB, MB, GB (1000) or K, M, G (1024). Rates: 100M is 100 Mbit/s.",
        allow_abbrev=False,
        # Programs read the version, so it is one line however narrow the terminal is.
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    role = parser.add_mutually_exclusive_group(required=True)
    role.add_argument("-s", "--server", action="store_true", help="run as the server")
    role.add_argument("-c", "--client", action="store_true", help="run as the client")
    role.add_argument("--self", action="store_true", help="print this whole program as one file: "
                      "simpleperf --self | ssh HOST python3 -I - -s -b 0.0.0.0")
    role.add_argument("--version", action="version", version=f"simpleperf {__version__}")

    add = parser.add_argument_group("both ends").add_argument
    add("-p", "--port", type=_PORT, default=DEFAULT_PORT, metavar="PORT",
        help="the server's port, TCP and UDP (default: %(default)s)")
    add("-b", "--bind", metavar="HOST",
        help="address to bind (server: 127.0.0.1, so that only this host can reach it)")
    add("-4", dest="family", action="store_const", const=socket.AF_INET, help="IPv4 only")
    add("-6", dest="family", action="store_const", const=socket.AF_INET6, help="IPv6 only")
    add("-i", "--interval", type=_SECONDS, default=0.0, metavar="SECONDS",
        help="report figures at this interval, at least 0.01")
    add("-f", "--format", choices=[unit for unit in BYTE_UNITS if unit != "GB"],
        help="unit of transfers (1 KB = 1000 B); rates are in Mbps")
    add("--json", action="store_true",
        help="print one JSON object for each measurement, a server on one line")
    add("--events", action="store_true", help="print a JSON line for each interval")
    add("--key-file", metavar="FILE", help="file with the shared key (or SIMPLEPERF_KEY)")

    add = parser.add_argument_group("client").add_argument
    add("-I", "--serverip", metavar="HOST", default="127.0.0.1",
        help="the server's name or address (default: %(default)s)")
    add("-t", "--time", type=_MOMENT, metavar="SECONDS", help="how long to measure (default: 10)")
    add("-n", "--num", type=_SIZE, metavar="BYTES", help="bytes to send instead, over all streams")
    add("-k", "--blocks", type=whole(1, 10**9), metavar="N",
        help="blocks of --length to send instead, over all streams")
    add("-P", "--parallel", type=whole(1, STREAMS_LIMIT), default=1, metavar="N",
        help="parallel streams")
    add("-O", "--omit", type=_SECONDS, default=0.0, metavar="SECONDS", help="leave out this much "
    "at the start")
    add("-u", "--udp", action="store_true", help="UDP instead of TCP")
    add("-R", "--reverse", action="store_true", help="receive instead of sending")
    add("--both", action="store_true", help="send and receive at once")
    add("-r", "--rate", type=_RATE, metavar="BITS",
        help="rate of each stream, evenly paced; 0 or unlimited: no limit (default: unlimited for "
        "TCP, 1M for UDP)")
    add("-l", "--length", type=_SIZE, metavar="BYTES",
        help=f"payload of a datagram (default: {UDP_LENGTH_BYTES}) or of one TCP send (128K)")
    add("-w", "--window", type=_SIZE, metavar="BYTES", help="socket buffers at both ends")
    add("--client-window", type=_SIZE, metavar="BYTES", help="the client's (default: --window)")
    add("--server-window", type=_SIZE, metavar="BYTES", help="the server's (default: --window)")
    add("-M", "--mss", type=whole(88, 65535), metavar="BYTES", help="TCP's segment size")
    add("-C", "--congestion", metavar="NAME", help="TCP's congestion control")
    add("-N", "--no-delay", action="store_true", help="send small segments at once (no Nagle)")
    add("--dscp", type=dscp, metavar="N", help="DSCP of the packets: 0 to 63, or such as ef")
    add("-Z", "--zero-copy", action="store_true",
        help="send without copying, and drop what is received unread")
    add("--device", metavar="NAME", help="network device to use (Linux)")
    add("--source-port", type=_PORT, default=0, metavar="PORT",
        help="source port of the first stream; each further stream uses the next")
    add("--start-at", type=quantity(float), metavar="EPOCH",
        help="start at this wall-clock time, in seconds since 1970")
    add("--connect-timeout", type=_MOMENT, default=10.0, metavar="SECONDS",
        help="connection timeout (default: %(default)g)")
    add("--probe", type=_INTERVAL, default=0.0, metavar="SECONDS",
        help="open a new connection at this interval beside a TCP load, and estimate "
        "responsiveness; needs --interval")
    add("--plain", action="store_true",
        help="use the plain protocol of the first simpleperf (chunks, BYE, ACK: BYE)")

    limits = Limits()
    add = parser.add_argument_group("server").add_argument
    add("--one-off", action="store_true", help="end after one measurement")
    add("--max-clients", type=whole(1, 10**6), default=limits.clients, metavar="N",
        help="connections and streams of all clients (default: %(default)s)")
    add("--max-per-client", type=whole(1, 10**6), default=limits.client_places, metavar="N",
        help="connections and streams of one client, an IPv4 address or an IPv6 /64 (default: "
        "%(default)s)")
    add("--max-time", type=_MOMENT, default=limits.duration_s, metavar="SECONDS",
        help="maximum duration of a measurement (default: %(default)g)")
    add("--max-rate", type=_RATE, metavar="BITS",
        help="maximum rate of one client, all streams together (default: 1G over UDP, any over "
        "TCP)")
    add("--max-total-rate", type=_RATE, metavar="BITS",
        help="maximum rate of all clients together (default: ten times --max-rate)")
    add("--allow", type=network, action="append", default=[], metavar="NETWORK",
        help="accept clients from this network only, such as 192.0.2.0/24; repeatable")
    add("--idle", type=_MOMENT, default=limits.idle_s, metavar="SECONDS",
        help="idle timeout of a client (default: %(default)g)")
    add("--pause-reading", type=_pause, action="append", default=[], metavar="AT:LENGTH",
        help="for experiments: stop reading TCP data AT seconds after the first byte, for LENGTH "
        f"seconds, at most {PAUSE_MOST_S:g}; repeatable")
    return parser
# fmt: on


def parse_flags(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line; an error ends the program with exit code 2."""
    parser = _parser()
    flags = parser.parse_args(arguments)
    if sum(given is not None for given in (flags.time, flags.num, flags.blocks)) > 1:
        parser.error("-t, -n and -k exclude each other")
    if flags.reverse and flags.both:
        parser.error("-R and --both exclude each other")
    if flags.json and flags.events:
        parser.error("--json and --events exclude each other")
    if 0 < flags.interval < _INTERVAL_LEAST_S:
        parser.error(f"an interval is at least {_INTERVAL_LEAST_S} s")
    if flags.probe and (flags.udp or not flags.interval):
        parser.error("--probe needs a load over TCP, and --interval")
    flags.pause_reading.sort()
    for earlier, later in zip(flags.pause_reading, flags.pause_reading[1:]):
        if later.at_s < earlier.at_s + earlier.length_s:
            parser.error(f"the pause at {later.at_s:g} s begins before the one before it has ended")
    if flags.plain:
        _refuse_beside_plain(parser, flags)
    if flags.client:
        try:
            _check(settings_of(flags))
            _check(asked_of(flags))
        except Problem as problem:
            parser.error(problem.message)
    return flags


def _check(settings: MeasurementSettings) -> None:
    """Check the settings as the server will, so that errors are reported before connecting."""
    members = {**settings._asdict(), "directions": list(settings.directions)}
    for name, check in SETTINGS_CHECKS.items():
        check(members[name])
    MeasurementSettings.from_message(members)


def _refuse_beside_plain(parser: argparse.ArgumentParser, flags: argparse.Namespace) -> None:
    beyond: dict[str, Any] = {
        "-u": flags.udp,
        "-R": flags.reverse,
        "--both": flags.both,
        "-O": flags.omit,
        "-r": flags.rate,
        "-l": flags.length,
        "-k": flags.blocks,
        "-Z": flags.zero_copy,
        "--server-window": flags.server_window,
        "--key-file": flags.key_file,
        "--probe": flags.probe,
    }
    for name, given in beyond.items():
        if given:
            parser.error(f"the plain protocol has no {name}")


def settings_of(flags: argparse.Namespace) -> MeasurementSettings:
    """Return the settings of a client's own end."""
    length = flags.length or (UDP_LENGTH_BYTES if flags.udp else TCP_LENGTH_BYTES)
    total = flags.blocks * length if flags.blocks else flags.num
    default_s = 10.0 if total is None else None
    rate_bps = flags.rate or (UDP_RATE_BPS if flags.udp else math.inf)
    return MeasurementSettings(
        protocol="udp" if flags.udp else "tcp",
        directions=("send", "receive") if flags.both else ("receive" if flags.reverse else "send",),
        streams=flags.parallel,
        duration_s=default_s if flags.time is None else flags.time,
        total_bytes=total,
        omit_s=flags.omit,
        interval_s=flags.interval,
        length_bytes=length,
        window_bytes=flags.client_window or flags.window,
        mss_bytes=flags.mss,
        congestion_control=flags.congestion,
        no_delay=flags.no_delay,
        dscp=flags.dscp,
        rate_bps=None if rate_bps == math.inf else rate_bps,
        zero_copy=flags.zero_copy,
    )


def asked_of(flags: argparse.Namespace) -> MeasurementSettings:
    """Return the settings that a client asks of its server."""
    return settings_of(flags)._replace(window_bytes=flags.server_window or flags.window)


def target_of(flags: argparse.Namespace) -> Target:
    """Return the endpoint of the flags: the server's own address, or that of a client's server."""
    family = flags.family or 0
    if flags.server:
        default = "::1" if family == socket.AF_INET6 else "127.0.0.1"
        return Target(flags.bind or default, flags.port, family)
    return Target(
        flags.serverip,
        flags.port,
        family,
        flags.bind,
        flags.source_port,
        flags.device,
        flags.connect_timeout,
    )


def limits_of(flags: argparse.Namespace) -> Limits:
    """Return the limits of a server's flags."""
    return Limits(
        clients=flags.max_clients,
        client_places=flags.max_per_client,
        duration_s=flags.max_time,
        rate_bps=flags.max_rate,
        all_rate_bps=flags.max_total_rate,
        idle_s=flags.idle,
        networks=tuple(flags.allow),
    )
