"""Writes a run, and in the same transaction what it wrote as messages, until they are sent."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import astuple

from benchctl.errors import StoreError
from benchctl.run.planned import PlannedTrial
from benchctl.run.record import Figures, FlowEvent
from benchctl.store.database import connect, store_errors, writing
from benchctl.store.log.writes import (
    ENCODER,
    MOST_SAMPLES,
    AddEvents,
    AddFigures,
    AddFlow,
    AddNote,
    AddSamples,
    AddTrial,
    ColumnValue,
    FlowRef,
    Reopen,
    SetFlow,
    SetHost,
    SetRun,
    SetTrial,
    Write,
)
from benchctl.store.record import Recorder, SeriesKey, encoded, reopen_trials, trial_columns

_TABLES = (
    "CREATE TABLE IF NOT EXISTS fleet_log ("  # messages that were not sent yet
    " run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE, number INTEGER NOT NULL,"
    " data BLOB NOT NULL, PRIMARY KEY (run_id, number)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS fleet_received ("  # the last event of an end that was written
    " host TEXT NOT NULL, run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,"
    " trial INTEGER NOT NULL, attempt INTEGER NOT NULL, flow TEXT NOT NULL, role TEXT NOT NULL,"
    " number INTEGER NOT NULL,"
    " PRIMARY KEY (run_id, trial, attempt, flow, role, host)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS fleet_request ("  # what people asked for
    " run_id INTEGER PRIMARY KEY REFERENCES run ON DELETE CASCADE, token TEXT NOT NULL UNIQUE,"
    " sent_bytes REAL NOT NULL)",
)
"""Of a coordinator's store alone."""

EndKey = tuple[str, int, int, str, str]
"""Host, position of the trial, attempt, flow and role of an end."""
OnLogged = Callable[[int, int, bytes], object]
"""Is called with the run's id, the number and the data of each message that was written."""
OnWritten = Callable[[Mapping[EndKey, int]], object]
"""Is called with the last events of ends that are in the store."""


def prepare_log(path: Path) -> None:
    """Create what a coordinator's store has beside the others. Raises StoreError."""
    with writing(path) as connection:
        for statement in _TABLES:
            connection.execute(statement)


def requests(path: Path) -> list[StoredRequest]:
    """Return all that was asked for, in this order. Raises StoreError."""
    query = (
        "SELECT run_id, run.name, person, created_time, token, sent_bytes, status"
        " FROM fleet_request JOIN run ON run.id = run_id ORDER BY run_id"
    )
    with closing(connect(path)) as connection, store_errors(path):
        return [StoredRequest(*row) for row in connection.execute(query)]


class StoredRequest(NamedTuple):
    """A run that a person asked for, and its status in the store."""

    run_id: int
    name: str
    person: str
    created_time: float
    token: str
    sent_bytes: float
    status: str


def last_received(path: Path, run: str) -> dict[EndKey, int]:
    """Return the number of the last message of each end of a run that is in the store.

    Raises StoreError.
    """
    query = (
        "SELECT host, trial, attempt, flow, role, number FROM fleet_received"
        " JOIN run ON run.id = run_id WHERE run.name = ?"
    )
    with closing(connect(path)) as connection, store_errors(path):
        return {tuple(row)[:5]: row["number"] for row in connection.execute(query, (run,))}


def unsent(path: Path) -> list[tuple[int, str, int, bytes]]:
    """Return the run's id and name, the number and the data of messages that may not be sent yet.

    Raises StoreError.
    """
    query = (
        "SELECT run_id, run.name, number, data FROM fleet_log JOIN run ON run.id = run_id"
        " ORDER BY run_id, number"
    )
    with closing(connect(path)) as connection, store_errors(path):
        return [tuple(row) for row in connection.execute(query)]


def forget_sent(path: Path, last: Mapping[int, int]) -> None:
    """Remove the messages of runs up to a number, which were sent. Raises StoreError."""
    with writing(path) as connection:
        connection.executemany(
            "DELETE FROM fleet_log WHERE run_id = ? AND number <= ?", list(last.items())
        )


