"""Figures as widgets: the plots of a trial, and its tiles."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from types import MappingProxyType
from typing import Literal

from msgspec.structs import replace
from textual import events
from textual.message import Message
from textual.timer import Timer

from benchctl.report.figures.figure import PictureKind
from benchctl.report.lines.spans import Line
from benchctl.report.timeline.traces import TrialLines
from benchctl.tui.draw.plot.charts import (
    Expected,
    SamplesOf,
    charts_of,
    compose,
    no_samples,
    rescaled,
)
from benchctl.tui.draw.plot.choice import Choice
from benchctl.tui.draw.plot.crosshair import LEFT, PlotFrames, crossed, plot_frames, values_at
from benchctl.tui.draw.plot.plot import MARGIN
from benchctl.tui.draw.views.tiles import TALL, Tile, lay_out_tiles
from benchctl.tui.model.zoom import View
from benchctl.tui.timers import once
from benchctl.tui.widgets.painted import Painted, Scrolling

# If only samples came, drawing takes at most this share of the time.
MOST_TIME = 0.05
# A dot covers some time, so drawing more often would show nothing new. But figures are read too.
SLOWEST_S = 1.0
# A mouse tells of every cell that it crosses; a crosshair is drawn this often at most.
FRAME_S = 0.04


class ChartView(Scrolling, can_focus=False):
    """Plots one above the other, with a crosshair where the mouse is, or a key has put it."""

    class Pinned(Message):
        """The crosshair stays where it was put by a click, and is moved by keys."""

    class Turned(Message):
        """The wheel was turned: what its ``action`` does by a key is wanted."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    _traces: TrialLines | None = None
    _choice = Choice()
    view = View(0.0, 1.0)
    """The part of time that is shown."""
    _expected: Expected = MappingProxyType({})
    _samples_of: SamplesOf = staticmethod(no_samples)
    _shown_at = -math.inf
    _cost_s = 0.0
    _drawn: tuple[tuple[int, int], Sequence[Line]] | None = None
    """The plots without a crosshair, and their size."""
    _frames: PlotFrames | None = None
    cross_s: float | None = None
    """Where the crosshair is, in seconds from the trial's start."""
    _soon: Timer | None = None
    """Draws the crosshair, once for all moves of the mouse in the meantime."""
    pinned = False
    """Whether the crosshair stays when the mouse moves."""

    @property
    def dots(self) -> int:
        """How many columns of dots a curve has."""
        return max(1, (self.size.width - MARGIN - 2) * self._choice.glyphs.columns)

    def show(
        self, traces: TrialLines | None, choice: Choice, view: View, expected: Expected,
        samples_of: SamplesOf, now: float, *, urgent: bool,
    ) -> None:  # fmt: skip
        """Show lines at a moment of the clock.

        The effect of a key is ``urgent``; new samples in the same picture are not.
        """
        before = replace(self.view, until_s=view.until_s)
        if not urgent and self._traces is traces and (self._choice, before) == (choice, view):
            dot_s = min(SLOWEST_S, (view.to_s - view.from_s) / self.dots)
            if now - self._shown_at < max(dot_s, self._cost_s / MOST_TIME):
                return
        self._traces, self._choice, self.view, self._shown_at = traces, choice, view, now
        self._expected, self._samples_of = expected, samples_of
        self._drawn = None
        self.repaint()

    def rescaled(self, how: Literal["zoom", "pan"], steps: int) -> Choice:
        """Return the choice with another part of the first plot's values."""
        if self._traces is None:
            return self._choice
        size = (self.size.width, self.size.height)
        if self._choice.shape is not PictureKind.TIME:
            from benchctl.tui.draw.plot.shares import rescaled_shares

            of, width = self._samples_of, self.size.width
            return rescaled_shares(self._traces, self._choice, of, width, how, steps)
        return rescaled(self._traces, self._choice, self.view, *size, self._expected, how, steps)

    def paint(self, width: int, height: int) -> Sequence[Line]:
        if self._drawn is None or self._drawn[0] != (width, height):
            # Not what passed meanwhile: a machine that stood still would hold the plots.
            begun = time.thread_time()
            lines = self._plots(width, height)
            self._cost_s = time.thread_time() - begun
            self._drawn, self._frames = ((width, height), lines), None
        _, plots = self._drawn
        if self.cross_s is None or (where := self._where(width, height)) is None:
            return plots
        return crossed(plots, where, self.cross_s)

    def _plots(self, width: int, height: int) -> Sequence[Line]:
        traces, choice, of = self._traces, self._choice, self._samples_of
        if traces is not None and choice.shape is not PictureKind.TIME:
            from benchctl.tui.draw.plot.shares import draw_shares

            return draw_shares(traces, choice, of, width, height)
        return compose(traces, choice, self.view, width, height, self._expected, of)

    # --- the crosshair --------------------------------------------------------------------

    def _where(self, width: int, height: int) -> PlotFrames | None:
        """Return where the plots over time are that are drawn; None if there are none."""
        if self._choice.shape is not PictureKind.TIME:
            return None
        if self._frames is None and self._traces is not None:
            charts = charts_of(self._traces, self._choice, self.view, width, height, self._expected)
            self._frames = plot_frames(charts, self.view, width, self._choice.glyphs)
        return self._frames

    def pin(self) -> None:
        """Put the crosshair at the latest sample in sight, or where the mouse has it."""
        if self.cross_s is None:
            self.move(-1)
        self.pinned = self.cross_s is not None

    def move(self, steps: int) -> None:
        """Move the crosshair by columns that have samples."""
        where = self._where(self.size.width, self.size.height)
        if where is not None:
            self.cross_s = where.moved(self.cross_s, steps)
            self.repaint()

    def unpin(self) -> None:
        """Take the crosshair away."""
        self.pinned, self.cross_s = False, None
        self.repaint()

    @property
    def values(self) -> Sequence[Sequence[str]]:
        """What the crosshair reads: metric, mark, line, value, range and end of each interval."""
        where = self._where(*self.size)
        return values_at(where, self.cross_s) if where and self.cross_s is not None else ()

    def _time_at(self, event: events.MouseEvent) -> float | None:
        """Return the time below the mouse; None beside the plots."""
        place, where = event.get_content_offset(self), self._where(*self.size)
        return where.time_at(place.x) if place is not None and where is not None else None

    def _cross(self) -> None:
        self._soon = None
        self.repaint()

    def _point(self, time_s: float | None) -> None:
        if self.pinned or time_s == self.cross_s:
            return
        self.cross_s = time_s
        if self._soon is None:
            self._soon = once(self, FRAME_S, self._cross)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Read the values below the mouse."""
        self._point(self._time_at(event))

    def on_leave(self) -> None:
        """Take away what the mouse has put."""
        self._point(None)

    def on_click(self, event: events.Click) -> None:
        """Put the crosshair here, for the keys to move."""
        time_s = self._time_at(event)
        if time_s is not None:
            self.cross_s, self.pinned = time_s, True
            self.repaint()
            self.post_message(self.Pinned())

    def _turn(self, event: events.MouseEvent, steps: int) -> None:
        """Zoom in time, over the scale in values; sideways, or with shift, go through time."""
        place = event.get_content_offset(self)
        if event.shift:
            self.action_scroll(steps)
        elif place is not None and place.x < LEFT:
            self.post_message(self.Turned(f"values('zoom', {-steps})"))
        else:
            self.post_message(self.Turned(f"zoom({-steps})"))

    def action_scroll(self, columns: int) -> None:
        """Go through time."""
        self.post_message(self.Turned(f"seek({columns})"))


class Tiles(Painted):
    """The tiles as a widget, with tall digits if it is four lines high."""

    _tiles: Sequence[Tile] = ()

    def show(self, tiles: Sequence[Tile]) -> None:
        """Show these tiles, the most important one first."""
        if tiles != self._tiles:
            self._tiles = tiles
            self.repaint()

    def paint(self, width: int, height: int) -> Sequence[Line]:
        return lay_out_tiles(self._tiles, width, tall=height > TALL) if self._tiles else []
