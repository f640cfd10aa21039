"""Changes of level in a mesh: as the log of a schedule has them, else as `trend` finds them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from statistics import fmean
from typing import NamedTuple

from benchctl.analysis.runs.compare import judge
from benchctl.analysis.runs.trend import ERROR, level_changes
from benchctl.analysis.steps import FALSE_ALARMS, LEAST_SERIES
from benchctl.report.mesh.reading import History, HistoryReading
from benchctl.run.record import RunOutline
from benchctl.store.bulk import Bulk
from benchctl.store.read import Reader

MOST_RUNS = 120
"""As many as a schedule judges. Older runs say little about what is usual now."""
SCHEDULED = "schedule:"


class SeriesChange(NamedTuple):
    """A change of the level of a series: since when and with which run, both levels, verdict."""

    series: int
    since: float
    run: str
    before: float
    after: float
    verdict: str


class LoggedChange(NamedTuple):
    """A change that the log of a schedule names; ``point`` as `point_text` writes it."""

    metric: str
    flow: str
    direction: str
    point: str
    since: float
    run: str
    before: float
    after: float
    verdict: str


class LogLine(NamedTuple):
    """An entry of the log of a schedule: when, about which run, in words; and its changes."""

    time: float
    run: str
    text: str
    changes: Sequence[LoggedChange] = ()


def logged_changes(history: History, entries: Iterable[LogLine]) -> Iterator[SeriesChange]:
    """Yield the changes that the log has, of the series that are known."""
    flows: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for (_, name, point), flow in history.at.items():
        flows[name, point].append(flow)
    for change in (change for entry in entries for change in entry.changes):
        for flow in flows.get((change.flow, change.point), ()):
            series = history.numbers.series_of(flow).get((change.direction, change.metric))
            if series is not None:
                yield SeriesChange(
                    series, change.since, change.run, change.before, change.after, change.verdict
                )


def found_changes(
    reader: Reader, history: History, outlines: Sequence[RunOutline]
) -> Iterator[SeriesChange]:
    """Yield what `benchctl trend` finds in the newest runs of one profile. Raises StoreError."""
    outlines = sorted(outlines, key=lambda outline: (outline.created_time, outline.id))[-MOST_RUNS:]
    if len(outlines) < LEAST_SERIES:
        return
    runs = [reader.run(outline.id) for outline in outlines]
    found: dict[int, list[tuple[int, float]]] = {}
    with closing(Bulk(reader.path)) as bulk:
        reading = HistoryReading(reader, bulk, history.numbers)
        for place, run in enumerate(runs):
            own: defaultdict[int, list[float]] = defaultdict(list)
            flows, _ = reading.flows(run)
            for series, _, value in reading.figures(run, flows):
                own[series].append(value)
            for series, values in own.items():
                found.setdefault(series, []).append((place, fmean(values)))
    names = history.numbers.series
    counts: defaultdict[str, int] = defaultdict(int)
    for series in found:
        counts[names[series].metric] += 1
    for series, means in found.items():
        metric = names[series].metric
        better = history.vocabulary.describe(metric).better
        times = [runs[place].created_time for place, _ in means]
        alarms = min(FALSE_ALARMS, ERROR / counts[metric])
        for at, before, after, confidence in level_changes(
            times, [mean for _, mean in means], alarms
        ):
            verdict = judge(after - before, 1 - confidence, better)
            if verdict.is_certain:
                yield SeriesChange(
                    series, times[at], runs[means[at][0]].name, before, after, verdict
                )
