"""One end of one direction: its sockets, its streams and their measurement."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Sequence
from typing import Any, Callable

from ..protocol.intervals import IntervalRow
from ..protocol.settings import MeasurementSettings, Pause
from .measurement import Measurement, Totals
from .options import effective_options, set_patience
from .stream import Stream, Timeline
from .tcp import TcpReceiver, TcpSender
from .udp import UdpReceiver, UdpSender

# How long datagrams are awaited after the last interval, until the sender's count is known.
_UDP_DRAIN_S = 10.0
# How late a paced sender may be at the end and still send its last datagrams: one that was not
# scheduled for a moment keeps its rate, and one that cannot keep it is not waited for.
_LATE_S = 0.05
_STREAM_KINDS: dict[tuple[str, bool], Any] = {
    ("tcp", True): TcpSender,
    ("tcp", False): TcpReceiver,
    ("udp", True): UdpSender,
    ("udp", False): UdpReceiver,
}


class Side:
    """One end of one direction, from its connected sockets to its figures.

    ``idle_s`` is how long a TCP stream may stall before it has failed. ``pauses`` are when one that
    receives stops reading.
    """

    def __init__(
        self,
        sends: bool,
        sockets: Sequence[socket.socket],
        settings: MeasurementSettings,
        idle_s: float,
        notify: Callable[[], None],
        pauses: Sequence[Pause] = (),
    ) -> None:
        self.sends = sends
        self.unavailable: dict[str, str] = {}
        self.counts_known = False
        """Whether the sender's count of packets was said (by this end) or taken (by the other)."""
        kind = _STREAM_KINDS[settings.protocol, sends]
        timeline = Timeline(settings.schedule(), pauses)
        self._streams: list[Stream] = []
        self._measured: list[int] = []
        for index, sock in enumerate(sockets):
            sock.setblocking(True)
            set_patience(sock, socket.SO_SNDTIMEO if sends else socket.SO_RCVTIMEO, idle_s)
            self._streams.append(kind(index, timeline, sock, settings, self.unavailable))
        self._sockets = sockets
        drain_s = 0.0
        if settings.protocol == "udp":
            drain_s = _LATE_S if sends else _UDP_DRAIN_S
        self._measurement = Measurement(self._streams, timeline, notify, drain_s)

    @property
    def rows(self) -> deque[IntervalRow]:
        """Rows not yet taken."""
        return self._measurement.rows

    @property
    def over(self) -> bool:
        """Whether the figures are final."""
        return self._measurement.totals is not None

    @property
    def failure(self) -> OSError | None:
        """The error of a stream, if any."""
        return self._measurement.failure

    @property
    def start_epoch_s(self) -> float:
        """Wall-clock time of the first byte; 0 before it."""
        return self._measurement.start_epoch_s

    @property
    def moved_bytes(self) -> int:
        """Payload bytes sent or received so far, including the omitted part."""
        return sum(stream.moved_bytes for stream in self._streams)

    @property
    def counts(self) -> dict[str, Any]:
        """Datagrams sent and the omitted ones of them, stream by stream, and the measured time."""
        return {
            "packets": [stream.packets for stream in self._streams],
            "omitted": [stream.omitted_packets for stream in self._streams],
            "duration_s": self._totals.duration_s,
        }

    def start(self) -> None:
        """Start the streams."""
        self._measurement.start()

    def stop(self) -> None:
        """End now, with the figures so far."""
        self._measurement.stop()

    def close(self) -> None:
        """Free the sockets as soon as nothing uses them."""
        self._measurement.close()

    def expect(
        self, packets: Sequence[int], omitted: Sequence[int] | None, duration_s: float | None
    ) -> None:
        """Take the sender's counts and its measured time: nothing more is to come.

        ``omitted`` are those of the omitted part. An older sender does not know these, or does not
        say how long it measured: None.
        """
        self.counts_known = True
        if omitted is not None:
            self._measured = [sent - less for sent, less in zip(packets, omitted)]
        for stream, count, less in zip(self._streams, packets, omitted or [0] * len(packets)):
            stream.expect(count, less, duration_s)

    @property
    def _totals(self) -> Totals:
        totals = self._measurement.totals
        assert totals is not None, "asked before the end"
        return totals

    def figures(self) -> dict[str, Any]:
        """Return the final figures, as they go over the wire; call it before `close`."""
        totals = self._totals
        streams = [dict(stream) for stream in totals.streams]
        for stream, sent in zip(streams, self._measured):
            # However the measurement ended, datagrams that were sent and did not arrive are lost.
            if "packets_received" in stream:
                stream["packets_lost"] = sent - stream["packets_received"]
        return {
            "duration_s": totals.duration_s,
            "streams": streams,
            "effective": {
                **effective_options(self._sockets[0], self.sends),
                **self._streams[0].facts,
            },
        }
