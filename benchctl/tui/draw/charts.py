"""The plots of a trial, one above the other over a common time axis, with captions. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from benchctl.metrics import Direction, Fold, title_of
from benchctl.tui.draw.plot import BRAILLE, Curve, Glyphs, draw, letter, role_of
from benchctl.tui.draw.spans import Line, Span, crop
from benchctl.tui.model.traces import ALL, LineKey, Traces
from benchctl.tui.model.zoom import View
from benchctl.units import format_value

# The minimum height of a plot: five rows of curve, the axis, the caption.
LEAST_HEIGHT = 8
MOST = 3
# As wide as "94.1 Mbit/s", so that a caption does not move while its figures change.
VALUE_WIDTH = 11
# The axis of a rate starts at zero, since a part of it misleads. Any other does if its minimum is
# below this share of the maximum: 20.1 to 20.9 ms seen from zero would be a flat line.
NEAR_ZERO = 0.5

Pick = tuple[str, int]
"""A flow and the number of a stream, or ALL for the flow's own line."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What the user chose to see.

    ``first`` is the place of the first plot among the metrics; ``picked`` names the lines, None for
    every flow's own.
    """

    first: int = 0
    picked: frozenset[Pick] | None = None
    log: bool = False
    glyphs: Glyphs = BRAILLE

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


def compose(
    traces: Traces | None, choice: Choice, view: View, width: int, height: int
) -> list[Line]:
    """Return as many plots as fit into the height, with captions."""
    metrics = traces.metrics() if traces is not None else []
    if traces is None or not metrics:
        blank: Line = [Span(" " * width)]
        return [*[blank] * (height // 2), [Span("  no samples yet", "dim")]]
    count = max(1, min(MOST, len(metrics), height // LEAST_HEIGHT))
    first = choice.first % len(metrics)
    shown = [metrics[(first + number) % len(metrics)] for number in range(count)]
    curves = {metric: curves_of(traces, metric, choice) for metric in shown}
    room = max((len(curve.mark) for some in curves.values() for curve in some), default=1)
    lines: list[Line] = []
    for number, metric in enumerate(shown):
        last = number == count - 1
        rows = (height - 1) // count if not last else height - len(lines)
        lines += _chart(
            traces, metric, curves[metric], choice, view, width, rows, room=room, with_times=last
        )
    return lines


def curves_of(traces: Traces, metric: str, choice: Choice) -> list[Curve]:
    """Return the chosen lines of a metric."""
    keys = [key for key in traces.keys(metric) if choice.shows(key.flow, key.stream)]
    return [
        Curve(_name(key, keys), series, traces.number(key.flow), mark_of(key, keys, traces))
        for key in keys
        if (series := traces.line(key)) is not None
    ]


def _chart(
    traces: Traces,
    metric: str,
    curves: Sequence[Curve],
    choice: Choice,
    view: View,
    width: int,
    height: int,
    *,
    room: int,
    with_times: bool,
) -> list[Line]:
    zero = traces.meanings[metric].fold in (Fold.RATE, Fold.COUNT) or _is_near_zero(curves, view)
    picture = draw(
        metric, curves, View(view.from_s, view.to_s, view.until_s, choice.log), width, height - 1,
        from_zero=zero, with_times=with_times, glyphs=choice.glyphs, room=room,
    )  # fmt: skip
    return [crop(_caption(metric, curves, view, width), width), *picture]


def _is_near_zero(curves: Sequence[Curve], view: View) -> bool:
    """Return whether values are close enough to zero that the axis should start there."""
    bounds = [curve.series.bounds(view.from_s, min(view.to_s, view.until_s)) for curve in curves]
    low = min((bound[0] for bound in bounds if bound), default=0.0)
    high = max((bound[1] for bound in bounds if bound), default=1.0)
    return 0 <= low < high * NEAR_ZERO


def _name(key: LineKey, among: Sequence[LineKey]) -> str:
    """Return the name of a line beside its mark."""
    return f"{key.flow} {key.direction}" if _has_both(key, among) else key.flow


def mark_of(key: LineKey, among: Sequence[LineKey], traces: Traces) -> str:
    """Return the letter of a line's flow, in upper case for its way back, and its stream."""
    mark = letter(traces.number(key.flow))
    if key.direction == Direction.RECEIVE and _has_both(key, among):
        mark = mark.upper()
    return mark if key.stream == ALL else f"{mark}{key.stream}"


def _has_both(key: LineKey, among: Sequence[LineKey]) -> bool:
    return len({other.direction for other in among if other.flow == key.flow}) > 1


def _caption(metric: str, curves: Sequence[Curve], view: View, width: int) -> list[Span]:
    """Return a title, and of every line as much as fits for all: mark, name and figure."""
    title = Span(f"{title_of(metric)}{' (log)' if view.log else ''}  ", "strong")
    values = [curve.series.at(view.until_s) for curve in curves]
    shown = ["-" if value is None else format_value(metric, value) for value in values]
    for texts in (
        [f"{c.mark} {c.name} {s:<{VALUE_WIDTH}}  " for c, s in zip(curves, shown, strict=True)],
        [f"{c.mark} {s:<{VALUE_WIDTH}}  " for c, s in zip(curves, shown, strict=True)],
        [f"{c.mark} {c.name}  " for c in curves],
        [f"{c.mark} " for c in curves],
    ):
        if sum(map(len, texts)) + len(title.text) <= width:
            break
    return [title, *(Span(t, role_of(c.number)) for t, c in zip(texts, curves, strict=True))]
