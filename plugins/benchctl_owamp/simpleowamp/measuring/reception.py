"""Takes a session's packets from its socket, with the times of the kernel on this end's clock."""

from __future__ import annotations

import socket
from collections.abc import Iterator

from ..protocol.packets import PacketFormat
from ..protocol.records import PacketRecord
from ..protocol.timestamps import ErrorEstimate, to_timestamp
from .clock import Clock, ClockState
from .endpoint import receive
from .receiving import Receiving


class Reception:
    """One session's socket, which is connected to the sender, and what is known of its packets."""

    def __init__(
        self, sock: socket.socket, receiving: Receiving, form: PacketFormat, clock: Clock
    ) -> None:
        self._sock = sock
        self._receiving = receiving
        self._format = form
        self._clock = clock
        self._state: ClockState | None = None
        self._estimate = 0

    def take(self, buffer: memoryview, count: int) -> Iterator[PacketRecord]:
        """Yield the records of so many packets that have arrived, or of all; OSErrors end it."""
        for _ in range(count):
            try:
                arrival = receive(self._sock, buffer)
            except OSError:  # None is left, or an earlier packet of ours was refused.
                return
            packet = self._format.read(arrival.data)
            if packet is None:
                continue
            own = to_timestamp(self._clock.of_system(arrival.received_ns))
            record = self._receiving.take(packet, own, self._error_estimate(), arrival.ttl)
            if record:
                yield record

    def _error_estimate(self) -> int:
        state = self._clock.state()
        if state is not self._state:
            self._state = state
            self._estimate = ErrorEstimate(state.synchronized, state.max_error_s).pack()
        return self._estimate
