"""Queries: runs, their trials, flows, figures, samples and notes.

Rows come back as frozen records with their JSON decoded. A reader never blocks the runner and
may poll at any rate; `samples` and `notes` take the last id seen, and continue from there.
"""

from __future__ import annotations

import math
import sqlite3
import struct
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from benchctl.analysis.flow.held import held
from benchctl.analysis.flow.laws import terms_of
from benchctl.analysis.results import FlowReport
from benchctl.errors import GoneError, StoreError, UsageError
from benchctl.metrics import Aspect, of_aspect
from benchctl.run.codec import convert, from_json, from_row
from benchctl.run.record import (
    BASELINE,
    Facts,
    Figure,
    Figures,
    FlowEvent,
    Note,
    RecordedFlow,
    Run,
    RunOutline,
    Trial,
)
from benchctl.run.status import Status
from benchctl.store.database import connect, damaged, file_of, run_gone, store_errors
from benchctl.store.locks import Liveness
from benchctl.store.schema import LAST_ATTEMPT, OPEN, UNFINISHED

T = TypeVar("T")
R = TypeVar("R", bound=RunOutline)
# Ids in one query.
_AT_ONCE = 500
_OUTLINE = ", ".join(RunOutline.__struct_fields__)
# An imported run was created when it was measured.
_NEWEST_FIRST = "ORDER BY created_time DESC, id DESC"


class StoredSample(Struct, frozen=True):
    """The measurements of one interval of one stream."""

    id: int
    flow_id: int
    role: str
    stream: int
    direction: str
    start_s: float
    end_s: float
    arrived_s: float
    omitted: bool
    metrics: Mapping[str, float]


class RunStamp(NamedTuple):
    """What of a run changes with anything that a list of runs shows of it."""

    profile: str
    status: Status
    finished_time: float | None
    tags: str


def unique(text: str, names: Iterable[str], noun: str, hint: str) -> str:
    """Return the name that ``text`` is, or of which it is a part that no other name has.

    Raises UsageError if there is none, or more than one.
    """
    names = list(names)
    matches = [text] if text in names else [name for name in names if text in name]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UsageError(
            f'"{text}" matches {len(matches)} {noun}s', f"such as {', '.join(matches[:5])}"
        )
    raise UsageError(f'no {noun} "{text}"', hint)


_SAMPLES = """
SELECT sample.id, flow_id, role, stream, series.direction, start_s, end_s, arrived_s, omitted,
       metrics, data
FROM sample JOIN series ON series.id = series_id
"""
_INTERVALS = """
SELECT role, stream, direction, metrics,
       (SELECT count(*) FROM (
           SELECT 1 FROM sample WHERE series_id = series.id AND NOT omitted LIMIT ?
       )) AS intervals
FROM series WHERE flow_id = ?
"""
RATES = frozenset(of_aspect(Aspect.RATE))


def tags_in(text: object) -> tuple[str, ...]:
    """Return the tags in the column of a run; none of one that is damaged."""
    try:
        return from_json(text, tuple[str, ...])
    except ValueError:
        return ()


@cache
def _layout(metrics: str) -> tuple[tuple[str, ...], struct.Struct]:
    """Return the metrics named in a series' column, and how their values are packed."""
    names = from_json(metrics, tuple[str, ...])
    return names, struct.Struct(f"<{len(names)}d")


def decode_sample(row: sqlite3.Row) -> StoredSample:
    """Return a sample. Raises ValueError for invalid data."""
    try:
        names, layout = _layout(row["metrics"])
        values = layout.unpack(row["data"])
        sample = StoredSample(
            id=row["id"],
            flow_id=row["flow_id"],
            role=row["role"],
            stream=row["stream"],
            direction=row["direction"],
            start_s=row["start_s"],
            end_s=row["end_s"],
            arrived_s=row["arrived_s"],
            omitted=bool(row["omitted"]),
            metrics=dict(zip(names, values, strict=True)),
        )
        times = (sample.start_s, sample.end_s, sample.arrived_s)
        whole = all(map(math.isfinite, (*times, *values, sample.stream)))
        whole = whole and isinstance(sample.role + sample.direction, str)
    except (ValueError, TypeError, struct.error):
        whole = False
    if not whole:
        raise ValueError(f"sample {row['id']}")
    return sample


