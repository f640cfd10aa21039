"""Starts the runs of schedules when they are due, one after the other, and tells what is new."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Protocol

import msgspec
from msgspec.structs import replace

from benchctl.errors import BenchctlError, StoreError, UsageError
from benchctl.interrupts import Asked
from benchctl.run.record import BASELINE, Run
from benchctl.schedule.book import Book, LogEntry, Overlap, Schedule, What, handled_until
from benchctl.schedule.judge import MOST_RUNS, read_news
from benchctl.schedule.text import entry_line
from benchctl.settings import settings
from benchctl.store.copies.trash import trash_run
from benchctl.store.read import Reader

COMMAND = (sys.executable, "-P", "-m", "benchctl")
"""benchctl as a program, whatever modules are in the current directory."""
# A scheduler that was restarted, or a timer of the system, starts what was due so long before.
GRACE_S = 120.0
# How often it is looked whether a schedule was added, a signal came, or the machine slept.
TICK_S = 1.0
# The clocks of a machine that was awake agree better. More is sleep, or a clock that was set.
ASLEEP_S = 30.0
NOTIFY_S = 60.0


class Clock(Protocol):
    """The times of the machine, and a wait."""

    def time(self) -> float: ...
    def monotonic(self) -> float: ...
    def sleep(self, duration_s: float, /) -> None: ...


Call = Callable[[Sequence[str]], tuple[int, str]]


class Scheduler:
    """Runs what is due. Due times when nobody was there are told of, and not measured later."""

    def __init__(
        self,
        book: Book,
        say: Callable[[str], None],
        asked: Asked,
        clock: Clock = time,
        call: Call | None = None,
    ) -> None:
        """``say`` takes a line for people; ``asked`` notes the signals that end the scheduler.

        ``call`` runs a command to its end, and returns its exit code and its errors.
        """
        self._book, self._say, self._asked, self._clock = book, say, asked, clock
        self._call = call or self._run
        # Nobody else writes the log while this process runs the schedules.
        self._entries = book.entries()
        self._there_since = clock.time() - GRACE_S
        self._apart_s = clock.time() - clock.monotonic()

    def run(self) -> None:
        """Run what is due until a signal comes. Raises StoreError."""
        while self._asked.by is None:
            if not self.tick():
                self._clock.sleep(TICK_S)

    def run_due(self) -> None:
        """Run what is due now, and what becomes due meanwhile. Raises StoreError."""
        while self._asked.by is None and self.tick():
            pass

    def tick(self) -> bool:
        """Write down what was missed, and run the schedule that has been due longest.

        Returns whether one was run. Raises StoreError.
        """
        self._note_sleep()
        now, due = self._clock.time(), []
        for schedule in self._book.schedules().values():
            if (at := self._due(schedule, now)) is not None:
                due.append((at, schedule))
        if not due or self._asked.by is not None:
            return False
        self._measure(*min(due, key=lambda pair: pair[0]))
        return True

    def _note_sleep(self) -> None:
        """Note that nobody was there if the machine slept: its steady clock stood still."""
        apart_s = self._clock.time() - self._clock.monotonic()
        if abs(apart_s - self._apart_s) > ASLEEP_S:
            self._there_since = self._clock.time() - TICK_S
        self._apart_s = apart_s

    def _own(self, schedule: Schedule) -> list[LogEntry]:
        return [entry for entry in self._entries if entry.schedule == schedule.name]

    def _due(self, schedule: Schedule, now: float) -> float | None:
        """Return the due time for which a run is to start now; what is left out is written down."""
        own = self._own(schedule)
        due = schedule.rule.due_between(handled_until(schedule, own), now)
        missed = [at for at in due if at < self._there_since]
        if missed:
            self._leave_out(schedule, What.MISSED, missed, "the machine slept, or no scheduler ran")
            due = due[len(missed) :]
        last = next((entry for entry in reversed(own) if entry.what is What.RUN), None)
        busy_until = last.time if last is not None and schedule.overlap is Overlap.SKIP else 0.0
        kept = [at for at in due if at >= busy_until][-1:]
        if skipped := [at for at in due if at not in kept]:
            self._leave_out(schedule, What.SKIPPED, skipped, "the run before it still went on")
        return kept[0] if kept else None

    def _leave_out(self, schedule: Schedule, what: What, due: Sequence[float], text: str) -> None:
        self._write(
            schedule,
            LogEntry(what, due_time=due[0], until_time=due[-1], count=len(due), text=text),
        )

    def _write(self, schedule: Schedule, entry: LogEntry) -> LogEntry:
        entry = replace(entry, time=self._clock.time(), schedule=schedule.name)
        self._book.write(entry)
        self._entries.append(entry)
        self._say(entry_line(entry))
        return entry

    def _measure(self, due: float, schedule: Schedule) -> None:
        """Run a schedule, and tell what is new."""
        argv = [*COMMAND, "run", schedule.profile, *schedule.options, "--quiet"]
        for tag in (schedule.tag, *settings()["tags"]):
            argv += ["--tag", tag]
        argv += ["--store", str(self._book.store)]
        started = self._write(schedule, LogEntry(What.STARTED, due_time=due))
        code, said = self._call(argv)
        run = self._newest(schedule)
        if run is not None and run.created_time < started.time:
            run = None
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        logged = self._write(
            schedule,
            LogEntry(What.RUN, run="" if run is None else run.name, code=code,
                text=lines[0] if lines and run is None else "",
            ),
        )  # fmt: skip
        with self._problems(schedule):
            self._tell_news(schedule, run, logged)
        with self._problems(schedule):
            self._keep(schedule)

    @contextmanager
    def _problems(self, schedule: Schedule) -> Iterator[None]:
        """Write down an error, and go on."""
        try:
            yield
        except BenchctlError as error:
            self._write(schedule, LogEntry(What.PROBLEM, text=error.message))

    def _run(self, argv: Sequence[str]) -> tuple[int, str]:
        """Run a command to its end; returns its exit code and its errors. Signals are passed on.

        It has a session of its own: what a terminal sends would reach it twice.
        """
        passed_on = 0
        with subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True, errors="replace", start_new_session=True,
            env={**os.environ, "BENCHCTL_PUSH": "0"},  # `_keep` pushes it, and what waits
        ) as child:  # fmt: skip
            while True:
                try:
                    _, said = child.communicate(timeout=TICK_S)
                    return child.returncode, said
                except subprocess.TimeoutExpired:
                    if self._asked.times > passed_on:
                        passed_on = self._asked.times
                        child.send_signal(signal.SIGINT)

    def _runs(self, reader: Reader, schedule: Schedule) -> list[tuple[float, int]]:
        return sorted(
            (outline.created_time, outline.id)
            for outline in reader.outlines()
            if schedule.tag in outline.tags
        )

    def _newest(self, schedule: Schedule) -> Run | None:
        if not self._book.store.exists():
            return None
        with closing(Reader(self._book.store)) as reader:
            runs = self._runs(reader, schedule)
            return reader.run(runs[-1][1]) if runs else None

    def _tell_news(self, schedule: Schedule, run: Run | None, logged: LogEntry) -> None:
        """Write down what is new with a run, and give it to the command of the schedule."""
        own = self._own(schedule)
        if run is None:
            reasons = (logged.text or f"benchctl run ended with code {logged.code}",)
            said = [entry for entry in own if entry.what in (What.FAILING, What.RECOVERED)]
            news = [LogEntry(What.FAILING, text=reasons[0], reasons=reasons)]
            if said and said[-1].reasons == reasons:
                news = []
        elif not run.status.has_ended or logged.code in (130, 143):
            news = []
        else:
            with closing(Reader(self._book.store)) as reader:
                ids = [run_id for _, run_id in self._runs(reader, schedule)][-MOST_RUNS:]
                runs = [run for run in map(reader.run, ids) if run.status.has_ended]
                news = read_news(reader, runs, own)
        for entry in news:
            written = self._write(schedule, entry)
            if entry.what is not What.ADDED:
                self._notify(schedule, written)

    def _notify(self, schedule: Schedule, entry: LogEntry) -> None:
        if schedule.notify is None:
            return
        why = ""
        with subprocess.Popen(
            schedule.notify, shell=True, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            start_new_session=True,
        ) as command:  # fmt: skip
            try:
                command.communicate(msgspec.json.encode(entry) + b"\n", timeout=NOTIFY_S)
                why = f"exit code {command.returncode}" if command.returncode else ""
            except subprocess.TimeoutExpired:
                # The shell, and what it started.
                os.killpg(command.pid, signal.SIGKILL)
                why = f"it did not end within {NOTIFY_S:g} s"
        if why:
            text = f"notify {schedule.notify}: {why}"
            self._write(schedule, LogEntry(What.PROBLEM, text=text))

    def _keep(self, schedule: Schedule) -> None:
        """Push the runs that the archive lacks, if the settings ask for it; then clean up.

        Raises ArchiveError, and moves no run then.
        """
        if not self._book.store.exists():
            return
        if not settings()["push"]:
            self._clean_up(schedule, lambda _: True)
            return
        from benchctl.archive.connection import open_archive
        from benchctl.archive.push import missing, push

        url = settings()["archive"]
        if url is None:
            raise UsageError(
                "push = true, and no archive is named", 'archive = "URL" in settings.toml'
            )
        with open_archive(url) as archive, closing(Reader(self._book.store)) as reader:

            def is_there(run_id: int) -> bool:
                run = reader.run(run_id)
                try:
                    push(archive, reader, run)
                except StoreError as error:  # of this run; the others are pushed
                    text = f"run {run.name} is not archived: {error.message}"
                    self._write(schedule, LogEntry(What.PROBLEM, text=text))
                    return False
                return True

            ids = [run_id for _, run_id in self._runs(reader, schedule)]
            for run in [*missing(archive, reader, map(reader.run, ids))]:
                is_there(run.id)
            self._clean_up(schedule, is_there)

    def _clean_up(self, schedule: Schedule, is_kept: Callable[[int], bool]) -> None:
        """Move runs that are too old to the trash, but no baseline, and none that is not kept."""
        if schedule.keep_s is None:
            return
        oldest = self._clock.time() - schedule.keep_s
        with closing(Reader(self._book.store)) as reader:
            old = [
                outline
                for outline in reader.outlines()
                if schedule.tag in outline.tags
                and BASELINE not in outline.tags
                and outline.created_time < oldest
                and outline.status.has_ended
            ]
        for outline in old:
            if is_kept(outline.id):
                trash_run(self._book.store, outline.id, self._clock.time())
