"""One trial in full: every attempt of its flows, the notes about it, and what was asked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from benchctl.analysis.results import FlowReport
from benchctl.run.planned import PlannedFlow
from benchctl.run.record import Note, RecordedFlow, Run, Trial
from benchctl.store.read import Reader
from benchctl.units import unit_of, without_unit

# ping keeps intervals of 200 ms to within 2 % on an idle machine; who asks for 1 ms and gets 1.1 ms
# measures something else.
_AS_ASKED = 0.05


class TrialDetail(Struct, frozen=True):
    """A trial in any state; ``flows`` are those of all attempts, in the order of their start."""

    run: Run
    trial: Trial
    flows: Sequence[FlowReport]
    notes: Sequence[Note]


def trial_title(trial: Trial, run: Run) -> str:
    """Name a trial: its number, its point and its repeat."""
    point = " ".join(f"{axis}={trial.point[axis]}" for axis in run.varying if axis in trial.point)
    repeat = f" repeat {trial.repeat}" if trial.repeat > 1 else ""
    planned = max(run.trials, trial.position + 1)  # a strategy may have added it
    return f"[{trial.position + 1}/{planned}]{f' {point}' if point else ''}{repeat}"


def read_details(reader: Reader, run: Run, from_position: int = 0) -> Iterator[TrialDetail]:
    """Yield the trials of a run from a position on, in order of execution. Raises StoreError."""
    notes = reader.notes(run.id)
    for trial in reader.trials(run.id, from_position):
        flows = reader.flow_reports(trial.id, all_attempts=True)
        ids = {report.flow.id for report in flows}
        yield TrialDetail(
            run,
            trial,
            flows,
            [note for note in notes if note.trial_id == trial.id or note.flow_id in ids],
        )


def asked_of(planned: PlannedFlow) -> dict[str, str]:
    """Return the parameters of a flow as written in the profile."""
    return {name: _text("", value) for name, value in planned.parameters.items()}


def in_force_of(flow: RecordedFlow) -> dict[str, str]:
    """Return the settings that the tool reported, by the names of parameters."""
    return {without_unit(name): _text(name, value) for name, value in flat(flow.effective)}


def unlike_asked(flow: RecordedFlow, planned: PlannedFlow) -> list[str]:
    """Return the parameters that are in force with another value than was asked for."""
    values = {without_unit(name): value for name, value in flow.effective.items()}
    return [
        name
        for name in planned.parameters
        if name in values
        and name in flow.requested
        and _is_other(values[name], flow.requested[name])
    ]


def _is_other(in_force: object, asked: object) -> bool:
    """Return whether a setting has another value; fractions may be measured or rounded."""
    if isinstance(in_force, float) and isinstance(asked, int | float):
        return not math.isclose(in_force, asked, rel_tol=_AS_ASKED)
    return in_force != asked


def _text(name: str, value: object) -> str:
    """Format a setting exactly, in the unit that its name ends with."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value} {unit_of(name)}".rstrip() if isinstance(value, int | float) else str(value)


def flat(values: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, object]]:
    """Yield every value within mappings with its path: ``cpu.model``."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value
