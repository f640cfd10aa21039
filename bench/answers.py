"""Statistics: how often intervals hold, events are found, and verdicts are wrong, by simulation.

Every simulation has a fixed seed. The last figures are of whole processes on a large stored run.
"""

from __future__ import annotations

import math
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

from benchctl.analysis.compare import Comparison, Verdict, compare
from benchctl.analysis.statistics import spread
from benchctl.analysis.steps import find_steps
from benchctl.analysis.stopping import is_known_to
from benchctl.analysis.summary import SummaryRow
from benchctl.metrics import Vocabulary
from benchctl.run.planned import PlannedRun, PlannedTrial, Settings
from benchctl.run.record import Figure
from benchctl.store.record import Recorder, create_run

EXPERIMENTS = 10_000
SERIES = 400
TABLES = 1_000
FIGURES = 54
SEEN = (Verdict.BETTER, Verdict.WORSE, Verdict.DIFFERENT)
# The large run: row D of 48 trials of 600 s, 8 streams, a sample each second.
TRIALS, SECONDS, STREAMS = 48, 600, 8
DISTRIBUTIONS = (
    "tcp_rtt_s", "tcp_rttvar_s", "tcp_min_rtt_s", "cwnd_bytes", "peer_window_bytes", "reordering",
)  # fmt: skip


def main() -> None:
    _intervals()
    _events()
    _verdicts()
    _large_runs()


def _intervals() -> None:
    table.head(f"95 % intervals of {EXPERIMENTS:,} experiments: how often they hold the truth")
    for n in (2, 3, 5, 10, 20):
        rng = random.Random(n)
        runs = [spread([rng.gauss(100, 5) for _ in range(n)]) for _ in range(EXPERIMENTS)]
        held = statistics.fmean(_holds(one.ci95_low, one.ci95_high) for one in runs)
        table.row(f"mean of {n}: {held * 100:.1f} %, off 95 %", abs(held - 0.95) * 100, 1, "%")
        if n >= 6:
            held = statistics.fmean(_holds(one.median_low, one.median_high) for one in runs)
            table.row(f"median of {n}", held * 100, 94, "%", at_least=True)
    for variation in (0.01, 0.05, 0.2):
        rng = random.Random(20)
        runs = [spread(_until(rng, variation)) for _ in range(EXPERIMENTS)]
        held = statistics.fmean(_holds(one.ci95_low, one.ci95_high) for one in runs)
        n = statistics.fmean(one.n for one in runs)
        what = (
            f"until 2 %, variation {variation:.0%}, {n:.1f} repeats: {held * 100:.1f} %, off 95 %"
        )
        table.row(what, abs(held - 0.95) * 100, 2, "%")


def _holds(low: float | None, high: float | None) -> bool:
    return low is not None and high is not None and low <= 100 <= high


def _until(rng: random.Random, variation: float) -> list[float]:
    values = [rng.gauss(100, 100 * variation) for _ in range(3)]
    while len(values) < 20 and not is_known_to(values, 0.02, 20):
        values.append(rng.gauss(100, 100 * variation))
    return values


def _events() -> None:
    table.head(f"steps in {SERIES} series of 600 samples, AR(1), marginal deviation 1")
    for phi in (0, 0.3, 0.6, 0.9):
        rng = random.Random(600)
        found = 0
        for _ in range(SERIES):
            at = rng.randrange(60, 540)
            noise = _autoregression(rng, phi)
            steps = find_steps([value + 5 * (i >= at) for i, value in enumerate(noise)])
            found += any(abs(step.at - at) <= 2 for step in steps)
        table.row(f"phi {phi}: 5 deviations, found within 2 samples", found / SERIES * 100, 95, "%",
                  at_least=True)  # fmt: skip
        false = sum(bool(find_steps(_autoregression(rng, phi))) for _ in range(SERIES))
        table.row(f"phi {phi}: flat, with a false step", false / SERIES * 100, 1, "%")


def _autoregression(rng: random.Random, phi: float) -> list[float]:
    value, values = rng.gauss(0, 1), []
    for _ in range(600):
        values.append(value)
        value = phi * value + rng.gauss(0, math.sqrt(1 - phi * phi))
    return values


def _verdicts() -> None:
    table.head(f"compare: {FIGURES} figures, {TABLES:,} pairs of runs")
    for n in (2, 3, 5):
        rng = random.Random(n)
        false = sum(any(_seen(_compared(rng, n, 0))) for _ in range(TABLES))
        table.row(f"n = {n}, all equal: any false verdict", false / TABLES * 100, 6, "%")
    rng = random.Random(6)
    named = sum(_seen(_compared(rng, 5, 6))[0] for _ in range(TABLES // 4))
    table.row("n = 5, one shifted by 6 deviations: it is named", named / (TABLES // 4) * 100, 90,
              "%", at_least=True)  # fmt: skip


def _seen(compared: Sequence[Comparison]) -> list[bool]:
    return [one.verdict in SEEN for one in compared]


def _compared(rng: random.Random, n: int, shift: float) -> list[Comparison]:
    runs = []
    for moved in (0.0, shift):
        rows = []
        for place in range(FIGURES):
            values = [rng.gauss(100 + moved * (place == 0), 1) for _ in range(n)]
            point = {"place": place}
            rows.append(SummaryRow(point, "main", "send", "throughput_bps", values, spread(values)))
        runs.append(rows)
    return compare(*runs, Vocabulary())


def _large_runs() -> None:
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
