"""Keys that choose what the plots of a trial show: time, values, metric, scale, characters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Literal

from msgspec.structs import replace
from textual.binding import Binding

from benchctl.metrics import title_of
from benchctl.tui.draw.plot.charts import SamplesOf, no_samples, spread_metrics
from benchctl.tui.draw.plot.choice import SHAPES, Choice
from benchctl.tui.draw.text.glyphs import plainer_from
from benchctl.tui.meanings import PACKETS
from benchctl.tui.model.feed import RunReader
from benchctl.tui.model.runview import TrialView
from benchctl.tui.model.spreads import SpreadOf
from benchctl.tui.model.zoom import View, Zoom, window_for
from benchctl.tui.screens.base.page import AppContext
from benchctl.tui.screens.base.pick import PickFrom
from benchctl.tui.screens.parts.steering import SteeringPage
from benchctl.tui.widgets.boardtable import BoardTable
from benchctl.tui.widgets.chartview import ChartView
from benchctl.tui.widgets.flowpicker import FlowPicker

PLOT_KEYS = [
    Binding("plus,equals_sign", "zoom(1)", "Zoom", key_display="+", id="live.zoom_in"),
    Binding("minus", "zoom(-1)", "Zoom out", show=False, id="live.zoom_out"),
    Binding("0", "whole", "Whole trial, all values", show=False, id="live.zoom_all"),
    Binding("z", "values('zoom', 1)", "Zoom values", show=False, id="live.values_in"),
    Binding("Z", "values('zoom', -1)", "Zoom values out", show=False, id="live.values_out"),
    Binding("shift+up", "values('pan', 1)", "Higher values", show=False, id="live.higher"),
    Binding("shift+down", "values('pan', -1)", "Lower values", show=False, id="live.lower"),
    Binding("m", "metric", "Metric", tooltip="Pick a metric", id="live.metric"),
    Binding("T", "cross", "Values", tooltip="Crosshair: values at one moment", id="live.cross"),
    # While they move the crosshair, they do not move through time.
    Binding("left", "move_cross(-1)", "Move", tooltip="Crosshair back", priority=True,
            id="live.cross_back"),
    Binding("right", "move_cross(1)", "Move", tooltip="Crosshair on", priority=True,
            id="live.cross_on"),
    Binding("P", "packets", PACKETS, show=False, id="live.packets"),
    Binding("D", "shape", "Over time, CDF or histogram", show=False, id="live.shape"),
    Binding("p", "pick", "Flows, to pick lines", show=False, id="live.pick"),
    Binding("g", "log", "Linear or logarithmic", show=False, id="live.log"),
    Binding("M", "smooth", "Means or every value", show=False, id="live.smooth"),
    Binding("B", "glyphs", "Braille, blocks, halves or ASCII", show=False, id="live.glyphs"),
]  # fmt: skip


class PlotPage(SteeringPage):
    """A screen with the plots of a trial; its bindings include `PLOT_KEYS`."""

    _feed: RunReader
    _charts: ChartView
    _urgent: bool

    def __init__(self, around: AppContext, run_id: int) -> None:
        super().__init__(around, run_id)
        self._choice = Choice(glyphs=around.glyphs)
        self._zoom = Zoom()

    def _change(self, choice: Choice) -> None:
        """Show another choice."""
        raise NotImplementedError

    def _read_all(self) -> None:
        """Read what is wanted, the first part of it at once."""
        raise NotImplementedError

    @property
    def _samples_of(self) -> SamplesOf:
        spreads = self._feed.spreads
        return no_samples if spreads is None else spreads.of

    def _show_plots(self, trial: TrialView, shown: View) -> None:
        """Show the plots of a trial, and read what they need."""
        feed = self._feed
        assert feed.traces is not None
        feed.magnify(
            window_for(shown, self._charts.dots, feed.traces.shortest_s, feed.whole, feed.window)
        )
        metrics = spread_metrics(feed.traces, self._choice, self._charts.size.height)
        if feed.spread(SpreadOf(metrics, frozenset(self._choice.split), shown.until_s)):
            self._read_all()
        self._charts.show(
            feed.plotted, self._choice, shown, trial.expected, self._samples_of,
            self.around.clock(), urgent=self._urgent,
        )  # fmt: skip

    def action_shape(self) -> None:
        """Show the first plot's samples as a CDF, as a histogram, and over time again."""
        place = (SHAPES.index(self._choice.shape) + 1) % len(SHAPES)
        self._change(replace(self._choice, shape=SHAPES[place]))

    def action_zoom(self, steps: int) -> None:
        """Show a smaller or larger part of the trial's time; where the crosshair is, if it is."""
        traces = self._feed.traces
        if traces is not None:
            span_s = max(self._feed.whole.span_s, traces.end_s)
            view, cross_s = self._charts.view, self._charts.cross_s
            if cross_s is None:
                self._zoom = self._zoom.changed(steps, span_s)
            else:
                self._zoom = self._zoom.around(steps, span_s, view, cross_s)
            self.fit()

    def action_metric(self) -> None:
        """Pick the metric with which the plots start."""
        traces = self._feed.traces
        names = traces.metrics() if traces is not None else []
        if traces is None or not names:
            self._tell_of_no_samples()
            return

        def take(place: int | None) -> None:
            if place is not None:
                self._change(replace(self._choice, first=place))

        rows = [(title_of(name), traces.meanings[name].description or "") for name in names]
        self.app.push_screen(PickFrom("First plot", rows, self._choice.first % len(names)), take)

    def metrics(self) -> Mapping[str, Callable[[], None]]:
        traces = self._feed.traces
        names = traces.metrics() if traces is not None else []
        return {
            name: partial(self._change, replace(self._choice, first=place))
            for place, name in enumerate(names)
        }

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        match action:
            case "move_cross":
                return self._charts.pinned
            case "seek":
                # On the board, they move from pair to pair.
                on_board = isinstance(self.focused, BoardTable) and parameters in ((-1,), (1,))
                return not (self._charts.pinned or on_board)
            case _:
                return super().check_action(action, parameters)

    def back(self) -> bool:
        if super().back():
            return True
        if not self._charts.pinned:
            return False
        self.action_cross()
        return True

    def more_to_copy(self) -> Iterator[tuple[str, str, str]]:
        values = self._charts.values
        if values:
            text = "\n".join("\t".join(row) for row in values)
            yield "values at the crosshair", f"{len(values)} lines", text

    def action_cross(self) -> None:
        """Put a crosshair over the plots, or take it away."""
        if self._charts.pinned:
            self._charts.unpin()
        else:
            self._charts.pin()
            if not self._charts.pinned:
                self._tell_of_no_samples()
        self.refresh_bindings()

    def _tell_of_no_samples(self) -> None:
        self.notify("there are no samples to read yet")

    def action_move_cross(self, steps: int) -> None:
        """Move the crosshair to another sample."""
        self._charts.move(steps)

    def on_chart_view_pinned(self) -> None:
        """Offer the keys that move the crosshair."""
        self.refresh_bindings()

    async def on_chart_view_turned(self, event: ChartView.Turned) -> None:
        """Do what a key does for which the wheel stands."""
        await self.run_action(event.action)

    def action_packets(self) -> None:
        """Show the packets of the trial that is looked at."""
        from benchctl.tui.screens.windows.packets import PacketsWindow

        around, position = self.around, max(0, self._feed.position)
        window = PacketsWindow(around.store, self.run_ids[0], position, self._choice.glyphs)
        self.app.push_screen(window)

    def action_log(self) -> None:
        """Switch between linear and logarithmic axes."""
        self._change(replace(self._choice, log=not self._choice.log))

    def action_smooth(self) -> None:
        """Switch between means over some time and every value."""
        self._change(replace(self._choice, smooth=not self._choice.smooth))

    def action_values(self, how: Literal["zoom", "pan"], steps: int) -> None:
        """Show a smaller part of the first plot's values, or a higher one."""
        self._change(self._charts.rescaled(how, steps))

    def action_whole(self) -> None:
        """Show the whole trial and all values."""
        self._zoom = Zoom()
        self._change(replace(self._choice, bounds={}))

    def action_glyphs(self) -> None:
        """Use the next set of characters."""
        sets = plainer_from(self.around.glyphs)
        after = sets[(sets.index(self._choice.glyphs) + 1) % len(sets)]
        self._change(replace(self._choice, glyphs=after))

    def on_flow_picker_picked(self, event: FlowPicker.Picked) -> None:
        """Draw other lines."""
        self._change(event.choice)
