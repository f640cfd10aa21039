"""The rates of a flow in intervals of equal length, as methods for series of samples need them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from msgspec import Struct

from benchctl.analysis.flow.figures import FlowFold, MetricSeries
from benchctl.metrics import Aspect, of_aspect

# Three hours at 100 ms. Intervals of very different lengths would need more.
MOST_INTERVALS = 100_000


class Regular(Struct, frozen=True):
    """A rate in intervals of equal length, all streams together."""

    start_s: float
    step_s: float
    values: Sequence[float]

    def time_s(self, index: int) -> float:
        """Return when an interval begins."""
        return self.start_s + index * self.step_s


def rates_of(fold: FlowFold) -> Iterator[tuple[str, str, Regular]]:
    """Yield each direction of a flow with its first rate: direction, metric, all streams."""
    measured = fold.measured()
    for direction in dict.fromkeys(direction for direction, _ in measured):
        metric = next((m for m in of_aspect(Aspect.RATE) if (direction, m) in measured), None)
        rate = regular(measured[direction, metric]) if metric else None
        if metric is not None and rate is not None:
            yield direction, metric, rate


def regular(series: MetricSeries) -> Regular | None:
    """Return a rate of all streams in intervals of the usual length; None for less than two."""
    length_s = median(e - s for s, e in zip(series.starts_s, series.ends_s, strict=True))
    start_s, end_s = min(series.starts_s), max(series.ends_s)
    count = round((end_s - start_s) / length_s) if length_s > 0 else 0
    if not 2 <= count <= MOST_INTERVALS:
        return None
    step_s = (end_s - start_s) / count
    return Regular(start_s, step_s, series.in_windows(start_s, step_s, count))
