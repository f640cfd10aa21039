"""One stream at one end, and its counts by interval.

A stream's thread moves bytes and counts them. When it finds that the end of an interval has passed,
it notes its counts for that interval itself. So no interval depends on the wake-up of another
thread, and a thread that was not running for a while has moved nothing meanwhile. Datagrams are
always counted so. A TCP stream may wait long for its peer: at the end of each interval the
measurement makes the note if the stream has not. The kernel's figures of a TCP sender are valid
only when they are read, so such a note carries the time of reading.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..protocol.intervals import Boundary, Schedule
from ..protocol.settings import Pause


class Reading(NamedTuple):
    """A stream's state at one moment: counts since its start, and current values."""

    counts: Mapping[str, float]
    values: Mapping[str, float]


class IntervalNote(NamedTuple):
    """A stream's state at the end of an interval, or shortly after it.

    ``due_ns`` is the interval's end and ``at_ns`` the time of the reading, on the monotonic clock.
    """

    boundary: Boundary
    due_ns: int
    at_ns: int
    reading: Reading


# Later than any clock shows.
NEVER_NS = 1 << 63


class Timeline:
    """When the streams of one side began, and when their second 0 is, on the monotonic clock.

    The first stream to start sets both: second 0 is the omitted part after the start. A receiver of
    stamped datagrams lets both `follow` them. ``pauses`` are those of receivers over TCP, in order.
    """

    def __init__(self, schedule: Schedule, pauses: Sequence[Pause] = ()) -> None:
        self.schedule = schedule
        self.pauses = pauses
        self.begun = threading.Event()
        self.start_ns = 0
        """0 before the first byte."""
        self.zero_ns = NEVER_NS
        self._ended_ns = 0
        """The end of the latest interval that has ended."""
        self._lock = threading.Lock()

    @property
    def end_ns(self) -> int:
        """When the last interval ends."""
        return self.zero_ns + self.schedule.end_ns - self.schedule.omit_ns

    @property
    def fixed(self) -> bool:
        """Whether an interval has ended at second 0 or later, or a stream."""
        return self._ended_ns >= self.zero_ns

    def begin(self, at_ns: int) -> None:
        """Take the time of a stream's first byte."""
        with self._lock:
            if not self.start_ns:
                self.start_ns = at_ns
                self.zero_ns = at_ns + self.schedule.omit_ns
        self.begun.set()

    def follow(self, zero_ns: int, measured: bool) -> bool:
        """Take when second 0 is by a datagram that has arrived; returns whether others count, too.

        In the omitted part the latest datagram counts: what is sent at second 0 is delayed by the
        same queue. In the measured part it is the one with the least delay. When an interval has
        ended at second 0 or later, or a stream, none does, so times that were reported stay true.
        """
        with self._lock:
            if self.fixed:
                return False
            if measured:
                zero_ns = min(zero_ns, self.zero_ns)
            self.zero_ns = max(zero_ns, self._ended_ns)
            if not self._ended_ns:
                self.start_ns = self.zero_ns - self.schedule.omit_ns
            return True

    def fix(self) -> None:
        """Let second 0 stay where it is, because a stream has ended by it."""
        with self._lock:
            self._ended_ns = max(self._ended_ns, self.zero_ns)

    def ended_ns(self, boundary: Boundary, now_ns: int) -> int:
        """Return when an interval ends; if that is over, it has ended at that time for good."""
        with self._lock:
            due_ns = self.zero_ns + boundary.at_ns - self.schedule.omit_ns
            if boundary.at_ns < self.schedule.omit_ns:
                due_ns = min(self.start_ns + boundary.at_ns, self.zero_ns)
            if due_ns <= now_ns:
                self._ended_ns = max(self._ended_ns, due_ns)
            return due_ns


