"""What the runner writes while it measures.

Samples are gathered and written in batches (`Recorder.flush`, several times a second); everything
else is written at once, after the samples that came before it.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import struct
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchctl.analysis.figures import Figures
from benchctl.store.database import connect, store_errors, transaction, writing
from benchctl.store.schema import OPEN, UNFINISHED

SeriesKey = tuple[int, str, int, str, tuple[str, ...]]
"""Flow id, role, number and direction of a stream, and the metrics that its samples tell."""


@dataclass(frozen=True, slots=True)
class NewTrial:
    """A trial as it is planned; the three mappings are written as JSON."""

    repeat: int
    point: Mapping[str, Any]
    flows: Sequence[Mapping[str, Any]]
    lab: Mapping[str, Any]
    duration_s: float
    deadline_s: float


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run as it is planned."""

    profile: str
    title: str
    seed: int
    trials: int
    settings: Mapping[str, Any]
    profile_text: str
    profile_sha256: str


def create_run(path: Path, run: NewRun, trials: Iterable[NewTrial], now: float) -> tuple[int, str]:
    """Write a planned run and its trials; returns its id and its name. Raises StoreError."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(now))
    name = f"{stamp}-{secrets.token_hex(2)}"
    with writing(path) as connection:
        cursor = connection.execute(
            "INSERT INTO run (name, profile, title, created_time, status, seed, trials,"
            " settings, profile_text, profile_sha256) VALUES (?,?,?,?,'planned',?,?,?,?,?)",
            (name, run.profile, run.title, now, run.seed, run.trials,
             json.dumps(run.settings), run.profile_text, run.profile_sha256),
        )  # fmt: skip
        run_id = int(cursor.lastrowid or 0)
        connection.executemany(
            "INSERT INTO trial (run_id, position, repeat, point, flows, lab, duration_s,"
            " deadline_s, status) VALUES (?,?,?,?,?,?,?,?,'planned')",
            (
                (run_id, position, t.repeat, json.dumps(t.point), json.dumps(t.flows),
                 json.dumps(t.lab), t.duration_s, t.deadline_s)
                for position, t in enumerate(trials)
            ),
        )  # fmt: skip
    return run_id, name


def reopen_run(path: Path, run_id: int) -> None:
    """Make what a runner that stopped or died left open planned again. Raises StoreError.

    Attempts that never ended are marked as interrupted.
    """
    trials = f"SELECT id FROM trial WHERE run_id = ? AND status IN {OPEN}"
    with writing(path) as connection:
        connection.execute(
            "UPDATE flow SET status = 'interrupted', error = 'the runner ended before it'"
            f" WHERE status IN {UNFINISHED} AND trial_id IN ({trials})",
            (run_id,),
        )
        connection.execute(f"UPDATE trial SET status = 'planned' WHERE id IN ({trials})", (run_id,))
        connection.execute("UPDATE run SET status = 'planned', error = '' WHERE id = ?", (run_id,))


@cache
def _doubles(count: int) -> struct.Struct:
    return struct.Struct(f"<{count}d")


class Recorder:
    """Writes one run. Every method raises StoreError when the store cannot be written."""

    def __init__(self, path: Path, run_id: int) -> None:
        self._path = path
        self._run_id = run_id
        self._connection = connect(path, write=True)
        # 32 MiB of log before it is copied into the file: hot pages are then copied once.
        self._connection.execute("PRAGMA wal_autocheckpoint = 8000")
        self._samples: list[tuple[SeriesKey, float, float, float, bool, bytes]] = []
        self._notes: list[tuple[int, int | None, int | None, float, str, str]] = []
        self._series: dict[SeriesKey, int] = {}

    def update_run(self, **columns: Any) -> None:
        """Set columns of the run."""
        self._update("run", self._run_id, columns)

    def update_trial(self, trial_id: int, **columns: Any) -> None:
        """Set columns of a trial."""
        self._update("trial", trial_id, columns)

    def update_flow(self, flow_id: int, **columns: Any) -> None:
        """Set columns of a flow."""
        self._update("flow", flow_id, columns)

    def add_flow(self, trial_id: int, **columns: Any) -> int:
        """Write one attempt of a flow; returns its id."""
        # Of flows before this one hardly a sample is to come; if one does, its series begins anew.
        self._series.clear()
        return self._insert("flow", {"trial_id": trial_id, **columns})

    def add_note(
        self, text: str, level: str, time: float, trial_id: int | None, flow_id: int | None
    ) -> None:
        """Gather a note for the next `flush`: level is info, warning or remark."""
        self._notes.append((self._run_id, trial_id, flow_id, time, level, text))

    def add_figures(self, flow_id: int, figures: Figures) -> None:
        """Write a flow's final figures."""
        with store_errors(self._path), transaction(self._connection):
            self._connection.executemany(
                "INSERT INTO figure VALUES (?,?,?,?,?,?)",
                (
                    (flow_id, direction, metric, f.origin, f.value, json.dumps(dict(f.spread)))
                    for (direction, metric), f in figures.items()
                ),
            )

    def add_sample(
        self,
        flow_id: int,
        role: str,
        stream: int,
        direction: str,
        start_s: float,
        end_s: float,
        arrived_s: float,
        omitted: bool,
        metrics: Mapping[str, float],
    ) -> None:
        """Gather a sample for the next `flush`."""
        key = (flow_id, role, stream, direction, tuple(metrics))
        data = _doubles(len(metrics)).pack(*metrics.values())
        self._samples.append((key, start_s, end_s, arrived_s, omitted, data))

    def flush(self) -> None:
        """Write the gathered samples and notes."""
        if not self._samples and not self._notes:
            return
        with store_errors(self._path), transaction(self._connection):
            unknown = {sample[0] for sample in self._samples} - self._series.keys()
            series = self._series | {key: self._insert_series(key) for key in sorted(unknown)}
            self._connection.executemany(
                "INSERT INTO sample (series_id, start_s, end_s, arrived_s, omitted, data)"
                " VALUES (?,?,?,?,?,?)",
                [(series[key], *row) for key, *row in self._samples],
            )
            self._connection.executemany(
                "INSERT INTO note (run_id, trial_id, flow_id, time, level, text)"
                " VALUES (?,?,?,?,?,?)",
                self._notes,
            )
        self._series, self._samples, self._notes = series, [], []

    def close(self) -> None:
        """Write what is gathered and close the store."""
        try:
            self.flush()
        finally:
            self._connection.close()

    def _insert_series(self, key: SeriesKey) -> int:
        *names, metrics = key
        cursor = self._connection.execute(
            "INSERT INTO series (flow_id, role, stream, direction, metrics) VALUES (?,?,?,?,?)",
            (*names, json.dumps(metrics)),
        )
        return int(cursor.lastrowid or 0)

    def _insert(self, table: str, columns: Mapping[str, Any]) -> int:
        marks = ",".join("?" * len(columns))
        statement = f"INSERT INTO {table} ({','.join(columns)}) VALUES ({marks})"
        cursor = self._write(statement, columns.values())
        return int(cursor.lastrowid or 0)

    def _update(self, table: str, row_id: int, columns: Mapping[str, Any]) -> None:
        self.flush()
        sets = ",".join(f"{name} = ?" for name in columns)
        self._write(f"UPDATE {table} SET {sets} WHERE id = ?", (*columns.values(), row_id))

    def _write(self, statement: str, values: Iterable[Any]) -> sqlite3.Cursor:
        encoded = [json.dumps(v) if isinstance(v, dict | list | tuple) else v for v in values]
        with store_errors(self._path):
            return self._connection.execute(statement, encoded)
