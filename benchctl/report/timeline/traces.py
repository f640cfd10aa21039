"""The lines of one trial: from samples to series, for each flow and, on request, each stream.

The fold of a metric decides how a flow's line is made. Rates and counts of the streams are added
for each interval. Of distributions (delays, windows, undeclared ones), the line is the median of
the streams, and spans from the lowest to the highest. Other metrics are used unchanged. A metric
that belongs to single streams has a line for each of them, and none of the flow. Samples come in
bulk, many thousands a second.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from operator import gt, itemgetter
from typing import NamedTuple

from msgspec import Struct

from benchctl.metrics import Fold, Metric, Vocabulary
from benchctl.report.timeline.series import Series
from benchctl.store.bulk import Happened, PackedSample, SeriesColumns, SeriesSource

ALL = -1
"""The stream number that means all streams of a flow."""
ENDS = ("client", "server")
# An interval with missing streams waits until the others are this many ahead.
PATIENCE = 2


class LineKey(NamedTuple):
    """Which line: a flow's, or one of its streams'."""

    flow: str
    direction: str
    metric: str
    stream: int = ALL


class TimeWindow(Struct, frozen=True):
    """The part of a trial's time that is kept, in seconds from its start."""

    from_s: float
    span_s: float
    to_s: float = math.inf


class _Joint:
    """Joins the streams of a flow in one interval, the n-th sample of each: their sum or median."""

    __slots__ = ("_series", "_streams", "_times_s", "_values", "_weights", "adds")

    def __init__(self, series: Series, streams: int, *, adds: bool) -> None:
        self._series = series
        self._streams = streams
        self.adds = adds
        self._times_s: list[float] = []
        self._weights: list[float] = []
        self._values: dict[int, list[float]] = {}

    def extend(
        self,
        stream: int,
        times_s: Sequence[float],
        values: Sequence[float],
        weights: Sequence[float],
    ) -> None:
        mine = self._values.setdefault(stream, [])
        mine.extend(values)
        new = len(mine) - len(self._times_s)
        if new > 0:
            self._times_s.extend(times_s[-new:])
            self._weights.extend(weights[-new:])

    @property
    def known_streams(self) -> Collection[int]:
        """The streams with values so far."""
        return self._values.keys()

    def write(self, *, to_the_end: bool = False) -> None:
        """Pass on the intervals that are complete, or whose missing streams are overdue."""
        stream_values = self._values.values()
        begun = len(self._times_s)
        complete = min(map(len, stream_values)) if len(stream_values) >= self._streams else 0
        ready = begun if to_the_end else max(complete, begun - PATIENCE)
        if ready <= 0:
            return
        times_s, weights = self._times_s[:ready], self._weights[:ready]
        parts = [values[:ready] for values in stream_values]
        if len(parts) == 1 and any(map(gt, times_s, times_s[1:])):
            # Samples of a stream that tell different metrics come one series after the other.
            order = sorted(range(ready), key=times_s.__getitem__)
            times_s, weights, parts[0] = (
                [some[place] for place in order] for some in (times_s, weights, parts[0])
            )
        if self.adds:
            sums = [*map(sum, zip_longest(*parts, fillvalue=0.0))]
            self._series.extend(times_s, sums, weights)
        else:
            intervals = zip_longest(*parts, fillvalue=math.nan)
            ordered = [sorted(v for v in values if not math.isnan(v)) for values in intervals]
            bounds = ([values[0] for values in ordered], [values[-1] for values in ordered])
            self._series.extend(times_s, [*map(_median, ordered)], weights, bounds)
        for values in (self._times_s, self._weights, *stream_values):
            del values[:ready]


def _median(ordered: Sequence[float]) -> float:
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


