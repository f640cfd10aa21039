"""The client's report, which decides the outcome of a flow.

What a client sends over TCP it counts when it hands it to the kernel; how much arrived only the
server knows. So the client's rate of sending is `sent_bps`, and never `throughput_bps`. Over UDP
the server's report comes back with its answer to the last datagram, unless that is lost.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from benchctl.api import (
    Direction,
    Event,
    Failure,
    FailureKind,
    Flow,
    Role,
    Summary,
    Warn,
)
from benchctl_iperf2.complaints import DROPPED, REFUSED, ended
from benchctl_iperf2.parameters import Iperf2Parameters
from benchctl_iperf2.report import Report
from benchctl_iperf2.rows import Row

Figures = dict[str, float | Mapping[str, float]]

# A run that ends earlier than this share of its duration was cut short.
_WHOLE = 0.95
# A client waits for the server's close for at least this time, and for as long as it has sent
# (AwaitServerCloseEvent, MINAWAITCLOSEUSECS in src/Client.cpp).
_LEAST_WAIT_S = 2.0
# Datagrams that a server reads whole, unless it was started with a larger -l (kDefault_UDPBufLen).
_SERVERS_LENGTH = 1470

# iperf 2 gives a connection up when the kernel does, after minutes, and no signal but SIGKILL ends
# it before.
UNANSWERED = Failure(
    FailureKind.UNREACHABLE,
    "no answer to the connection request",
    "check the address and the port; a firewall may drop what it does not let through",
)
UNHEARD = Failure(FailureKind.UNREACHABLE, "no answer of the server to any datagram", DROPPED)
_SWALLOWS = (
    "check that iperf -s -u runs there; for a server that only swallows, set compatible = true"
)
_REJECTED = "the server was started there: a firewall may reject the packets, or it has ended"
SILENT = Failure(
    FailureKind.REFUSED,
    "the server sent nothing",
    "before version 2.1 an iperf server only receives; with dual_test it may send",
)


class ClientReport(Report):
    """Reads what the client prints."""

    def __init__(self, flow: Flow[Iperf2Parameters], interval_s: float | None = None) -> None:
        super().__init__(flow, Role.CLIENT, interval_s)

    def row(self, row: Row) -> Iterator[Event]:
        yield from super().row(row)
        # Nothing else ends a client that waits for data.
        late_s = (self.flow.params.duration or math.inf) + _LEAST_WAIT_S
        receives = Direction.RECEIVE in self.directions
        if receives and not self.has_received and row.end_s > late_s:
            yield self._explained(self._silent)

    def end(self, exit_code: int) -> Iterator[Event]:
        yield from self.effective()
        cause = self.failure
        if cause is None or cause.kind is FailureKind.PEER:  # that may come after the result
            cause = self._without_result(exit_code)
        if cause is not None:
            yield self._explained(cause)
            return
        for direction in self.directions:
            figures = self.figures(direction)
            if direction is Direction.SEND:
                yield from self._sent(figures)
            yield Summary(figures, direction)
        yield from self._remarks(exit_code)

    def _without_result(self, exit_code: int) -> Failure | None:
        """Return why there is no result, or None if there is one."""
        streams = self.flow.params.streams
        whole = {direction: self.totals(direction) for direction in self.directions}
        if any(len(rows) < streams for rows in whole.values()):
            if not self.is_connected and not self.words:
                return self.failure or UNANSWERED
            words = self.words or f"no result ({ended(exit_code)})"
            return self.failure or Failure(FailureKind.TOOL, words)
        ends_s = min(max(row.end_s for row in rows.values()) for rows in whole.values())
        wanted_s = self.flow.params.duration or 0.0
        if ends_s < wanted_s * _WHOLE - 0.05:
            message = f"ended after {ends_s:g} of {wanted_s:g} s"
            if self.failure:
                return replace(self.failure, message=f"{self.failure.message}: {message}")
            return Failure(FailureKind.PEER, message, "the server ended it, or a signal this end")
        if any(not sum(row.bytes for row in rows.values()) for rows in whole.values()):
            nothing = Failure(FailureKind.TOOL, "sent no data")
            return self._silent if Direction.RECEIVE in whole else nothing
        params, owns = self.flow.params, self.flow.owns_server
        # A server of ours says itself whether anything arrived.
        if self.is_unanswered and not (self.relayed or owns or params.compatible):
            return replace(UNHEARD, hint=f"{UNHEARD.hint}; {_SWALLOWS}")
        return None

    @property
    def _silent(self) -> Failure:
        """The failure of a client to which no data came."""
        return UNHEARD if self.flow.params.protocol == "udp" else SILENT

    def _explained(self, failure: Failure) -> Failure:
        """Return a failure that names the server, and has the hint for one of ours."""
        if REFUSED in failure.message and self.flow.owns_server:
            failure = replace(failure, hint=_REJECTED)
        return self.at_server(failure)

    def _sent(self, figures: Figures) -> Iterator[Event]:
        """Add to the sender's figures what is known of the receiver's."""
        if self.flow.params.protocol == "udp":
            yield from self._relay(figures)
        else:
            yield from self._wait(figures)

    def _wait(self, figures: Figures) -> Iterator[Event]:
        """Correct the rate of a sender that waited in vain for the server's close.

        iperf 2 divides by the time until the server has closed the connection. That is right for a
        server that closes it when it has read everything.
        """
        late_s, duration_s = self.waited_s(Direction.SEND), self.flow.params.duration
        sent, rate_bps = figures.get("bytes_sent"), figures.get("sent_bps")
        if not late_s or not duration_s or not isinstance(sent, float) or rate_bps is None:
            return
        if late_s > 0.99 * max(_LEAST_WAIT_S, duration_s):
            figures["iperf2_sent_bps"] = rate_bps
            figures["sent_bps"] = sent * 8 / duration_s
            yield Warn(
                f"the server did not close the connection within {late_s:.3g} s after the last"
                " write, and iperf counts that time too; sent_bps is what was written in"
                f" {duration_s:g} s"
            )
        else:
            yield Warn(
                f"sent_bps counts the {late_s:.3g} s from the last write until the server closed"
                f" the connection; without them it is {sent * 8 / duration_s:.4g} bit/s"
            )

    def _relay(self, figures: Figures) -> Iterator[Event]:
        """Add the server's report of the datagrams, if it came back."""
        rows = self.relayed
        if rows and len(rows) == len(self.totals(Direction.SEND)):
            figures |= self.received(rows)
            return
        if not self.flow.owns_server:
            yield Warn(
                "the server's report is missing: its answer to the last datagram did not come back;"
                " what arrived is unknown, and sent_bps is the sender's count"
            )

    def _remarks(self, exit_code: int) -> Iterator[Event]:
        params, owns = self.flow.params, self.flow.owns_server
        if params.trip_times and not self.flow.one_clock:
            yield Warn(
                "one-way delays are by the clocks of both hosts: what these differ by is in each of"
                " them"
            )
        sends = Direction.SEND in self.directions
        if params.trip_times and params.protocol == "tcp" and sends and not owns:
            yield Warn(
                "one-way delays of TCP are in the server's output only, which is not read here"
            )
        if (
            params.protocol == "udp"
            and (params.length or 0) > _SERVERS_LENGTH
            and sends
            and not owns
        ):
            yield Warn(
                f"a server reads datagrams up to its own -l ({_SERVERS_LENGTH} B unless given):"
                " bytes beyond are not counted"
            )
        if self.words:
            yield Warn(self.words)
        if self.failure:
            yield Warn(self.failure.message)
        if exit_code:
            yield Warn(f"iperf reported its result and then ended with {ended(exit_code)}")
