"""Reads ``simpleowamp ping --json``: one JSON object a line; each packet becomes a sample.

- Times are whole nanoseconds since 1970 by the clock of whoever took them. Delays are never
  clamped: a negative one shows that the clocks differ.
- A sample is at the sending of its packet by the sender's clock, from the first packet of its
  direction on, and has no length, since the receiver's clock may be completely different.
- Samples are in the order of arrival; a lost packet has the time when it was due.
- A packet that a reflector sent back is a sample of the round trip, without the reflector's own
  time (RFC 5357, 4.1), and one of each way, all at its sending.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from benchctl.api import (
    Channel,
    Direction,
    Event,
    Failure,
    FailureKind,
    LineParser,
    ParserError,
    Ready,
    Sample,
    Started,
    Summary,
    Warn,
)

# What a sender sets (RFC 4656, 4.1.1): each router on the path takes one off.
_TTL = 255
_NS = 1e-9
# The years 1900 to 2300, which a timestamp of NTP can mean in its eras 0 to 2.
_TIMES_NS = (-2_300_000_000_000_000_000, 10_500_000_000_000_000_000)
_MOST = 1 << 32

CLOCKS_HINT = (
    "the UDP ports of the test may be closed, or the clocks differ by more than the timeout: "
    "synchronize them, or set a longer timeout"
)


class ClientParser(LineParser):
    """Parses the measurement of ``count`` packets in the requested directions."""

    max_line = 4096

    def __init__(self, count: int, directions: Sequence[Direction]) -> None:
        super().__init__()
        self._count = count
        self._ends: dict[Direction, Mapping[str, Any] | None] = dict.fromkeys(directions)
        self._zero: dict[Direction, int] = {}
        self._seen: dict[Direction, bytearray] = {}
        self._arrived: set[Direction] = set()
        self._started = self._failed = False
        self._complaint = ""

    def line(self, text: str, channel: Channel) -> Iterable[Event]:
        if channel is Channel.STDERR:
            self._complaint = text.strip()[:500] or self._complaint
            return ()
        return [*self._event(_object(text))] if text else ()

    def end(self, exit_code: int) -> Iterable[Event]:
        if self._failed:
            return
        missing = [direction for direction, end in self._ends.items() if end is None]
        if missing:
            ended = f"was ended by signal {-exit_code}" if exit_code < 0 else f"ended: {exit_code}"
            what = f"simpleowamp {ended} before it reported direction {missing[0]}"
            yield Failure(FailureKind.TOOL, f"{what}: {self._complaint or 'no reason given'}")
            return
        for direction, end in self._ends.items():
            if end is not None and not _number(end, "sent"):
                what = f"no packet was sent in direction {direction}"
                yield Failure(FailureKind.PEER, what, CLOCKS_HINT)
            elif end is not None and direction not in self._arrived:
                what = f"none of {_number(end, 'sent'):.0f} packets arrived in direction"
                yield Failure(FailureKind.UNREACHABLE, f"{what} {direction}", CLOCKS_HINT)

    def _event(self, data: Mapping[str, Any]) -> Iterator[Event]:
        match data.get("event"):
            case "start":
                pass
            case "packet":
                yield from self._packet(data)
            case "reflected":
                yield from self._reflected(data)
            case "lost":
                direction = self._direction(data)
                metrics = {"packets_sent": 1.0, "packets_lost": 1.0}
                if not self._is_new(direction, data):
                    raise ParserError(f"packet {data.get('seq')} is lost, and there already")
                yield from self._sample(direction, _time(data, "due_ns"), metrics)
            case "warning":
                yield Warn(str(data.get("message"))[:500])
            case "end":
                yield from self._end(data)
            case "error":
                self._failed = True
                yield _failure(data)
            case other:
                raise ParserError(f"an unknown event: {str(other)[:40]!r}")

    def _packet(self, data: Mapping[str, Any]) -> Iterator[Event]:
        """Yield the events of a packet that was measured one way."""
        direction = self._direction(data)
        sent_ns, received_ns = _time(data, "sent_ns"), _time(data, "received_ns")
        here_ns = sent_ns if direction is Direction.SEND else received_ns
        metrics = {"packets_duplicated": 1.0}
        if self._is_new(direction, data):
            metrics = {
                "packets_sent": 1.0,
                "packets_received": 1.0,
                "owd_s": (received_ns - sent_ns) * _NS,
                **_clocks(data, "sent", "received"),
                **_hops(data, "ttl"),
            }
        yield from self._sample(direction, sent_ns, metrics, here_ns)

    def _reflected(self, data: Mapping[str, Any]) -> Iterator[Event]:
        """Yield the events of a packet that came back."""
        sent, there, back, received = (
            _time(data, f"{name}_ns")
            for name in ("sent", "reflector_received", "reflector_sent", "received")
        )
        if not self._is_new(Direction.ROUND_TRIP, data):
            yield from self._sample(Direction.ROUND_TRIP, sent, {"packets_duplicated": 1.0}, sent)
            return
        clocks = _clocks(data, "sent", "reflector")
        yield from self._sample(
            Direction.ROUND_TRIP,
            sent,
            {
                "packets_sent": 1.0,
                "packets_received": 1.0,
                "rtt_s": (received - sent - (back - there)) * _NS,
                "reflector_s": (back - there) * _NS,
            },
            sent,
        )
        delays = {
            Direction.SEND: (there - sent, "reflector_ttl"),
            Direction.RECEIVE: (received - back, "ttl"),
        }
        for direction, (delay_ns, ttl) in delays.items():
            metrics = {"owd_s": delay_ns * _NS, **clocks, **_hops(data, ttl)}
            yield from self._sample(direction, sent, metrics)

    def _sample(
        self,
        direction: Direction,
        at_ns: int,
        metrics: Mapping[str, float],
        here_ns: int | None = None,
    ) -> Iterator[Event]:
        """Yield a sample, and the start by this host's clock as soon as a time of it is known."""
        at_s = (at_ns - self._zero.setdefault(direction, at_ns)) * _NS
        if not self._started and here_ns is not None:
            self._started = True
            yield Started(here_ns * _NS - at_s)
        yield Sample(at_s, at_s, metrics, direction=direction)

    def _is_new(self, direction: Direction, data: Mapping[str, Any]) -> bool:
        """Take note of a packet; returns whether it was not there before."""
        seq = data.get("seq")
        if type(seq) is not int or not 0 <= seq < self._count:
            raise ParserError(f"packet {str(seq)[:40]} of {self._count}")
        if data.get("event") != "lost":
            self._arrived.add(direction)
        seen = self._seen.setdefault(direction, bytearray(self._count))
        new, seen[seq] = not seen[seq], 1
        return new

    def _direction(self, data: Mapping[str, Any]) -> Direction:
        name = data.get("direction")
        if name == "both":  # there and back
            name = Direction.ROUND_TRIP
        if name not in self._ends:
            raise ParserError(f"a direction {str(name)[:40]!r}")
        return Direction(name)

    def _end(self, data: Mapping[str, Any]) -> Iterator[Event]:
        direction = self._direction(data)
        self._ends[direction] = data
        sent, lost = _number(data, "sent"), _number(data, "lost")
        if not 0 <= lost <= sent <= self._count:
            raise ParserError(f"{lost:.0f} of {sent:.0f} packets lost, of {self._count}")
        if data.get("late_s_p99") is not None:
            yield Summary({"sending_late_p99_s": _number(data, "late_s_p99")}, direction)
        if sent < self._count:
            yield Warn(f"{sent:.0f} of {self._count} packets were sent in direction {direction}")


