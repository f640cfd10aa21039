"""Runs the streams of one direction at one end of a flow, and samples them.

Each stream has a thread that does nothing but move bytes and count them. One more thread, the
measurement itself, wakes at the interval boundaries, reads the counters and makes rows. Time
starts with the first byte that moves, so the receiver's intervals are the sender's, shifted by the
path's delay.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Callable, NamedTuple

from .schedule import SECOND_NS, Schedule

__all__ = ["Measurement", "Reading", "Row", "Stream", "Totals"]

# A stopped stream ends at once; this bounds the wait for one that the system keeps.
_JOIN_S = 2.0
# Rows are announced no more often than this: short intervals cost few wake-ups and messages.
_NOTIFY_NS = 100_000_000


class Reading(NamedTuple):
    """What a stream shows at one moment: counts since its start, and present values."""

    counts: Mapping[str, float]
    values: Mapping[str, float]


class Row(NamedTuple):
    """One interval of one stream at one end; seconds from the end of the omitted part."""

    stream: int
    number: int
    start_s: float
    end_s: float
    metrics: Mapping[str, float]


class Totals(NamedTuple):
    """What one end counted in one direction, the omitted part excluded, stream by stream."""

    duration_s: float
    streams: Sequence[Mapping[str, Any]]


class Stream:
    """One stream at one end: a subclass moves bytes in `move` and tells what it counted."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.stopped = False
        self.failure: OSError | None = None
        self.first_ns = 0
        self.ended_ns = 0
        """When the last byte moved; `move` may set it, otherwise it is when `move` returned."""
        self.begun = threading.Event()

    def move(self) -> None:
        """Move bytes until the end or until `stopped`, and call `begin` at the first."""
        raise NotImplementedError

    def reading(self) -> Reading:
        """Return the present counts; the measurement's thread calls this at any time."""
        raise NotImplementedError

    def omit(self) -> None:
        """Forget the distributions so far: the omitted part is over."""

    def summary(self) -> Mapping[str, Any]:
        """Return final figures that are no differences of counts; called when `move` has ended."""
        return {}

    def begin(self, at_ns: int | None = None) -> None:
        """Note the time of the first byte: now, or one that is known better."""
        self.first_ns = at_ns or time.monotonic_ns()
        self.begun.set()

    def stop(self) -> None:
        """Make `move` return soon."""
        self.stopped = True

    @property
    def moved_bytes(self) -> int:
        """Payload bytes sent or received so far."""
        raise NotImplementedError

    @property
    def packets(self) -> int:
        """Datagrams sent so far; a TCP stream sends none."""
        return 0

    def expect(self, packets: int) -> None:
        """Take the sender's final count of datagrams; a TCP stream ends by itself."""

    def close(self) -> None:
        """Free the stream's socket; called when `move` has ended or never began."""


