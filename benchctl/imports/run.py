"""Builds the run of some files in a store of its own, which is then copied as a whole.

So an import that fails leaves nothing behind, and another program waits for the store only while
the run is copied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from benchctl.analysis.flow.figures import FlowFold
from benchctl.analysis.flow.laws import terms_of
from benchctl.analysis.flow.sharing import Shares
from benchctl.analysis.flow_result import FlowResult, FlowSurroundings, check
from benchctl.api import Effective, Event, Failure, ParserError, Recording, Role, Warn
from benchctl.imports.axes import UNKNOWN, TrialSettings, order
from benchctl.imports.files import File
from benchctl.imports.kinds import FileKind, Trials
from benchctl.imports.result import ImportedRun
from benchctl.metrics import Sample
from benchctl.plan.bound import accepted
from benchctl.run.planned import LOCAL, PlannedFlow, PlannedRun, PlannedTrial, Scalar, Settings
from benchctl.run.record import RecordedPackets
from benchctl.run.status import Status
from benchctl.store.arrange import TrialPlace, arrange
from benchctl.store.copies.copy import copy_run
from benchctl.store.flow_recording import FlowRecording
from benchctl.store.record import Recorder, create_run

IMPORTED = "imported"
"""The order of the trials of an imported run, beside those of profiles."""
# The years 1970 to 9892, as the store has them.
_LATEST_TIME = 2.5e11
# Three years. A longer one is a wrong number, and would stretch every plot.
_LONGEST_S = 1e8
# Its square must not overflow.
_LARGEST = 1e100
_LONGEST_TEXT = 500


class _Clock:
    """The time at which something in the file happened."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


Packets = Mapping[str, Sequence[RecordedPackets]]


class _Flow(NamedTuple):
    """A flow of a trial: as planned, as recorded, and its parameters in SI units."""

    planned: PlannedFlow
    recording: Recording
    requested: Mapping[str, Any]


