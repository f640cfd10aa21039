"""Keeps what is known of one run up to date from the store, in small steps.

A screen calls `poll` several times a second and gives it a few hundredths of a second; a long
history is read over many calls, and keys are answered in between.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from benchctl.errors import StoreError
from benchctl.store.bulk import Bulk
from benchctl.store.follow import Follower, RunEvent
from benchctl.store.read import Reader
from benchctl.tui.lines import Lines
from benchctl.tui.runview import RunView
from benchctl.tui.traces import Traces, Window

# A runner that dies changes nothing in the store: this often someone has to look.
LOOK_S = 1.0
# A plot of nothing still needs an axis.
LEAST_SPAN_S = 1.0


class Feed:
    """One run as it is known so far: its view, and the lines of the trial that is looked at.

    Methods raise StoreError when the store cannot be read; the next call tries again.
    """

    def __init__(
        self, path: Path, run_id: int, timer: Callable[[], float] = time.perf_counter
    ) -> None:
        self._reader = Reader(path)
        self._bulk = Bulk(path)
        self._timer = timer
        self._follower = Follower(self._reader, run_id, samples=False)
        self._events: Iterator[RunEvent] | None = None
        self._changes = -1
        self._looked = 0.0
        self.view = RunView(self._reader.run(run_id), self._bulk.outlines(run_id))
        self.position = -1
        """The trial that is looked at; -1 for none."""
        self._lines: Lines | None = None

    def close(self) -> None:
        """Close the store."""
        self._reader.close()
        self._bulk.close()

    def poll(self, budget_s: float) -> bool:
        """Read what is new, for about ``budget_s``; returns whether there is more to read."""
        try:
            return self._poll(self._timer() + budget_s)
        except StoreError:
            self._events, self._changes = None, -1
            if self._lines is not None:
                self._lines.give_up()
            raise

    def _poll(self, until: float) -> bool:
        changed = self._has_changed()
        if self._events is None and changed:
            self._events = self._follower.poll()
        for event in self._events or ():
            self.view.apply(event)
            if self._timer() > until:
                return True
        self._events = None
        return self._lines is not None and self._lines.read(
            changed=changed,
            finished=self.view.trials[self.position].finished,
            timer=self._timer,
            until=until,
        )

    def _has_changed(self) -> bool:
        changes, now = self._reader.changes(), self._timer()
        if changes == self._changes and now - self._looked < LOOK_S:
            return False
        self._changes, self._looked = changes, now
        return True

    @property
    def traces(self) -> Traces | None:
        """The lines of the trial that is looked at."""
        return self._lines.traces if self._lines is not None else None

    @property
    def share_read(self) -> float:
        """How much of the trial's samples was read, from 0 to 1."""
        return self._lines.share_read if self._lines is not None else 1.0

    def look_at(
        self, position: int, window: Window | None = None, split: Collection[str] = ()
    ) -> None:
        """Keep the lines of a trial: within a window, with the flows of ``split`` by stream."""
        outline = self.view.trials[position].outline
        window = window or Window(0.0, max(outline.duration_s, LEAST_SPAN_S))
        before = self._lines
        if (
            before is not None
            and position == self.position
            and (before.window, before.split) == (window, frozenset(split))
        ):
            return
        self._lines = Lines(self._bulk, outline.id, window, split)
        if before is not None and position == self.position:
            self._lines.show_meanwhile(before.traces)
        self.position = position
