"""The screens: their cost while a run is watched, their response time, and their disturbance.

The program is observed from outside, in a pseudo terminal. The run has 8 flows of 8 streams, each
reported ten times a second, and ten minutes of history; a separate process continues writing it.
The mouse moves over its plots fifty times a second in one part. The history has ten thousand runs.
The summary has four metrics of each flow at sixteen points. The memory is that with an hour of
history. A frozen screen writes nothing by itself while it reads
on, so what it writes after a key is the reaction to that key.
"""

from __future__ import annotations

import math
import os
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import pairwise, product
from pathlib import Path

import table
from screen import Screen

from benchctl.metrics import Direction
from benchctl.run.planned import PlannedFlow, PlannedRun, PlannedTrial, Scalar, Settings
from benchctl.run.record import Figure
from benchctl.store.locks import Liveness
from benchctl.store.record import Recorder, create_run

FLOWS = STREAMS = 8
STEP_S = 0.1
HISTORY_S = 600
# As often as the runner writes down what it was told.
FLUSH_S = 0.25
# Lines and columns; keys are measured at this size, too.
LARGE = (60, 200)
WATCHED_S = 20
FRAMES = 5
HOUR_S = 3600
RUNS = 10_000
# The points of the summary.
AXES = {"loss": (0.0, 0.001, 0.01, 0.1), "rtt": ("1ms", "10ms", "50ms", "100ms")}
# Escape sequences of xterm.
ARROWS = {
    "left": "\x1b[D",
    "right": "\x1b[C",
    "shift+up": "\x1b[1;2A",
    "shift+down": "\x1b[1;2B",
    "shift+left": "\x1b[1;2D",
    "shift+right": "\x1b[1;2C",
}
# In this order every key has an effect.
KEYS = (
    "+", "+", "-", "+", "0", "z", "z", "shift+up", "shift+down", "Z", "0", "m", "\r", "g", "g",
    "M", "M", "D", "D", "D", "B", "B", "B", "T", "left", "right", "T", "l", "p", "i", "i", "o", "o",
    "\r", "\r", "left", "right", "shift+left", "shift+right", " ", " ",
)  # fmt: skip
# Keys that open something, and what shows that it is there.
OPENING = {"1": "begin with", "3": "nothing was measured", "4": "run in", "2": "FROZEN"}
WINDOWS = ("?", "n", "X", "K", "F", "P", "y", "s", "S", "/")
PRESSES = 25
# Presses of each of the keys, of which there are many.
EACH = 5
TIMER_S = 0.01
# The first of a store.
RUN = TRIAL = 1
ROUND_S = 10
ROUNDS = 11
SPEED = 64


def main() -> None:
    table.head(f"tui ({FLOWS} flows of {STREAMS} streams, 10 samples/s, {HISTORY_S} s, 120x40)")
    with tempfile.TemporaryDirectory() as folder:
        # An installed program is compiled already.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = folder
        _replay(Path(folder) / "ended.sqlite")
        _live(Path(folder) / "running.sqlite")
        _hour(Path(folder) / "hour.sqlite")
        _summary(Path(folder) / "points.sqlite")
        _history(Path(folder) / "runs.sqlite")


