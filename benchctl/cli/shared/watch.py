"""Watches a runner until it ends: shows progress, forwards signals, prints the result."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, nullcontext, suppress
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from benchctl.cli.shared import options, streams
from benchctl.cli.shared.colour import coloured
from benchctl.cli.shared.log import new_lines
from benchctl.cli.shared.notify import announce
from benchctl.engine.runner.launch import RunnerProcess, launch, launch_detached, stop
from benchctl.errors import (
    SIGNAL_CODES,
    BenchctlError,
    NoReaderError,
    StoreBusyError,
    UsageError,
)
from benchctl.interrupts import Asked
from benchctl.report.exports.jsonl import event_lines
from benchctl.report.output import formats
from benchctl.report.output.output import Output
from benchctl.report.progress.progress import (
    LiveProgress,
    PlainProgress,
    ProgressSink,
    QuietProgress,
    colour_forced,
)
from benchctl.report.report import StoredRun
from benchctl.run.record import Run
from benchctl.run.status import Status
from benchctl.store.follow import Follower, RunEvent
from benchctl.store.read import Reader
from benchctl.store.record import interrupt_run
from benchctl.visible import visible

POLL_S = 0.1


class Showing(Struct, frozen=True):
    """How a run is shown: its result, its progress, and its end; what its exit code takes for met.

    ``junit`` takes its expectations in that format.
    """

    form: str
    output: Output
    live_events: bool
    quiet: bool
    notify: str | None = None
    strict: bool = False
    junit: Output | None = None


def measure(
    store: Path,
    record: Callable[[Callable[[], object]], int],
    showing: Showing,
    *,
    failed: bool = False,
    detach: bool = False,
    no_wait: bool = False,
    started: Callable[[], object] = lambda: None,
) -> int:
    """Record a run, start its runner, watch it to its end and print its result.

    ``record`` returns the run's id, and calls what it is given before the run is there: from then
    on an interrupt ends the run in order. Of a resumed run, only what is measured now is shown on
    the way. With ``failed``, failed trials are measured again. With ``detach``, only the run's name
    is printed once its runner has begun. With ``no_wait``, the run fails if another one has its
    hosts. ``started`` is called when it holds its run. Returns the exit code of the result. Raises
    StoreError.
    """
    asked = Asked()
    with ExitStack() as until_shown:
        with ExitStack() as until_ended:
            run_id = record(lambda: until_ended.enter_context(asked.listening()))
            reader = until_shown.enter_context(options.open_reader(store))
            run = reader.run(run_id)
            if detach:
                if asked.by is None:
                    launch_detached(store, run_id, failed=failed, wait=True, no_wait=no_wait)
                return _leave(store, run, asked)
            watch = _Watch(reader, run, showing, asked)
            if run.status.has_ended:
                watch.follower.pass_over()
            said: Sequence[str] = ()
            exit_code = 0
            if asked.by is None:
                with closing(launch(store, run_id, failed=failed, no_wait=no_wait)) as runner:
                    started()
                    watch.follow(runner)
                    said, exit_code = runner.error(), runner.exit_code
            else:
                interrupt_run(store, run_id)
                watch.follow(_OtherRunner(reader, run))
        for line in said:
            print(f"benchctl: {line}", file=sys.stderr)
        code = watch.conclude(exit_code)
        if asked.by is None:  # else whoever stopped it does not wait for an archive
            push_ended(reader, run_id)
        return code


def _leave(store: Path, run: Run, asked: Asked) -> int:
    """Print the name of a run that continues, unless it was interrupted until now."""
    if asked.by is None:
        print(run.name)
        return 0
    if not stop(store, run.id):
        interrupt_run(store, run.id)
    _tell_how_to_continue(run)
    return SIGNAL_CODES[asked.by]


def attach_to(store: Path, name: str, showing: Showing) -> int:
    """Watch a run that another process started, to its end, and print its result.

    An interrupt leaves the run, which continues. Returns the exit code of the result. Raises
    StoreError, and UsageError if nobody has started the run.
    """
    with options.open_reader(store) as reader:
        run, asked = reader.find(name), Asked()
        options.check_format(showing.form, run.trials, run.settings.until or run.settings.search)
        if run.status is Status.PLANNED and not reader.is_alive(run):
            raise UsageError(
                f"run {run.name} is not in progress", f"start it: benchctl resume {run.name}"
            )
        watch, runner = _Watch(reader, run, showing, asked), _OtherRunner(reader, run)
        with asked.listening():
            watch.follow(runner)
        if not runner.left:
            return watch.conclude(0)
        again = f"watch it again with: benchctl run --attach {run.name}"
        print(f"benchctl: run {run.name} continues; {again}", file=sys.stderr)
        return SIGNAL_CODES[asked.by or signal.SIGINT]


def watch_fleet(store: Path, run_id: int, runner: FleetRunner, showing: Showing) -> int:
    """Watch a run of a fleet, of which there is a copy here, to its end, and print its result.

    An interrupt asks whether to stop it; without a terminal, the run continues. Returns the exit
    code of the result. Raises StoreError.
    """
    asked = Asked()
    with options.open_reader(store) as reader, closing(runner):
        run = reader.run(run_id)
        watch = _Watch(reader, run, showing, asked)
        with asked.listening():
            watch.follow(runner)
        if not runner.left:
            for line in runner.said:
                print(f"benchctl: {line}", file=sys.stderr)
            return watch.conclude(runner.exit_code)
        print(f"benchctl: run {run.name} continues", file=sys.stderr)
        for what, command in (("watch", "run --attach"), ("stop", "runs stop")):
            how = f"benchctl {command} {run.name} --fleet {runner.file}"
            print(f"  {what} it with: {how}", file=sys.stderr)
        return SIGNAL_CODES[asked.by or signal.SIGINT]


def _reads_yes() -> bool:
    """Read a line, and return whether it is a yes; another Ctrl-C is a no."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return sys.stdin.readline().strip().lower() in ("y", "yes")
    except KeyboardInterrupt:
        return False
    finally:
        signal.signal(signal.SIGINT, before)


