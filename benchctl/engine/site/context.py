"""What everything that measures a run needs of it, made once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from benchctl.engine.site.site import Site
from benchctl.hosts.hosts import Hosts
from benchctl.hosts.tasks import cancel
from benchctl.run.planned import Settings
from benchctl.run.record import Run
from benchctl.run.status import Status
from benchctl.store.read import Reader
from benchctl.store.record import Recorder

# What came late is on its way, when the reason for a wait is gone.
_LONGER_S = 5.0


class Signals:
    """Requests from outside to a running trial; once set, they stay set."""

    def __init__(self, stop: asyncio.Event | None = None) -> None:
        """``stop`` is that of the run, for one of several trials that run."""
        self.stop = stop or asyncio.Event()
        self.skip = asyncio.Event()


@dataclass(frozen=True)
class RunContext:
    """One run that is measured: its record in the store, its hosts, and who may end it."""

    run: Run
    recorder: Recorder
    reader: Reader
    hosts: Hosts
    site: Site
    signals: Signals
    wall: Callable[[], float] = time.time
    """The clock of this machine, in Unix time."""

    @property
    def settings(self) -> Settings:
        """What the profile says of the run as a whole."""
        return self.run.settings

    def of_trial(self) -> RunContext:
        """Return the same for one of several trials: it is skipped by itself."""
        return replace(self, signals=Signals(self.signals.stop))

    @property
    def cut_short(self) -> Status:
        """The status of what has not ended: as the user asked for, else timed out."""
        if self.signals.stop.is_set():
            return Status.INTERRUPTED
        return Status.SKIPPED if self.signals.skip.is_set() else Status.TIMED_OUT

    async def wait_or_stop(
        self,
        task: asyncio.Future[Any],
        timeout_s: float | None = None,
        longer: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Wait for a task, until the user or the time ends it; as long as it is to take ``longer``.

        Returns whether it was done by then; if not, it is cancelled, as it is with this wait.
        """
        waits = [asyncio.ensure_future(e.wait()) for e in (self.signals.stop, self.signals.skip)]
        is_done = False
        try:
            while True:
                done, _ = await asyncio.wait(
                    [task, *waits], timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
                )
                if done or not longer():
                    break
                timeout_s = _LONGER_S
            is_done = task in done
        finally:
            for wait in waits:
                wait.cancel()
            if not is_done:
                await cancel(task)
        return is_done

    def note(self, text: str, level: str = "info", trial_id: int | None = None) -> None:
        """Note something about the run, or about a trial, for the user."""
        self.recorder.add_note(text, level, self.wall(), trial_id, None)
