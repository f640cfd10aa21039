"""What the log of schedules says, as a page for the mesh shows it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from benchctl.report.mesh.changes import Told, ToldChange
from benchctl.report.mesh.reading import point_text
from benchctl.schedule.book import LogEntry, What
from benchctl.schedule.text import entry_text

SHOWN = (What.CHANGE, What.FAILING, What.RECOVERED, What.MISSED, What.SKIPPED, What.PROBLEM)
"""What somebody who looks at a page wants to know; each run is on it anyway."""


def told_of(entries: Iterable[LogEntry], names: Iterable[str]) -> Iterator[Told]:
    """Yield what a log says of some schedules, by their names, with all changes."""
    known = {*names}
    for one in entries:
        if one.what in SHOWN and one.schedule in known:
            text = f"{one.schedule}, {one.what}: {entry_text(one)}"
            yield Told(one.time, one.run, text, [*_changes(one.figures)])


def _changes(figures: Iterable[Mapping[str, Any]]) -> Iterator[ToldChange]:
    for one in figures:
        # A figure as another version wrote it is none of ours.
        with suppress(KeyError, ValueError, TypeError, AttributeError):
            yield ToldChange(
                one["metric"], one["flow"], one["direction"], point_text(one["point"]),
                datetime.fromisoformat(one["since"]).timestamp(), one["since_run"],
                float(one["before"]), float(one["after"]), str(one["verdict"]),
            )  # fmt: skip