class FleetRunner:
    """The process that follows a run of a fleet, as what is watched; see `_Runner`."""

    def __init__(self, process: RunnerProcess, file: Path) -> None:
        """``file`` is the person's."""
        self._process, self.file = process, file
        self.left = False

    def ended(self, timeout_s: float) -> bool:
        return self.left or self._process.ended(timeout_s)

    def interrupt(self) -> None:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            self.left = True
            return
        # A line of its own: the progress below it is drawn anew all the time.
        print("\nStop the run for everybody? Type y and Enter; Enter alone leaves it running.",
              file=sys.stderr, flush=True)  # fmt: skip
        if _reads_yes():
            self._process.interrupt()
        else:
            self.left = True

    def kill(self) -> None:
        self.left = True

    @property
    def said(self) -> Sequence[str]:
        return self._process.error()

    @property
    def exit_code(self) -> int:
        return self._process.exit_code

    def close(self) -> None:
        self._process.close()


def push_ended(reader: Reader, run_id: int) -> None:
    """Bring a run into the archive if the settings ask for it; says why not.

    It is in the store, so that changes nothing else.
    """
    from benchctl.settings import settings

    if not settings()["push"]:
        return
    from benchctl.archive.connection import open_archive
    from benchctl.archive.push import can_be_pushed, push

    run = reader.run(run_id)
    if not can_be_pushed(reader, run):
        return
    try:
        with open_archive(options.archive_url(None)) as archive:
            push(archive, reader, run)
    except BenchctlError as error:
        print(
            visible(f"benchctl: run {run.name} is not archived: {error.message}")
            + "\n  push it later: benchctl archive push",
            file=sys.stderr,
        )


