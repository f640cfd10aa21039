"""What a time-sequence diagram shows of one direction: who had sent and acknowledged what, when.

The diagram is Shepard's (TCP Packet Trace Analysis, MIT-LCS-TR-494, 1991), as tcptrace draws it:
each segment is a stroke over its sequence numbers; below the strokes runs the line of what is
acknowledged, above them that of the receiver's window.

What lies outside a time is not kept, and memory is bounded: beyond `MOST` strokes or steps,
those that no diagram shows apart become one. Nothing is between strokes that was not sent, but
gaps that are smaller than a dot.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter

from benchctl.packets.sender.seen import Cause, Seen, Sent
from benchctl.packets.sender.sending import HalfConnection

MOST = 1 << 16
"""Strokes, or steps of a line, that are kept as they were."""
UNKNOWN = -1
DOTS = 2048
"""Along each axis: more than a diagram has."""


class Strokes:
    """Ranges of sequence numbers, each at its time; ``count`` is how many there were."""

    def __init__(self) -> None:
        self.times_s, self.starts, self.ends = array("d"), array("q"), array("q")
        self.count = 0

    def __len__(self) -> int:
        return len(self.times_s)

    def add(self, time_s: float, start: int, end: int) -> None:
        """Add a range behind all others."""
        self.times_s.append(time_s)
        self.starts.append(start)
        self.ends.append(end)
        self.count += 1
        if len(self.times_s) > MOST:
            dots = DOTS
            while len(self.times_s) > MOST // 2:
                self.thin(dots)
                dots //= 2

    def thin(self, dots: int) -> None:
        """Make those one that touch, or nearly, in the same of so many columns."""
        if not self.times_s:
            return
        column_s = (max(self.times_s) - min(self.times_s)) / dots
        size = (max(self.ends) - min(self.starts)) / dots
        kept = [*_touching(self._columns(column_s), size)]
        self.times_s = array("d", (stroke[2] for stroke in kept))
        self.starts = array("q", (stroke[0] for stroke in kept))
        self.ends = array("q", (stroke[1] for stroke in kept))

    def _columns(self, width_s: float) -> Iterator[list[tuple[int, int, float]]]:
        """Yield the strokes of each column."""
        strokes = sorted(zip(self.times_s, self.starts, self.ends, strict=True))
        for _, same in groupby(strokes, lambda stroke: _column(stroke[0], width_s)):
            yield sorted((start, end, time_s) for time_s, start, end in same)


def _touching(
    columns: Iterator[list[tuple[int, int, float]]], apart: float
) -> Iterator[tuple[int, int, float]]:
    for column in columns:
        start, end, time_s = column[0]
        for low, high, at_s in column:
            if low > end + apart:
                yield start, end, time_s
                start, end, time_s = low, high, at_s
            else:
                end, time_s = max(end, high), min(time_s, at_s)
        yield start, end, time_s


class Steps:
    """A line that keeps each value until the next."""

    def __init__(self) -> None:
        self.times_s, self.values = array("d"), array("q")

    def __len__(self) -> int:
        return len(self.times_s)

    def begin(self, time_s: float, value: int) -> None:
        """Set the value that the line begins with."""
        self.times_s, self.values = array("d", [time_s]), array("q", [value])

    def add(self, time_s: float, value: int) -> None:
        """Add a value behind all others."""
        self.times_s.append(time_s)
        self.values.append(value)
        if len(self.times_s) > MOST:
            self.thin(DOTS)

    def at(self, time_s: float) -> int:
        """Return the value at a time; the first before it has one."""
        return self.values[max(0, bisect_right(self.times_s, time_s) - 1)]

    def thin(self, dots: int) -> None:
        """Keep of each of so many columns the first value, the last, and both extremes."""
        if not self.times_s:
            return
        width_s = (max(self.times_s) - min(self.times_s)) / dots
        steps = sorted(zip(self.times_s, self.values, strict=True), key=itemgetter(0))
        kept: list[tuple[float, int]] = []
        for _, column in groupby(steps, lambda step: _column(step[0], width_s)):
            same = [*column]
            least, most = (of(range(len(same)), key=lambda n: same[n][1]) for of in (min, max))
            kept += (same[place] for place in sorted({0, least, most, len(same) - 1}))
        self.times_s = array("d", (time_s for time_s, _ in kept))
        self.values = array("q", (value for _, value in kept))


def _column(time_s: float, width_s: float) -> int:
    return int(time_s // width_s) if width_s > 0 else 0


class TimeSequence(Seen):
    """Collects the data of a half from ``begin_s`` to ``end_s``, in seconds of the trace.

    ``fresh``, ``late`` and ``doubled`` are segments by how they came; the half has what was sent
    again. ``acked`` and ``edge`` are what is acknowledged and how far data may be sent, as they
    pass the place of the trace; ``flight_bytes``, ``window_bytes`` and ``cwnd_bytes`` are the
    sender's view; ``passed_bytes`` counts the bytes that passed, each once. A value of a line is
    `UNKNOWN` where the trace does not show it.
    """

    def __init__(
        self, half: HalfConnection, begin_s: float = -math.inf, end_s: float = math.inf
    ) -> None:
        self.half = half
        self.begin_s, self.end_s = begin_s, end_s
        self.fresh, self.late, self.doubled = Strokes(), Strokes(), Strokes()
        self.sacked, self.probes = Strokes(), Strokes()
        self.acked, self.edge, self.passed_bytes = Steps(), Steps(), Steps()
        self.flight_bytes, self.window_bytes, self.cwnd_bytes = Steps(), Steps(), Steps()
        self.closed_at: dict[float, int] = {}
        """What was acknowledged when a window became zero, by that time."""
        self._by_how = {Sent.NEW: self.fresh, Sent.LATE: self.late, Sent.DOUBLED: self.doubled}
        self._is_closed = False
        self._before = (0, False)
        half.seen = self

    def sent(self, time_s: float, start: int, end: int, how: Sent) -> None:
        """Keep a segment that passed."""
        self._step(self.passed_bytes, time_s, self.half.unique_bytes)
        if how is not Sent.AGAIN and self.begin_s <= time_s <= self.end_s:
            self._by_how[how].add(time_s, start, end)

    def probed(self, time_s: float, start: int) -> None:
        """Keep a window probe or a keep-alive."""
        if self.begin_s <= time_s <= self.end_s:
            self.probes.add(time_s, start, start)

    def heard(
        self, time_s: float, acked: int, edge: int | None, blocks: Sequence[tuple[int, int]]
    ) -> None:
        """Keep what an acknowledgement said."""
        self._step(self.acked, time_s, acked)
        self._step(self.edge, time_s, UNKNOWN if edge is None else edge)
        if (edge == acked) is not self._is_closed:
            self._is_closed = edge == acked
            if self._is_closed:
                self.closed_at[time_s] = acked
        if blocks and self.begin_s <= time_s <= self.end_s:
            for start, end in blocks:
                self.sacked.add(time_s, start, end)

    def flies(
        self, time_s: float, flight_bytes: int, window_bytes: int | None, cause: Cause
    ) -> None:
        """Keep what is in flight in the sender's view, and what bounds it."""
        before, is_cwnd = self._before
        if not is_cwnd:
            self._step(self.cwnd_bytes, time_s, UNKNOWN)
        elif flight_bytes < before:
            self._step(self.cwnd_bytes, time_s, before)
        self._before = flight_bytes, cause is Cause.NETWORK and not self.half.is_recovering
        self._step(self.flight_bytes, time_s, flight_bytes)
        self._step(self.window_bytes, time_s, UNKNOWN if window_bytes is None else window_bytes)

    def _step(self, line: Steps, time_s: float, value: int) -> None:
        """Add a value to a line; of those before the beginning, only the last counts."""
        if line.values and line.values[-1] == value:
            return
        if time_s < self.begin_s:
            line.begin(self.begin_s, value)
        elif time_s <= self.end_s:
            line.add(time_s, value)
