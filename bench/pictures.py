"""Figures: those of a large run beside their bounds, and what a first one takes beyond Matplotlib.

The run has 48 trials of 600 s with 8 streams, sampled every 100 ms: 2.3 million samples of four
metrics. In CPU time, which other load disturbs least; memory is the most that the process held.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import table

from benchctl.run.planned import PlannedFlow, PlannedRun, PlannedTrial, Settings
from benchctl.run.record import Figure
from benchctl.store.record import Recorder, create_run

TRIALS, SECONDS, STREAMS, A_SECOND = 48, 600, 8, 10
RUNS = 5
IMPORT = "import matplotlib.figure, matplotlib.backends.backend_svg"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store, small = Path(folder) / "runs.sqlite", Path(folder) / "small.sqlite"
        fill(store)
        fill(small, trials=2, seconds=20)
        count = TRIALS * SECONDS * STREAMS * A_SECOND
        table.head(
            f"figures of {TRIALS} trials x {SECONDS} s x {STREAMS} streams, {count:,} samples"
        )
        argv = [*_plot(store), "--all", "--by", "point", "-o", f"{folder}/figs"]
        cpu_s, most_bytes = measured(argv)
        made = len(list(Path(folder, "figs").iterdir()))
        table.row(f"benchctl plot --all: {made} figures, CPU time", cpu_s, 20, "s")
        table.row("  the most memory", most_bytes / 1e6, 500, "MB")
        page = Path(folder, "page.html")
        report = [sys.executable, "-m", "benchctl", "report", "--store", str(store)]
        page_s, most_bytes = measured([*report, "-o", str(page)])
        table.row("with benchctl report, CPU time of both", cpu_s + page_s, 20, "s")
        table.row("  the most memory", most_bytes / 1e6, 500, "MB")
        table.row("  the page", page.stat().st_size / 1e6, 2, "MB")
        table.head(f"the first figure (medians of {RUNS}, CPU time)")
        one = [*_plot(small), "--only", "point=0", "-o", f"{folder}/one.svg"]
        first = _median_s(one, folder)
        bare = _median_s([sys.executable, "-c", IMPORT], folder)
        print(f"{'import of Matplotlib':<58}{bare * 1e3:>11.3g} ms")
        table.row("benchctl plot: more than that", (first - bare) * 1e3, 300, "ms")


def _median_s(argv: list[str], folder: str) -> float:
    """Return the CPU time of a command of which the bytecode is there, as after an installation."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = folder
    _, *times = [measured(argv)[0] for _ in range(RUNS + 1)]  # the first compiles
    return statistics.median(times)


def _plot(store: Path) -> list[str]:
    return [sys.executable, "-m", "benchctl", "plot", "--kind", "time", "--store", str(store)]


def measured(argv: list[str]) -> tuple[float, float]:
    """Return the CPU time of a command, and the most memory that it held, in bytes."""
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, argv)
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def fill(store: Path, trials: int = TRIALS, seconds: int = SECONDS) -> None:
    """Write the run into a new store."""
    rng = random.Random(1)
    settings = Settings({"point": tuple(range(trials))}, "interleaved", ())
    asked = PlannedFlow("main", "bench", "local", "local", None, "send", 0.0, {})
    planned = [
        PlannedTrial(n, 1, {"point": n}, (asked,), {}, float(seconds), seconds + 10.0)
        for n in range(trials)
    ]
    run_id, _ = create_run(store, PlannedRun("bench", "", 1, settings, planned, ""), 0.0)
    recorder = Recorder(store, run_id)
    recorder.update_run(status="running")
    for number in range(trials):
        flow_id = recorder.add_flow(
            number + 1, attempt=1, name="main", backend="bench", source="local", target="local",
            direction="send", status="ok", client=[], server=[], requested={"streams": STREAMS},
        )  # fmt: skip
        for tenth in range(seconds * A_SECOND):
            begin_s, end_s = tenth / A_SECOND, (tenth + 1) / A_SECOND
            for stream in range(STREAMS):
                metrics = {
                    "throughput_bps": rng.gauss(1e8, 1e7), "tcp_rtt_s": rng.gauss(0.1, 0.005),
                    "cwnd_bytes": rng.gauss(1e6, 1e5), "retransmits": 0.0,
                }  # fmt: skip
                recorder.add_sample(flow_id, "client", stream, "send", begin_s, end_s, end_s,
                                    False, metrics)  # fmt: skip
            if tenth % 600 == 0:
                recorder.flush()
        spread = {"min": 0.09, "median": 0.1, "p95": 0.11, "max": 0.2}
        recorder.add_figures(
            flow_id,
            {
                ("send", "throughput_bps"): Figure(rng.gauss(8e8, 1e6), "tool"),
                ("send", "tcp_rtt_s"): Figure(0.1, "samples", spread),
                ("send", "cwnd_bytes"): Figure(1e6, "samples", spread),
            },
        )
        recorder.update_trial(number + 1, status="running")
        recorder.update_trial(number + 1, status="ok")
    recorder.update_run(status="ok")
    recorder.close()
