"""The rows of the history: every run of a store, read again only where something has changed.

To read ten thousand runs with their figures takes two seconds. So the newest are shown first, and a
change of the store costs no more than what has changed.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from typing import NamedTuple

from msgspec.structs import replace

from benchctl.report.past import HistoryEntry, KeyFigure, found_figure, key_figure, past_of
from benchctl.report.report import read_report
from benchctl.run.record import Run
from benchctl.run.status import Status
from benchctl.store.bulk import Bulk
from benchctl.store.read import Reader, RunStamp
from benchctl.tui.draw.text.columns import Cells, Column
from benchctl.tui.draw.views.runs import run_columns, run_row

# More than a screen has, and as many as are read within a twentieth of a second.
FIRST = 100


class PastRows(NamedTuple):
    """The runs that were read, the newest first, each with its row; ``every`` are in the store."""

    past: Sequence[HistoryEntry]
    cells: Sequence[Cells]
    columns: Sequence[Column]
    every: int


class PastReader:
    """Reads the runs of a store, and keeps what it has read of those that have ended."""

    def __init__(self, first: int | None = None) -> None:
        """Read the ``first`` newest at first; None: a screenful."""
        self._first = FIRST if first is None else first
        self._keys: dict[int, tuple[RunStamp, KeyFigure]] = {}
        """The key figures, each with the stamp of its run."""
        self._rows: dict[int, tuple[object, HistoryEntry, Cells]] = {}
        """Past and row of each run, with all that they depend on."""

    def read(self, reader: Reader) -> Generator[PastRows, None, None]:
        """Yield the newest runs, if the others take a while, and then all. Raises StoreError."""
        stamps, baselines = reader.stamps(), reader.baselines()
        with closing(Bulk(reader.path)) as bulk:
            for part in ([*stamps][: self._first], [*stamps]):
                rows = self._read(reader, bulk, part, stamps, baselines)
                yield PastRows(
                    [past for _, past, _ in rows],
                    [cells for _, _, cells in rows],
                    run_columns([cells for _, _, cells in rows]),
                    len(stamps),
                )
                if len(stamps) <= self._first:
                    return

    def _read(
        self, reader: Reader, bulk: Bulk, ids: Sequence[int], stamps: Mapping[int, RunStamp],
        baselines: Mapping[str, int],
    ) -> list[tuple[object, HistoryEntry, Cells]]:  # fmt: skip
        depends, missing = {}, []
        for run_id in ids:
            stamp = stamps[run_id]
            beside = stamps.get(baselines.get(stamp.profile, 0))
            depends[run_id] = baselines.get(stamp.profile), stamp, beside
            known = self._rows.get(run_id)
            goes_on = not all(
                either.status.has_ended for either in (stamp, beside) if either is not None
            )
            if known is None or known[0] != depends[run_id] or goes_on:
                missing.append(run_id)
        if missing:
            runs = reader.runs_of([*{*missing, *baselines.values()}])
            keys = {run.id: self._key(reader, bulk, run, stamps.get(run.id)) for run in runs}
            wanted = {*missing}
            for past in past_of([run for run in runs if run.id in wanted], keys, baselines):
                row = run_row(past, marked=False)
                self._rows[past.run.id] = depends[past.run.id], past, row
        return [self._rows[run_id] for run_id in ids if run_id in self._rows]

    def _key(self, reader: Reader, bulk: Bulk, run: Run, stamp: RunStamp | None) -> KeyFigure:
        known = self._keys.get(run.id)
        if known is not None and known[0] == stamp:
            return known[1]
        invalid = {
            trial.id
            for trial in (reader.trials(run.id) if run.settings.lab is not None else ())
            if not all(link["kept"] for link in trial.links)
        }
        if run.settings.search is not None:
            key = found_figure(read_report(reader, run))
        else:
            key = key_figure(run, bulk.flow_rows(run.id, run.vocabulary.wanted), invalid)
        if run.status is Status.FAILED:
            key = replace(key, failure=bulk.first_failure(run.id))
        if run.status.has_ended and stamp is not None:
            self._keys[run.id] = stamp, key
        return key
