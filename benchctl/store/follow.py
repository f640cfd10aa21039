"""Follows a run in the store, live or afterwards, as a stream of events.

Live view, progress lines, export of events and replay all read a run this way. So they see the same
events in the same order, however often they poll: a trial starts; for each attempt, its flows
start, samples arrive, flows end; the trial ends, and finally the run. The flows of an attempt end
together, when the last of them has ended. Events of trials that run side by side mix; of a run that
has ended, they come trial after trial. Notes come as soon as they are stored, and before the end of
their trial.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from benchctl.run.record import Figures, Note, RecordedFlow, Run, Trial
from benchctl.run.status import Status
from benchctl.store.read import Reader, StoredSample


class TrialStarted(Struct, frozen=True):
    """The first attempt of a trial began."""

    trial: Trial


class FlowStarted(Struct, frozen=True):
    """An attempt of a flow began."""

    trial: Trial
    flow: RecordedFlow


class Sampled(Struct, frozen=True):
    """A sample arrived."""

    trial: Trial
    flow: RecordedFlow
    sample: StoredSample


class FlowEnded(Struct, frozen=True):
    """An attempt of a flow ended; ``figures`` are its final ones."""

    trial: Trial
    flow: RecordedFlow
    figures: Figures


class TrialEnded(Struct, frozen=True):
    """A trial ended, after its last attempt."""

    trial: Trial


class Noted(Struct, frozen=True):
    """A note about the run was stored."""

    note: Note


class RunEnded(Struct, frozen=True):
    """The run ended, or its runner died."""

    run: Run


class RunResumed(Struct, frozen=True):
    """A run that had ended, or whose runner had died, is to be measured further.

    ``planned`` are the positions of the trials before the last that are measured again.
    """

    run: Run
    planned: frozenset[int]


RunEvent = (
    TrialStarted | FlowStarted | Sampled | FlowEnded | TrialEnded | Noted | RunEnded | RunResumed
)


class _Reported(Struct):
    """How far a trial was reported: the last attempts that started and ended, the last sample."""

    started: bool = False
    started_attempt: int = 0
    ended_attempt: int = 0
    last_sample: int = 0
    seen: tuple[Status, float | None, float | None] | None = None
    """Its state when the run went on to the next trial."""


class Follower:
    """Yields what is new in a run since the last poll; with ``samples`` false, all but samples."""

    def __init__(self, reader: Reader, run_id: int, *, samples: bool = True) -> None:
        self._reader = reader
        self._run_id = run_id
        self._samples = samples
        self._position = 0
        self._reported = _Reported()
        """Of the trial at this position; all trials before it were reported."""
        self._kept: dict[int, _Reported] = {}
        """Trials that were reported and may be measured again, by position."""
        self._again: deque[int] = deque()
        """Positions of those that may be measured in this life of the run, in order."""
        self._open: dict[int, _Reported] = {}
        """Of a run side by side, the trials that were reported in part, by position."""
        self._done: set[int] = set()
        """Its trials that were reported, by position, after the first that was not."""
        self._polled = False
        self._last_note = 0
        self._run: Run | None = None
        """The run as it was read last."""
        self._end: tuple[int | None, float | None] | None = None
        """The runner that ended, and when it did; None while the run goes on."""

    @property
    def ended(self) -> bool:
        """Whether the end of the run was the last event."""
        return self._end is not None

    def pass_over(self) -> None:
        """Take what happened in a run before it is resumed as reported."""
        run = self._reader.run(self._run_id)
        for trial in self._reader.trials(self._run_id):
            attempts = 0 if trial.status is Status.OK else self._reader.attempts(trial.id)
            self._keep(trial, _Reported(started_attempt=attempts, ended_attempt=attempts))
            self._position = trial.position + 1
        for note in self._reader.notes(self._run_id):
            self._last_note = note.id
        self._polled = True
        self._end = run.runner_pid, run.finished_time

    def poll(self) -> Iterator[RunEvent]:
        """Yield the events since the last poll; after the end of the run, only if it is resumed."""
        # The facts of many hosts come with all of a run.
        run = self._run if not self.ended else None
        if run is None or self._reader.outline(self._run_id).status.has_ended:
            run = self._run = self._reader.run(self._run_id)
        over = run.status.has_ended
        end = run.runner_pid, run.finished_time
        if self.ended:
            if over and end == self._end:
                return
            self._end = None
            self._again = deque(sorted(self._kept))
            yield RunResumed(run, frozenset(self._replanned()))
        if run.settings.parallel is not None:
            yield from self._poll_side_by_side(over)
        else:
            yield from self._poll_again(over)
            if not self._again:
                yield from self._poll_on(over)
        yield from self._poll_notes(math.inf)
        if over:
            self._end = end
            yield RunEnded(run)

    def _replanned(self) -> Iterator[int]:
        for position in self._again:
            if self._trial(position).status is Status.PLANNED:
                yield position

    def _trial(self, position: int) -> Trial:
        return next(self._reader.trials(self._run_id, from_position=position))

    def _poll_again(self, over: bool) -> Iterator[RunEvent]:
        """Report the trials that are measured again."""
        while self._again:
            trial = self._trial(self._again[0])
            if trial.status is Status.PLANNED and not over:
                return
            reported = self._kept[trial.position]
            if reported.seen != _seen(trial):
                yield from self._poll_trial(trial, reported, over)
                if not trial.status.has_ended and not over:
                    return
                self._keep(trial, reported)
            self._again.popleft()

    def _poll_on(self, over: bool) -> Iterator[RunEvent]:
        """Report the trials after all that were reported."""
        # Trials that failed are measured again, while later ones have ended.
        furthest = -1 if self._polled else self._reader.furthest(self._run_id)
        self._polled = True
        for trial in self._reader.trials(self._run_id, from_position=self._position):
            waits = trial.status is Status.PLANNED and not over
            if waits and trial.position > furthest:
                break
            if waits:
                self._again.append(trial.position)
            yield from self._poll_trial(trial, self._reported, over)
            if not trial.status.has_ended and not over and not waits:
                break
            self._keep(trial, self._reported)
            self._position, self._reported = trial.position + 1, _Reported()

    def _poll_side_by_side(self, over: bool) -> Iterator[RunEvent]:
        """Report all trials that run, have ended, or are measured again."""
        if self._again:
            first = min(self._position, self._again[0])
            self._done |= set(range(first, self._position))
            self._done -= set(self._again)
            self._open |= {position: self._kept[position] for position in self._again}
            self._position = first
            self._again.clear()
        for trial in self._not_reported(over):
            reported = self._open.setdefault(trial.position, _Reported())
            if reported.seen != _seen(trial):
                yield from self._poll_trial(trial, reported, over)
            if trial.status.has_ended or over:
                self._keep(trial, self._open.pop(trial.position))
                self._done.add(trial.position)
        while self._position in self._done:
            self._done.remove(self._position)
            self._position += 1

    def _not_reported(self, over: bool) -> Iterator[Trial]:
        if over:
            trials = self._reader.trials(self._run_id, from_position=self._position)
            yield from (trial for trial in trials if trial.position not in self._done)
            return
        for position in self._reader.begun(self._run_id, self._position):
            if position not in self._done:
                yield self._trial(position)

    def _keep(self, trial: Trial, reported: _Reported) -> None:
        """Remember how far a trial was reported, if it may be measured again."""
        if trial.status is Status.OK:
            self._kept.pop(trial.position, None)
        else:
            self._kept[trial.position] = replace(reported, started=False, seen=_seen(trial))

    def _poll_trial(self, trial: Trial, reported: _Reported, over: bool) -> Iterator[RunEvent]:
        if trial.status is Status.PLANNED:
            return
        if not reported.started:
            reported.started = True
            yield TrialStarted(trial)
        over = over or trial.status.has_ended
        flows = self._reader.flows(trial.id, all_attempts=True)
        for attempt, group in groupby(flows, key=lambda flow: flow.attempt):
            if attempt > reported.ended_attempt:
                yield from self._poll_attempt(trial, reported, attempt, list(group), over)
        if trial.status.has_ended:
            yield from self._poll_notes(trial.finished_time or 0.0)
            yield TrialEnded(trial)

    def _poll_attempt(
        self, trial: Trial, reported: _Reported, attempt: int, flows: list[RecordedFlow], over: bool
    ) -> Iterator[RunEvent]:
        if not over and any(flow.status is Status.PLANNED for flow in flows):
            return  # its servers are not ready yet, so some of its flows may be missing
        if attempt > reported.started_attempt:
            reported.started_attempt = attempt
            for flow in flows:
                yield FlowStarted(trial, flow)
        if self._samples:
            of_id = {flow.id: flow for flow in flows}
            for sample in self._reader.samples_of_trial(trial.id, reported.last_sample, attempt):
                reported.last_sample = sample.id
                yield Sampled(trial, of_id[sample.flow_id], sample)
        if over or all(flow.status.has_ended for flow in flows):
            ended = [flow for flow in flows if flow.status.has_ended]
            figures = [self._reader.figures(flow.id) for flow in ended]
            reported.ended_attempt = attempt
            for flow, own in zip(ended, figures, strict=True):
                yield FlowEnded(trial, flow, own)

    def _poll_notes(self, until: float) -> Iterator[Noted]:
        for note in self._reader.notes(self._run_id, self._last_note):
            if note.time > until:
                break
            self._last_note = note.id
            yield Noted(note)


def _seen(trial: Trial) -> tuple[Status, float | None, float | None]:
    return trial.status, trial.started_time, trial.finished_time
