"""The store: samples a second in batches, and showing a run of two million samples."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import table

from benchctl.run.planned import PlannedRun, PlannedTrial, Settings
from benchctl.run.record import Figure
from benchctl.store.database import writing
from benchctl.store.record import Recorder, create_run

SAMPLES = 2_000_000
STREAMS = 64
# Four batches a second at 100,000 samples a second.
BATCH = 25_000
RUNS = 10_000


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "runs.sqlite"
        elapsed_s = _fill(store)
        shown = [_show_s(store) for _ in range(5)]
        table.head(f"store ({SAMPLES:,} samples of 4 metrics, {STREAMS} streams)")
        table.row("samples written a second, in batches of 25,000", SAMPLES / elapsed_s, 100_000,
                  "/s", at_least=True)  # fmt: skip
        table.row("benchctl show, whole process, median of 5", statistics.median(shown), 1, "s")
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
        listed = [_list_s(store) for _ in range(5)]
        table.row(f"benchctl runs, {RUNS:,} runs, median of 5", statistics.median(listed), 0.2, "s")
        print(f"{'bytes a sample in the file':<58}{size / SAMPLES:>14.0f}")


def _fill(store: Path) -> float:
    settings = Settings({}, "sequential", ())
    trial = PlannedTrial(0, 1, {}, (), {}, 1, 1)
    run_id, _ = create_run(store, PlannedRun("bench", "", 1, settings, [trial], ""), 0.0)
    recorder = Recorder(store, run_id)
    recorder.update_run(status="running")
    recorder.update_trial(1, status="running")
    flow_id = recorder.add_flow(
        1, attempt=1, name="main", backend="bench", source="local", target="local",
        direction="send", status="ok", client=[], server=[], requested={},
    )  # fmt: skip
    start = time.perf_counter()
    for number in range(SAMPLES):
        second = number // STREAMS / 10
        metrics = {"throughput_bps": 9.4e8 + number, "cwnd_bytes": 1.1e6, "tcp_rtt_s": 0.0204,
                   "retransmits": 0.0}  # fmt: skip
        recorder.add_sample(flow_id, "client", number % STREAMS, "send", second, second + 0.1,
                            second + 0.1, False, metrics)  # fmt: skip
        if number % BATCH == 0:
            recorder.flush()
    recorder.flush()
    elapsed_s = time.perf_counter() - start
    recorder.add_figures(flow_id, {("send", "throughput_bps"): Figure(9.4e8, "tool")})
    recorder.update_trial(1, status="ok")
    recorder.update_run(status="ok")
    recorder.close()
    return elapsed_s


def _list_s(store: Path) -> float:
    """Return the time of a list of runs, in a store made at the first call."""
    many = store.with_name("many.sqlite")
    if not many.exists():
        run = PlannedRun("bench", "", 1, Settings({}, "sequential", ()), [], "# a profile\n" * 100)
        create_run(many, run, 0.0, ("bench",))
        with writing(many) as connection:
            connection.execute("UPDATE run SET facts = ?", (json.dumps({"fact": "x" * 4000}),))
            connection.execute(_COPIES, (RUNS,))
    start = time.perf_counter()
    argv = [sys.executable, "-m", "benchctl", "runs", "--store", str(many)]
    subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


_COPIES = """
WITH RECURSIVE number (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM number WHERE n < ?)
INSERT INTO run (name, profile, title, created_time, status, seed, trials, settings, profile_text,
                 profile_sha256, facts, tags)
SELECT '20261121-004512-' || printf('%06x', n), profile, title, created_time + 60 * n, 'ok', seed,
       trials, settings, profile_text, profile_sha256, facts, tags
FROM run, number WHERE id = 1
"""


def _show_s(store: Path) -> float:
    start = time.perf_counter()
    argv = [sys.executable, "-m", "benchctl", "show", "last", "--store", str(store)]
    subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start