class Stream:
    """Base of the streams: a subclass moves bytes in `move` and reports its counts.

    ``stops_in_time``: the stream ends with its last interval by itself. ``notes_itself``: nobody
    else makes its notes while it moves. ``asks_the_kernel``: a note is of the moment when it is
    made, and intervals that had ended before are merged with that one.
    """

    stops_in_time = True
    notes_itself = False
    asks_the_kernel = False

    def __init__(self, index: int, timeline: Timeline, sock: socket.socket) -> None:
        self.index = index
        self.facts: dict[str, Any] = {}
        """What is in force beyond the socket's options, by the names of the results."""
        self.stopped = False
        self.failure: OSError | None = None
        self.ended_ns = 0
        """When the last byte moved; `move` may set it, otherwise it is when `move` returned."""
        self.next_ns = NEVER_NS
        """When the present interval ends: `move` looks at the clock and calls `note`."""
        self.notes: deque[IntervalNote] = deque()
        self.last: IntervalNote | None = None
        """What the kernel told at the end of the last interval, of a stream that asks it."""
        self._sock = sock
        self._timeline = timeline
        self._boundaries = timeline.schedule.boundaries()
        self._boundary = next(self._boundaries)
        self._lock = threading.Lock()

    def move(self) -> None:
        """Move bytes until the end or until `stopped`; call `begin` at the first and `note`."""
        raise NotImplementedError

    def reading(self) -> Reading:
        """Return the current counts; any thread may call this."""
        raise NotImplementedError

    @property
    def moved_bytes(self) -> int:
        """Payload bytes sent or received so far."""
        raise NotImplementedError

    @property
    def packets(self) -> int:
        """Datagrams sent so far; a TCP stream sends none."""
        return 0

    @property
    def omitted_packets(self) -> int:
        """Those of them in the omitted part."""
        return 0

    def omit(self) -> None:
        """Reset the distributions: the omitted part has ended."""

    def summary(self) -> Mapping[str, Any]:
        """Return final figures other than differences of counts; called when `move` has ended."""
        return {}

    def expect(self, packets: int, omitted: int, lasted_s: float | None) -> None:
        """Take the sender's final counts of datagrams, and how long it measured, if it says so.

        A TCP stream ends by itself.
        """

    def stop(self) -> None:
        """Make `move` return as soon as its measurement is complete."""
        self.stopped = True

    def close(self) -> None:
        """Free the stream's socket; called when `move` has ended or never began."""
        self._sock.close()

    def begin(self, at_ns: int | None = None) -> None:
        """Begin to count, with the first byte: now, or at a more exact time."""
        self._timeline.begin(at_ns or time.monotonic_ns())
        self.note(0)

    def note(self, now_ns: int) -> None:
        """Note the counts for every interval that has ended by now. Any thread may call this."""
        timeline = self._timeline
        with self._lock:
            if not timeline.start_ns:
                return  # No stream has moved data yet.
            self.next_ns = timeline.ended_ns(self._boundary, now_ns)
            if now_ns < self.next_ns:
                return
            reading = self.reading()
            read_ns = time.monotonic_ns() if self.asks_the_kernel else 0
            ended: list[IntervalNote] = []
            while self.next_ns <= now_ns and not self._boundary.last:
                ended.append(
                    IntervalNote(self._boundary, self.next_ns, read_ns or self.next_ns, reading)
                )
                if self._boundary.at_ns == timeline.schedule.omit_ns:
                    self.omit()
                self._boundary = next(self._boundaries)
                self.next_ns = timeline.ended_ns(self._boundary, now_ns)
            if self.next_ns <= now_ns:
                if self.asks_the_kernel:
                    self.last = IntervalNote(self._boundary, self.next_ns, read_ns, reading)
                self.next_ns = NEVER_NS
                self.stopped = self.stopped or self.stops_in_time
            self.notes.extend(self._one_of(ended) if self.asks_the_kernel else ended)

    def _one_of(self, ended: Sequence[IntervalNote]) -> Sequence[IntervalNote]:
        """Return the last of the intervals that ended before one reading, or that of second 0.

        If the measurement has ended, too, the reading is of its last interval.
        """
        omit_ns = self._timeline.schedule.omit_ns
        at_zero = [note for note in ended if note.boundary.at_ns == omit_ns]
        return at_zero if at_zero or self.last else ended[-1:]
