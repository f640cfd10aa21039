"""Bulk queries: outlines of trials, batches of samples, the figures of months.

`read` makes an object of every row with all its columns. That suits a table, but is too slow for a
plot of half a million samples, or for the figures of a million trials.
"""

from __future__ import annotations

import gc
import sqlite3
import sys
from array import array
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct

from benchctl.metrics import Direction
from benchctl.run.codec import from_json
from benchctl.run.planned import PlannedFlow
from benchctl.store.database import connect, damaged, run_gone, store_errors
from benchctl.store.schema import COUNTED, FAILURES

T = TypeVar("T")
OF_ATTEMPT = (
    "WHERE trial_id = :trial AND attempt ="
    " coalesce(:attempt, (SELECT max(attempt) FROM flow WHERE trial_id = :trial))"
)
PackedSample = tuple[int, float, float, bytes]
"""Series, start and end of the interval (seconds from the flow's start), packed values."""

# A batch is read and drawn in a hundredth of a second; between batches, a screen handles keys.
BATCH = 1000
# As columns these take some megabytes, and a loop over each column has enough to do.
PIECE = 100_000
# Rows of each series that become columns together, and of all: what fits into a processor's cache
# takes half the time of what does not.
EACH, MOST_AT_ONCE = 64, 5000
# More trials than an axis that chooses flows has values.
ENOUGH = 500


class SeriesSource(Struct, frozen=True):
    """The source of a series of samples; ``metrics`` names the packed values, in order.

    ``delay_s`` is the flow's start after that of its trial; ``streams`` is the requested number.
    """

    flow: str
    backend: str
    role: str
    stream: int
    direction: str
    metrics: tuple[str, ...]
    delay_s: float
    streams: int


class SeriesColumns(Struct, frozen=True):
    """Samples of a series of a flow, a column each; ``values`` by metric."""

    flow_id: int
    role: str
    stream: int
    direction: str
    starts_s: array[float]
    ends_s: array[float]
    omitted: bytearray
    """One byte for each sample, 0 or 1."""
    values: dict[str, array[float]]


class _Layout(NamedTuple):
    """A series of samples, and the places of some metrics among its ``width`` values."""

    flow_id: int
    role: str
    stream: int
    direction: str
    places: Mapping[str, int]
    width: int


class _Packed(NamedTuple):
    """Samples of a series: the ends of their intervals, and their values as the store has them."""

    starts_s: array[float]
    ends_s: array[float]
    omitted: bytearray
    data: bytearray


class Outline(Struct, frozen=True):
    """The columns of a trial that a list of trials shows."""

    id: int
    position: int
    repeat: int
    point: str
    """JSON: axis -> value."""
    duration_s: float


class FlowRow(Struct, frozen=True):
    """A flow of a trial by its last attempt, with some of its figures by direction and metric.

    ``point`` is JSON, the same text for the same point. With ``has_rate``, its rate was set.
    """

    trial_id: int
    point: str
    name: str
    backend: str
    direction: str
    figures: dict[tuple[str, str], float]
    has_rate: bool = False


EndedFlow = tuple[str, float | None, str, int | None, str, str, str, bool]
"""A flow of a trial that ended, by its last attempt, or as planned if there was none.

Its point (JSON); the common start of the trial, else its end (Unix); why the trial failed, empty if
it did not; the id of the flow, its name, source and target; whether its figures count. A plain
tuple, of which there are millions.
"""


class PlannedEnds(NamedTuple):
    """The ends of a planned flow; ``point`` is that of its trial, as JSON."""

    point: str
    name: str
    source: str
    target: str
    direction: Direction


class Happened(NamedTuple):
    """What happened within a flow of a trial, and when, in seconds from the flow's second 0."""

    flow: str
    direction: str
    metric: str
    kind: str
    at_s: float


