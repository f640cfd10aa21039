"""The schedules of a store, and what became of them: two files beside it.

``STORE.schedules.json`` holds the schedules. ``STORE.schedules.jsonl`` is their log: one JSON
object a line, which is only ever added to.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from benchctl.errors import StoreError, UsageError, nearest
from benchctl.schedule.times import Recurrence

# What a person writes and nobody else may change: a schedule runs commands.
_PRIVATE = 0o600
ScheduleName = Annotated[str, Meta(pattern=r"^[\w.-]+\Z", max_length=60)]


class Overlap(StrEnum):
    """What becomes of a due time while the schedule's own run goes on."""

    SKIP = "skip"
    QUEUE = "queue"
    """One of them is measured when that run has ended."""


class Schedule(Struct, frozen=True, forbid_unknown_fields=True):
    """A profile that is measured again and again.

    ``profile`` is an absolute path, or the name of an included profile; ``options`` are words of
    ``benchctl run``. Runs are deleted ``keep_s`` after they were made; None keeps them. ``notify``
    is a command that gets each event as JSON.
    """

    name: ScheduleName
    profile: str
    rule: Recurrence
    overlap: Overlap = Overlap.SKIP
    keep_s: float | None = None
    options: tuple[str, ...] = ()
    notify: str | None = None

    @property
    def tag(self) -> str:
        """The tag of its runs."""
        return f"schedule:{self.name}"


class What(StrEnum):
    """What an entry of the log is about."""

    STARTED = "started"
    RUN = "run"
    """A run that has ended, or could not begin."""
    MISSED = "missed"
    """Nobody was there to start a run: the machine slept, or no scheduler ran."""
    SKIPPED = "skipped"
    """The run before still went on."""
    CHANGE = "change"
    ADDED = "added"
    """Further figures of a change that was told before."""
    FAILING = "failing"
    RECOVERED = "recovered"
    PROBLEM = "problem"
    """A notification, a push to the archive, or a clean-up failed."""


class LogEntry(Struct, frozen=True, omit_defaults=True):
    """A line of the log; ``time`` and ``schedule`` are known when it is written.

    Times are Unix times. ``count`` due times from ``due_time`` to ``until_time`` are told of.
    ``code`` is the exit code of ``benchctl run``. ``figures`` are those that changed,
    ``reasons`` those for which trials fail. ``told_with`` is the run of the entry that told of a
    change to which these figures are added.
    """

    what: What
    time: float = 0.0
    schedule: str = ""
    due_time: float | None = None
    until_time: float | None = None
    count: int = 0
    run: str = ""
    told_with: str = ""
    code: int | None = None
    text: str = ""
    figures: tuple[Mapping[str, Any], ...] = ()
    reasons: tuple[str, ...] = ()