def decode_figure(row: sqlite3.Row) -> tuple[tuple[str, str], Figure]:
    """Return a figure by direction and metric. Raises ValueError as `from_row` does."""
    try:
        names = convert((row["direction"], row["metric"]), tuple[str, str])
        return names, from_row(row, Figure)
    except ValueError:
        raise ValueError(f"flow {row['flow_id']}: a figure") from None


def _host(row: sqlite3.Row) -> tuple[int, str, Facts]:
    try:
        facts = from_json(row["facts"], dict[str, Any])
        return convert((row["run_id"], row["name"], facts), tuple[int, str, Facts])
    except ValueError:
        raise ValueError(f"run {row['run_id']}: the facts of a host") from None


def _requested(row: sqlite3.Row) -> dict[str, Any]:
    try:
        return from_json(row["requested"], dict[str, Any])
    except ValueError:
        raise ValueError(f"flow {row['id']}: requested") from None


class Reader:
    """Reads one store. Every method raises StoreError on failure."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = connect(path)
        self._file = file_of(path)
        self._liveness = Liveness(path)

    def close(self) -> None:
        """Close the store."""
        self._connection.close()

    def runs(self) -> list[Run]:
        """Return every run, the newest first."""
        return list(map(self._with_status, self._runs(f"SELECT * FROM run {_NEWEST_FIRST}")))

    def stamps(self) -> dict[int, RunStamp]:
        """Return the stamp of every run by its id, the newest first."""
        query = f"SELECT id, profile, status, finished_time, tags FROM run {_NEWEST_FIRST}"
        stamps = self._decoded(
            (row[0], RunStamp(row[1], Status(row[2]), row[3], row[4])) for row in self._rows(query)
        )
        return dict(stamps)

    def runs_of(self, run_ids: Sequence[int]) -> list[Run]:
        """Return some runs by their ids, the newest first; none that was deleted."""
        found = []
        for begin in range(0, len(run_ids), _AT_ONCE):
            ids = ",".join(map(str, run_ids[begin : begin + _AT_ONCE]))
            found += self._runs(f"SELECT * FROM run WHERE id IN ({ids})")
        return sorted(map(self._with_status, found), key=lambda run: (-run.created_time, -run.id))

    def outlines(self) -> list[RunOutline]:
        """Return the outline of every run, the newest first."""
        query = f"SELECT {_OUTLINE} FROM run {_NEWEST_FIRST}"
        return list(map(self._with_status, self._all(RunOutline, query)))

    def run_ids(self) -> list[int]:
        """Return the ids of every run, the newest first, including runs that cannot be read."""
        return [row[0] for row in self._rows(f"SELECT id FROM run {_NEWEST_FIRST}")]

    def names(self) -> dict[str, int]:
        """Return the id of every run by its name, the last that was stored first."""
        rows = self._rows("SELECT id, name FROM run ORDER BY id DESC")
        return {row["name"]: row["id"] for row in rows if isinstance(row["name"], str)}

    def run(self, run_id: int) -> Run:
        """Return one run by id. Raises GoneError when it was deleted."""
        return self._with_status(self._written(Run, run_id))

    def outline(self, run_id: int) -> RunOutline:
        """Return the outline of one run by id. Raises GoneError when it was deleted."""
        return self._with_status(self._written(RunOutline, run_id))

    def _runs(self, query: str, *values: Any) -> list[Run]:
        """Return runs with the facts of their remote hosts."""
        runs = self._all(Run, query, *values)
        if not runs or not self._value("SELECT count(*) FROM sqlite_master WHERE name = 'host'"):
            return runs  # of an earlier program
        hosts: dict[int, dict[str, Facts]] = {}
        for begin in range(0, len(runs), _AT_ONCE):
            ids = ",".join(str(run.id) for run in runs[begin : begin + _AT_ONCE])
            rows = self._rows(f"SELECT * FROM host WHERE run_id IN ({ids}) ORDER BY id")
            for run_id, name, facts in self._decoded(map(_host, rows)):
                hosts.setdefault(run_id, {})[name] = facts
        return [
            replace(run, hosts={**run.hosts, **hosts[run.id]}) if run.id in hosts else run
            for run in runs
        ]

    def _with_status(self, run: R) -> R:
        """Return a run with its true status: one that is running without a runner has died."""
        if run.status is not Status.RUNNING or self.is_alive(run):
            return run
        # It died, or it ended between the two queries: the second answer decides.
        run = self._written(type(run), run.id)
        if run.status is not Status.RUNNING or self._written(Run, run.id).person:
            return run  # a fleet goes on with its runs, whoever follows them here
        return replace(run, status=Status.DIED)

    def _written(self, kind: type[R], run_id: int) -> R:
        query = "SELECT * FROM run WHERE id = ?"
        found: Sequence[Any] = (
            self._runs(query, run_id) if kind is Run else self._all(kind, query, run_id)
        )
        if not found:
            raise run_gone(self.path)
        run: R = found[0]
        return run

    def tagged(self, tag: str) -> list[tuple[str, int]]:
        """Return the profile and the id of every run with a tag, the newest first."""
        rows = self._rows("SELECT id, profile, tags FROM run WHERE tags != '[]' ORDER BY id DESC")
        return [(row["profile"], row["id"]) for row in rows if tag in tags_in(row["tags"])]

    def baselines(self) -> dict[str, int]:
        """Return the id of each profile's baseline."""
        return dict(reversed(self.tagged(BASELINE)))

    def find(self, text: str, profiles: Collection[str] = ()) -> Run:
        """Return the run that ``text`` names.

        ``last`` is the run that was stored last, ``baseline`` that of a profile: of one of
        ``profiles``, if any are given. Otherwise it is a run's name or its tag, or a part of one
        that no other has.
        Raises UsageError if there is none, or more than one.
        """
        names = self.names()
        if text == "last" and names:
            return self.run(next(iter(names.values())))
        if text == BASELINE and text not in names:
            return self.run(self._baseline(profiles))
        tag = text if any(text in name for name in names) else self._whole_tag(text)
        tagged = [] if text in names else [run_id for _, run_id in self.tagged(tag)]
        if len(tagged) == 1:
            return self.run(tagged[0])
        if tagged:
            some = ", ".join(name for name in names if names[name] in tagged[:5])
            raise UsageError(f'the tag "{tag}" is that of {len(tagged)} runs', f"such as {some}")
        hint = 'see "benchctl runs"; "last" means the run that was stored last'
        return self.run(names[unique(text, names, "run", hint)])

    def _whole_tag(self, part: str) -> str:
        """Return the tag that a part is of, or the part if no tag has it."""
        rows = self._rows("SELECT tags FROM run")
        tags = dict.fromkeys(tag for row in rows for tag in tags_in(row["tags"]) if part in tag)
        return unique(part, tags, "tag", "") if tags else part

    def find_all(self, texts: Iterable[str]) -> list[Run]:
        """Return the runs that some texts name; a baseline is that of the others' profiles.

        Raises UsageError as `find` does.
        """
        texts = list(texts)
        known = {text: self.find(text) for text in texts if text != BASELINE}
        profiles = {run.profile for run in known.values()}
        return [known[text] if text in known else self.find(text, profiles) for text in texts]

    def _baseline(self, profiles: Collection[str]) -> int:
        found = {
            profile: run_id
            for profile, run_id in self.baselines().items()
            if not profiles or profile in profiles
        }
        if len(found) == 1:
            return next(iter(found.values()))
        if found:
            raise UsageError(
                f"{len(found)} profiles have a baseline: {', '.join(found)}",
                "name the run; see benchctl baseline show",
            )
        whose = f"{', '.join(profiles)} has" if profiles else "there is"
        raise UsageError(f"{whose} no baseline", "set one: benchctl baseline set RUN")

    def imported(self, file_sha256: str) -> str | None:
        """Return the name of the run that has the trials of a file; None if there is none."""
        column = "SELECT count(*) FROM pragma_table_info('trial') WHERE name = 'file_sha256'"
        if not self._value(column):
            return None  # of an earlier program
        query = (
            "SELECT run.name FROM trial JOIN run ON run.id = run_id"
            " WHERE file_sha256 = ? AND file_sha256 != ''"
        )
        row = next(self._rows(query, file_sha256), None)
        return None if row is None else str(row["name"])

    def is_alive(self, run: RunOutline) -> bool:
        """Return whether a runner is measuring this run now."""
        return self._liveness.is_alive(run.id)

    def all_measured_now(self) -> Iterator[Run]:
        """Yield the runs that are being measured, the newest first."""
        query = f"SELECT * FROM run WHERE status IN {UNFINISHED} ORDER BY id DESC"
        return filter(self.is_alive, self._runs(query))

    def measured_now(self) -> Run | None:
        """Return the newest run that is being measured, if any."""
        return next(self.all_measured_now(), None)

    def trials(self, run_id: int, from_position: int = 0) -> Iterator[Trial]:
        """Yield the trials of a run from a position on, in order of execution."""
        query = "SELECT * FROM trial WHERE run_id = ? AND position >= ? ORDER BY position"
        rows = self._rows(query, run_id, from_position)
        yield from self._decoded(from_row(row, Trial) for row in rows)

    def next_open(self, run_id: int, from_position: int) -> Trial | None:
        """Return the next trial from a position on that still has to be measured."""
        query = (
            "SELECT * FROM trial WHERE run_id = ? AND position >= ?"
            f" AND status IN {OPEN} ORDER BY position LIMIT 1"
        )
        return next(iter(self._all(Trial, query, run_id, from_position)), None)

    def begun(self, run_id: int, from_position: int) -> list[int]:
        """Return the positions from one on of the trials that began, or were ended before."""
        query = (
            "SELECT position FROM trial WHERE run_id = ? AND position >= ?"
            " AND status != 'planned' ORDER BY position"
        )
        return [row[0] for row in self._rows(query, run_id, from_position)]

    def furthest(self, run_id: int) -> int:
        """Return the position of the last trial that began, or was ended before; -1 before it."""
        query = (
            "SELECT coalesce(max(position), -1) FROM trial WHERE run_id = ? AND status != 'planned'"
        )
        return self._value(query, run_id)

    def statuses(self, run_id: int) -> set[Status]:
        """Return every status that a trial of a run has."""
        query = "SELECT DISTINCT status FROM trial WHERE run_id = ?"
        return {Status(row[0]) for row in self._rows(query, run_id)}

    def remaining(self, run_id: int) -> tuple[int, float]:
        """Return how many trials of a run have yet to end, and their planned time together."""
        query = (
            "SELECT count(*), coalesce(sum(duration_s), 0) FROM trial"
            f" WHERE run_id = ? AND status IN {OPEN}"
        )
        count, planned_s = next(self._rows(query, run_id))
        return int(count), float(planned_s)

    def flows(self, trial_id: int, *, all_attempts: bool = False) -> list[RecordedFlow]:
        """Return the flows of a trial, of its last attempt or of all."""
        chosen = "WHERE trial_id = ?" if all_attempts else LAST_ATTEMPT
        return self._all(RecordedFlow, f"SELECT * FROM flow {chosen} ORDER BY id", trial_id)

    def attempts(self, trial_id: int) -> int:
        """Return the number of attempts of a trial."""
        return self._value("SELECT coalesce(max(attempt), 0) FROM flow WHERE trial_id=?", trial_id)

    def figures(self, flow_id: int) -> Figures:
        """Return a flow's final figures by (direction, metric), those marked that break a law."""
        rows = self._rows("SELECT * FROM figure WHERE flow_id = ?", flow_id)
        found = dict(self._decoded(map(decode_figure, rows)))
        flow = next(self._rows("SELECT * FROM flow WHERE id = ?", flow_id), None)
        if flow is None or dict(flow).get("held"):
            return found
        # A program that knew no laws measured it.
        return held(found, terms_of(next(self._decoded(map(_requested, (flow,))))))

    def flow_reports(
        self, trial_id: int, *, all_attempts: bool = False, most: int = 0
    ) -> list[FlowReport]:
        """Return the flows of a trial with what they came to, of the last attempt or of all.

        Intervals are counted up to ``most``.
        """
        return [
            FlowReport(
                flow,
                self.figures(flow.id),
                self.events(flow.id),
                self.intervals(flow.id, most) if most else 0,
            )
            for flow in self.flows(trial_id, all_attempts=all_attempts)
        ]

    def events(self, flow_id: int) -> list[FlowEvent]:
        """Return what happened within a flow, in order of time."""
        if not self._value("SELECT count(*) FROM sqlite_master WHERE name = 'event'"):
            return []  # of an earlier program
        query = "SELECT * FROM event WHERE flow_id = ? ORDER BY at_s, id"
        return self._all(FlowEvent, query, flow_id)

    def intervals(self, flow_id: int, most: int) -> int:
        """Return how many intervals of its rate a flow has, in the direction with fewest.

        Of the stream with most; not counted beyond ``most``.
        """
        counts: dict[str, Counter[tuple[str, int]]] = {}
        for row in self._rows(_INTERVALS, most, flow_id):
            try:
                metrics, _ = _layout(row["metrics"])
            except (ValueError, TypeError) as error:
                raise damaged(self.path, f"the samples of flow {flow_id}") from error
            if not RATES.isdisjoint(metrics):
                streams = counts.setdefault(row["direction"], Counter())
                streams[row["role"], row["stream"]] += row["intervals"]
        return min((min(most, max(streams.values())) for streams in counts.values()), default=0)

    def samples(self, flow_id: int, after: int = 0) -> Iterator[StoredSample]:
        """Yield the samples of a flow with an id above ``after``, in order of arrival."""
        query = f"{_SAMPLES} WHERE flow_id = ? AND sample.id > ? ORDER BY sample.id"
        yield from self._decoded(map(decode_sample, self._rows(query, flow_id, after)))

    def samples_of_trial(
        self, trial_id: int, after: int = 0, attempt: int | None = None
    ) -> Iterator[StoredSample]:
        """Yield the samples of a trial, or of one attempt at it, with an id above ``after``."""
        query = (
            f"{_SAMPLES} JOIN flow ON flow.id = flow_id"
            " WHERE trial_id = ? AND sample.id > ? AND attempt = coalesce(?, attempt)"
            " ORDER BY sample.id"
        )
        rows = self._rows(query, trial_id, after, attempt)
        yield from self._decoded(map(decode_sample, rows))

    def notes(self, run_id: int, after: int = 0) -> list[Note]:
        """Return the notes of a run with an id above ``after``."""
        query = "SELECT * FROM note WHERE run_id = ? AND id > ? ORDER BY id"
        return self._all(Note, query, run_id, after)

    def changes(self) -> int:
        """Return a number that changes after another process has written to the store.

        Raises GoneError if its file was deleted or replaced since it was opened.
        """
        try:
            gone = "another file is in its place" if file_of(self.path) != self._file else ""
        except StoreError:
            gone = "the file was deleted"
        if gone:
            raise GoneError(f"store {self.path}: {gone}", "what is shown was read before")
        return self._value("PRAGMA data_version")

    def _rows(self, query: str, *values: Any) -> Iterator[sqlite3.Row]:
        with store_errors(self.path):
            # Not "yield from": that closes the cursor, perhaps after the store.
            for row in self._connection.execute(query, values):  # noqa: UP028
                yield row

    def _all(self, kind: type[T], query: str, *values: Any) -> list[T]:
        return list(self._decoded(from_row(row, kind) for row in self._rows(query, *values)))

    def _decoded(self, found: Iterator[T]) -> Iterator[T]:
        try:
            yield from found
        except (ValueError, IndexError) as error:  # IndexError: a column has lost its name
            raise damaged(self.path, str(error)) from error

    def _value(self, query: str, *values: Any) -> int:
        return int(next(self._rows(query, *values))[0])
