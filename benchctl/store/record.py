"""Writes the results of the runner during the measurement.

Samples are collected and written in batches (`Recorder.flush`, several times a second). Everything
else is written at once, after the samples that came before it. While another program locks the
store, all of it waits in memory, in order; the measurement never waits.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple, replace

from benchctl.errors import StoreBusyError
from benchctl.run.codec import to_json
from benchctl.run.planned import PlannedRun, PlannedTrial
from benchctl.run.record import Figure, Figures, FlowEvent
from benchctl.run.status import Status
from benchctl.store.captures import captures_of
from benchctl.store.database import connect, run_gone, store_errors, transaction, writing
from benchctl.store.schema import FAILURES, OPEN, UNFINISHED
from benchctl.units import format_duration

# Samples that wait for another program: some 150 MB, half a minute at the highest rate.
MOST_WAITING = 400_000
# How long a run waits at its end after it was asked to stop.
SETTLING_S = 30.0
# Two writers rarely collide.
WORTH_A_NOTE_S = 1.0

SeriesKey = tuple[int, str, int, str, tuple[str, ...]]
"""Flow id, role, number and direction of a stream, and the metrics in its samples."""


class RunRequest(Struct, frozen=True):
    """Who asked a fleet for a run, how much it will send, and a token that no other request has."""

    person: str
    token: str
    sent_bytes: float


def create_run(
    path: Path,
    run: PlannedRun,
    now: float,
    tags: Sequence[str] = (),
    before_commit: Callable[[], object] = lambda: None,
    asked: RunRequest | None = None,
) -> tuple[int, str]:
    """Write a planned run and its trials; returns its id and its name. Raises StoreError.

    An interrupt until ``before_commit`` is called leaves nothing in the store. ``asked`` is kept by
    a fleet's coordinator, see `benchctl.store.log.logged.prepare_log`.
    """
    with writing(path) as connection:
        name = free_name(connection, now)
        cursor = connection.execute(
            "INSERT INTO run (name, profile, title, created_time, status, seed, trials,"
            " settings, profile_text, profile_sha256, tags, person)"
            " VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
            (name, run.profile, run.title, now, Status.PLANNED, run.seed, len(run.trials),
             to_json(run.settings), run.profile_text, run.profile_sha256, to_json(tags),
             asked.person if asked else ""),
        )  # fmt: skip
        run_id = int(cursor.lastrowid or 0)
        connection.executemany(_INSERT_TRIAL, (_columns(run_id, trial) for trial in run.trials))
        if asked is not None:
            connection.execute(
                "INSERT INTO fleet_request VALUES (?,?,?)", (run_id, asked.token, asked.sent_bytes)
            )
        before_commit()
    return run_id, name


_INSERT_TRIAL = (
    "INSERT INTO trial (run_id, position, repeat, point, flows, lab, duration_s, deadline_s,"
    " status) VALUES (?,?,?,?,?,?,?,?,?)"
)


def _columns(run_id: int, trial: PlannedTrial) -> tuple[Any, ...]:
    return run_id, trial.position, *trial_columns(trial).values()


def trial_columns(trial: PlannedTrial) -> dict[str, Any]:
    """Return the columns of a planned trial, without its run and position."""
    return {
        "repeat": trial.repeat, "point": to_json(trial.point), "flows": to_json(trial.flows),
        "lab": to_json(trial.lab), "duration_s": trial.duration_s,
        "deadline_s": trial.deadline_s, "status": Status.PLANNED,
    }  # fmt: skip


def free_name(connection: sqlite3.Connection, now: float) -> str:
    """Return a name for a run that begins now, which no other run has."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(now))
    while True:
        name = f"{stamp}-{secrets.token_hex(3)}"
        if not connection.execute("SELECT 1 FROM run WHERE name = ?", (name,)).fetchone():
            return name


def reopen_run(path: Path, run_id: int, *, failed: bool = False) -> None:
    """Set the unfinished trials of a stopped or dead runner to planned. Raises StoreError.

    With ``failed`` also those that failed. Attempts without an end are marked as interrupted.
    Neither the run nor these trials have an end any more.
    """
    with writing(path) as connection:
        reopen_trials(connection, run_id, failed=failed)


def reopen_trials(
    connection: sqlite3.Connection, run_id: int, *, failed: bool, kept: Sequence[int] = ()
) -> None:
    """Reopen a run as `reopen_run` does, within a transaction, but for some trials by position."""
    again = f" OR status IN {FAILURES}" if failed else ""
    but = f" AND position NOT IN ({','.join(map(str, map(int, kept)))})"
    trials = f"SELECT id FROM trial WHERE run_id = ? AND (status IN {OPEN}{again}){but}"
    connection.execute(
        "UPDATE flow SET status = 'interrupted', error = 'the runner ended before it'"
        f" WHERE status IN {UNFINISHED} AND trial_id IN ({trials})",
        (run_id,),
    )
    connection.execute(
        "UPDATE trial SET status = 'planned', error = '', started_time = NULL,"
        f" finished_time = NULL WHERE id IN ({trials})",
        (run_id,),
    )
    connection.execute(
        "UPDATE run SET status = 'planned', error = '', finished_time = NULL WHERE id = ?",
        (run_id,),
    )


