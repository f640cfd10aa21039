"""The runs of a profile as one history of a figure: as text, as CSV and as data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchctl.analysis.runs.summary import SummaryRow
from benchctl.analysis.runs.trend import ChangePoint, Trend
from benchctl.analysis.steps import LEAST_SERIES
from benchctl.report.comparison.comparison import NOT_VALID, NOTHING, signed
from benchctl.report.comparison.differences import differences
from benchctl.report.exports.csv import FIGURES, NAMES
from benchctl.report.exports.entries import Entry, moment, summary_entry
from benchctl.report.pivot import Pivot, figure_name, with_interval
from benchctl.run.record import Run
from benchctl.units import format_ratio, format_time, format_value

_OTHERWISE = {"flow": "of flow", "direction": "measured"}
CHANGE = ("level_before", "level_after", "verdict", "confidence")


def trend_table(runs: Sequence[Run], trends: Sequence[Trend]) -> Pivot:
    """Return a row for each run and figure, with the change that begins there."""
    firsts = [trend.first for trend in trends]
    axes = dict.fromkeys(axis for row in firsts for axis in row.point)
    varying = [axis for axis in axes if len({str(row.point.get(axis)) for row in firsts}) > 1]
    others = [name for name in ("flow", "direction") if len({getattr(r, name) for r in firsts}) > 1]
    # An axis of the profile may have such a name, too.
    named = [_OTHERWISE[name] if name in varying else name for name in others]
    heads = (*varying, *named, "run", "when", "n", "figure", "change")
    texts = len(heads) - 3
    rows = [
        (
            *(str(row.point.get(axis, NOTHING)) for axis in varying),
            *(getattr(row, name) or NOTHING for name in others),
            runs[place].name,
            format_time(_begun(runs[place])),
            str(row.spread.n),
            with_interval(row) if row.valid else f"{with_interval(row)} {NOT_VALID}",
            _change(change),
        )
        for trend in trends
        for place, row, change in _occasions(trend)
    ]
    numeric = tuple(texts <= place < len(heads) - 1 for place in range(len(heads)))
    return Pivot(heads, numeric, tuple(rows))


def _occasions(trend: Trend) -> Iterator[tuple[int, SummaryRow, ChangePoint | None]]:
    changes = {change.run: change for change in trend.changes}
    for place, row in trend.rows.items():
        yield place, row, changes.get(place)


def _begun(run: Run) -> float:
    return run.started_time or run.created_time


def _change(change: ChangePoint | None) -> str:
    if change is None:
        return ""
    levels = change.levels
    share = "" if levels.relative is None else f" ({signed_ratio(levels.relative)})"
    return f"{signed(levels.metric, levels.difference)}{share} {levels.verdict}"


def signed_ratio(value: float) -> str:
    """Show a relative change with its sign: ``-15 %``."""
    return f"{'+' if value > 0 else ''}{format_ratio(value)}"


def trend_remarks(runs: Sequence[Run], trends: Sequence[Trend]) -> list[str]:
    """Return what changed, when, and what else differs between the runs around it."""
    lines = []
    for trend in trends:
        before = dict(zip([*trend.rows][1:], trend.rows, strict=False))
        for change in trend.changes:
            levels, row = change.levels, trend.first
            a, b = (format_value(row.metric, values[0]) for values in (levels.a, levels.b))
            lines.append(
                f"{figure_name(row)} went from {a} to {b} with run"
                f" {runs[change.run].name}; confidence"
                f" {format_ratio(min(change.confidence, 0.999))} or more"
            )
            other = differences(runs[before[change.run]], runs[change.run])
            lines += [f"  differs: {name}: {a} -> {b}" for name, a, b in other.rows]
    most = max((len(trend.rows) for trend in trends), default=0)
    if most < LEAST_SERIES:
        lines.append(f"changes are looked for from {LEAST_SERIES} runs on; there are {most}")
    return lines


def trend_entries(runs: Sequence[Run], trends: Sequence[Trend]) -> Iterator[Entry]:
    """Yield each figure of each run as JSON-like data, in SI base units."""
    for trend in trends:
        for place, row, change in _occasions(trend):
            run = runs[place]
            entry = {"run": run.name, "started": moment(_begun(run)), **summary_entry(row)}
            yield {
                **entry,
                "valid": row.valid,
                "change": None if change is None else _levels(change),
            }


def _levels(change: ChangePoint) -> Entry:
    levels = change.levels
    values = (levels.mean_a, levels.mean_b, str(levels.verdict), change.confidence)
    return dict(zip(CHANGE, values, strict=True))


def trend_rows(runs: Sequence[Run], trends: Sequence[Trend]) -> Iterator[list[object]]:
    """Yield the heading and the rows of the same as CSV."""
    axes = list(dict.fromkeys(axis for trend in trends for axis in trend.first.point))
    yield ["run", "started", *axes, "flow", "flow_direction", "metric", *FIGURES, "valid", *CHANGE]
    for entry in trend_entries(runs, trends):
        change = entry["change"] or dict.fromkeys(CHANGE, "")
        yield [
            entry["run"], entry["started"], *(entry["point"].get(axis, "") for axis in axes),
            *(entry[key] for key in (*NAMES, *FIGURES)), int(entry["valid"]), *change.values(),
        ]  # fmt: skip