def _live(store: Path) -> None:
    frames = []
    with Runner(store):
        for _ in range(FRAMES):
            with Screen(store, "--attach") as screen:
                frames.append(screen.seen("elapsed"))
        print(f"{'first frame, median of 5':<58}{statistics.median(frames):>12.3f} s")
        beyond_s = statistics.median(frames) - _textual_s()
        table.row("first frame after python -c import textual.app", beyond_s, 0.15, "s")
        with Screen(store, "--attach") as screen:
            screen.seen("elapsed")
            reactions = [screen.freeze_s() for _ in range(PRESSES)]
            table.row(f"key to reaction while history is read, worst of {PRESSES}",
                      max(reactions) * 1e3, 100, "ms")  # fmt: skip
            screen.settle()
            before, begun = screen.cpu_s(), time.monotonic()
            time.sleep(WATCHED_S)
            share = (screen.cpu_s() - before) / (time.monotonic() - begun)
            table.row("share of a core while the run goes on", share * 100, 12, "%")
            with screen.mouse_moving():
                before, begun = screen.cpu_s(), time.monotonic()
                time.sleep(WATCHED_S)
                share = (screen.cpu_s() - before) / (time.monotonic() - begun)
                reactions = [screen.freeze_s() for _ in range(PRESSES)]
            print(f"{'share of a core while the mouse moves, too':<58}{share * 100:>12.3g} %")
            table.row(f"key to reaction while the mouse moves, worst of {PRESSES}",
                      max(reactions) * 1e3, 100, "ms")  # fmt: skip
            _keys(screen)
        with Screen(store, "--attach", size=LARGE) as screen:
            screen.seen("elapsed")
            screen.settle()
            _keys(screen, " at 200x60")
        alone, watched = [], []
        for _ in range(ROUNDS):
            alone.append(_lateness_s())
            with Screen(store, "--attach") as screen:
                screen.seen("elapsed")
                screen.settle()
                watched.append(_lateness_s())
    difference_s = statistics.median(b - a for a, b in zip(alone, watched, strict=True))
    print(f"{f'p99 of a timer, median of {ROUNDS}, with no screen':<58}{_ms(alone):>11.3f} ms")
    print(f"{f'p99 of a timer, median of {ROUNDS}, with one':<58}{_ms(watched):>11.3f} ms")
    table.row(f"the difference, median of {ROUNDS} pairs", difference_s * 1e3, 0.2, "ms")


def _keys(screen: Screen, where: str = "") -> None:
    """Print the 99th percentile from each key to its reaction, and that of all."""
    took: dict[str, list[float]] = {}
    screen.press(" ")
    screen.rest()
    for _ in range(EACH):
        for key in KEYS:
            took.setdefault(key, []).append(screen.reaction_s(ARROWS.get(key, key)))
        for key, text in OPENING.items():
            took.setdefault(key, []).append(screen.reaction_s(key, text))
        for key in WINDOWS:
            took.setdefault(key, []).append(screen.reaction_s(key))
            screen.reaction_s("\x1b")  # slow: it waits for the rest of a sequence
    names = {" ": "space", "\r": "enter"}
    for key, reactions in took.items():
        what = f"key {names.get(key, key)} to its reaction{where}, p99 of {len(reactions)}"
        table.row(what, _p99(reactions) * 1e3, 100, "ms")
    whole = [one for reactions in took.values() for one in reactions]
    table.row(f"all keys{where}, p99 of {len(whole)}", _p99(whole) * 1e3, 100, "ms")


def _p99(values: list[float]) -> float:
    return sorted(values)[math.ceil(0.99 * len(values)) - 1]


def _hour(store: Path) -> None:
    with Runner(store, HOUR_S), Screen(store, "--attach") as screen:
        screen.seen("elapsed")
        screen.settle()
        table.row("greatest memory with an hour of it (VmHWM)", screen.peak_mb(), 100, "MB")


def _summary(store: Path) -> None:
    begin = time.time() - 1
    recorder = _create(store, begin, AXES)
    for trial_id in range(TRIAL, TRIAL + math.prod(map(len, AXES.values()))):
        _end_trial(recorder, trial_id, _begin_trial(recorder, trial_id, begin), 1 / trial_id)
    _end(recorder)
    opened: list[float] = []
    for _ in range(FRAMES):
        with Screen(store, "--screen", "plan") as screen:
            screen.seen("asks for a host")
            opened.append(screen.reaction_s("3", "b flow1"))
    table.row(f"key 3 to a Summary of {FLOWS} flows, median of {FRAMES}",
              statistics.median(opened), 0.3, "s")  # fmt: skip