class Measurement(threading.Thread):
    """One direction at one end, from its first byte to its totals.

    ``notify`` is called from the measurement's own thread after new rows and at the end; the owner
    then takes from `rows` and looks at `totals`. A stream that is given ``drain_s`` may go on for
    so long after the last interval's end, to take what is still under way.
    """

    def __init__(
        self,
        streams: Sequence[Stream],
        schedule: Schedule,
        notify: Callable[[], None],
        drain_s: float = 0.0,
    ) -> None:
        super().__init__(daemon=True)
        self.streams = streams
        self.rows: deque[Row] = deque()
        self.totals: Totals | None = None
        self.start_epoch_s = 0.0
        """Wall-clock time of the first byte."""
        self._schedule = schedule
        self._notify = notify
        self._begun = threading.Event()
        self._over = threading.Event()
        self._running = len(streams)
        self._lock = threading.Lock()
        self._drain_s = drain_s
        self._closing = False
        self._ended = True
        for stream in streams:
            stream.begun = self._begun

    @property
    def failure(self) -> OSError | None:
        """The first error of a stream, if any."""
        return next((stream.failure for stream in self.streams if stream.failure), None)

    def stop(self) -> None:
        """End now; the totals are of what was measured so far."""
        for stream in self.streams:
            stream.stop()
        self._begun.set()
        self._over.set()

    def close(self) -> None:
        """Stop where it still runs, and free the sockets as soon as it has ended."""
        with self._lock:
            self._closing, ended = True, self._ended
        if ended:
            self._close_streams()
        else:
            self.stop()

    def start(self) -> None:
        self._ended = False
        super().start()

    def run(self) -> None:
        threads = [
            threading.Thread(target=self._move, args=(stream,), daemon=True)
            for stream in self.streams
        ]
        for thread in threads:
            thread.start()
        self._begun.wait()
        now_ns = time.monotonic_ns()
        start_ns = min((s.first_ns for s in self.streams if s.first_ns), default=now_ns)
        self.start_epoch_s = time.time() - (now_ns - start_ns) / SECOND_NS
        sampler = _Sampler(self.streams, start_ns, self._schedule.omit_ns)
        boundaries = self._schedule.boundaries()
        boundary = next(boundaries)
        notified_ns = 0
        time_is_up = False
        while not self._over_by(start_ns + boundary.at_ns):
            if boundary.last:
                time_is_up = True
                self._over.wait(self._drain_s)
                break
            now_ns = time.monotonic_ns()
            self.rows.extend(sampler.rows(boundary.number, now_ns))
            if now_ns - notified_ns >= _NOTIFY_NS:
                notified_ns = now_ns
                self._tell()
            # A wake-up so late that it passed the next boundary too makes one long row of both.
            boundary = next(b for b in boundaries if b.last or b.at_ns > now_ns - start_ns)
        self.stop()
        for thread in threads:
            thread.join(_JOIN_S)
        ended_ns = max(stream.ended_ns for stream in self.streams) or time.monotonic_ns()
        if time_is_up:
            ended_ns = max(ended_ns, start_ns + boundary.at_ns)
        # What ended before the last row leaves a row in which nothing moved.
        row_ends_ns = ended_ns if ended_ns > sampler.from_ns else time.monotonic_ns()
        self.rows.extend(sampler.rows(boundary.number, row_ends_ns))
        self.totals = sampler.totals(ended_ns)
        self._tell()
        with self._lock:
            self._ended, closing = True, self._closing
        if closing:
            self._close_streams()

    def _tell(self) -> None:
        """Notify the owner, unless it has turned away."""
        with self._lock:
            if not self._closing:
                self._notify()

    def _close_streams(self) -> None:
        for stream in self.streams:
            stream.close()

    def _over_by(self, deadline_ns: int) -> bool:
        """Wait until a time; returns early, and True, when all streams have ended."""
        left_s = (deadline_ns - time.monotonic_ns()) / SECOND_NS
        return self._over.wait(min(max(left_s, 0.0), threading.TIMEOUT_MAX))

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
                self._begun.set()
                self._over.set()


class _Sampler:
    """Turns readings into rows and totals; counts become differences."""

    def __init__(self, streams: Sequence[Stream], start_ns: int, omit_ns: int) -> None:
        self._streams = streams
        self._zero_ns = start_ns + omit_ns
        self.from_ns = start_ns
        """Where the next row starts."""
        self._last: list[Mapping[str, float]] = [{} for _ in streams]
        self._base: list[Mapping[str, float]] | None = None if omit_ns else self._last
        self._base_ns = start_ns

    def rows(self, number: int, now_ns: int) -> list[Row]:
        """Return the rows of the interval that ends now, the omitted part ending with one."""
        start_s = (self.from_ns - self._zero_ns) / SECOND_NS
        end_s = (now_ns - self._zero_ns) / SECOND_NS
        readings = [stream.reading() for stream in self._streams]
        rows = []
        for stream, reading, last in zip(self._streams, readings, self._last):
            metrics = {**_less(reading.counts, last), **reading.values}
            rows.append(Row(stream.index, number, start_s, end_s, metrics))
        self._last = [reading.counts for reading in readings]
        self.from_ns = now_ns
        if self._base is None and now_ns >= self._zero_ns:
            self._base_ns, self._base = now_ns, self._last
            for stream in self._streams:
                stream.omit()
        return rows

    def totals(self, ended_ns: int) -> Totals:
        """Return what was counted from the end of the omitted part to the last row."""
        if self._base is None:
            self._base_ns, self._base = ended_ns, self._last
        return Totals(
            (ended_ns - self._base_ns) / SECOND_NS,
            [
                {**_less(last, base), **stream.summary()}
                for stream, last, base in zip(self._streams, self._last, self._base)
            ],
        )


def _less(counts: Mapping[str, float], base: Mapping[str, float]) -> dict[str, float]:
    return {name: count - base.get(name, 0) for name, count in counts.items()}
