"""The samples of a trial's lines in order of value, up to a moment, as they arrive.

What a sample of a flow is, is what it is in the figures of `benchctl.report.figures`: of a rate or
a count the sum over the streams in an interval, else every sample of every stream.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from typing import NamedTuple

from msgspec import Struct

from benchctl.analysis.flow.counted import ValueHistogram
from benchctl.metrics import Fold, Vocabulary
from benchctl.report.timeline.traces import ENDS, LineKey
from benchctl.store.bulk import Bulk, SeriesSource
from benchctl.store.single import SingleSeries
from benchctl.tui.model.lines import LastSeen


class SpreadOf(Struct, frozen=True):
    """What is wanted: some metrics of a trial, up to a moment in seconds from its start.

    ``split`` names the flows whose streams are wanted singly, too.
    """

    metrics: frozenset[str] = frozenset()
    split: frozenset[str] = frozenset()
    until_s: float = math.inf


_Weighed = tuple[float, float]
"""A sample, and its weight in the mean."""


class _Streams(NamedTuple):
    """The streams of a flow that tell a metric, and how many were asked for."""

    seen: set[int]
    asked: int

    @property
    def most(self) -> int:
        return max(len(self.seen), self.asked)


class Spreads:
    """The samples of one trial, as far as they are wanted."""

    def __init__(
        self, bulk: Bulk, single: SingleSeries, trial_id: int, vocabulary: Vocabulary,
        wanted: SpreadOf,
    ) -> None:  # fmt: skip
        self.trial_id = trial_id
        self.wanted = wanted
        self.caught_up = False
        """Whether everything that was wanted and in the store was read."""
        self._bulk = bulk
        self._single = single
        self._vocabulary = vocabulary
        self._sources: Mapping[int, SeriesSource] = {}
        self._due: list[int] | None = None
        """The series that are still to be read, of a reading that was begun."""
        self._last = 0
        self._read_to_s = -math.inf
        self._shown: Mapping[tuple[str, LineKey], ValueHistogram] = {}
        self._begin()

    def _begin(self) -> None:
        self._after: dict[int, int] = {}
        self._counted: dict[tuple[str, LineKey], ValueHistogram] = {}
        self._waiting: dict[tuple[str, LineKey], dict[int, list[_Weighed]]] = {}
        self._streams: dict[tuple[str, LineKey], _Streams] = {}

    def of(self, key: LineKey) -> ValueHistogram | None:
        """Return the samples of a line; if both ends reported it, those of the measuring end."""
        by_role = (self._shown.get((role, key)) for role in ENDS)
        return next((samples for samples in by_role if samples is not None and len(samples)), None)

    def serves(self, wanted: SpreadOf) -> bool:
        """Return whether these samples are those that are wanted, but for the moment."""
        return (wanted.metrics, wanted.split) == (self.wanted.metrics, self.wanted.split)

    @property
    def last(self) -> int:
        """The id of the last sample that was in the store when it was last looked at."""
        return self._last

    @property
    def share_read(self) -> float:
        """The part of the first reading that is done, from 0 to 1."""
        if self.caught_up or not self._due or not self._sources:
            return 1.0
        return 1 - len(self._due) / len(self._sources)

    def read(
        self, *, changed: bool, finished: bool, timer: Callable[[], float], until: float,
        known: LastSeen | None = None,
    ) -> bool:  # fmt: skip
        """Read what is wanted until the timer expires; returns whether there is more.

        Without ``changed``, nothing new is in the store. Of a trial that was ``known``, nothing
        later is read. Raises StoreError.
        """
        if self._due is None:
            if self.caught_up and not changed and self.wanted.until_s == self._read_to_s:
                return False
            self._look(known)
        assert self._due is not None
        while self._due:
            series_id = self._due[-1]
            source = self._sources[series_id]
            after, rows, more = self._single.onwards(
                series_id, self._after.get(series_id, 0), self._last,
                self._read_to_s - source.delay_s,
            )  # fmt: skip
            self._after[series_id] = after
            self._take(source, rows)
            if not more:
                self._due.pop()
            if timer() > until:
                return True
        self._add_up(finished=finished)
        self._due, self.caught_up, self._shown = None, True, self._counted
        return False

    def give_up(self) -> None:
        """Discard a failed reading; the next one continues after the last good one."""
        self._due = None

    def _look(self, known: LastSeen | None) -> None:
        attempt = known.attempt if known is not None else None
        sources = self._bulk.sources(self.trial_id, attempt)
        if self._sources and not self._sources.keys() & sources.keys():
            self._begin()
        if self.wanted.until_s < self._read_to_s and self._after:
            self._begin()
        self._sources = sources
        _, self._last = self._bulk.extent(self.trial_id, attempt)
        if known is not None:
            self._last = min(self._last, known.sample)
        self._read_to_s = self.wanted.until_s
        wanted = self.wanted.metrics
        self._due = [
            series_id for series_id, source in sources.items() if wanted & {*source.metrics}
        ]
        self._streams = {}
        for source in sources.values():
            for metric in wanted & {*source.metrics}:
                flow = (source.role, LineKey(source.flow, source.direction, metric))
                streams = self._streams.setdefault(flow, _Streams(set(), source.streams))
                streams.seen.add(source.stream)

    def _take(self, source: SeriesSource, rows: Sequence[tuple[float, bytes]]) -> None:
        values = array("d")
        values.frombytes(b"".join(data for _, data in rows))
        lengths_s = [length_s for length_s, _ in rows]
        if sys.byteorder == "big":
            values.byteswap()
        for place, metric in enumerate(source.metrics):
            if metric not in self.wanted.metrics:
                continue
            meaning = self._vocabulary.describe(metric)
            mine = values[place :: len(source.metrics)]
            flow = (source.role, LineKey(source.flow, source.direction, metric))
            own = (source.role, flow[1]._replace(stream=source.stream))
            # The mean of a rate is that over time, as that of its figure.
            weights = lengths_s if meaning.fold is Fold.RATE else repeat(1.0)
            if meaning.by_stream or source.flow in self.wanted.split:
                self._counted.setdefault(own, ValueHistogram()).extend(mine, weights)
            if meaning.by_stream:
                continue
            if meaning.fold in (Fold.RATE, Fold.COUNT) and self._streams[flow].most > 1:
                self._waiting.setdefault(flow, {}).setdefault(source.stream, []).extend(
                    zip(mine, weights, strict=False)
                )
            else:
                self._counted.setdefault(flow, ValueHistogram()).extend(mine, weights)

    def _add_up(self, *, finished: bool) -> None:
        """Add the streams of the intervals that all of them have told."""
        for flow, waiting in self._waiting.items():
            streams = self._streams[flow]
            if len(waiting) < (len(streams.seen) if finished else streams.most):
                continue
            ready = min(map(len, waiting.values()))
            intervals = [*zip(*(values[:ready] for values in waiting.values()), strict=True)]
            sums = [math.fsum(value for value, _ in parts) for parts in intervals]
            weights = [parts[0][1] for parts in intervals]
            self._counted.setdefault(flow, ValueHistogram()).extend(sums, weights)
            for values in waiting.values():
                del values[:ready]
