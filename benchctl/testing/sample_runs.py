"""Runs to try an exporter on: measured, failed, with odd texts, without a result, and long ones."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from benchctl.api import ExportedRun

# Written from a store by tests/testing/test_sample_runs.py, as exporters get it.
FILE = Path(__file__).with_name("sample_runs.json")


@dataclass(frozen=True, slots=True)
class SampleRun(ExportedRun):
    """A run as data: ``text`` is its document, as ``benchctl export --format json`` writes it."""

    name: str
    is_trial: bool
    """Whether it is one trial of a run, as for a format of single trials."""
    text: str
    rows: tuple[Mapping[str, Any], ...]
    count: int
    """How many samples it has: its rows over and over, at later times."""

    @property
    def document(self) -> Mapping[str, Any]:
        document: Mapping[str, Any] = json.loads(self.text)
        return document

    def samples(self) -> Iterator[Mapping[str, Any]]:
        for number, row in enumerate(islice(cycle(self.rows), self.count)):
            later_s = number // len(self.rows)
            times = {key: row[key] + later_s for key in ("start_s", "end_s")}
            yield {**row, "point": {**row["point"]}, **times, "metrics": {**row["metrics"]}}


def sample_runs(*, single_trial: bool) -> list[SampleRun]:
    """Return the runs for a format, whose files may hold a single trial."""
    runs = [
        SampleRun(
            load["name"], load["is_trial"], json.dumps(load["document"]), (*load["samples"],),
            len(load["samples"]),
        )
        for load in json.loads(FILE.read_text(encoding="utf-8"))
    ]  # fmt: skip
    return [run for run in runs if run.is_trial is single_trial]
