"""From the samples of a flow to its final figures.

A fold takes samples one by one and keeps their values, so that medians and percentiles are exact,
and the mean rate of any window can be computed.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from msgspec.structs import replace

from benchctl.analysis.statistics import quantile
from benchctl.metrics import Aspect, Fold, Metric, Sample, Summary, Vocabulary, of_aspect
from benchctl.run.record import Figure, Figures

# Above this, the tool's own figure and ours contradict each other, and the user is warned.
DISAGREEMENT = 0.05


class MetricSeries:
    """The samples of one metric in one direction, as one end reported them; of all streams."""

    __slots__ = ("ends_s", "starts_s", "streams", "values")

    def __init__(self) -> None:
        self.streams: set[int] = set()
        self.starts_s = array("d")
        self.ends_s = array("d")
        self.values = array("d")

    @property
    def covered_ratio(self) -> float:
        """The part of the time of all streams, from the first to the last, that has a sample."""
        window_s = (max(self.ends_s) - min(self.starts_s)) * len(self.streams)
        lengths = (end - start for start, end in zip(self.starts_s, self.ends_s, strict=True))
        return math.fsum(lengths) / window_s if window_s > 0 else 1.0

    def rate_within(self, from_s: float, to_s: float) -> float:
        """Return the mean over a window of a rate that is summed over the streams."""
        integral = sum(
            value * max(0.0, min(end, to_s) - max(start, from_s))
            for start, end, value in zip(self.starts_s, self.ends_s, self.values, strict=True)
        )
        return integral / (to_s - from_s)

    def in_windows(self, start_s: float, step_s: float, count: int) -> list[float]:
        """Return the mean over each of ``count`` windows of a rate, summed over the streams."""
        sums = [0.0] * count
        for start, end, value in zip(self.starts_s, self.ends_s, self.values, strict=True):
            first, last = (start - start_s) / step_s, (end - start_s) / step_s
            for at in range(max(0, math.floor(first + 1e-6)), min(count, math.ceil(last - 1e-6))):
                sums[at] += value * (min(last, at + 1) - max(first, at))
        return sums


class FlowFold:
    """Folds the samples of one flow, from both ends, into its figures.

    ``own`` are the metrics that only its backend knows.
    """

    def __init__(self, own: Sequence[Metric] = ()) -> None:
        self.vocabulary = Vocabulary(own)
        self._by_stream = {m.name for m in self.vocabulary.metrics.values() if m.by_stream}
        self._series: dict[tuple[str, str, str], MetricSeries] = {}
        self._of_streams: dict[int, dict[str, MetricSeries]] = {}
        self._reported: dict[tuple[str, str], Figure] = {}
        self._far: dict[tuple[str, str], Figure] = {}
        """What the tool reported of the same figures a second time: at its other end."""
        self._instead: dict[tuple[str, str], Figure] = {}
        self._quotients = [
            (metric.name, *metric.per) for metric in self.vocabulary.metrics.values() if metric.per
        ]
        self._figures: Figures | None = None
        """All of them, until more is added: they are asked for from many sides."""

    def add_sample(self, role: str, sample: Sample) -> None:
        """Take one sample; an omitted one changes nothing."""
        if sample.omitted:
            return
        self._figures = None
        for name, value in sample.metrics.items():
            if name in self._by_stream:
                own = self._of_streams.setdefault(sample.stream, {})
                series = own.setdefault(name, MetricSeries())
            else:
                series = self._series.setdefault((sample.direction, name, role), MetricSeries())
            series.streams.add(sample.stream)
            series.starts_s.append(sample.start_s)
            series.ends_s.append(sample.end_s)
            series.values.append(value)

    def add_summary(self, summary: Summary) -> None:
        """Take the tool's own figures; the first one of a metric counts."""
        self._figures = None
        for name, value in summary.metrics.items():
            key = (str(summary.direction), name)
            spread = dict(value) if isinstance(value, Mapping) else {}
            mean = spread.pop("mean", spread.get("median")) if spread else value
            if mean is None or isinstance(mean, Mapping):
                continue
            figure = Figure(
                float(mean), "tool", spread, summary.broken.get(name),
                resolution=summary.resolution.get(name),
            )  # fmt: skip
            if self._reported.setdefault(key, figure) is not figure:
                self._far.setdefault(key, replace(figure, origin="other end"))
            elif name in summary.instead:
                self._instead[key] = Figure(summary.instead[name], "tool")

    def others(self) -> Sequence[tuple[str, Figures]]:
        """Return the other sources of its figures, each with its name, the better ones first."""
        far: dict[tuple[str, str], Figure] = {}
        seen: set[tuple[str, str]] = set()
        for direction, name, series in self._by_role():
            if (direction, name) in seen and (figure := self._figure(name, series)) is not None:
                far[direction, name] = figure
            seen.add((direction, name))
        measured = self.measured()
        ours = {
            key: sampled
            for key, sampled in self._ours().items()
            if self._is_whole(key, measured[key])
        }
        sources = {"samples": ours, "other end": {**far, **self._far}}
        return [(name, {**own, **self._ratios(own)}) for name, own in sources.items()]

    def figures(self) -> Figures:
        """Return every figure: the tool's own, else the one computed from samples.

        In place of one that its backend knows to be wrong stands what the tool's other figures
        give, else what its other end reports, else what the samples do.
        """
        if self._figures is None:
            self._figures = self._all()
        return self._figures

    def _all(self) -> Figures:
        ours = self._ours()
        # A distribution that the tool reports in part is computed: a figure has one source.
        fuller = {
            key
            for key, figure in self._reported.items()
            if key in ours and ours[key].spread.keys() - figure.spread.keys()
        }
        reported = {key: figure for key, figure in self._reported.items() if key not in fuller}
        for key, figure in reported.items():
            better = self._instead.get(key) or self._far.get(key) or ours.get(key)
            if figure.broken is not None and better is not None:
                reported[key] = replace(
                    better, broken=figure.broken, rejected=figure.value,
                    resolution=figure.resolution,
                )  # fmt: skip
        figures = {**ours, **reported}
        for key, ratio in self._ratios(figures).items():
            own = self._reported.get(key)
            if own is None:
                figures[key] = ratio
            elif own.broken is not None and key not in {*self._instead, *self._far}:
                figures[key] = replace(ratio, broken=own.broken, rejected=own.value)
        return dict(sorted(figures.items()))

    def of_stream(self, stream: int) -> Mapping[str, Figure]:
        """Return the figures of one stream: of the metrics that belong to single streams."""
        series = self._of_streams.get(stream, {})
        figures = {
            ("", name): figure
            for name, own in series.items()
            if (figure := self._figure(name, own)) is not None
        }
        figures |= self._ratios(figures)
        return {name: figure for (_, name), figure in figures.items()}

    def window_s(self, name: str) -> tuple[float, float] | None:
        """Return the first start and the last end of a metric's samples; None without any."""
        found = [series for (_, n, _), series in self._series.items() if n == name]
        if not found:
            return None
        return min(min(s.starts_s) for s in found), max(max(s.ends_s) for s in found)

    @property
    def lasted_s(self) -> float | None:
        """How long it carried data, the omitted part apart; None without samples of a rate."""
        windows = (self.window_s(name) for name in of_aspect(Aspect.RATE))
        window = next((window for window in windows if window is not None), None)
        return None if window is None else window[1] - window[0]

    def longest_s(self, name: str) -> float:
        """Return the length of the longest interval of a metric's samples; 0 without any."""
        return max(
            (
                end - start
                for (_, n), series in self.measured().items()
                if n == name
                for start, end in zip(series.starts_s, series.ends_s, strict=True)
            ),
            default=0.0,
        )

    def in_windows(self, name: str, start_s: float, step_s: float, count: int) -> list[float]:
        """Return the means of a rate over windows, all directions and streams together."""
        rates = [
            series.in_windows(start_s, step_s, count)
            for (_, n), series in self.measured().items()
            if n == name
        ]
        return [math.fsum(window) for window in zip(*rates, strict=True)]

    def measured(self) -> dict[tuple[str, str], MetricSeries]:
        """Return the samples by (direction, metric), as the end that measured reported them."""
        found: dict[tuple[str, str], MetricSeries] = {}
        for direction, name, series in self._by_role():
            found.setdefault((direction, name), series)
        return found

    def _by_role(self) -> Iterator[tuple[str, str, MetricSeries]]:
        # "client" sorts before "server": if both ends report a metric, the measuring end counts.
        for (direction, name, _), series in sorted(self._series.items(), key=lambda item: item[0]):
            yield direction, name, series

    @property
    def lack(self) -> str:
        """Why this is no measurement: it has no figure, or no data were moved; else empty."""
        figures = self.figures()
        if not figures:
            return "ended without any result"
        still = [
            direction
            for (direction, name), figure in figures.items()
            if name == "throughput_bps" and figure.value <= 0
        ]
        return "" if all(_lost_all(figures, direction) for direction in still) else "moved no data"

    def disagreements(self) -> dict[tuple[str, str], str]:
        """Return a sentence for every rate for which the tool's figure and ours differ too much."""
        ours, measured = self._ours(), self.measured()
        texts = {}
        for key, reported in self._reported.items():
            is_rate = self.vocabulary.describe(key[1]).fold is Fold.RATE
            if (
                reported.broken is None
                and key in ours
                and is_rate
                and self._is_whole(key, measured[key])
            ):
                mean = (reported.value + ours[key].value) / 2
                if mean and abs(reported.value - ours[key].value) / mean > DISAGREEMENT:
                    texts[key] = (
                        f"{key[1]} ({key[0]}): the tool says {reported.value:.4g},"
                        f" its intervals give {ours[key].value:.4g}"
                    )
        return texts

    def _ours(self) -> dict[tuple[str, str], Figure]:
        figures: dict[tuple[str, str], Figure] = {}
        for direction, name, series in self._by_role():
            figure = self._figure(name, series)
            if figure is not None:
                figures.setdefault((direction, name), figure)
        return figures

    def _is_whole(self, key: tuple[str, str], series: MetricSeries) -> bool:
        """Return whether samples lack no part of the time, such as readings that were late.

        The count of a late reading is in the next one, unless that was the last.
        """
        fold = self.vocabulary.describe(key[1]).fold
        if fold is Fold.RATE and series.covered_ratio < 1 - DISAGREEMENT:
            return False
        window_s = max(series.ends_s) - min(series.starts_s)
        adds_up = fold in (Fold.RATE, Fold.COUNT)
        return not adds_up or window_s >= (self.lasted_s or 0.0) * (1 - DISAGREEMENT)

    def _figure(self, name: str, series: MetricSeries) -> Figure | None:
        values = series.values
        match self.vocabulary.describe(name).fold:
            case Fold.RATE:
                first_s, last_s = min(series.starts_s), max(series.ends_s)
                if last_s <= first_s:
                    return None
                return Figure(series.rate_within(first_s, last_s), "samples")
            case Fold.COUNT:
                return Figure(math.fsum(values), "samples")
            case Fold.VALUE:
                return Figure(values[-1], "samples")
            case Fold.DISTRIBUTION:
                return distribution(values)

    def _ratios(self, figures: Figures) -> dict[tuple[str, str], Figure]:
        """Return the quotients of counts that are known and count."""
        found = {}
        for direction in {direction for direction, _ in figures}:
            for name, *of in self._quotients:
                part, whole = (figures.get((direction, metric)) for metric in of)
                if part and whole and whole.value and part.counts and whole.counts:
                    found[direction, name] = Figure(part.value / whole.value, "samples")
        return found


def distribution(values: Sequence[float]) -> Figure:
    """Return the figure of one or more values: their mean, and how they are spread."""
    ordered = sorted(values)
    spread = {
        "min": ordered[0],
        "median": quantile(ordered, 0.5),
        "p95": quantile(ordered, 0.95),
        "max": ordered[-1],
    }
    return Figure(fmean(values), "samples", spread)


def _lost_all(figures: Figures, direction: str) -> bool:
    """Whether a tool knows that datagrams were sent and none arrived: that is a result."""
    counts = (figures.get((direction, name)) for name in ("packets_sent", "packets_lost"))
    sent, lost = (0.0 if figure is None else figure.value for figure in counts)
    return 0 < sent <= lost
