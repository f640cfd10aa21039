"""What a person chose to see of a trial, and which lines of which metrics that comes to. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from benchctl.metrics import Direction, Fold
from benchctl.report.figures.figure import PictureKind
from benchctl.report.timeline.series import NOW_S
from benchctl.report.timeline.traces import ALL, LineKey, TrialLines
from benchctl.tui.draw.axes.ranges import Bounds
from benchctl.tui.draw.plot.plot import letter
from benchctl.tui.draw.text.glyphs import BRAILLE, Glyphs
from benchctl.units import format_value

NOTHING = "-"

Pick = tuple[str, int]
"""A flow and the number of a stream, or ALL for the flow's own line."""
SHAPES = (PictureKind.TIME, PictureKind.CDF, PictureKind.HISTOGRAM)


class Choice(Struct, frozen=True):
    """What the user chose to see.

    ``first`` is the place of the first plot among the metrics; ``picked`` names the lines, None for
    every flow's own. ``smooth`` lines are drawn as means over some time. ``bounds`` are the values
    that plots show, by metric, if not those that suit the lines. ``shape`` is what is drawn: lines
    over time, or how the samples of the first metric are distributed. ``here`` is the flow that is
    drawn where there is no room for all.
    """

    first: int = 0
    picked: frozenset[Pick] | None = None
    log: bool = False
    smooth: bool = True
    bounds: Mapping[str, Bounds] = {}
    glyphs: Glyphs = BRAILLE
    shape: PictureKind = PictureKind.TIME
    here: str = ""

    @property
    def split(self) -> Collection[str]:
        """The flows whose streams are shown."""
        return {flow for flow, stream in self.picked or () if stream != ALL}

    def shows(self, flow: str, stream: int) -> bool:
        """Return whether a flow's line, or that of one of its streams, was chosen."""
        return stream == ALL if self.picked is None else (flow, stream) in self.picked

    def toggled(self, pick: Pick, flows: Sequence[str]) -> Choice:
        """Return the choice with or without a line, of a run with these flows."""
        return self._with(self._lines(flows) ^ {pick}, flows)

    def only(self, pick: Pick, flows: Sequence[str]) -> Choice:
        """Return the choice of a single line; every flow's own if it is that already."""
        return self._with(
            frozenset({pick}) if self.picked != frozenset({pick}) else self._own(flows), flows
        )

    def streams(self, flow: str, streams: Collection[int], flows: Sequence[str]) -> Choice:
        """Return the choice with the single streams of a flow, or without if it has some."""
        others = {pick for pick in self._lines(flows) if pick[0] != flow or pick[1] == ALL}
        added = {(flow, stream) for stream in streams} if flow not in self.split else set()
        return self._with(others | added, flows)

    def _lines(self, flows: Sequence[str]) -> frozenset[Pick]:
        return self.picked if self.picked is not None else self._own(flows)

    def _own(self, flows: Sequence[str]) -> frozenset[Pick]:
        return frozenset((flow, ALL) for flow in flows)

    def _with(self, picked: Collection[Pick], flows: Sequence[str]) -> Choice:
        every = set(picked) == self._own(flows)
        return replace(self, picked=None if every else frozenset(picked))


# The minimum height of a plot: five rows of curve, the axis, the caption.
LEAST_HEIGHT = 8
MOST = 3
# Lines of more flows would hide each other: each flow has a plot of its own, all with one scale.
MOST_FLOWS = 4
# The caption of such plots and their time axis, and the rows of each: at least, and beside others.
AROUND, LEAST_ROWS, GOOD_ROWS = 3, 2, 3


class PlottedMetric(NamedTuple):
    """A metric that is drawn, its lines, and whether each flow has a plot of its own.

    ``of`` is how many flows there are, if there is room only for one of them. ``needs`` is the
    height that it needs.
    """

    metric: str
    keys: Sequence[LineKey]
    each: bool = False
    of: int = 0
    needs: int = LEAST_HEIGHT


def has_many_flows(traces: TrialLines, choice: Choice) -> bool:
    """Return whether the first metric has a plot for each flow, where there is room."""
    metrics = traces.metrics()
    if not metrics:
        return False
    keys = keys_of(metrics[choice.first % len(metrics)], traces, choice)
    return len({key.flow for key in keys}) > MOST_FLOWS


def panels_of(traces: TrialLines, choice: Choice, height: int) -> list[PlottedMetric]:
    """Return what is drawn in a height, from the chosen metric on."""
    metrics = traces.metrics()
    panels: list[PlottedMetric] = []
    left = height
    for n in range(min(MOST, len(metrics))):
        metric = metrics[(choice.first + n) % len(metrics)]
        keys = keys_of(metric, traces, choice)
        flows = list(dict.fromkeys(key.flow for key in keys))
        panel = PlottedMetric(metric, keys)
        if len(flows) > MOST_FLOWS:
            panel = PlottedMetric(metric, keys, each=True, needs=AROUND + GOOD_ROWS * len(flows))
            if not panels and AROUND + LEAST_ROWS * len(flows) > left:
                here = choice.here if choice.here in flows else flows[0]
                panel = PlottedMetric(
                    metric, [key for key in keys if key.flow == here], of=len(flows)
                )
            elif panels and panels[0].of:
                break
        if panels and panel.needs > left:
            break
        panels.append(panel)
        left -= panel.needs
    return panels


def keys_of(metric: str, traces: TrialLines, choice: Choice) -> list[LineKey]:
    """Return the lines of a metric that were chosen; those of single streams with their flow."""
    own = traces.meanings[metric].by_stream
    return [
        key for key in traces.keys(metric) if choice.shows(key.flow, ALL if own else key.stream)
    ]


def name_of(key: LineKey, among: Sequence[LineKey]) -> str:
    """Return the name of a line beside its mark."""
    return f"{key.flow} {key.direction}" if _has_both(key, among) else key.flow


def mark_of(key: LineKey, among: Sequence[LineKey], traces: TrialLines) -> str:
    """Return the letter of a line's flow, in upper case for its way back, and its stream."""
    mark = letter(traces.number(key.flow))
    if key.direction == Direction.RECEIVE and _has_both(key, among):
        mark = mark.upper()
    return mark if key.stream == ALL else f"{mark}{key.stream}"


def _has_both(key: LineKey, among: Sequence[LineKey]) -> bool:
    return len({other.direction for other in among if other.flow == key.flow}) > 1


def figure_of(key: LineKey, traces: TrialLines, until_s: float) -> str:
    """Return what a line has at a moment: of a rate the mean of the half second before."""
    line = traces.line(key)
    rate = traces.meanings[key.metric].fold is Fold.RATE
    value = None
    if line is not None:
        value = line.recent(until_s, NOW_S) if rate else line.at(until_s)
    return NOTHING if value is None else format_value(key.metric, value)
