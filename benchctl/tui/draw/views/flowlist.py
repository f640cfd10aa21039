"""The flows of a trial as a list with figures and sparklines: the legend of all plots. Pure.

A row is a line of the plots: a flow's, or that of one of its streams. It shows the first plotted
metric that the flow reports; beside a CDF or a histogram, the figures of the samples.

Textual's Sparkline is a widget of one line: a change of eight of them takes 16 ms, of the whole
list with sparklines as text 3 ms (``python bench widgets``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from benchctl.metrics import Fold, title_of
from benchctl.report.figures.figure import PictureKind
from benchctl.report.lines.spans import Span, shorten
from benchctl.report.pivot import Pivot
from benchctl.report.timeline.series import Series
from benchctl.report.timeline.traces import ALL, LineKey, TrialLines
from benchctl.tui.draw.axes.ranges import GAIN, NOISE
from benchctl.tui.draw.plot.charts import SamplesOf, no_samples
from benchctl.tui.draw.plot.choice import NOTHING, Choice, Pick, figure_of, mark_of
from benchctl.tui.draw.plot.field import hole_after
from benchctl.tui.draw.plot.plot import letter, role_of
from benchctl.tui.draw.text.columns import GAP, Cells, Column, FreeText, widths
from benchctl.tui.draw.text.percentiles import HEADS, sample_figures
from benchctl.tui.model.zoom import View
from benchctl.units import format_value
from benchctl.visible import width_of

SHOWN, HIDDEN = "●", "○"
NAME_WIDTH = 16
FIGURE_WIDTH = 11
LEAST_SPARK, MOST_SPARK = 8, 24
# A name may be longer where the figures and a short sparkline have room beside it.
BESIDE_NAME = 2 * FIGURE_WIDTH + LEAST_SPARK + 3 * len(GAP)
# What is measured from zero, so that the sparklines of several flows have one scale.
FROM_ZERO = (Fold.RATE, Fold.COUNT)
# Of a sparkline's bars, those that may be higher than it shows.
FEW = 1 / LEAST_SPARK


class FlowList(Struct, frozen=True):
    """The rows for the flows of one trial, for a list of some width."""

    traces: TrialLines
    choice: Choice
    view: View
    rows: Sequence[LineKey]
    """An empty metric means that the flow has reported nothing yet."""
    names: Sequence[str]
    metrics: Sequence[str]
    """Those that some rows show only in columns of their own."""
    width: int
    samples_of: SamplesOf = no_samples
    running: bool = True
    """Whether the trial goes on; the last value of one that has ended is not that of now."""
    tops: Mapping[str, float] = {}
    """What the highest bar of a sparkline stands for, of metrics that several flows have."""

    def toggled(self, index: int) -> Choice:
        """Return the choice with or without the line of a row."""
        return self.choice.toggled(self._pick(index), self.traces.flows)

    def only(self, index: int) -> Choice:
        """Return the choice of the line of a row alone, or of all if it is that already."""
        return self.choice.only(self._pick(index), self.traces.flows)

    def moved(self, choice: Choice, index: int) -> Choice:
        """Return a choice with the cursor on a row; a line that is alone goes with it."""
        choice = replace(choice, here=self.rows[index].flow)
        if choice.picked is None or len(choice.picked) != 1:
            return choice
        return replace(choice, picked=frozenset({self._pick(index)}))

    def streams(self, index: int) -> Choice:
        """Return the choice with or without the single streams of a row's flow."""
        own = self.rows[index].flow
        streams = {stream for flow, stream in self.traces.streams if flow == own}
        return self.choice.streams(own, streams, self.traces.flows)

    def _pick(self, index: int) -> Pick:
        return self.rows[index].flow, self.rows[index].stream

    def columns(self) -> list[Column]:
        """Return the columns: what a row is about, its figures, then the other metrics."""
        about = Column("flow", self._name_width, fixed=True)
        if self._is_spread:
            cells = [self.row(index)[1:] for index in range(len(self.rows))]
            texts = [[cell.text for cell in row] for row in cells if len(row) == len(HEADS)]
            return [about, *widths(HEADS, texts, [True] * len(HEADS))]
        return [
            about,
            Column("now" if self.running else "last", FIGURE_WIDTH, right=True),
            Column("mean", FIGURE_WIDTH, right=True),
            Column("", self._spark_width, right=True, drawn=True),
            *(Column(title_of(name), FIGURE_WIDTH, right=True) for name in self.metrics),
        ]

    @property
    def _is_spread(self) -> bool:
        return self.choice.shape is not PictureKind.TIME

    @property
    def _name_width(self) -> int:
        return max([4, *map(width_of, self.names)])

    @property
    def _spark_width(self) -> int:
        left = self.width - self._name_width - 2 * FIGURE_WIDTH - 3 * len(GAP)
        return min(MOST_SPARK, max(LEAST_SPARK, left))

    def row(self, index: int) -> Cells:
        """Return the cells of a row."""
        key = self.rows[index]
        number = self.traces.number(key.flow)
        shown = self.choice.shows(key.flow, key.stream)
        role = role_of(number) if shown else "dim"
        name = Span(self.names[index], role)
        line = self.traces.line(key) if key.metric else None
        if line is None:
            return [name, FreeText("no samples", "dim")]
        if self._is_spread:
            samples = self.samples_of(key)
            figures = sample_figures(key.metric, samples) if samples else [NOTHING] * len(HEADS)
            return [name, *map(Span, figures)]
        return [
            name,
            Span(figure_of(key, self.traces, self.view.until_s)),
            Span(_figure(key.metric, self.traces.mean(key, self.view.until_s))),
            Span(self._spark(key.metric, line), role),
            *(
                Span(figure_of(key._replace(metric=metric), self.traces, self.view.until_s))
                for metric in self.metrics
            ),
        ]

    def _spark(self, metric: str, line: Series) -> str:
        view = self.view
        columns = line.columns(view.from_s, view.to_s, self._spark_width, view.until_s)
        means = [None if column is None else column.mean for column in columns]
        from_zero = self.traces.meanings[metric].fold in FROM_ZERO
        top = self.tops.get(metric, 0.0)
        return spark(means, self.choice.glyphs.bars, from_zero=from_zero, top=top)


