"""The page of a mesh after a year: ``python bench mesh``.

60 hosts, each pair one trial each six hours, for a year: 5 million trials, of which each has six
figures, three of them in tables. The store has 7 GB, and takes some minutes to be made.
`BENCHCTL_BENCH_DAYS` measures fewer days.
"""

from __future__ import annotations

import json
import math
import os
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

import table

from benchctl.metrics import Direction
from benchctl.run.planned import PlannedFlow, PlannedRun, PlannedTrial, Settings
from benchctl.store.database import connect, transaction
from benchctl.store.record import create_run

HOSTS, RUNS_A_DAY = 60, 4
DAYS = int(os.environ.get("BENCHCTL_BENCH_DAYS", "365"))
BEGIN = 1_795_219_200.0
"""2026-11-21, in Unix time."""
AWAY = 0.002
"""The share of trials that fail."""
TRIAL_S = 5.0
TAG = "schedule:mesh"
"""Of runs whose changes are in a log."""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        # An installed program is compiled already.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(Path(folder) / "compiled")
        store, site = Path(folder) / "runs.sqlite", Path(folder) / "site"
        mesh = Mesh(store)
        mesh.measure(DAYS * RUNS_A_DAY)
        trials = DAYS * RUNS_A_DAY * len(mesh.pairs)
        table.head(f"the page of a mesh of {HOSTS} hosts after {DAYS} days: {trials:,} trials")
        made = _made(store, site)
        size = sum(file.stat().st_size for file in site.rglob("*") if file.is_file())
        _rows("all of it", made, 60)
        table.row("its files", size / 1e6, 60, "MB")
        mesh.measure(1)
        _rows("an update, the first of a day", _made(store, site), 5)
        mesh.measure(1)
        _rows("an update, the second of a day", _made(store, site), 5)


class _Took(NamedTuple):
    elapsed_s: float
    cpu_s: float


def _rows(what: str, took: _Took, bound_s: float) -> None:
    table.row(f"{what}, whole process", took.elapsed_s, bound_s, "s")
    table.row(f"{what}, its CPU time", took.cpu_s, bound_s, "s")


def _made(store: Path, site: Path) -> _Took:
    """Return the time of the command, and its CPU time, which other programs hardly change."""
    argv = [sys.executable, "-m", "benchctl", "report", "--mesh", "-o", str(site),
            "--store", str(store)]  # fmt: skip
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    elapsed_s, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"most memory: {after.ru_maxrss / 1024:.0f} MB")
    return _Took(elapsed_s, cpu_s)


class Mesh:
    """A store of runs of a mesh, written as the runner would leave it."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self._rng = random.Random(60)
        self.pairs = [*permutations([f"host-{n:02}.example.net" for n in range(HOSTS)], 2)]
        self._paths = [
            (self._rng.uniform(5e8, 1e9), self._rng.uniform(0, 0.1), self._rng.uniform(0, 6.28),
             self._rng.uniform(1e-3, 0.2)) for _ in self.pairs
        ]  # fmt: skip
        self._points = [json.dumps({"pair": f"{a} > {b}"}) for a, b in self.pairs]
        self._runs = 0

    def measure(self, runs: int) -> None:
        """Add runs, each six hours after the one before."""
        for _ in range(runs):
            self._measure()

    def _measure(self) -> None:
        began = BEGIN + self._runs * 86_400 / RUNS_A_DAY
        self._runs += 1
        trials = [
            PlannedTrial(
                place, 1, {"pair": f"{a} > {b}"},
                (PlannedFlow("main", "iperf3", a, b, None, Direction.SEND, 0.0,
                             {"duration": TRIAL_S, "omit": 0.0, "protocol": "tcp"}),),
                {}, TRIAL_S, 30.0,
            )
            for place, (a, b) in enumerate(self.pairs)
        ]  # fmt: skip
        settings = Settings({"pair": tuple(f"{a} > {b}" for a, b in self.pairs)}, "sequential", ())
        plan = PlannedRun("mesh", "A mesh of 60 hosts", 7, settings, trials, "# mesh.toml\n")
        run_id, _ = create_run(self.store, plan, began, tags=[TAG])
        with closing(connect(self.store, write=True)) as connection, transaction(connection):
            self._end(connection, run_id, began)

    def _end(self, connection: sqlite3.Connection, run_id: int, began: float) -> None:
        first = connection.execute(
            "SELECT min(id) FROM trial WHERE run_id = ?", (run_id,)
        ).fetchone()[0]
        flow = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM flow").fetchone()[0]
        flows, figures, ends = [], [], []
        for place, (a, b) in enumerate(self.pairs):
            at = began + place * TRIAL_S
            failed = self._rng.random() < AWAY
            why = f"host {b} is away: no route to host" if failed else ""
            status = "failed" if failed else "ok"
            argv = json.dumps(["ip", "netns", "exec", a, "iperf3", "--client", b, "--port", "5201",
                               "--time", "5", "--interval", "1", "--json-stream"])  # fmt: skip
            flows.append((
                flow + place, first + place, 1, "main", "iperf3", a, b, "send", status, why, argv,
                "[]", '{"duration": 5.0, "protocol": "tcp"}', at, at + TRIAL_S, 0, 1, "tcp",
            ))  # fmt: skip
            ends.append((status, why, at, at + TRIAL_S, first + place))
            if not failed:
                figures += ((flow + place, *one) for one in self._figures(place, at))
        connection.executemany(_FLOW, flows)
        connection.executemany(_FIGURE, figures)
        connection.execute("DROP TRIGGER states_of_trial")
        connection.executemany(_TRIAL, ends)
        connection.execute("DROP TRIGGER states_of_run")
        connection.execute(
            "UPDATE run SET status = 'ok', started_time = ?, finished_time = ? WHERE id = ?",
            (began, began + len(self.pairs) * TRIAL_S, run_id),
        )

    def _figures(self, place: int, at: float) -> Iterator[tuple[str, str, str, float, str]]:
        level, cycle, phase, rtt = self._paths[place]
        rate = level * (1 + cycle * math.sin(2 * math.pi * at / 86_400 + phase))
        rate *= self._rng.gauss(1, 0.03) * (0.5 if self._rng.random() < 0.05 else 1)
        delay = rtt * self._rng.uniform(1, 1.2)
        spread = f'{{"min": {rtt}, "mean": {delay}, "median": {delay}, "p95": {delay}, "max": 1}}'
        yield "send", "bytes_received", "tool", rate * TRIAL_S / 8, "{}"
        yield "send", "cwnd_bytes", "samples", rate * delay / 8, spread
        yield "send", "retransmits", "tool", float(self._rng.randrange(100)), "{}"
        yield "send", "sent_bps", "tool", rate * 1.001, "{}"
        yield "send", "tcp_rtt_s", "samples", delay, spread
        yield "send", "throughput_bps", "tool", rate, "{}"


_FLOW = (
    "INSERT INTO flow (id, trial_id, attempt, name, backend, source, target, direction, status,"
    " error, client, server, requested, started_time, finished_time, exit_code, held, protocol)"
    " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
)
_FIGURE = (
    "INSERT INTO figure (flow_id, direction, metric, origin, value, spread) VALUES (?,?,?,?,?,?)"
)
_TRIAL = "UPDATE trial SET status = ?, error = ?, started_time = ?, finished_time = ? WHERE id = ?"
