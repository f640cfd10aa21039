"""Watches a runner until it ends: shows progress, forwards signals, prints the result."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from benchctl.cli import options, streams
from benchctl.cli.log import new_lines
from benchctl.cli.notify import announce
from benchctl.engine.launch import RunnerProcess, launch
from benchctl.errors import BenchctlError, NoReaderError, StoreBusyError
from benchctl.report.exports import EXPORTS
from benchctl.report.exports.jsonl import event_lines
from benchctl.report.output import Output
from benchctl.report.progress import (
    LiveNarrator,
    Narrator,
    PlainNarrator,
    QuietNarrator,
    colour_forced,
)
from benchctl.report.report import StoredRun, read_report
from benchctl.run.record import Run
from benchctl.run.status import Status
from benchctl.store.follow import Follower, RunEvent
from benchctl.store.read import Reader

POLL_S = 0.1
SIGNAL_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


class _Asked:
    """The signals that this process received."""

    def __init__(self) -> None:
        self.by: signal.Signals | None = None
        self.times = 0

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Note SIGINT and SIGTERM instead of ending."""
        before = {number: signal.signal(number, self._note) for number in SIGNAL_CODES}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _note(self, number: int, _: object) -> None:
        self.by = self.by or signal.Signals(number)
        self.times += 1


def measure(
    store: Path,
    run_id: int,
    form: str,
    output: Output,
    *,
    live_events: bool,
    quiet: bool,
    notify: str | None = None,
) -> int:
    """Start the runner of a run, watch it to its end and print its result.

    ``notify`` says how to announce the end; see `announce`. Returns the exit code of the result.
    Raises StoreError.
    """
    with options.open_reader(store) as reader:
        asked, begun_s = _Asked(), time.monotonic()
        narrator = _narrator(reader, reader.run(run_id), quiet)
        events = _EventWriter(output) if live_events else None
        with asked.listening(), closing(launch(store, run_id)) as runner:
            _watch(runner, Follower(reader, run_id), narrator, events, asked)
            said, exit_code = runner.error(), runner.exit_code
        run = reader.run(run_id)
        for line in said:
            print(f"benchctl: {line}", file=sys.stderr)
        if run.status is Status.DIED:
            print(f"benchctl: the runner died (exit code {exit_code})", file=sys.stderr)
        if run.status in (Status.INTERRUPTED, Status.DIED):
            print(f"benchctl: continue with: benchctl resume {run.name}", file=sys.stderr)
        with suppress(NoReaderError):
            if events is not None and events.error is not None:
                raise events.error
            if asked.times < 2 and events is None:
                write_result(reader, run, form, output)
        if asked.by is None:  # else whoever stopped it is there
            announce(notify, run, time.monotonic() - begun_s)
        return _exit_code(reader, run, exit_code, asked)


def _watch(
    runner: RunnerProcess,
    follower: Follower,
    narrator: Narrator,
    events: _EventWriter | None,
    asked: _Asked,
) -> None:
    passed_on = 0
    try:
        while True:
            ended = runner.ended(POLL_S)
            with suppress(StoreBusyError):  # another program locks it: new events come later
                for event in follower.poll():
                    narrator.tell(event)
                    if events is not None:
                        events.write(event)
            for line in new_lines():
                narrator.say(line)
            narrator.tick()
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
        narrator.close()


def write_result(reader: Reader, run: Run, form: str, output: Output) -> None:
    """Write a run's result in a format. Raises BenchctlError if it cannot be written."""
    for piece in EXPORTS[form].pieces(StoredRun(reader, run)):
        output.write(piece)
    output.publish()


def _narrator(reader: Reader, run: Run, quiet: bool) -> Narrator:
    if quiet:
        return QuietNarrator(run, sys.stderr.write)
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        return LiveNarrator(run, streams.terminal(), os.environ, lambda: reader.remaining(run.id))
    if os.environ.get("FORCE_COLOR"):
        return PlainNarrator(run, colour_forced(streams.terminal()))
    return PlainNarrator(run, sys.stderr.write)


class _EventWriter:
    """Writes events as they happen. A failed write ends the output, not the measurement."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self.error: BenchctlError | None = None

    def write(self, event: RunEvent) -> None:
        if self.error is not None:
            return
        try:
            for line in event_lines([event]):
                self._output.write(line)
            self._output.publish()
        except BenchctlError as error:
            self.error = error
            print(f"benchctl: {error.message}; the run continues", file=sys.stderr)


def _exit_code(reader: Reader, run: Run, runner: int, asked: _Asked) -> int:
    if asked.by is not None:
        return SIGNAL_CODES[asked.by]
    if runner != 0:
        return runner if runner > 0 else BenchctlError.exit_code
    unmet = any(not one.met for one in read_report(reader, run).outcomes)
    return 1 if run.status is not Status.OK or unmet else 0
