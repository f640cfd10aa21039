"""Follows a run in the store, live or afterwards, as a stream of events.

Live view, progress lines, export of events and replay all read a run this way. So they see the same
events in the same order, however often they poll: a trial starts; for each attempt, its flows
start, samples arrive, flows end; the trial ends, and finally the run. The flows of an attempt end
together, when the last of them has ended. Notes come as soon as they are stored, and before the end
of their trial.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from benchctl.analysis.figures import Figures
from benchctl.run.record import Note, RecordedFlow, Run, Trial
from benchctl.run.status import Status
from benchctl.store.read import Reader, StoredSample


@dataclass(frozen=True, slots=True)
class TrialStarted:
    """The first attempt of a trial began."""

    trial: Trial


@dataclass(frozen=True, slots=True)
class FlowStarted:
    """An attempt of a flow began."""

    trial: Trial
    flow: RecordedFlow


@dataclass(frozen=True, slots=True)
class Sampled:
    """A sample arrived."""

    flow: RecordedFlow
    sample: StoredSample


@dataclass(frozen=True, slots=True)
class FlowEnded:
    """An attempt of a flow ended; ``figures`` are its final ones."""

    trial: Trial
    flow: RecordedFlow
    figures: Figures


@dataclass(frozen=True, slots=True)
class TrialEnded:
    """A trial ended, after its last attempt."""

    trial: Trial


@dataclass(frozen=True, slots=True)
class Noted:
    """A note about the run was stored."""

    note: Note


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The run ended, or its runner died."""

    run: Run


@dataclass(frozen=True, slots=True)
class RunResumed:
    """A run that had ended, or whose runner had died, is to be measured further."""

    run: Run


RunEvent = (
    TrialStarted | FlowStarted | Sampled | FlowEnded | TrialEnded | Noted | RunEnded | RunResumed
)


@dataclass(slots=True)
class _Place:
    """How far a run was reported: its trial, and the last attempts and sample of that trial."""

    position: int = 0
    trial_started: bool = False
    started_attempt: int = 0
    ended_attempt: int = 0
    last_sample: int = 0


class Follower:
    """Yields what is new in a run since the last poll; with ``samples`` false, all but samples."""

    def __init__(self, reader: Reader, run_id: int, *, samples: bool = True) -> None:
        self._reader = reader
        self._run_id = run_id
        self._samples = samples
        self._place = _Place()
        self._last_note = 0
        self._end: tuple[int | None, float | None] | None = None
        """The runner that ended, and when it did; None while the run goes on."""

    @property
    def ended(self) -> bool:
        """Whether the end of the run was the last event."""
        return self._end is not None

    def poll(self) -> Iterator[RunEvent]:
        """Yield the events since the last poll; after the end of the run, only if it is resumed."""
        run = self._reader.run(self._run_id)
        over = run.status.has_ended
        end = run.runner_pid, run.finished_time
        if self.ended:
            if over and end == self._end:
                return
            self._end = None
            yield RunResumed(run)
        first_open: _Place | None = None
        for trial in self._reader.trials(self._run_id, from_position=self._place.position):
            if trial.status is Status.PLANNED and not over:
                break
            yield from self._poll_trial(trial, over)
            if not trial.status.has_ended and not over:
                break
            if trial.status.is_open and first_open is None:
                first_open = replace(self._place, trial_started=False)
            self._place = _Place(trial.position + 1)
        yield from self._poll_notes(math.inf)
        if over:
            self._place = first_open or self._place
            self._end = end
            yield RunEnded(run)

    def _poll_trial(self, trial: Trial, over: bool) -> Iterator[RunEvent]:
        if trial.status is Status.PLANNED:
            return
        if not self._place.trial_started:
            self._place.trial_started = True
            yield TrialStarted(trial)
        over = over or trial.status.has_ended
        flows = self._reader.flows(trial.id, all_attempts=True)
        for attempt, group in groupby(flows, key=lambda flow: flow.attempt):
            if attempt > self._place.ended_attempt:
                yield from self._poll_attempt(trial, attempt, list(group), over)
        if trial.status.has_ended:
            yield from self._poll_notes(trial.finished_time or 0.0)
            yield TrialEnded(trial)

    def _poll_attempt(
        self, trial: Trial, attempt: int, flows: list[RecordedFlow], over: bool
    ) -> Iterator[RunEvent]:
        if not over and any(flow.status is Status.PLANNED for flow in flows):
            return  # its servers are not ready yet, so some of its flows may be missing
        if attempt > self._place.started_attempt:
            self._place.started_attempt = attempt
            for flow in flows:
                yield FlowStarted(trial, flow)
        if self._samples:
            of_id = {flow.id: flow for flow in flows}
            for sample in self._reader.samples_of_trial(trial.id, self._place.last_sample, attempt):
                self._place.last_sample = sample.id
                yield Sampled(of_id[sample.flow_id], sample)
        if over or all(flow.status.has_ended for flow in flows):
            ended = [flow for flow in flows if flow.status.has_ended]
            figures = [self._reader.figures(flow.id) for flow in ended]
            self._place.ended_attempt = attempt
            for flow, own in zip(ended, figures, strict=True):
                yield FlowEnded(trial, flow, own)

    def _poll_notes(self, until: float) -> Iterator[Noted]:
        for note in self._reader.notes(self._run_id, self._last_note):
            if note.time > until:
                break
            self._last_note = note.id
            yield Noted(note)
