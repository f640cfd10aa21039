"""Reads a run for its screen: a little at each tick, a long history in parts between keys."""

from __future__ import annotations

from time import monotonic

from textual.timer import Timer

from benchctl.errors import StoreError
from benchctl.tui.model.playhead import Playhead
from benchctl.tui.model.runview import RunView
from benchctl.tui.screens.base.page import AppContext, trouble
from benchctl.tui.screens.parts.lists import ListsPage
from benchctl.tui.timers import once

# The time that one tick may block the event loop, which runs several times before a key is handled;
# a long history is read in many ticks.
BUDGET_S = 0.005
# Pause between two parts of a long history, to handle keys, and to draw what one has changed.
BREATH_S = 0.005
AFTER_KEY_S = 0.05
# A part that was not read by then is asked for again: nothing depends on a single timer.
LOST_S = 1.0


class ReadingPage(ListsPage):
    """A screen of a run that is read while it is shown."""

    _playhead: Playhead

    def __init__(self, around: AppContext, run_id: int) -> None:
        super().__init__(around, run_id)
        self._problem = ""
        self._urgent = True
        self._goes_on = True
        """Whether the run of a frozen screen is under way."""
        self._next_part: Timer | None = None
        """What reads the next part of a long history, besides the ticks; None if all is read."""
        self._part_s = 0.0
        """When the last part was read, by the monotonic clock."""
        self._keyed = False
        """Whether a key has changed something since the last part was read."""

    @property
    def view(self) -> RunView:
        return self._feed.view

    @property
    def settled(self) -> bool:
        return (self._feed.settled and self._next_part is None) or bool(self._problem)

    def on_unmount(self) -> None:
        """Close the store; the run continues."""
        self._feed.close()

    def _show(self) -> None:
        """Show what was read."""
        raise NotImplementedError

    def _now(self) -> None:
        """Show the effect of a key at once."""
        self._urgent = self._keyed = True
        self._show()

    def _read_all(self) -> None:
        is_lost = monotonic() - self._part_s >= LOST_S
        if self._next_part is None or is_lost:
            self._urgent |= self._next_part is not None
            self._read_more()

    def _read_more(self) -> bool:
        """Read a part, and the next soon; returns whether there is one."""
        if self._next_part is not None:
            self._next_part.stop()
            self._next_part = None
        more = self._read()
        self._part_s = monotonic()
        if more:
            self._next_part = once(self, BREATH_S, self._read_on)
        return more

    def _read(self) -> bool:
        if not self.is_running:  # closed, but another screen still calls what waited for a refresh
            return False
        try:
            more = self._feed.poll(BUDGET_S, new=not self._playhead.frozen)
            self._goes_on = self._feed.under_way if self._playhead.frozen else True
            if self._playhead.live:
                self._playhead.keep_within(self._feed.begin, self.view.end_time)
        except StoreError as error:
            self._problem, self._urgent = trouble(error), True
            return False
        if self._problem:
            self._problem, self._urgent = "", True
        return more

    def _read_on(self) -> None:
        keyed, self._keyed = self._keyed, False
        if keyed:
            self._next_part = once(self, AFTER_KEY_S, self._read_part)
        else:
            self._read_part()

    def _read_part(self) -> None:
        if not self._read_more():
            self._urgent = True
            self._show()