def sync(path: Path) -> None:
    """Have the disk keep all that was committed to a store, through a power cut, too.

    SQLite syncs its log only when it moves it to the database (``synchronous = NORMAL``): a sync
    now and then costs less than one for each transaction. Raises StoreError.
    """
    try:
        # SQLite holds no lock on this file, which the close would drop.
        log = os.open(f"{path}-wal", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:  # all of it is in the database
        return
    try:
        os.fsync(log)
    except OSError as error:
        raise StoreError(f"store {path}: {error.strerror}") from None
    finally:
        os.close(log)


def reopen_logged(
    path: Path, run_id: int, on_logged: OnLogged, *, kept: Sequence[int] = ()
) -> None:
    """Reopen a run but for some trials, by their position, and log it. Raises StoreError."""
    with writing(path) as connection:
        reopen_trials(connection, run_id, failed=False, kept=kept)
        logged = _log(connection, run_id, [Reopen(failed=False, kept=tuple(kept))])
    for number, data in logged:
        on_logged(run_id, number, data)


def change_logged(path: Path, run_id: int, on_logged: OnLogged, **columns: Any) -> None:
    """Set columns of a run that nobody records, and log it. Raises StoreError."""
    with closing(LoggedRecorder(path, run_id, on_logged=on_logged)) as recorder:
        recorder.update_run(**columns)


def _log(
    connection: sqlite3.Connection, run_id: int, writes: Sequence[Write]
) -> list[tuple[int, bytes]]:
    """Keep writes as a message of their run; returns its number and data."""
    (number,) = connection.execute(
        "UPDATE run SET logged = logged + 1 WHERE id = ? RETURNING logged", (run_id,)
    ).fetchone()
    data = ENCODER.encode(writes)
    connection.execute("INSERT INTO fleet_log VALUES (?,?,?)", (run_id, number, data))
    return [(number, data)]


class LoggedRecorder(Recorder):
    """Writes one run and logs what it writes, at the next `flush`; see `Recorder`.

    Each transaction is a message that is signed, so what happens within a moment shares one.

    `received` notes the last event of an end that is among what was recorded until then:
    ``on_written`` gets those that are in the store, after each transaction.
    """

    def __init__(
        self,
        path: Path,
        run_id: int,
        clock: Callable[[], float] = time.monotonic,
        *,
        on_logged: OnLogged,
        on_written: OnWritten = lambda _: None,
    ) -> None:
        super().__init__(path, run_id, clock)
        self._on_logged, self._on_written = on_logged, on_written
        self._writes: list[Write] = []
        self._positions: dict[int, int] = {}
        self._refs: dict[int, FlowRef] = {}
        self._received: dict[EndKey, int] = {}
        self._logged: list[tuple[int, bytes]] = []
        self._gathers = True

    is_replayed = False
    """Whether what comes was recorded before, by another process: then samples and notes do not
    come twice."""

    def add_sample(self, flow_id: int, *values: Any, **named: Any) -> None:
        if not self.is_replayed:
            super().add_sample(flow_id, *values, **named)

    def add_note(
        self, text: str, level: str, time: float, trial_id: int | None, flow_id: int | None
    ) -> None:
        if not self.is_replayed:
            super().add_note(text, level, time, trial_id, flow_id)

    def received(self, end: EndKey, number: int) -> None:
        """Note that an event of an end, and all before it, are among what was recorded."""
        self._received[end] = number

    def update_run(self, **columns: Any) -> None:
        row = _values(columns)
        sent = {name: value for name, value in row.items() if name != "runner_pid"}
        self._note_write(SetRun(sent))
        super().update_run(**row)

    def _set_host(self, name: str, facts: str) -> None:
        self._note_write(SetHost(name, facts))
        super()._set_host(name, facts)

    def update_trial(self, trial_id: int, **columns: Any) -> None:
        row = _values(columns)  # so that it is encoded once
        self._note_write(SetTrial(self._position(trial_id), row))
        super().update_trial(trial_id, **row)

    def update_flow(self, flow_id: int, **columns: Any) -> None:
        row = _values(columns)
        self._note_write(SetFlow(self._ref(flow_id), row))
        super().update_flow(flow_id, **row)

    def add_trial(self, trial: PlannedTrial) -> None:
        self._note_write(AddTrial(_values(trial_columns(trial))))
        super().add_trial(trial)

    def add_flow(self, trial_id: int, **columns: Any) -> int:
        ref = FlowRef(self._position(trial_id), columns["attempt"], columns["name"])
        row = _values(columns)
        rest = {name: value for name, value in row.items() if name not in ("attempt", "name")}
        self._note_write(AddFlow(ref, rest))
        flow_id = super().add_flow(trial_id, **row)
        self._refs[flow_id] = ref
        return flow_id

    def add_figures(self, flow_id: int, figures: Figures) -> None:
        rows = [[*names, *encoded(astuple(figure))] for names, figure in figures.items()]
        self._note_write(AddFigures(self._ref(flow_id), rows))
        super().add_figures(flow_id, figures)

    def add_events(self, flow_id: int, events: Iterable[FlowEvent]) -> None:
        all_events = list(events)
        self._note_write(
            AddEvents(self._ref(flow_id), [encoded(astuple(event)) for event in all_events])
        )
        super().add_events(flow_id, all_events)

    def flush(self) -> bool:
        is_written = super().flush()
        if is_written:
            self._tell()
        return is_written

    def settle(self) -> None:
        super().settle()
        self._tell()

    def _note_write(self, write: Write) -> None:
        self._writes.append(write)

    def _write(self) -> None:
        if self._received and not (self._steps or self._samples or self._notes):
            self._steps.append(lambda: None)  # events that leave nothing else in the store
        super()._write()

    def _write_more(self, connection: sqlite3.Connection) -> None:
        connection.executemany(
            "INSERT OR REPLACE INTO fleet_received"
            " (host, trial, attempt, flow, role, run_id, number) VALUES (?,?,?,?,?,?,?)",
            [(*end, self._run_id, number) for end, number in self._received.items()],
        )
        self._logged = []
        for part in _parts([*self._writes, *self._samples_logged(), *self._notes_logged()]):
            self._logged += _log(connection, self._run_id, part)

    def _tell(self) -> None:
        """Say what is in the store by now."""
        logged, self._logged = self._logged, []
        received, self._received = self._received, {}
        self._writes = []
        for number, data in logged:
            self._on_logged(self._run_id, number, data)
        if received:
            self._on_written(received)

    def _samples_logged(self) -> Iterator[AddSamples]:
        series: dict[SeriesKey, list[Any]] = {}
        for key, *row in self._samples:
            series.setdefault(key, []).append(row)
        for (flow, role, stream, direction, metrics), rows in series.items():
            for begin in range(0, len(rows), MOST_SAMPLES):
                some = rows[begin : begin + MOST_SAMPLES]
                yield AddSamples(self._ref(flow), role, stream, str(direction), metrics, some)

    def _notes_logged(self) -> Iterator[AddNote]:
        for _, trial, flow, at, level, text in self._notes:
            position = None if trial is None else self._position(trial)
            yield AddNote(text, level, at, position, None if flow is None else self._ref(flow))

    def _position(self, trial_id: int) -> int:
        if trial_id not in self._positions:
            query = "SELECT position FROM trial WHERE id = ?"
            with store_errors(self.path):
                row = self._connection.execute(query, (trial_id,)).fetchone()
            self._positions[trial_id] = row["position"]
        return self._positions[trial_id]

    def _ref(self, flow_id: int) -> FlowRef:
        if flow_id not in self._refs:  # of an attempt before this process
            query = "SELECT trial_id, attempt, name FROM flow WHERE id = ?"
            with store_errors(self.path):
                row = self._connection.execute(query, (flow_id,)).fetchone()
            self._refs[flow_id] = FlowRef(
                self._position(row["trial_id"]), row["attempt"], row["name"]
            )
        return self._refs[flow_id]


def _parts(writes: Sequence[Write]) -> Iterator[list[Write]]:
    """Yield what fits into one message each; nothing of no writes."""
    part: list[Write] = []
    size = 0
    for write in writes:
        length = len(ENCODER.encode(write)) if isinstance(write, AddSamples) else 0
        if part and size + length > _MOST_BYTES:
            yield part
            part, size = [], 0
        part.append(write)
        size += length
    if part:
        yield part


_MOST_BYTES = 1 << 19


def _values(columns: Mapping[str, Any]) -> dict[str, ColumnValue]:
    return dict(zip(columns, encoded(columns.values()), strict=True))
