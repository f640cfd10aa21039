"""Schedules and their log as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from benchctl.report.comparison.comparison import NOTHING
from benchctl.schedule.book import LogEntry, Schedule, What
from benchctl.units import format_count, format_time, write_duration

_ENDS = {
    0: "ok", 1: "a trial failed, or an expectation was not met", 2: "could not be planned",
    3: "something is not there", 4: "the store failed", 130: "interrupted", 143: "terminated",
}  # fmt: skip


def entry_line(entry: LogEntry) -> str:
    """Return an entry of the log as one line."""
    return f"{format_time(entry.time)}  {entry.schedule}  {entry.what}: {entry_text(entry)}"


def entry_text(entry: LogEntry) -> str:
    """Return what an entry says, without its time, its schedule and its kind."""
    match entry.what:
        case What.STARTED:
            assert entry.due_time is not None
            return f"due {format_time(entry.due_time)}"
        case What.RUN:
            assert entry.code is not None
            end = _ENDS.get(entry.code, f"exit code {entry.code}")
            return ": ".join(filter(None, [entry.run or "no run", end, entry.text]))
        case What.MISSED | What.SKIPPED:
            assert entry.due_time is not None
            assert entry.until_time is not None
            times = format_time(entry.due_time)
            if entry.count > 1:
                times += f" to {format_time(entry.until_time)}"
            return f"{format_count(entry.count, 'due time')}, {times}: {entry.text}"
    return f"{f'{entry.run}: ' if entry.run else ''}{entry.text}"


def schedule_rows(
    schedules: Iterable[Schedule], entries: Sequence[LogEntry], now: float
) -> list[tuple[str, ...]]:
    """Return a row for each schedule: `HEADS`."""
    rows: list[tuple[str, ...]] = []
    for schedule in schedules:
        rule = schedule.rule
        when = _every(rule.every_s)
        if rule.at_s is not None:
            when += f" at {rule.at_s // 3600:02.0f}:{rule.at_s % 3600 // 60:02.0f}"
            when += f" {rule.zone}" if rule.zone else ""
        own = [entry for entry in entries if entry.schedule == schedule.name]
        last = next((entry for entry in reversed(own) if entry.what is What.RUN), None)
        said = NOTHING if last is None else f"{format_time(last.time)} {entry_text(last)}"
        following = format_time(next(rule.due_after(now)))
        rows.append((schedule.name, schedule.profile, when, following, said))
    return rows


def _every(duration_s: float) -> str:
    """Write an interval as people type it: ``6h``."""
    for unit, size_s in (("d", 86_400), ("h", 3600), ("min", 60)):
        if duration_s % size_s == 0:
            return f"{duration_s / size_s:.0f}{unit}"
    return write_duration(duration_s)


HEADS = ("name", "profile", "every", "next", "last")


def due_lines(schedules: Iterable[Schedule], now: float, count: int) -> list[str]:
    """Return the next due times of all schedules together."""
    due = sorted(
        (at, schedule.name)
        for schedule in schedules
        for at in islice(schedule.rule.due_after(now), count)
    )
    return [f"{format_time(at)}  {name}" for at, name in due[:count]]
