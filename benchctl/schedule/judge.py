"""What is new after a scheduled run: figures whose level changed, and what began or ceased to fail.

The rules are those of ``benchctl trend``, over all figures of the tables. Each change is told once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from benchctl.analysis.runs.compare import of_tables
from benchctl.analysis.runs.summary import SummaryRow
from benchctl.analysis.runs.trend import ChangePoint, Trend, trends_of
from benchctl.report.exports.entries import moment
from benchctl.report.pivot import figure_name
from benchctl.report.report import Report, read_report
from benchctl.report.trend import signed_ratio
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
# Named in a sentence; all are in its figures.
MOST_NAMED = 3


def read_news(reader: Reader, runs: Sequence[Run], entries: Iterable[LogEntry]) -> list[LogEntry]:
    """Return what is new with the last of a schedule's runs; ``runs`` are the oldest first.

    ``entries`` are those of the schedule's log. Raises StoreError.
    """
    reports = [read_report(reader, run) for run in runs[-MOST_RUNS:]]
    reported = [*entries]
    tables = [of_tables(report.summary, report.run.vocabulary) for report in reports]
    news = news_of_levels([report.run for report in reports], tables, reported)
    return [*news, *news_of_failures(reports[-1], reported)]


def news_of_levels(
    runs: Sequence[Run], tables: Sequence[Sequence[SummaryRow]], entries: Iterable[LogEntry]
) -> Iterator[LogEntry]:
    """Yield one entry that names all figures whose level changed, if any did.

    ``tables`` are the figures of each run.
    """
    reported: dict[str, tuple[float, float]] = {}
    for entry in entries:
        if entry.what is What.CHANGE:
            for figure in entry.figures:
                reported[_key(figure)] = (entry.time, figure["after"] - figure["before"])
    times = [_begun(run) for run in runs]
    by_metric: dict[str, list[list[SummaryRow]]] = {}
    for place, table in enumerate(tables):
        for row in table:
            rows_of = by_metric.setdefault(row.metric, [[] for _ in tables])
            rows_of[place].append(row)
    found: list[tuple[Trend, ChangePoint]] = []
    for metric, rows in by_metric.items():
        better = runs[-1].vocabulary.describe(metric).better
        found += _news(trends_of(times, rows, better, error=ERROR), times, reported)
    if not found:
        return
    # With a change that is certain, others at its time have one cause: all are told of at once.
    begun = {change.run for _, change in found}
    known = {_key(_about(trend.first)) for trend, _ in found}
    for metric, rows in by_metric.items():
        better = runs[-1].vocabulary.describe(metric).better
        found += [
            (trend, change)
            for trend, change in _news(trends_of(times, rows, better, error=None), times, reported)
            if _key(_about(trend.first)) not in known
            and any(abs(change.run - run) <= MOST_APART for run in begun)
        ]
    figures = [_figure(trend, change, runs) for trend, change in found]
    yield LogEntry(What.CHANGE, run=runs[-1].name, figures=tuple(figures), text=_in_words(figures))


def _news(
    trends: Iterable[Trend], times: Sequence[float], reported: Mapping[str, tuple[float, float]]
) -> Iterator[tuple[Trend, ChangePoint]]:
    for trend in trends:
        if trend.changes and _is_news(trend, trend.changes[-1], times, reported):
            yield trend, trend.changes[-1]


def _is_news(
    trend: Trend,
    change: ChangePoint,
    times: Sequence[float],
    reported: Mapping[str, tuple[float, float]],
) -> bool:
    """Return whether nobody was told of a change yet.

    Where it begins may move by some runs as more are measured: what began before the last was told
    of is that one, unless it goes the other way.
    """
    if not change.levels.verdict.is_certain or change.levels.difference is None:
        return False
    if change.run < len(times) - MOST_OLD:
        return False
    then, size = reported.get(_key(_about(trend.first)), (0.0, 0.0))
    return times[change.run] > then or change.levels.difference * size < 0


def _about(row: SummaryRow) -> dict[str, Any]:
    point = {axis: str(value) for axis, value in row.point.items()}
    return {"metric": row.metric, "flow": row.flow, "direction": row.direction, "point": point}


def _key(figure: Mapping[str, Any]) -> str:
    point = sorted(figure["point"].items())
    return repr((figure["metric"], figure["flow"], figure["direction"], point))


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
