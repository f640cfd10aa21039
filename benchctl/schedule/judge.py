"""What is new after a scheduled run: figures whose level changed, and what began or ceased to fail.

The rules are those of ``benchctl trend``, over all figures of the tables. Each change is told once.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import Any, NamedTuple

from benchctl.analysis.distributions import t_two_sided
from benchctl.analysis.runs.compare import of_tables, welch
from benchctl.analysis.runs.regular import (
    LEAST_OUTLIERS,
    LEAST_USUAL,
    single_outliers,
    without_daily_cycle,
)
from benchctl.analysis.runs.summary import SummaryRow
from benchctl.analysis.runs.trend import ChangePoint, Trend, trends_of
from benchctl.analysis.steps import LEAST_LEVEL
from benchctl.report.exports.entries import moment
from benchctl.report.pivot import figure_name
from benchctl.report.report import Report, read_report
from benchctl.report.trend import signed_ratio
from benchctl.run.planned import LOCAL
from benchctl.run.record import Run
from benchctl.run.status import FAILURES
from benchctl.schedule.book import LogEntry, What
from benchctl.store.read import Reader
from benchctl.units import format_count, format_value

# A schedule of six hours has them in a month. Older runs say little about what is usual now.
MOST_RUNS = 120
# Runs since a change that is news. One that nobody saw until then is small, or depends on which run
# is the oldest.
MOST_OLD = 20
# The chance of a false change after a run. A schedule of six hours has 28 in a week.
ERROR = 0.002
# Runs between the beginnings of one change in several figures, which noise moves.
MOST_APART = 2
# Disturbed trials are as far away as others of the table within this share.
ALIKE = 0.25
# Named in a sentence; all are in its figures.
MOST_NAMED = 3


def read_news(reader: Reader, runs: Sequence[Run], entries: Iterable[LogEntry]) -> list[LogEntry]:
    """Return what is new with the last of a schedule's runs; ``runs`` are the oldest first.

    ``entries`` are those of the schedule's log. Raises StoreError.
    """
    reports = [read_report(reader, run) for run in runs[-MOST_RUNS:]]
    reported = [*entries]
    tables = [of_tables(report.summary, report.run.vocabulary) for report in reports]
    ends = {
        _flow_point(flow.flow.name, trial.trial.point): (flow.flow.source, flow.flow.target)
        for trial in reports[-1].trials
        for flow in trial.flows
    }
    news = news_of_levels([report.run for report in reports], tables, reported, ends)
    return [*news, *news_of_failures(reports[-1], reported)]


def news_of_levels(
    runs: Sequence[Run],
    tables: Sequence[Sequence[SummaryRow]],
    entries: Iterable[LogEntry],
    ends: Mapping[FlowPoint, tuple[str, str]] | None = None,
) -> Iterator[LogEntry]:
    """Yield one entry that names all figures whose level changed, if any did.

    ``tables`` are the figures of each run, ``ends`` the hosts that flows are between. A figure that
    changed with one that was told of before, at one of its hosts, is added to that change.
    """
    times = [_begun(run) for run in runs]
    reported = _Told([run.name for run in runs], times, entries, ends or {})
    by_metric: dict[str, dict[int, list[SummaryRow]]] = {}
    for place, table in enumerate(tables):
        for row in table:
            by_metric.setdefault(row.metric, {}).setdefault(place, []).append(row)

    def changes(error: float | None) -> Iterator[tuple[Trend, ChangePoint]]:
        for metric, rows in by_metric.items():
            better = runs[-1].vocabulary.describe(metric).better
            rows_of = [rows.get(place, ()) for place in range(len(tables))]
            trends = trends_of(times, rows_of, better, error=error)
            lacking = [
                trend
                for trend in trends
                if trend.changes and reported.lacks(trend, trend.changes[-1])
            ]
            usual = _usual_outliers(trends) if lacking else ()
            for trend in lacking:
                if not _is_disturbed(trend, len(times), usual):
                    yield trend, trend.changes[-1]

    found = [*changes(ERROR)]
    if not found:
        return
    # With a change that is certain, others at its time have one cause: all are told of at once.
    begun = {change.run for trend, change in found if not reported.with_run(trend, change)}

    def is_near(place: int) -> bool:
        return any(abs(place - run) <= MOST_APART for run in begun)

    known = {_key(_about(trend.first)) for trend, _ in found}
    found += [
        (trend, change)
        for trend, change in changes(None)
        if _key(_about(trend.first)) not in known
        and (is_near(change.run) or reported.with_run(trend, change))
    ]
    figures: dict[str, list[dict[str, Any]]] = {}
    for trend, change in found:
        figures.setdefault(reported.with_run(trend, change), []).append(
            _figure(trend, change, runs)
        )
    for told_with, ones in figures.items():
        what = What.ADDED if told_with else What.CHANGE
        yield LogEntry(
            what, run=runs[-1].name, told_with=told_with, figures=tuple(ones), text=_in_words(ones)
        )


def _usual_outliers(trends: Iterable[Trend]) -> list[float]:
    """Return how far outliers of a table usually are, as a share of the level: below and above."""
    found = [
        apart
        for trend in trends
        for apart in single_outliers([row.spread.mean for row in trend.rows.values()])
    ]
    sides = [share for share in found if share < 0], [share for share in found if share > 0]
    return [median(side) for side in sides if len(side) >= LEAST_OUTLIERS]


def _is_disturbed(trend: Trend, runs: int, usual: Iterable[float]) -> bool:
    """Return whether the last change is that to some disturbed trials in a row, or back.

    Of thousands of figures, some have so many; a series alone may not have enough to show how far
    away such trials are.
    """
    change = trend.changes[-1]
    before, after = change.levels.mean_a, change.levels.mean_b
    if not before or not after:
        return False
    begun = trend.changes[-2].run if len(trend.changes) > 1 else 0
    means = {place: row.spread.mean for place, row in trend.rows.items() if row.valid}
    for first, last, level, other in (
        (change.run, runs, after, before),
        (begun, change.run, before, after),
    ):
        lasted = sum(
            abs(mean - level) < abs(mean - other)
            for place, mean in means.items()
            if first <= place < last
        )
        if lasted < LEAST_USUAL:
            apart = level / other - 1
            if any(abs(apart - outlier) <= ALIKE * abs(outlier) for outlier in usual):
                return True
    return False


class _LastChange(NamedTuple):
    """When one was told of the last change of a figure, its size, and the run with which it began.

    That is None if it is not among the runs that are judged.
    """

    time: float
    size: float
    place: int | None


class _Begun(NamedTuple):
    """Where a change of a figure began that was told of, and the run with which it was."""

    place: int
    key: str
    hosts: frozenset[Any]
    run: str


class _Told:
    """The changes that a log tells of, by figure, and by the hosts between which they were."""

    def __init__(
        self,
        names: Sequence[str],
        times: Sequence[float],
        entries: Iterable[LogEntry],
        ends: Mapping[FlowPoint, tuple[str, str]],
    ) -> None:
        self._times, self._ends = times, ends
        places = {name: place for place, name in enumerate(names)}
        self._last: dict[str, _LastChange] = {}
        self._begun: dict[Any, list[_Begun]] = {}
        """By host."""
        for entry in entries:
            if entry.what not in (What.CHANGE, What.ADDED):
                continue
            for figure in entry.figures:
                key = _key(figure)
                place = places.get(figure["since_run"])
                self._last[key] = _LastChange(entry.time, figure["after"] - figure["before"], place)
                if place is not None:
                    hosts = self._hosts(figure)
                    begun = _Begun(place, key, hosts, entry.told_with or entry.run)
                    for host in hosts:
                        self._begun.setdefault(host, []).append(begun)

    def _hosts(self, figure: Mapping[str, Any]) -> frozenset[Any]:
        """Return the hosts of a figure, if one is remote only that; its place if none is known.

        This machine is an end of every path that it measures.
        """
        place = _flow_point(figure["flow"], figure["point"])
        return frozenset(self._ends.get(place, (place,))) - {LOCAL.name} or frozenset((LOCAL.name,))

    def lacks(self, trend: Trend, change: ChangePoint) -> bool:
        """Return whether nobody was told of a change yet.

        Where it begins may move by some runs as more are measured: what began before the last was
        told of is that one, unless it goes the other way.
        """
        if not change.levels.verdict.is_certain or change.levels.difference is None:
            return False
        if change.run < len(self._times) - MOST_OLD:
            return False
        if (last := self._last.get(_key(_about(trend.first)))) is None:
            return True
        if self._times[change.run] <= last.time and change.levels.difference * last.size >= 0:
            return False
        return last.place is None or self._stands_out(trend, last.place, change.run)

    def _stands_out(self, trend: Trend, begun: int, again: int) -> bool:
        """Return whether a figure changed again after a change, by the noise since then alone.

        A level may be noisier than the one before, as a loss is, and that is no change. Welch's t,
        corrected for all places where the change could be.
        """
        places = [place for place, row in trend.rows.items() if row.valid]
        values = without_daily_cycle(
            [self._times[place] for place in places],
            [trend.rows[place].spread.mean for place in places],
        )
        since = values[bisect_left(places, begun) : bisect_left(places, again)]
        now = values[bisect_left(places, again) :]
        if min(len(since), len(now)) < LEAST_LEVEL:
            return False
        squared, degrees = welch(since, now)
        size = abs(fmean(now) - fmean(since))
        chance = t_two_sided(size / math.sqrt(squared), degrees) if squared else 0.0
        return chance * (len(since) + len(now)) < ERROR

    def with_run(self, trend: Trend, change: ChangePoint) -> str:
        """Return the run with which a change of other figures was told that is this one, too.

        It began at the same time at one of its hosts, or about then between the same two: levels of
        fewer runs are not known. "" if there is none.
        """
        key, hosts = _key(_about(trend.first)), self._hosts(_about(trend.first))
        near = [
            begun
            for host in hosts
            for begun in self._begun.get(host, ())
            if abs(begun.place - change.run)
            <= (LEAST_LEVEL if begun.hosts == hosts else MOST_APART)
        ]
        if not near or key in [begun.key for begun in near]:
            return ""
        return min(near, key=lambda begun: abs(begun.place - change.run)).run


FlowPoint = tuple[str, tuple[tuple[str, str], ...]]
"""A flow at a point."""


def _flow_point(flow: str, point: Mapping[str, Any]) -> FlowPoint:
    return flow, tuple(sorted((axis, str(value)) for axis, value in point.items()))


def _about(row: SummaryRow) -> dict[str, Any]:
    point = {axis: str(value) for axis, value in row.point.items()}
    return {"metric": row.metric, "flow": row.flow, "direction": row.direction, "point": point}


def _key(figure: Mapping[str, Any]) -> str:
    return repr(
        (figure["metric"], figure["direction"], _flow_point(figure["flow"], figure["point"]))
    )


def _figure(trend: Trend, change: ChangePoint, runs: Sequence[Run]) -> dict[str, Any]:
    levels, first = change.levels, runs[change.run]
    return {
        **_about(trend.first),
        "name": figure_name(trend.first),
        "before": levels.mean_a,
        "after": levels.mean_b,
        "relative": levels.relative,
        "verdict": str(levels.verdict),
        "since_run": first.name,
        "since": moment(_begun(first)),
    }


def _in_words(figures: Sequence[Mapping[str, Any]]) -> str:
    parts = []
    for figure in figures[:MOST_NAMED]:
        share = "" if figure["relative"] is None else f" ({signed_ratio(figure['relative'])})"
        before, after = (format_value(figure["metric"], figure[end]) for end in ("before", "after"))
        parts.append(f"{figure['name']} {figure['verdict']}: {before} -> {after}{share}")
    if (more := len(figures) - MOST_NAMED) > 0:
        parts.append(f"{format_count(more, 'more figure')}")
    return "; ".join(parts)


def news_of_failures(report: Report, entries: Iterable[LogEntry]) -> Iterator[LogEntry]:
    """Yield an entry if others fail than before, of trials and expectations, or none any longer."""
    said = [entry for entry in entries if entry.what in (What.FAILING, What.RECOVERED)]
    before = said[-1] if said else None
    reasons: dict[str, int] = {}
    for trial in report.trials:
        if trial.trial.status in FAILURES:
            # A peer that is away fails many trials with one reason.
            why = trial.trial.error or str(trial.trial.status)
            reasons[why] = reasons.get(why, 0) + 1
    if report.run.error:
        reasons.setdefault(report.run.error, 0)
    for outcome in report.outcomes:
        if outcome.fails(strict=False):
            reasons.setdefault(f"not met: {outcome.text}", 0)
    text = "; ".join(
        f"{why} ({format_count(count, 'trial')})" if count else why
        for why, count in sorted(reasons.items())
    )
    if reasons:
        whys = tuple(sorted(reasons))
        if before is None or before.reasons != whys:
            yield LogEntry(What.FAILING, run=report.run.name, text=text, reasons=whys)
    elif before is not None and before.what is What.FAILING:
        yield LogEntry(What.RECOVERED, run=report.run.name, text="nothing fails any longer")


def _begun(run: Run) -> float:
    return run.started_time or run.created_time