def _history(store: Path) -> None:
    _ended(store)
    # The parents of the first rows, and how many of those there are.
    places = {"run": {"id": 1}, "trial": {"id": 1, "run_id": 1},
              "flow": {"id": FLOWS, "trial_id": 1}, "figure": {"flow_id": FLOWS}}  # fmt: skip
    with closing(sqlite3.connect(store)) as stored, stored:
        for name, own in places.items():
            columns = [row[1] for row in stored.execute(f"PRAGMA table_info({name})")]
            moved = {column: f"{column} + n * {count}" for column, count in own.items()}
            if name == "run":
                moved["name"] = "name || '-' || n"
            values = ", ".join(moved.get(column, column) for column in columns)
            stored.execute(
                f"INSERT INTO {name} ({', '.join(columns)}) WITH RECURSIVE more(n) AS (SELECT 1"
                f" UNION ALL SELECT n + 1 FROM more WHERE n < {RUNS - 1})"
                f" SELECT {values} FROM {name}, more"
            )
    opened: list[float] = []
    filtered: list[float] = []
    for _ in range(FRAMES):
        with Screen(store, "--screen", "plan") as screen:
            screen.seen("asks for a host")
            opened.append(screen.reaction_s("4", "Mbit/s"))
            screen.seen(f"m{RUNS:,} runs in")  # behind a colour: before, it is "100 of 10,000"
            screen.settle()
            screen.reaction_s("/")
            screen.reaction_s("-")  # every row has it
            filtered += [screen.reaction_s(key, f"of {RUNS:,} runs") for key in "987"]
    table.row(f"key 4 to a History of {RUNS:,} runs, median of {FRAMES}",
              statistics.median(opened), 0.3, "s")  # fmt: skip
    table.row(f"a key to its filtered rows, worst of {len(filtered)}", max(filtered), 0.1, "s")


def _ended(store: Path, history_s: float = 1.0) -> None:
    """Write a run that has ended."""
    recorder, flows = _record(store, time.time() - history_s, history_s)
    _end_trial(recorder, TRIAL, flows)
    _end(recorder)


def _end_trial(recorder: Recorder, trial_id: int, flows: Sequence[int], share: float = 1) -> None:
    """End a trial with the figures of its flows, so large a share of the greatest."""
    metrics = _metrics(share)
    figures = {("send", name): Figure(value, "tool") for name, value in metrics.items()}
    for flow_id in flows:
        recorder.add_figures(flow_id, figures)
        recorder.update_flow(flow_id, status="ok")
    recorder.update_trial(trial_id, status="ok", finished_time=time.time())


def _end(recorder: Recorder) -> None:
    recorder.update_run(status="ok", finished_time=time.time())
    recorder.close()


def _replay(store: Path) -> None:
    _ended(store, HISTORY_S)
    moment = re.compile(rf"x{SPEED} (\d+\.\d)/".encode())
    with Screen(store, "--replay", "last") as screen:
        screen.seen("elapsed")
        screen.settle()
        screen.press("." * (SPEED.bit_length() - 1))
        screen.seen("end x")
        told = [(t, float(m[1])) for t, text in screen.said for m in moment.finditer(text)]
        begun, first = told[0]
        behind = [(t - begun) - (place - first) / SPEED for t, place in told]
        pauses = [b[0] - a[0] for a, b in pairwise(told)]
    table.row("replay at x64: most it was behind", max(behind), 0.25, "s")
    table.row("replay at x64: longest pause between two moments", max(pauses), 0.5, "s")


def _record(store: Path, begin: float, history_s: float = HISTORY_S) -> tuple[Recorder, list[int]]:
    """Begin a run of one trial in a new store, and write all of its history."""
    recorder = _create(store, begin, {}, 2.0 * history_s)
    flows = _begin_trial(recorder, TRIAL, begin)
    for number in range(round(history_s / STEP_S)):
        _tell(recorder, flows, number)
        if number % 1000 == 0:
            recorder.flush()
    recorder.flush()
    return recorder, flows


