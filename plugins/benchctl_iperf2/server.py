"""The report of a server that benchctl started: what arrived, by the count of who read it.

The client decides the outcome of the flow. Complaints of a server that was ready are warnings: they
mostly repeat what happened to the client.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from benchctl.api import Direction, Event, Failure, FailureKind, Flow, Ready, Role, Summary, Warn
from benchctl_iperf2.complaints import DROPPED, ended
from benchctl_iperf2.parameters import Iperf2Parameters
from benchctl_iperf2.report import Report


class ServerReport(Report):
    """Reads what the server prints."""

    def __init__(self, flow: Flow[Iperf2Parameters], interval_s: float | None = None) -> None:
        super().__init__(flow, Role.SERVER, interval_s)
        self._is_ready = False

    def other(self, text: str) -> Iterable[Event]:
        if text.startswith("Server listening on ") and not self._is_ready:
            self._is_ready = True
            return (Ready(),)
        return super().other(text)

    def end(self, exit_code: int) -> Iterator[Event]:
        yield from self.effective()
        if not self._is_ready:
            words = self.words or f"never listened ({ended(exit_code)})"
            yield self.failure or Failure(FailureKind.TOOL, words)
            return
        for direction in self.directions:
            if figures := self.figures(direction):
                if self.waited_s(direction) and "sent_bps" in figures:
                    figures["iperf2_sent_bps"] = figures.pop("sent_bps")
                yield Summary(figures, direction)
        is_udp = self.flow.params.protocol == "udp"
        if is_udp and Direction.SEND in self.directions and not self.has_received:
            words = "no datagram reached the server"
            yield self.at_server(Failure(FailureKind.UNREACHABLE, words, DROPPED))
        if self.failure:
            yield Warn(f"the server said: {self.failure.message}")
