"""Reads the samples of one trial into its lines, in steps and as they arrive."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from benchctl.metrics import Vocabulary
from benchctl.report.timeline.traces import TimeWindow, TrialLines
from benchctl.store.bulk import Bulk, PackedSample, SeriesSource


class LastSeen(NamedTuple):
    """What was known at some moment: the trial's attempt, and the id of the last sample."""

    attempt: int
    sample: int


class Lines:
    """The lines of one trial within a window. ``split`` names the flows shown by stream."""

    def __init__(
        self, bulk: Bulk, trial_id: int, vocabulary: Vocabulary, window: TimeWindow,
        split: Collection[str] = (), flows: Sequence[str] = (),
        changes: Sequence[tuple[float, str]] = (),
    ) -> None:  # fmt: skip
        self.trial_id = trial_id
        self.vocabulary = vocabulary
        self.window = window
        self.split = frozenset(split)
        self.flows = flows
        self.changes = changes
        self.caught_up = False
        """Whether everything the store held was read, at least once."""
        self._bulk = bulk
        self._traces = self._begin()
        self._shown = self._traces
        self._sources: Mapping[int, SeriesSource] = {}
        self._batches: Iterator[tuple[int, list[PackedSample]]] | None = None
        self._first = self._after = self._last = 0

    def _begin(self) -> TrialLines:
        return TrialLines(
            self.window, self.split, self.vocabulary, self.flows, changes=self.changes
        )

    def show_meanwhile(self, traces: TrialLines) -> None:
        """Show other traces of the same trial until these are complete."""
        self._shown = traces

    @property
    def traces(self) -> TrialLines:
        """The traces to draw."""
        return self._traces if self.caught_up else self._shown

    @property
    def share_read(self) -> float:
        """The part of the store's data that was read, from 0 to 1."""
        span = self._last - self._first
        return (self._after - self._first) / span if span and not self.caught_up else 1.0

    def read(
        self, *, changed: bool, finished: bool, timer: Callable[[], float], until: float,
        known: LastSeen | None = None,
    ) -> bool:  # fmt: skip
        """Read new data until the timer expires; returns whether there is more.

        Without ``changed``, only what was begun is continued. Of a trial that was ``known``,
        nothing later is read. Raises StoreError.
        """
        if self._batches is None:
            if self.caught_up and not changed:
                return False
            self._look(known)
        assert self._batches is not None
        for after, rows in self._batches:
            self._after = after
            self._traces.add(self._sources, rows)
            if timer() > until:
                return True
        self._batches = None
        self.caught_up = True
        if finished:
            self._traces.flush()
            attempt = known.attempt if known is not None else None
            self._traces.events = self._bulk.events(self.trial_id, attempt)
        return False

    @property
    def last(self) -> int:
        """The id of the last sample that was in the store when it was last looked at."""
        return self._last

    def give_up(self) -> None:
        """Discard a failed read; the next one continues after the last good one."""
        self._batches = None

    def _look(self, known: LastSeen | None) -> None:
        """Find the current series and their last sample; another attempt starts anew."""
        attempt = known.attempt if known is not None else None
        sources = self._bulk.sources(self.trial_id, attempt)
        if self._sources and not self._sources.keys() & sources.keys():
            self._traces = self._begin()
        self._sources = sources
        first, last = self._bulk.extent(self.trial_id, attempt)
        self._last = last if known is None else min(last, known.sample)
        self._after = max(self._after, first)
        self._first = first
        self._batches = self._bulk.batches(sources.keys(), self._after, self._last)
