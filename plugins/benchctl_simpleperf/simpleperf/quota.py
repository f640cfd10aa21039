"""What a server's clients hold of its limits: places, and the rates that they asked for; no I/O.

A client is what `addresses.origin_of` takes for one. A place is a connection or a stream.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from .errors import Problem
from .settings import Limits, MeasurementSettings
from .units import scaled

# A rate holds over this time, with this much slack, and beyond what one stream sends at a time.
_RATE_SPAN_S = 1.0
_RATE_MARGIN = 1.1
_RATE_SLACK_BYTES = 1 << 20


class Claim(NamedTuple):
    """What one measurement holds; ``rate_bps`` is infinite where nothing bounds it."""

    origin: bytes
    places: int = 1
    rate_bps: float = math.inf

    def allows(self, received_bytes: int, elapsed_s: float) -> bool:
        """Whether what the client has sent so far keeps to the rate that it asked for."""
        may_bits = self.rate_bps * _RATE_MARGIN * (elapsed_s + _RATE_SPAN_S)
        return (received_bytes - _RATE_SLACK_BYTES) * 8 <= may_bits


class _Share:
    """What one client holds, or all of them together. ``debt_bits`` is of plain clients."""

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
        """Take bytes that came; tells whether they keep to what of the bound nobody asked for."""
        if bound_bps == math.inf:
            return True
        free_bps = (bound_bps - self.rate_bps) * _RATE_MARGIN
        self.debt_bits = max(self.debt_bits - free_bps * (now_s - self.paid_s), 0.0)
        self.debt_bits += count_bytes * 8
        self.paid_s = now_s
        return self.debt_bits <= free_bps * _RATE_SPAN_S + _RATE_SLACK_BYTES * 8


class Quota:
    """Who holds how much. The server asks before it lets a measurement begin."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._all = _Share()
        self._shares: dict[bytes, _Share] = {}
        self.claims = 0
        """Claims that are held."""

    def claim(self, origin: bytes, settings: MeasurementSettings | None) -> Claim:
        """Return what a measurement needs; a plain client says nothing of it (None).

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
                "ask for a rate (-r), which is per stream and direction,"
                " or start the server with --max-rate",
            )
        return Claim(origin, 1 + streams, rate_bps)

    def lacks(self, claim: Claim) -> str:
        """Return what stands in a claim's way: ``client``, ``server`` or nothing."""
        share = self._shares.get(claim.origin) or _Share()
        if share.places + claim.places > self._limits.client_places:
            return "client"
        return "server" if self._all.places + claim.places > self._limits.clients else ""

    def take(self, claim: Claim, protocol: str = "tcp") -> None:
        """Hold what is claimed. Raises Problem (busy) when others hold it."""
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
        """Hold it no longer."""
        share = self._shares[claim.origin]
        self.claims -= 1
        for held in (share, self._all):
            held.add(claim, -1)
        # Debts are remembered, so that nobody gets rid of them by coming again, but not for ever.
        if not share.places and (not share.debt_bits or len(self._shares) > self._limits.clients):
            del self._shares[claim.origin]

    def spend(self, claim: Claim, count_bytes: int, now_s: float) -> bool:
        """Take what came of a plain client; False when more came than the server allows."""
        one_bps, all_bps = self._limits.rates("tcp")
        return all(
            [
                self._shares[claim.origin].spend(count_bytes, now_s, one_bps),
                self._all.spend(count_bytes, now_s, all_bps),
            ]
        )
