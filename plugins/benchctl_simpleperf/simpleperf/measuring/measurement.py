"""Runs the streams of one direction at one end of a flow, and makes rows of their notes.

Time starts with the first byte that moves, so the receiver's intervals are the sender's, shifted by
the path's delay.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Callable, NamedTuple

from benchctl_standalone.priority import sharpen_timers, woken_first

from ..protocol.intervals import SECOND_NS, Boundary, IntervalRow
from .stream import IntervalNote, Stream, Timeline

# A stopped stream ends at once; this bounds the wait for one that is blocked.
_JOIN_S = 2.0
# How often the streams' notes are collected and reported.
_COLLECT_NS = 100_000_000
_FAR_NS = 1 << 63


class Totals(NamedTuple):
    """The counts of one end in one direction, without the omitted part, stream by stream."""

    duration_s: float
    streams: Sequence[Mapping[str, Any]]


class Measurement(threading.Thread):
    """One direction at one end, from its first byte to its totals.

    ``notify`` is called from the measurement's own thread after new rows and at the end; the owner
    then takes from `rows` and checks `totals`. Streams that do not stop in time may continue for
    ``drain_s`` after the end of the last interval, to move the remaining data.
    """

    def __init__(
        self,
        streams: Sequence[Stream],
        timeline: Timeline,
        notify: Callable[[], None],
        drain_s: float = 0.0,
    ) -> None:
        super().__init__(daemon=True)
        self.rows: deque[IntervalRow] = deque()
        self.totals: Totals | None = None
        self.start_epoch_s = 0.0
        """Wall-clock time of the first byte."""
        self._streams = streams
        self._timeline = timeline
        self._notify = notify
        self._drain_s = drain_s
        self._over = threading.Event()
        self._running = len(streams)
        self._closing = False
        self._ended = True
        self._lock = threading.Lock()

    @property
    def failure(self) -> OSError | None:
        """The first error of a stream, if any."""
        return next((stream.failure for stream in self._streams if stream.failure), None)

    def start(self) -> None:
        """Begin. Raises OSError if the system has no thread left."""
        self._ended = False
        try:
            super().start()
        except RuntimeError as error:
            self._ended = True
            raise OSError(str(error)) from error

    def stop(self) -> None:
        """End now; the totals are those so far."""
        for stream in self._streams:
            stream.stop()
        self._over.set()
        self._timeline.begun.set()

    def close(self) -> None:
        """Stop if it still runs, and free the sockets as soon as it has ended."""
        with self._lock:
            self._closing, ended = True, self._ended
        if ended:
            self._close_streams()
        else:
            for stream in self._streams:
                stream.stopped = True
            self.stop()

    def run(self) -> None:
        threads = list(filter(None, map(self._launch, self._streams)))
        self._timeline.begun.wait()
        now_ns = time.monotonic_ns()
        start_ns = self._timeline.start_ns or now_ns
        self.start_epoch_s = unix_time_s(start_ns)
        ledger = _Ledger(self._streams, self._timeline, start_ns)
        sharpen_timers()
        with woken_first():
            self._note_until_end(ledger)
        # A stream that was not stopped has seen its end: everything sent has arrived.
        cut_off = any(stream.stopped for stream in self._streams)
        self.stop()
        for thread in threads:
            thread.join(_JOIN_S)
        lasts = [stream.last for stream in self._streams]
        if all(lasts):
            ended_ns = max(last.at_ns for last in lasts if last)
        else:
            ended_ns = max(stream.ended_ns for stream in self._streams) or time.monotonic_ns()
            end_ns = self._timeline.end_ns
            if cut_off and time.monotonic_ns() >= end_ns:
                ended_ns = max(ended_ns, end_ns)
        self.rows.extend(ledger.finish(ended_ns))
        self.totals = ledger.totals(ended_ns)
        self._tell()
        with self._lock:
            self._ended, closing = True, self._closing
        if closing:
            self._close_streams()

    def _note_until_end(self, ledger: _Ledger) -> None:
        """Let the streams note their intervals, until the last has ended or no data moves."""
        collect_ns = time.monotonic_ns() + _COLLECT_NS
        while not self._over_by(min(end_ns := self._timeline.end_ns, collect_ns, self._due_ns())):
            now_ns = time.monotonic_ns()
            for stream in self._streams:
                if not stream.notes_itself:
                    stream.note(now_ns)
            if now_ns >= end_ns:
                self._over.wait(self._drain_s)
                return
            if now_ns >= collect_ns:
                collect_ns = now_ns + _COLLECT_NS
                self.rows.extend(ledger.collect())
                self._tell()

    def _launch(self, stream: Stream) -> threading.Thread | None:
        """Start a stream's thread; without one the stream has failed."""
        thread = threading.Thread(target=self._move, args=(stream,), daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            stream.failure = OSError(str(error))
            self._one_has_ended(stream)
            return None
        return thread

    def _move(self, stream: Stream) -> None:
        try:
            stream.move()
        except BlockingIOError:
            # The socket's own timeout of one call has expired.
            stream.failure = TimeoutError("no data for too long")
        except OSError as error:
            if not stream.stopped:
                stream.failure = error
        self._one_has_ended(stream)

    def _one_has_ended(self, stream: Stream) -> None:
        stream.ended_ns = stream.ended_ns or time.monotonic_ns()
        with self._lock:
            self._running -= 1
            if not self._running:
                self._over.set()
                self._timeline.begun.set()

    def _due_ns(self) -> int:
        """Return when a reading of the kernel is due."""
        return min(
            stream.next_ns if stream.asks_the_kernel else _FAR_NS for stream in self._streams
        )

    def _over_by(self, deadline_ns: int) -> bool:
        """Wait until a time; returns early, and True, when all streams have ended."""
        return self._over.wait(max(deadline_ns - time.monotonic_ns(), 0) / SECOND_NS)

    def _tell(self) -> None:
        """Notify the owner, unless it has stopped listening."""
        with self._lock:
            if not self._closing:
                self._notify()

    def _close_streams(self) -> None:
        for stream in self._streams:
            stream.close()


class _Ledger:
    """Turns the streams' notes into rows and totals; counts become differences."""

    def __init__(self, streams: Sequence[Stream], timeline: Timeline, start_ns: int) -> None:
        self._streams = streams
        self._timeline = timeline
        self._start_ns = start_ns
        self._from_ns: list[int | None] = [None for _ in streams]
        self._numbers = [0 for _ in streams]
        self._last: list[Mapping[str, float]] = [{} for _ in streams]
        self._base: list[Mapping[str, float] | None] = [
            None if timeline.schedule.omit_ns else {} for _ in streams
        ]

    def collect(self) -> list[IntervalRow]:
        """Return the rows of the intervals that the streams have noted.

        There is none of an interval without time: second 0 has come at the end of another.
        """
        rows = (
            self._row(position, note)
            for position, stream in enumerate(self._streams)
            for note in (stream.notes.popleft() for _ in range(len(stream.notes)))
        )
        return [row for row in rows if row.end_s > row.start_s]

    def finish(self, ended_ns: int) -> list[IntervalRow]:
        """Return the last rows, the streams having ended at a time."""
        for stream in self._streams:
            if not stream.last:
                stream.note(ended_ns)
        rows = self.collect()
        for position, stream in enumerate(self._streams):
            # A stream that ended before the last interval's end leaves one without data.
            at_ns = ended_ns if ended_ns > self._from(position) else time.monotonic_ns()
            boundary = Boundary(self._numbers[position], 0, last=True)
            note = stream.last or IntervalNote(boundary, at_ns, at_ns, stream.reading())
            rows.append(self._row(position, note))
        return rows

    def totals(self, ended_ns: int) -> Totals:
        """Return the counts from the end of the omitted part on."""
        # A stream that ended within the omitted part has measured nothing.
        return Totals(
            max(ended_ns - self._timeline.zero_ns, 0) / SECOND_NS,
            [
                {**_less(last, last if base is None else base), **stream.summary()}
                for stream, last, base in zip(self._streams, self._last, self._base)
            ],
        )

    def _from(self, position: int) -> int:
        """Return where the next interval of a stream begins."""
        from_ns = self._from_ns[position]
        return self._timeline.start_ns or self._start_ns if from_ns is None else from_ns

    def _row(self, position: int, note: IntervalNote) -> IntervalRow:
        zero_ns, from_ns = self._timeline.zero_ns, self._from(position)
        if note.due_ns < zero_ns:
            # The end of the omitted part may be unknown yet: assume the requested length.
            start_ns = self._timeline.start_ns or self._start_ns
            zero_ns = start_ns + self._timeline.schedule.omit_ns
        metrics = {**_less(note.reading.counts, self._last[position]), **note.reading.values}
        if self._streams[position].asks_the_kernel:
            metrics["reading_late_s"] = (note.at_ns - note.due_ns) / SECOND_NS
        row = IntervalRow(
            position,
            note.boundary.number,
            (from_ns - zero_ns) / SECOND_NS,
            (note.at_ns - zero_ns) / SECOND_NS,
            metrics,
        )
        self._numbers[position] = note.boundary.number + 1
        self._from_ns[position] = note.at_ns
        self._last[position] = note.reading.counts
        at_zero = note.boundary.at_ns >= self._timeline.schedule.omit_ns
        if self._base[position] is None and at_zero:
            self._base[position] = note.reading.counts
        return row


def _less(counts: Mapping[str, float], base: Mapping[str, float]) -> dict[str, float]:
    return {name: count - base.get(name, 0) for name, count in counts.items()}


_READINGS = 5


def unix_time_s(at_ns: int) -> float:
    """Return a time of the monotonic clock as Unix time.

    A thread may be interrupted between its readings of the two clocks. So they are read several
    times, and the readings closest together count.
    """
    readings = [
        (time.monotonic_ns(), time.time_ns(), time.monotonic_ns()) for _ in range(_READINGS)
    ]
    before_ns, wall_ns, after_ns = min(readings, key=lambda each: each[2] - each[0])
    return (wall_ns - (before_ns + after_ns) // 2 + at_ns) / SECOND_NS
