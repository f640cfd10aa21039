"""The settings of one measurement, as both ends know them, and the limits of a server."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from benchctl_standalone.addresses import Network
from benchctl_standalone.errors import Problem

from .checks import Check, choice, flag, integer, list_of, number, optional, text
from .intervals import SECOND_NS, Schedule

DEFAULT_PORT = 8088
STREAMS_LIMIT = 128
# The range of setsockopt: an int.
WINDOW_LIMIT = (1 << 31) - 1
TCP_LENGTH_BYTES = 128 * 1024
# The TCP payload of an Ethernet frame of 1500 bytes with timestamps; as UDP it fits, too.
UDP_LENGTH_BYTES = 1448
# A datagram starts with its number and its time.
UDP_LENGTH_LEAST = 16
UDP_LENGTH_MOST = 65507
# A UDP sender without a limit floods the network, so that must be requested explicitly.
UDP_RATE_BPS = 1e6
# Nothing moves in a pause, and after 30 s of that a sender gives up.
PAUSE_MOST_S = 20.0


class Pause(NamedTuple):
    """When a receiver stops reading, seconds after its first byte, and for how long."""

    at_s: float
    length_s: float


class MeasurementSettings(NamedTuple):
    """One measurement. ``None`` leaves a setting to the system.

    ``directions`` are seen from the client. Exactly one of ``duration_s`` and ``total_bytes`` is
    set; the bytes are divided among the streams of a direction. ``rate_bps`` is per stream.
    ``length_bytes`` is the size of one send over TCP, and the payload of a UDP datagram.
    """

    protocol: str = "tcp"
    directions: tuple[str, ...] = ("send",)
    streams: int = 1
    duration_s: float | None = 10.0
    total_bytes: int | None = None
    omit_s: float = 0.0
    interval_s: float = 1.0
    length_bytes: int = 128 * 1024
    window_bytes: int | None = None
    mss_bytes: int | None = None
    congestion_control: str | None = None
    no_delay: bool = False
    dscp: int | None = None
    rate_bps: float | None = None
    zero_copy: bool = False

    @classmethod
    def from_message(cls, members: Mapping[str, Any]) -> MeasurementSettings:
        """Take checked members of a ``test`` message. Raises Problem for a bad combination."""
        settings = cls(**{**members, "directions": tuple(members["directions"])})
        if not settings.directions or len(set(settings.directions)) != len(settings.directions):
            raise Problem("parameter", "directions must be send, receive or both")
        if (settings.duration_s is None) == (settings.total_bytes is None):
            raise Problem("parameter", "set a duration or a number of bytes")
        if settings.protocol == "udp":
            least, most = UDP_LENGTH_LEAST, UDP_LENGTH_MOST
            if not least <= settings.length_bytes <= most:
                raise Problem("parameter", f"a datagram has {least} to {most} bytes")
        return settings

    def schedule(self) -> Schedule:
        """Return when the intervals end."""
        return Schedule(
            round(self.omit_s * SECOND_NS),
            None if self.duration_s is None else round(self.duration_s * SECOND_NS),
            round(self.interval_s * SECOND_NS),
        )

    def share(self, stream: int) -> int:
        """Return how many bytes a stream sends; more than it can if time decides."""
        if self.total_bytes is None:
            return 1 << 62
        each, rest = divmod(self.total_bytes, self.streams)
        return each + (stream < rest)


def _interval(value: Any) -> float:
    return 0.0 if value == 0 else float(number(0.01, 86400)(value))


SETTINGS_CHECKS: Mapping[str, Check] = {
    "protocol": choice("tcp", "udp"),
    "directions": list_of(choice("send", "receive"), 2),
    "streams": integer(1, STREAMS_LIMIT),
    "duration_s": optional(number(0.001, 1e6)),
    "total_bytes": optional(integer(1, 1 << 53)),
    "omit_s": number(0, 3600),
    "interval_s": _interval,
    "length_bytes": integer(1, 1 << 26),
    "window_bytes": optional(integer(1, WINDOW_LIMIT)),
    "mss_bytes": optional(integer(88, 65535)),
    "congestion_control": optional(text(15, "[a-z0-9_-]+")),
    "no_delay": flag,
    "dscp": optional(integer(0, 63)),
    "rate_bps": optional(number(1000, 1e13)),
    "zero_copy": flag,
}


# UDP does not give way to other traffic as TCP does, so it is limited by default. One client may
# fill the port that most hosts have, and ten the port that most servers have.
_UDP_CLIENT_BPS = 1e9
_CLIENTS_TOGETHER = 10


class Limits(NamedTuple):
    """The limits of a server.

    ``clients`` limits the connections and streams of all clients together, ``client_places`` those
    of one: a thousand plain connections, and nobody has more than half. ``duration_s`` limits a
    whole test, omit included. ``rate_bps`` limits all streams of a client, ``all_rate_bps`` those
    of all clients; None leaves it to `rates`. ``idle_s`` is how long a peer may be silent when it
    should send. Clients outside ``networks`` are rejected; without any, nobody is.
    """

    clients: int = 2048
    duration_s: float = 3600.0
    rate_bps: float | None = None
    idle_s: float = 30.0
    client_places: int = 1024
    all_rate_bps: float | None = None
    networks: tuple[Network, ...] = ()

    def check(self, settings: MeasurementSettings) -> None:
        """Raise Problem if a test lasts longer than is allowed."""
        if settings.omit_s + (settings.duration_s or 0.0) > self.duration_s:
            raise Problem("refused", f"the server measures at most {self.duration_s:g} s")

    def rates(self, protocol: str) -> tuple[float, float]:
        """Return the limits of one client and of all together; infinite if unlimited."""
        one_bps = self.all_rate_bps if self.rate_bps is None else self.rate_bps
        if one_bps is None:
            one_bps = _UDP_CLIENT_BPS if protocol == "udp" else math.inf
        all_bps = self.all_rate_bps
        return one_bps, _CLIENTS_TOGETHER * one_bps if all_bps is None else all_bps
