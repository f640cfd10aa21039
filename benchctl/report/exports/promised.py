"""A stored run as the exporters of plugins get it: what docs/output-reference.md describes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from benchctl.errors import UsageError
from benchctl.exporter import ExportedRun, Exporter
from benchctl.report.exports.entries import report_entry, sample_entry
from benchctl.report.report import StoredRun


def promised(stored: StoredRun, exporter: Exporter) -> ExportedRun:
    """Return a run for the exporter of a plugin.

    Raises UsageError if its files hold one trial, and it is not known which, or is not there.
    """
    run, number = stored.run, stored.trial
    if not exporter.single_trial:
        return _PromisedRun(replace(stored, trial=None))
    if number is None:
        count = sum(1 for _ in stored.trials())
        if count != 1:
            raise UsageError(
                f"a file of {exporter.name} holds one trial, and run {run.name} has {count}",
                "choose one with --trial, or name a directory with -o to write all",
            )
        stored = replace(stored, trial=1)
    trial = next(stored.trials(), None)
    if trial is None:
        raise UsageError(f"run {run.name} has no trial {number}")
    if not trial.status.has_ended:
        raise UsageError(f"trial {trial.position + 1} of run {run.name} has not ended")
    return _PromisedRun(stored)


class _PromisedRun(ExportedRun):
    def __init__(self, stored: StoredRun) -> None:
        self._stored = stored

    @property
    def document(self) -> Mapping[str, Any]:
        # Not as data of our own types, such as those of states.
        document: Mapping[str, Any] = json.loads(json.dumps(report_entry(self._stored.report)))
        return document

    def samples(self) -> Iterator[Mapping[str, Any]]:
        reader = self._stored.reader
        for trial in self._stored.trials():
            of_trial = {"trial": trial.position, "repeat": trial.repeat, "point": trial.point}
            flows = {flow.id: flow for flow in reader.flows(trial.id, all_attempts=True)}
            for sample in reader.samples_of_trial(trial.id):
                flow = flows[sample.flow_id]
                yield {
                    **of_trial,
                    "started_time": flow.started_time,
                    **sample_entry(flow, sample),
                }
