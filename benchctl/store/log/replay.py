"""Replays the messages of a run, in order, into a copy of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchctl.errors import StoreError
from benchctl.run.record import Figure, FlowEvent
from benchctl.run.status import Status
from benchctl.store.database import run_gone, store_errors
from benchctl.store.log.writes import (
    AddEvents,
    AddFigures,
    AddFlow,
    AddNote,
    AddSamples,
    AddTrial,
    AnyWrite,
    ColumnValue,
    FlowRef,
    Reopen,
    SetFlow,
    SetRun,
    SetTrial,
)
from benchctl.store.record import Recorder, reopen_trials


class CopyRecorder(Recorder):
    """Replays the messages of a run into its copy; see `Recorder`."""

    def __init__(self, path: Path, run_id: int) -> None:
        super().__init__(path, run_id)
        self._number = self._own(f"SELECT logged FROM run WHERE id = {run_id:d}")
        self._found: dict[FlowRef, int] = {}

    @property
    def number(self) -> int:
        """The number of the last message that was replayed."""
        return self._number

    @property
    def status(self) -> Status:
        """The run's own. Asked here, since a `Reader` looks for locks of this process."""
        with store_errors(self.path):
            row = self._connection.execute(
                "SELECT status FROM run WHERE id = ?", (self._run_id,)
            ).fetchone()
        if row is None:
            raise run_gone(self.path)
        return Status(row["status"])

    def replay(self, number: int, writes: Iterable[AnyWrite]) -> None:
        """Collect the next message for the next `flush`; one that was replayed does nothing.

        Raises GapError if one before it is missing, and StoreError if it does not fit this copy.
        """
        if number <= self._number:
            return
        if number != self._number + 1:
            raise GapError(f"message {self._number + 1} of the run is missing")
        with self.at_once():
            for write in writes:
                try:
                    self._replay(write)
                except (TypeError, ValueError, KeyError) as error:
                    raise StoreError(f"store {self.path}: the copy does not fit: {error}") from None
            self._number = number
            self._take(lambda: None)

    def _write_more(self, connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE run SET logged = ? WHERE id = ?", (self._number, self._run_id))

    def _replay(self, write: AnyWrite) -> None:
        match write:
            case SetRun():
                self.update_run(**_checked("run", write.columns))
            case SetTrial():
                trial = self._trial(write.position)
                self.update_trial(trial, **_checked("trial", write.columns))
            case SetFlow():
                self.update_flow(self._flow(write.flow), **_checked("flow", write.columns))
            case AddTrial():
                self._insert_trial(_checked("trial", write.columns))
            case AddFlow():
                ref = write.flow
                self._found[ref] = self.add_flow(
                    self._trial(ref.position), attempt=ref.attempt, name=ref.name,
                    **_checked("flow", write.columns),
                )  # fmt: skip
            case AddNote():
                trial_id = None if write.position is None else self._trial(write.position)
                flow_id = None if write.flow is None else self._flow(write.flow)
                self.add_note(write.text, write.level, write.time, trial_id, flow_id)
            case AddFigures():
                names = ("direction", "metric", *Figure.__struct_fields__)
                self._insert_rows("figure", names, write.flow, write.rows)
            case AddEvents():
                self._insert_rows("event", FlowEvent.__struct_fields__, write.flow, write.rows)
            case AddSamples():
                key = (
                    self._flow(write.flow), write.role, write.stream, write.direction,
                    write.metrics,
                )  # fmt: skip
                if any(len(row[4]) != 8 * len(write.metrics) for row in write.rows):
                    raise ValueError("a sample has too few values, or too many")
                self._samples += [(key, *row) for row in write.rows]
            case Reopen():
                failed, kept = write.failed, write.kept
                self._take(
                    lambda: reopen_trials(self._connection, self._run_id, failed=failed, kept=kept)
                )

    def _trial(self, position: int) -> int:
        return self._own(
            f"SELECT id FROM trial WHERE run_id = {self._run_id:d} AND position = {position:d}"
        )

    def _flow(self, ref: FlowRef) -> int:
        if ref not in self._found:
            query = "SELECT id FROM flow WHERE trial_id = ? AND attempt = ? AND name = ?"
            values = (self._trial(ref.position), ref.attempt, ref.name)
            with store_errors(self.path):
                row = self._connection.execute(query, values).fetchone()
            if row is None:
                raise KeyError(f"flow {ref.name} of trial {ref.position + 1}")
            self._found[ref] = row[0]
        return self._found[ref]

    def _own(self, query: str) -> int:
        with store_errors(self.path):
            row = self._connection.execute(query).fetchone()
        if row is None:
            raise KeyError("a trial, or the run")
        return int(row[0])

    def _insert_trial(self, columns: Mapping[str, ColumnValue]) -> None:
        names = ",".join(columns)
        marks = ",".join("?" * len(columns))

        def insert() -> None:
            run = (self._run_id,)
            query = "SELECT coalesce(max(position) + 1, 0) FROM trial WHERE run_id = ?"
            (position,) = self._connection.execute(query, run).fetchone()
            self._connection.execute(
                f"INSERT INTO trial (run_id, position, {names}) VALUES (?,?,{marks})",
                (*run, position, *columns.values()),
            )
            self._connection.execute("UPDATE run SET trials = trials + 1 WHERE id = ?", run)

        self._take(insert)

    def _insert_rows(
        self, table: str, names: Sequence[str], ref: FlowRef, rows: Sequence[Sequence[ColumnValue]]
    ) -> None:
        if any(len(row) != len(names) for row in rows):
            raise ValueError(f"a row of {table}")
        flow = self._flow(ref)
        statement = (
            f"INSERT INTO {table} (flow_id,{','.join(names)})"
            f" VALUES ({','.join('?' * (1 + len(names)))})"
        )
        self._take(
            lambda: self._connection.executemany(
                statement, [(self._flows.get(flow, flow), *row) for row in rows]
            )
        )


class GapError(StoreError):
    """A message of a run's log is missing: the run has to be copied again."""


_SET = {
    "run": "status error started_time finished_time facts hosts connections hooks",
    "trial": "repeat point flows lab duration_s deadline_s status error started_time finished_time"
    " start_skew_s fairness_jain links hooks fair_windows clocks counters beside",
    "flow": "backend source target direction port status failure error hint client server"
    " requested effective expected started_time finished_time exit_code stderr bottlenecks route"
    " captures paired held protocol",
}
"""The columns of each table that a recorder sets."""


def _checked(table: str, columns: Mapping[str, ColumnValue]) -> Mapping[str, ColumnValue]:
    if unknown := columns.keys() - set(_SET[table].split()):
        raise ValueError(f"column {min(unknown)} of {table}; is benchctl here older?")
    return columns
