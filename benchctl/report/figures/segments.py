"""Figures of a packet trace: each segment with its answer, what was in flight, and how fast it was.

They are drawn from the trace itself: a run has sums and samples, and no segment.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from itertools import groupby, islice, pairwise
from pathlib import Path

from msgspec.structs import replace

from benchctl.errors import UsageError
from benchctl.metrics import title_of
from benchctl.packets.sender.retransmissions import Retransmissions, Why
from benchctl.packets.tcp import Connection, ZeroWindow
from benchctl.packets.timesequence import UNKNOWN, Steps, Strokes, TimeSequence
from benchctl.packets.trace import Trace, read_trace
from benchctl.report.figures.figure import Axis, LineRole, Panel, Picture, PictureEvent, PictureLine
from benchctl.report.figures.parts import Part
from benchctl.report.figures.request import PictureRequest
from benchctl.report.traced import KEYS, TracedDirection
from benchctl.units import format_value
from benchctl.visible import visible

SEQUENCE, FLIGHT, RTT, RATE = "sequence_bytes", "flight_bytes", "rtt_s", "throughput_bps"
PANELS = (SEQUENCE, FLIGHT, RTT, RATE)
"""What such a figure shows; the first two if nothing is asked for."""
# So many times the room of the data: a window that is farther away would leave them none.
_FAR, _FAR_ABOVE_FLIGHT = 2.0, 5.0
# More than a reader tells apart are a curtain; their marks say where they are.
_MOST_WORDS = 12
# What a connection of one moment is shown of.
_LEAST_S = 1e-3
# As many rates as a rate over time is read of.
_RATES = 150
# What they show of a connection is some megabytes each.
_AT_ONCE = 8


class Shown(IntEnum):
    """What a line shows: its number, and so its colour and its mark."""

    DATA = 0
    FAST = 1
    ACKED = 2
    CWND = 3
    WINDOW = 4
    SACK = 5
    TIMEOUT = 6
    TAIL = 7
    FLIGHT = 8
    OTHER = 9
    LATE = 10
    SPURIOUS = 11
    CLOSED = 12
    DOUBLED = 13
    PROBE = 14
    RTT = 15
    RATE = 16


NAMES: Mapping[Shown, str] = {
    Shown.DATA: "data",
    Shown.FAST: "fast retransmission",
    Shown.ACKED: "acknowledged",
    Shown.CWND: "estimated cwnd",
    Shown.WINDOW: "receiver's window",
    Shown.SACK: "SACK",
    Shown.TIMEOUT: "timeout retransmission",
    Shown.TAIL: "tail loss probe",
    Shown.FLIGHT: "in flight",
    Shown.OTHER: "other retransmission",
    Shown.LATE: "out of order",
    Shown.SPURIOUS: "spurious",
    Shown.CLOSED: "zero window",
    Shown.DOUBLED: "doubled by the network",
    Shown.PROBE: "window probe",
    Shown.RTT: "RTT",
    Shown.RATE: "throughput",
}
_KINDS = {
    Why.FAST: Shown.FAST, Why.TIMEOUT: Shown.TIMEOUT, Why.PROBE: Shown.TAIL,
    Why.OTHER: Shown.OTHER,
}  # fmt: skip


def sequences_of(
    request: PictureRequest, chosen: Iterable[TracedDirection], notes: Sequence[str]
) -> Iterator[Picture]:
    """Yield the figure of each direction of a connection. Raises UsageError.

    A file is read once for so many of them that follow each other and are in it.
    """
    for path, directions in groupby(chosen, lambda traced: traced.path):
        while some := [*islice(directions, _AT_ONCE)]:
            yield from _of_file(request, path, some, notes)


def _of_file(
    request: PictureRequest, path: Path, some: Sequence[TracedDirection], notes: Sequence[str]
) -> Iterator[Picture]:
    wanted = {(traced.number, traced.direction) for traced in some}
    made: dict[tuple[int, int], TimeSequence] = {}

    def watch(number: int, connection: Connection) -> None:
        for direction, half in enumerate(connection.halves):
            if (number, direction) in wanted:
                # Packets may be earlier than the first one in the file.
                begin_s = request.begin_s or -math.inf
                made[number, direction] = TimeSequence(half, begin_s, request.end_s)

    trace = read_trace(path, watch)
    for traced in some:
        if (seen := made.pop((traced.number, traced.direction), None)) is None:
            raise UsageError(f"{path}: it has no connection {traced.number}", "it has changed")
        yield _Diagram(request, traced, trace, seen).figure(notes)


class _Diagram:
    """Makes the panels of one figure."""

    def __init__(
        self, request: PictureRequest, traced: TracedDirection, trace: Trace, seen: TimeSequence
    ) -> None:
        self._request = request
        self._traced = traced
        self._trace = trace
        self._seen = seen
        connection = trace.connections[traced.number - 1]
        self._begin_s = request.begin_s or connection.began_s
        self._end_s = min(request.end_s, connection.last_s)
        if self._end_s <= self._begin_s and not (request.begin_s or math.isfinite(request.end_s)):
            self._end_s = self._begin_s + _LEAST_S
        if self._end_s <= self._begin_s:
            raise UsageError(
                f"--from, --to: connection {traced.number} has no packet then",
                f"it lasts from {connection.began_s:.6g} to {connection.last_s:.6g} s",
            )
        self._again = connection.halves[traced.direction].retransmissions or Retransmissions()
        self._shuts = [
            shut
            for shut in connection.shuts
            if shut.direction == traced.direction and shut.begin_s <= self._end_s
            and (shut.end_s is None or shut.end_s >= self._begin_s)
        ]  # fmt: skip
        self._notes: list[str] = []

    def figure(self, more: Sequence[str]) -> Picture:
        """Return the figure with its notes, and ``more`` of them."""
        makers: Mapping[str, Callable[[], Panel]] = {
            SEQUENCE: self._sequence, FLIGHT: self._flight, RTT: self._rtt, RATE: self._rate,
        }  # fmt: skip
        panels = [makers[name]() for name, _ in self._request.metrics]
        if exchanges := self._traced.packets.exchanges:
            self._notes.append(
                f"the connection controls the flow, whose data are {exchanges[0]['protocol']}"
            )
        x = Axis("time", "time_s", self._begin_s, self._end_s)
        notes = [self._happened(), *self._notes, *more, *self._trace.capture.faults]
        figure = self._request.figure(x, panels, [*NAMES.values()], "", notes)
        part = Part({key: value for key in KEYS if (value := self._traced.value(key))})
        about = ", ".join(filter(None, (figure.about, part.about)))
        return replace(figure, name=f"{figure.name}-{part.name}", about=visible(about))

    def _sequence(self) -> Panel:
        """Return each segment as a stroke between the lines of its answers."""
        seen = self._seen
        lines = [
            self._strokes(Shown.SACK, seen.sacked),
            self._strokes(Shown.DATA, seen.fresh),
            self._steps(Shown.ACKED, seen.acked),
            self._marks(Shown.LATE, seen.late),
            self._marks(Shown.DOUBLED, seen.doubled),
            *(self._marks(shown, found) for shown, found in self._sent_again()),
            self._marks(Shown.PROBE, seen.probes),
        ]
        if len(seen.fresh) < seen.fresh.count:
            self._notes.append(
                f"{seen.fresh.count:,} segments are drawn as {len(seen.fresh):,} lines: segments"
                " too close to tell apart share one; every retransmission, zero window and probe is"
                " shown"
            )
        shown = [line for line in lines if line.xs]
        low = min((min(line.lows or line.ys) for line in shown), default=0.0)
        high = max((max(line.highs or line.ys) for line in shown), default=1.0)
        y = Axis("sequence number", SEQUENCE, low, high)
        window, y = self._window(seen.edge, y)
        closed = [*self._closed(lambda shut: self._seen.closed_at.get(shut.begin_s))]
        return self._panel(y, [*window, *shown, *closed])

    def _flight(self) -> Panel:
        """Return what was in flight in the sender's view, with what bounds it."""
        seen = self._seen
        lines = [
            self._steps(Shown.CWND, seen.cwnd_bytes),
            self._steps(Shown.FLIGHT, seen.flight_bytes),
        ]
        shown = [line for line in lines if line.xs]
        high = max((y for line in shown for y in line.ys if y == y), default=1.0)
        y = Axis("in flight", FLIGHT, 0.0, high, from_zero=True)
        window, y = self._window(seen.window_bytes, y)
        return self._panel(y, [*window, *shown, *self._closed(lambda _: 0)])

    def _rtt(self) -> Panel:
        """Return the round-trip time of each acknowledgement, as far as it has one."""
        half = self._seen.half
        step_s = (self._end_s - self._begin_s) / self._request.columns
        found: dict[int, tuple[float, float, float]] = {}
        for time_s, rtt_s in zip(half.rtt_times_s, half.rtt_s, strict=True):
            if self._begin_s <= time_s <= self._end_s:
                column = int((time_s - self._begin_s) / step_s)
                at_s, low, high = found.get(column, (time_s, rtt_s, rtt_s))
                found[column] = at_s, min(low, rtt_s), max(high, rtt_s)
        if not found:
            self._say("no acknowledgement has a round-trip time")
            return self._panel(Axis(title_of(RTT), RTT), [])
        xs, lows, highs = zip(*found.values(), strict=True)
        line = PictureLine(NAMES[Shown.RTT], Shown.RTT, xs, highs, lows, highs, LineRole.STROKES)
        return self._panel(Axis(title_of(RTT), RTT, min(lows), max(highs)), [line])

    def _rate(self) -> Panel:
        """Return the rate of the bytes that passed, each once."""
        passed = self._seen.passed_bytes
        step_s = (self._end_s - self._begin_s) / _RATES
        times = [self._begin_s + place * step_s for place in range(_RATES + 1)]
        counts = [_value_at(passed, time_s) for time_s in times]
        rates = [(after - before) * 8 / step_s for before, after in pairwise(counts)]
        line = PictureLine(NAMES[Shown.RATE], Shown.RATE, times, [*rates, rates[-1]],
                           role=LineRole.STEPS)  # fmt: skip
        self._notes.append(f"throughput: of each {format_value('step_s', step_s)}")
        return self._panel(Axis(title_of(RATE), RATE, 0.0, max(rates), from_zero=True), [line])

    def _panel(self, y: Axis, lines: Sequence[PictureLine]) -> Panel:
        if y.high <= y.low:
            y = replace(y, high=y.low + 1.0)
        begins = [max(shut.begin_s, self._begin_s) for shut in self._shuts]
        events = [PictureEvent(x, NAMES[Shown.CLOSED], Shown.CLOSED) for x in begins]
        return Panel(y, lines, events if len(events) <= _MOST_WORDS else ())

    def _strokes(self, shown: Shown, found: Strokes) -> PictureLine:
        """Return segments as strokes, at most as many as there is room for."""
        if len(found) > 2 * self._request.columns:
            found.thin(2 * self._request.columns)
        return _struck(shown, found, LineRole.STROKES)

    def _marks(self, shown: Shown, found: Strokes) -> PictureLine:
        """Return what must not be overlooked; those at one place are one mark."""
        if len(found) > self._request.columns:
            found.thin(self._request.columns)
        return _struck(shown, found, LineRole.MARKS)

    def _steps(self, shown: Shown, found: Steps) -> PictureLine:
        """Return a line up to the end of the figure; NaN where its value is unknown."""
        if len(found) > 4 * self._request.columns:
            found.thin(self._request.columns)
        xs = [*found.times_s]
        ys = [math.nan if value == UNKNOWN else float(value) for value in found.values]
        if xs and xs[-1] < self._end_s:
            xs.append(self._end_s)
            ys.append(ys[-1])
        if all(math.isnan(y) for y in ys):
            xs = ys = []
        return PictureLine(NAMES[shown], shown, xs, ys, role=LineRole.STEPS)

    def _window(self, found: Steps, y: Axis) -> tuple[list[PictureLine], Axis]:
        """Return the line of the receiver's window, as far as it is near, and the axis for it."""
        line = self._steps(Shown.WINDOW, found)
        known = [value for value in line.ys if math.isfinite(value)]
        if not known:
            self._say("the receiver's window is unknown: the trace has no handshake, or no answer")
            return [], y
        most = y.low + (_FAR_ABOVE_FLIGHT if y.from_zero else _FAR) * (y.high - y.low)
        near = [value for value in known if value <= most]
        if len(near) < len(known):
            far = max(known) - (y.low if y.from_zero else y.high)
            self._say(
                f"{y.title}: where the receiver's window is beyond the axis, up to"
                f" {format_value(SEQUENCE, far)} more, it is not drawn"
            )
            line = replace(line, ys=[value if value <= most else math.nan for value in line.ys])
        return [line] if near else [], replace(y, high=max([y.high, *near]))

    def _closed(self, level_of: Callable[[ZeroWindow], int | None]) -> Iterator[PictureLine]:
        """Yield zero windows: a line for as long as each lasted."""
        xs: list[float] = []
        ys: list[float] = []
        least_s = (self._end_s - self._begin_s) / self._request.columns
        for shut in self._shuts:
            begin_s = max(shut.begin_s, self._begin_s)
            end_s = self._end_s if shut.end_s is None else min(shut.end_s, self._end_s)
            level = level_of(shut)
            if level is None:
                level = self._seen.acked.at(begin_s) if self._seen.acked else 0
            if xs and begin_s - xs[-2] < least_s:  # no dot is between it and the one before
                xs[-2] = end_s
            else:
                xs += [begin_s, end_s, end_s]
                ys += [float(level), float(level), math.nan]
        if xs:
            name = NAMES[Shown.CLOSED]
            yield PictureLine(name, Shown.CLOSED, xs, ys, role=LineRole.SPANS)

    def _sent_again(self) -> Iterator[tuple[Shown, Strokes]]:
        """Yield the retransmissions of each kind, and of all those that were needless."""
        found = {shown: Strokes() for shown in (*_KINDS.values(), Shown.SPURIOUS)}
        again = self._again
        for time_s, start, end, kind, needless in zip(
            again.times_s, again.starts, again.ends, again.kinds, again.needless, strict=True
        ):
            if self._begin_s <= time_s <= self._end_s:
                found[_KINDS[Why(kind)]].add(time_s, start, end)
                if needless:
                    found[Shown.SPURIOUS].add(time_s, start, end)
        yield from found.items()

    def _happened(self) -> str:
        """Return in words what the figure has marks of, each of them counted."""
        counts = [(shown, found.count) for shown, found in self._sent_again()]
        counts += [(Shown.LATE, self._seen.late.count), (Shown.DOUBLED, self._seen.doubled.count)]
        counts += [(Shown.CLOSED, len(self._shuts)), (Shown.PROBE, self._seen.probes.count)]
        words = [f"{NAMES[shown]} {count:,}" for shown, count in counts if count]
        return f"marked: {', '.join(words)}" if words else "nothing was sent again"

    def _say(self, note: str) -> None:
        if note not in self._notes:
            self._notes.append(note)


def _struck(shown: Shown, found: Strokes, role: LineRole) -> PictureLine:
    lows, highs = [*map(float, found.starts)], [*map(float, found.ends)]
    return PictureLine(NAMES[shown], shown, [*found.times_s], highs, lows, highs, role)


def _value_at(line: Steps, time_s: float) -> int:
    """Return the value of a line at a time; 0 before it begins."""
    place = bisect_right(line.times_s, time_s)
    return line.values[place - 1] if place else 0
