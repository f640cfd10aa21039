"""One stream at one end, and the intervals that it counts in.

A stream's thread moves bytes and counts them. When it finds that the end of an interval has passed,
it notes its counts for that interval itself: so no interval depends on another thread's being woken
in time, and a thread that was not run for a while has moved nothing meanwhile. The measurement
makes such notes for a stream that waits for its peer.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

from .schedule import Schedule

__all__ = ["Note", "Reading", "Stream", "Timeline"]


class Reading(NamedTuple):
    """What a stream shows at one moment: counts since its start, and present values."""

    counts: Mapping[str, float]
    values: Mapping[str, float]


class Note(NamedTuple):
    """What a stream showed at the end of an interval; ``at_ns`` is on the monotonic clock."""

    number: int
    at_ns: int
    reading: Reading


class Timeline:
    """When the streams of one side began, which is when the first of them did."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.begun = threading.Event()
        self.start_ns = 0
        """On the monotonic clock; 0 before the first byte."""
        self._lock = threading.Lock()

    def begin(self, at_ns: int) -> None:
        """Take the time of a stream's first byte; only the first stream's counts."""
        with self._lock:
            self.start_ns = self.start_ns or at_ns
        self.begun.set()


class Stream:
    """Base of the streams: a subclass moves bytes in `move` and tells what it counted.

    ``stops_in_time`` says that the stream ends with its last interval, by itself.
    """

    stops_in_time = True

    def __init__(self, index: int, timeline: Timeline) -> None:
        self.index = index
        self.facts: dict[str, Any] = {}
        """What is in force beyond the socket's options, by the names of the results."""
        self.stopped = False
        self.failure: OSError | None = None
        self.ended_ns = 0
        """When the last byte moved; `move` may set it, otherwise it is when `move` returned."""
        self.next_ns = 1 << 63
        """When the present interval ends: `move` looks at the clock and calls `note`."""
        self.notes: deque[Note] = deque()
        self._timeline = timeline
        self._boundaries = timeline.schedule.boundaries()
        self._boundary = next(self._boundaries)
        self._lock = threading.Lock()

    def move(self) -> None:
        """Move bytes until the end or until `stopped`; call `begin` at the first and `note`."""
        raise NotImplementedError

    def reading(self) -> Reading:
        """Return the present counts; any thread may call this."""
        raise NotImplementedError

    @property
    def moved_bytes(self) -> int:
        """Payload bytes sent or received so far."""
        raise NotImplementedError

    @property
    def packets(self) -> int:
        """Datagrams sent so far; a TCP stream sends none."""
        return 0

    def omit(self) -> None:
        """Forget the distributions so far: the omitted part is over."""

    def summary(self) -> Mapping[str, Any]:
        """Return final figures that are no differences of counts; called when `move` has ended."""
        return {}

    def expect(self, packets: int) -> None:
        """Take the sender's final count of datagrams; a TCP stream ends by itself."""

    def stop(self) -> None:
        """Make `move` return soon."""
        self.stopped = True

    def close(self) -> None:
        """Free the stream's socket; called when `move` has ended or never began."""

    def begin(self, at_ns: int | None = None) -> None:
        """Begin to count, with the first byte: now, or at a time that is known better."""
        self._timeline.begin(at_ns or time.monotonic_ns())
        self.note(0)

    def note(self, now_ns: int) -> None:
        """Note the counts for every interval that has ended by now. Any thread may call this."""
        with self._lock:
            start_ns = self._timeline.start_ns
            if not start_ns:
                return  # Nothing has moved yet, in any stream.
            self.next_ns = start_ns + self._boundary.at_ns
            if now_ns < self.next_ns:
                return
            reading = self.reading()
            while self.next_ns <= now_ns and not self._boundary.last:
                self.notes.append(Note(self._boundary.number, self.next_ns, reading))
                if self._boundary.at_ns == self._timeline.schedule.omit_ns:
                    self.omit()
                self._boundary = next(self._boundaries)
                self.next_ns = start_ns + self._boundary.at_ns
            if self.next_ns <= now_ns:
                self.next_ns = 1 << 63
                self.stopped = self.stopped or self.stops_in_time
