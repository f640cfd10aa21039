"""Two runs side by side, as text and as data; the figures come from `analysis.compare`."""

from __future__ import annotations

from collections.abc import Sequence

from benchctl.analysis.compare import Comparison, compare
from benchctl.analysis.families import CORRECTIONS
from benchctl.metrics import OF_TRIALS, title_of
from benchctl.report.pivot import Pivot
from benchctl.report.report import Report
from benchctl.run.record import Run
from benchctl.units import format_ratio, format_value, scale_of, without_unit

NOTHING = "-"


def compare_reports(a: Report, b: Report, *, correction: str = "holm") -> list[Comparison]:
    """Compare the summaries of two runs; ``correction`` is one of `analysis.families`."""
    vocabulary = a.run.vocabulary | b.run.vocabulary
    return compare(a.summary, b.summary, vocabulary, CORRECTIONS[correction])


def explanation(shown: Sequence[Comparison], correction: str = "holm") -> list[str]:
    """Return what the verdicts of a table hold for, and what more repeats would show."""
    families = {one.family: one for one in shown if one.family}
    if not families:
        return []
    sizes = " and, apart from them, ".join(map(str, families))
    whole = {
        "holm": f"any false verdict among {sizes} figures has a chance of 5 % (Holm)",
        "bh": f"5 % of the verdicts among {sizes} figures may be false (Benjamini-Hochberg)",
    }
    lines = [f"{whole[correction]}; an interval is of its figure alone"]
    borrowing = sum(one.borrows for one in shown)
    if borrowing:
        lines.append(
            f"{borrowing} of {len(shown)} figures borrow the variance of the same metric at other"
            " points"
        )
    open_ones = [one for one in shown if one.repeats_needed is not None]
    if open_ones:
        least = min(open_ones, key=lambda one: one.repeats_needed or 0)
        point = ", ".join(f"{axis}={value}" for axis, value in least.point.items())
        what = f"{title_of(least.metric)}{f' of {least.flow}' if least.flow else ''}"
        lines.append(
            f"of the figures without a verdict, {what}{f' at {point}' if point else ''} may differ"
            f" most: {least.repeats_needed} repeats of each run would show it with a chance of 80 %"
        )
    return lines


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
    """Show a difference with its sign: ``+3.2 Mbit/s``; of ratios in percentage points."""
    if value is None:
        return NOTHING
    return f"{'+' if value > 0 else ''}{_in_points(metric, format_value(metric, value))}"


def _in_points(metric: str, text: str) -> str:
    """Return a difference of ratios in percentage points, not in per cent of anything."""
    return f"{text.removesuffix('%')}pp" if metric.endswith("_ratio") else text


def interval(one: Comparison) -> str:
    """Show the interval of a difference in one unit: ``-0.4 … +6.8 Mbit/s``."""
    if one.low is None or one.high is None:
        return NOTHING
    factor, unit = scale_of(one.metric, max(abs(one.low), abs(one.high)))
    low, high = (f"{value / factor:+.3g}" for value in (one.low, one.high))
    return _in_points(one.metric, f"{low} … {high} {unit}".rstrip())
