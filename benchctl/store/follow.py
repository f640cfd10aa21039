"""Follows a run in the store, as it happens or afterwards, as a stream of events.

Live view, progress line, export of events and replay all read a run this way, so they see the same
things in the same order: a trial starts, its flows start, samples arrive, flows end, the trial
ends, and at last the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchctl.analysis.figures import Figures
from benchctl.store.read import Flow, Note, Reader, Run, Sample, Trial

UNFINISHED = ("planned", "running")


@dataclass(frozen=True, slots=True)
class TrialStarted:
    """The first attempt of a trial began."""

    trial: Trial


@dataclass(frozen=True, slots=True)
class FlowStarted:
    """An attempt of a flow began."""

    trial: Trial
    flow: Flow


@dataclass(frozen=True, slots=True)
class Sampled:
    """A sample arrived."""

    flow: Flow
    sample: Sample


@dataclass(frozen=True, slots=True)
class FlowEnded:
    """An attempt of a flow ended; ``figures`` are its final ones."""

    trial: Trial
    flow: Flow
    figures: Figures


@dataclass(frozen=True, slots=True)
class TrialEnded:
    """A trial ended, after its last attempt."""

    trial: Trial


@dataclass(frozen=True, slots=True)
class Noted:
    """Something was said about the run."""

    note: Note


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The run ended; when its runner died, the status is still "running"."""

    run: Run


RunEvent = TrialStarted | FlowStarted | Sampled | FlowEnded | TrialEnded | Noted | RunEnded


class Follower:
    """Yields what is new in a run since the last poll; without ``samples``, all but those."""

    def __init__(self, reader: Reader, run_id: int, *, samples: bool = True) -> None:
        self._reader = reader
        self._run_id = run_id
        self._samples = samples
        self._position = 0
        self._trial_started = False
        self._flows: dict[int, bool] = {}
        """Flows of the current trial that were seen, and whether their end was."""
        self._last_sample = 0
        self._last_note = 0
        self.ended = False

    def poll(self) -> Iterator[RunEvent]:
        """Yield the events since the last poll; none after the run has ended."""
        if self.ended:
            return
        run = self._reader.run(self._run_id)
        if run.status == "running" and not self._reader.is_alive(run):
            # It died, or it ended between the two questions: the second answer tells.
            run = self._reader.run(self._run_id)
            over = True
        else:
            over = run.status not in UNFINISHED
        for trial in self._reader.trials(self._run_id, from_position=self._position):
            if trial.status == "planned" and not over:
                break
            yield from self._poll_trial(trial)
            if trial.status in UNFINISHED and not over:
                break
            self._next_trial(trial)
        for note in self._reader.notes(self._run_id, self._last_note):
            self._last_note = note.id
            yield Noted(note)
        if over:
            self.ended = True
            yield RunEnded(run)

    def _poll_trial(self, trial: Trial) -> Iterator[RunEvent]:
        if trial.status == "planned":
            return
        if not self._trial_started:
            self._trial_started = True
            yield TrialStarted(trial)
        flows = {flow.id: flow for flow in self._reader.flows(trial.id, all_attempts=True)}
        for flow in flows.values():
            if flow.id not in self._flows:
                self._flows[flow.id] = False
                yield FlowStarted(trial, flow)
        after = self._last_sample
        for sample in self._reader.samples_of_trial(trial.id, after) if self._samples else ():
            self._last_sample = sample.id
            if sample.flow_id in flows:
                yield Sampled(flows[sample.flow_id], sample)
        for flow in flows.values():
            if flow.status not in UNFINISHED and not self._flows[flow.id]:
                self._flows[flow.id] = True
                yield FlowEnded(trial, flow, self._reader.figures(flow.id))
        if trial.status not in UNFINISHED:
            yield TrialEnded(trial)

    def _next_trial(self, trial: Trial) -> None:
        self._position = trial.position + 1
        self._trial_started = False
        self._flows = {}
        self._last_sample = 0
