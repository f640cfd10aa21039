"""The plots of a trial as a widget that draws only changes, and only if visible."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

from benchctl.tui.draw.charts import Choice, compose
from benchctl.tui.draw.plot import MARGIN
from benchctl.tui.draw.spans import Line
from benchctl.tui.model.traces import Traces
from benchctl.tui.model.zoom import View
from benchctl.tui.widgets.painted import Painted

# If only samples came, drawing takes at most this share of the time.
MOST_TIME = 0.05
# A dot covers some time, so drawing more often would show nothing new. But figures are read too.
SLOWEST_S = 1.0


class ChartView(Painted):
    """Plots one above the other."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._traces: Traces | None = None
        self._choice = Choice()
        self._view = View(0.0, 1.0)
        self._shown_at = -math.inf
        self._cost_s = 0.0

    @property
    def dots(self) -> int:
        """How many columns of dots a curve has."""
        return max(1, (self.size.width - MARGIN - 2) * self._choice.glyphs.columns)

    def show(
        self, traces: Traces | None, choice: Choice, view: View, now: float, *, urgent: bool
    ) -> None:
        """Show lines at a moment of the clock.

        The effect of a key is ``urgent``; new samples in the same picture are not.
        """
        before = replace(self._view, until_s=view.until_s)
        if not urgent and self._traces is traces and (self._choice, before) == (choice, view):
            dot_s = min(SLOWEST_S, (view.to_s - view.from_s) / self.dots)
            if now - self._shown_at < max(dot_s, self._cost_s / MOST_TIME):
                return
        self._traces, self._choice, self._view, self._shown_at = traces, choice, view, now
        self.repaint()

    def paint(self, width: int, height: int) -> Sequence[Line]:
        begun = time.perf_counter()
        lines = compose(self._traces, self._choice, self._view, width, height)
        self._cost_s = time.perf_counter() - begun
        return lines
