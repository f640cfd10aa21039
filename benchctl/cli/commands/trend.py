"""``benchctl trend``: one figure over all runs of a profile."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchctl.cli.shared import completion, options
from benchctl.errors import UsageError
from benchctl.visible import visible

if TYPE_CHECKING:
    from benchctl.run.record import Run, RunOutline
    from benchctl.store.read import Reader


def trend(
    profile: Annotated[
        str,
        typer.Argument(
            metavar="PROFILE",
            help="A profile that was measured: its name, a unique part of it, or its file.",
            autocompletion=completion.measured_profiles,
        ),
    ],
    *,
    figure: Annotated[
        str | None,
        typer.Option(
            "--metric",
            metavar="METRIC",
            help="Metric, or a statistic such as rtt_s.p95; default: the first of the summary.",
            autocompletion=completion.metrics,
        ),
    ] = None,
    since: options.Since = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per run and figure.")
    ] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, in SI base units.")] = False,
    fail_on: Annotated[
        list[str],
        typer.Option(
            metavar="LIMIT",
            default_factory=list,
            show_default=False,
            help='Exit with 1 if the newest change is such as "throughput_bps worse by 5%".',
        ),
    ],
    _pager: options.Pager = False,
    _units: options.Units = None,
    archive: options.Archive = None,
    _fleet: options.Fleet = None,
    store: options.Store,
) -> None:
    """Show one figure over all runs of a profile, and when its level changed."""
    from msgspec.structs import replace

    from benchctl.analysis.runs.trend import trends_of
    from benchctl.report.comparison.limits import parse_limit
    from benchctl.report.exports.csv import csv_lines
    from benchctl.report.pivot import align
    from benchctl.report.report import read_report, yet
    from benchctl.report.trend import (
        trend_entries,
        trend_remarks,
        trend_rows,
        trend_table,
    )

    if as_json:
        options.reject_beside("--json", {"--csv": as_csv})
    with _opened(store, archive, profile, since) as (reader, runs):
        reports = [read_report(reader, run) for run in runs]
    known = dict.fromkeys(row.metric for report in reports for row in report.summary)
    vocabulary = runs[-1].vocabulary
    metric, aggregate = _figure(figure, known, vocabulary.wanted)
    better = vocabulary.describe(metric).better
    times = [run.started_time or run.created_time for run in runs]
    rows = [report.rows_of(metric, aggregate) for report in reports]
    trends = trends_of(times, rows, better)
    limits = [parse_limit(text, {figure or metric}) for text in fail_on]
    if as_json:
        for entry in trend_entries(runs, trends):
            print(json.dumps(entry))
    elif as_csv:
        print(*csv_lines(trend_rows(runs, trends)), sep="", end="")
    else:
        table = trend_table(runs, trends)
        print(f"{figure or metric} of {len(runs)} runs of {visible(runs[-1].profile)}\n")
        nothing = f"nothing was measured{yet(*runs)}"
        print(align(table.heads, table.rows, table.numeric) if table.rows else nothing)
        print(*map(visible, trend_remarks(runs, trends)), sep="\n")
    newest = [trend.changes[-1].levels for trend in trends if trend.changes]
    if any(
        replace(limit, metric=metric).broken_by(comparison)
        for limit in limits
        for comparison in newest
    ):
        sys.exit(1)


@contextmanager
def _opened(
    store: Path, archive: str | None, profile: str, since: str | None
) -> Iterator[tuple[Reader, list[Run]]]:
    """Open a store, or an archive, and find the ended runs of a profile, the oldest first."""
    if archive is None:
        with options.open_reader(store) as reader:
            yield (
                reader,
                [reader.run(run_id) for run_id in _ended(reader.outlines(), profile, since)],
            )
        return
    from benchctl.archive.connection import open_archive
    from benchctl.archive.pull import archived_runs, as_store

    with open_archive(options.archive_url(archive)) as opened:
        there = archived_runs(opened)
        outlines = [archived.outline(-place) for place, archived in enumerate(there)]
        wanted = [there[-run_id] for run_id in reversed(_ended(outlines, profile, since))]
        with as_store(opened, wanted) as path, options.open_reader(path) as reader:
            yield reader, reader.runs()[::-1]


def _ended(outlines: Sequence[RunOutline], text: str, since: str | None) -> list[int]:
    """Return the ids of the ended runs of a profile, the oldest first. Raises UsageError."""
    from benchctl.cli.commands.runs import read_time
    from benchctl.store.read import unique

    names = dict.fromkeys(outline.profile for outline in outlines)
    part = Path(text).stem if text.endswith(".toml") else text
    name = unique(part, names, "profile", f"profiles are: {', '.join(names) or 'none'}")
    earliest = 0.0 if since is None else read_time(since)
    # By their time, not by their place in the store: old measurements are imported later.
    begun = sorted(
        (outline.created_time, outline.id)
        for outline in outlines
        if outline.profile == name and outline.status.has_ended and outline.created_time >= earliest
    )
    if not begun:
        raise UsageError(f"no run of {name} has ended", "see benchctl runs")
    return [run_id for _, run_id in begun]


def _figure(text: str | None, known: dict[str, None], wanted: tuple[str, ...]) -> tuple[str, str]:
    """Return the metric and the aggregate that were asked for. Raises UsageError."""
    from benchctl.errors import nearest
    from benchctl.run.condition import parse_figure

    if text is None:
        return next((name for name in wanted if name in known), next(iter(known), wanted[0])), ""
    try:
        metric, aggregate = parse_figure(text)
    except ValueError as error:
        raise UsageError(f"--metric: {error}") from None
    if known and metric not in known:
        hint = nearest(metric, known) or f"measured are: {', '.join(known)}"
        raise UsageError(f'--metric: no metric "{metric}" was measured', hint)
    return metric, aggregate