def interrupt_run(path: Path, run_id: int) -> None:
    """Mark a run whose runner was killed, unless it had ended before. Raises StoreError."""
    with writing(path) as connection:
        connection.execute(
            f"UPDATE run SET status = 'interrupted' WHERE id = ? AND status IN {UNFINISHED}",
            (run_id,),
        )


@cache
def _doubles(count: int) -> struct.Struct:
    return struct.Struct(f"<{count}d")


class Recorder:
    """Writes one run. Methods raise StoreError if the store cannot be written, unless it is locked.

    ``clock`` is monotonic, in seconds.
    """

    def __init__(
        self, path: Path, run_id: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.path = path
        self._run_id = run_id
        self._clock = clock
        self._connection = connect(path, write=True)
        # 32 MiB of log before it is copied into the file: hot pages are then copied once.
        self._connection.execute("PRAGMA wal_autocheckpoint = 8000")
        self._connection.execute("PRAGMA busy_timeout = 0")
        self._steps: list[Callable[[], object]] = []
        """What waits to be written before the samples, in order."""
        self._samples: list[tuple[SeriesKey, float, float, float, bool, bytes]] = []
        self._notes: list[tuple[int, int | None, int | None, float, str, str]] = []
        self._series: dict[SeriesKey, int] = {}
        self._flows: dict[int, int] = {}
        """Flows that had to wait: id in the store by the number that `add_flow` gave them."""
        self._unended: set[int] = set()
        """The flows that have not ended, by the number that `add_flow` gave them."""
        self._held_since: float | None = None
        self._gathers = False
        """Whether what is to be written waits for a common transaction."""

    @property
    def captures(self) -> Path:
        """The folder of the run's packets."""
        query = "SELECT name FROM run WHERE id = ?"
        run = self._connection.execute(query, (self._run_id,)).fetchone()
        if run is None:
            raise run_gone(self.path)
        return captures_of(self.path, run["name"])

    def update_run(self, **columns: Any) -> None:
        """Set columns of the run."""
        self._update("run", self._run_id, columns)

    def update_host(self, name: str, facts: Mapping[str, Any]) -> None:
        """Set the facts of a remote host."""
        self._set_host(name, to_json(facts))

    def _set_host(self, name: str, facts: str) -> None:
        statement = (
            "INSERT INTO host (run_id, name, facts) VALUES (?,?,?)"
            " ON CONFLICT (run_id, name) DO UPDATE SET facts = excluded.facts"
        )
        self._take(lambda: self._connection.execute(statement, (self._run_id, name, facts)))

    def update_trial(self, trial_id: int, **columns: Any) -> None:
        """Set columns of a trial."""
        self._update("trial", trial_id, columns)

    def update_flow(self, flow_id: int, **columns: Any) -> None:
        """Set columns of a flow."""
        if "finished_time" in columns:
            self._unended.discard(flow_id)
        self._update("flow", flow_id, columns)

    def add_trial(self, trial: PlannedTrial) -> None:
        """Write one more trial of the run, after all others."""
        run = (self._run_id,)

        def insert() -> None:
            query = "SELECT coalesce(max(position) + 1, 0) FROM trial WHERE run_id = ?"
            (position,) = self._connection.execute(query, run).fetchone()
            columns = _columns(self._run_id, replace(trial, position=position))
            self._connection.execute(_INSERT_TRIAL, columns)
            self._connection.execute("UPDATE run SET trials = trials + 1 WHERE id = ?", run)

        self._take(insert)

    def add_flow(self, trial_id: int, **columns: Any) -> int:
        """Write one attempt of a flow; returns its id, temporary if the store is locked."""
        # Few samples of ended flows are still to come; if one does, its series starts anew.
        self._series = {
            key: series_id for key, series_id in self._series.items() if key[0] in self._unended
        }
        number = -1 - len(self._flows)
        self._flows[number] = number
        values = {"trial_id": trial_id, **columns}
        statement = f"INSERT INTO flow ({','.join(values)}) VALUES ({_marks(len(values))})"
        row = encoded(values.values())

        def insert() -> None:
            self._flows[number] = int(self._connection.execute(statement, row).lastrowid or 0)

        self._take(insert)
        self._unended.add(self._flows[number])
        return self._flows[number]

    def add_note(
        self, text: str, level: str, time: float, trial_id: int | None, flow_id: int | None
    ) -> None:
        """Collect a note for the next `flush`; level is info, warning or remark."""
        self._notes.append((self._run_id, trial_id, flow_id, time, level, text))

    def add_figures(self, flow_id: int, figures: Figures) -> None:
        """Write a flow's final figures."""
        rows = [
            (direction, metric, *encoded(astuple(figure)))
            for (direction, metric), figure in figures.items()
        ]
        columns = ("flow_id", "direction", "metric", *Figure.__struct_fields__)
        statement = f"INSERT INTO figure ({','.join(columns)}) VALUES ({_marks(len(columns))})"
        self._take(
            lambda: self._connection.executemany(
                statement,
                [(self._flows.get(flow_id, flow_id), *row) for row in rows],
            )
        )

    def add_events(self, flow_id: int, events: Iterable[FlowEvent]) -> None:
        """Write what happened within a flow."""
        rows = [encoded(astuple(event)) for event in events]
        names = FlowEvent.__struct_fields__
        statement = (
            f"INSERT INTO event (flow_id,{','.join(names)}) VALUES ({_marks(1 + len(names))})"
        )
        self._take(
            lambda: self._connection.executemany(
                statement, [(self._flows.get(flow_id, flow_id), *row) for row in rows]
            )
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
        """Collect a sample for the next `flush`."""
        key = (flow_id, role, stream, direction, tuple(metrics))
        data = _doubles(len(metrics)).pack(*metrics.values())
        self._samples.append((key, start_s, end_s, arrived_s, omitted, data))

    def flush(self) -> bool:
        """Write the collected data; False if another program locks the store, and it waits.

        Raises StoreBusyError if more waits than memory should hold.
        """
        try:
            self._write()
        except StoreBusyError:
            if self._held_since is None:
                self._held_since = self._clock()
            if len(self._samples) > MOST_WAITING:
                raise
            return False
        return True

    def settle(self) -> None:
        """Write the collected data, however long it takes: called when nothing is measured."""
        self._connection.execute(f"PRAGMA busy_timeout = {SETTLING_S * 1000:.0f}")
        self._write()

    def close(self) -> None:
        """Write the collected data, as `settle` does, and close the store."""
        try:
            self.settle()
        finally:
            self._connection.close()

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Write all of a block in one transaction, at the next `flush`."""
        before, self._gathers = self._gathers, True
        try:
            yield
        finally:
            self._gathers = before

    def _take(self, step: Callable[[], object]) -> None:
        self._steps.append(step)
        if not self._gathers:
            self.flush()

    def _write(self) -> None:
        if not (self._steps or self._samples or self._notes):
            return
        with store_errors(self.path), transaction(self._connection):
            for step in self._steps:
                step()
            new = dict.fromkeys(
                sample[0] for sample in self._samples if sample[0] not in self._series
            )
            series = self._series | {key: self._insert_series(key) for key in new}
            self._connection.executemany(
                "INSERT INTO sample (series_id, start_s, end_s, arrived_s, omitted, data)"
                " VALUES (?,?,?,?,?,?)",
                [(series[key], *row) for key, *row in self._samples],
            )
            self._connection.executemany(
                "INSERT INTO note (run_id, trial_id, flow_id, time, level, text)"
                " VALUES (?,?,?,?,?,?)",
                [
                    (run, trial, self._flows.get(flow, flow), *rest)  # type: ignore[arg-type]
                    for run, trial, flow, *rest in self._notes
                ],
            )
            self._write_more(self._connection)
        self._series = series
        self._steps, self._samples, self._notes = [], [], []
        if self._held_since is not None:
            held_s, self._held_since = self._clock() - self._held_since, None
            if held_s >= WORTH_A_NOTE_S:
                text = f"another program locked the store for {format_duration(held_s)}; what was"
                text += " measured waited in memory; nothing is lost"
                self.add_note(text, "info", time.time(), None, None)

    def _write_more(self, connection: sqlite3.Connection) -> None:
        """Write what belongs to the same transaction, in a subclass."""

    def _insert_series(self, key: SeriesKey) -> int:
        flow_id, role, stream, direction, metrics = key
        cursor = self._connection.execute(
            "INSERT INTO series (flow_id, role, stream, direction, metrics) VALUES (?,?,?,?,?)",
            (self._flows.get(flow_id, flow_id), role, stream, direction, json.dumps(metrics)),
        )
        return int(cursor.lastrowid or 0)

    def _update(self, table: str, row_id: int, columns: Mapping[str, Any]) -> None:
        sets = ",".join(f"{name} = ?" for name in columns)
        statement = f"UPDATE {table} SET {sets} WHERE id = ?"
        row = encoded(columns.values())
        flows = self._flows if table == "flow" else {}
        self._take(lambda: self._connection.execute(statement, (*row, flows.get(row_id, row_id))))


def _marks(count: int) -> str:
    return ",".join("?" * count)


def encoded(values: Iterable[Any]) -> list[Any]:
    """Return values as columns have them."""
    return [to_json(v) if isinstance(v, Mapping | list | tuple | Struct) else v for v in values]
