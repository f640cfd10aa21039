"""What the log of schedules says, as a page for the mesh shows it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from benchctl.report.mesh.changes import LoggedChange, LogLine
from benchctl.report.mesh.reading import point_text
from benchctl.schedule.book import LogEntry, What, with_added
from benchctl.schedule.text import entry_text

SHOWN = (What.CHANGE, What.FAILING, What.RECOVERED, What.MISSED, What.SKIPPED, What.PROBLEM)
"""What somebody who looks at a page wants to know; each run is on it anyway."""


def log_of(entries: Iterable[LogEntry], names: Iterable[str]) -> Iterator[LogLine]:
    """Yield what a log says of some schedules, by their names, with all changes."""
    known = {*names}
    for entry in with_added(entries):
        if entry.what in SHOWN and entry.schedule in known:
            text = f"{entry.schedule}, {entry.what}: {entry_text(entry)}"
            yield LogLine(entry.time, entry.run, text, [*_changes(entry.figures)])


def _changes(figures: Iterable[Mapping[str, Any]]) -> Iterator[LoggedChange]:
    for figure in figures:
        # A figure as another version wrote it is none of ours.
        with suppress(KeyError, ValueError, TypeError, AttributeError):
            yield LoggedChange(
                figure["metric"], figure["flow"], figure["direction"], point_text(figure["point"]),
                datetime.fromisoformat(figure["since"]).timestamp(), figure["since_run"],
                float(figure["before"]), float(figure["after"]), str(figure["verdict"]),
            )  # fmt: skip
