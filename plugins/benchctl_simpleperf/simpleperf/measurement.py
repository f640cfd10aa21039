"""Runs the streams of one direction at one end of a flow, and makes rows of what they noted.

Time starts with the first byte that moves, so the receiver's intervals are the sender's, shifted by
the path's delay.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Callable, NamedTuple

from .intervals import Row
from .schedule import SECOND_NS
from .stream import Reading, Stream, Timeline

__all__ = ["Measurement", "Totals"]

# A stopped stream ends at once; this bounds the wait for one that the system keeps.
_JOIN_S = 2.0
# The streams keep the intervals; this is how often what they noted is collected and told.
_COLLECT_NS = 100_000_000


class Totals(NamedTuple):
    """What one end counted in one direction, the omitted part excluded, stream by stream."""

    duration_s: float
    streams: Sequence[Mapping[str, Any]]


class Measurement(threading.Thread):
    """One direction at one end, from its first byte to its totals.

    ``notify`` is called from the measurement's own thread after new rows and at the end; the owner
    then takes from `rows` and looks at `totals`. Streams that do not stop in time may go on for
    ``drain_s`` after the last interval's end, to move what is still to come.
    """

    def __init__(
        self,
        streams: Sequence[Stream],
        timeline: Timeline,
        notify: Callable[[], None],
        drain_s: float = 0.0,
    ) -> None:
        super().__init__(daemon=True)
        self.rows: deque[Row] = deque()
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
        self._ended = False
        super().start()

    def stop(self) -> None:
        """End now; the totals are of what was measured so far."""
        for stream in self._streams:
            stream.stop()
        self._over.set()
        self._timeline.begun.set()

    def close(self) -> None:
        """Stop where it still runs, and free the sockets as soon as it has ended."""
        with self._lock:
            self._closing, ended = True, self._ended
        if ended:
            self._close_streams()
        else:
            self.stop()

    def run(self) -> None:
        threads = [
            threading.Thread(target=self._move, args=(stream,), daemon=True)
            for stream in self._streams
        ]
        for thread in threads:
            thread.start()
        self._timeline.begun.wait()
        now_ns = time.monotonic_ns()
        start_ns = self._timeline.start_ns or now_ns
        self.start_epoch_s = time.time() - (now_ns - start_ns) / SECOND_NS
        ledger = _Ledger(self._streams, self._timeline.schedule.omit_ns, start_ns)
        end_ns = start_ns + self._timeline.schedule.end_ns
        while not self._over_by(min(end_ns, time.monotonic_ns() + _COLLECT_NS)):
            if time.monotonic_ns() >= end_ns:
                self._over.wait(self._drain_s)
                break
            rows = ledger.collect(time.monotonic_ns())
            if rows:
                self.rows.extend(rows)
                self._tell()
        # A stream that was not stopped has seen its end: all that was sent has come.
        cut_off = any(stream.stopped for stream in self._streams)
        self.stop()
        for thread in threads:
            thread.join(_JOIN_S)
        ended_ns = max(stream.ended_ns for stream in self._streams) or time.monotonic_ns()
        if cut_off and time.monotonic_ns() >= end_ns:
            ended_ns = max(ended_ns, end_ns)
        self.rows.extend(ledger.finish(ended_ns))
        self.totals = ledger.totals(ended_ns)
        self._tell()
        with self._lock:
            self._ended, closing = True, self._closing
        if closing:
            self._close_streams()

    def _move(self, stream: Stream) -> None:
        try:
            stream.move()
        except BlockingIOError:
            # The socket's own time limit for one call has passed.
            stream.failure = TimeoutError("nothing moved for too long")
        except OSError as error:
            if not stream.stopped:
                stream.failure = error
        stream.ended_ns = stream.ended_ns or time.monotonic_ns()
        with self._lock:
            self._running -= 1
            if not self._running:
                self._over.set()
                self._timeline.begun.set()

    def _over_by(self, deadline_ns: int) -> bool:
        """Wait until a time; returns early, and True, when all streams have ended."""
        return self._over.wait(max(deadline_ns - time.monotonic_ns(), 0) / SECOND_NS)

    def _tell(self) -> None:
        """Notify the owner, unless it has turned away."""
        with self._lock:
            if not self._closing:
                self._notify()

    def _close_streams(self) -> None:
        for stream in self._streams:
            stream.close()


class _Ledger:
    """Turns the streams' notes into rows and totals; counts become differences."""

    def __init__(self, streams: Sequence[Stream], omit_ns: int, start_ns: int) -> None:
        self._streams = streams
        self._zero_ns = start_ns + omit_ns
        self._from_ns = start_ns
        self._number = 0
        self._last: list[Mapping[str, float]] = [{} for _ in streams]
        self._base: list[Mapping[str, float]] | None = None if omit_ns else self._last

    def collect(self, now_ns: int) -> list[Row]:
        """Return the rows of the intervals that have ended by now."""
        rows = []
        for stream in self._streams:
            stream.note(now_ns)
        while all(stream.notes for stream in self._streams):
            notes = [stream.notes.popleft() for stream in self._streams]
            rows += self._rows(notes[0].at_ns, [note.reading for note in notes])
        return rows

    def finish(self, ended_ns: int) -> list[Row]:
        """Return the last rows, the streams having ended at a time."""
        rows = self.collect(ended_ns)
        # What ended before the last interval's end leaves one in which nothing moved.
        at_ns = ended_ns if ended_ns > self._from_ns else time.monotonic_ns()
        return rows + self._rows(at_ns, [stream.reading() for stream in self._streams])

    def totals(self, ended_ns: int) -> Totals:
        """Return what was counted from the end of the omitted part on."""
        # Who ended within the omitted part has measured nothing.
        base = self._last if self._base is None else self._base
        return Totals(
            max(ended_ns - self._zero_ns, 0) / SECOND_NS,
            [
                {**_less(last, before), **stream.summary()}
                for stream, last, before in zip(self._streams, self._last, base)
            ],
        )

    def _rows(self, at_ns: int, readings: Sequence[Reading]) -> list[Row]:
        start_s = (self._from_ns - self._zero_ns) / SECOND_NS
        end_s = (at_ns - self._zero_ns) / SECOND_NS
        rows = []
        for stream, reading, last in zip(self._streams, readings, self._last):
            metrics = {**_less(reading.counts, last), **reading.values}
            rows.append(Row(stream.index, self._number, start_s, end_s, metrics))
        self._number += 1
        self._from_ns = at_ns
        self._last = [reading.counts for reading in readings]
        if self._base is None and at_ns >= self._zero_ns:
            self._base = self._last
        return rows


def _less(counts: Mapping[str, float], base: Mapping[str, float]) -> dict[str, float]:
    return {name: count - base.get(name, 0) for name, count in counts.items()}