class _Sink(Struct):
    """The destination of the values of one metric of one series."""

    is_rate: bool
    pooled: Series | None = None
    joint: _Joint | None = None
    own: Series | None = None

    def extend(
        self,
        stream: int,
        times_s: Sequence[float],
        values: Sequence[float],
        lengths_s: Sequence[float],
    ) -> None:
        weights = lengths_s if self.is_rate else [1.0] * len(values)
        if not math.isfinite(sum(values)):
            finite = [index for index, value in enumerate(values) if math.isfinite(value)]
            times_s, values, weights = (
                [some[index] for index in finite] for some in (times_s, values, weights)
            )
        if not values:
            return
        if self.joint is not None:
            self.joint.extend(stream, times_s, values, weights)
        if self.pooled is not None:
            self.pooled.extend(times_s, values, weights)
        if self.own is not None:
            self.own.extend(times_s, values, weights)


class TrialLines(Struct):
    """All lines of one trial within a window.

    ``split`` names the flows whose streams have lines of their own.
    """

    window: TimeWindow
    split: Collection[str]
    vocabulary: Vocabulary
    flows: Sequence[str] = ()
    """All flows of the run: a flow's place here is its number in every plot."""
    shortest_s: float = math.inf
    """Length of the shortest interval so far."""
    end_s: float = 0.0
    """End of the latest interval."""
    meanings: dict[str, Metric] = {}
    """The meaning of each metric."""
    streams: set[tuple[str, int]] = set()
    """Every flow and stream with samples."""
    delays_s: dict[str, float] = {}
    """The start of each flow after that of its trial."""
    events: Sequence[Happened] = ()
    """What happened within the flows; empty until the trial has ended."""
    changes: Sequence[tuple[float, str]] = ()
    """When the lab changed in the trial, and how."""
    _series: dict[tuple[str, LineKey], Series] = {}
    _joints: dict[tuple[str, LineKey], _Joint] = {}
    _pooled: dict[tuple[str, LineKey], Series] = {}
    """All samples of lines that are medians of streams."""
    _sinks: dict[int, list[_Sink]] = {}

    def add(self, sources: Mapping[int, SeriesSource], rows: Iterable[PackedSample]) -> None:
        """Take samples in order of arrival. ``sources`` describes every series among them."""
        by_series: dict[int, list[PackedSample]] = {}
        for row in rows:
            by_series.setdefault(row[0], []).append(row)
        for series_id, mine in by_series.items():
            self._add_series(series_id, sources[series_id], mine)
        for joint in self._joints.values():
            joint.write()

    def _add_series(self, series_id: int, source: SeriesSource, rows: list[PackedSample]) -> None:
        rows.sort(key=itemgetter(2))
        from_s, to_s = self.window.from_s - source.delay_s, self.window.to_s - source.delay_s
        self.end_s = max(self.end_s, rows[-1][2] + source.delay_s)
        self.shortest_s = min(self.shortest_s, min(row[2] - row[1] for row in rows))
        rows = [row for row in rows if from_s <= row[2] < to_s]
        if not rows:
            return
        if series_id not in self._sinks:
            self._sinks[series_id] = [self._open(source, metric) for metric in source.metrics]
        times_s = [row[2] + source.delay_s for row in rows]
        lengths_s = [row[2] - row[1] for row in rows]
        values = array("d")
        values.frombytes(b"".join(row[3] for row in rows))
        if sys.byteorder == "big":
            values.byteswap()
        count = len(source.metrics)
        for place, sink in enumerate(self._sinks[series_id]):
            sink.extend(source.stream, times_s, values[place::count], lengths_s)

    def add_columns(self, source: SeriesSource, columns: SeriesColumns) -> None:
        """Take all samples of a series at once, but for those of the omitted part."""
        ends_s, from_s = columns.ends_s, self.window.from_s - source.delay_s
        places: Sequence[int] = range(len(ends_s))
        if any(columns.omitted) or min(ends_s, default=from_s) < from_s:
            places = [at for at in places if not columns.omitted[at] and ends_s[at] >= from_s]
        if any(map(gt, ends_s, ends_s[1:])):
            places = sorted(places, key=ends_s.__getitem__)
        if not places:
            return
        times_s = [ends_s[place] + source.delay_s for place in places]
        lengths_s = [ends_s[place] - columns.starts_s[place] for place in places]
        self.end_s = max(self.end_s, times_s[-1])
        for metric, values in columns.values.items():
            chosen = values if isinstance(places, range) else [values[at] for at in places]
            self._open(source, metric).extend(source.stream, times_s, chosen, lengths_s)

    def _open(self, source: SeriesSource, metric: str) -> _Sink:
        meaning = self.meanings.setdefault(metric, self.vocabulary.describe(metric))
        fold = meaning.fold
        self.streams.add((source.flow, source.stream))
        self.delays_s[source.flow] = source.delay_s
        key = LineKey(source.flow, source.direction, metric)
        if meaning.by_stream:
            own = self._new_series(source.role, key._replace(stream=source.stream))
            return _Sink(is_rate=fold is Fold.RATE, own=own)
        place = (source.role, key)
        series = self._new_series(source.role, key)
        sink = _Sink(is_rate=fold is Fold.RATE)
        adds = fold in (Fold.RATE, Fold.COUNT)
        if adds or (fold is Fold.DISTRIBUTION and source.streams > 1):
            joint = _Joint(series, source.streams, adds=adds)
            sink.joint = self._joints.setdefault(place, joint)
            if not adds:
                new = Series(self.window.from_s, self.window.span_s)
                sink.pooled = self._pooled.setdefault(place, new)
        else:
            sink.pooled = series
        if source.flow in self.split:
            sink.own = self._new_series(source.role, key._replace(stream=source.stream))
        return sink

    def _new_series(self, role: str, key: LineKey) -> Series:
        new = Series(self.window.from_s, self.window.span_s)
        return self._series.setdefault((role, key), new)

    def flush(self) -> None:
        """Accept intervals that lack some streams, at the end of a trial."""
        for joint in self._joints.values():
            joint.write(to_the_end=True)

    def line(self, key: LineKey) -> Series | None:
        """Return a line; if both ends reported it, the measuring end counts."""
        reported = (self._series.get((role, key)) for role in ENDS)
        return next((series for series in reported if series is not None), None)

    def mean(self, key: LineKey, until_s: float = math.inf) -> float | None:
        """Return the mean of a line's samples up to a time, as the flow's figure has it.

        Where the line is the median of its streams, that of all their samples. None without any.
        """
        for end in ((role, key) for role in ENDS):
            if end in self._series:
                return self._pooled.get(end, self._series[end]).mean(until_s)
        return None

    def medians(self, metric: str) -> Mapping[LineKey, int]:
        """Return the lines of a metric that are medians of streams, with the number of those."""
        return {
            key: len(joint.known_streams)
            for (_, key), joint in self._joints.items()
            if key.metric == metric and not joint.adds and len(joint.known_streams) > 1
        }

    def metrics(self) -> list[str]:
        """Return the metrics that have a line, in the order of the plots."""
        return self.vocabulary.plotted({key.metric for _, key in self._series})

    def happened(self, key: LineKey) -> Iterator[tuple[float, str]]:
        """Yield what happened on a flow's line: the seconds from the trial's start, the kind."""
        for event in self.events:
            if LineKey(event.flow, event.direction, event.metric) == key:
                yield event.at_s + self.delays_s.get(event.flow, 0.0), event.kind

    def keys(self, metric: str) -> list[LineKey]:
        """Return the lines of a metric, by flow (in the order of the run), direction and stream."""
        found = {key for _, key in self._series if key.metric == metric}
        return sorted(found, key=lambda key: (self.number(key.flow), key))

    def number(self, flow: str) -> int:
        """Return the number of a flow, the same in every trial of the run."""
        return self.flows.index(flow) if flow in self.flows else len(self.flows)
