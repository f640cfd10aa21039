"""A run as a stream of events, one JSON object a line: ``--format jsonl``.

A live run and a stored one give the same lines, with notes a little earlier when live. Each has
``event``; times are ISO 8601, local with their offset.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from benchctl.report.exports.entries import flow_entries, run_entry, sample_entry, trial_entry
from benchctl.report.report import StoredRun
from benchctl.store.follow import (
    FlowEnded,
    FlowStarted,
    Follower,
    Noted,
    RunEnded,
    RunEvent,
    Sampled,
    TrialEnded,
    TrialStarted,
)
from benchctl.units import timestamp


def export(stored: StoredRun) -> Iterator[str]:
    """Yield a stored run in this form. Raises StoreError."""
    yield from event_lines(Follower(stored.reader, stored.run.id).poll())


def event_lines(events: Iterable[RunEvent]) -> Iterator[str]:
    """Write each event as a line with its line end."""
    for event in events:
        for data in _entries(event):
            yield json.dumps(data, allow_nan=False) + "\n"


def _entries(event: RunEvent) -> Iterator[dict[str, Any]]:
    match event:
        case TrialStarted(trial):
            yield {
                "event": "trial_started",
                "index": trial.position,
                "repeat": trial.repeat,
                "point": trial.point,
            }
        case FlowStarted(trial, flow):
            yield {
                "event": "flow_started",
                "trial": trial.position,
                "flow": flow.name,
                "attempt": flow.attempt,
                "command": flow.client,
                "server_command": flow.server,
            }
        case Sampled(trial, flow, sample):
            yield {"event": "sample", "trial": trial.position, **sample_entry(flow, sample)}
        case FlowEnded(trial, flow, figures):
            for entry in flow_entries(flow, figures):
                yield {"event": "flow_ended", "trial": trial.position, **entry}
        case TrialEnded(trial):
            yield {"event": "trial_ended", **trial_entry(trial)}
        case Noted(note):
            yield {
                "event": "note",
                "time": timestamp(note.time),
                "level": note.level,
                "text": note.text,
            }
        case RunEnded(run):
            yield {"event": "run_ended", **run_entry(run)}
