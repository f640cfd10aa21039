"""The plots of a trial, one above the other over a common time axis, with captions. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from benchctl.metrics import Fold, title_of
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
    lines: list[Line] = []
    for number, metric in enumerate(shown):
        last = number == count - 1
        rows = (height - 1) // count if not last else height - len(lines)
        lines += _chart(traces, metric, choice, view, width, rows, with_times=last)
    return lines


def _chart(
    traces: Traces,
    metric: str,
    choice: Choice,
    view: View,
    width: int,
    height: int,
    *,
    with_times: bool,
) -> list[Line]:
    keys = [key for key in traces.keys(metric) if choice.shows(key.flow, key.stream)]
    curves = [Curve(_name(key, keys), series) for key in keys if (series := traces.line(key))]
    zero = traces.meanings[metric].fold in (Fold.RATE, Fold.COUNT) or _is_near_zero(curves, view)
    picture = draw(
        metric, curves, View(view.from_s, view.to_s, view.until_s, choice.log), width, height - 1,
        from_zero=zero, with_times=with_times, glyphs=choice.glyphs,
    )  # fmt: skip
    return [crop(_caption(metric, curves, view, width), width), *picture]


def _is_near_zero(curves: Sequence[Curve], view: View) -> bool:
    """Return whether values are close enough to zero that the axis should start there."""
    bounds = [curve.series.bounds(view.from_s, min(view.to_s, view.until_s)) for curve in curves]
    low = min((bound[0] for bound in bounds if bound), default=0.0)
    high = max((bound[1] for bound in bounds if bound), default=1.0)
    return 0 <= low < high * NEAR_ZERO


def _name(key: LineKey, among: Sequence[LineKey]) -> str:
    """Return the shortest unique name of a line."""
    directions = {other.direction for other in among if other.flow == key.flow}
    direction = f" {key.direction}" if len(directions) > 1 else ""
    stream = f" #{key.stream}" if key.stream != ALL else ""
    return f"{key.flow}{direction}{stream}"


def _caption(metric: str, curves: Sequence[Curve], view: View, width: int) -> list[Span]:
    spans = [Span(f"{title_of(metric)}{' (log)' if view.log else ''}  ", "strong")]
    free = width - len(spans[0].text)
    for number, curve in enumerate(curves):
        value = curve.series.at(view.until_s)
        shown = format_value(metric, value) if value is not None else "-"
        text = f"{letter(number)} {curve.name} {shown:<{VALUE_WIDTH}}  "
        left = len(curves) - number
        if len(text) + (len(f"+{left}") if left > 1 else 0) > free:
            return [*spans, Span(f"+{left}", "dim")]
        free -= len(text)
        spans.append(Span(text, role_of(number)))
    return spans
