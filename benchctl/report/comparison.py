"""Two runs side by side, as text and as data; the figures come from `analysis.compare`."""

from __future__ import annotations

from collections.abc import Sequence

from benchctl.analysis.compare import Comparison, compare
from benchctl.metrics import OF_TRIALS
from benchctl.report.pivot import Pivot
from benchctl.report.report import Report
from benchctl.run.record import Run
from benchctl.units import format_ratio, format_value, scale_of, without_unit

NOTHING = "-"


def compare_reports(a: Report, b: Report) -> list[Comparison]:
    """Compare the summaries of two runs."""
    return compare(a.summary, b.summary, a.run.vocabulary | b.run.vocabulary)


def of_interest(comparisons: Sequence[Comparison], *runs: Run) -> list[Comparison]:
    """Return the comparisons of the metrics that both runs' tables show."""
    shown = {*OF_TRIALS, *(name for run in runs for name in run.vocabulary.wanted)}
    return [one for one in comparisons if one.metric in shown]


def comparison_table(comparisons: Sequence[Comparison]) -> Pivot:
    """Return the comparisons as rows of text; axes with a single value are left out."""
    axes = dict.fromkeys(axis for one in comparisons for axis in one.point)
    varying = [axis for axis in axes if len({str(one.point.get(axis)) for one in comparisons}) > 1]
    heads = (*varying, "flow", "metric", "A", "B", "difference", "", "95 % interval", "verdict")
    texts = len(varying) + 2
    numeric = tuple(texts <= index < len(heads) - 1 for index in range(len(heads)))
    ways: dict[tuple[str, str], set[str]] = {}
    for one in comparisons:
        ways.setdefault((one.flow, one.metric), set()).add(one.direction)
    rows = [_row(one, varying, len(ways[one.flow, one.metric]) > 1) for one in comparisons]
    return Pivot(heads, numeric, tuple(rows))


def _row(one: Comparison, varying: Sequence[str], both_ways: bool) -> tuple[str, ...]:
    relative = (
        f"{'+' if one.relative > 0 else ''}{format_ratio(one.relative)}" if one.relative else ""
    )
    return (
        *(str(one.point.get(axis, NOTHING)) for axis in varying),
        one.flow or NOTHING,
        f"{without_unit(one.metric)} {one.direction}" if both_ways else without_unit(one.metric),
        _value(one.metric, one.mean_a),
        _value(one.metric, one.mean_b),
        signed(one.metric, one.difference),
        relative,
        interval(one),
        str(one.verdict),
    )


def _value(metric: str, value: float | None) -> str:
    return NOTHING if value is None else format_value(metric, value)


def signed(metric: str, value: float | None) -> str:
    """Show a difference with its sign: ``+3.2 Mbit/s``."""
    if value is None:
        return NOTHING
    return f"{'+' if value > 0 else ''}{format_value(metric, value)}"


def interval(one: Comparison) -> str:
    """Show the interval of a difference in one unit: ``-0.4 … +6.8 Mbit/s``."""
    if one.low is None or one.high is None:
        return NOTHING
    factor, unit = scale_of(one.metric, max(abs(one.low), abs(one.high)))
    low, high = (f"{value / factor:+.3g}" for value in (one.low, one.high))
    return f"{low} … {high} {unit}".rstrip()
