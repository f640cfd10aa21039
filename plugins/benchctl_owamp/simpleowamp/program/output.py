"""Writes what a measurement finds: plain words for people, or JSON lines for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from benchctl_standalone.errors import Problem
from benchctl_standalone.saying import say
from benchctl_standalone.sockets import address_text, plain_address

from .. import __version__
from ..measuring.clock import ClockState
from ..measuring.directions import Direction, Packet
from ..measuring.round_trip import Reflected
from ..measuring.sender import Outcome
from ..measuring.two_way_session import TwoWaySession, Way

_WORDS = {"send": "to", "receive": "from", "both": "to and from"}


class Output:
    """Receives what a client finds, in order; the methods do nothing by default."""

    def started(self, address: Any, settings: Any, directions: Mapping[str, Direction]) -> None:
        """The sessions run."""

    def packet(self, direction: Direction, packet: Packet) -> None:
        """A packet, or its duplicate, has arrived; it is counted already."""

    def reflected(self, session: TwoWaySession, back: Reflected) -> None:
        """A probe, or its duplicate, has come back; it is counted already."""

    def lost(self, direction: Direction, seq: int) -> None:
        """A packet has not arrived in time."""

    def ended(self, direction: Direction, outcome: Outcome | None) -> None:
        """All packets of a direction are known. The outcome is that of this end, if it sent."""

    def finished(self, clock: ClockState) -> None:
        """The measurement is over; this is the clock of this end."""

    def warning(self, message: str) -> None:
        """A message for the user; the measurement goes on."""
        say(f"simpleowamp: warning: {message}", sys.stderr)

    def failed(self, problem: Problem) -> None:
        """The measurement has failed."""
        say(f"simpleowamp: {problem.message}", sys.stderr)
        if problem.hint:
            say(f"simpleowamp: {problem.hint}", sys.stderr)


class JsonOutput(Output):
    """One JSON object a line, each as soon as it is known. Times are those of the packets."""

    def started(self, address: Any, settings: Any, directions: Mapping[str, Direction]) -> None:
        host, port = plain_address(address)
        self._write(
            "start",
            protocol=settings.protocol,
            version=__version__,
            server=host,
            port=port,
            count=settings.packet_count,
            interval_s=settings.interval_s,
            sessions={name: each.request.sid.hex() for name, each in directions.items()},
        )

    def packet(self, direction: Direction, packet: Packet) -> None:
        self._write(
            "packet",
            direction=direction.name,
            seq=packet.seq,
            sent_ns=packet.sent_ns,
            received_ns=packet.received_ns,
            sent_error_s=packet.sent.error_s,
            received_error_s=packet.received.error_s,
            sent_synchronized=packet.sent.synchronized,
            received_synchronized=packet.received.synchronized,
            ttl=packet.ttl,
        )

    def reflected(self, session: TwoWaySession, back: Reflected) -> None:
        self._write(
            "reflected",
            seq=back.seq,
            sent_ns=back.sent_ns,
            reflector_received_ns=back.reflector_received_ns,
            reflector_sent_ns=back.reflector_sent_ns,
            received_ns=back.received_ns,
            sent_error_s=back.sent_error.error_s,
            reflector_error_s=back.reflector_error.error_s,
            sent_synchronized=back.sent_error.synchronized,
            reflector_synchronized=back.reflector_error.synchronized,
            ttl=back.ttl,
            reflector_ttl=back.reflector_ttl,
            reflector_seq=back.reflector_seq,
            duplicate=back.duplicate,
        )

    def lost(self, direction: Direction, seq: int) -> None:
        self._write("lost", direction=direction.name, seq=seq, due_ns=direction.due_ns(seq))

    def ended(self, direction: Direction, outcome: Outcome | None) -> None:
        late = outcome.late_s if outcome else direction.late.summary_s()
        self._write(
            "end",
            direction=direction.name,
            sent=direction.sent,
            received=direction.received,
            lost=direction.lost,
            duplicates=direction.duplicates,
            skipped=direction.skipped,
            late_s_p99=late["p99"] if late else None,
            kernel_s_median=outcome.kernel_s["median"] if outcome and outcome.kernel_s else None,
            **_ways(direction),
        )

    def failed(self, problem: Problem) -> None:
        self._write("error", kind=problem.kind, message=problem.message, hint=problem.hint)

    def warning(self, message: str) -> None:
        self._write("warning", message=message)

    @staticmethod
    def _write(event: str, **members: Any) -> None:
        sys.stdout.write(json.dumps({"event": event, **members}) + "\n")
        sys.stdout.flush()


def _ways(direction: Direction) -> dict[str, int | None]:
    """Return on which way packets of a two-way session were lost, as far as that is known."""
    if not isinstance(direction, TwoWaySession):
        return {}
    lost = direction.lost_ways
    return {"lost_send": lost and lost.send, "lost_receive": lost and lost.receive}


class TextOutput(Output):
    """A few lines for people, at the end of each direction."""

    def __init__(self) -> None:
        self._server = ""
        self._directions: Mapping[str, Direction] = {}

    def started(self, address: Any, settings: Any, directions: Mapping[str, Direction]) -> None:
        self._server = plain_address(address)[0]
        self._directions = directions
        each_way = " each way" if len(directions) == 2 else ""
        where = "from" if list(directions) == ["receive"] else "to"
        say(
            f"{settings.packet_count} packets{each_way}, "
            f"{_milliseconds(settings.interval_s)} ms apart, "
            f"{where} {address_text(plain_address(address))}",
            sys.stdout,
        )

    def ended(self, direction: Direction, outcome: Outcome | None) -> None:
        for line in _lines(direction, f"{_WORDS[direction.name]} {self._server}"):
            say(line, sys.stdout)

    def finished(self, clock: ClockState) -> None:
        session = self._directions.get("both")
        directions = session.ways if isinstance(session, TwoWaySession) else self._directions
        for line in clock_lines(directions, clock):
            say(line, sys.stdout)


def _milliseconds(seconds: float) -> str:
    """Format a time with three digits after the point, or as few as say the same."""
    return f"{seconds * 1e3:.3f}".rstrip("0").rstrip(".")


def _lines(direction: Direction, name: str) -> Iterator[str]:
    sent = direction.sent
    ratio = f" ({direction.lost / sent:.2%})" if sent else ""
    yield ""
    yield (
        f"{name}: {sent} sent, {direction.lost} lost{ratio}, {direction.duplicates} duplicated, "
        f"{direction.reordered} reordered"
    )
    if direction.skipped:
        yield f"  {direction.skipped} were never sent: the sender was kept from it too long"
    if not direction.delays_ns:
        yield "  no packet arrived in time"
        return
    if isinstance(direction, TwoWaySession):
        yield from _two_way_lines(direction)
        return
    yield f"  one-way delay  {_figures(direction.delays_ns)}"
    yield f"  hops           {_span(direction.hops)}"


def _two_way_lines(session: TwoWaySession) -> Iterator[str]:
    there, back = session.ways["send"], session.ways["receive"]
    if session.lost and session.lost_ways:
        send, receive = session.lost_ways
        unknown = session.lost - send - receive
        rest = f", {unknown} on an unknown way" if unknown else ""
        yield f"  lost           {send} on the way there, {receive} on the way back{rest}"
    elif session.lost:
        yield "  on which way, the reflector's numbers do not say"
    yield f"  round trip     {_figures(session.delays_ns)}, without the reflector's own time"
    yield f"  there          {_figures(there.delays_ns)}"
    yield f"  back           {_figures(back.delays_ns)}"
    yield f"  reflector      {_figures(session.reflector_ns)}"
    yield f"  hops           {_span(there.hops)} there, {_span(back.hops)} back"


def _span(hops: set[int]) -> str:
    return " to ".join(map(str, sorted({min(hops), max(hops)}))) if hops else "unknown"


def _figures(unsorted_ns: Iterable[int]) -> str:
    delays_ns = sorted(unsorted_ns)
    figures = {
        "min": delays_ns[0],
        "median": percentile(delays_ns, 0.5),
        "p95": percentile(delays_ns, 0.95),
        "max": delays_ns[-1],
        "mean": sum(delays_ns) / len(delays_ns),
    }
    return "  ".join(f"{name} {value / 1e6:.3f}" for name, value in figures.items()) + " ms"


def percentile(values: list[int], ratio: float) -> float:
    """Return a percentile of sorted values, between neighbours by their distance.

    It is definition 7 of Hyndman and Fan, Sample Quantiles, 1996.
    """
    at = (len(values) - 1) * ratio
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (at - low)


def clock_lines(directions: Mapping[str, Direction | Way], clock: ClockState) -> Iterator[str]:
    """Say in words what the delays mean, with clocks as they are."""
    least = {name: min(each.delays_ns) for name, each in directions.items() if each.delays_ns}
    if not least:
        return
    yield ""
    if len(least) == 2 and min(least.values()) < 0:
        there, back = least["send"], least["receive"]
        yield (
            f"the clocks are about {abs(there - back) / 2e6:.1f} ms apart: minima "
            f"{there / 1e6:+.3f} and {back / 1e6:+.3f} ms; half of the sum, "
            f"{(there + back) / 2e6:.3f} ms, is the one-way delay if the path is symmetric"
        )
        return
    if min(least.values()) < 0:
        yield "a negative delay: the clocks of both ends differ, so no delay here is one"
        return
    unsynchronized = _unsynchronized(directions)
    if not unsynchronized:
        yield "both clocks are synchronized, as their systems say"
        return
    yield f"not synchronized, as far as their systems say: {unsynchronized}"
    if clock.reason and unsynchronized != "the server's clock":
        yield f"  {clock.reason}"
    yield "  delays are off by as much as the clocks differ, one way up and the other way down"


def _unsynchronized(directions: Mapping[str, Direction | Way]) -> str:
    """Return whose clock is not synchronized; empty if both are."""
    here, there = True, True
    for name, direction in directions.items():
        sender, receiver = direction.synchronized
        ours, theirs = (sender, receiver) if name == "send" else (receiver, sender)
        here, there = here and ours, there and theirs
    if not here and not there:
        return "both clocks"
    return "" if here and there else "the server's clock" if here else "the clock here"