class _Watch:
    """A run that is shown while it is measured, and its result at the end."""

    def __init__(self, reader: Reader, run: Run, showing: Showing, asked: Asked) -> None:
        self._asked = asked
        self.follower = Follower(reader, run.id)
        self._reader, self._run_id, self._showing = reader, run.id, showing
        self._begun_s = time.monotonic()
        self._progress = _progress(reader, run, showing.quiet)
        self._events = _EventWriter(showing.output) if showing.live_events else None

    def follow(self, runner: _Runner) -> None:
        """Show what happens until the runner has ended; pass on interrupts."""
        _watch(runner, self.follower, self._progress, self._events, self._asked)

    def conclude(self, exit_code: int) -> int:
        """Print how the run ended, and its result; returns the exit code of the command."""
        run, events, asked = self._reader.run(self._run_id), self._events, self._asked
        if run.status is Status.DIED:
            code = f" (exit code {exit_code})" if exit_code else ""
            print(f"benchctl: the runner died{code}", file=sys.stderr)
        if run.status in (Status.PLANNED, Status.INTERRUPTED, Status.DIED):
            _tell_how_to_continue(run)
        stored = StoredRun(self._reader, run)
        with suppress(NoReaderError):
            if events is not None and events.error is not None:
                raise events.error
            if asked.times < 2 and events is None:
                form = self._showing.form
                with coloured() if form == "table" else nullcontext():
                    formats.write(formats.load(form), stored, self._showing.output)
            if asked.times < 2 and self._showing.junit is not None:
                self._write_junit(stored, self._showing.junit)
        if asked.by is None:  # else whoever stopped it is there
            announce(self._showing.notify, run, time.monotonic() - self._begun_s)
        return _exit_code(stored, exit_code, asked, strict=self._showing.strict)

    def _write_junit(self, stored: StoredRun, output: Output) -> None:
        from benchctl.report.exports.junit import junit

        output.write(junit(stored.report, strict=self._showing.strict))
        output.publish()


def _tell_how_to_continue(run: Run) -> None:
    if not run.person:  # a fleet measures what is submitted, from its first trial on
        print(f"benchctl: continue with: benchctl resume {run.name}", file=sys.stderr)


class _Runner(Protocol):
    """A runner that is watched."""

    def ended(self, timeout_s: float) -> bool:
        """Wait at most ``timeout_s`` for its end; returns whether it has ended."""

    def interrupt(self) -> None:
        """Do what the first interrupt of the command asks for."""

    def kill(self) -> None:
        """Do what the second asks for."""


class _OtherRunner:
    """The runner of a run that another process started: it is watched, and never stopped."""

    def __init__(self, reader: Reader, run: Run) -> None:
        self._reader = reader
        self._run = run
        self.left = False

    def ended(self, timeout_s: float) -> bool:
        time.sleep(timeout_s)
        return self.left or not self._reader.is_alive(self._run)

    def interrupt(self) -> None:
        self.left = True

    kill = interrupt


def _watch(
    runner: _Runner,
    follower: Follower,
    progress: ProgressSink,
    events: _EventWriter | None,
    asked: Asked,
) -> None:
    passed_on = 0
    try:
        while True:
            ended = runner.ended(POLL_S)
            news: list[RunEvent] = []
            try:
                for event in follower.poll():
                    progress.show(event)
                    news.append(event)
            except StoreBusyError:
                pass  # another program locks it: new events come later
            finally:
                if events is not None and news:
                    events.write(news)
            for line in new_lines():
                progress.say(line)
            progress.tick()
            if ended:
                return
            if asked.times > passed_on:
                passed_on = asked.times
                if asked.times == 1:
                    runner.interrupt()
                else:
                    runner.kill()
                    return
    finally:
        progress.close()


def _progress(reader: Reader, run: Run, quiet: bool) -> ProgressSink:
    if quiet:
        return QuietProgress(run, sys.stderr.write)
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        return LiveProgress(run, streams.terminal(), os.environ, lambda: reader.remaining(run.id))
    if os.environ.get("FORCE_COLOR"):
        return PlainProgress(run, colour_forced(streams.terminal()))
    return PlainProgress(run, sys.stderr.write)


class _EventWriter:
    """Writes events as they happen. A failed write ends the output, not the measurement."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self.error: BenchctlError | None = None

    def write(self, events: Sequence[RunEvent]) -> None:
        if self.error is not None:
            return
        try:
            for line in event_lines(events):
                self._output.write(line)
            self._output.publish()
        except BenchctlError as error:
            self.error = error
            print(f"benchctl: {error.message}; the run continues", file=sys.stderr)


def _exit_code(stored: StoredRun, runner: int, asked: Asked, *, strict: bool) -> int:
    run = stored.run
    if asked.by is not None:
        return SIGNAL_CODES[asked.by]
    if run.status is Status.DIED and runner == 0:
        return BenchctlError.exit_code
    if runner != 0:
        return runner if runner > 0 else BenchctlError.exit_code
    unmet = any(outcome.fails(strict=strict) for outcome in stored.report.outcomes)
    return 1 if run.status is not Status.OK or unmet else 0
