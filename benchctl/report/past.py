"""Every run with its key figure and its difference from its baseline: pure, from the store's rows.

The key figure of a run is the headline of the profile's first flow, or its sum over the flows that
are alike: of the same backend, with the same metric in the same direction. Points are never
averaged: of several, there is the range. The differences from the baseline are those of
`analysis.compare`, point by point.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from statistics import fmean

from msgspec import Struct

from benchctl.analysis.runs.compare import Comparison, compare
from benchctl.analysis.runs.summary import SummaryRow
from benchctl.analysis.search.found import FOUND_RATE
from benchctl.analysis.statistics import spread
from benchctl.metrics import Direction, Fold, title_of
from benchctl.report.pivot import with_interval
from benchctl.report.report import Report
from benchctl.run.record import Run
from benchctl.store.bulk import FlowRow
from benchctl.units import common_scale, format_range, format_value, number_in

# Of so many points the answer has each, of more the range.
MOST_POINTS = 3
ADDED_UP = (Fold.RATE, Fold.COUNT)
DELAYS = ("responsiveness_rpm", "rtt_under_load_s", "rtt_s")
WAYS = (Direction.SEND, Direction.RECEIVE, Direction.ROUND_TRIP)


class KeyFigure(Struct, frozen=True):
    """The key figure of a run: its metric, what it is of, and a row for each point.

    ``delay`` is what is asked next: responsiveness or round trips, with the least and the greatest.
    ``failure`` is why the first trial that failed did so.
    """

    metric: str = ""
    of: str = ""
    rows: Sequence[SummaryRow] = ()
    delay: tuple[str, float, float] | None = None
    failure: str = ""

    @property
    def title(self) -> str:
        """What it is: ``throughput of main``."""
        return f"{title_of(self.metric)} of {self.of}" if self.metric else ""


class HistoryEntry(Struct, frozen=True):
    """One run in the history; ``compared`` with its baseline point by point, if it has one."""

    run: Run
    key: KeyFigure
    compared: Sequence[Comparison]

    @property
    def valid(self) -> bool:
        """Whether the labs of its figure kept their promises."""
        return all(row.valid for row in self.key.rows)

    @property
    def failure(self) -> str:
        """Why the run failed, or the first of its trials that did; empty if none has."""
        return self.run.error or self.key.failure

    @property
    def host(self) -> str:
        """The machine that measured it, if known."""
        return str(self.run.facts.get("hostname", ""))


def key_figure(run: Run, flows: Sequence[FlowRow], invalid: Container[int]) -> KeyFigure:
    """Return the key figure of a run from the flows of its trials, in the order of the profile.

    ``invalid`` are the ids of trials whose lab did not keep its promises. A rate that was set is
    no answer beside one that was not.
    """
    first = next((flow for flow in flows if flow.figures), None)
    if first is None:
        return KeyFigure()
    vocabulary = run.vocabulary
    metric = vocabulary.headline(first.backend, {name for _, name in first.figures})
    directions = [direction for direction, name in first.figures if name == metric]
    if metric is None:
        return KeyFigure()
    direction = next(
        (str(direction) for direction in WAYS if direction in directions), directions[0]
    )
    adds_up = vocabulary.describe(metric).fold in ADDED_UP
    chosen: dict[str, dict[int, list[FlowRow]]] = {}
    for flow in flows:
        if flow.has_rate and not first.has_rate:
            continue
        alike = flow.backend == first.backend and flow.direction == first.direction
        if flow.name == first.name or (alike and adds_up):
            chosen.setdefault(flow.point, {}).setdefault(flow.trial_id, []).append(flow)
    counts = {len(trial) for trials in chosen.values() for trial in trials.values()}
    of = first.name if counts == {1} else f"{_range(sorted(counts))} flows"
    if len(directions) > 1:
        of += f" {direction}"
    rows = []
    for point, trials in chosen.items():
        # An axis may turn the direction.
        there = [name for name, of in next(iter(trials.values()))[0].figures if of == metric]
        here = (
            direction
            if direction in there
            else next(
                (str(other_direction) for other_direction in WAYS if other_direction in there),
                direction,
            )
        )
        # A sum without one of its flows would be another figure.
        values = [
            sum(flow.figures[here, metric] for flow in trial)
            for trial in trials.values()
            if all((here, metric) in flow.figures for flow in trial)
        ]
        if values:
            valid = not any(trial_id in invalid for trial_id in trials)
            rows.append(
                SummaryRow(json.loads(point), of, here, metric, values, spread(values), valid=valid)
            )
    return KeyFigure(metric, of, rows, _delay(flows) if metric not in DELAYS else None)


def _delay(flows: Sequence[FlowRow]) -> tuple[str, float, float] | None:
    """Return the first of `DELAYS` that was measured, with the ends of its means over repeats."""
    for metric in DELAYS:
        values: dict[tuple[str, str], list[float]] = {}
        for flow in flows:
            for (_, name), value in flow.figures.items():
                if name == metric:
                    values.setdefault((flow.point, flow.name), []).append(value)
        if means := [*map(fmean, values.values())]:
            return metric, min(means), max(means)
    return None


def found_figure(report: Report) -> KeyFigure:
    """Return the key figure of a search: what it found, not the rates that it tried."""
    search = report.run.settings.search
    rows = [row for row in report.summary if row.metric == FOUND_RATE]
    return KeyFigure(FOUND_RATE, search.axis, rows) if search and rows else KeyFigure()


def _range(numbers: Sequence[int]) -> str:
    return " to ".join(map(str, dict.fromkeys((numbers[0], numbers[-1]))))


def past_of(
    runs: Sequence[Run], keys: Mapping[int, KeyFigure], baselines: Mapping[str, int]
) -> list[HistoryEntry]:
    """Return every run with its key figure, compared with its baseline; the newest run first.

    ``baselines`` are ids of runs by profile.
    """
    found = []
    for run in runs:
        own, baseline = keys[run.id], baselines.get(run.profile)
        compared: Sequence[Comparison] = ()
        if baseline is not None and baseline != run.id and baseline in keys:
            pairs = compare(keys[baseline].rows, own.rows, run.vocabulary)
            compared = [pair for pair in pairs if pair.a and pair.b]
        found.append(HistoryEntry(run, own, compared))
    return found


def figure_text(key: KeyFigure) -> str:
    """Return a key figure with its interval; of several points, the range; empty if none is."""
    if len(key.rows) == 1:
        return with_interval(key.rows[0])
    means = [row.spread.mean for row in key.rows]
    return format_range(key.metric, min(means), max(means)) if means else ""


def figures_text(entry: HistoryEntry) -> str:
    """Return the key figure of a run at each of a few points; of others as `figure_text`."""
    key, varying = entry.key, entry.run.varying
    if not 1 < len(key.rows) <= MOST_POINTS:
        return figure_text(key)
    means = [row.spread.mean for row in key.rows]
    factor, unit = common_scale(key.metric, means) or (0.0, "")
    parts = [
        f"{' '.join(str(row.point.get(axis, '')) for axis in varying)} "
        + (number_in(key.metric, mean, factor) if factor else format_value(key.metric, mean))
        for row, mean in zip(key.rows, means, strict=True)
    ]
    return f"{', '.join(parts)} {unit}".rstrip()


def delay_text(key: KeyFigure) -> str:
    """Return the delays beside the figures of a few points: ``812 … 1204 RPM``."""
    if key.delay is None or len(key.rows) > MOST_POINTS:
        return ""
    metric, low, high = key.delay
    name = "" if metric.endswith("_rpm") else f"{title_of(metric)} "
    return name + (format_range(metric, low, high) if low < high else format_value(metric, low))
