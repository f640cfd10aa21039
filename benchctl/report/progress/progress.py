"""The progress of a run on stderr: live bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import IO, Protocol

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from benchctl.analysis.runs.pace import RunningTrial, Timing, left_s, wait_s
from benchctl.metrics import Fold
from benchctl.report.progress.terminal import TerminalStatus
from benchctl.report.text.detail import trial_title
from benchctl.run.record import RecordedFlow, Run, Trial
from benchctl.run.status import Status
from benchctl.store.follow import (
    FlowEnded,
    FlowStarted,
    Noted,
    RunEvent,
    RunResumed,
    Sampled,
    TrialEnded,
    TrialStarted,
)
from benchctl.units import format_duration, format_value
from benchctl.visible import visible

# More trials that run at once leave no room for what has ended.
SHOWN = 6


class ProgressSink(Protocol):
    """Shows the progress of a run."""

    def show(self, event: RunEvent) -> None:
        """Take one event."""

    def say(self, line: str) -> None:
        """Show a line as it is."""

    def tick(self) -> None:
        """Draw what has changed; called several times a second."""

    def close(self) -> None:
        """Restore the terminal."""


class PlainProgress:
    """One line when a trial ends, and one for every warning."""

    def __init__(self, run: Run, write: Callable[[str], object]) -> None:
        self._run = run
        self._vocabulary = run.vocabulary
        self._write = write
        self._figures: defaultdict[int, dict[str, str]] = defaultdict(dict)
        """Those of each trial that runs, by its position."""
        self._hints: set[str] = set()
        """Those given before: of a hundred failures with one remedy, the first gives it."""

    def show(self, event: RunEvent) -> None:
        match event:
            case TrialStarted(trial):
                self._figures[trial.position] = {}
            case FlowEnded(trial, flow, figures):
                for direction in dict.fromkeys(d for d, _ in figures if flow.status.counts):
                    measured = {metric for d, metric in figures if d == direction}
                    if metric := self._vocabulary.headline(flow.backend, measured):
                        text = format_value(metric, figures[direction, metric].value)
                        self._figures[trial.position][f"{flow.name} {direction}"] = text
                if flow.status is Status.FAILED:
                    hint = f"; {flow.hint}" if flow.hint and flow.hint not in self._hints else ""
                    self._hints.add(flow.hint)
                    which = f"trial {trial.position + 1}, " if self._run.settings.parallel else ""
                    self.say(f"  {which}attempt {flow.attempt}, {flow.name}: {flow.error}{hint}")
            case TrialEnded(trial):
                measured_by = self._figures.pop(trial.position, {})
                figure_texts = ", ".join(f"{name} {text}" for name, text in measured_by.items())
                self.say(f"{trial_title(trial, self._run)}: {trial.status} {figure_texts}".rstrip())
            case Noted(note):
                self.say(f"  {note.level}: {note.text}")
            case _:
                pass

    def say(self, line: str) -> None:
        self._write(visible(line) + "\n")

    def tick(self) -> None:
        """Nothing changes between lines."""

    def close(self) -> None:
        """Nothing to restore."""


class QuietProgress(PlainProgress):
    """Only what is said to it."""

    def show(self, event: RunEvent) -> None:
        pass


class _Running:
    """A trial that runs: what its flows do now."""

    def __init__(self, trial: Trial, began_time: float | None = None) -> None:
        self.trial = trial
        self.began_time = began_time or trial.started_time
        """When its first attempt began."""
        self.failed: RecordedFlow | None = None
        """A flow that made its last attempt fail, if another is to come."""
        # Current value by flow and backend, then by (role, direction, stream): streams add up.
        self.now: dict[tuple[str, str], dict[tuple[str, str, int], tuple[str, float]]]
        self.now = defaultdict(dict)


class LiveProgress:
    """A bar for the run, and the current figure of each flow below it.

    ``remaining`` returns how many trials have yet to end, and their planned time together.
    """

    def __init__(
        self,
        run: Run,
        stream: IO[str],
        environment: Mapping[str, str],
        remaining: Callable[[], tuple[int, float]],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._run = run
        self._clock = clock
        self._console = Console(file=stream)
        self._frame = TerminalStatus(stream, environment)
        self._plain = PlainProgress(run, coloured(self._console))
        self._progress = Progress(
            TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"), console=self._console,
        )  # fmt: skip
        self._bar = self._progress.add_task(visible(run.profile), total=run.trials, left="")
        self._running: dict[int, _Running] = {}
        """By position."""
        self._done = 0
        self._remaining = remaining
        self._to_come, self._to_come_s = remaining()
        self._ended: list[Timing] = []
        self._vocabulary = run.vocabulary
        # Drawn only by `tick`, in the event loop of the command.
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._live.start()

    def show(self, event: RunEvent) -> None:
        match event:
            case TrialStarted(trial) | FlowStarted(trial):
                known = self._running.get(trial.position)
                if known is None or known.trial != trial:
                    again = _Running(trial, known.began_time if known else None)
                    self._running[trial.position] = again
            case RunResumed():
                self._to_come, self._to_come_s = self._remaining()
            case FlowEnded(trial, flow):
                if flow.status is Status.FAILED and trial.position in self._running:
                    self._running[trial.position].failed = flow
            case Sampled(trial, flow, sample):
                if name := self._vocabulary.headline(flow.backend, sample.metrics):
                    stream = (sample.role, sample.direction, sample.stream)
                    now = self._running.setdefault(trial.position, _Running(trial)).now
                    now[flow.name, flow.backend][stream] = (name, sample.metrics[name])
            case TrialEnded(trial):
                self._done += 1
                self._to_come, self._to_come_s = self._remaining()
                if trial.started_time is not None and trial.finished_time is not None:
                    running = self._running.get(trial.position)
                    began_time = (running.began_time if running else None) or trial.started_time
                    self._ended.append(Timing(trial.duration_s, began_time, trial.finished_time))
                self._running.pop(trial.position, None)
            case _:
                pass
        self._plain.show(event)

    def say(self, line: str) -> None:
        self._plain.say(line)

    def tick(self) -> None:
        total, left = self._done + self._to_come, self.time_left()
        self._progress.update(self._bar, completed=self._done, total=total, left=left)
        self._frame.show(f"benchctl {self._done}/{total}, {left}", self._done / max(1, total))
        grid = Table.grid(padding=(0, 2))
        grid.add_row(self._progress)
        for running in [*self._running.values()][:SHOWN]:
            grid.add_row(Text(visible(trial_title(running.trial, self._run)), style="bold"))
            for (name, backend), streams in running.now.items():
                grid.add_row(Text(visible(f"  {name}: {self._current(backend, streams)}")))
        if (more := len(self._running) - SHOWN) > 0:
            grid.add_row(Text(f"and {more} more at the same time"))
        self._live.update(grid, refresh=True)

    def _current(self, backend: str, streams: dict[tuple[str, str, int], tuple[str, float]]) -> str:
        """Return what a flow does now, by direction: the streams' total rate, the latest delays."""
        texts = []
        for direction in sorted({key[1] for key in streams}):
            # Usually one end reports it; of both, the one whose metric ranks first.
            measured = [streams[key] for key in streams if key[1] == direction]
            best = self._vocabulary.headline(backend, {name for name, _ in measured}) or ""
            values = [value for name, value in measured if name == best]
            is_rate = self._vocabulary.describe(best).fold is Fold.RATE
            shown = format_value(best, sum(values) if is_rate else values[-1])
            texts.append(f"{direction} {shown}")
        return ", ".join(texts)

    def close(self) -> None:
        self._live.stop()
        self._frame.close()

    def time_left(self) -> str:
        """Return an estimate of the time that the remaining trials take."""
        now, settings, running = self._clock(), self._run.settings, []
        to_come, to_come_s = self._to_come, self._to_come_s
        for underway in self._running.values():
            trial, failed, again_s = underway.trial, underway.failed, None
            if trial.started_time is None:
                continue
            if failed is not None:
                since_s = now - (failed.finished_time or now)
                again_s = wait_s(settings, failed.attempt, since_s)
            began_time = underway.began_time or trial.started_time
            running.append(RunningTrial(trial.duration_s, began_time, trial.started_time, again_s))
            to_come, to_come_s = to_come - 1, to_come_s - trial.duration_s
        rest_s = left_s(now, running, to_come, to_come_s, self._ended, settings)
        # Whole seconds: nobody reads tenths, and a title must not flicker.
        whole_s = round(rest_s)
        return f"{whole_s} s left" if whole_s < 120 else f"{format_duration(whole_s)} left"


def coloured(console: Console) -> Callable[[str], object]:
    """Return what writes lines of text, of any width, with their figures in colour."""
    return lambda text: console.print(text.rstrip("\n"), markup=False, soft_wrap=True)


def colour_forced(stream: IO[str]) -> Callable[[str], object]:
    """Return what writes lines in colour where no terminal is (FORCE_COLOR)."""
    return coloured(Console(file=stream))