class RunBuilder:
    """The run of some files of one kind; to be closed."""

    def __init__(
        self, store: Path, kind: FileKind, profile: str, flow: str, tags: Sequence[str]
    ) -> None:
        """``store`` is the file to build it in; ``flow`` names the flow of a backend's tool.

        Raises StoreError, as all methods do.
        """
        self._store = store
        self._kind = kind
        self._profile = profile
        self._flow = flow
        plan = PlannedRun(profile, "", 0, Settings({}, IMPORTED, ()), (), "")
        self._run_id, _ = create_run(store, plan, 0.0, tags)
        self._recorder = Recorder(store, self._run_id)
        self._recorder.update_run(origin=kind.name, status=Status.RUNNING)
        self._measured: list[TrialSettings] = []
        self._facts: list[Mapping[str, Any]] = []
        self._last_time = 0.0
        self._failed = 0

    def __len__(self) -> int:
        """Return how many trials it has."""
        return len(self._measured)

    def add(
        self, file: File, trials: Trials, packets: Packets = MappingProxyType({}),
        notes: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """Add the trials of a file, with the packets of flows by name, and notes about it.

        Raises ParserError for a wrong value, and adds none then.
        """
        of_trials = []
        for trial in trials:
            flows = [self._flow_of(name, checked(recording)) for name, recording in trial.items()]
            of_trials.append(flows)
        if not any(of_trials):
            raise ParserError("it has no measurement")
        for flows in of_trials:
            self._add_trial(file, flows, packets)
        for text in notes:
            self._recorder.add_note(text, "warning", self._last_time, len(self._measured), None)

    def _flow_of(self, name: str, recording: Recording) -> _Flow:
        backend = self._kind.backend
        given = {key: value for key, value in recording.parameters.items() if value is not None}
        if backend is not None and name == backend.name:
            name = self._flow or name
        source, target = recording.source or LOCAL.name, recording.target or UNKNOWN
        planned = PlannedFlow(
            name, self._kind.name, source, target, None, recording.direction, 0.0, given
        )
        requested: Mapping[str, Any] = given
        if backend is not None:
            try:
                requested = accepted(planned, backend).requested
            except ValueError as error:
                raise ParserError(f"settings that {backend.name} cannot have: {error}") from None
        # Without defaults, which the file does not report.
        return _Flow(planned, recording, {key: requested[key] for key in given})

    def _add_trial(self, file: File, flows: Sequence[_Flow], packets: Packets) -> None:
        recordings = [flow.recording for flow in flows]
        length_s = max(map(_length_s, recordings))
        times = [
            recording.started_time for recording in recordings if recording.started_time is not None
        ]
        started = min(times) if times else max(0.0, file.changed_time - length_s)
        planned = tuple(flow.planned for flow in flows)
        self._recorder.add_trial(PlannedTrial(0, 1, {}, planned, {}, length_s, length_s))
        # Trials of a new store are numbered from 1.
        trial_id = len(self._measured) + 1
        recorded = [self._record(trial_id, flow, started, file.name) for flow in flows]
        results = [recording.result for recording in recorded]
        if not times:
            text = f"{file.name}: has no time; that of its last change stands for its end"
            self._recorder.add_note(text, "warning", started, trial_id, None)
        loads = [result.load for result in results if result.load is not None]
        for flow, recording in zip(flows, recorded, strict=True):
            recording.result.captures = packets.get(flow.planned.name, ())
            recording.write(FlowSurroundings(loads, terms=terms_of(flow.requested)))
        failures = [
            f"{flow.planned.name}: {result.failure.message}"
            for flow, result in zip(flows, results, strict=True)
            if result.failure is not None
        ]
        status = Status.FAILED if failures else Status.OK
        # The connections of a trace are those that somebody saw: nobody meant them to share.
        broken = {name for result in results for name in result.broken}
        folds = [(result.fold, result.second_0) for result in results]
        shares = None if failures or packets else Shares.of(folds, broken)
        self._recorder.update_trial(trial_id, status=Status.RUNNING)
        self._recorder.update_trial(
            trial_id,
            status=status,
            error="".join(failures[:1]),
            started_time=started,
            finished_time=started + length_s,
            fairness_jain=shares and shares.jain,
            fair_windows=shares.windows if shares else [],
            file=file.name,
            file_sha256=file.sha256,
        )
        self._failed += bool(failures)
        self._last_time = max(self._last_time, started + length_s)
        self._measured.append(TrialSettings(started, *_settings(recordings)))
        self._facts += [recording.facts for recording in recordings]

    def _record(self, trial_id: int, flow: _Flow, started: float, file: str) -> FlowRecording:
        """Write an attempt of a flow, but for its result."""
        planned, recording = flow.planned, flow.recording
        begun = started if recording.started_time is None else recording.started_time
        flow_id = self._recorder.add_flow(
            trial_id, attempt=1, name=planned.name, backend=planned.backend, source=planned.source,
            target=planned.to, direction=str(planned.direction), port=recording.port,
            status=Status.RUNNING, client=(), server=(), requested=flow.requested,
        )  # fmt: skip
        clock = _Clock(begun)
        result = FlowResult(FlowFold(self._kind.metrics))
        recorded = FlowRecording(flow_id, result, self._recorder, clock)
        recorded.begin(started)
        for event in recording.events:
            clock.now = begun + (event.end_s if isinstance(event, Sample) else 0.0)
            if isinstance(event, Warn):
                event = Warn(f"{file}: {event.message}")
            recorded.take(Role.CLIENT, event)
        clock.now = begun + _length_s(recording)
        result.judge(clock.now)
        return recorded

    def finish(self, into: Path | None, *, again: bool = False) -> ImportedRun:
        """Put the trials in order, and copy the run to a store; to none for None.

        Raises AlreadyThereError if the store has got one of its files, but for ``again``.
        """
        self._recorder.settle()
        axes, ordered = order(self._measured)
        places = [
            TrialPlace(ordered_trial.index + 1, position, ordered_trial.repeat, ordered_trial.point)
            for position, ordered_trial in enumerate(ordered)
        ]
        kind = self._kind
        headlines = {kind.name: kind.headline} if kind.headline else {}
        settings = Settings(axes, IMPORTED, (), metrics=kind.metrics, headlines=headlines)
        begin = min(settings.started_time for settings in self._measured)
        span = begin, self._last_time
        name = arrange(self._store, self._run_id, places, settings, _common(self._facts), span)
        if into is not None:
            copy_run(self._store, self._run_id, into, new_files=not again)
        return ImportedRun(name, self._profile, kind.name, len(places), self._failed, axes)

    def close(self) -> None:
        """Close the store that it is built in."""
        self._recorder.close()


def _settings(flows: Sequence[Recording]) -> tuple[dict[str, Scalar | None], bool]:
    """Return the settings that all flows of a trial share, and whether none are reported."""
    settings = [
        {"from": flow.source or None, "to": flow.target or None}
        | ({"direction": str(flow.direction), **flow.parameters} if flow.parameters else {})
        for flow in flows
    ]
    shared = {
        name: value
        for name, value in settings[0].items()
        if all(name in of_flow and of_flow[name] == value for of_flow in settings)
    }
    return shared, not any(len(of_flow) > 2 for of_flow in settings)


def _length_s(recording: Recording) -> float:
    return max(
        (event.end_s for event in recording.events if isinstance(event, Sample)), default=0.0
    )


def _common(facts: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the facts that are the same in all files that report them."""
    names = dict.fromkeys(name for fact in facts for name in fact)
    values = {name: [fact[name] for fact in facts if name in fact] for name in names}
    return {
        name: reported[0]
        for name, reported in values.items()
        if all(value == reported[0] for value in reported)
    }


def checked(recording: Recording) -> Recording:
    """Return a recording as it can be stored. Raises ParserError for a value that cannot be."""
    time = recording.started_time
    if time is not None and not 0 <= time < _LATEST_TIME:
        raise ParserError(f"it began {time:.6g} s after 1970, which cannot be")
    for event in recording.events:
        try:
            check(event)
        except (ValueError, TypeError) as error:
            raise ParserError(f"it has a value that cannot be: {error}") from None
        if isinstance(event, Sample):
            possible = -_LONGEST_S < event.start_s <= event.end_s < _LONGEST_S
            if not possible or any(abs(value) > _LARGEST for value in event.metrics.values()):
                times = f"{event.start_s:.6g} to {event.end_s:.6g} s"
                raise ParserError(f"it has an interval that cannot be, from {times}")
    return replace(
        recording,
        events=[_storable(event) for event in recording.events],
        parameters=clean(recording.parameters),
        source=clean(recording.source),
        target=clean(recording.target),
        facts=clean(recording.facts),
    )


def _storable(event: Event) -> Event:
    match event:
        case Warn():
            return Warn(clean(event.message))
        case Failure():
            return replace(event, message=clean(event.message), hint=clean(event.hint))
        case Effective():
            return Effective(clean(event.settings))
    return event


def clean(value: Any) -> Any:
    """Return data with texts that UTF-8 can hold, and that are not too long."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()[:_LONGEST_TEXT]
    if isinstance(value, Mapping):
        return {clean(name): clean(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    return value