def _create(
    store: Path, begin: float, axes: Mapping[str, Sequence[Scalar]], duration_s: float = 1.0
) -> Recorder:
    """Begin a run in a new store: a trial for each combination of the axes."""
    flows = tuple(
        PlannedFlow(f"flow{n}", "iperf3", "local", "local", None, Direction.SEND, 0.0, {})
        for n in range(FLOWS)
    )
    points = (dict(zip(axes, values, strict=True)) for values in product(*axes.values()))
    trials = [
        PlannedTrial(position, 1, point, flows, {}, duration_s, duration_s)
        for position, point in enumerate(points)
    ]
    settings = Settings({axis: tuple(values) for axis, values in axes.items()}, "sequential", ())
    create_run(store, PlannedRun("bench", "", 1, settings, trials, ""), begin)
    recorder = Recorder(store, RUN)
    recorder.update_run(status="running", started_time=begin, runner_pid=os.getpid())
    return recorder


def _begin_trial(recorder: Recorder, trial_id: int, begin: float) -> list[int]:
    """Begin a trial; returns the ids of its flows."""
    recorder.update_trial(trial_id, status="running", started_time=begin)
    return [
        recorder.add_flow(
            trial_id, attempt=1, name=f"flow{n}", backend="iperf3", source="local", target="local",
            direction="send", status="running", client=[], server=[],
            requested={"streams": STREAMS},
        )
        for n in range(FLOWS)
    ]  # fmt: skip


def _tell(recorder: Recorder, flows: Sequence[int], number: int) -> None:
    """Write one interval of every stream."""
    start, end = number * STEP_S, (number + 1) * STEP_S
    for place, flow_id in enumerate(flows):
        for stream in range(STREAMS):
            noise = (number * 7919 + place * 104729 + stream * 1299709) % 1000 / 1000
            metrics = _metrics(noise)
            recorder.add_sample(flow_id, "client", stream, "send", start, end, end, False, metrics)


def _metrics(share: float) -> dict[str, float]:
    """Return the measurements of one interval, so large a share of their ranges."""
    return {
        "throughput_bps": 1e8 + 2e7 * share, "cwnd_bytes": 1e6 + 5e5 * share,
        "tcp_rtt_s": 0.02 + 0.002 * share, "retransmits": float(share > 0.99),
    }  # fmt: skip


def _feed(store: Path, history_s: float) -> None:
    """Be the runner: hold the run, and write what is told until the end is asked for."""
    begin = time.time() - history_s
    recorder, flows = _record(store, begin, history_s)
    with Liveness(store).hold(RUN):
        print("ready", flush=True)
        written = round(history_s / STEP_S)
        while True:
            time.sleep(FLUSH_S)
            for number in range(written, int((time.time() - begin) / STEP_S)):
                _tell(recorder, flows, number)
                written = number + 1
            recorder.flush()


def _lateness_s() -> float:
    """Return the 99th percentile of the wake-up lateness of a separate process."""
    argv = [sys.executable, __file__, "timers"]
    return float(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)


def _textual_s() -> float:
    times = []
    for _ in range(FRAMES):
        start = time.monotonic()
        subprocess.run([sys.executable, "-c", "import textual.app"], check=True)
        times.append(time.monotonic() - start)
    return statistics.median(times)


def _timers() -> None:
    late = []
    due = time.monotonic()
    for _ in range(round(ROUND_S / TIMER_S)):
        due += TIMER_S
        time.sleep(max(0.0, due - time.monotonic()))
        late.append(time.monotonic() - due)
    print(statistics.quantiles(late, n=100)[98])


def _ms(values_s: list[float]) -> float:
    return statistics.median(values_s) * 1e3


class Runner:
    """The process that writes the run."""

    def __init__(self, store: Path, history_s: float = HISTORY_S) -> None:
        self._argv = [sys.executable, __file__, "feed", str(store), str(history_s)]

    def __enter__(self) -> None:
        self._process = subprocess.Popen(self._argv, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self._process.stdout.readline()

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


if __name__ == "__main__":
    if sys.argv[1] == "feed":
        _feed(Path(sys.argv[2]), float(sys.argv[3]))
    else:
        _timers()
