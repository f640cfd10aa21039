"""The use of a server's limits by its clients: places, and requested rates; no I/O.

`addresses.origin_of` identifies a client. A place is a connection or a stream.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from benchctl_standalone.errors import Problem
from benchctl_standalone.units import scaled

from ..protocol.settings import Limits, MeasurementSettings

# A rate holds over this time, with this slack, plus the amount that one stream sends at a time.
_RATE_SPAN_S = 1.0
_RATE_MARGIN = 1.1
_RATE_SLACK_BYTES = 1 << 20


class Claim(NamedTuple):
    """The claim of one measurement; ``rate_bps`` is infinite if unlimited."""

    origin: bytes
    places: int = 1
    rate_bps: float = math.inf

    def allows(self, received_bytes: int, elapsed_s: float) -> bool:
        """Whether the data received from the client so far keeps to its requested rate."""
        may_bits = self.rate_bps * _RATE_MARGIN * (elapsed_s + _RATE_SPAN_S)
        return (received_bytes - _RATE_SLACK_BYTES) * 8 <= may_bits


class _Share:
    """The claims of one client, or of all. ``debt_bits`` is of plain clients."""

    def __init__(self) -> None:
        self.places = 0
        self.rate_bps = 0.0
        self.debt_bits = 0.0
        self.paid_s = 0.0

    def add(self, claim: Claim, sign: int) -> None:
        self.places += sign * claim.places
        if claim.rate_bps < math.inf:
            self.rate_bps = max(self.rate_bps + sign * claim.rate_bps, 0.0)

    def spend(self, count_bytes: int, now_s: float, bound_bps: float) -> bool:
        """Take received bytes; returns whether they keep to the unclaimed part of the bound."""
        if bound_bps == math.inf:
            return True
        free_bps = (bound_bps - self.rate_bps) * _RATE_MARGIN
        self.debt_bits = max(self.debt_bits - free_bps * (now_s - self.paid_s), 0.0)
        self.debt_bits += count_bytes * 8
        self.paid_s = now_s
        return self.debt_bits <= free_bps * _RATE_SPAN_S + _RATE_SLACK_BYTES * 8


class Quota:
    """The claims of all clients. The server asks before it admits a measurement."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._all = _Share()
        self._shares: dict[bytes, _Share] = {}
        self.claims = 0
        """Claims that are held."""

    def claim(self, origin: bytes, settings: MeasurementSettings | None) -> Claim:
        """Return the claim of a measurement; a plain client declares none (None).

        Raises Problem for what the server allows nobody.
        """
        if settings is None:
            return Claim(origin)
        limits = self._limits
        limits.check(settings)
        streams = settings.streams * len(settings.directions)
        most = min(limits.clients, limits.client_places)
        if 1 + streams > most:
            raise Problem("refused", f"the server allows at most {most} connections and streams")
        bound_bps = min(limits.rates(settings.protocol))
        if bound_bps == math.inf:
            return Claim(origin, 1 + streams)
        rate_bps = (settings.rate_bps or math.inf) * streams
        if rate_bps > bound_bps:
            raise Problem(
                "refused",
                f"the server allows each client at most {scaled(bound_bps, 'bit/s')}"
                f" of {settings.protocol.upper()}",
                f"ask for at most -r {bound_bps / streams / 1e6:.6g}M, which is per stream and"
                " direction, or start the server with --max-rate",
            )
        return Claim(origin, 1 + streams, rate_bps)

    def lacks(self, claim: Claim) -> str:
        """Return the obstacle of a claim: ``client``, ``server`` or nothing."""
        share = self._shares.get(claim.origin) or _Share()
        if share.places + claim.places > self._limits.client_places:
            return "client"
        return "server" if self._all.places + claim.places > self._limits.clients else ""

    def take(self, claim: Claim, protocol: str = "tcp") -> None:
        """Hold a claim. Raises Problem (busy) if others hold the limit."""
        lacks = self.lacks(claim)
        if lacks:
            whose = "this address holds" if lacks == "client" else "its clients hold"
            raise Problem("busy", f"the server is full: {whose} all its places")
        share = self._shares.get(claim.origin) or _Share()
        if claim.rate_bps < math.inf:
            one_bps, all_bps = self._limits.rates(protocol)
            for held, bound_bps in ((share, one_bps), (self._all, all_bps)):
                if held.rate_bps + claim.rate_bps > bound_bps:
                    raise Problem(
                        "busy",
                        f"of {scaled(bound_bps, 'bit/s')} others have"
                        f" {scaled(held.rate_bps, 'bit/s')}",
                        "wait, or set a lower rate",
                    )
        self._shares[claim.origin] = share
        self.claims += 1
        for held in (share, self._all):
            held.add(claim, 1)

    def free(self, claim: Claim) -> None:
        """Release a claim."""
        share = self._shares[claim.origin]
        self.claims -= 1
        for held in (share, self._all):
            held.add(claim, -1)
        # Debts are remembered for some time, so that nobody removes them by reconnecting.
        if not share.places and (not share.debt_bits or len(self._shares) > self._limits.clients):
            del self._shares[claim.origin]

    def spend(self, claim: Claim, count_bytes: int, now_s: float) -> bool:
        """Take received bytes of a plain client; False if they exceed what the server allows."""
        one_bps, all_bps = self._limits.rates("tcp")
        return all(
            [
                self._shares[claim.origin].spend(count_bytes, now_s, one_bps),
                self._all.spend(count_bytes, now_s, all_bps),
            ]
        )
