"""Which part of a trial's time the plots show, and which samples must be read for it."""

from __future__ import annotations

import math

from msgspec import Struct

from benchctl.report.timeline.series import CAPACITY
from benchctl.report.timeline.traces import TimeWindow

# The part moves in steps of this share of itself, so that the plot is stable in between.
STEP = 1 / 8
# A shorter part shows only single samples.
LEAST_S = 0.5


class View(Struct, frozen=True):
    """The part of time that a plot shows, in seconds from the trial's start."""

    from_s: float
    to_s: float
    until_s: float = math.inf
    """Nothing from here on is drawn: the position of a replay, or of a frozen screen."""


class Zoom(Struct, frozen=True):
    """The whole trial at level 0; at level 1 the half of it that ends at the moment shown.

    Or that begins at ``from_s``.
    """

    level: int = 0
    from_s: float | None = None

    def changed(self, steps: int, span_s: float) -> Zoom:
        """Return the zoom some steps in (or out), within useful limits."""
        most = max(0, math.floor(math.log2(max(1.0, span_s / LEAST_S))))
        return Zoom(min(most, max(0, self.level + steps)))

    def around(self, steps: int, span_s: float, view: View, time_s: float) -> Zoom:
        """Return the zoom some steps in (or out), with a time where it is in the present view."""
        zoom = self.changed(steps, span_s)
        share = (time_s - view.from_s) / (view.to_s - view.from_s)
        return Zoom(zoom.level, time_s - share * span_s / 2**zoom.level if zoom.level else None)

    @property
    def following(self) -> Zoom:
        """The zoom that goes with the moment shown."""
        return Zoom(self.level)

    def view(self, span_s: float, moment_s: float, until_s: float) -> View:
        """Return the part to show of a trial of ``span_s``, at a moment of it."""
        width_s = span_s / 2**self.level
        if self.from_s is not None:
            from_s = max(0.0, min(self.from_s, span_s - width_s))
            return View(from_s, from_s + width_s, until_s)
        step_s = width_s * STEP
        end_s = min(span_s, max(width_s, math.ceil(moment_s / step_s) * step_s))
        return View(end_s - width_s, end_s, until_s)


def window_for(
    view: View, dots: int, shortest_s: float, whole: TimeWindow, kept: TimeWindow
) -> TimeWindow:
    """Return the window to keep for a view: ``whole``, ``kept``, or a new one.

    A new one is needed if buckets would be wider than both the dots and the samples. It extends
    beyond the view on both sides, so that it serves for a while.
    """
    width_s = view.to_s - view.from_s
    bucket_s = max(width_s / dots, shortest_s if math.isfinite(shortest_s) else 0.0)
    for window in (whole, kept):
        covers = window.from_s <= view.from_s and view.to_s <= window.to_s
        if covers and window.span_s / CAPACITY <= bucket_s:
            return window
    from_s = max(0.0, view.from_s - width_s / 2)
    return TimeWindow(from_s, 2 * width_s, from_s + 2 * width_s)