def list_flows(
    begun: Iterable[str], traces: TrialLines, choice: Choice, view: View, width: int,
    samples_of: SamplesOf = no_samples, *, running: bool = True,
) -> FlowList:  # fmt: skip
    """Return the list of the flows that have begun, in the order of the run."""
    metrics = traces.metrics()
    first = choice.first % len(metrics) if metrics else 0
    metrics = [*metrics[first:], *metrics[:first]]
    keys = {metric: traces.keys(metric) for metric in metrics}
    rows: list[LineKey] = []
    names: list[str] = []
    room = max(NAME_WIDTH, width - BESIDE_NAME)
    for flow in sorted({*begun, *(flow for flow, _ in traces.streams)}, key=traces.number):
        own = (
            [key for key in keys[metric] if key.flow == flow and _is_wanted(key, choice)]
            for metric in metrics
        )
        mine = next(filter(None, own), [LineKey(flow, "", "")])
        rows += mine
        names += [_name(key, mine, traces, choice, room) for key in mine]
    others = [
        metric
        for metric in metrics
        if {row.metric for row in rows} != {metric} and not traces.meanings[metric].by_stream
    ]
    tops: dict[str, float] = {}
    for metric, count in Counter(row.metric for row in rows).items():
        if metric and count > 1 and traces.meanings[metric].fold in FROM_ZERO:
            means = (traces.mean(row, view.until_s) or 0.0 for row in rows if row.metric == metric)
            tops[metric] = max(means) * (1 + NOISE)
    return FlowList(traces, choice, view, rows, names, others, width, samples_of, running, tops)


def _name(
    key: LineKey, among: Sequence[LineKey], traces: TrialLines, choice: Choice, room: int
) -> str:
    """Return whether a line is shown, its mark, and its name."""
    both = f" {key.direction}" * (len({other.direction for other in among}) > 1)
    dot = SHOWN if choice.shows(key.flow, key.stream) else HIDDEN
    name = key.flow + both if key.stream == ALL else f"  stream {key.stream}"
    mark = mark_of(key, among, traces)
    return f"{dot} {mark} {shorten(name, room - 3 - len(mark))}"


def with_letters(table: Pivot, flows: Sequence[str]) -> Pivot:
    """Return a table with the letter of each flow, as in the plots, before its name."""
    if "flow" not in table.heads:
        return table
    place = table.heads.index("flow")
    rows = [
        (*row[:place], f"{letter(flows.index(row[place]))} {row[place]}", *row[place + 1 :])
        if row[place] in flows
        else row
        for row in table.rows
    ]
    return replace(table, rows=(*rows,))


def _is_wanted(key: LineKey, choice: Choice) -> bool:
    return key.stream == ALL or key.flow in choice.split


def spark(values: Sequence[float | None], bars: str, *, from_zero: bool, top: float = 0.0) -> str:
    """Return values as bars, from zero or from the least; where samples are missing, blanks.

    The highest bar stands for ``top``, if it is known, and for all above. Else a few values far
    above the others have it.
    """
    there = [value for value in values if value is not None]
    places = [place for place, value in enumerate(values) if value is not None]
    hole = hole_after(places)
    values = [*values]
    for before, after in pairwise(places):
        if after - before <= hole:
            values[before:after] = [values[before]] * (after - before)
    low = min([0.0, *there]) if from_zero else min(there, default=0.0)
    high = max(there, default=0.0)
    usual = sorted(there)[-1 - int(len(there) * FEW)] if there else 0.0
    span = high - low
    if 0 < GAIN * (usual - low) < span:
        span = (usual - low) * (1 + NOISE)
    span = top - low if top else span
    steps = len(bars)

    def bar(value: float | None) -> str:
        if value is None:
            return " "
        return bars[min(steps - 1, int((value - low) / span * steps))] if span > 0 else bars[0]

    return "".join(map(bar, values))


def _figure(metric: str, value: float | None) -> str:
    return NOTHING if value is None else format_value(metric, value)