class ServerParser(LineParser):
    """The server says when it listens, or why it does not; later its client knows more."""

    def __init__(self) -> None:
        super().__init__()
        self._ready = False

    def line(self, text: str, channel: Channel) -> Iterable[Event]:
        if text.startswith("simpleowamp ") and " listens on " in text:
            self._ready = True
            yield Ready()
        elif channel is Channel.STDERR and text.strip() and not self._ready:
            yield Failure(FailureKind.TOOL, text.removeprefix("simpleowamp: "))


def _failure(data: Mapping[str, Any]) -> Failure:
    kind = str(data.get("kind"))
    if kind not in set(FailureKind):
        raise ParserError(f"an error of kind {kind[:40]!r}")
    return Failure(FailureKind(kind), str(data.get("message")), str(data.get("hint", "")))


def _clocks(data: Mapping[str, Any], near: str, far: str) -> dict[str, float]:
    """Return what the two clocks say of themselves.

    The error estimate of a clock that is not synchronized says nothing of its offset.
    """
    claims = [data.get(f"{end}_synchronized") for end in (near, far)]
    if not all(isinstance(claim, bool) for claim in claims):
        raise ParserError(f"clocks that are synchronized: {str(claims)[:40]}")
    if not all(claims):
        return {"clock_synchronized": 0.0}
    error_s = _number(data, f"{near}_error_s") + _number(data, f"{far}_error_s")
    return {"clock_synchronized": 1.0, "owd_error_s": error_s}


def _hops(data: Mapping[str, Any], name: str) -> dict[str, float]:
    ttl = data.get(name)
    if ttl is None:
        return {}
    if type(ttl) is not int or not 0 <= ttl <= _TTL:
        raise ParserError(f"a time to live of {str(ttl)[:40]}")
    return {"hops": float(_TTL - ttl)}


def _time(data: Mapping[str, Any], name: str) -> int:
    value = data.get(name)
    if type(value) is not int or not _TIMES_NS[0] < value < _TIMES_NS[1]:
        raise ParserError(f"{name} is {str(value)[:40]!r}")
    return value


def _number(data: Mapping[str, Any], name: str) -> float:
    value = data.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST:
        raise ParserError(f"{name} is {str(value)[:40]!r}")
    return float(value)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _object(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ParserError(f"not a line of simpleowamp --json: {text[:80]!r}") from error
    if not isinstance(value, dict):
        raise ParserError(f"not an object: {text[:80]!r}")
    return value