@contextmanager
def without_collector() -> Iterator[None]:
    """Keep the collector of reference cycles from looking at a million rows, which have none."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class Bulk:
    """Reads one store in bulk. Every method raises StoreError on failure."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = connect(path)

    def close(self) -> None:
        """Close the store."""
        self._connection.close()

    def outlines(self, run_id: int) -> list[Outline]:
        """Return all trials of a run, in order of execution."""
        query = (
            "SELECT id, position, repeat, point, duration_s FROM trial"
            " WHERE run_id = ? ORDER BY position"
        )
        with store_errors(self._path):
            return [Outline(*row) for row in self._connection.execute(query, (run_id,))]

    def flow_names(self, run_id: int) -> list[str]:
        """Return the planned flows of the first trials of a run, in the order of its profile.

        Each trial has some flows of the profile, in its order.
        """
        query = "SELECT flows FROM trial WHERE run_id = ? ORDER BY position LIMIT ?"
        with store_errors(self._path):
            rows = self._connection.execute(query, (run_id, ENOUGH)).fetchall()
        orders = {
            tuple(flow.name for flow in self._json(row["flows"], tuple[PlannedFlow, ...]))
            for row in rows
        }
        order: TopologicalSorter[str] = TopologicalSorter()
        for names in sorted(orders):
            for place, name in enumerate(names):
                order.add(name, *names[max(0, place - 1) : place])
        try:
            return [*order.static_order()]
        except CycleError:  # no profile has such trials
            return sorted({name for names in orders for name in names})

    def last_time(self, run_id: int) -> float | None:
        """Return when the last trial of a run ended or had a sample; None before the first."""
        query = (
            "SELECT id, started_time, finished_time FROM trial"
            " WHERE run_id = ? AND started_time IS NOT NULL ORDER BY position DESC"
        )
        with store_errors(self._path):
            trial = self._connection.execute(query, (run_id,)).fetchone()
            if trial is None:
                return None
            _, last = self.extent(trial["id"])
            sample = self._connection.execute(
                "SELECT arrived_s FROM sample WHERE id = ?", (last,)
            ).fetchone()
        arrived: float = trial["started_time"] + (sample["arrived_s"] if sample else 0.0)
        return max(arrived, trial["finished_time"] or 0.0)

    def flow_rows(self, run_id: int, metrics: Collection[str]) -> list[FlowRow]:
        """Return the flows of a run's trials, by their last attempts, in order of execution.

        Those that measured to their end have their figures of ``metrics``.
        """
        marks = ",".join("?" * len(metrics))
        columns = self._connection.execute("PRAGMA table_info(figure)")
        knows = "broken" in {row["name"] for row in columns}
        can_be = "AND (broken IS NULL OR rejected IS NOT NULL)" if knows else ""
        query = (
            "SELECT flow.id AS id, trial_id, point, flow.name, backend, flow.direction AS planned,"
            f" figure.direction AS way, metric, value, flow.status IN {COUNTED} AS counts,"
            " json_type(requested, '$.rate') IN ('integer', 'real') AS has_rate"
            " FROM trial JOIN flow ON trial_id = trial.id"
            f" LEFT JOIN figure ON flow_id = flow.id AND metric IN ({marks}) {can_be}"
            " WHERE run_id = ? AND attempt = (SELECT max(attempt) FROM flow AS other"
            " WHERE other.trial_id = trial.id) ORDER BY position, flow.id"
        )
        found: dict[int, FlowRow] = {}
        with store_errors(self._path):
            for row in self._connection.execute(query, (*metrics, run_id)):
                flow = found.setdefault(
                    row["id"],
                    FlowRow(row["trial_id"], row["point"], row["name"], row["backend"],
                            row["planned"], {}, bool(row["has_rate"])),
                )  # fmt: skip
                if row["counts"] and row["metric"] is not None:
                    flow.figures[row["way"], row["metric"]] = row["value"]
        return list(found.values())

    def first_failure(self, run_id: int) -> str:
        """Return why the first trial of a run that failed did so; empty if none has."""
        query = (
            f"SELECT error FROM trial WHERE run_id = ? AND status IN {FAILURES} AND error <> ''"
            " ORDER BY position LIMIT 1"
        )
        with store_errors(self._path):
            found = self._connection.execute(query, (run_id,)).fetchone()
        return found["error"] if found is not None else ""

    def planned_ends(self, run_id: int) -> list[PlannedEnds]:
        """Return the ends of each planned flow of a run, in order of execution."""
        query = "SELECT point, flows FROM trial WHERE run_id = ? ORDER BY position"
        with store_errors(self._path):
            rows = self._connection.execute(query, (run_id,)).fetchall()
        return [
            PlannedEnds(row["point"], flow.name, flow.source, flow.to, flow.direction)
            for row in rows
            for flow in self._json(row["flows"], tuple[PlannedFlow, ...])
        ]

    def ended_flows(self, run_id: int) -> list[EndedFlow]:
        """Return the flows of the trials of a run that have ended, in order of execution."""
        columns = self._connection.execute("PRAGMA table_info(trial)")
        has_links = "links" in {row["name"] for row in columns}
        broke = "instr(links, '\"kept\": false')" if has_links else "0"
        query = (
            "SELECT point, coalesce(trial.started_time, trial.finished_time),"
            " CASE trial.status WHEN 'ok' THEN '' ELSE"
            " coalesce(nullif(trial.error, ''), nullif(flow.error, ''), trial.status) END,"
            f" flow.id, name, source, target, flow.status IN {COUNTED}, {broke}, attempt, trial.id,"
            " CASE WHEN flow.id IS NULL THEN flows END"
            " FROM trial LEFT JOIN flow ON trial_id = trial.id WHERE run_id = ?"
            f" AND trial.status IN ('ok', {FAILURES[1:]} ORDER BY position"
        )
        cursor = self._connection.cursor()
        cursor.row_factory = None
        with store_errors(self._path):
            rows = cursor.execute(query, (run_id,)).fetchall()
        last = {row[10]: row[9] for row in rows if row[9] is not None and row[9] > 1}
        found: list[EndedFlow] = []
        for point, at, why, flow, name, source, to, counts, kept_not, attempt, trial, plan in rows:
            if flow is None:
                why = why or "not measured"
                found += (
                    (point, at, why, None, flow.name, flow.source, flow.to, False)
                    for flow in self._json(plan, tuple[PlannedFlow, ...])
                )
            elif kept_not:
                why = why or "the lab did not keep its promises"
                found.append((point, at, why, flow, name, source, to, False))
            elif attempt == last.get(trial, 1):
                found.append((point, at, why, flow, name, source, to, bool(counts)))
        return found

    def has_figure(self, first: int, last: int, metric: str) -> bool:
        """Return whether any of some flows has a figure of a metric."""
        query = "SELECT 1 FROM figure WHERE flow_id BETWEEN ? AND ? AND metric = ? LIMIT 1"
        with store_errors(self._path):
            found = self._connection.execute(query, (first, last, metric)).fetchone()
        return found is not None

    def figures_between(
        self, first: int, last: int, metrics: Collection[str]
    ) -> list[tuple[int, str, str, float]]:
        """Return flow, direction, metric and value of the figures of some flows that can be."""
        columns = self._connection.execute("PRAGMA table_info(figure)")
        knows = "broken" in {row["name"] for row in columns}
        can_be = "AND (broken IS NULL OR rejected IS NOT NULL)" if knows else ""
        query = (
            "SELECT flow_id, direction, metric, value FROM figure WHERE flow_id BETWEEN ? AND ?"
            f" AND metric IN ({','.join('?' * len(metrics))}) {can_be}"
        )
        cursor = self._connection.cursor()
        cursor.row_factory = None
        with store_errors(self._path):
            return cursor.execute(query, (first, last, *metrics)).fetchall()

    def sources(self, trial_id: int, attempt: int | None = None) -> dict[int, SeriesSource]:
        """Return the series of an attempt of a trial, or of its last, by id."""
        with store_errors(self._path):
            trial = self._connection.execute("SELECT flows FROM trial WHERE id = ?", (trial_id,))
            if (planned := trial.fetchone()) is None:
                raise run_gone(self._path)
            flows = self._connection.execute(
                f"SELECT id, name, backend, requested FROM flow {OF_ATTEMPT}",
                {"trial": trial_id, "attempt": attempt},
            ).fetchall()
            flow_series = [
                (flow, self._connection.execute(
                    "SELECT id, role, stream, direction, metrics FROM series WHERE flow_id = ?",
                    (flow["id"],),
                ).fetchall())
                for flow in flows
            ]  # fmt: skip
        delays = {
            flow.name: flow.delay_s for flow in self._json(planned[0], tuple[PlannedFlow, ...])
        }
        found: dict[int, SeriesSource] = {}
        for flow, series in flow_series:
            asked = self._json(flow["requested"], dict[str, Any]).get("streams")
            streams = asked if isinstance(asked, int) else 1
            for series_id, role, stream, direction, metrics in series:
                found[series_id] = SeriesSource(
                    flow["name"], flow["backend"], role, stream, direction,
                    self._json(metrics, tuple[str, ...]), delays.get(flow["name"], 0.0), streams,
                )  # fmt: skip
        return found

    def _json(self, text: object, kind: type[T]) -> T:
        try:
            return from_json(text, kind)
        except ValueError as error:
            raise damaged(self._path, "a trial's flows") from error

    def metrics(self, run_id: int) -> list[str]:
        """Return every metric that a sample of a run has, in alphabetical order."""
        query = (
            "SELECT DISTINCT metrics FROM series WHERE flow_id IN (SELECT flow.id FROM flow"
            " JOIN trial ON trial.id = trial_id WHERE run_id = ?)"
        )
        with store_errors(self._path):
            rows = self._connection.execute(query, (run_id,)).fetchall()
        return sorted({name for (names,) in rows for name in self._json(names, tuple[str, ...])})

    def columns(
        self, flows: Collection[int], metrics: Collection[str] | None = None
    ) -> Iterator[SeriesColumns]:
        """Yield the series of some flows with all samples, in order of arrival.

        With ``metrics`` only those of them that a series has, and no series without any. The many
        samples of a stream may come in several pieces.
        """
        layouts = self._layouts(flows, metrics)
        if not layouts:
            return
        ids = ",".join(map(str, layouts))
        # By id, which is the order in the file, and not by the index of series: each of its entries
        # leads to another place.
        query = (
            "SELECT series_id, start_s, end_s, omitted, data FROM sample NOT INDEXED"
            f" WHERE id > ? AND id <= ? AND series_id IN ({ids}) ORDER BY id"
        )
        cursor = self._connection.cursor()
        cursor.row_factory = None  # plain tuples, which zip() turns into columns
        with store_errors(self._path):
            cursor.execute(query, self._extent(f"id IN ({ids})", {}))
        batch = min(EACH * len(layouts), MOST_AT_ONCE)
        while found := self._piece(cursor, batch):
            for series_id, packed in sorted(found.items()):
                yield self._columns(series_id, layouts[series_id], packed)

    def _layouts(
        self, flows: Collection[int], metrics: Collection[str] | None
    ) -> dict[int, _Layout]:
        query = "SELECT id, flow_id, role, stream, direction, metrics FROM series WHERE flow_id = ?"
        with store_errors(self._path):
            rows = [row for flow in flows for row in self._connection.execute(query, (flow,))]
        found = {}
        for series_id, flow_id, role, stream, direction, named in rows:
            names = self._json(named, tuple[str, ...])
            wanted = {n: at for at, n in enumerate(names) if metrics is None or n in metrics}
            if wanted:
                found[series_id] = _Layout(flow_id, role, stream, direction, wanted, len(names))
        return found

    def _piece(self, cursor: sqlite3.Cursor, batch: int) -> dict[int, _Packed]:
        """Read the next rows, by series; ``batch`` of them are in memory as Python's objects."""
        found: dict[int, _Packed] = {}
        left = PIECE
        try:
            with store_errors(self._path), without_collector():
                while left > 0 and (rows := cursor.fetchmany(batch)):
                    left -= len(rows)
                    by_series: defaultdict[int, list[tuple[Any, ...]]] = defaultdict(list)
                    for row in rows:
                        by_series[row[0]].append(row)
                    for series_id, mine in by_series.items():
                        own = found.get(series_id)
                        if own is None:
                            own = found[series_id] = _Packed(
                                array("d"), array("d"), bytearray(), bytearray()
                            )
                        _, starts_s, ends_s, omitted, data = zip(*mine, strict=True)
                        own.starts_s.extend(starts_s)
                        own.ends_s.extend(ends_s)
                        own.omitted.extend(omitted)
                        own.data.extend(b"".join(data))
        except (TypeError, ValueError) as error:
            raise damaged(self._path, "samples of a flow") from error
        return found

    def _columns(self, series_id: int, layout: _Layout, packed: _Packed) -> SeriesColumns:
        values = array("d")
        if len(packed.data) != len(packed.starts_s) * layout.width * values.itemsize:
            raise damaged(self._path, f"samples of series {series_id}")
        values.frombytes(packed.data)
        if sys.byteorder == "big":
            values.byteswap()
        return SeriesColumns(
            layout.flow_id, layout.role, layout.stream, layout.direction,
            packed.starts_s, packed.ends_s, packed.omitted,
            {name: values[at :: layout.width] for name, at in layout.places.items()},
        )  # fmt: skip

    def extent(self, trial_id: int, attempt: int | None = None) -> tuple[int, int]:
        """Return the ids before the first and of the last sample of an attempt, or of the last."""
        of_attempt = f"flow_id IN (SELECT id FROM flow {OF_ATTEMPT})"
        with store_errors(self._path):
            return self._extent(of_attempt, {"trial": trial_id, "attempt": attempt})

    def _extent(self, where: str, chosen: Mapping[str, int | None]) -> tuple[int, int]:
        query = (
            "SELECT min((SELECT min(id) FROM sample WHERE series_id = series.id)),"
            " max((SELECT max(id) FROM sample WHERE series_id = series.id))"
            f" FROM series WHERE {where}"
        )
        first, last = self._connection.execute(query, chosen).fetchone()
        return (first - 1, last) if last else (0, 0)

    def events(self, trial_id: int, attempt: int | None = None) -> list[Happened]:
        """Return what happened within the flows of an attempt, or of the last, in order of time."""
        query = (
            "SELECT name, event.direction, metric, kind, at_s FROM event"
            f" JOIN flow ON flow.id = flow_id {OF_ATTEMPT} ORDER BY at_s, event.id"
        )
        table = "SELECT count(*) FROM sqlite_master WHERE name = 'event'"
        with store_errors(self._path):
            if not self._connection.execute(table).fetchone()[0]:
                return []  # of an earlier program
            chosen = {"trial": trial_id, "attempt": attempt}
            return [Happened(*row) for row in self._connection.execute(query, chosen)]

    def batches(
        self, series: Collection[int], after: int, last: int
    ) -> Iterator[tuple[int, list[PackedSample]]]:
        """Yield the samples with ids above ``after``, up to ``last``, in batches, oldest first.

        Each comes with the id to go on from. Samples of the omitted part, and of other series
        than those given, are left out.
        """
        # By id and not by series: SQLite would sort all of them first.
        query = (
            "SELECT id, series_id, start_s, end_s, data, omitted FROM sample"
            " WHERE id > ? AND id <= ? ORDER BY id LIMIT ?"
        )
        while after < last:
            with store_errors(self._path):
                rows = self._connection.execute(query, (after, last, BATCH)).fetchall()
            after = rows[-1][0] if len(rows) == BATCH else last
            yield (
                after,
                [(r[1], r[2], r[3], r[4]) for r in rows if r[1] in series and not r[5]],
            )
