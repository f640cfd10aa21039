"""The state of a run: a pure fold of its events, the same live, in replay and afterwards.

A view holds all events so far. What a screen shows is the view *at a moment*: the clock's when
live, the position of a replay, or the frozen one. Every method takes that moment, in Unix time, so
that going back needs no second fold.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from benchctl.analysis.results import FlowReport, TrialReport
from benchctl.analysis.runs.pace import LATELY, RunningTrial, Timing, left_s, wait_s
from benchctl.report.progress.goals import bounds_of_trials
from benchctl.report.report import Report, report_of
from benchctl.run.codec import to_json
from benchctl.run.record import Figures, Note, RecordedFlow, Run, Trial
from benchctl.run.status import FAILURES, Status
from benchctl.store.bulk import Outline
from benchctl.store.follow import (
    FlowEnded,
    FlowStarted,
    Noted,
    RunEnded,
    RunEvent,
    RunResumed,
    TrialEnded,
    TrialStarted,
)

PLANNED, RUNNING, OK, DIED = Status.PLANNED, Status.RUNNING, Status.OK, Status.DIED
# Longer than a runner takes to start on a busy machine.
START_S = 5.0


class TrialView(Struct):
    """One trial, from planned to its end.

    A run may have many: they keep the main figures, and no commands.
    """

    outline: Outline
    trial: Trial | None = None
    """The latest version; None while it is planned."""
    flows: dict[str, FlowReport] = {}
    """The flows of its last attempt so far."""
    failure: RecordedFlow | None = None
    """The flow that made its last failed attempt fail."""
    first_time: float | None = None
    """When its first attempt began, in Unix time, as far as it is known."""

    @property
    def status(self) -> Status:
        """The latest status."""
        return self.trial.status if self.trial is not None else PLANNED

    @property
    def error(self) -> str:
        """The reason of a failure."""
        return self.trial.error if self.trial is not None else ""

    @property
    def attempt(self) -> int:
        """The number of its last attempt; 0 before the first."""
        return max((flow.flow.attempt for flow in self.flows.values()), default=0)

    @property
    def started_time(self) -> float | None:
        """Its common start, in Unix time."""
        return self.trial.started_time if self.trial is not None else None

    @property
    def finished_time(self) -> float | None:
        """Its end, in Unix time."""
        return self.trial.finished_time if self.trial is not None else None

    @property
    def began_time(self) -> float | None:
        """Its start; its end if it failed before that, as when a host is gone."""
        return self.finished_time if self.started_time is None else self.started_time

    @property
    def finished(self) -> bool:
        """Whether the trial has ended."""
        return self.status.has_ended

    @property
    def point(self) -> Mapping[str, Any]:
        """The trial's axes and their values."""
        point: Mapping[str, Any] = json.loads(self.outline.point)
        return point

    @property
    def expected(self) -> Mapping[tuple[str, str, str], float]:
        """The theoretical values of its flows, by flow, direction and metric."""
        return {
            (name, direction, metric): value
            for name, flow in self.flows.items()
            for direction, values in flow.flow.expected.items()
            for metric, value in values.items()
        }

    def status_at(self, time: float) -> Status:
        """Return the status of the trial at a moment."""
        if self.started_time is None:
            return self.status
        if time < self.started_time:
            return PLANNED
        ended = self.finished_time is not None and time >= self.finished_time
        return self.status if ended or self.finished_time is None else RUNNING

    def elapsed_s(self, time: float) -> float:
        """Return how long the trial had been running at a moment."""
        if self.started_time is None:
            return 0.0
        end = time if self.finished_time is None else min(time, self.finished_time)
        return max(0.0, end - self.started_time)


def _bounds_of(run: Run, trials: Sequence[TrialView]) -> tuple[int, int] | None:
    """Return how many trials a run begins with and may have, if results of some lead to others."""
    search = run.settings.search
    if search is None and run.settings.until is None:
        return None
    points = (
        {axis: value for axis, value in view.point.items() if not search or axis != search.axis}
        for view in trials
    )
    repeats = (view.outline.repeat for view in trials)
    return bounds_of_trials(run, zip(map(to_json, points), repeats, strict=True))


