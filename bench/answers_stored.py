"""The time of whole commands on two large stored runs: row D, 48 trials of 600 s and 8 streams."""

from __future__ import annotations

import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import table

from benchctl.run.planned import PlannedRun, PlannedTrial, Settings
from benchctl.run.record import Figure
from benchctl.store.record import Recorder, create_run

# A sample each second.
TRIALS, SECONDS, STREAMS = 48, 600, 8
DISTRIBUTIONS = (
    "tcp_rtt_s", "tcp_rttvar_s", "tcp_min_rtt_s", "cwnd_bytes", "peer_window_bytes", "reordering",
)  # fmt: skip


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "runs.sqlite"
        for name in ("first", "second"):
            _fill(store, name)
        table.head(f"two stored runs of {TRIALS} trials x {SECONDS} s x {STREAMS} streams")
        for words, bound_s in ((("show", "first"), 1), (("compare", "first", "second"), 2)):
            took = [_took_s(words, store) for _ in range(5)]
            for place, kind in enumerate(("whole process", "its CPU time")):
                name = f"benchctl {words[0]}, {kind}, median of 5"
                table.row(name, statistics.median(one[place] for one in took), bound_s, "s")


def _fill(store: Path, name: str) -> None:
    rng = random.Random(name)
    settings = Settings({"point": tuple(range(TRIALS // 2))}, "interleaved", ())
    trials = [
        PlannedTrial(n, n // (TRIALS // 2) + 1, {"point": n % (TRIALS // 2)}, (), {}, 1, 1)
        for n in range(TRIALS)
    ]
    run_id, _ = create_run(store, PlannedRun("bench", "", 1, settings, trials, ""), 0.0)
    recorder = Recorder(store, run_id)
    recorder.update_run(name=name, status="running")
    for number in range(TRIALS):
        trial_id = (run_id - 1) * TRIALS + number + 1
        flow_id = recorder.add_flow(
            trial_id, attempt=1, name="main", backend="bench", source="local", target="local",
            direction="send", status="ok", client=[], server=[], requested={},
        )  # fmt: skip
        for second in range(SECONDS):
            for stream in range(STREAMS):
                metrics = {"throughput_bps": rng.gauss(1e8, 1e6), "tcp_rtt_s": 0.1}
                recorder.add_sample(flow_id, "client", stream, "send", second, second + 1,
                                    second + 1, False, metrics)  # fmt: skip
        figures = {("send", "throughput_bps"): Figure(rng.gauss(8e8, 1e6), "tool")}
        spread = {"min": 0.09, "median": 0.1, "p95": 0.11, "max": 0.2}
        for metric in DISTRIBUTIONS:
            figures["send", metric] = Figure(rng.gauss(0.1, 0.001), "samples", spread)
        recorder.add_figures(flow_id, figures)
        recorder.update_trial(trial_id, status="running")
        recorder.update_trial(trial_id, status="ok")
    recorder.update_run(status="ok")
    recorder.close()


def _took_s(words: Sequence[str], store: Path) -> tuple[float, float]:
    """Return the time of a command, and its CPU time, which other programs hardly change."""
    argv = [sys.executable, "-m", "benchctl", *words, "--store", str(store)]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(argv, check=True, capture_output=True)
    elapsed_s, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return elapsed_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
