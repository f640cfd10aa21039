"""How much clients may use of what nobody asks for beforehand: probes that just arrive. No I/O."""

from __future__ import annotations

import time
from typing import Any, Callable
from weakref import WeakValueDictionary

from benchctl_standalone.addresses import allows, origin_of

from .quota import HEADERS_BYTES, Limits

_SECOND_NS = 1_000_000_000
# What a client sends beyond its rate, as a share of that, when it is a flood. One that measures a
# little too much loses single packets; until a flood is known, it fills the socket's buffer.
_FLOOD = 0.25


class _Allowance:
    """Lets a rate pass, of bits or packets a second, and what that is in a second at once."""

    def __init__(self, rate: float) -> None:
        self._each_ns = _SECOND_NS / rate
        self._paid_ns = 0.0

    def takes(self, count: int, now_ns: int) -> bool:
        paid_ns = max(self._paid_ns, now_ns)
        if paid_ns - now_ns >= _SECOND_NS:
            return False
        self._paid_ns = paid_ns + count * self._each_ns
        return True


class ClientAllowance:
    """One client's packets and bits, and its part of the bits that all have."""

    def __init__(self, limits: Limits, together: _Allowance) -> None:
        self._packets = _Allowance(limits.client_rate_pps)
        self._bits = _Allowance(limits.client_rate_bps)
        self._together = together
        self._most_beyond = limits.client_rate_pps * _FLOOD
        self._beyond = 0
        self._counted_ns = 0

    def reads_packet(self, now_ns: int) -> bool:
        """Whether a packet that has arrived may be looked at, whatever it is."""
        if self._packets.takes(1, now_ns):
            return True
        if now_ns - self._counted_ns >= _SECOND_NS:
            self._counted_ns, self._beyond = now_ns, 0
        self._beyond += 1
        return False

    @property
    def is_flooding(self) -> bool:
        """Whether it sent so much more than it may in a second, when it last sent too much."""
        return self._beyond > self._most_beyond

    def answers_packet(self, payload_bytes: int, now_ns: int) -> bool:
        """Whether a packet of so many octets of UDP payload may be answered."""
        bits = 8 * (HEADERS_BYTES + payload_bytes)
        return self._bits.takes(bits, now_ns) and self._together.takes(bits, now_ns)


class Allowances:
    """Those of all clients; a client is known as long as somebody holds its allowance."""

    def __init__(self, limits: Limits, monotonic_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._limits = limits
        self._together = _Allowance(limits.rate_bps)
        self._clients: WeakValueDictionary[bytes, ClientAllowance] = WeakValueDictionary()
        self.now_ns = monotonic_ns

    def of(self, address: Any) -> ClientAllowance | None:
        """Return the allowance of the client at an address; None if it is of no allowed network."""
        if not allows(self._limits.networks, address):
            return None
        origin = origin_of(address)
        found = self._clients.get(origin)
        if found is None:
            found = ClientAllowance(self._limits, self._together)
            self._clients[origin] = found
        return found