class RunView:
    """A run and all its trials. ``apply`` takes the events in order."""

    def __init__(self, run: Run, outlines: Sequence[Outline], flows: Sequence[str] = ()) -> None:
        self.run = run
        self.flows = [*flows]
        """All flows: the place of one is its number on every screen."""
        self.headlines: dict[str, set[str]] = {}
        """The metrics that a list of trials shows of each flow that was measured."""
        self.both_ways: dict[str, set[str]] = {}
        """The directions of each flow that a single trial measured both ways."""
        self.vocabulary = run.vocabulary
        self._listed = frozenset(self.vocabulary.wanted)
        self.trials = [TrialView(outline) for outline in outlines]
        self._planned_s = [0.0, *accumulate(outline.duration_s for outline in outlines)]
        self._bounds = _bounds_of(run, self.trials)
        self.notes: list[Note] = []
        self.flows_ended = 0
        """How many ends of flows it was told."""
        self.ended = False
        self.left = 0
        """How many trials were still to be measured when the run ended."""
        self.planned_time = run.created_time
        """Since when it waits for a runner; unknown, and infinite, for a resumed run."""
        self.last_time: float | None = None
        """Of a run whose runner died, the time of its last sample, as soon as it is known."""
        self.latest = -1
        """Position of the last trial that began; -1 before the first."""
        self._again: set[int] = set()
        """Positions of trials before the last one that are still to be measured."""
        self._order: list[int] = []
        """Positions of trials in the order of their start."""

    def apply(self, event: RunEvent) -> None:
        """Take one event. Samples change nothing here; they belong to the plots (`traces`)."""
        match event:
            case TrialStarted(trial):
                self._again.update(range(self.latest + 1, trial.position))
                self._again.discard(trial.position)
                self._order.append(trial.position)
                self.latest = max(self.latest, trial.position)
                self._update(trial)
            case FlowStarted(trial, flow):
                view = self._update(trial)
                view.flows[flow.name] = self._flow(flow, {})
            case FlowEnded(trial, flow, figures):
                self.flows_ended += 1
                view = self._update(trial)
                report = view.flows[flow.name] = self._flow(flow, figures)
                known = view.failure.attempt if view.failure is not None else 0
                if flow.status is Status.FAILED and flow.attempt > known:
                    view.failure = report.flow
                    began_time = flow.started_time or flow.finished_time
                    view.first_time = min(filter(None, (view.first_time, began_time)), default=None)
            case TrialEnded(trial):
                self._update(trial)
            case Noted(note):
                self.notes.append(note)
            case RunEnded(run):
                self.run = run
                self.ended = True
                self.last_time = None
                self.left = sum(view.status.is_open for view in self.trials)
            case RunResumed(run, planned):
                self.run = run
                self.ended = False
                self.planned_time = math.inf
                for position in planned:
                    self.trials[position].trial = self.trials[position].first_time = None
                self._again.update(position for position in planned if position <= self.latest)
            case _:
                pass

    def _update(self, trial: Trial) -> TrialView:
        if trial.position == len(self.trials):  # it was added during the run
            point = to_json(trial.point)
            self.trials.append(
                TrialView(Outline(trial.id, trial.position, trial.repeat, point, trial.duration_s))
            )
            self._planned_s.append(self._planned_s[-1] + trial.duration_s)
        view = self.trials[trial.position]
        view.trial = replace(trial, flows=(), lab={}, links=(), hooks=())
        view.first_time = view.first_time or trial.started_time
        return view

    def _flow(self, flow: RecordedFlow, figures: Figures) -> FlowReport:
        if flow.name not in self.flows:
            self.flows.append(flow.name)
        listed = {
            key: replace(figure, spread={})
            for key, figure in figures.items()
            if key[1] in self._listed
        }
        metric = self.vocabulary.headline(flow.backend, {metric for _, metric in figures})
        directions = {direction for direction, name in figures if name == metric}
        if metric is not None:
            self.headlines.setdefault(flow.name, set()).add(metric)
        if len(directions) > 1:
            self.both_ways.setdefault(flow.name, set()).update(directions)
        slim = replace(flow, client=(), server=(), effective={}, stderr="")
        return FlowReport(slim, listed)

    @property
    def most_trials(self) -> int | None:
        """The most trials that it may have, if they are chosen by the results of others."""
        return self._bounds[1] if self._bounds is not None else None

    def known_at(self, time: float) -> int:
        """Return how many trials were known at a moment: the rest was chosen by their results."""
        if self._bounds is None or self.status_at(time).has_ended:
            return len(self.trials)
        return max(self._bounds[0], self._furthest_at(time) + 1)

    def can_resume_at(self, time: float) -> bool:
        """Return whether a runner could measure more of it at a moment, as far as is known."""
        return self.left + self.failed > 0 if self.ended else self.is_left_alone_at(time)

    def is_left_alone_at(self, time: float) -> bool:
        """Return whether it had waited for a runner longer than one takes to start."""
        return self.run.status is PLANNED and time - self.planned_time > START_S

    @property
    def failed(self) -> int:
        """How many trials failed or timed out: they are measured again on request only."""
        return sum(trial.status in FAILURES for trial in self.trials)

    @property
    def died(self) -> bool:
        """Whether the runner ended without ending the run."""
        return self.ended and self.run.status is DIED

    @property
    def end_time(self) -> float | None:
        """When the run ended, or had its last sample if its runner died."""
        return self.last_time if self.died else self.run.finished_time

    def died_at(self, time: float) -> bool:
        """Return whether the runner had died at a moment."""
        return self.died and (self.last_time is None or time >= self.last_time)

    def status_at(self, time: float) -> Status:
        """Return the status of the run at a moment."""
        if self.died:
            return DIED if self.died_at(time) else RUNNING
        if self.run.finished_time is not None and time < self.run.finished_time:
            return RUNNING
        return self.run.status

    def shown_status_at(self, time: float) -> Status:
        """Return what is said of the run at a moment: nothing ran while files were imported."""
        return self.run.status if self.run.origin else self.status_at(time)

    def current_at(self, time: float) -> int:
        """Return the position of the trial that began last before a moment; -1 before the first.

        Of those side by side, that which runs for the longest time.
        """
        if self.run.settings.parallel is not None and (running := self.running_at(time)):
            return running[0]
        return next((p for p in reversed(self._order) if self._began(p, time)), -1)

    def running_at(self, time: float) -> list[int]:
        """Return the positions of the trials that ran at a moment, the first to begin first."""
        if self.run.settings.parallel is None:
            current = self.current_at(time)
            found = [current] if current >= 0 else []
        else:
            found = [p for p in self._order if self._began(p, time)]
        running = [p for p in found if self.trials[p].status_at(time) == RUNNING]
        return sorted(running, key=lambda p: self.trials[p].started_time or 0.0)

    def _furthest_at(self, time: float) -> int:
        """Return the position of the last trial that began before a moment; -1 before the first."""
        return next((p for p in range(self.latest, -1, -1) if self._began(p, time)), -1)

    def _again_before(self, furthest: int, time: float) -> list[int]:
        if self.run.settings.parallel is not None:
            # They do not begin in the order of their positions.
            return [p for p in range(furthest) if self.trials[p].status_at(time) is PLANNED]
        return [position for position in self._again if position < furthest]

    def _began(self, position: int, time: float) -> bool:
        began = self.trials[position].began_time
        return began is not None and began <= time

    def done_at(self, time: float) -> int:
        """Return how many trials had ended at a moment."""
        running = len(self.running_at(time))
        furthest = self._furthest_at(time)
        return furthest + 1 - running - len(self._again_before(furthest, time))

    def elapsed_s(self, time: float) -> float:
        """Return how long the run had been going at a moment."""
        if self.run.started_time is None:
            return 0.0
        end = time if self.run.finished_time is None else min(time, self.run.finished_time)
        return max(0.0, end - self.run.started_time)

    def left_s(self, time: float) -> float:
        """Return the estimate at a moment of the run's remaining time."""
        current = self.current_at(time)
        furthest = self._furthest_at(time)
        again = self._again_before(furthest, time)
        known = self.known_at(time)
        to_come = known - furthest - 1 + len(again)
        to_come_s = self._planned_s[known] - self._planned_s[furthest + 1]
        to_come_s += sum(self.trials[position].outline.duration_s for position in again)
        running = [self._running_at(position, time) for position in self.running_at(time)]
        ended = [
            Timing(
                trial.outline.duration_s,
                trial.first_time or trial.started_time,
                trial.finished_time,
            )
            for trial in self.trials[max(0, current - LATELY) : current + 1]
            if trial.started_time is not None
            and trial.finished_time is not None
            and trial.finished_time <= time
        ]
        return left_s(time, running, to_come, to_come_s, ended, self.run.settings)

    def _running_at(self, position: int, time: float) -> RunningTrial:
        """Return how far a trial that runs at a moment is."""
        trial = self.trials[position]
        failure = self.failure_at(position, time)
        again_s = None
        if failure is not None and failure.attempt == trial.attempt:
            since_s = time - (failure.finished_time or time)
            again_s = wait_s(self.run.settings, failure.attempt, since_s)
        started_time = trial.started_time or time
        first_time = started_time if failure is None else trial.first_time or started_time
        return RunningTrial(trial.outline.duration_s, first_time, started_time, again_s)

    def report_at(self, time: float) -> Report:
        """Return the report of the trials that had ended at a moment."""
        begun = self.trials[: self._furthest_at(time) + 1]
        return report_of(
            self.run,
            (
                TrialReport(view.trial, list(view.flows.values()))
                for view in begun
                if view.trial is not None and view.status_at(time).has_ended
            ),
        )

    def failure_at(self, position: int, time: float) -> RecordedFlow | None:
        """Return the flow that made the last attempt fail of a trial that runs at a moment."""
        trial = self.trials[position]
        failure = trial.failure
        if failure is None or trial.status_at(time) != RUNNING or self.died_at(time):
            return None
        return failure if (failure.finished_time or 0.0) <= time else None

    def notes_at(self, time: float) -> list[Note]:
        """Return the notes written up to a moment, the newest last."""
        return [note for note in self.notes if note.time <= time]
