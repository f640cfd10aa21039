"""Updates the view of one run from the store, in small steps.

A screen calls `poll` several times a second with a budget of a few hundredths of a second. A long
history is read over many calls, and keys are handled in between.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from msgspec.structs import replace

from benchctl.analysis.results import FlowReport, TrialReport
from benchctl.errors import StoreError
from benchctl.report.progress.goals import has_goals
from benchctl.report.report import Report, read_baseline, read_ended, report_of
from benchctl.report.text.happenings import lab_changes
from benchctl.report.timeline.traces import TimeWindow, TrialLines
from benchctl.store.bulk import Bulk
from benchctl.store.follow import Follower, RunEvent, TrialEnded
from benchctl.store.read import Reader
from benchctl.store.single import SingleSeries
from benchctl.tui.model.board import Board
from benchctl.tui.model.lines import LastSeen, Lines
from benchctl.tui.model.runview import PLANNED, RunView
from benchctl.tui.model.spreads import SpreadOf, Spreads

# A runner that dies does not change the store, so it is checked this often.
LOOK_S = 1.0
# An empty plot still needs an axis.
LEAST_SPAN_S = 1.0


class RunReader:
    """One run as far as it is known: its view, and the lines of the selected trial.

    Methods raise StoreError if the store cannot be read; the next call tries again.
    """

    def __init__(
        self, path: Path, run_id: int, timer: Callable[[], float] = time.perf_counter
    ) -> None:
        with ExitStack() as stores:
            self._reader = stores.enter_context(closing(Reader(path)))
            self._bulk = stores.enter_context(closing(Bulk(path)))
            self._single = stores.enter_context(closing(SingleSeries(path)))
            self.view = RunView(
                self._reader.run(run_id), self._bulk.outlines(run_id), self._bulk.flow_names(run_id)
            )
            self.board: Board | None = None
            """The hosts of a run whose trials run side by side."""
            if self.view.run.settings.parallel is not None:
                self.board = Board(self.view, self._bulk.planned_ends(run_id))
            self._stores = stores.pop_all()
        self._timer = timer
        self._follower = Follower(self._reader, run_id, samples=False)
        self._events: Iterator[RunEvent] | None = None
        self._changes = -1
        self._unread = self._behind = False
        """Whether the store has changed since the view was told, and since the lines were."""
        self._is_read = False
        """Whether everything that was to be read was, since the last error."""
        self._ends: deque[int] = deque()
        """Positions of trials that have ended, and whose figures are still to be read."""
        self._ended: dict[int, TrialReport] = {}
        self._baseline: list[TrialReport] | None = None
        self.ends_read = 0
        """How many ends of trials were read."""
        self._looked = 0.0
        self._latest = 0
        """The id of the latest sample that was known."""
        self.position = -1
        """The trial that is looked at; -1 for none."""
        self._whole: Lines | None = None
        self._detail: Lines | None = None
        self.spreads: Spreads | None = None
        """The samples in order of value that are wanted of the selected trial."""

    def close(self) -> None:
        """Close the store."""
        self._stores.close()

    def poll(self, budget_s: float, *, new: bool = True) -> bool:
        """Read data for about ``budget_s``; returns whether there is more to read.

        Without ``new``, nothing that came after the last poll is read, only the rest of what was
        there, and other lines as they were then.
        """
        try:
            return self._poll(self._timer() + budget_s, new=new)
        except StoreError:
            self._events, self._changes, self._is_read = None, -1, False
            for lines in self._read_on:
                lines.give_up()
            raise

    def _poll(self, until: float, *, new: bool) -> bool:
        if new and self._has_changed():
            self._unread = self._behind = True
        if self._events is None and new and self._unread:
            self._unread = False
            self.view.run = self._reader.run(self.view.run.id)
            self._events = self._follower.poll()
        for event in self._events or ():
            self.view.apply(event)
            if isinstance(event, TrialEnded) and has_goals(self.view.run):
                self._ends.append(event.trial.position)
            if self._timer() > until:
                return True
        self._events = None
        while self._ends:
            self._read_end(self._ends[0])
            self._ends.popleft()
            if self._timer() > until:
                return True
        if self.view.died and self.view.last_time is None:
            self.view.last_time = self.last_time()
        more = new and self._unread
        for lines in self._read_on:
            trial = self.view.trials[self.position]
            more |= lines.read(
                changed=new and self._behind,
                finished=trial.finished,
                timer=self._timer,
                until=until,
                known=None if new else LastSeen(trial.attempt, self._latest),
            )
            if new:
                self._latest = max(self._latest, lines.last)
        self._behind &= not new
        self._is_read |= not more
        return more

    def _read_end(self, position: int) -> None:
        """Keep what the goals of a run are judged by, which is more than its view has."""
        for trial in read_ended(self._reader, self.view.run, position + 1):
            flows = [
                FlowReport(
                    replace(each.flow, client=(), server=(), stderr="", captures=(), paired=()),
                    each.reported, each.events, each.intervals,
                )
                for each in trial.flows
            ]  # fmt: skip
            self._ended[position] = TrialReport(trial.trial, flows)
        self.ends_read += 1

    @property
    def _read_on(self) -> Sequence[Lines | Spreads]:
        """What is read of the selected trial."""
        every = (self._whole, self._detail, self.spreads)
        return [part for part in every if part is not None]

    def _has_changed(self) -> bool:
        changes, now = self._reader.changes(), self._timer()
        if changes == self._changes and now - self._looked < LOOK_S:
            return False
        self._changes, self._looked = changes, now
        return True

    @property
    def traces(self) -> TrialLines | None:
        """The lines of the whole selected trial."""
        return self._whole.traces if self._whole is not None else None

    @property
    def plotted(self) -> TrialLines | None:
        """The lines to draw: those of the window in detail, as soon as they are read."""
        if self._detail is not None and self._detail.caught_up:
            return self._detail.traces
        return self.traces

    @property
    def share_read(self) -> float:
        """The part of the available data that was read, from 0 to 1."""
        return min((part.share_read for part in self._read_on), default=1.0)

    @property
    def settled(self) -> bool:
        """Whether everything in the store was read."""
        read = self._is_read and self._events is None and not self._ends
        return read and all(part.caught_up for part in self._read_on)

    @property
    def whole(self) -> TimeWindow:
        """The window of the whole trial."""
        outline = self.view.trials[self.position].outline
        return TimeWindow(0.0, max(outline.duration_s, LEAST_SPAN_S))

    @property
    def window(self) -> TimeWindow:
        """The window of `plotted`, current or future."""
        return self._detail.window if self._detail is not None else self.whole

    def look_at(self, position: int, split: Collection[str] = ()) -> bool:
        """Keep the lines of a trial from now on; for the flows of ``split``, by stream too.

        Returns whether the lines have changed and must be read.
        """
        before = self._whole
        if before is not None and (self.position, before.split) == (position, frozenset(split)):
            return False
        same_trial = self.position == position
        self.position = position
        self._detail = self.spreads = None
        view, outline = self.view, self.view.trials[position].outline
        changes = lab_changes(view.run.settings, outline.duration_s)
        self._whole = Lines(
            self._bulk, outline.id, view.vocabulary, self.whole, split, view.flows, changes
        )
        if before is not None and same_trial:
            self._whole.show_meanwhile(before.traces)
        return True

    def magnify(self, window: TimeWindow) -> None:
        """Keep a window of the trial in more detail; the whole one needs none."""
        assert self._whole is not None
        if window == self.window:
            return
        self._detail = None
        if window != self.whole:
            whole = self._whole
            self._detail = Lines(
                self._bulk, whole.trial_id, whole.vocabulary, window, whole.split, whole.flows,
                whole.changes,
            )  # fmt: skip

    def spread(self, wanted: SpreadOf) -> bool:
        """Keep samples of the trial in order of value from now on; returns whether to read them."""
        assert self._whole is not None
        before, trial_id = self.spreads, self._whole.trial_id
        if not wanted.metrics:
            self.spreads = None
        elif before is None or before.trial_id != trial_id or not before.serves(wanted):
            self.spreads = Spreads(self._bulk, self._single, trial_id, self.view.vocabulary, wanted)
        elif before.wanted != wanted:
            before.wanted = wanted
        else:
            return False
        return self.spreads is not None

    @property
    def under_way(self) -> bool:
        """Whether the run is being measured, or waits for its turn."""
        run = self._reader.run(self.view.run.id)
        return run.status == PLANNED or self._reader.is_alive(run)

    def report_at(self, time: float) -> Report:
        """Return the report of the trials that had ended at a moment. Raises StoreError."""
        run = self.view.run
        if not has_goals(run):
            return self.view.report_at(time)
        if self._baseline is None:
            self._baseline = [*read_baseline(self._reader, run)]
        ended = [
            self._ended[position]
            for position in sorted(self._ended)
            if self.view.trials[position].status_at(time).has_ended
        ]
        return report_of(replace(run, status=self.view.status_at(time)), ended, self._baseline)

    @property
    def begin(self) -> float:
        """When the run began, or was planned, in Unix time."""
        run = self.view.run
        return run.started_time if run.started_time is not None else run.created_time

    def last_time(self) -> float:
        """Return when the run ended, or the time of its latest data, in Unix time."""
        run = self.view.run
        if run.finished_time is not None:
            return run.finished_time
        return self._bulk.last_time(run.id) or self.begin