class Book:
    """The schedules of a store and their log."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self._file = store.with_name(f"{store.name}.schedules.json")
        self._log = store.with_name(f"{store.name}.schedules.jsonl")

    def schedules(self) -> dict[str, Schedule]:
        """Return the schedules by name, in the order of their names. Raises StoreError."""
        with self._errors(self._file):
            try:
                text = self._file.read_bytes()
            except FileNotFoundError:
                return {}
            found = msgspec.json.decode(text, type=list[Schedule])
        return {
            schedule.name: schedule
            for schedule in sorted(found, key=lambda schedule: schedule.name)
        }

    def find(self, name: str) -> Schedule:
        """Return a schedule. Raises UsageError if there is none of this name."""
        schedules = self.schedules()
        if name not in schedules:
            hint = nearest(name, schedules) or f"schedules are: {', '.join(schedules) or 'none'}"
            raise UsageError(f'no schedule "{name}"', hint)
        return schedules[name]

    def add(self, schedule: Schedule) -> None:
        """Add a schedule. Raises UsageError if its name is taken, StoreError."""
        with self._changing() as schedules:
            if schedule.name in schedules:
                hint = f"remove it first: benchctl schedule remove {schedule.name}; or use --name"
                raise UsageError(f'there is a schedule "{schedule.name}"', hint)
            schedules[schedule.name] = schedule

    def remove(self, name: str) -> None:
        """Remove a schedule; its runs and its log stay. Raises UsageError, StoreError."""
        self.find(name)
        with self._changing() as schedules:
            schedules.pop(name, None)

    def entries(self) -> list[LogEntry]:
        """Return the log, the oldest entry first. Raises StoreError.

        The end of a line that was cut off, as by a full disk, is left out.
        """
        with self._errors(self._log):
            try:
                lines = self._log.read_bytes().split(b"\n")
            except FileNotFoundError:
                return []
            return [msgspec.json.decode(line, type=LogEntry) for line in lines[:-1] if line]

    def write(self, entry: LogEntry) -> None:
        """Add an entry to the log, on the disk when this returns. Raises StoreError."""
        with self._errors(self._log), self._open(self._log, os.O_RDWR | os.O_APPEND) as file:
            # A crash may have cut off the last line: only that one is lost.
            size = os.fstat(file).st_size
            cut = size > 0 and os.pread(file, 1, size - 1) != b"\n"
            if cut:
                os.ftruncate(file, _last_line_end(file, size))
            os.write(file, msgspec.json.encode(entry) + b"\n")
            os.fsync(file)

    @contextmanager
    def working(self) -> Iterator[bool]:
        """Hold the place of the one process that starts runs; yields whether it is free."""
        path = self.store.with_name(f"{self.store.name}.schedules.lock")
        with self._errors(path), self._open(path, os.O_RDWR) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Schedule]]:
        """Yield the schedules; what is changed in them is written, by one process at a time."""
        new = self._file.with_name(f"{self._file.name}.new")
        with self._errors(self._file):
            self.store.parent.mkdir(parents=True, exist_ok=True)
            # The log is never replaced: who holds it is alone.
            with self._open(self._log, os.O_RDWR) as alone:
                fcntl.flock(alone, fcntl.LOCK_EX)
                schedules = self.schedules()
                yield schedules
                with self._open(new, os.O_RDWR | os.O_TRUNC) as file:
                    os.write(file, msgspec.json.format(msgspec.json.encode([*schedules.values()])))
                    os.fsync(file)
                new.replace(self._file)

    @staticmethod
    @contextmanager
    def _open(path: Path, flags: int) -> Iterator[int]:
        file = os.open(path, flags | os.O_CREAT | os.O_CLOEXEC, _PRIVATE)
        try:
            yield file
        finally:
            os.close(file)

    @staticmethod
    @contextmanager
    def _errors(path: Path) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}") from error
        except msgspec.MsgspecError as error:
            hint = "it is not as benchctl wrote it: restore it, or move it away"
            raise StoreError(f"{path}: {error}", hint) from error


def _last_line_end(file: int, size: int) -> int:
    return os.pread(file, size, 0).rfind(b"\n") + 1


def handled_until(schedule: Schedule, entries: Sequence[LogEntry]) -> float:
    """Return the last due time of a schedule that something became of, or when it was added."""
    times = [
        time
        for entry in entries
        if entry.schedule == schedule.name
        for time in (entry.due_time, entry.until_time)
        if time is not None
    ]
    return max([schedule.rule.since_time, *times])


def with_added(entries: Iterable[LogEntry]) -> list[LogEntry]:
    """Return a log in which each change has all its figures, also those that were found later."""
    log: list[LogEntry] = []
    places: dict[tuple[str, str], int] = {}
    for entry in entries:
        place = places.get((entry.schedule, entry.told_with)) if entry.told_with else None
        if place is None:
            if entry.what is What.CHANGE:
                places[entry.schedule, entry.run] = len(log)
            log.append(entry)
        else:
            change = log[place]
            figures = (*change.figures, *entry.figures)
            log[place] = replace(change, figures=figures, text=f"{change.text}; {entry.text}")
    return log
