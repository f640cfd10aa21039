"""Runs a planned run, trial after trial, and keeps the store current."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from benchctl.backends import Registry
from benchctl.engine.flow import FAILED, INTERRUPTED, OK, SKIPPED
from benchctl.engine.site import Site, site_of
from benchctl.engine.tools import Toolbox
from benchctl.engine.trial import Attempts, Signals, TrialRunner
from benchctl.errors import BenchctlError, LabError, MissingError, StoreError
from benchctl.hosts import facts
from benchctl.hosts.spawn import LocalSpawner
from benchctl.metrics import Direction
from benchctl.plan.bind import FlowPlan, Trial
from benchctl.store.locks import Liveness, Turn
from benchctl.store.read import Reader, Run
from benchctl.store.read import Trial as RecordedTrial
from benchctl.store.record import Recorder
from benchctl.store.schema import OPEN

# A sample is in the store within half a second of its arrival: twice as often as that needs.
FLUSH_S = 0.25
# How often a run that waits for another's end looks again.
TURN_S = 0.25
RUNNING = "running"


class Runner:
    """Runs the open trials of one run."""

    def __init__(self, store: Path, run_id: int, registry: Registry) -> None:
        self._store = store
        self._run_id = run_id
        self._registry = registry
        self.signals = Signals()
        """What the outside may ask: to stop the run, or to skip the trial."""

    async def run(self) -> str:
        """Measure what is open; returns the run's final status.

        Raises BenchctlError when the run cannot go on; what was measured is in the store.
        """
        with (
            Liveness(self._store).hold(self._run_id) as turn,
            closing(Recorder(self._store, self._run_id)) as recorder,
            closing(Reader(self._store)) as reader,
        ):
            return await self._run(recorder, reader, turn)

    async def _run(self, recorder: Recorder, reader: Reader, turn: Turn) -> str:
        run = reader.run(self._run_id)
        started = run.started_time or time.time()
        recorder.update_run(status=RUNNING, started_time=started, error="", runner_pid=os.getpid())
        for store in _other_stores(self._store):
            text = (
                f"another run is being measured here, in store {store}: the two affect each other"
            )
            recorder.add_note(text, "warning", time.time(), None, None)
        flusher = asyncio.ensure_future(self._flush(recorder))
        measuring = asyncio.ensure_future(self._measure(recorder, reader, run, turn))
        try:
            await asyncio.wait([flusher, measuring], return_when=asyncio.FIRST_COMPLETED)
            if flusher.done():  # the store failed: end the tools in order, then say so
                self.signals.stop.set()
                await asyncio.gather(measuring, return_exceptions=True)
                flusher.result()
            measuring.result()
        except StoreError:
            raise  # which cannot be written down
        except Exception as error:
            what = error.message if isinstance(error, BenchctlError) else f"a bug: {error!r}"
            recorder.update_run(status=FAILED, error=what, finished_time=time.time())
            raise
        finally:
            flusher.cancel()
        while not recorder.flush() and not self.signals.stop.is_set():
            await asyncio.sleep(FLUSH_S)
        recorder.settle()
        statuses = reader.statuses(run.id)
        if statuses & set(OPEN):
            status = INTERRUPTED
        else:
            status = OK if statuses <= {OK, SKIPPED} else FAILED
        recorder.update_run(status=status, finished_time=time.time())
        return status

    async def _flush(self, recorder: Recorder) -> None:
        while True:
            await asyncio.sleep(FLUSH_S)
            recorder.flush()

    async def _measure(self, recorder: Recorder, reader: Reader, run: Run, turn: Turn) -> None:
        site = site_of(run.settings, self._registry, lambda text: _note(recorder, text))
        try:
            async with LocalSpawner() as spawner:
                await self._measure_on(site, spawner, recorder, reader, run, turn)
        finally:
            await site.close()

    async def _measure_on(
        self,
        site: Site,
        spawner: LocalSpawner,
        recorder: Recorder,
        reader: Reader,
        run: Run,
        turn: Turn,
    ) -> None:
        settings = run.settings
        about = facts.collect()
        recorder.update_run(facts=about)
        toolbox = Toolbox(
            spawner, lambda versions: recorder.update_run(facts={**about, "tools": versions})
        )
        runner = TrialRunner(
            self._registry,
            site,
            toolbox,
            spawner,
            recorder,
            Attempts(settings["attempts"], settings["backoff_s"]),
            self.signals,
            time.time,
            run.seed,
        )
        first = True
        position = 0
        while (row := reader.next_open(run.id, position)) is not None:
            if not first and settings["pause_s"]:
                await self._rest(settings["pause_s"])
            if not await self._take(turn, recorder):
                return
            try:
                self.signals.skip.clear()
                await runner.run(row.id, _trial(row), reader.attempts(row.id) + 1)
            except (LabError, MissingError) as error:
                # What is wrong from the start is wrong with the whole run.
                if first:
                    raise
                now = time.time()
                recorder.update_trial(row.id, status=FAILED, error=error.message, finished_time=now)
            finally:
                turn.give_back()
            first = False
            position = row.position + 1

    async def _take(self, turn: Turn, recorder: Recorder) -> bool:
        """Wait for the turn to measure; False when the user ended the waiting."""
        told = False
        while not self.signals.stop.is_set():
            if turn.take():
                return True
            if not told:
                told = True
                _note(recorder, "another run is being measured; this one starts when it ends")
            await self._rest(TURN_S)
        return False

    async def _rest(self, length_s: float) -> None:
        try:
            await asyncio.wait_for(self.signals.stop.wait(), length_s)
        except TimeoutError:
            return


def _other_stores(own: Path) -> list[str]:
    """Return the stores that other runners of this machine write to, as far as /proc shows them.

    Runs of one store take turns; those of two stores know nothing of each other.
    """
    found = set()
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = file.read_bytes().split(b"\0")
        except OSError:  # it has ended, or is hidden
            continue
        if b"benchctl.engine" in words[1:-2]:
            found.add(os.fsdecode(words[words.index(b"benchctl.engine") + 1]))
    return sorted(found - {os.fspath(own)})


def _note(recorder: Recorder, text: str) -> None:
    recorder.add_note(text, "info", time.time(), None, None)


def _trial(row: RecordedTrial) -> Trial:
    flows = tuple(_flow(flow) for flow in row.flows)
    return Trial(
        row.position, row.repeat, row.point, flows, row.lab, row.duration_s, row.deadline_s
    )


def _flow(data: Mapping[str, Any]) -> FlowPlan:
    return FlowPlan(**{**data, "direction": Direction(data["direction"])})
