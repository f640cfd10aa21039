"""Runs a planned run, trial after trial, and keeps the store current."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchctl.api import Direction
from benchctl.backends import Registry
from benchctl.engine.flow import INTERRUPTED, OK
from benchctl.engine.site import Site, site_of
from benchctl.engine.tools import Toolbox
from benchctl.engine.trial import Attempts, Signals, TrialRunner
from benchctl.errors import BenchctlError, StoreError
from benchctl.hosts import facts
from benchctl.hosts.spawn import LocalSpawner
from benchctl.profile.bind import FlowPlan, Trial
from benchctl.store import read
from benchctl.store.locks import Liveness
from benchctl.store.record import Recorder

# A sample is in the store within half a second of its arrival: twice as often as that needs.
FLUSH_S = 0.25
RUNNING, FAILED = "running", "failed"
# What still has to be measured: never begun, or cut short.
OPEN = ("planned", "running", "interrupted")


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
        with Liveness(self._store).hold(self._run_id):
            recorder = Recorder(self._store, self._run_id)
            try:
                return await self._run(recorder)
            finally:
                recorder.close()

    async def _run(self, recorder: Recorder) -> str:
        reader = read.Reader(self._store)
        run = reader.run(self._run_id)
        trials = list(reader.trials(run.id))
        started = run.started_time or time.time()
        recorder.update_run(status=RUNNING, started_time=started, error="", runner_pid=os.getpid())
        flusher = asyncio.ensure_future(self._flush(recorder))
        measuring = asyncio.ensure_future(self._measure(recorder, reader, run, trials))
        try:
            await asyncio.wait([flusher, measuring], return_when=asyncio.FIRST_COMPLETED)
            if flusher.done():  # the store failed: end the tools in order, then say so
                self.signals.stop.set()
                await asyncio.gather(measuring, return_exceptions=True)
                flusher.result()
            measuring.result()
        except BenchctlError as error:
            if not isinstance(error, StoreError):
                recorder.update_run(
                    status=FAILED, error=f"{error.message}", finished_time=time.time()
                )
            raise
        finally:
            flusher.cancel()
        statuses = {trial.status for trial in reader.trials(run.id)}
        reader.close()
        if self.signals.stop.is_set() or statuses & set(OPEN):
            status = INTERRUPTED
        else:
            status = OK if statuses <= {OK, "skipped"} else FAILED
        recorder.update_run(status=status, finished_time=time.time())
        return status

    async def _flush(self, recorder: Recorder) -> None:
        while True:
            await asyncio.sleep(FLUSH_S)
            recorder.flush()

    async def _measure(
        self, recorder: Recorder, reader: read.Reader, run: read.Run, trials: list[read.Trial]
    ) -> None:
        site = site_of(run.settings, self._registry, lambda text: self._note(recorder, text))
        try:
            async with LocalSpawner() as spawner:
                await self._measure_on(site, spawner, recorder, reader, run, trials)
        finally:
            await site.close()

    def _note(self, recorder: Recorder, text: str) -> None:
        recorder.add_note(text, "info", time.time(), None, None)

    async def _measure_on(
        self,
        site: Site,
        spawner: LocalSpawner,
        recorder: Recorder,
        reader: read.Reader,
        run: read.Run,
        trials: list[read.Trial],
    ) -> None:
        settings = run.settings
        toolbox = Toolbox(spawner)
        about = facts.collect()
        recorder.update_run(facts=about)
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
        resting = False
        for row in trials:
            if row.status not in OPEN or self.signals.stop.is_set():
                continue
            if resting and settings["pause_s"]:
                await self._rest(settings["pause_s"])
            resting = True
            self.signals.skip.clear()
            await runner.run(row.id, _trial(row), reader.attempts(row.id) + 1)
        recorder.update_run(facts={**about, "tools": toolbox.versions()})

    async def _rest(self, length_s: float) -> None:
        try:
            await asyncio.wait_for(self.signals.stop.wait(), length_s)
        except TimeoutError:
            return


def _trial(row: read.Trial) -> Trial:
    flows = tuple(_flow(flow) for flow in row.flows)
    return Trial(
        row.position, row.repeat, row.point, flows, row.lab, row.duration_s, row.deadline_s
    )


def _flow(data: Mapping[str, Any]) -> FlowPlan:
    return FlowPlan(**{**data, "direction": Direction(data["direction"])})
