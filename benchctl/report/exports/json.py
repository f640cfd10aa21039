"""The whole report as one JSON object, indented."""

from __future__ import annotations

import json
from collections.abc import Iterator

from benchctl.report.exports.entries import report_entry
from benchctl.report.report import StoredRun


def export(stored: StoredRun) -> Iterator[str]:
    """Yield the report as JSON."""
    yield json.dumps(report_entry(stored.report), indent=2, allow_nan=False) + "\n"
