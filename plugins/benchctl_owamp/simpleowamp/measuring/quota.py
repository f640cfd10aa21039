"""The limits of a server, and their use by its clients: sessions, rates, packets, time; no I/O.

`addresses.origin_of` identifies a client. A claim is of one test session, in either direction: what
it sends through the network counts the same. Its packets count until their records are dropped,
because these take memory.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from benchctl_standalone.addresses import Network

from ..protocol.layouts import TEST, TEST_SECURE
from ..protocol.messages import OPEN, Accept, SessionRequest
from ..protocol.timestamps import UNITS_PER_S

# IPv6 and UDP; that of IPv4 is smaller, and a limit need not tell them apart.
HEADERS_BYTES = 48


class Limits(NamedTuple):
    """The limits of a server: of one client, and of all together.

    A client is an IPv4 address or an IPv6 /64. The defaults let one client measure as most do, up
    to a hundred paths at a time, and keep what all may cause well below a usual port and memory:
    4,000,000 packets are 140 MB of records. ``client_rate_pps`` is of what arrives for a reflector:
    a hundred paths with 10 packets/s each, twice, and a fifth of what one core answers, so that a
    client leaves the others most of it. ``duration_s`` is of one session. ``idle_s`` is how
    long a client may be silent when it should speak. ``keep_s`` is how long a session can be
    fetched after its end. Without ``networks`` every client is accepted.
    """

    client_sessions: int = 128
    sessions: int = 512
    client_rate_bps: float = 10e6
    client_rate_pps: int = 2000
    rate_bps: float = 100e6
    client_packets: int = 1_000_000
    packets: int = 4_000_000
    duration_s: float = 3600.0
    idle_s: float = 60.0
    keep_s: float = 600.0
    networks: tuple[Network, ...] = ()


class Claim(NamedTuple):
    """What one test session needs."""

    origin: bytes
    rate_bps: float
    packets: int


def duration_s(request: SessionRequest) -> float:
    """Return how long the packets of a session take to send, on average."""
    mean = sum(slot.parameter for slot in request.slots) / max(len(request.slots), 1)
    return request.packet_count * mean / UNITS_PER_S


def rate_bps(request: SessionRequest, mode: int) -> float:
    """Return the rate of a session, by the shortest of its intervals: no burst is for free."""
    least = min((slot.parameter for slot in request.slots), default=0)
    layout = TEST if mode == OPEN else TEST_SECURE
    packet_bits = 8 * (HEADERS_BYTES + layout.size + request.padding_bytes)
    return packet_bits * UNITS_PER_S / least if least else math.inf


class _Share:
    """The claims of one client, or of all."""

    def __init__(self) -> None:
        self.sessions = 0
        self.rate_bps = 0.0
        self.packets = 0

    def fits(self, claim: Claim, sessions: int, rate_bps: float, packets: int) -> bool:
        return (
            self.sessions + 1 <= sessions
            and self.rate_bps + claim.rate_bps <= rate_bps
            and self.packets + claim.packets <= packets
        )


class Quota:
    """The claims of all clients. The server asks before it accepts a session."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._all = _Share()
        self._shares: dict[bytes, _Share] = {}

    @property
    def sessions(self) -> int:
        """The sessions that run."""
        return self._all.sessions

    def take(self, claim: Claim, request: SessionRequest) -> Accept:
        """Hold a claim; anything but OK says why not (RFC 4656, section 3.3)."""
        limits = self._limits
        per_client = limits.client_sessions, limits.client_rate_bps, limits.client_packets
        together = limits.sessions, limits.rate_bps, limits.packets
        unused = _Share()
        if duration_s(request) > limits.duration_s or not (
            unused.fits(claim, *per_client) and unused.fits(claim, *together)
        ):
            return Accept.PERMANENT_LIMIT
        share = self._shares.get(claim.origin) or _Share()
        if not share.fits(claim, *per_client) or not self._all.fits(claim, *together):
            return Accept.TEMPORARY_LIMIT
        self._shares[claim.origin] = share
        for held in (share, self._all):
            held.sessions += 1
            held.rate_bps += claim.rate_bps
            held.packets += claim.packets
        return Accept.OK

    def end(self, claim: Claim) -> None:
        """Release all of a claim but the packets: the session has ended."""
        for held in (self._shares[claim.origin], self._all):
            held.sessions -= 1
            # Sums of fractions may leave a rest; without sessions there is no rate.
            held.rate_bps = max(held.rate_bps - claim.rate_bps, 0.0) if held.sessions else 0.0

    def forget(self, claim: Claim) -> None:
        """Release the packets of a claim that has ended: nothing of them is kept."""
        share = self._shares[claim.origin]
        for held in (share, self._all):
            held.packets -= claim.packets
        if not share.sessions and not share.packets:
            del self._shares[claim.origin]
